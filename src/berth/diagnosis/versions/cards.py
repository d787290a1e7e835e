"""Generations of GPUs and the driver branches, kernel modules and features that they have."""

from __future__ import annotations

import re

from msgspec import Struct


class Generation(Struct, frozen=True):
    """One architecture. Versions are of the Linux driver."""

    name: str
    chips: str  # how names of its chips begin, as lspci prints them
    capabilities: tuple[str, ...]  # of discrete GPUs
    first: int  # branch of the first driver whose CUDA knows it
    last: int  # branch, the last that serves it; 0 where none is announced
    open_modules: bool  # the open kernel modules serve it
    closed_modules: bool  # the proprietary ones do
    nvlink: int = 0  # generation of NVLink that its data centre GPUs have
    mig: tuple[str, ...] = ()  # data centre GPUs that have MIG


# Sources: CUDA release notes (first toolkit with the compute capability, and its driver) for `first`; NVIDIA's schedule
# of deprecations for Unix drivers for `last` (470 for Kepler, 580 for Maxwell, Pascal and Volta); Driver Installation
# Guide, kernel modules, and the driver README for the kinds of modules; MIG user guide for `mig`. Where chips of one
# generation came with different toolkits, `first` is that of the earliest.
GENERATIONS: tuple[Generation, ...] = (
    Generation("Kepler", "GK", ("3.0", "3.5", "3.7"), 0, 470, False, True),
    Generation("Maxwell", "GM", ("5.0", "5.2"), 0, 580, False, True),
    Generation("Pascal", "GP", ("6.0", "6.1"), 367, 580, False, True, 1),
    Generation("Volta", "GV", ("7.0",), 384, 580, False, True, 2),
    Generation("Turing", "TU", ("7.5",), 410, 0, True, True),
    Generation("Ampere", "GA", ("8.0", "8.6"), 450, 0, True, True, 3, ("A100", "A30")),
    Generation("Ada Lovelace", "AD", ("8.9",), 520, 0, True, True),
    Generation("Hopper", "GH", ("9.0",), 520, 0, True, True, 4, ("H100", "H200", "H20", "GH200")),
    Generation(
        "Blackwell", "GB", ("10.0", "10.3", "12.0", "12.1"), 570, 0, True, False, 5,
        ("B200", "B300", "GB200", "GB300", "RTX PRO 6000"),
    ),
)  # fmt: skip

# What single boards need beyond their generation. Source: GPU Operator, platform support and release notes 25.3.0.
# Rules do not use it: a board may run on less than what was tested.
BOARDS: tuple[tuple[str, str], ...] = (
    ("GH200", "open kernel modules"),
    ("HGX B200", "driver 570.133.20"),
    ("RTX PRO 6000 Blackwell Server Edition", "driver 575.57.08; MIG from a later one"),
)

_CHIP = re.compile(r"\b(?P<family>GK|GM|GP|GV|TU|GA|AD|GH|GB)\d{2,3}[A-Z]{0,3}\b")
_PRODUCTS = (
    (re.compile(r"\bG?B[123]00\b|Blackwell|RTX[ -]50[5-9]0", re.IGNORECASE), "Blackwell"),
    (re.compile(r"\bG?H(?:100|200|800|20)\b", re.IGNORECASE), "Hopper"),
)


def of_name(name: str) -> Generation | None:
    """The generation that a label or nvidia-smi names: `ada-lovelace`, `Ampere`."""
    plain = name.strip().lower().replace("-", " ")
    return next((one for one in GENERATIONS if plain and one.name.lower() == plain), None)


def of_chip(name: str) -> Generation | None:
    """Of a PCI function's name: `NVIDIA Corporation GB202GL [RTX PRO 6000 Blackwell]`. Inside the brackets stand names
    of products, of which some look like chips (GB200)."""
    found = _CHIP.search(name.partition("[")[0])
    return next((one for one in GENERATIONS if found and one.chips == found["family"]), None)


def of_product(product: str) -> Generation | None:
    """Of a product's name, where it is of the two newest generations: `NVIDIA-B200`, `NVIDIA H100 80GB HBM3`."""
    name = next((name for pattern, name in _PRODUCTS if pattern.search(product)), "")
    return of_name(name)


def of_capability(capability: str) -> Generation | None:
    return next((one for one in GENERATIONS if capability in one.capabilities), None)


def is_served(generation: Generation, branch: int) -> bool:
    """True where the branch serves it or that is not known."""
    return not branch or (branch >= generation.first and (not generation.last or branch <= generation.last))
