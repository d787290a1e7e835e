"""What a program of the machine prints. One that waits for a stuck driver cannot be killed: it is left behind, and
whoever asked goes on.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

from berth.node.seen import NotSeen

LIMIT_S = 30.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def output_of(
    command: tuple[str, ...],
    *,
    root: Path = Path("/"),
    given: bytes | None = None,
    environment: Mapping[str, str] | None = None,
    limit_s: float = LIMIT_S,
    accepts: Collection[int] = (),
) -> bytes | NotSeen:
    """Both streams, since a driver's refusal stands on stderr. `root` is where the program's own machine is mounted;
    `given` is what it reads from its standard input. `accepts` are exit codes of an answer; (): any is one."""
    words = " ".join(command)

    def enter() -> None:
        os.chroot(root)
        os.chdir("/")

    into: Callable[[], None] | None = enter if str(root) != "/" else None
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL if given is None else subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, preexec_fn=into, env=dict(environment or {"PATH": PATH}),
        )  # fmt: skip
    except FileNotFoundError:
        return NotSeen(words, "there is no such program on the machine")
    except (OSError, subprocess.SubprocessError) as error:
        return NotSeen(words, str(error))
    try:
        said = process.communicate(given, timeout=limit_s)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(1.0)  # and no longer: one that waits for a stuck driver does not end
        return NotSeen(words, f"no answer within {limit_s:g} s")
    if accepts and process.returncode not in accepts:
        last = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return NotSeen(words, f"it ended with {process.returncode}{f': {last}' if last else ''}")
    return said
