"""L1. The kernel module of another maker's GPU or accelerator is not built, not taken, or has not what it needs."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

MODULE_FAILS = Code(
    name="OtherMakersModuleFails",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.DriverAbsent,
    title="the kernel module of another maker's GPU does not come",
    meaning="amdgpu, xe, i915, habanalabs or neuron is not there for the running kernel, does not fit it, or lacks its "
    "firmware: no program and no device plugin of the node finds such a device.",
    known_by="modprobe, DKMS, the package manager or the kernel name the module and what fails.",
    disproved_by="lspci -nnk shows that module in use for every card.",
    counter_check="on NODE: lspci -nnk -d 1002: (8086:, 1da3:, 1d0f:): the module is in use for every card",
    fix=Fix(
        steps=(
            "headers of the running kernel, then dkms autoinstall; a release of the driver that supports this kernel",
            "drivers of the distribution: linux-modules-extra and linux-firmware of the same release, then restart",
            "a card newer than the kernel: a newer kernel, or force_probe=ID of i915 or xe",
            "operators (KMM, AMD, Gaudi): an image of the module for exactly this kernel",
        ),
        risk="the node is out during the restart",
        rollback="the former kernel or the former packages",
    ),
    verify=("lspci -nnk: Kernel driver in use", "kubectl get node NODE: the resource of the device plugin is there"),
    sources=("modprobe(8), dkms(8)", "Linux, drivers/gpu/drm/i915 and xe: uc firmware, force_probe"),
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    said = [
        *facts.said("modprobe.other_build_fails"),
        *facts.said("modprobe.other_absent"),
        *facts.said("modprobe.other_refused"),
        *facts.said("modprobe.other_card_unknown"),
        *facts.said("modprobe.other_firmware_missing"),
    ]
    if not said:
        return
    name, file, reason = (value(said[0], word) for word in ("module", "file", "reason"))
    yield MODULE_FAILS.finding(
        f"There is no {file}."
        if file
        else f"The kernel does not take {name}: {reason.strip()}."
        if reason
        else f"The card {said[0].get('device')} is newer than the {name} of this kernel."
        if said[0].get("device")
        else f"{name} is not built for the running kernel.",
        LIKELY,
        said,
    )


RULE = Rule((MODULE_FAILS,), find)
