"""What the kernel driver shows of itself: /proc/driver/nvidia, its modules, and the device files.

Each text is evidence as it is found (formats/proc_driver.py, formats/lsmod.py); device files are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from berth.evidence.fact import Origin
from berth.evidence.formats.boundary_facts import HostCount
from berth.evidence.piece import Piece
from berth.node.places import Places
from berth.node.seen import NotSeen, Sight, because

_DEVICE_FILE = re.compile(r"nvidia(\d+)")


def look(places: Places, node: str = "") -> Iterator[Sight]:
    """Version and GPUs of the driver, its modules, and how many device files there are."""
    yield from _driver(places, node)
    yield from _modules(places, node)
    yield from _device_files(places, node)


def _driver(places: Places, node: str) -> Iterator[Sight]:
    version = places.driver / "version"
    try:
        yield Piece(version.read_bytes(), "/proc/driver/nvidia/version", "host", node)
    except OSError as error:
        yield NotSeen("the kernel driver", f"/proc/driver/nvidia/version: {because(error)}")
        return
    gpus = 0
    for file in sorted((places.driver / "gpus").glob("*/information")):
        gpus += 1
        try:
            text = file.read_bytes()
        except OSError as error:
            yield NotSeen(f"GPU {file.parent.name} in /proc/driver/nvidia", because(error))
            continue
        if b"Bus Location" not in text:
            text += f"Bus Location:\t {file.parent.name}\n".encode()
        yield Piece(text, f"/proc/driver/nvidia/gpus/{file.parent.name}/information", "host", node)
    origin = Origin("/proc/driver/nvidia/gpus", "host", f"{gpus} folders", node=node)
    yield HostCount(origin=origin, by="/proc/driver/nvidia/gpus", count=gpus)


def _modules(places: Places, node: str) -> Iterator[Sight]:
    try:
        yield Piece((places.proc / "modules").read_bytes(), "/proc/modules", "lsmod", node)
    except OSError as error:
        yield NotSeen("the kernel's modules", because(error))


def _device_files(places: Places, node: str) -> Iterator[Sight]:
    try:
        names = sorted(path.name for path in places.dev.iterdir() if path.name.startswith("nvidia"))
    except OSError as error:
        yield NotSeen("the device files", f"/dev: {because(error)}")
        return
    devices = [name for name in names if _DEVICE_FILE.fullmatch(name)]
    text = " ".join(f"/dev/{name}" for name in names) or "no /dev/nvidia*"
    yield HostCount(origin=Origin("/dev", "host", text, node=node), by="/dev", count=len(devices))


def minors(folder: Path) -> tuple[int, ...]:
    """Minor numbers of the device files nvidiaN in a /dev."""
    try:
        found = [_DEVICE_FILE.fullmatch(path.name) for path in folder.iterdir()]
    except OSError:
        return ()
    return tuple(sorted(int(one[1]) for one in found if one))
