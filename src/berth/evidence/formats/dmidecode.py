"""dmidecode 3.x: who made the machine, and of which firmware it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.machine_facts import MachineSeen
from berth.evidence.piece import Piece

_HEAD = re.compile(rb"^# dmidecode \d|(?m:^(?:System|BIOS) Information\s*$)")
_FIELD = re.compile(r"^\s+(?P<name>Manufacturer|Product Name|Vendor|Version|Release Date): *(?P<value>.*?)\s*$")


def looks_like(head: bytes) -> object:
    return _HEAD.search(head)


def read(piece: Piece) -> Iterator[Fact]:
    """The sections System Information and BIOS Information."""
    section, found, first = "", dict[str, str](), 0
    for number, line in enumerate(piece.text.splitlines(), 1):
        if line[:1].strip():
            section = line.strip()
        elif section in ("System Information", "BIOS Information") and (field := _FIELD.match(line)):
            found.setdefault(f"{section[0]} {field['name']}", field["value"])
            first = first or number
    if found:
        yield MachineSeen(
            origin=Origin(source=piece.source, kind=piece.kind, text="; ".join(found.values())[:300], line=first,
                          node=piece.node, pod=piece.pod),
            maker=found.get("S Manufacturer", ""),
            product=found.get("S Product Name", ""),
            bios=found.get("B Version", ""),
            bios_date=found.get("B Release Date", ""),
        )  # fmt: skip


FORMAT = Format("dmidecode", ("dmidecode",), looks_like, read)
