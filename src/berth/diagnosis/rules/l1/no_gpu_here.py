"""L1. The driver is there and the machine has no GPU: what fails for want of one is no fault."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Rule
from berth.diagnosis.trap import trap
from berth.diagnosis.words import LIKELY, Effect, Layer
from berth.evidence.facts import Facts

NO_GPU = trap(
    "DriverWhereNoGpuIs",
    Layer.L1,
    Effect.BlindMonitoring,
    "the driver does not load on a machine that has no GPU",
    meaning="Images with the driver in them are started on machines of other types, too. The module looks over the "
    "bus, finds nothing, and leaves; its unit is failed. Nothing on such a machine needs it.",
    known_by="The module finds no GPU, and the machine is of a type that has none.",
    disproved_by="lspci -d 10de: lists a GPU, or the machine's type has one.",
    counter_check="lspci -d 10de:: nothing; the type of the instance: no GPU",
    sources=("open-gpu-kernel-modules, kernel-open/nvidia/nv.c",),
    steps=("nothing to mend; keep the driver's units and pods to nodes with a GPU by label",),
    instead_of=("GpuMissing", "DriverFindsNoGpu", "DriverBuildFails", "DriverNotLoaded"),
)


def find(facts: Facts) -> Iterator[Answer]:
    none, where = list(facts.said("kernel.no_gpu")), list(facts.said("context.machine_without_gpu"))
    if none and where:
        yield NO_GPU.finding("The machine has no GPU that the module could find.", LIKELY, [*none, *where[:1]])


RULE = Rule((NO_GPU,), find)
