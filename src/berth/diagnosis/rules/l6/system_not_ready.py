"""L6. CUDA 802: the devices are there and the system around them is not ready: Fabric Manager, or confidential "
"computing."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.heard import by_place
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

NOT_READY = Code(
    name="CudaSystemNotReady",
    layer=Layer.L6,
    cause_class="fabric",
    severity=Severity.Error,
    effect=Effect.CudaFails,
    title="CUDA does not begin: the NVLink fabric is not ready",
    meaning="On machines with NVSwitch CUDA waits for Fabric Manager. nvidia-smi looks healthy meanwhile; only the "
    "fabric state "
    "tells. Fabric Manager may be absent, of another version than the driver, or still at work.",
    known_by="A program says CUDA error 802, system not yet initialized.",
    disproved_by="Fabric State Completed and Status Success on every GPU, or a machine without NVSwitch.",
    counter_check="nvidia-smi -q | grep -A3 Fabric: State Completed, Status Success on all GPUs",
    fix=Fix(
        steps=(
            "nvidia-smi -q | grep -A3 Fabric: In Progress for minutes means that nobody registers the fabric",
            "systemctl status nvidia-fabricmanager; install it in exactly the driver's version and start it (driver "
            "container: it brings its own)",
            "HGX B200 and later: the InfiniBand modules mlx5_ib and ib_umad must be loaded",
            "a stall of seconds at boot: hold pods back until the state is Completed",
        ),
        risk="a restart of Fabric Manager ends CUDA programs on the node",
        rollback="start the old version again",
    ),
    verify=(
        'python -c "import torch; print(torch.cuda.is_available())": True',
        "nvidia-smi -q | grep -A3 Fabric: Completed on all GPUs",
    ),
    sources=("CUDA runtime API: cudaErrorSystemNotReady (802)", "NVIDIA Fabric Manager user guide"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("cuda.system_not_ready")):
        yield NOT_READY.finding(
            "CUDA waits for the NVLink fabric of the machine: Fabric Manager is absent, of another version, or not "
            "done.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
        if not facts.looked_at("fabricmanager-log", "fabric-log"):
            yield Unconfirmed(
                "the log of Fabric Manager",
                "journalctl -u nvidia-fabricmanager -b, or its container's log",
                NOT_READY.name,
                Layer.L1,
                node,
            )


RULE = Rule((NOT_READY,), find)
