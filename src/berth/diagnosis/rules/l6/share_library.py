"""L6. The library that keeps a process within its share of a GPU fails itself."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, value
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

FAILS = Code(
    name="ShareLibraryFails",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the library that limits a share of a GPU fails inside the program",
    meaning="HAMi and its kin load a library before the program that counts memory for all processes of the container "
    "in one file. A lock that a killed process left, a file that it cannot write, or a function of a newer CUDA that "
    "it does not know stop the program.",
    known_by="A line of HAMI-core, vGPU or 4pdvGPU at level ERROR that tells of no memory limit.",
    disproved_by="The program fails in the same way without the library.",
    counter_check="the program once with CUDA_DISABLE_CONTROL=true: it fails in the same way",
    fix=Fix(
        steps=(
            "a lock or the shared region: delete the container's cache file (CUDA_DEVICE_MEMORY_SHARED_CACHE, "
            "/tmp/*.cache or /usr/local/vgpu/*.cache) and start the pod anew; not end its processes with SIGKILL",
            "a function that is missing, an error of CUDA: a version of HAMi that knows this CUDA and driver",
            "until then: CUDA_DISABLE_CONTROL=true for a pod that has a GPU to itself",
        ),
        risk="without the library no limit holds: others on that GPU may run out of memory",
        rollback="take the variable out again",
    ),
    verify=("the program starts, and no line at level ERROR comes",),
    sources=("HAMi-core, src/multiprocess and src/cuda", "HAMi issues 26, 662 and 1181"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("hami.library_error")):
        yield FAILS.finding(f"It says: {value(found[0], 'why')}.", LIKELY, found, node=node, pod=pod)


RULE = Rule((FAILS,), find)
