"""L6. CUDA ends the program's context: a fault of the program, or of the device or driver under it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.heard import by_place, listed, values
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.facts import Facts

KERNEL = Code(
    name="CudaKernelFault",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="a kernel of the program failed on the GPU",
    meaning="An illegal access, assert or launch failure ends the context; every later call reports the same. Mostly "
    "a fault of the "
    "program; on one card only, of the card.",
    known_by="CUDA error 700, 710, 715, 716, 718 or 719; less surely any other that refuses what the program asks for.",
    disproved_by="The same program runs on another card and fails on this one, or the kernel log has a hardware Xid "
    "at that time.",
    counter_check="dmesg | grep Xid at that time: another than 13, 31, 43 and 45; or the program on another card: it "
    "runs",
    fix=Fix(
        steps=(
            "CUDA_LAUNCH_BLOCKING=1 once to find the kernel, or compute-sanitizer",
            "look for Xids at that time; again on the same card only: take it out and run dcgmi diag -r 3",
        ),
        risk="blocking launches make it slow: not for production",
        rollback="unset the variable",
    ),
    verify=("the program passes the point where it failed, on the same card",),
    sources=("CUDA runtime API: error codes 700 to 720",),
)
ECC = Code(
    name="EccErrorSeenByProgram",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceUnfit,
    title="CUDA met an uncorrectable memory error of the device",
    meaning="The device's memory delivered data that could not be corrected; results since the last good check are "
    "not to be trusted.",
    known_by="CUDA error 214.",
    disproved_by="ECC counters of all devices are 0 since the driver was loaded.",
    counter_check="nvidia-smi -q -d ECC,ROW_REMAPPER: no uncorrectable errors",
    fix=Fix(
        steps=(
            "kubectl cordon NODE; read the counters, then reset the GPU or restart the machine",
            "again after the reset: take the card out",
        ),
        risk="a reset ends what runs on the GPU",
        rollback="kubectl uncordon NODE",
    ),
    verify=("dcgmi diag -r 3: pass", "nvidia-smi -q -d ROW_REMAPPER: Pending No, Failure No"),
    sources=("CUDA runtime API: cudaErrorECCUncorrectable (214)",),
)
LINK = Code(
    name="NvLinkErrorSeenByProgram",
    layer=Layer.L0,
    cause_class="fabric",
    severity=Severity.Critical,
    effect=Effect.FabricDown,
    title="CUDA met an error of an NVLink, or of the memory of a peer that it reaches over one",
    meaning="Data that came over an NVLink could not be corrected, or the GPU contained an error of a peer's memory. "
    "In a domain of many nodes the origin may be another node: a peer that was reset, or whose link failed.",
    known_by="CUDA error 220 (uncorrectable NVLink error), or 226 (contained) from CUDA 12.8 on.",
    disproved_by="Links and ECC counters of all peers are clean and the program fails on other nodes too: then it "
    "reaches for memory of a peer that has ended.",
    counter_check="on each node of the job: dmesg | grep Xid; nvidia-smi nvlink -e; nvidia-smi -q -d ECC: no errors",
    fix=Fix(
        steps=(
            "find the origin: the first Xid (48, 74, 94, 144 to 150) of all nodes of the domain at that time",
            "kubectl cordon that node; read nvidia-smi nvlink -s, -e and -q; reset the GPU or restart the machine",
            "start the job again: its processes cannot go on after a contained error",
            "no Xid anywhere: a peer's process ended first, see its log",
        ),
        risk="a reset ends what runs on the GPU",
        rollback="kubectl uncordon NODE",
    ),
    verify=("nvidia-smi nvlink -s: every link at its speed", "the job passes the point where it failed"),
    sources=("CUDA runtime API: cudaErrorNvlinkUncorrectable (220), cudaErrorContained (226)",),
)
UNKNOWN = Code(
    name="CudaUnknownError",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.CudaFails,
    title="CUDA does not begin: the unified-memory part of the driver is not usable",
    meaning="NVML works and CUDA does not: nvidia_uvm is not loaded, its device file is missing or not permitted, or "
    "a suspend broke it.",
    known_by="CUDA error 999 or 304 at the first call.",
    disproved_by="/dev/nvidia-uvm can be opened in the container and the module is loaded.",
    counter_check="lsmod | grep nvidia_uvm; ls -l /dev/nvidia-uvm* on the host and in the container: present",
    fix=Fix(
        steps=(
            "modprobe nvidia_uvm; nvidia-modprobe -u -c=0 makes the device files",
            "load it at boot: /etc/modules-load.d",
            "after a suspend: rmmod nvidia_uvm and load it again",
        ),
        risk="unloading needs that no program uses CUDA",
        rollback="nothing to undo",
    ),
    verify=("a CUDA program runs: vectorAdd passes",),
    sources=("CUDA runtime API: cudaErrorUnknown (999), cudaErrorOperatingSystem (304)",),
)

# A code that nothing else speaks of is one more call that was refused.
_SAY_MORE = ("cuda.", "nccl.", "image.", "app.", "mps.", "driver.", "nvml.", "harmless.", "vgpu.", "dist.", "hami.")
_SAY_LESS = ("app.ended", "app.server_ended", "app.graph_or_event_failed", "harmless.computes_without")
BARE = WEAK - 0.01  # what somebody tells of it says more
GUESS = 0.5  # what else was said stands before it


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("cuda.ecc")):
        cause = "A program met an uncorrectable error of the device's memory."
        yield ECC.finding(cause, LIKELY, found, node=node, pod=pod)
    for node, pod, found in by_place(facts.said("cuda.nvlink_uncorrectable", "cuda.contained")):
        is_contained = all(said.message == "cuda.contained" for said in found)
        yield LINK.finding(
            "The GPU contained an error: of a peer's memory over NVLink, or of its own hardware."
            if is_contained
            else "A program met an error of an NVLink that could not be corrected.",
            POSSIBLE if is_contained else LIKELY,
            found,
            node=node,
            pod=pod,
        )
    for node, pod, found in by_place(facts.said("cuda.kernel_fault", "cuda.hip_fault", "cuda.assert_printed")):
        yield KERNEL.finding(f"CUDA reports {listed(values(found, 'what'))}.", POSSIBLE, found, node=node, pod=pod)
        if not facts.looked_at("dmesg", "kernel"):
            yield Unconfirmed(
                "the kernel log of the node at that time",
                "dmesg -T | grep -i -e xid -e nvrm",
                KERNEL.name,
                Layer.L0,
                node,
            )
    if segments := list(facts.said("context.expandable_segments")):
        for node, pod, found in by_place(facts.said("code.handle_refused")):
            cause = "Memory of expandable segments has no handle that another process could open."
            yield KERNEL.finding(cause, LIKELY, [*found, *segments[:1]], node=node, pod=pod)
    if not any(facts.said("cuda.kernel_fault", "nccl.mnnvl", "nccl.nvls_bind", "cuda.ecc")):
        for node, pod, found in by_place(facts.said("cuda.call_refused")):
            cause = f"CUDA refuses what the program asks for: {listed(values(found, 'what'))}."
            yield KERNEL.finding(cause, GUESS, found, node=node, pod=pod)
    if not any(said.message not in _SAY_LESS for said in facts.said(*_SAY_MORE)):
        for node, pod, found in by_place(facts.said("code.cuda_other", "app.graph_or_event_failed")):
            cause = f"CUDA answers a call of the program with an error: {listed(values(found, 'what'))}."
            yield KERNEL.finding(cause, BARE, found, node=node, pod=pod)
    for node, pod, found in by_place(
        # Of shareable memory it says that the container lacks a right (without_reason.py).
        said
        for said in facts.said("cuda.unknown", "cuda.count_unknown")
        if "cumem" not in said.origin.text.lower()
    ):
        yield UNKNOWN.finding(
            "CUDA fails at its first call without naming a reason; mostly nvidia_uvm is missing or not permitted.",
            POSSIBLE,
            found,
            node=node,
            pod=pod,
        )


RULE = Rule((KERNEL, ECC, LINK, UNKNOWN), find)
