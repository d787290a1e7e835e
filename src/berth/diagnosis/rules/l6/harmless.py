"""L6. Lines that look like a fault and are none."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.trap import noted, trap
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.infiniband import RdmaPort
from berth.evidence.formats.nccl_log import NcclHcas
from berth.evidence.formats.smi_facts import DeviceSeen

IN_USE = 128 * 2**20  # bytes: more than the driver itself takes
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
ONE_PARTITION = trap(
    "OnePartitionPerProcess",
    Layer.L6,
    Effect.ProgramFails,
    "a process sees one MIG device although its container has several",
    meaning="CUDA enumerates one MIG device in a process, the first in CUDA_VISIBLE_DEVICES. Several partitions are "
    "for several processes; they do not add up to a larger device, and NCCL does not join them.",
    known_by="Several MIG devices are asked for, and the program counts one.",
    disproved_by="nvidia-smi -L in the container lists only one MIG device.",
    counter_check="nvidia-smi -L in the container: all of them; each works with CUDA_VISIBLE_DEVICES=MIG-...",
    sources=("NVIDIA MIG user guide: device enumeration",),
    steps=("one process for each MIG device, or one larger profile; nothing else to mend",),
)
COUNTED = trap(
    "MemoryCountedDifferently",
    Layer.L6,
    Effect.BlindMonitoring,
    "two tools name different figures for memory in use",
    meaning="nvidia-smi counts whole processes with their contexts (some hundred MiB each) and the driver's reserve; "
    "a framework counts its tensors, and mem_get_info what is free for this process.",
    known_by="A figure of a framework or of CUDA beside another of nvidia-smi.",
    disproved_by="The difference grows while the program only repeats itself.",
    counter_check="nvidia-smi before and after the program: the same",
    sources=("PyTorch documentation: CUDA memory management", "nvidia-smi manual: memory"),
)
VERSIONS = trap(
    "CudaVersionsDiffer",
    Layer.L6,
    Effect.CudaFails,
    "nvidia-smi and nvcc name different CUDA versions",
    meaning="nvidia-smi shows the newest CUDA that the driver can serve, in a container that of the host; nvcc shows "
    "the toolkit that is installed, and frameworks bring a third. They may differ as long as the driver's is not older "
    "than the program's.",
    known_by="The version beside the driver's, and that of nvcc.",
    disproved_by="The driver's is the older one, and programs say that it is insufficient.",
    counter_check="the version in nvidia-smi is at least that of nvcc and of torch.version.cuda",
    sources=("CUDA compatibility guide",),
)
OTHER_NVML = trap(
    "NvmlOfAnotherPlace",
    Layer.L6,
    Effect.BlindMonitoring,
    "nvidia-smi was started with a library that is not the driver's",
    meaning="A library of the same name lies in the directory or on the search path: a hook that counts calls, or the "
    "stub of the CUDA toolkit. nvidia-smi compares versions with it and complains; the driver is in order.",
    known_by="A directory of stubs or of a hooking library beside the complaint.",
    disproved_by="It says the same with an empty LD_LIBRARY_PATH and LD_PRELOAD, in another directory.",
    counter_check="env -u LD_LIBRARY_PATH -u LD_PRELOAD nvidia-smi, in /: prints its table",
    sources=("CUDA installation guide: stub libraries", "ld.so(8)"),
    steps=("take the directory out of the search path for the tools of the driver",),
    instead_of=("DriverVersionsDiffer",),
)
BUILDING = trap(
    "NoGpuWhileBuilding",
    Layer.L6,
    Effect.NoDeviceInContainer,
    "there is no GPU while an image is built, and there need be none",
    meaning="A build runs without devices and without the driver's libraries. What looks for them then says that they "
    "are missing; the container that is started later has them.",
    known_by="libcuda or the GPU is missed during a build, and the image works when it runs.",
    disproved_by="It is missed in the container that runs, too.",
    counter_check="docker run --gpus all IMAGE nvidia-smi: a table",
    sources=("Docker documentation: builds", "julia-ngc issue 26"),
    steps=("nothing to mend; what must compile for a card names it (TORCH_CUDA_ARCH_LIST and the like)",),
    instead_of=("NoGpuInContainer", "ImageLibraryMissing"),
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

NOTHING_TO_WATCH = trap(
    "MonitorFindsNoGpu",
    Layer.L6,
    Effect.BlindMonitoring,
    "a program that can watch GPUs finds no NVIDIA driver and goes on without",
    meaning="Monitors, launchers and loggers look for NVML or nvidia-smi wherever they run. On a machine or in a pod "
    "that is not to use a GPU there is neither, and the warning means no more than that.",
    known_by="The program says that it goes on without GPU figures, or who asks has no NVIDIA card.",
    disproved_by="The pod asks for nvidia.com/gpu, or lspci -d 10de: lists a card.",
    counter_check="lspci -d 10de: on NODE: nothing; or the pod asks for no GPU",
    sources=("prmon issue 309", "OpenLinkHub issue 459"),
    steps=("nothing to mend; most such programs have an option that leaves GPUs out",),
    instead_of=("StartedWithoutNvidiaRuntime", "NoGpuInContainer"),
)

TAKES_ALL = trap(
    "FrameworkTakesAllMemory",
    Layer.L6,
    Effect.MemoryShort,
    "a framework takes nearly all memory of the GPU at its start",
    meaning="TensorFlow, JAX and vLLM reserve most of the memory at once and divide it themselves. What nvidia-smi "
    "shows is the reservation, not the need.",
    known_by="Memory is in use at once, on all visible devices, and nothing fails for it.",
    disproved_by="The program ends with out of memory.",
    counter_check="the framework's own figure: tf.config.experimental.get_memory_info('GPU:0')",
    sources=("TensorFlow guide: limiting GPU memory growth", "JAX documentation: GPU memory allocation"),
    steps=(
        "to share a device: TF_FORCE_GPU_ALLOW_GROWTH=true, XLA_PYTHON_CLIENT_PREALLOCATE=false, "
        "--gpu-memory-utilization",
    ),
)
FIRST_CALL = trap(
    "FirstCallSlow",
    Layer.L6,
    Effect.ProgramFails,
    "the first use of the GPU takes long, all later ones do not",
    meaning="The first call makes the context, loads the libraries and compiles what the program brings for no such "
    "card. That is done once a process, or once a card where the cache is kept.",
    known_by="Only the first call is slow.",
    disproved_by="Later calls are slow, too.",
    counter_check="the same call twice in one process: the second is quick",
    sources=("CUDA C++ programming guide: lazy loading, just-in-time compilation",),
    steps=("keep the cache over starts: CUDA_CACHE_PATH on a volume, CUDA_CACHE_MAXSIZE=4294967296",),
)

ORDER = trap(
    "DeviceOrderDiffers",
    Layer.L6,
    Effect.ProgramFails,
    "CUDA numbers the GPUs in another order than nvidia-smi",
    meaning="CUDA counts the fastest device first, nvidia-smi by the address on the bus. With different models, and "
    "within CUDA_VISIBLE_DEVICES, number 0 of the one is not number 0 of the other.",
    known_by="A program works on another number than nvidia-smi shows, on a machine with several GPUs.",
    disproved_by="CUDA_DEVICE_ORDER=PCI_BUS_ID is set and the numbers still differ.",
    counter_check="CUDA_DEVICE_ORDER=PCI_BUS_ID and the same program: the numbers agree",
    sources=("CUDA C++ programming guide: CUDA_DEVICE_ORDER", "nvidia-smi manual: -i"),
    steps=("CUDA_DEVICE_ORDER=PCI_BUS_ID, or name devices by UUID",),
)
WAITS = trap(
    "GpuWaitsForData",
    Layer.L6,
    Effect.BlindMonitoring,
    "the GPU is little used because it waits for data",
    meaning="Between two steps the processor reads and prepares the next batch. A GPU that is quick with its part "
    "shows low or jumping utilisation and is well.",
    known_by="Utilisation is low or jumps while the program runs, and data is loaded or prepared.",
    disproved_by="The same program is slow with data that is in memory already, or clocks are low for heat or power.",
    counter_check="top in the pod: the loader's processes are busy; nvidia-smi -q -d PERFORMANCE: no HW Slowdown",
    sources=("PyTorch performance tuning guide: data loading",),
    steps=("more loader workers and CPUs for the pod, data on a faster volume, a larger batch",),
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
    yield from noted(
        facts, ONE_PARTITION, ("harmless.one_partition",), "CUDA shows a process one MIG device, whatever it was given."
    )
    differs = list(facts.said("context.memory_differs"))
    tools = [said for said in facts.said("context.two_tools") if differs]
    if tools or any(facts.said("harmless.memory_counted")):
        counted = [*facts.said("harmless.memory_counted"), *tools]
        yield COUNTED.finding("The tools count different things.", LIKELY, counted)
    refused = [said.origin.text for said in facts.said("nvml.version_mismatch")]
    # Between the kernel module and any library it is a fault, wherever the library lies.
    if refused and all("between nvidia-smi and NVML" in text for text in refused):
        cause = "Another library of that name is found before the driver's."
        yield from noted(facts, OTHER_NVML, ("harmless.nvml_replaced",), cause, unless=("driver.api_mismatch",))
    yield from noted(facts, BUILDING, ("harmless.build_without_gpu",), "A build has no GPU.")
    full = ("cuda.out_of_memory", "cuda.startup_memory_short", "cuda.other_process")
    yield from noted(
        facts, TAKES_ALL, ("harmless.takes_all_memory",), "It reserves what it may need.", POSSIBLE, unless=full
    )
    yield from noted(
        facts,
        FIRST_CALL,
        ("harmless.first_call_slow",),
        "The start is paid once.",
        POSSIBLE,
        unless=("image.compiled_at_start",),
    )
    yield from noted(facts, ORDER, ("harmless.order_differs",), "The two count in different orders.", POSSIBLE)
    yield from noted(
        facts,
        WAITS,
        ("harmless.waits_for_data",),
        "It waits for the next batch.",
        POSSIBLE,
        unless=("host.hw_slowdown", "kernel.xid", "nccl."),
    )
    without = list(facts.said("harmless.monitoring_off"))
    missing = list(facts.said("runtime.no_smi", "runtime.no_nvml"))
    told = list(facts.said("context.no_nvidia_here"))
    if (without or (missing and told)) and not facts.of(DeviceSeen):
        certain = LIKELY if told else POSSIBLE
        yield NOTHING_TO_WATCH.finding("There is no GPU to watch.", certain, [*without, *missing, *told[:1]])
    yield from noted(facts, LAUNCHER, ("harmless.mpi",), "Open MPI goes on with another transport.")
    yield from noted(
        facts,
        VERSIONS,
        ("harmless.cuda_versions_differ", "harmless.cuda_of_the_host", "harmless.cuda_expected"),
        "The two tools name versions of two things.",
        unless=("cuda.driver_insufficient", "cuda.ptx_too_new"),
    )
    unseen = [
        device
        for device in facts.of(DeviceSeen)
        if device.processes == () and (device.gpu_percent or 0) > 0 and (device.memory_used_bytes or 0) >= IN_USE
    ]
    told = list(facts.said("smi.processes_unseen", "smi.processes_none_here", "harmless.pids_of_host"))
    if unseen or told:
        yield PROCESSES.finding(
            "The GPU is busy and no process is listed: that is so inside containers.",
            LIKELY,
            [*(device.quote("gpu_percent", "memory_used_bytes") for device in unseen), *told],
        )


RULE = Rule(
    (
        NO_RDMA,
        RAS,
        CHATTER,
        NCCL,
        LAUNCHER,
        ONE_PARTITION,
        COUNTED,
        VERSIONS,
        OTHER_NVML,
        BUILDING,
        PROCESSES,
        NOTHING_TO_WATCH,
        TAKES_ALL,
        FIRST_CALL,
        ORDER,
        WAITS,
        TOO_FAR,
        PEERS_ON,
    ),
    find,
)
