"""The files that the validator leaves in /run/nvidia/validations, as `ls` prints them: short, long, one a line.

Versions known: GPU Operator 1.9 to 26.7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.piece import Piece

_NAME = r"\.?[\w-]+-ready|workload-type|\.nvidia-[\w-]+"
_ONLY_NAMES = re.compile(rf"^\s*(?:{_NAME})(?:\s+(?:{_NAME}))*\s*$")
_LONG = re.compile(rf"^[-l][rwxsStT-]{{9}}[.+@]?\s.*\s(?P<name>{_NAME})\s*$")
_ASKED = re.compile(r"\bls\b[^\n]*/run/nvidia/validations")
_HEAD = re.compile(
    rb"(?m)^\s*(?:[-l][rwxsStT-]{9}.*\s)?(?:driver|toolkit|cuda|plugin|mofed|nvidia-fs|gdrcopy|vfio-pci)-ready\b"
    rb"[\w \t.-]*$"
    rb"|\bls\b[^\n]*/run/nvidia/validations"
)


class ValidationFiles(Fact, frozen=True, kw_only=True):
    """Which parts the validator has passed on a node."""

    names: tuple[str, ...]


def read(piece: Piece) -> Iterator[Fact]:
    names: list[str] = []
    asked = first = 0
    for number, line in enumerate(piece.text.splitlines(), 1):
        if _ASKED.search(line):
            asked = asked or number
        elif found := _LONG.match(line):
            names.append(found["name"])
            first = first or number
        elif _ONLY_NAMES.match(line):
            names.extend(line.split())
            first = first or number
    if names or asked:
        words = " ".join(names) if names else "/run/nvidia/validations is empty"
        yield ValidationFiles(
            origin=Origin(
                piece.source, piece.kind or "validations", words[:LONGEST_TEXT], line=first or asked, node=piece.node
            ),
            names=tuple(names),
        )  # fmt: skip


def looks_like(head: bytes) -> object:
    return (b"-ready" in head or b"/run/nvidia/validations" in head) and _HEAD.search(head)


VALIDATIONS = Format("files of the validator", ("validations",), looks_like, read)
