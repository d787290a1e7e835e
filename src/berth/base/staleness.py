"""Compiled code on disk that is older than a source that it was compiled from.

Numba asks for the age of the kernel's own file only, not of the files whose functions it inlines: after an
update of those alone it would go on running the old code.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any


def forget_stale(kernel: Any, *inlined: ModuleType) -> None:
    """Drop the cached code of a compiled function that is older than a module that it inlines.

    Call it once, after the definition and before the first call; the function is then compiled anew.
    """
    if not hasattr(kernel, "py_func"):
        return  # Numba is absent
    own = Path(kernel.py_func.__code__.co_filename).stem
    with suppress(OSError):  # no cache, or not ours to delete: then it is not ours to write either
        newest = max(Path(module.__file__ or "").stat().st_mtime_ns for module in inlined)
        for index in Path(kernel.stats.cache_path).glob(f"{own}.{kernel.py_func.__qualname__}-*.nbi"):
            if index.stat().st_mtime_ns < newest:
                index.unlink(missing_ok=True)
