"""MIG profiles of every MIG-capable product: how large a partition is, and how many slices it takes.

A profile's name does not identify a size on its own (`1g.10gb` is a fourth of an A100-40GB's count and a
seventh of an A100-80GB's), so the table is by product. `memory_gib` is the size in the name; `usable_gib` is
what a process finds, 0.0 where nobody has published it. Sources: NVIDIA Multi-Instance GPU User Guide,
"Supported MIG Profiles"; the default configuration of NVIDIA's mig-parted; `nvidia-smi mig -lgip` listings.
"""

from __future__ import annotations

import re

from msgspec import Struct

from berth.model.resources import MIG_PREFIX


class MigProfile(Struct, frozen=True, gc=False):
    """One way to cut a product. `most`: so many of it fit on one device that holds nothing else."""

    name: str  # "1g.10gb", "1g.10gb+me"
    compute_slices: int
    memory_slices: int
    memory_gib: int
    most: int
    usable_gib: float = 0.0


# Of a board with 7 compute and 8 memory slices: compute, memory slices, how many fit.
_SEVEN = ((1, 1, 7), (1, 2, 4), (2, 2, 3), (3, 4, 2), (4, 4, 1), (7, 8, 1))
# Sizes in GB of 1g, 1g with double memory, 2g, 3g, 4g and 7g; then usable GiB where it is known.
_SIZES: dict[str, tuple[tuple[int, ...], tuple[float, ...]]] = {
    "A100-40GB": ((5, 10, 10, 20, 20, 40), (4.75, 9.62, 9.62, 19.5, 19.5, 39.25)),
    "A100-80GB": ((10, 20, 20, 40, 40, 80), (9.62, 19.5, 19.5, 39.25, 39.25, 78.5)),
    "H100-80GB": ((10, 20, 20, 40, 40, 80), (9.75, 19.62, 19.62, 39.5, 39.5, 79.25)),
    "H100-NVL-94GB": ((12, 24, 24, 47, 47, 94), ()),
    "H100-96GB": ((12, 24, 24, 48, 48, 96), (11.0, 23.0, 23.0, 46.5, 46.5, 93.0)),
    "H200-141GB": ((18, 35, 35, 71, 71, 141), (16.0, 32.5, 32.5, 69.75, 69.75, 140.0)),
    "GH200-144GB": ((18, 36, 36, 72, 72, 144), ()),
    "B200-180GB": ((23, 45, 45, 90, 90, 180), ()),
    "GB200-186GB": ((23, 47, 47, 93, 93, 186), ()),
    "B300-270GB": ((34, 67, 67, 135, 135, 269), ()),
    "GB300-279GB": ((35, 70, 70, 139, 139, 278), ()),
}
_SAME_AS = {
    "A100-PCIe-40GB": "A100-40GB",
    "A800-40GB": "A100-40GB",
    "A100-PCIe-80GB": "A100-80GB",
    "A800-80GB": "A100-80GB",
    "A800-PCIe-80GB": "A100-80GB",
    "H100-PCIe-80GB": "H100-80GB",
    "H800-80GB": "H100-80GB",
    "H800-PCIe-80GB": "H100-80GB",
    "H800-NVL-94GB": "H100-NVL-94GB",
    "H20-96GB": "H100-96GB",
    "GH200-96GB": "H100-96GB",
    "H200-NVL-141GB": "H200-141GB",
}
_FOUR: dict[str, tuple[MigProfile, ...]] = {
    "A30-24GB": (
        MigProfile("1g.6gb", 1, 1, 6, 4, 5.8),
        MigProfile("1g.6gb+me", 1, 1, 6, 1, 5.8),
        MigProfile("2g.12gb", 2, 2, 12, 2, 11.7),
        MigProfile("2g.12gb+me", 2, 2, 12, 1, 11.7),
        MigProfile("4g.24gb", 4, 4, 24, 1, 23.4),
    ),
    "RTX-PRO-6000-96GB": (
        MigProfile("1g.24gb", 1, 1, 24, 4, 23.62),
        MigProfile("1g.24gb+me", 1, 1, 24, 1, 23.62),
        MigProfile("1g.24gb+gfx", 1, 1, 24, 4, 23.62),
        MigProfile("1g.24gb+me.all", 1, 1, 24, 1, 23.62),
        MigProfile("1g.24gb-me", 1, 1, 24, 4, 23.62),
        MigProfile("2g.48gb", 2, 2, 48, 2, 47.38),
        MigProfile("2g.48gb+gfx", 2, 2, 48, 2, 47.38),
        MigProfile("2g.48gb+me.all", 2, 2, 48, 1, 47.38),
        MigProfile("2g.48gb-me", 2, 2, 48, 2, 47.38),
        MigProfile("4g.96gb", 4, 4, 96, 1, 95.0),
        MigProfile("4g.96gb+gfx", 4, 4, 96, 1, 95.0),
    ),
}
_NAME = re.compile(r"(?P<compute>\d+)g\.(?P<memory>\d+)gb(?P<extra>[+.-](me|gfx)(\.all)?)?")


def _seven(sizes: tuple[int, ...], usable: tuple[float, ...]) -> tuple[MigProfile, ...]:
    usable = usable or (0.0,) * len(sizes)
    plain = [
        MigProfile(f"{compute}g.{gib}gb", compute, memory, gib, most, free)
        for (compute, memory, most), gib, free in zip(_SEVEN, sizes, usable, strict=True)
    ]
    media = MigProfile(f"1g.{sizes[0]}gb+me", 1, 1, sizes[0], 1, usable[0])
    return (plain[0], media, *plain[1:])


PROFILES: dict[str, tuple[MigProfile, ...]] = {
    **{product: _seven(*sizes) for product, sizes in _SIZES.items()},
    **{product: _seven(*_SIZES[like]) for product, like in _SAME_AS.items()},
    **_FOUR,
}


def canonical(profile: str) -> str:
    """The profile as nvidia-smi writes it: a resource or label has `1g.5gb.me` for `1g.5gb+me`."""
    return re.sub(r"(?<=gb)\.(?=me|gfx)", "+", profile.removeprefix(MIG_PREFIX))


def profile_of(product: str, profile: str) -> MigProfile | None:
    """The profile of that product (a class name); of an unknown product or profile, what its name says."""
    wanted = canonical(profile)
    for known in PROFILES.get(product, ()):
        if known.name == wanted:
            return known
    shape = _NAME.fullmatch(wanted)
    if shape is None:
        return None
    return MigProfile(wanted, int(shape["compute"]), 0, int(shape["memory"]), 0)


def compute_slices(product: str) -> int:
    """Compute slices of the whole device: 4 or 7; 0 where it has no MIG, or is not known."""
    return max((p.compute_slices for p in PROFILES.get(product, ())), default=0)
