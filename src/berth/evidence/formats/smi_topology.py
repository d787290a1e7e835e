"""`nvidia-smi topo -m`: a matrix of how devices reach one another, with colours, tabs and a legend."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.line_prefix import bare_lines, without_prefix
from berth.evidence.formats.smi_facts import TopologySeen
from berth.evidence.piece import Piece

_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\[\d*m")  # also without their first byte, as pastes have them
_NAME = re.compile(r"^(?:GPU\d+|NIC\d+|mlx\d_\w+|bnxt_\w+|irdma\w+|efa_\w+|rdma\w+|ib\d+)$")
_LINK = re.compile(r"^(?:X|NV\d+|PIX|PXB|PHB|NODE|SYS|SOC|PSB|N/A)$")
_NIC = re.compile(r"^\s*(?P<nic>NIC\d+):\s*(?P<device>\S+)\s*$")
_HEADER = re.compile(rb"GPU0\b[^\n]*(?:CPU Affinity|NUMA|GPU1)|^[ \t]+(?:\x1b\[\d+m)?GPU0[ \t]", re.MULTILINE)


def looks_like(head: bytes) -> bool:
    return bool(_HEADER.search(without_prefix(head))) and (b"X" in head)


def read(piece: Piece) -> Iterator[Fact]:
    names: list[str] = []
    rest: list[str] = []  # columns after the matrix
    links: dict[tuple[str, str], str] = {}
    columns: dict[str, dict[str, str]] = {"CPU Affinity": {}, "NUMA Affinity": {}}
    nics: dict[str, str] = {}
    begin = (0, "")
    for number, line in enumerate(bare_lines(piece), 1):
        plain = _ESCAPES.sub("", line)
        if nic := _NIC.match(plain):
            nics[nic["nic"]] = nic["device"]
            continue
        cells = [cell.strip() for cell in re.split(r"\t+|\s{2,}", plain.strip())]
        header = [cell for cell in cells if _NAME.match(cell)]
        if header and header == cells[: len(header)] and "GPU0" in header and not _links(cells[1:]):
            if names:
                break  # a second matrix
            names, rest, begin = header, cells[len(header) :], (number, plain.strip())
            continue
        # Cells that are one wide hold a single space around them: "GPU0  X   NV18".
        tokens = plain.split()
        if names and tokens and tokens[0] in names and _links(tokens[1 : len(names) + 1]):
            links |= {(tokens[0], other): word for other, word in zip(names, tokens[1:], strict=False)}
            _affinity(columns, rest, tokens[0], tokens[len(names) + 1 :])
    if links:
        origin = Origin(
            source=piece.source, kind=piece.kind, text=begin[1], line=begin[0], node=piece.node, pod=piece.pod
        )
        yield TopologySeen(
            origin=origin,
            names=tuple(names),
            links=links,
            cpus=columns["CPU Affinity"],
            numa=columns["NUMA Affinity"],
            nics=nics,
        )


def _links(cells: list[str]) -> bool:
    return bool(cells) and all(_LINK.match(cell) for cell in cells[:1])


def _affinity(columns: dict[str, dict[str, str]], rest: list[str], name: str, values: list[str]) -> None:
    for column, value in zip(rest, values, strict=False):
        if column in columns and value != "N/A":
            columns[column][name] = value


FORMAT = Format("nvidia-smi topo -m", ("nvidia-smi",), looks_like, read)
