"""Ends a cluster's processes when the process that owns the cluster is gone, however it went.

Run as a program with the cluster's state folder; standard input is a pipe that only the owner holds open. Its end
says that the owner is gone: the processes that state.json names are killed. `keep` on the pipe ends the watchdog alone.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import cgroups  # beside this file: it is run as a program


def main(state: Path, remove: bool) -> None:
    if sys.stdin.buffer.read().strip() == b"keep":
        return
    try:
        known = json.loads((state / "state.json").read_text())
        processes, groups = known["processes"], known["cgroups"]
    except (OSError, ValueError, KeyError):
        return
    for pid, started_ticks in processes.values():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if int(fields[19]) == started_ticks:
                os.killpg(pid, signal.SIGKILL)
        except OSError:
            continue
    time.sleep(0.2)  # what was killed lets go of its files and groups
    for group in groups:
        cgroups.remove(group)
    if remove:
        shutil.rmtree(state, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), remove=sys.argv[2:] == ["remove"])
