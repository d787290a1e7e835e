"""One program that runs: started, stopped, killed, paused, measured. Also by a process that did not start it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """What a process has used since it started. Source: /proc/PID/stat and status."""

    cpu_s: float = 0.0
    rss_bytes: int = 0
    peak_rss_bytes: int = 0


@dataclass(frozen=True)
class Identity:
    """A process for good: its number alone may be given to another one later."""

    pid: int
    started_ticks: int

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        fields = _stat(pid)
        return None if fields is None else cls(pid, int(fields[19]))

    @property
    def is_alive(self) -> bool:
        fields = _stat(self.pid)
        if fields is None or int(fields[19]) != self.started_ticks:
            return False
        # The first thread of a killed process is a zombie before the others are gone, and with them its sockets.
        return fields[0] not in "ZX" or _threads(self.pid) > 1

    def signal_group(self, number: int) -> None:
        """Send a signal to the process and what it started. Nothing happens where it is gone."""
        if not self.is_alive:
            return
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return

    def usage(self) -> Usage:
        fields = _stat(self.pid)
        if fields is None or int(fields[19]) != self.started_ticks:
            return Usage()
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return Usage()
        sizes = [line.split() for line in status.splitlines() if line.startswith(("VmRSS", "VmHWM"))]
        kib = {name.rstrip(":"): int(size) for name, size, _ in sizes}
        cpu_s = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
        return Usage(cpu_s, kib.get("VmRSS", 0) * 1024, kib.get("VmHWM", 0) * 1024)


class Process:
    """A component's process. It leads a process group of its own and writes to one log, over all its starts."""

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self.identity: Identity | None = None
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def is_alive(self) -> bool:
        if self._child is not None:
            return self._child.poll() is None
        return self.identity is not None and self.identity.is_alive

    def start(self, command: Sequence[str], environment: dict[str, str] | None = None) -> None:
        if self.is_alive:
            raise RuntimeError(f"{self.name} runs already.")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**_inherited(), **(environment or {})},
            )
        self.identity = Identity.of(self._child.pid)

    def signal(self, number: int) -> None:
        if self.identity is not None:
            self.identity.signal_group(number)

    def pause(self, patience_s: float = 5.0) -> None:
        """SIGSTOP, and until all of its threads stand still: one that runs yet may answer meanwhile."""
        self.signal(signal.SIGSTOP)
        until = time.monotonic() + patience_s
        while self.identity is not None and time.monotonic() < until and not _stands_still(self.identity.pid):
            time.sleep(0.01)

    def stop(self, patience_s: float = 5.0) -> None:
        """End it: politely, and by force where that takes longer than `patience_s`. Gone when this returns."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        if not self.wait_gone(patience_s):
            self.kill()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        if not self.wait_gone(10.0):
            raise RuntimeError(f"{self.name} (process {self.identity}) survives SIGKILL.")

    def wait_gone(self, timeout_s: float) -> bool:
        until = time.monotonic() + timeout_s
        while self.is_alive:
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    def usage(self) -> Usage:
        return Usage() if self.identity is None else self.identity.usage()

    def last_lines(self, count: int = 15) -> str:
        """The end of the log, for an error message."""
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])
        except OSError:
            return "(no log)"


def _stands_still(pid: int) -> bool:
    tasks = Path(f"/proc/{pid}/task").glob("*/stat")
    try:
        return all(task.read_text().rpartition(")")[2].split()[0] in "Tt" for task in tasks)
    except OSError:
        return False  # a thread has just ended


def _threads(pid: int) -> int:
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return 0


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on: 0 state, 11 user and 12 system ticks, 19 start time."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _inherited() -> dict[str, str]:
    """The environment without what would configure a Berth that is run: it is told all of that by its test."""
    kept = ("BERTH_DEVCLUSTER", "BERTH_DATA")
    return {k: v for k, v in os.environ.items() if not k.startswith("BERTH_") or k.startswith(kept)}
