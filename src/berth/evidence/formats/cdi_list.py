"""`nvidia-ctk cdi list` and the devices that `docker info` has discovered."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.container_facts import CdiListed
from berth.evidence.piece import Piece

_LOOKS = re.compile(rb"Found \d+ CDI devices|^\s*Discovered Devices:", re.MULTILINE)
_FOUND = re.compile(r"^.*Found \d+ CDI devices.*$|^\s*Discovered Devices:.*$", re.MULTILINE)
_NAME = re.compile(r"^\s*(?:cdi:\s*)?([a-z0-9][\w.-]*\.[\w.-]+/[\w.-]+=[\w:.-]+)\s*$", re.MULTILINE)


def looks_like(head: bytes) -> bool:
    return (b" CDI devices" in head or b"Discovered Devices" in head) and _LOOKS.search(head) is not None


def read(piece: Piece) -> Iterator[Fact]:
    text = piece.text
    if not (line := _FOUND.search(text)):
        return
    names = tuple(_NAME.findall(text, line.end()))
    yield CdiListed(
        names=names,
        origin=Origin(
            source=piece.source,
            kind=piece.kind,
            text="\n".join((line[0].strip(), *names))[:LONGEST_TEXT],
            line=text.count("\n", 0, line.start()) + 1,
            node=piece.node,
            pod=piece.pod,
        ),
    )


FORMAT = Format(name="list of CDI devices", kinds=("cdi",), looks_like=looks_like, read=read)
