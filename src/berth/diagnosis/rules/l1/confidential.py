"""L1. A GPU in confidential mode takes no work before somebody has declared it ready."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import ESTABLISHED, Effect, Layer, Severity
from berth.evidence.facts import Facts

NOT_READY = Code(
    name="ConfidentialGpuNotReady",
    layer=Layer.L1,
    cause_class="passthrough",
    severity=Severity.Error,
    effect=Effect.CudaFails,
    title="GPUs in confidential mode are not declared ready",
    meaning="With confidential computing on, the driver lets no program onto the GPUs until they have been attested in "
    "the guest and set ready; CUDA answers 802 as if the fabric were not up.",
    known_by="nvidia-smi conf-compute -grs says not-ready.",
    disproved_by="It says ready, or confidential mode is off (nvidia-smi conf-compute -f).",
    counter_check="in the guest: nvidia-smi conf-compute -f: OFF; or nvidia-smi conf-compute -grs: ready",
    fix=Fix(
        steps=(
            "run the attestation, and only when it succeeds: nvidia-smi conf-compute -srs 1",
            "no confidential guest wanted: set nvidia.com/cc.mode=off on the node, which resets the GPUs",
        ),
        risk="to set ready what was not attested gives the protection up; another mode resets the GPUs",
        rollback="nvidia-smi conf-compute -srs 0",
    ),
    verify=("nvidia-smi conf-compute -grs: ready", "a CUDA sample: Test PASSED"),
    sources=("nvidia-smi(1), conf-compute", "GPU Operator, confidential computing manager"),
)


def find(facts: Facts) -> Iterator[Answer]:
    if said := list(facts.said("nvml.confidential_not_ready")):
        yield NOT_READY.finding("The ready state of the confidential GPUs is not-ready.", ESTABLISHED, said)


RULE = Rule((NOT_READY,), find)
