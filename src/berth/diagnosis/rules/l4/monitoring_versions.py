"""L4. A DCGM that is older than the node's GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.versions import monitoring
from berth.diagnosis.versions.number import is_below, tag
from berth.diagnosis.versions.seen import images, origins, seen
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

TOO_OLD = Code(
    name="DcgmOlderThanCard",
    layer=Layer.L4,
    cause_class="version-mismatch",
    severity=Severity.Warning,
    effect=Effect.BlindMonitoring,
    title="the DCGM of the exporter does not know GPUs of this generation",
    meaning="Profiling counters (DCGM_FI_PROF_*) and diagnostics are missing for these GPUs, while temperature and "
    "memory may be there.",
    known_by="The tag of the exporter's image begins with the version of its DCGM; the node's labels or nvidia-smi "
    "name the generation.",
    disproved_by="The exporter's metrics of this node have DCGM_FI_PROF_GR_ENGINE_ACTIVE for each GPU.",
    counter_check="curl -s http://POD_IP:9400/metrics | grep -c DCGM_FI_PROF_GR_ENGINE_ACTIVE: one for each GPU",
    fix=Fix(
        steps=(
            "an exporter with DCGM of the floor: 3.0 for Hopper, 3.1 for Ada, 4 for Blackwell",
            "GPU Operator: take an own dcgmExporter.version out of the values, or a newer operator",
        ),
        risk="none for the workloads",
        rollback="the former image",
    ),
    verify=("the metrics of the node have DCGM_FI_PROF_GR_ENGINE_ACTIVE",),
    sources=("DCGM release notes 3.0 and 3.1", "GPU Operator 25.3.0 release notes", "dcgm-exporter#707"),
)


def find(facts: Facts) -> Iterator[Answer]:
    """One finding for a release and a generation, however many nodes have them."""
    told = set[tuple[str, str]]()
    for image in images(facts, lambda name: "dcgm-exporter:" in name):
        dcgm = monitoring.dcgm_of(tag(image.image))
        for node in [image.node] if image.node else seen(facts).nodes or [""]:
            for card in seen(facts).cards(node):
                floor = monitoring.floor_of(card.generation.name) if card.generation else ""
                if card.generation is None or not floor or not dcgm or not is_below(dcgm, floor):
                    continue
                if (key := (dcgm, card.generation.name)) not in told:
                    told.add(key)
                    yield TOO_OLD.finding(
                        f"The exporter has DCGM {dcgm}; {card.generation.name} is known from {floor} on.",
                        LIKELY,
                        origins(image, card),
                    )


RULE = Rule((TOO_OLD,), find)
