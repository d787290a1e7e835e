"""`nvidia-smi -q -x`: nvsmi_device dtd v10 to v13. What was read before a truncation or an error counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from xml.parsers import expat

from berth.evidence.fact import Fact, Origin, pci_of
from berth.evidence.formats import Format
from berth.evidence.formats.smi_cells import Cell, Cells, one_spelling, versions, whole
from berth.evidence.formats.smi_facts import DriverSeen
from berth.evidence.formats.smi_fields import device, mig_device, process
from berth.evidence.piece import Piece

_BEGIN = re.compile(rb"<nvidia_smi_log\b")
_END = b"</nvidia_smi_log>"
_RECORDS = {"mig_devices/mig_device": "mig", "processes/process_info": "process"}
_BULK = {"supported_clocks", "accounted_processes"}  # hundreds of lines that nobody asks for
DEEPEST = 12


def looks_like(head: bytes) -> bool:
    return b"<nvidia_smi_log" in head


def read(piece: Piece) -> Iterator[Fact]:
    """Devices in the order of the document, then the driver; for each document in the piece."""
    for begin in _BEGIN.finditer(piece.raw):
        end = piece.raw.find(_END, begin.start())
        document = piece.raw[begin.start() : end + len(_END) if end >= 0 else None]
        yield from _Reading(piece, piece.raw.count(b"\n", 0, begin.start())).facts(document)


class _Reading:
    def __init__(self, piece: Piece, line: int) -> None:
        self._piece, self._line = piece, line
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._path: list[str] = []
        self._value: list[str] = []
        self._is_leaf = False
        self._header: dict[str, Cell] = {}
        self._gpus: list[_Gpu] = []

    def facts(self, document: bytes) -> Iterator[Fact]:
        with suppress(expat.ExpatError, ValueError):  # truncated or mended by hand: what came before is kept
            self._parser.Parse(document, True)
        driver, cuda = versions({name: cell.value for name, cell in self._header.items()})
        attached = whole(self._words("attached_gpus"))
        for place, gpu in enumerate(self._gpus):
            yield device(
                "xml",
                gpu.cells,
                self._origin(gpu.line, f'<gpu id="{gpu.id}">'),
                pci=pci_of(gpu.id),
                index=place if attached == len(self._gpus) else None,
                driver=driver,
                cuda=cuda,
                mig=[mig_device(cells) for cells in gpu.records["mig"]],
                processes=[one for cells in gpu.records["process"] if (one := process(cells))]
                if gpu.says_processes
                else None,
            )
        if driver or attached is not None:
            said = self._header.get("kmd_version") or self._header.get("driver_version")
            yield DriverSeen(
                origin=self._origin(said.line if said else 0, said.text if said else ""),
                version=driver,
                cuda=cuda,
                attached=attached,
            )

    def _words(self, name: str) -> str:
        return self._header[name].value if name in self._header else ""

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._path.append(one_spelling(tag))
        self._value, self._is_leaf = [], True
        if self._path == ["nvidia_smi_log", "gpu"]:
            self._gpus.append(_Gpu(attributes.get("id", ""), self._here()))
        elif self._gpus and self._path[1:2] == ["gpu"]:
            self._gpus[-1].begin("/".join(self._path[2:]))

    def _characters(self, words: str) -> None:
        self._value.append(words)

    def _end(self, tag: str) -> None:
        if self._is_leaf and len(self._path) < DEEPEST:
            value = "".join(self._value).strip()
            cell = Cell(value, self._here(), f"<{tag}>{value}</{tag}>")
            if self._path[1:2] == ["gpu"] and self._gpus:
                self._gpus[-1].take("/".join(self._path[2:]), cell)
            elif len(self._path) == 2:
                self._header[self._path[1]] = cell
        self._path.pop()
        self._is_leaf = False

    def _here(self) -> int:
        return self._line + self._parser.CurrentLineNumber

    def _origin(self, line: int, text: str) -> Origin:
        piece = self._piece
        return Origin(source=piece.source, kind=piece.kind, text=text, line=line, node=piece.node, pod=piece.pod)


class _Gpu:
    def __init__(self, id: str, line: int) -> None:
        self.id, self.line = id, line
        self.cells: Cells = {}
        self.records: dict[str, list[Cells]] = {"mig": [], "process": []}
        self.says_processes = False

    def begin(self, path: str) -> None:
        self.says_processes |= path == "processes"
        if kind := _RECORDS.get(path):
            self.records[kind].append({})

    def take(self, path: str, cell: Cell) -> None:
        if path.partition("/")[0] in _BULK:
            return
        for prefix, kind in _RECORDS.items():
            if path.startswith(prefix + "/") and self.records[kind]:
                self.records[kind][-1][path[len(prefix) + 1 :]] = cell
                return
        self.cells.setdefault(path, cell)


FORMAT = Format("nvidia-smi -q -x", ("nvidia-smi",), looks_like, read)
