"""L6. Lines of NCCL, frameworks and launchers that sound like errors."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.trap import noted, trap
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.infiniband import RdmaPort
from berth.evidence.formats.nccl_log import NcclHcas

_CHATTER = (
    "tf.numa_node",
    "tf.factory",
    "dist.no_ipv6",
    "dist.device_guessed",
    "harmless.torch",
    "harmless.tensorflow",
    "harmless.serving",
    "harmless.hami",
    "harmless.program_chatter",
)
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

CHATTER = trap(
    "FrameworkStartupNoise",
    Layer.L6,
    Effect.ProgramFails,
    "lines of the framework that sound like errors",
    meaning="TensorFlow says on every machine that a NUMA node is -1 and that factories are registered twice; JAX "
    "names the backends that are not there; PyTorch tries IPv6 first and goes on with IPv4, guesses a rank's GPU where "
    "nobody named it, and complains of a process group that nobody closed; servers name the faster ways that this "
    "machine does not have; HAMi's library tells of its start and end. All go on.",
    known_by="These very lines.",
    disproved_by="The framework lists no GPU afterwards, its rendezvous fails in the end, or two ranks use one GPU.",
    counter_check='python -c "import torch; print(torch.cuda.device_count())": the GPUs of the pod',
    sources=(
        "TensorFlow, stream executor",
        "PyTorch, torch/csrc/distributed/c10d",
        "JAX, xla_bridge.py",
        "vLLM, distributed/device_communicators",
        "HAMi issues 48 and 916",
    ),
    verify=("the program computes on the GPU",),
)

NCCL = trap(
    "NcclOptionalAbsent",
    Layer.L6,
    Effect.CollectiveSlow,
    "NCCL names plugins and abilities that this machine does not have",
    meaning="It looks for network, tuner and profiler plugins and uses its own where there are none; it says when "
    "switches cannot multicast. A plugin is wanted only where the network needs one (EFA, SHARP, some clouds).",
    known_by="A libnccl-net, -tuner or -profiler library that is not found, or an ability that is not available.",
    disproved_by="The network is one that needs a plugin, or the job ends with an error after it.",
    counter_check="NCCL_DEBUG=INFO: Using network IB or Socket, then Init COMPLETE",
    sources=("NCCL, src/plugin and issues 162, 259 and 1231",),
    verify=("the job trains",),
)

LAUNCHER = trap(
    "LauncherNoise",
    Layer.L6,
    Effect.ProgramFails,
    "Open MPI warns of transports that it then does not use",
    meaning="It tries every transport that was built in, also those that the container may not use, and falls back. "
    "NCCL does its own traffic.",
    known_by="Warnings of openib, CMA (Read -1, errno = 1) or X authority.",
    disproved_by="mpirun ends before the program starts.",
    counter_check="mpirun -np 2 hostname: both names",
    sources=("Open MPI FAQ: openib, shared memory",),
    steps=("nothing to mend; -mca btl ^openib -mca btl_vader_single_copy_mechanism none for silence",),
)

TOO_FAR = trap(
    "GdrOffByDistance",
    Layer.L6,
    Effect.CollectiveSlow,
    "NCCL does not use GPUDirect RDMA between a card and a network device that are far apart",
    meaning="It measures the way between both and uses GPUDirect RDMA up to a limit, mostly one PCIe switch or root "
    "complex. Beyond it, copies through host memory are the faster way. Nothing is missing on the node.",
    known_by="GPU Direct RDMA Disabled for a GPU and an HCA, with a distance above the limit.",
    disproved_by="nvidia-smi topo -m shows both below one switch, or NCCL_NET_GDR_LEVEL sets a lower limit.",
    counter_check="nvidia-smi topo -m: NODE or SYS between the GPU and that HCA; another HCA is nearer",
    sources=("NCCL user guide: NCCL_NET_GDR_LEVEL", "NCCL issue 1151"),
    steps=("nothing to mend; NCCL_NET_GDR_LEVEL=PHB or SYS to try the direct way all the same",),
    instead_of=("GdrOffByOldNccl",),
)

PEERS_ON = trap(
    "PeerAccessAlreadyOn",
    Layer.L6,
    Effect.ProgramFails,
    "a call for peer access is told that it is on already",
    meaning="NCCL and frameworks ask for access to a peer's memory without looking whether they have it, and take this "
    "answer for success. cuda-gdb, compute-sanitizer and tracers print it as an error of the API.",
    known_by="cudaErrorPeerAccessAlreadyEnabled, or 704 (0x2c0) from cudaDeviceEnablePeerAccess.",
    disproved_by="The program ends with this very error: then it has to clear it (cudaGetLastError).",
    counter_check="the program runs to its end without the tool, and in it after the warnings",
    sources=("CUDA runtime API: cudaDeviceEnablePeerAccess", "NCCL issues 68 and 258"),
    steps=("nothing to mend; compute-sanitizer --report-api-errors explicit leaves such calls out",),
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
    yield from noted(
        facts,
        NCCL,
        ("harmless.nccl_plugin_absent", "harmless.nccl_optional"),
        "NCCL goes on with what it brings.",
        unless=("efa.", "nccl.plugin_failed", "nccl.nvls_bind"),
    )
    yield from noted(
        facts, TOO_FAR, ("harmless.gdr_by_distance",), "The two are too far apart.", unless=("nccl.gdr_disabled",)
    )
    yield from noted(facts, PEERS_ON, ("harmless.peer_access_on",), "Peer access was asked for twice.")
    yield from noted(facts, LAUNCHER, ("harmless.mpi",), "It goes on without, or with another transport.")


RULE = Rule((NO_RDMA, RAS, CHATTER, NCCL, LAUNCHER, TOO_FAR, PEERS_ON), find)
