"""What the process does not need goes back to the system.

A process that lives for months takes and frees buffers of all sizes from several threads. glibc keeps what was freed
for itself: in an arena for each thread, in gaps between what stays, and, since it raises its threshold for large
blocks with each one freed, ever larger blocks in the heap. What is in use stayed flat while the process grew by a
mebibyte a minute; with these it does not. Where the C library is another one nothing is done.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys

EVERY_S = 30.0
_ARENAS, _TRIM, _MMAP = -8, -1, -3  # parameters of mallopt(3)
_LARGE_BYTES = 256 * 1024


def _libc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.malloc_trim.argtypes = (ctypes.c_size_t,)
        libc.mallopt.argtypes = (ctypes.c_int, ctypes.c_int)
    except (OSError, AttributeError):
        return None
    return libc


def keep_small(arenas: int = 2) -> None:
    """Before threads begin: few arenas for all of them, and a threshold for large blocks that stays where it is."""
    if (libc := _libc()) is not None:
        libc.mallopt(_ARENAS, arenas)
        libc.mallopt(_MMAP, _LARGE_BYTES)
        libc.mallopt(_TRIM, _LARGE_BYTES)


def trim() -> None:
    """Once, now."""
    if (libc := _libc()) is not None:
        libc.malloc_trim(0)


async def give_back(every_s: float = EVERY_S) -> None:
    """Now and then, in a thread: it takes some milliseconds, in which only who needs memory waits."""
    if (libc := _libc()) is None:
        return
    while True:
        await asyncio.sleep(every_s)
        await asyncio.to_thread(libc.malloc_trim, 0)
