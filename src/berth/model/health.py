"""What health agents find, as people say it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from berth.model.cluster import Device, Health

_INNER_CAPITALS = re.compile(r"NvLink|NvSwitch|PCIe")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|\d+")
_NUMBERED = re.compile(r"(S?Xid)[-_ ]?(\d+)", re.IGNORECASE)
_SPELT = {
    one.lower(): one
    for one in (
        "BAR", "CDI", "CUDA", "DCGM", "DRA", "DRAM", "ECC", "GPU", "GPUs", "GSP", "HBM", "IMEX", "IOMMU", "MIG", "MPS",
        "NUMA", "NVIDIA", "NVLink", "NVML", "NVSwitch", "PCI", "PCIe", "RDMA", "SRAM", "SXid", "VBIOS", "Xid",
    )
}  # fmt: skip


@lru_cache(maxsize=1024)
def in_words(code: str) -> str:
    """`Xid 79`, `remap pending`, `GPU fell off bus`: a finding's code as people say it; "" for none."""
    if numbered := _NUMBERED.fullmatch(code):
        return f"{_SPELT[numbered[1].lower()]} {numbered[2]}"
    parts = _INNER_CAPITALS.sub(lambda found: found[0].capitalize(), code)
    words = [_SPELT.get(word.lower(), word.lower()) for word in _WORD.findall(parts)]
    return " ".join(words) or code


def codes_of(devices: Iterable[Device], health: Health) -> tuple[str, ...]:
    """What was found of the devices in a state, a code for each device of which one is known."""
    return tuple(d.code for d in devices if d.health == health and d.code)
