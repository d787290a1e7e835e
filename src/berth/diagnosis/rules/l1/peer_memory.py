"""L1. Modules that stand on the driver do not load: nvidia-peermem, and those of GDRCopy, GPUDirect Storage and EFA."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value, values
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

PEERMEM = Code(
    name="PeerMemoryModuleFails",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.CollectiveSlow,
    title="nvidia-peermem does not load",
    meaning="GPUDirect RDMA is off: traffic between nodes goes through host memory. In the driver pod its container "
    "crash-loops.",
    known_by="The container or modprobe says so; the kernel names a symbol of the InfiniBand core that is missing or "
    "of another version.",
    disproved_by="`lsmod | grep nvidia_peermem` shows it, or DMA-BUF is used in its place.",
    counter_check="on NODE: lsmod | grep nvidia_peermem: there; or NCCL's log says that DMA-BUF is available",
    fix=Fix(
        steps=(
            "build the driver after the network driver (MOFED or DOCA), and again after each of its updates: "
            "delete the driver pod when the network driver is ready",
            "the kernel's own InfiniBand has no such symbol: use DMA-BUF (open modules, kernel 5.12 and newer)",
        ),
        risk="the GPU pods of the node have to leave while the driver is rebuilt",
        rollback="driver.rdma.enabled=false",
    ),
    verify=("on NODE: lsmod | grep nvidia_peermem", "NCCL log: via NET/IB/…/GDRDMA"),
    sources=("driver README, nvidia-peermem", "gpu-driver-container, reload_nvidia_peermem", "nv_peer_memory"),
)
COMPANION = Code(
    name="DriverCompanionFails",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.CollectiveSlow,
    title="a module that stands on the driver is not loaded (GDRCopy, GPUDirect Storage, EFA)",
    meaning="gdrdrv, nvidia-fs and efa_nv_peermem are built for one driver and one kernel. After a change of either "
    "they are missing or do not fit, and copies go through host memory.",
    known_by="modprobe does not find or does not get it in, the kernel names a symbol of the driver that is not as it "
    "was, or a library asks whether it is loaded.",
    disproved_by="`lsmod` shows the module, and its device file is there: then look at the container.",
    counter_check="on NODE: lsmod | grep -e gdrdrv -e nvidia_fs -e efa_nv_peermem: there, and its device file too "
    "(then look at the container)",
    fix=Fix(
        steps=(
            "build it again for the running kernel and driver: dkms autoinstall, or the package of this driver version",
            "packages of precompiled modules (kmod) and of DKMS do not mix: take the kind that the driver is of",
            "GPU Operator: gdrcopy.enabled or gds.enabled, so that it is built with the driver",
            "modprobe it, and have it loaded at boot (/etc/modules-load.d)",
        ),
        risk="none for what runs",
        rollback="rmmod it",
    ),
    verify=("on NODE: lsmod | grep -e gdrdrv -e nvidia_fs", "gdrcopy_sanity or gdscheck -p: supported"),
    sources=("NVIDIA GDRCopy, README and packages", "GPUDirect Storage troubleshooting guide", "amazon-eks-ami#2672"),
)


def find(facts: Facts) -> Iterator[Answer]:
    failed = list(facts.said("driver.peermem_failed"))
    waits = list(facts.said("driver.mofed_waited_for"))
    if failed:
        symbol = next((said.get("symbol") for said in failed if said.get("symbol")), "")
        reason = next((said.get("reason") for said in failed if said.get("reason")), "")
        yield PEERMEM.finding(
            f"The InfiniBand core does not offer {symbol} as it was when the module was built."
            if symbol
            else f"The module is refused{f': {reason}' if reason else ''}.",
            LIKELY,  # the module's packages and its builds go wrong with the same words
            [*failed, *waits],
        )
    elif waits:
        yield PEERMEM.finding("It waits for a network driver that does not come.", POSSIBLE, waits)
    if companions := list(facts.said("modprobe.companion_fails")):
        names = ", ".join(values(companions, "module")).replace("-", "_")
        symbol = next((found for said in companions if (found := value(said, "symbol"))), "")
        yield COMPANION.finding(
            f"{names} and the driver differ in {symbol}: one was changed after the other was built."
            if symbol
            else f"{names} is not loaded.",
            LIKELY,
            companions,
        )


RULE = Rule((PEERMEM, COMPANION), find)
