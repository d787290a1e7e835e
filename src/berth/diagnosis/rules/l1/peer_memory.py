"""L1. nvidia-peermem, which lets network cards reach GPU memory, does not load."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
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
    counter_check="on NODE: dmesg | grep -i peermem; grep ib_register_peer_memory_client /proc/kallsyms; ofed_info -s",
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
            ESTABLISHED if symbol else LIKELY,
            [*failed, *waits],
        )
    elif waits:
        yield PEERMEM.finding("It waits for a network driver that does not come.", POSSIBLE, waits)


RULE = Rule((PEERMEM,), find)
