"""`nvidia-smi -L` with MIG devices, and `nvidia-smi nvlink -s`, `-e`, `-c`, which begin the same way.

Also `nvidia-smi --version`: the tool, the library and the driver by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from berth.evidence.fact import Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.line_prefix import bare_lines
from berth.evidence.formats.smi_cells import number, one_spelling
from berth.evidence.formats.smi_facts import DeviceSeen, DriverSeen, Link, MigDevice, NvlinkSeen
from berth.evidence.piece import Piece

# Who shows a listing to others often takes the UUIDs out of it: `(UUID: ...)`.
_GPU = re.compile(
    r"^\s*GPU (?P<index>\d+): (?P<name>.*?) \(UUID: (?:(?P<uuid>GPU-[0-9A-Fa-f-]+)|(?!MIG)[^()\s]{1,44})\)"
)
# The UUID of R450 to R465 names its device: MIG-GPU-<uuid>/<gi>/<ci>.
_MIG = re.compile(
    r"^\s*MIG (?P<profile>\S+)\s+Device\s+(?P<index>\d+): \(UUID: (?P<uuid>MIG-(?:GPU-)?[0-9A-Fa-f-]+"
    r"(?:/(?P<gi>\d+)/(?P<ci>\d+))?)\)"
)
_LINK = re.compile(r"^\s*Link (?P<link>\d+)\s*[:,]\s*(?P<said>.*?)\s*$")
_SPEED = re.compile(r"^(?P<speed>\d+(?:\.\d+)?) GB/s")
_PAIR = re.compile(r"^(?P<name>[A-Za-z][^:]*?)\s*:\s*(?P<value>.+)$")
_INACTIVE = re.compile(r"all links are in-?active", re.IGNORECASE)
_UNSUPPORTED = re.compile(
    r"does not (?:have or )?support Nvlink|Nvlink queries are not supported|NvLink is not supported", re.IGNORECASE
)
_VERSIONS = re.compile(
    r"^\s*(?P<what>NVIDIA-SMI version|NVML version|DRIVER version|KMD version|CUDA (?:UMD )?Version)"
    r"\s*:\s*(?P<version>[\d.]+)",
    re.IGNORECASE,
)


def looks_like(head: bytes) -> bool:
    return b"(UUID: " in head or b"NVIDIA-SMI version" in head


def read(piece: Piece) -> Iterator[Fact]:
    devices: list[DeviceSeen] = []
    linked: dict[int, NvlinkSeen] = {}  # place in devices → its links
    links: dict[int, dict[int, Link]] = {}
    versions: dict[str, str] = {}
    first_version = (0, "")
    for line_number, line in enumerate(bare_lines(piece), 1):
        place = len(devices) - 1
        if gpu := _GPU.match(line):
            devices.append(
                DeviceSeen(
                    form="list", origin=_origin(piece, line_number, line), index=int(gpu["index"]), name=gpu["name"],
                    uuid=gpu["uuid"] or "",
                )
            )  # fmt: skip
        elif found := _VERSIONS.match(line):
            versions[found["what"].lower().split()[0]] = found["version"]
            first_version = first_version if first_version[0] else (line_number, line)
        elif place < 0:
            continue
        elif mig := _MIG.match(line):
            devices[place] = replace(devices[place], mig=(*devices[place].mig, _mig(mig)))
        elif link := _LINK.match(line):
            linked.setdefault(place, _seen(devices[place]))
            one = links.setdefault(place, {}).setdefault(int(link["link"]), Link(number=int(link["link"])))
            links[place][one.number] = _said(one, link["said"])
        elif _INACTIVE.search(line):
            linked[place] = replace(
                linked.get(place, _seen(devices[place])),
                are_all_inactive=True,
                origin=_origin(piece, line_number, line),
            )
        elif _UNSUPPORTED.search(line):
            linked[place] = replace(linked.get(place, _seen(devices[place])), is_supported=False)
    yield from (device for place, device in enumerate(devices) if place not in linked)
    for place, seen in linked.items():
        yield replace(seen, links=tuple(links.get(place, {}).values()))
    if versions:
        yield DriverSeen(
            origin=_origin(piece, *first_version),
            tool=versions.get("nvidia-smi", ""),
            nvml=versions.get("nvml", ""),
            version=versions.get("kmd") or versions.get("driver", ""),
            cuda=versions.get("cuda", ""),
        )


def _mig(found: re.Match[str]) -> MigDevice:
    return MigDevice(
        index=int(found["index"]),
        uuid=found["uuid"],
        profile=found["profile"],
        gi=int(found["gi"]) if found["gi"] else None,
        ci=int(found["ci"]) if found["ci"] else None,
    )


def _seen(device: DeviceSeen) -> NvlinkSeen:
    return NvlinkSeen(origin=device.origin, index=device.index, uuid=device.uuid, name=device.name)


def _said(link: Link, words: str) -> Link:
    if speed := _SPEED.match(words):
        return replace(link, speed_gbytes_s=float(speed["speed"]), is_active=True)
    if "inactive" in words.lower():
        return replace(link, is_active=False)
    if pair := _PAIR.match(words):
        name, value = one_spelling(pair["name"]), pair["value"].strip()
        if value.lower() in ("true", "false"):
            return replace(link, abilities={**link.abilities, name: value.lower()})
        if (count := number(value)) is not None:
            return replace(link, errors={**link.errors, name: float(value) if _is_float(value) else count})
    return link


def _is_float(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _origin(piece: Piece, line: int, text: str) -> Origin:
    return Origin(source=piece.source, kind=piece.kind, text=text.strip(), line=line, node=piece.node, pod=piece.pod)


FORMAT = Format("nvidia-smi -L", ("nvidia-smi",), looks_like, read)
