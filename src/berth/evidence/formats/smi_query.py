"""`nvidia-smi -q`, whole, of some sections (`-d`), or a few of its lines that somebody kept. Drivers 418 to 595."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from berth.evidence.fact import NO_PCI, Fact, Origin, Pci, pci_of
from berth.evidence.formats import Format
from berth.evidence.formats.line_prefix import bare_lines, without_prefix
from berth.evidence.formats.smi_cells import Cell, Cells, one_spelling, versions, whole
from berth.evidence.formats.smi_facts import DeviceSeen, DriverSeen, Process
from berth.evidence.formats.smi_fields import device, mig_device, process
from berth.evidence.piece import Piece

_GPU = re.compile(r"^\s*GPU\s+(?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*$")
_LINE = re.compile(r"^(?P<indent>[ \t]*)(?P<key>[A-Za-z][^:\n]*?)\s*(?::\s(?P<value>.*)|:)?$")
_HEADER = {"driver_version", "kmd_version", "cuda_version", "cuda_umd_version", "attached_gpus", "timestamp"}
# Sections by which a fragment without a header is known; a line of its own each.
_SECTIONS = re.compile(
    rb"^[ \t]*(?:Remapped Rows|Retired Pages|ECC Errors|ECC Mode|FB Memory Usage|Clocks (?:Event|Throttle) Reasons|"
    rb"GPU Link Info|PCIe Generation|MIG Mode|Fabric|(?:vGPU Software|GRID) Licensed Product|Temperature|"
    rb"(?:GPU )?Power Readings|MIG Device)[ \t]*\r?\n[ \t]+\S[^\n:]*:",
    re.MULTILINE,
)
_PAIR = re.compile(
    rb"^[ \t]*(?:GPU UUID|Product Name|MIG Mode|Persistence Mode|Pending Page Blacklist|Remapping Failure Occurred|"
    rb"GPU Current Temp|HW (?:Thermal )?Slowdown)[ \t]+:[ \t]",
    re.MULTILINE,
)


def looks_like(head: bytes) -> bool:
    head = without_prefix(head)
    return b"NVSMI LOG" in head or bool(_SECTIONS.search(head)) or bool(_PAIR.search(head))


def read(piece: Piece) -> Iterator[Fact]:
    """Devices in the order of the printout, then the driver."""
    header: dict[str, str] = {}
    header_line = (0, "")
    devices: list[_Reading] = []
    reading = _Reading(NO_PCI, 0, "")
    for number, line in enumerate(bare_lines(piece), 1):
        if "NVSMI LOG" in line:
            reading = _Reading(NO_PCI, 0, "")
        elif gpu := _GPU.match(line):
            reading = _Reading(pci_of(gpu["pci"]), number, line.strip())
            devices.append(reading)
        elif (found := _LINE.match(line)) and len(line) < 400:
            key = one_spelling(found["key"])
            if key in _HEADER and found["value"] and reading.pci == NO_PCI:
                header[key] = found["value"].strip()
                if key in ("driver_version", "kmd_version"):
                    header_line = (number, line.strip())
                continue
            if not devices and reading.take(found, number, line):
                devices.append(reading)
            else:
                reading.take(found, number, line)
    attached = whole(header.get("attached_gpus", ""))
    printed = [one for one in devices if one.cells or one.mig]
    for place, one in enumerate(printed):
        index = place if attached == len(devices) and one.pci != NO_PCI else None
        yield one.device(piece, index, header)
    driver, cuda = versions(header)
    if driver or attached is not None:
        yield DriverSeen(
            origin=_origin(piece, *header_line),
            version=driver,
            cuda=cuda,
            attached=attached,
        )


class _Reading:
    """One device while its lines come: sections are open as long as lines are further to the right."""

    def __init__(self, pci: Pci, line: int, text: str) -> None:
        self.pci, self.line, self.text = pci, line, text
        self.cells: Cells = {}
        self.mig: list[Cells] = []
        self.running: list[Cells] = []
        self.says_processes = False
        self._open: list[tuple[int, str]] = []  # indent and name of the sections around

    def take(self, found: re.Match[str], number: int, line: str) -> bool:
        """Was that a value?"""
        indent = len(found["indent"].expandtabs(8))
        key, value = one_spelling(found["key"]), found["value"]
        while self._open and self._open[-1][0] >= indent:
            self._open.pop()
        around = [name for _, name in self._open]
        self._open.append((indent, key))
        if value is None:
            if key == "mig_device":
                self.mig.append({})
            self.says_processes |= key == "processes"
            return False
        if key == "processes":
            self.says_processes = True
        cell = Cell(value.strip(), number, line.strip())
        if not self.text:
            self.line, self.text = number, line.strip()
        if around[:1] == ["mig_device"] and self.mig:
            self.mig[-1]["/".join((*around[1:], key))] = cell
        elif around[:1] == ["processes"] or (key == "process_id" and not around):
            self.says_processes = True
            is_next = key == "gpu_instance_id" or (key == "process_id" and "process_id" in (self.running or [{}])[-1])
            if is_next or not self.running:
                self.running.append({})
            self.running[-1][key] = cell
        else:
            self.cells.setdefault("/".join((*around, key)), cell)
        return True

    def device(self, piece: Piece, index: int | None, header: dict[str, str]) -> DeviceSeen:
        processes: Iterable[Process] | None = None
        driver, cuda = versions(header)
        if self.says_processes:
            processes = [one for cells in self.running if (one := process(cells))]
        return device(
            "query",
            self.cells,
            _origin(piece, self.line, self.text),
            pci=self.pci,
            index=index,
            driver=driver,
            cuda=cuda,
            mig=[mig_device(cells) for cells in self.mig],
            processes=processes,
        )


def _origin(piece: Piece, line: int, text: str) -> Origin:
    return Origin(source=piece.source, kind=piece.kind, text=text, line=line, node=piece.node, pod=piece.pod)


FORMAT = Format("nvidia-smi -q", ("nvidia-smi",), looks_like, read)
