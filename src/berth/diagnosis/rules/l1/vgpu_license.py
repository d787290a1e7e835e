"""L1. A guest's driver has no licence for its vGPU and is slowed down, later refused."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

UNLICENSED = Code(
    name="VgpuUnlicensed",
    layer=Layer.L1,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.CudaFails,
    title="the vGPU has no licence",
    meaning="A guest works at full speed for the first minutes only; then its frame rate and its allocations are "
    "throttled, and CUDA is refused at last.",
    known_by="nvidia-smi -q in the guest says Unlicensed, or nvidia-gridd says that it got no licence.",
    disproved_by="License Status: Licensed, with a date to come.",
    counter_check="in the guest: nvidia-smi -q | grep -A2 Licensed: Licensed, with a date to come",
    fix=Fix(
        steps=(
            "GPU Operator: a secret with gridd.conf and client_configuration_token.tok in driver.licensingConfig",
            "open the way from the guest to the licence server (443), and set the guest's clock",
            "a token of another service instance, or expired: make a new one; then restart nvidia-gridd",
        ),
        risk="none for what runs",
        rollback="the former token and gridd.conf",
    ),
    verify=("nvidia-smi -q | grep 'License Status': Licensed",),
    sources=("NVIDIA vGPU, client licensing guide", "GPU Operator, NVIDIA vGPU", "nvidia-smi(1)"),
)


def find(facts: Facts) -> Iterator[Answer]:
    devices = [seen for seen in facts.of(DeviceSeen) if seen.license_status]
    bare = [
        seen
        for seen in devices
        if seen.license_status.lower().startswith("unlicensed") and seen.virtualization.lower() in ("", "vgpu")
    ]
    failed = list(facts.said("driver.license_failed"))
    if bare:
        yield UNLICENSED.finding(
            f"License Status of {len(bare)} vGPU{'s' if len(bare) > 1 else ''}: {bare[0].license_status}.",
            LIKELY,  # why it is unlicensed is another question: no server, no client, a release that lacks the client
            [*(seen.quote("license_status") for seen in bare), *failed],
        )
    elif failed and len(devices) == 0 and not any(facts.said("driver.license_acquired")):
        yield UNLICENSED.finding("The guest's driver did not get a licence for its vGPU.", LIKELY, failed)


RULE = Rule((UNLICENSED,), find)
