"""The control groups of one real node: made before its kubelet starts, removed when it is gone.

The standard library alone: the watchdog uses it too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


def make(name: str) -> None:
    """A group of this name in every hierarchy."""
    for root in _hierarchies():
        (root / name).mkdir(exist_ok=True)


def remove(name: str) -> None:
    """The groups and all below them. Processes in them must have ended; what is still in use stays."""
    for root in _hierarchies():
        for folder, _, _ in os.walk(root / name, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()


def _hierarchies() -> Iterator[Path]:
    """cgroup v2 is one; cgroup v1 has a folder for each controller, some of them links, perhaps v2 beside."""
    if (_ROOT / "cgroup.controllers").exists():
        yield _ROOT
        return
    for root in sorted(_ROOT.iterdir()):
        if root.is_dir() and not root.is_symlink():
            yield root
