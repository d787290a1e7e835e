"""L1. AMD's kernel driver lacks a file of firmware, or work on a GPU hangs in it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import ESTABLISHED, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

_SOURCES = ("Linux, drivers/gpu/drm/amd/amdgpu: amdgpu_ucode.c, amdgpu_job.c, amdgpu_device.c",)

NO_FIRMWARE = Code(
    name="AmdFirmwareMissing",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.DriverAbsent,
    title="amdgpu does not find the firmware of a GPU",
    meaning="The driver is newer than the firmware package, or the package is not in the initial RAM disk. Without "
    "the file it does not start the GPU.",
    known_by="`Direct firmware load for amdgpu/… failed with error -2`.",
    disproved_by="The GPU starts all the same: some files are optional.",
    counter_check="ls /lib/firmware/amdgpu, lsinitrd or lsinitramfs: the file is there",
    fix=Fix(
        ("install the firmware package that goes with the driver (linux-firmware, amdgpu-dkms-firmware)",
         "update-initramfs -u or dracut -f, then restart the node"),
        "the node is out during the restart",
        "the previous package",
    ),
    verify=("dmesg | grep 'firmware load for amdgpu': nothing", "amd-smi list: the GPU is there"),
    sources=_SOURCES,
)  # fmt: skip
HANGS = Code(
    name="AmdGpuHangs",
    layer=Layer.L1,
    cause_class="driver-bug",
    severity=Severity.Error,
    effect=Effect.DevicesUnhealthy,
    title="work on a GPU of AMD hangs, and its driver resets it",
    meaning="A queue of the GPU made no progress for the driver's time limit. Mostly driver, firmware and ROCm do "
    "not go together, or one of them errs; on one card alone it is the card.",
    known_by="`ring … timeout, signaled seq`, `GPU reset begin!`, `HW Exception … reason :GPU Hang`.",
    disproved_by="Only one card of several does so, with other releases, too: then it is the card. Only one program "
    "does so: then it is the program.",
    counter_check="the same program on other cards: no hang (then it is the card); other programs on this card: no "
    "hang (then it is the program)",
    fix=Fix(
        ("note releases of kernel, amdgpu, firmware and ROCm; compare with the list of pairs that AMD supports",
         "go to a pair of that list; restart the node: a reset by the driver often leaves queues behind",
         "again on one card only: drain the node, swap the card"),
        "the node is out during the restart",
        "the previous packages",
    ),
    verify=("dmesg | grep -e 'timeout, signaled' -e 'GPU reset begin': nothing after the restart",),
    sources=_SOURCES,
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    missing, failed = list(facts.said("amd.firmware_missing")), list(facts.said("amd.init_failed"))
    if missing:
        file = next((said.get("file") or said.get("file2") for said in missing), "")
        yield NO_FIRMWARE.finding(f"There is no {file}.", ESTABLISHED if failed else POSSIBLE, [*missing, *failed])
    hangs = list(facts.said("amd.hang"))
    if hangs and not any(True for _ in facts.said("amd.memory_uncorrectable", "amd.lost")):
        yield HANGS.finding("Work on a GPU hung, and the driver reset it.", POSSIBLE, hangs)


RULE = Rule((NO_FIRMWARE, HANGS), find)
