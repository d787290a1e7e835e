"""NVIDIA's functions on the PCI bus, from sysfs: how many GPUs there are whatever a driver says, and their links.

Source: Documentation/ABI/testing/sysfs-bus-pci of the kernel. A configuration space that reads all ones (vendor ffff
behind a device that sysfs still lists, or revision ff) belongs to a device that is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from berth.evidence.fact import Origin, pci_of
from berth.evidence.formats.boundary_facts import HostCount
from berth.evidence.formats.machine_facts import NVIDIA, PciSeen
from berth.node.places import Places
from berth.node.seen import NotSeen, Sight, because

DEVICES = "bus/pci/devices"
_CLASSES = {"0300": "VGA compatible controller", "0302": "3D controller", "0680": "Bridge"}
_LINKS = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
_GIVES_WIDTH = 255  # what the kernel prints for the width of a link that does not answer


def look(places: Places, node: str = "") -> Iterator[Sight]:
    """A PciSeen for each GPU and NVSwitch, then how many GPUs there are; zero is an answer."""
    folder = places.sys / DEVICES
    try:
        functions = sorted(folder.iterdir())
    except OSError as error:
        yield NotSeen("the PCI bus", f"{places.as_the_machine_names_it(folder)}: {because(error)}")
        return
    gpus = 0
    first = Origin(source="/sys/bus/pci/devices", kind="lspci", text="no function of NVIDIA", node=node)
    for function in functions:
        if _word(function / "vendor") != NVIDIA:
            continue
        found = _function(function, node)
        if found.is_gpu:
            first = found.origin if not gpus else first
            gpus += 1
        yield found
    yield HostCount(origin=first, by="lspci", count=gpus)


def _function(folder: Path, node: str) -> PciSeen:
    kind = _word(folder / "class")[:4]
    links = {name: _text(folder / name) for name in _LINKS}
    revision = _word(folder / "revision")
    header = _header(folder / "config")
    is_dead = revision == "ff" or header == b"\xff" * 4 or _number(links["current_link_width"]) == _GIVES_WIDTH
    words = ", ".join(f"{name} {value}" for name, value in links.items() if value)
    driver = folder / "driver"
    signs = " (config space reads ff)" if is_dead else ""
    return PciSeen(
        origin=Origin(
            source=f"/sys/bus/pci/devices/{folder.name}",
            kind="lspci",
            text=f"{folder.name} {_CLASSES.get(kind, kind)} [{NVIDIA}:{_word(folder / 'device')}]{signs}: {words}",
            node=node,
        ),
        pci=pci_of(folder.name),
        function=int(folder.name.rpartition(".")[2] or "0", 16),
        kind=_CLASSES.get(kind, ""),
        kind_id=kind,
        vendor=NVIDIA,
        device=_word(folder / "device"),
        revision=revision,
        is_dead=is_dead,
        driver=driver.resolve().name if driver.is_symlink() else "",
        speed_gts=_number(links["current_link_speed"]),
        width=int(_number(links["current_link_width"])) if not is_dead else 0,
        speed_max_gts=_number(links["max_link_speed"]),
        width_max=int(_number(links["max_link_width"])) if not is_dead else 0,
        power_state=_text(folder / "power_state"),
    )


def _header(path: Path) -> bytes:
    """Vendor and device as the device itself answers now; sysfs' own files are what it answered at boot."""
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError:
        return b""


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _word(path: Path) -> str:
    return _text(path).removeprefix("0x").lower()


def _number(text: str) -> float:
    """`32.0 GT/s PCIe`, `16`."""
    try:
        return float(text.partition(" ")[0])
    except ValueError:
        return 0.0
