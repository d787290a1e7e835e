"""/proc/driver/nvidia: version and gpus/*/information; modinfo nvidia; the link of a PCI function in sysfs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import NO_PCI, Fact, Origin, pci_of
from berth.evidence.formats import Format
from berth.evidence.formats.boundary_facts import HostCount
from berth.evidence.formats.machine_facts import KernelDriver, PciSeen, ProcGpu
from berth.evidence.piece import Piece

_HEAD = re.compile(
    rb"NVRM version: NVIDIA UNIX|(?m:^filename:\s+/\S*/nvidia(?:-current)?\.ko)|"
    rb"(?m:^Model:\s+\S.*\n(?:.*\n){0,3}GPU UUID:)|/(?:current|max)_link_(?:speed|width)\b|"
    rb"/proc/driver/nvidia/gpus/[0-9a-f]{4}:"
)
_NVRM = re.compile(
    r"NVRM version: NVIDIA UNIX (?P<open>Open )?.*?Kernel Module.*?\s(?P<version>\d{3}\.\d+(?:\.\d+)?)\b"
)
_GCC = re.compile(r"GCC version:\s*(.*?)\s*$")
_MODINFO = re.compile(r"^version:\s+(\d{3}\.\d+(?:\.\d+)?)\s*$")
_FIELD = re.compile(
    r"^(?P<name>Model|GPU UUID|Video BIOS|Bus Location|Device Minor|GPU Firmware):\s*(?P<value>.*?)\s*$"
)
_LISTED = re.compile(r"/proc/driver/nvidia/gpus/(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])")
_SYSFS = re.compile(
    r"(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})\.(?P<function>[0-9a-f])/"
    r"(?P<which>current|max)_link_(?P<what>speed|width)\s*[:=]?\s*(?P<value>[\d.]+)"
)

ALL_ONES = 63  # lanes, where the link status reads ff


def looks_like(head: bytes) -> object:
    said = b"NVRM version:" in head or b"filename:" in head or b"GPU UUID:" in head or b"_link_" in head
    return (said or b"/proc/driver/nvidia/gpus/" in head) and _HEAD.search(head)


def read(piece: Piece) -> Iterator[Fact]:
    """The driver, its GPUs, links."""
    # Files of this kind are short; where one is quoted in a log of megabytes, only what is there is looked for.
    raw = piece.raw
    text = piece.text
    if b"NVRM version:" in raw or b"filename:" in raw:
        yield from _driver(piece, text)
    if b"GPU UUID:" in raw:
        yield from _gpus(piece, text)
    if b"_link_" in raw:
        yield from _links(piece, text)
    if b"/proc/driver/nvidia/gpus/" not in raw:
        return
    listed = {pci_of(found["pci"]) for found in _LISTED.finditer(text)}
    if listed:
        yield HostCount(
            origin=_origin(piece, 1, "/proc/driver/nvidia/gpus"), by="/proc/driver/nvidia/gpus", count=len(listed)
        )


def _driver(piece: Piece, text: str) -> Iterator[KernelDriver]:
    lines = text.splitlines()
    is_modinfo = any(line.startswith("filename:") and "nvidia" in line for line in lines)
    for number, line in enumerate(lines, 1):
        if found := _NVRM.search(line):
            compiler = next((gcc[1] for later in lines[number : number + 3] if (gcc := _GCC.search(later))), "")
            yield KernelDriver(
                origin=_origin(piece, number, line),
                version=found["version"],
                is_open=bool(found["open"]),
                compiler=compiler,
            )
        elif is_modinfo and (found := _MODINFO.match(line)):
            yield KernelDriver(origin=_origin(piece, number, line), version=found[1], is_loaded=False)


def _gpus(piece: Piece, text: str) -> Iterator[ProcGpu]:
    fields: dict[str, str] = {}
    first = 0
    for number, line in enumerate([*text.splitlines(), "Model:"], 1):
        found = _FIELD.match(line)
        if not found:
            continue
        if found["name"] == "Model":
            if "GPU UUID" in fields:
                minor = fields.get("Device Minor", "")
                yield ProcGpu(
                    origin=_origin(piece, first, "; ".join(fields.values())),
                    pci=pci_of(fields.get("Bus Location", "")) if fields.get("Bus Location") else NO_PCI,
                    model=fields.get("Model", ""),
                    uuid=fields["GPU UUID"],
                    vbios=fields.get("Video BIOS", ""),
                    minor=int(minor) if minor.isdigit() else None,
                    firmware=fields.get("GPU Firmware", ""),
                )
            fields, first = {}, number
        fields[found["name"]] = found["value"]


def _links(piece: Piece, text: str) -> Iterator[PciSeen]:
    links: dict[tuple[str, str], dict[str, float]] = {}
    for found in _SYSFS.finditer(text):
        try:
            value = float(found["value"])
        except ValueError:
            continue
        links.setdefault((found["pci"], found["function"]), {})[f"{found['which']} {found['what']}"] = value
    for (pci, function), link in links.items():
        is_dead = link.get("current width") == ALL_ONES
        words = ", ".join(f"{name} {value:g}" for name, value in link.items())
        yield PciSeen(
            origin=_origin(piece, 1, f"{pci}.{function}: {words}"),
            pci=pci_of(pci),
            function=int(function, 16),
            speed_max_gts=link.get("max speed", 0.0),
            width_max=int(link.get("max width", 0)),
            speed_gts=link.get("current speed", 0.0),
            width=0 if is_dead else int(link.get("current width", 0)),
            is_dead=is_dead,
        )


def _origin(piece: Piece, line: int, text: str) -> Origin:
    text = text.strip()[:400]
    return Origin(source=piece.source, kind=piece.kind, text=text, line=line, node=piece.node, pod=piece.pod)


FORMAT = Format("/proc/driver/nvidia", (), looks_like, read)
