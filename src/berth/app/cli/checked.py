"""Checks that are run: the commands of a record's entries that only look, where they can be run from here."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from berth.diagnosis.checks import Check, Shown, checks_of, shows
from berth.node.programs import output_of
from berth.node.seen import NotSeen

if TYPE_CHECKING:
    from berth.app.cli.options import Where
    from berth.diagnosis.work_record import Entry, WorkRecord
    from berth.evidence.piece import Piece

LIMIT_S = 20.0
MOST_NAMES = 200  # that a * stands for
LONGEST_TOLD = 2000  # characters of an output in a record
# What is read as evidence of a kind; the rest tells by its content what it is.
_KINDS = {
    "nvidia-smi": "nvidia-smi", "lspci": "lspci", "dmesg": "dmesg", "lsmod": "lsmod", "containerd": "containerd-config",
    "nvidia-ctk": "cdi", "dcgmi": "dcgm", "ls": "host", "systemctl": "host", "crictl": "host",
}  # fmt: skip


class Checked(Struct, frozen=True):
    """One check that was run, or could not be."""

    check: Check
    output: str = ""  # after its filters
    problem: str = ""  # why there is no output
    raw: bytes = b""  # before its filters
    node: str = ""

    @property
    def shown(self) -> Shown | None:
        """None where it gave no answer."""
        return None if self.problem else shows(self.check, self.output)

    @property
    def piece(self) -> Piece | None:
        """Its output as evidence for the rules. What only a cluster's table shows is none: it is read by the API."""
        from berth.evidence.piece import Piece

        if self.problem or self.check.at == "cluster":
            return None
        words = " ".join(self.check.command)
        return Piece(self.raw, words, _KINDS.get(self.check.command[0], "host"), self.node)

    def record(self) -> dict[str, Any]:
        return {
            "command": self.check.words,
            "expected": self.check.expected,
            "shown": self.shown,
            "output": self.output[:LONGEST_TOLD],
            "problem": self.problem or None,
        }


def checked(kept: WorkRecord, where: Where, *, is_asked: bool) -> dict[Entry, tuple[Checked, ...]]:
    """The checks of each entry. Those of a node are run where this is that node; where it is not known which it is,
    only if somebody asks for it."""
    here = os.environ.get("NODE_NAME") or platform.node()
    done: dict[tuple[Check, str], Checked] = {}
    return {entry: tuple(_of_entry(entry, where, here, done, is_asked)) for entry in kept.entries}


def _of_entry(
    entry: Entry, where: Where, here: str, done: dict[tuple[Check, str], Checked], is_asked: bool
) -> Iterator[Checked]:
    for check in checks_of(entry.verify):
        if check.at == "node" and entry.node != here and (entry.node or not is_asked):
            there = (
                f"to be run on {entry.node}" if entry.node else "of which node it is nobody says (--run runs it here)"
            )
            yield Checked(check, problem=f"{there}; this is {here}")
            continue
        if (check, entry.node) not in done:
            done[check, entry.node] = _run(check, entry.node, where)
        yield done[check, entry.node]


def _run(check: Check, node: str, where: Where) -> Checked:
    command = check.command
    if command[0] == "kubectl":
        given = (("--kubeconfig", where.kubeconfig), ("--context", where.context), ("--as", where.acting_as))
        command = (*command, *(f"{option}={value}" for option, value in given if value is not None))
    accepts = (0, 3) if command[0] == "systemctl" else (0,)  # 3: it is not active
    said = output_of(_unfolded(command), environment=os.environ, limit_s=LIMIT_S, accepts=accepts)
    if isinstance(said, NotSeen):
        return Checked(check, problem=said.why, node=node)
    left = said
    for part in check.filters:
        passed = output_of(part, given=left, environment=os.environ, limit_s=LIMIT_S, accepts=(0, 1))
        if isinstance(passed, NotSeen):
            return Checked(check, problem=f"{part[0]}: {passed.why}", node=node)
        left = passed
    return Checked(check, left.decode("utf-8", "replace").rstrip("\n"), raw=said, node=node)


def _unfolded(command: tuple[str, ...]) -> tuple[str, ...]:
    """Names with `*`, which no shell unfolds here; one that nothing matches stays, so that the program says so."""
    return tuple(name for word in command for name in (_matching(word) or (word,)))


def _matching(word: str) -> list[str]:
    found = Path("/").glob(word[1:]) if word.startswith("/") and "*" in word else ()
    return sorted(map(str, islice(found, MOST_NAMES)))
