"""L6. An NCCL that is older than the GPUs it joins."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import heard
from berth.diagnosis.versions import collectives
from berth.diagnosis.versions.number import is_below
from berth.diagnosis.versions.seen import origins, seen
from berth.diagnosis.words import POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.nccl_log import NcclVersion

TOO_OLD = Code(
    name="NcclOlderThanCard",
    layer=Layer.L6,
    cause_class="version-mismatch",
    severity=Severity.Warning,
    effect=Effect.CollectiveSlow,
    title="this NCCL was made before the GPUs that it joins",
    meaning="It has no code and no tuning for them: where it holds PTX the driver translates that, slowly; where not, "
    "the first collective ends with an error of the kernel. NVLink of the new generation is not used as it could be.",
    known_by="NCCL prints its version; nvidia-smi or labels of the same node name a newer generation.",
    disproved_by="nccl-tests reach the bandwidth that the machine is made for.",
    counter_check="all_reduce_perf -b 1G -e 1G -g 8: bandwidth as specified; cuobjdump --list-elf libnccl.so.2 | grep "
    "sm_100",
    fix=Fix(
        steps=(
            "Blackwell: NCCL 2.25.1 or newer, compiled with CUDA 12.8 or newer (framework images from 2025 on)",
            "python: pip list | grep nccl shows which one the framework brings",
        ),
        risk="all ranks of a job need the same NCCL",
        rollback="the former image",
    ),
    verify=("NCCL_DEBUG=VERSION: 2.25.1 or newer", "all_reduce_perf: the bandwidth of the machine"),
    sources=("NCCL 2.25.1 release notes", "nccl, makefiles/common.mk"),
)


def find(facts: Facts) -> Iterator[Answer]:
    first = "It was built with NCCL 1, which knows neither today's drivers nor more than one machine."
    yield from heard(facts, TOO_OLD, ("nccl.first_release",), first, POSSIBLE)
    told = set[tuple[str, str]]()
    for nccl in facts.of(NcclVersion):
        node = nccl.node or nccl.host
        for card in seen(facts).cards(node):
            floor = collectives.floor_of(card.generation.name) if card.generation else ""
            if card.generation and floor and is_below(nccl.version, floor) and (node, nccl.version) not in told:
                told.add((node, nccl.version))
                yield TOO_OLD.finding(
                    f"NCCL {nccl.version} joins GPUs of {card.generation.name}, which it knows from {floor} on.",
                    POSSIBLE,
                    origins(nccl, card),
                    node=node,
                )


RULE = Rule((TOO_OLD,), find)
