"""DCGM and its exporter."""

from __future__ import annotations

from msgspec import Struct

from berth.diagnosis.versions.number import number


class DcgmFloor(Struct, frozen=True):
    """The first DCGM that knows a generation of GPUs."""

    generation: str
    dcgm: str
    source: str


# Sources: DCGM release notes 3.0 and 3.1; for Blackwell the GPU Operator's 25.3.0, which brings 4.1.1 with it, and
# dcgm-exporter#707 (3.3 has no profiling there).
FLOORS: tuple[DcgmFloor, ...] = (
    DcgmFloor("Hopper", "3.0", "DCGM 3.0 release notes"),
    DcgmFloor("Ada Lovelace", "3.1", "DCGM 3.1 release notes"),
    DcgmFloor("Blackwell", "4", "GPU Operator 25.3.0 release notes; dcgm-exporter#707"),
)
OLDEST_DRIVER = "450.80.02"  # of DCGM 3.0 and newer. Source: DCGM 3.0 release notes


def floor_of(generation: str) -> str:
    return next((one.dcgm for one in FLOORS if one.generation == generation), "")


def dcgm_of(tag: str) -> str:
    """The version of DCGM in a tag of dcgm-exporter: `3.3.5-3.4.1-ubuntu22.04` has it first. "" for older schemes and
    builds of others, whose tags say something else."""
    first, _, rest = tag.partition("-")
    return first if len(number(first)) == 3 and number(first)[0] in (2, 3, 4) and len(number(rest)) == 3 else ""
