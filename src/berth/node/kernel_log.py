"""The kernel's log from boot on, and what is added: /dev/kmsg, one record a read, nothing taken away from others.

Only sentences that are known are kept (evidence/scan.py), the last MOST of them, each with its time as Unix time.
"""

from __future__ import annotations

import errno
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from berth.evidence.fact import Said
from berth.evidence.piece import Piece
from berth.evidence.scan import scanner
from berth.node.places import Places
from berth.node.seen import because

MOST = 4_000  # sentences
MOST_BYTES = 32 * 2**20  # of one reading: a kernel's buffer is smaller
_RECORD = 16_384
SOURCE = "/dev/kmsg"
_PREFIX = re.compile(rb"\d+,\d+,(\d+),[^;]*;")


class KernelLog:
    """Follows the log. `problem` is why it cannot be read, "" while it can.

    `boot_s` says when the machine was started. It is asked each time: the kernel moves it when the clock is set.
    """

    def __init__(self, path: Path, node: str = "", boot_s: Callable[[], float] = lambda: 0.0) -> None:
        self.problem = ""
        self.lost = 0  # how often records were overwritten before they were read
        self._path = path
        self._node = node
        self._boot_s = boot_s
        self._file = -1
        self._said: deque[Said] = deque(maxlen=MOST)

    @property
    def descriptor(self) -> int:
        """To wait on; -1 while the log is not open."""
        return self._file

    def catch_up(self) -> list[Said]:
        """What has been said since the last time, from boot on at the first; all sentences that are known."""
        if self._file < 0 and not self._open():
            return []
        text = b"".join(self._new())
        if not text:
            return []
        piece = Piece(as_printed(text), SOURCE, "dmesg", self._node)
        boot_s = self._boot_s()
        new = [in_clock_time(said, boot_s) for said in scanner().scan(piece)]
        self._said.extend(new)
        return new

    def since(self, unix_s: float = 0.0) -> list[Said]:
        """Sentences of that time and later; those without a time, too."""
        return [one for one in self._said if not one.origin.at_s or one.origin.at_s >= unix_s]

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self) -> bool:
        try:
            self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self.problem = f"{SOURCE}: {because(error)}"
            return False
        self.problem = ""
        return True

    def _new(self) -> Iterator[bytes]:
        total = 0
        while total < MOST_BYTES:
            try:
                record = os.read(self._file, _RECORD)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.EPIPE:  # overwritten before it was read: the next read goes on
                    self.lost += 1
                    continue
                self.problem = f"{SOURCE}: {because(error)}"
                self.close()
                return
            if not record:
                return  # the end of an ordinary file
            total += len(record)
            yield record


def whole(path: Path) -> bytes:
    """The log as it is, for a bundle. Raises OSError."""
    log = KernelLog(path)
    if not log._open():
        raise OSError(log.problem)
    try:
        return as_printed(b"".join(log._new()))
    finally:
        log.close()


def as_printed(records: bytes) -> bytes:
    """Records as dmesg prints them, which is what people search for: `6,12,100000000,-;text` → `[  100.000000] text`.
    The machine-readable lines that belong to a record (` SUBSYSTEM=pci`) are left out."""
    lines = []
    for line in records.splitlines():
        if found := _PREFIX.match(line):
            us = int(found[1])
            lines.append(b"[%5d.%06d] %b" % (us // 1_000_000, us % 1_000_000, line[found.end() :]))
        elif not line.startswith(b" "):
            lines.append(line)
    return b"\n".join(lines) + b"\n"


def boot_time_s(places: Places) -> float:
    """When the machine was started, Unix time; 0.0 where nobody says."""
    try:
        for line in (places.proc / "stat").read_text().splitlines():
            if line.startswith("btime "):
                return float(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return 0.0


def boot_id(places: Places) -> str:
    """Another one after each start of the machine."""
    try:
        return (places.proc / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def in_clock_time(said: Said, boot_s: float) -> Said:
    """With Unix time in the place of seconds after boot."""
    if not said.origin.at_s or not boot_s:
        return said
    return replace(said, origin=replace(said.origin, at_s=boot_s + said.origin.at_s))
