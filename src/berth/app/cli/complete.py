"""`kubectl_complete-berth`: kubectl runs it when somebody presses Tab behind `kubectl berth`.

It gets the words after `berth`, the last of them unfinished, and prints a completion a line, each with a tab and
what it means, then `:` and a directive (cobra's: 0 files may follow, 4 they do not). Source: kubectl's plugin
completion, kubernetes/kubernetes#105867.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from click.shell_completion import ShellComplete

NO_FILES, FILES = 4, 0


def kubectl(arguments: Sequence[str] | None = None) -> None:
    """The program. Never fails: without an answer kubectl completes nothing."""
    from berth.app.cli.main import cli

    words = list(sys.argv[1:] if arguments is None else arguments)
    incomplete = words.pop() if words else ""
    try:
        found = ShellComplete(cli, {}, "berth", "").get_completions(words, incomplete)
    except Exception:
        found = []
    for item in found:
        if item.type == "plain":
            print(f"{item.value}\t{item.help}" if item.help else item.value)
    files = any(item.type in ("file", "dir") for item in found)
    print(f":{FILES if files else NO_FILES}")
