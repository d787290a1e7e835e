"""L6. The image that a program is to run in is not to be had under that name."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, value
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

ABSENT = Code(
    name="ImageTagAbsent",
    layer=Layer.L6,
    cause_class="image",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the registry has no image of that name and tag for this machine",
    meaning="NVIDIA withdraws old CUDA images and has no tag latest; each tag exists only for some distributions and "
    "architectures.",
    known_by="manifest unknown, not found or no matching manifest, for an image of CUDA or of a framework.",
    disproved_by="The same name and tag can be pulled from another machine of this architecture.",
    counter_check="docker manifest inspect IMAGE: a list with this machine's architecture",
    fix=Fix(
        steps=(
            "a tag that the registry lists (CUDA with all three numbers, base or runtime or devel, and distribution)",
            "no matching manifest: a tag for arm64, or a node of the other architecture",
        ),
        risk="a newer CUDA needs a newer driver",
        rollback="the old tag, from a registry of your own that still has it",
    ),
    verify=("docker pull IMAGE: done",),
    sources=("NVIDIA CUDA images: support policy", "nvidia-docker issue 1692"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("image.tag_absent")):
        yield ABSENT.finding(f"There is no {value(found[0], 'image')}.", LIKELY, found, node=node, pod=pod)


RULE = Rule((ABSENT,), find)
