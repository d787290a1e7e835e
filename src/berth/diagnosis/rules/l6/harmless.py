"""L6. Lines that look like a fault and are none."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.infiniband import RdmaPort
from berth.evidence.formats.nccl_log import NcclHcas
from berth.evidence.formats.smi_facts import DeviceSeen

_NOTHING = Fix(steps=("nothing to mend",), risk="none", rollback="nothing to undo")
IN_USE = 128 * 2**20  # bytes: more than the driver itself takes
_CHATTER = ("tf.numa_node", "tf.factory", "dist.no_ipv6", "dist.device_guessed")
_RDMA_LAYERS = ("IB", "RoCE")

NO_RDMA = Code(
    name="NoRdmaOnMachine",
    layer=Layer.L6,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.CollectiveSlow,
    title="NCCL finds no RDMA device, and the machine has none",
    meaning="On machines without InfiniBand or RoCE NCCL says so and uses sockets. It is a fault only where the node "
    "has RDMA devices "
    "or the other ranks use them.",
    known_by="NET/IB : No device found, and nothing shows an RDMA device.",
    disproved_by="ibstat on the node, or another rank of the job, shows RDMA devices.",
    counter_check="ls /sys/class/infiniband on the node: empty",
    fix=Fix(
        steps=("nothing to mend; with RDMA devices on the node: ask for them in the pod, and libibverbs in the image",),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("the job runs over sockets",),
    sources=("NCCL, src/transport/net_ib",),
    is_trap=True,
)
RAS = Code(
    name="RasPortTaken",
    layer=Layer.L6,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.BlindMonitoring,
    title="NCCL's RAS cannot listen on its port: another job has it",
    meaning="Two jobs in one network namespace want localhost:28028. The job is not touched; only the status query "
    "of the second is missing.",
    known_by="RAS failed to establish a client listening socket.",
    disproved_by="The job ends with another error.",
    counter_check="the job trains",
    fix=Fix(
        steps=("nothing to mend; NCCL_RAS_ADDR with another port for each job where the query is wanted",),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("the job trains",),
    sources=("NCCL, src/ras",),
    is_trap=True,
)
CHATTER = Code(
    name="FrameworkStartupNoise",
    layer=Layer.L6,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.ProgramFails,
    title="start-up lines of the framework that sound like errors",
    meaning="TensorFlow says on every machine that a NUMA node is -1 and that factories are registered twice; PyTorch "
    "tries IPv6 first, warns where there is none, and goes on with IPv4; it guesses a rank's GPU where nobody named "
    "it.",
    known_by="These very lines.",
    disproved_by="The framework lists no GPU afterwards, its rendezvous fails in the end, or two ranks use one GPU.",
    counter_check="python -c \"import tensorflow as tf; print(tf.config.list_physical_devices('GPU'))\": the GPUs",
    fix=_NOTHING,
    verify=("the program computes on the GPU",),
    sources=("TensorFlow, stream executor", "PyTorch, torch/csrc/distributed/c10d/socket.cpp"),
    is_trap=True,
)

PROCESSES = Code(
    name="ProcessesNotListed",
    layer=Layer.L6,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.BlindMonitoring,
    title="nvidia-smi lists no process although the GPU works",
    meaning="Inside a container the driver cannot name processes: it knows those of the host's PID namespace only. The "
    "list is empty there, memory and utilisation are right.",
    known_by="A device with memory in use and utilisation above 0, and an empty list of processes.",
    disproved_by="The list is empty on the host too, and memory stays in use when nothing computes.",
    counter_check="nvidia-smi on the host at the same time: the processes are listed",
    fix=Fix(
        steps=("nothing to mend; ask on the host, or give the one pod that has to see them hostPID: true",),
        risk="hostPID lets a pod see and signal all processes of the node",
        rollback="take hostPID out again",
    ),
    verify=("nvidia-smi on the host lists the program",),
    sources=("nvidia-smi manual: processes", "NVIDIA Container Toolkit documentation: troubleshooting"),
    is_trap=True,
)


def find(facts: Facts) -> Iterator[Answer]:
    absent = list(facts.said("nccl.no_ib"))
    has_rdma = (
        any(layer in _RDMA_LAYERS for one in facts.of(NcclHcas) for _, _, layer in one.devices)
        or bool(facts.of(RdmaPort))
        or any(facts.said("host.rdma_present"))
    )
    if absent and not has_rdma and not any(facts.said("nccl.device_not_opened", "nccl.privilege")):
        yield NO_RDMA.finding(
            "NCCL finds no RDMA device and uses sockets; nothing shows that the machine has one.", LIKELY, absent
        )
    if ras := list(facts.said("nccl.ras_bind")):
        yield RAS.finding("Another process in the same network namespace has the port.", ESTABLISHED, ras)
    if chatter := list(facts.said(*_CHATTER)):
        yield CHATTER.finding("Lines of this kind come on healthy machines.", ESTABLISHED, chatter)
    unseen = [
        device
        for device in facts.of(DeviceSeen)
        if device.processes == () and (device.gpu_percent or 0) > 0 and (device.memory_used_bytes or 0) >= IN_USE
    ]
    told = list(facts.said("smi.processes_unseen"))
    if unseen or told:
        yield PROCESSES.finding(
            "The GPU is busy and no process is listed: that is so inside containers.",
            LIKELY,
            [*(device.quote("gpu_percent", "memory_used_bytes") for device in unseen), *told],
        )


RULE = Rule((NO_RDMA, RAS, CHATTER, PROCESSES), find)
