"""NCCL: the first release that knows a generation of GPUs, and the CUDA that its code for it is compiled with."""

from __future__ import annotations

from msgspec import Struct


class NcclFloor(Struct, frozen=True):
    generation: str
    nccl: str  # "" where only the compiler decides
    cuda: str  # that it has to be compiled with
    source: str


FLOORS: tuple[NcclFloor, ...] = (
    NcclFloor("Ampere", "", "11.0", "nccl, makefiles/common.mk"),
    NcclFloor("Hopper", "", "11.8", "nccl, makefiles/common.mk"),
    NcclFloor("Blackwell", "2.25.1", "12.8", "nccl 2.25.1 release notes; makefiles/common.mk"),
)


def floor_of(generation: str) -> str:
    return next((one.nccl for one in FLOORS if one.generation == generation), "")
