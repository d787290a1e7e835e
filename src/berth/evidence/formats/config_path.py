"""Which file a quoted configuration is: its source says it, or a prompt or a comment above it."""

from __future__ import annotations

import re

_PATH = re.compile(r"(?<![\w./-])(/[\w.@+-]+(?:/[\w.@+-]+)*\.(?:toml(?:\.tmpl)?|json|ya?ml|conf))\b")
HEAD_LINES = 4


def path_of(source: str, text: str) -> str:
    """A path of a configuration file; "" where nobody names one."""
    if found := _PATH.search(source):
        return found[1]
    for line in text.splitlines()[:HEAD_LINES]:
        if "=" not in line and (found := _PATH.search(line)):
            return found[1]
    return ""
