"""The table that `nvidia-smi` prints without options: devices, MIG devices, processes. Drivers 390 to 595."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import Fact, Origin, pci_of
from berth.evidence.formats import Format
from berth.evidence.formats.smi_cells import Cell, Cells, size_bytes, whole
from berth.evidence.formats.smi_facts import DeviceSeen, DriverSeen, MigDevice, Process
from berth.evidence.formats.smi_fields import device
from berth.evidence.piece import Piece

_HEAD = re.compile(
    r"\bNVIDIA-SMI\s+(?P<tool>[\d.]+)\s.*?(?:Driver|KMD) Version:\s*(?P<driver>[\d.]+|N/A)"
    r"(?:.*?CUDA (?:UMD )?Version:\s*(?P<cuda>[\d.]+))?"
)
_FIRST = re.compile(
    r"^\s*\|\s*(?P<index>\d+|ERR!)\s+(?P<name>\S.*?)\s+(?P<persistence>On|Off|N/A|ERR!|WDDM|TCC|MCDM)\s*\|"
    r"\s*(?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s+(?P<display>\S+)\s*\|\s*(?P<ecc>.*?)\s*\|"
)
_SECOND = re.compile(
    r"^\s*\|\s*(?P<fan>\d+%|N/A|ERR!)\s+(?P<temperature>\d+C|N/A|ERR!)\s+(?P<state>P\d+|N/A|ERR!)\s+"
    r"(?P<draw>\d+W|N/A|ERR!|Unknown(?: Error)?)\s*/\s*(?P<limit>\d+W|N/A|ERR!)\s*\|\s*(?P<memory>.*?)\s*\|"
    r"\s*(?P<busy>\d+%|N/A|ERR!|Unknown Error)\s*(?P<mode>.*?)\s*\|"
)
_THIRD = re.compile(r"^\s*\|\s*\|\s*\|\s*(?P<mig>Enabled\*?|Disabled\*?|N/A)\s*\|")
_MEMORY = re.compile(r"(?P<used>\S+?)\s*/\s*(?P<total>\S+)")
_MIG = re.compile(
    r"^\s*\|\s*(?P<gpu>\d+)\s+(?P<gi>\d+)\s+(?P<ci>\d+)\s+(?P<index>\d+)\s*\|\s*(?P<used>\d+MiB)\s*/\s*(?P<total>\d+MiB)\s*\|"
    r"\s*(?P<sm>\d+)\s+(?P<ecc>\S+)\s*\|"
)
_PROCESS = re.compile(
    r"^\s*\|\s*(?P<gpu>\d+)\s+(?:(?P<gi>\d+|N/A)\s+(?P<ci>\d+|N/A)\s+)?(?P<pid>\d+)\s+(?P<type>[CGM+]{1,3})\s+"
    r"(?:(?P<name>(?!(?:\d+\s*MiB|N/A|ERR!)\s*\|)[^\s|].*?)\s+)?(?P<memory>\d+\s*MiB|N/A|ERR!)?\s*\|\s*$"
)
_COMPUTE = {"E. Process": "Exclusive_Process", "E. Thread": "Exclusive_Thread"}


# A device's row that somebody cut out.
_ROW = re.compile(
    rb"^[^|\n]{0,80}\|\s*\d+ [^|\n]+(?:On|Off) *\| *[0-9A-F]{4,8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-9A-F] ", re.MULTILINE
)


def looks_like(head: bytes) -> bool:
    marks = (b"| NVIDIA-SMI", b"Bus-Id", b"| Processes:", b"running processes found")
    return any(mark in head for mark in marks) or bool(_ROW.search(head))


def read(piece: Piece) -> Iterator[Fact]:
    """Devices in the order of the printout, then the driver; a table that comes again counts again."""
    tables = [_Table(piece)]
    for number, line in enumerate(piece.text.splitlines(), 1):
        if head := _HEAD.search(line):
            if tables[-1].head is not None:
                tables.append(_Table(piece))
            tables[-1].head = (head, number, line)
        elif "|" in line or "running processes found" in line:
            tables[-1].take(line[max(line.find("|"), 0) :], number)  # without the time that a log puts before it
    for table in tables:
        yield from table.facts()


class _Table:
    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self.head: tuple[re.Match[str], int, str] | None = None
        self._rows: list[tuple[re.Match[str], Cells, int, str]] = []
        self._mig: dict[int, list[MigDevice]] = {}
        self._processes: dict[int, list[Process]] = {}
        self._says_processes = False
        self._cut: tuple[Cells, int, str] | None = None  # the second line of a row whose first is not there

    def take(self, line: str, number: int) -> None:
        if "Processes:" in line or "running processes found" in line:
            self._says_processes = True
        elif self._says_processes:
            if found := _PROCESS.match(line):
                self._processes.setdefault(int(found["gpu"]), []).append(_process(found))
        elif first := _FIRST.match(line):
            cells = _cells(
                number, line, {"product_name": first["name"], "persistence_mode": _long(first["persistence"])}
            )
            cells["ecc/errors/uncorrected/volatile/total"] = Cell(first["ecc"], number, line.strip())
            self._rows.append((first, cells, number, line))
        elif mig := _MIG.match(line):
            self._mig.setdefault(int(mig["gpu"]), []).append(_mig(mig))
        elif second := _SECOND.match(line):
            if self._rows:
                self._rows[-1][1].update(_second(second, number, line))
            else:
                self._cut = (_second(second, number, line), number, line)
        elif self._rows and (third := _THIRD.match(line)):
            mode = third["mig"].rstrip("*")  # the star: a change waits for a reset
            said = {"mig_mode/current": mode}
            if third["mig"].endswith("*"):
                said["mig_mode/pending"] = "Disabled" if mode == "Enabled" else "Enabled"
            self._rows[-1][1].update(_cells(number, line, said))

    def facts(self) -> Iterator[Fact]:
        driver = self.head[0]["driver"] if self.head else ""
        cuda = (self.head[0]["cuda"] or "") if self.head else ""
        for first, cells, number, line in self._rows:
            index = whole(first["index"])
            place = -1 if index is None else index
            yield device(
                "table",
                cells,
                self._origin(number, line),
                pci=pci_of(first["pci"]),
                index=index,
                driver=driver,
                cuda=cuda,
                mig=self._mig.get(place, ()),
                processes=self._processes.get(place, ()) if self._says_processes else None,
            )
        if not self._rows and self._cut:
            cells, number, line = self._cut
            processes = self._processes.get(0, ()) if self._says_processes else None
            yield device("table", cells, self._origin(number, line), processes=processes)
        elif not self._rows and self._says_processes:  # a few lines of it: whose device it was, nobody says
            for index, processes in self._processes.items() or ((None, []),):
                yield DeviceSeen(form="table", origin=self._origin(0, ""), index=index, processes=tuple(processes))
        if self.head:
            found, number, line = self.head
            yield DriverSeen(origin=self._origin(number, line), version=driver, cuda=cuda, tool=found["tool"])

    def _origin(self, line: int, text: str) -> Origin:
        of = self._piece
        return Origin(source=of.source, kind=of.kind, text=text.strip(), line=line, node=of.node, pod=of.pod)


def _second(found: re.Match[str], number: int, line: str) -> Cells:
    said = {
        "temperature/gpu": found["temperature"], "pstate": found["state"], "power/draw": found["draw"],
        "power/limit": found["limit"], "utilization/gpu": found["busy"],
        "compute_mode": _COMPUTE.get(found["mode"], found["mode"]),
    }  # fmt: skip
    if memory := _MEMORY.search(found["memory"]):
        said |= {"memory/used": memory["used"], "memory/total": memory["total"]}
    elif found["memory"]:
        said["memory/used"] = found["memory"]
    return _cells(number, line, said)


def _cells(number: int, line: str, said: dict[str, str]) -> Cells:
    return {name: Cell(value, number, line.strip()) for name, value in said.items()}


def _long(persistence: str) -> str:
    return {"On": "Enabled", "Off": "Disabled"}.get(persistence, persistence)


def _mig(found: re.Match[str]) -> MigDevice:
    return MigDevice(
        index=int(found["index"]),
        gi=int(found["gi"]),
        ci=int(found["ci"]),
        memory_used_bytes=size_bytes(found["used"]),
        memory_total_bytes=size_bytes(found["total"]),
        multiprocessors=int(found["sm"]),
        sram_uncorrected=whole(found["ecc"]),
    )


def _process(found: re.Match[str]) -> Process:
    memory = found["memory"] or ""
    return Process(
        pid=int(found["pid"]),
        name=(found["name"] or "").strip(),
        type=found["type"],
        memory_bytes=size_bytes(memory) if memory[:1].isdigit() else None,
        gi=whole(found["gi"] or ""),
        ci=whole(found["ci"] or ""),
    )


FORMAT = Format("nvidia-smi table", ("nvidia-smi",), looks_like, read)
