"""L6. Figures that two tools tell differently, and how a program uses a GPU that is well."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.trap import noted, trap
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

IN_USE = 128 * 2**20  # bytes: more than the driver itself takes

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

SMALL = trap(
    "SmallMessagesSlow",
    Layer.L6,
    Effect.CollectiveSlow,
    "a collective of few bytes shows hardly any bandwidth",
    meaning="Below some hundred KiB the time is that of starting the call, whatever it carries; bandwidth is bytes by "
    "time and tends to 0. What the links give is seen from some hundred MiB on.",
    known_by="busbw near 0 for small sizes in a table of nccl-tests.",
    disproved_by="busbw is low for the largest sizes as well.",
    counter_check="all_reduce_perf -b 512M -e 8G -f 2 -g 8: the busbw of these sizes",
    sources=("nccl-tests, doc/PERFORMANCE.md",),
)
LOADS = trap(
    "ProbedBeforeLoaded",
    Layer.L6,
    Effect.ProgramFails,
    "a probe is refused as long as the model is being loaded",
    meaning="A server listens once its model is in memory. Until then probes are refused and the kubelet writes an "
    "event for each.",
    known_by="A failed startup or readiness probe, and the pod is said to be ready later.",
    disproved_by="The kubelet kills the container before it is ready: then give the probe more time.",
    counter_check="kubectl get pod POD -n NAMESPACE: Ready, RESTARTS does not grow",
    sources=("Kubernetes documentation: startup probes",),
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


def find(facts: Facts) -> Iterator[Answer]:
    yield from noted(facts, SMALL, ("harmless.small_messages",), "Few bytes take as long as more.", POSSIBLE)
    yield from noted(facts, LOADS, ("harmless.loads_then_ready",), "It was loading.", POSSIBLE)
    yield from noted(
        facts, ONE_PARTITION, ("harmless.one_partition",), "CUDA shows a process one MIG device, whatever it was given."
    )
    differs = list(facts.said("context.memory_differs"))
    tools = [said for said in facts.said("context.two_tools") if differs]
    if tools or any(facts.said("harmless.memory_counted")):
        counted = [*facts.said("harmless.memory_counted"), *tools]
        yield COUNTED.finding("The tools count different things.", LIKELY, counted)
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


RULE = Rule((ONE_PARTITION, COUNTED, VERSIONS, PROCESSES, TAKES_ALL, FIRST_CALL, ORDER, WAITS, SMALL, LOADS), find)
