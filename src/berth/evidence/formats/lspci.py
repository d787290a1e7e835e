"""lspci, from one line a device to -vvv, with or without domain and numbers. pciutils 3.1 to 3.14."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin, pci_of
from berth.evidence.formats import Format
from berth.evidence.formats.boundary_facts import HostCount
from berth.evidence.formats.machine_facts import PciSeen, Region
from berth.evidence.piece import Piece

_KINDS = (
    r"3D controller|VGA compatible controller|Display controller|PCI bridge|Host bridge|Bridge|Audio device|"
    r"Ethernet controller|Infiniband controller|Network controller|Non-Volatile memory controller|USB controller|"
    r"ISA bridge|SATA controller|SMBus|Communication controller|SCSI storage controller|Processing accelerators|"
    r"System peripheral|Serial bus controller|Serial controller|RAID bus controller|Signal processing controller|"
    r"Unassigned class|Non-Essential Instrumentation|Encryption controller|RAM memory|Memory controller|IOMMU"
)
_HEAD = re.compile(
    rb"(?m)^\s*(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] (?:\"?(?:" + _KINDS.encode() + rb")|.*NVIDIA)", re.I
)
_DEVICE = re.compile(
    r"^\s*(?P<pci>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2})\.(?P<function>[0-7]) "
    r"(?P<kind>[^:\[]*?)(?: \[(?P<kind_id>[0-9a-f]{4})\])?: (?P<name>.*?)"
    r"(?: \[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\])?(?: \(rev (?P<revision>[0-9a-f]{2})\))?"
    r"(?: \(prog-if [^)]*\))?(?: \[[^\]]*\])?\s*$",
    re.IGNORECASE,
)
_LINK = re.compile(r"(?P<what>LnkCap|LnkSta):.*?Speed (?P<speed>\d+(?:\.\d+)?)GT/s.*?Width x(?P<width>\d+)")
_REGION = re.compile(
    r"(?:Region (?P<number>\d): )?(?:Memory|\[virtual\] Memory) at (?P<at>\S+) \((?P<bits>\d+)-bit[^)]*\)(?P<rest>.*)"
)
_UNNUMBERED = -1  # as `lspci -v` prints a region
_DEAD_LINK = re.compile(r"LnkSta:.*Width x63\b")
_SIZE = re.compile(r"\[size=(\d+)([KMGT]?)\]")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def looks_like(head: bytes) -> object:
    return _HEAD.search(head)


class _Device:
    """A device while its lines are read."""

    def __init__(self, found: re.Match[str], number: int) -> None:
        self.found, self.number = found, number
        self.lines = [found[0].strip()]
        self.links: dict[str, tuple[float, int]] = {}
        self.regions: list[Region] = []
        self.driver = self.acs = self.power = ""
        self.modules: tuple[str, ...] = ()
        self.is_dead = (found["revision"] or "").lower() == "ff"

    def line(self, text: str) -> None:
        if _DEAD_LINK.search(text):
            self.is_dead = True
            self.lines.append(text)
        elif link := _LINK.search(text):
            self.links.setdefault(link["what"], (float(link["speed"]), int(link["width"])))
            self.lines.append(text)
        elif region := _REGION.search(text):
            size = _SIZE.search(region["rest"])
            self.regions.append(
                Region(
                    int(region["number"] or _UNNUMBERED),
                    int(size[1]) * _UNITS[size[2]] if size else 0,
                    not region["at"].startswith("<") and "[disabled]" not in region["rest"],
                    region["bits"] == "64",
                )
            )
        elif text.startswith("Kernel driver in use:"):
            self.driver = text.partition(":")[2].strip()
        elif text.startswith("Kernel modules:"):
            self.modules = tuple(text.partition(":")[2].replace(" ", "").split(","))
        elif text.startswith("ACSCtl:"):
            self.acs = text.partition(":")[2].strip()
        elif "Unknown header type" in text:
            self.is_dead = True
            self.lines.append(text)
        elif text.startswith("Status: D"):
            self.power = text.split()[1]

    def fact(self, piece: Piece) -> PciSeen:
        found = self.found
        speed_max, width_max = self.links.get("LnkCap", (0.0, 0))
        speed, width = self.links.get("LnkSta", (0.0, 0))
        return PciSeen(
            origin=Origin(
                source=piece.source,
                kind=piece.kind,
                text="\n".join(self.lines)[:LONGEST_TEXT],
                line=self.number,
                node=piece.node,
                pod=piece.pod,
            ),
            pci=pci_of(found["pci"]),
            function=int(found["function"]),
            kind=found["kind"].strip(),
            kind_id=(found["kind_id"] or "").lower(),
            name=found["name"],
            vendor=(found["vendor"] or "").lower(),
            device=(found["device"] or "").lower(),
            revision=(found["revision"] or "").lower(),
            is_dead=self.is_dead,
            driver=self.driver,
            modules=self.modules,
            speed_max_gts=speed_max,
            width_max=width_max,
            speed_gts=speed,
            width=width,
            regions=tuple(self.regions),
            acs=self.acs,
            power_state=self.power,
        )


def read(piece: Piece) -> Iterator[Fact]:
    """Every function; then how many GPUs there are."""
    current: _Device | None = None
    gpus: list[PciSeen] = []
    for number, line in enumerate(piece.text.splitlines(), 1):
        if found := _DEVICE.match(line):
            if current:
                yield from _done(current, piece, gpus)
            current = _Device(found, number)
        elif current and line[:1].isspace():
            current.line(line.strip())
    if current:
        yield from _done(current, piece, gpus)
    if gpus:
        yield HostCount(origin=gpus[0].origin, by="lspci", count=len({one.pci for one in gpus}))


def _done(device: _Device, piece: Piece, gpus: list[PciSeen]) -> Iterator[PciSeen]:
    fact = device.fact(piece)
    if fact.is_gpu:
        gpus.append(fact)
    yield fact


FORMAT = Format("lspci", ("lspci",), looks_like, read)
