"""`nvidia-smi --query-gpu=… --format=csv` with its header, and `--query-compute-apps`.

Units stand in the header, in the cells, or in both."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.line_prefix import bare_lines, without_prefix
from berth.evidence.formats.smi_cells import Cell, Cells, one_spelling, size_bytes, whole
from berth.evidence.formats.smi_facts import DeviceSeen, DriverSeen, Process
from berth.evidence.formats.smi_fields import device
from berth.evidence.piece import Piece

# Columns that no other CSV has; two columns make a header.
_COLUMN = re.compile(
    rb"^(?=[^\n]*,)[^\n]*\b(?:pci\.bus_id|gpu_bus_id|memory\.(?:total|used|free) ?\[MiB\]|driver_version|"
    rb"utilization\.gpu|temperature\.gpu|ecc\.errors\.|remapped_rows\.|retired_pages\.|mig\.mode\.|pcie\.link\.|"
    rb"clocks_(?:event|throttle)_reasons\.|fabric\.st|gpu_recovery_action|gpu_uuid|used_gpu_memory|"
    rb"used_memory ?\[MiB\]|power\.draw|persistence_mode|compute_cap)[^\n]*$",
    re.MULTILINE,
)
_NAME = re.compile(r"^[A-Za-z_][\w.]*(?: \[[^\]]*\])?$")
_UNIT = re.compile(r" \[([^\]]*)\]$")
_APPS = {"process_name", "used_gpu_memory", "used_memory", "pid"}


def looks_like(head: bytes) -> bool:
    return bool(_COLUMN.search(without_prefix(head)))


def read(piece: Piece) -> Iterator[Fact]:
    """Rows until one that has another number of cells."""
    header: list[str] = []
    apps: list[tuple[dict[str, Cell], int, str]] = []
    drivers: dict[str, DriverSeen] = {}
    for number, line in enumerate(bare_lines(piece), 1):
        cells = _split(line)
        if len(cells) > 1 and all(_NAME.match(cell) for cell in cells) and _COLUMN.search(line.encode()):
            header = cells
            continue
        if not header or len(cells) != len(header):
            header = []
            continue
        row = _row(header, cells, number)
        origin = _origin(piece, number, line)
        if "pid" in row and _APPS & row.keys() - {"pid"}:
            apps.append((row, number, line))
            continue
        found = device("csv", row, origin)
        yield found
        if found.driver and found.driver not in drivers:
            drivers[found.driver] = DriverSeen(
                origin=origin, version=found.driver, attached=whole(row["count"].value) if "count" in row else None
            )
    yield from drivers.values()
    yield from _with_processes(piece, apps)


def _with_processes(piece: Piece, apps: list[tuple[dict[str, Cell], int, str]]) -> Iterator[DeviceSeen]:
    by_device: dict[tuple[str, str], list[tuple[dict[str, Cell], int, str]]] = {}
    for row, number, line in apps:
        key = tuple(row[name].value if name in row else "" for name in ("gpu_uuid", "gpu_bus_id"))
        by_device.setdefault((key[0], key[1]), []).append((row, number, line))
    for rows in by_device.values():
        processes = []
        for row, _, _ in rows:
            pid = whole(row["pid"].value)
            used = row.get("used_gpu_memory") or row.get("used_memory")
            if pid is not None:
                processes.append(
                    Process(
                        pid=pid,
                        name=row["process_name"].value if "process_name" in row else "",
                        memory_bytes=size_bytes(used.value) if used else None,
                    )
                )
        first, number, line = rows[0]
        kept = {name: cell for name, cell in first.items() if name not in _APPS}
        yield device("csv", kept, _origin(piece, number, line), processes=processes)


def _split(line: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True), [])]
    except csv.Error:
        return []


def _row(header: list[str], cells: list[str], line: int) -> Cells:
    row: Cells = {}
    for column, value in zip(header, cells, strict=True):
        name = "/".join(one_spelling(part) for part in _UNIT.sub("", column).split("."))
        row.setdefault(name, Cell(value, line, f"{column}: {value}"))
    return row


def _origin(piece: Piece, line: int, text: str) -> Origin:
    text = text.strip()[:LONGEST_TEXT]
    return Origin(source=piece.source, kind=piece.kind, text=text, line=line, node=piece.node, pod=piece.pod)


FORMAT = Format("nvidia-smi csv", ("nvidia-smi",), looks_like, read)
