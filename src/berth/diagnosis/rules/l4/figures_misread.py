"""L4. Figures of nodes, DCGM and its exporter that look wrong and are right."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Rule
from berth.diagnosis.trap import noted, trap
from berth.diagnosis.words import LIKELY, Effect, Layer
from berth.evidence.facts import Facts

CONSUMER = trap(
    "ProfilingNotOnThisCard",
    Layer.L4,
    Effect.BlindMonitoring,
    "this card has no profiling figures",
    meaning="DCGM serves profiling figures (DCGM_FI_PROF_*) for data centre cards and few others. On GeForce and older "
    "workstation cards the exporter leaves them out and serves all others.",
    known_by="Profiling is said to be unsupported, and the card is a GeForce or workstation card.",
    disproved_by="dcgmi profile --list names groups for this card.",
    counter_check="dcgmi profile --list -i 0: no group",
    sources=("DCGM user guide: profiling, supported products",),
    instead_of=("DcgmProfilingUnavailable", "ExporterFieldsRefused", "ExporterScrapeFails"),
)
TOTAL = trap(
    "AllocatableIsTotal",
    Layer.L4,
    Effect.CapacityMissing,
    "allocatable does not go down when a pod takes a GPU",
    meaning="Allocatable is what pods may have in all: the healthy devices. What is taken stands under Allocated "
    "resources of kubectl describe node, and the scheduler subtracts it.",
    known_by="Allocatable is told to stay the same although pods use devices.",
    disproved_by="More pods run with devices than allocatable says.",
    counter_check="kubectl describe node NODE: Allocated resources, nvidia.com/gpu",
    sources=("k8s-device-plugin issues 112, 213 and 452",),
    instead_of=("PluginTroubleTold",),
)
MEMORY_TIME = trap(
    "MemoryUtilisationIsTime",
    Layer.L4,
    Effect.BlindMonitoring,
    "memory utilisation is low although memory is full: it measures time",
    meaning="MEM_COPY_UTIL and utilization.memory say in which share of the time memory was read or written. How full "
    "it is stands in FB_USED and memory.used.",
    known_by="A low memory utilisation beside much memory in use.",
    disproved_by="FB_USED is low as well while the program holds memory.",
    counter_check="DCGM_FI_DEV_FB_USED / (FB_USED + FB_FREE): the share that is full",
    sources=("NVML documentation: nvmlUtilization_t", "dcgm-exporter issue 345"),
)
REPLICAS = trap(
    "SharedDevicesCounted",
    Layer.L4,
    Effect.CapacityMissing,
    "a node offers more GPUs than it has: they are shared",
    meaning="With time-slicing or MPS each GPU is offered as often as the configuration says. Capacity counts the "
    "shares; all of one GPU see its whole memory, and two shares may be of the same GPU.",
    known_by="nvidia.com/gpu.replicas above 1, or a configuration of replicas beside a capacity above the number of "
    "GPUs.",
    disproved_by="Nobody configured replicas.",
    counter_check="capacity = nvidia.com/gpu.count times nvidia.com/gpu.replicas",
    sources=("k8s-device-plugin, README: shared access", "GPU Operator documentation: time-slicing"),
    instead_of=("PluginTroubleTold",),
)
RESERVED = trap(
    "FramebufferReserved",
    Layer.L4,
    Effect.BlindMonitoring,
    "memory that is used and free is less than memory in all: the driver reserves some",
    meaning="DCGM tells what is used, free and reserved apart; older drivers counted the reserve as used. "
    "The sum of the three is the whole.",
    known_by="FB_USED and FB_FREE do not add up to the total.",
    disproved_by="With FB_RESERVED the sum is still not the total.",
    counter_check="FB_USED + FB_FREE + FB_RESERVED = FB_TOTAL",
    sources=("dcgm-exporter issue 136", "nvidia-smi manual: memory.reserved"),
)
HIDDEN = trap(
    "PartitionHidesWholeDevice",
    Layer.L4,
    Effect.BlindMonitoring,
    "in a container with a MIG device the whole GPU's memory may not be read",
    meaning="Figures of the whole device belong to all who hold a partition. Who was given one reads those of his "
    "partition; for the device the tools say Insufficient Permissions or N/A. CUDA works.",
    known_by="Memory of the device is told as Insufficient Permissions, on a GPU in MIG mode.",
    disproved_by="The device is not in MIG mode, or the partition itself cannot be opened.",
    counter_check="nvidia-smi in the container: memory stands in the table of MIG devices; a CUDA program runs",
    sources=("NVIDIA MIG user guide: monitoring", "nvidia-container-toolkit issue 842"),
    steps=("read the memory of the MIG device, or ask DCGM on the node; nothing else to mend",),
    instead_of=("NvmlNoPermission",),
)
NO_SAMPLES = trap(
    "NoProcessSamples",
    Layer.L4,
    Effect.BlindMonitoring,
    "NVML has no samples of processes, for nothing computed",
    meaning="The call returns what was sampled since the last time; on an idle GPU that is nothing, and the answer is "
    "Not Found.",
    known_by="The utilisation of processes is answered with Not Found.",
    disproved_by="It is so while a program computes on the GPU.",
    counter_check="nvidia-smi pmon -c 1 while a program runs: shows it",
    sources=("NVML documentation: nvmlDeviceGetProcessUtilization",),
)
WATCHED = trap(
    "PowerCapReported",
    Layer.L4,
    Effect.CollectiveSlow,
    "the monitor reports that the power limit holds the clocks",
    meaning="At full load a card runs at its limit; that is what the limit is for. The watch of DCGM tells it as a "
    "warning without anything to do.",
    known_by="DCGM_FR_CLOCK_THROTTLE_POWER or DCGM_FR_CLOCKS_EVENT_POWER alone.",
    disproved_by="HW Power Brake is active, or the limit is below that of like cards.",
    counter_check="nvidia-smi -q -d PERFORMANCE,POWER: SW Power Cap only, the limit is the card's default",
    sources=("DCGM, dcgm_errors.h", "NVSentinel issue 1708"),
)
PARTITION_FIGURES = trap(
    "PartitionsShareFigures",
    Layer.L4,
    Effect.BlindMonitoring,
    "clocks, heat and power are the same for all partitions of a GPU",
    meaning="These belong to the card, not to a part of it: DCGM repeats them for each MIG device.",
    known_by="Clocks, temperature or power that do not differ between MIG devices of a card.",
    disproved_by="They differ from those that nvidia-smi shows for the card.",
    counter_check="nvidia-smi -q -d CLOCK,TEMPERATURE,POWER -i PCI.0: the same figures",
    sources=("DCGM user guide: MIG", "dcgm-exporter issue 50"),
    instead_of=("ExporterScrapeFails",),
)
SHARERS_FIGURES = trap(
    "SharersShareFigures",
    Layer.L4,
    Effect.BlindMonitoring,
    "all pods that share a GPU show the same figures",
    meaning="DCGM measures the card. With time-slicing or MPS nothing tells the sharers apart: the exporter repeats "
    "the card's figures for each pod that holds a share, and their sum is too much.",
    known_by="The same power or utilisation for several pods of one shared GPU.",
    disproved_by="The pods hold different GPUs, or partitions of one.",
    counter_check="the label UUID of these series: the same GPU; nvidia-smi pmon -c 1 on the node: who computes",
    sources=("dcgm-exporter issues 582 and 587", "dcgm-exporter README: KUBERNETES_VIRTUAL_GPUS"),
    steps=("do not add them up; per process: nvidia-smi pmon; figures of one's own need partitions (MIG)",),
    instead_of=("ExporterScrapeFails", "ExporterPodsUnmapped", "ReplicasNotInEffect"),
)
COUNT_IS_PHYSICAL = trap(
    "GpuCountIsPhysical",
    Layer.L4,
    Effect.LabelsMissing,
    "gpu.count counts whole GPUs, partitioned or not",
    meaning="With strategy mixed the label nvidia.com/gpu.count stays the number of GPUs in the machine. How many "
    "partitions there are stands in nvidia.com/mig-<profile>.count; with single, gpu.count counts partitions.",
    known_by="gpu.count does not change when GPUs are partitioned.",
    disproved_by="nvidia.com/mig-<profile>.count differs from what nvidia-smi -L lists.",
    counter_check="kubectl get node NODE --show-labels | tr , '\\n' | grep 'mig-.*count': as nvidia-smi -L lists them",
    sources=("k8s-device-plugin issues 738 and 1501",),
    instead_of=("GpuLabelsStale", "NoGpuLabels"),
)
IDLE_POD = trap(
    "IdleGpuHasNoPod",
    Layer.L4,
    Effect.BlindMonitoring,
    "figures of an idle GPU name no pod",
    meaning="The exporter asks the kubelet which pod holds which device. A device that nobody holds has no pod, and "
    "its labels stay empty.",
    known_by="Empty labels on GPUs that no pod holds, and filled ones on the others.",
    disproved_by="A pod holds the GPU and its labels are empty.",
    counter_check="kubectl get pods -A -o wide on NODE: none asks for the device",
    sources=("dcgm-exporter, kubernetes mapping and issue 272",),
    instead_of=("ExporterPodsUnmapped",),
)
BUSY_TIME = trap(
    "UtilisationIsTime",
    Layer.L4,
    Effect.BlindMonitoring,
    "utilisation is high and the multiprocessors' activity low: they measure different things",
    meaning="GPU_UTIL is the share of time in which any kernel ran at all, one block of threads being enough. "
    "SM_ACTIVE and GR_ENGINE_ACTIVE count what was busy of the whole; they are the ones to judge a load by.",
    known_by="GPU_UTIL beside SM_ACTIVE or GR_ENGINE_ACTIVE, with different figures.",
    disproved_by="SM_ACTIVE is above GPU_UTIL for minutes.",
    counter_check="dcgmi dmon -e 203,1001,1002: 203 at least as high as 1002",
    sources=("DCGM user guide: profiling metrics", "NVML documentation: nvmlUtilization_t"),
)
NO_DATA = trap(
    "DcgmFieldsWithoutData",
    Layer.L4,
    Effect.BlindMonitoring,
    "DCGM's log has an error for each field that this card does not have",
    meaning="The host engine asks all cards for all fields that are watched and notes each answer 'no data' or 'not "
    "supported' as an error, at every scrape. All other fields are served.",
    known_by="GetLatestSample returned No data is available; nvmlSt 3 (not supported) from nvmlDeviceGetFieldValues.",
    disproved_by="Fields that every card has (temperature, power, memory) have no values either.",
    counter_check="dcgmi dmon -e 150,155,252 -c 1: values",
    sources=("DCGM issue 141", "gpu-monitoring-tools issue 146"),
    steps=("nothing to mend; take the fields out of the list of counters to be rid of the lines",),
)


def find(facts: Facts) -> Iterator[Answer]:
    for code, messages, cause in (
        (TOTAL, ("harmless.allocatable_is_total",), "Allocatable is all that is healthy, not what is free."),
        (MEMORY_TIME, ("harmless.memory_time",), "The figure is a share of time."),
        (
            REPLICAS,
            (
                "harmless.replicas_counted",
                "harmless.replicas_on_one_gpu",
                "harmless.memory_not_divided",
                "harmless.shares_no_faster",
            ),
            "Capacity counts shares, not GPUs.",
        ),
        (RESERVED, ("harmless.reserved_memory",), "The driver keeps some memory for itself."),
        (NO_SAMPLES, ("harmless.no_samples",), "Nothing computed on the GPU since the last time."),
        (WATCHED, ("harmless.power_watch",), "The card runs at its power limit."),
        (PARTITION_FIGURES, ("harmless.partition_figures",), "They are the card's."),
        (SHARERS_FIGURES, ("harmless.sharers_figures",), "They are the card's, for each who shares it."),
        (COUNT_IS_PHYSICAL, ("harmless.count_is_physical",), "It counts whole GPUs."),
        (IDLE_POD, ("harmless.idle_has_no_pod",), "No pod holds the GPU."),
        (BUSY_TIME, ("harmless.utilisation_is_time",), "The two measure different things."),
        (NO_DATA, ("harmless.dcgm_no_data",), "The card does not have the field."),
    ):
        yield from noted(facts, code, messages, cause)
    hidden = list(facts.said("harmless.mig_figures_hidden"))
    if hidden and (mode := list(facts.said("context.mig_mode"))):
        yield HIDDEN.finding("Figures of the whole GPU are not for the holder of a part.", LIKELY, [*hidden, *mode[:1]])
    consumer = list(facts.said("harmless.consumer_card", "context.card_number"))
    asked = ("dcgm.profiling_absent", "dcgm.profiling_module_state", "context.profiling_asked",
             "context.memory_fields_missing")  # fmt: skip
    if consumer and (refused := list(facts.said(*asked))):
        yield CONSUMER.finding("DCGM has no profiling figures for this model.", LIKELY, [*refused, *consumer[:1]])


RULE = Rule(
    (
        CONSUMER,
        TOTAL,
        MEMORY_TIME,
        REPLICAS,
        RESERVED,
        HIDDEN,
        NO_SAMPLES,
        WATCHED,
        PARTITION_FIGURES,
        SHARERS_FIGURES,
        COUNT_IS_PHYSICAL,
        IDLE_POD,
        BUSY_TIME,
        NO_DATA,
    ),
    find,
)
