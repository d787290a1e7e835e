"""Where compiled loops are kept, and what happens where nothing can be kept.

Numba keeps them beside the sources, else in the user's cache. An image whose files are read-only and whose user has
no home has neither: there Numba refuses to compile for keeps, and compiling anew for one answer would take many times
as long as the answer. So the plain functions answer, and only a simulation compiles, for itself.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import berth

_SOURCES = Path(berth.__file__).parent / "scheduling"
_LARGEST = ("place_run", "run_all")  # who starts where, and when the others will


def plain_unless_kept() -> None:
    """For a command that makes one decision: compiled code where there is some already, or can be kept."""
    if not _can_be_kept():
        os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
    elif not _is_kept() and not os.environ.get("NUMBA_DISABLE_JIT"):
        print(  # before anything of Berth is imported
            "berth: compiling the hot loops once, half a minute (`python -m berth.app.compile` does it ahead)",
            file=sys.stderr,
        )


def kept_for_now() -> None:
    """For a command that makes a hundred thousand: a folder that lives as long as the process."""
    if _can_be_kept():
        return
    try:
        folder = tempfile.mkdtemp(prefix="berth-")
    except OSError:
        os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
        return
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = folder


def _places() -> list[Path]:
    """Where Numba keeps compiled code: beside the sources, in a named folder, in the user's cache."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    users = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    with suppress(RuntimeError):  # a user without a home
        users = users.expanduser()
    return [_SOURCES / "__pycache__", *([Path(named)] if named else []), users / "numba"]


def _can_be_kept() -> bool:
    """Numba finds a place to keep compiled code."""
    return any(_is_writable(place) for place in _places())


def _is_kept() -> bool:
    """The largest loops have been compiled before, by the names that Numba gives their files."""
    places = [place for place in _places() if place.is_dir()]
    return all(any(next(place.rglob(f"*.{loop}-*.nbi"), None) for place in places) for loop in _LARGEST)


def _is_writable(folder: Path) -> bool:
    """It can be written to, or made."""
    try:
        existing = next(f for f in (folder, *folder.parents) if f.exists())
        return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    except (OSError, StopIteration, RuntimeError):
        return False
