"""L4. Lines of operator, discovery and DCGM, and capacities, that look wrong and are right."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Rule
from berth.diagnosis.trap import noted, trap
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer
from berth.evidence.facts import Facts

COMPLETED = trap(
    "ValidatorPodCompleted",
    Layer.L4,
    Effect.OperandsHeldBack,
    "a validator pod is Completed and 0/1 ready: it has passed",
    meaning="The pods of the CUDA and plugin validation run one test and end. Completed is success; they are not "
    "meant to run on.",
    known_by="nvidia-cuda-validator or nvidia-device-plugin-validator with status Completed.",
    disproved_by="Status Error or Init:Error, or nvidia-operator-validator not Running.",
    counter_check="kubectl get pods -n gpu-operator -l app=nvidia-operator-validator: Running",
    sources=("GPU Operator documentation: verification",),
)
CONFLICT = trap(
    "ConflictRetried",
    Layer.L4,
    Effect.OperandsHeldBack,
    "a controller wrote an object that had changed meanwhile, and tries again",
    meaning="Two writers of one object: the API server refuses the older one, the controller reads it anew. The line "
    "is logged as an error and settles by itself.",
    known_by="The object has been modified; please apply your changes to the latest version.",
    disproved_by="It comes for one object several times a minute for hours: then two controllers undo each other.",
    counter_check="kubectl get clusterpolicy: ready; the line is not there a minute later",
    sources=("Kubernetes API concepts: resource versions",),
)
DRY_RUN = trap(
    "DryRunWithoutCrds",
    Layer.L4,
    Effect.OperandsHeldBack,
    "a dry run of Helm does not know the kinds that the chart would install",
    meaning="Helm installs what is in the crds/ folder of a chart before the rest, and in a dry run not at all: the "
    "API server then does not know ClusterPolicy and its like. The installation itself works.",
    known_by="helm with --dry-run ends with no matches for kind.",
    disproved_by="The same command without --dry-run ends like that, too.",
    counter_check="helm show crds CHART: the kind is among them",
    sources=("Helm documentation: custom resource definitions", "GPU Operator issue 383"),
    instead_of=("OperatorWantsAbsentApi",),
)
TLS = trap(
    "TlsHandshakeEof",
    Layer.L4,
    Effect.BlindMonitoring,
    "a probe or load balancer closed a connection before TLS began",
    meaning="Whoever only looks whether the port is open closes it again; the server logs the handshake that did not "
    "come.",
    known_by="TLS handshake error with EOF or connection reset.",
    disproved_by="Calls of the API server to the webhook fail.",
    counter_check="kubectl get events -A | grep -i webhook: nothing",
    sources=("Go, net/http server",),
)
OPTIONAL = trap(
    "MetricsNotOnThisMachine",
    Layer.L4,
    Effect.BlindMonitoring,
    "DCGM or its exporter leaves out what the machine does not have",
    meaning="Switches, links, or processors of the vendor are not there on most machines; the module or group is left "
    "out, and all others are served.",
    known_by="Not collecting NvSwitch, NvLink or CPU metrics; module sysmon is for other processors.",
    disproved_by="The machine has what is left out: HGX boards have switches.",
    counter_check="lspci -d 10de: | grep -i -e bridge -e switch: nothing; curl -s NODE:9400/metrics: GPU figures",
    sources=("dcgm-exporter, server start", "DCGM issue 149"),
)
NOT_HERE = trap(
    "DiagnosticNotForThisSetup",
    Layer.L4,
    Effect.BlindMonitoring,
    "a diagnostic is skipped because it is not meant for this setup",
    meaning="DCGM's diagnostics want whole GPUs, so not those in MIG mode, and skip tests for models that they have no "
    "limits for. Skipped is neither passed nor failed.",
    known_by="A test is skipped by is_allowed, or refused for MIG.",
    disproved_by="A test of the same run says Fail.",
    counter_check="dcgmi diag -r 1: Pass or Skip only",
    sources=("DCGM user guide: diagnostics", "DCGM issue 55"),
)
DISCOVERY = trap(
    "DiscoveryWaits",
    Layer.L4,
    Effect.LabelsMissing,
    "feature discovery sleeps between two looks",
    meaning="It writes labels, then sleeps until the next look; the number is in nanoseconds. On other machines than "
    "Tegra it also says that they are no Tegra.",
    known_by="Sleeping for a number of ten or more digits; no Tegra release.",
    disproved_by="The node has no nvidia.com/gpu.* labels.",
    counter_check="kubectl get node NODE --show-labels | tr , '\\n' | grep -c nvidia.com/gpu: above 0",
    sources=("gpu-feature-discovery, main loop",),
)
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
    instead_of=("DcgmProfilingUnavailable", "ExporterFieldsRefused"),
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
UNWANTED = trap(
    "OperandNotWantedHere",
    Layer.L4,
    Effect.OperandsHeldBack,
    "a component of the operator runs nowhere because nothing here wants it",
    meaning="A driver that is installed on the host is used as it is: the driver's DaemonSet stays at 0 or its pod "
    "ends. The MIG manager runs only on cards that can be partitioned, components for virtual GPUs only where these "
    "are configured.",
    known_by="The driver is pre-installed, or a DaemonSet of an optional component wants 0 pods.",
    disproved_by="nvidia-smi on the host does not answer, or the node has cards with MIG and is to be partitioned.",
    counter_check="nvidia-smi on NODE: answers; kubectl get pods -n gpu-operator: the others run",
    sources=("GPU Operator documentation: pre-installed drivers", "gpu-operator issues 381 and 2150"),
)
IMEX = trap(
    "ImexIdleWithoutDomain",
    Layer.L4,
    Effect.FabricDown,
    "IMEX is called unhealthy on a node where no domain is in use",
    meaning="With the DRA driver an IMEX daemon runs only as long as a ComputeDomain has a workload on the node. In "
    "between DCGM finds none and says that it is not ready; NVLink is as it was.",
    known_by="The IMEX daemon is not READY, and the node is idle or has no ComputeDomain.",
    disproved_by="Pods of a ComputeDomain run on the node, or links are down.",
    counter_check="kubectl get computedomains -A: none on NODE; nvidia-smi nvlink -s: all links up",
    sources=("aicr issue 2641", "NVIDIA DRA driver: ComputeDomain"),
    instead_of=("ComputeDomainNotReady",),
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
ALERT = trap(
    "AlertWithoutFault",
    Layer.L4,
    Effect.BlindMonitoring,
    "an alert fires although what it watches is as it was set",
    meaning="Rules of alerts look at one figure and know nothing of the configuration: a component that is switched "
    "off on purpose has a count of 0, and a threshold fits one model and not another.",
    known_by="Who was called says that the alert is a false positive.",
    disproved_by="Pods wait for GPUs, or the kernel log has an Xid.",
    counter_check="kubectl get clusterpolicy -o yaml: the component is disabled; kubectl get pods -n gpu-operator: the "
    "others run",
    sources=("gpu-operator issue 2237",),
    steps=("narrow the alert's rule, or silence it for these nodes",),
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
UNNAMED = trap(
    "DeviceNameUnknown",
    Layer.L4,
    Effect.BlindMonitoring,
    "a component has no name for the device, and needs none",
    meaning="The list of PCI names that was built into it is older than the device. It goes on with the number.",
    known_by="WARNING: unable to get device name.",
    disproved_by="The component ends with an error after it.",
    counter_check="the next lines of its log: it goes on",
    sources=("go-nvlib, pkg/nvpci",),
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
OPERATOR_NOTES = trap(
    "OperatorNotes",
    Layer.L4,
    Effect.BlindMonitoring,
    "operator and discovery note what this cluster does not use",
    meaning="Virtual machines, Kata, monitoring of a kind that is not installed, a network device that tells no speed: "
    "they say so and go on.",
    known_by="These lines alone.",
    disproved_by="ClusterPolicy is not ready, or labels are missing.",
    counter_check="kubectl get clusterpolicy: ready",
    sources=("gpu-operator, controllers; node-feature-discovery, source/network and source/kernel",),
)


def find(facts: Facts) -> Iterator[Answer]:
    for code, messages, cause in (
        (COMPLETED, ("harmless.completed_validator",), "The validation ran and passed."),
        (CONFLICT, ("harmless.conflict_retried",), "The object changed between reading and writing."),
        (DRY_RUN, ("harmless.dry_run",), "The kinds come with the installation."),
        (TLS, ("harmless.lease_waited_for",), "Somebody looked whether the port is open."),
        (
            OPTIONAL,
            ("harmless.metric_optional", "harmless.dcgm_optional_module", "harmless.nvlink_without_links"),
            "The machine has no such part.",
        ),
        (NOT_HERE, ("harmless.diagnostic_not_here",), "The test is not for this setup."),
        (TOTAL, ("harmless.allocatable_is_total",), "Allocatable is all that is healthy, not what is free."),
        (
            UNWANTED,
            (
                "harmless.driver_preinstalled",
                "harmless.driver_set_empty",
                "harmless.operand_unwanted",
                "harmless.preinstalled_told",
            ),
            "Nothing on these nodes wants it.",
        ),
        (MEMORY_TIME, ("harmless.memory_time",), "The figure is a share of time."),
        (RESERVED, ("harmless.reserved_memory",), "The driver keeps some memory for itself."),
        (NO_SAMPLES, ("harmless.no_samples",), "Nothing computed on the GPU since the last time."),
        (UNNAMED, ("harmless.device_name_unknown",), "Only the name is missing."),
        (ALERT, ("harmless.alert_told",), "The alert looks at one figure only."),
        (NO_DATA, ("harmless.dcgm_no_data",), "The card does not have the field."),
        (WATCHED, ("harmless.power_watch",), "The card runs at its power limit."),
        (PARTITION_FIGURES, ("harmless.partition_figures",), "They are the card's."),
        (IDLE_POD, ("harmless.idle_has_no_pod",), "No pod holds the GPU."),
        (OPERATOR_NOTES, ("harmless.operator_notes",), "This cluster does not use it."),
        (DISCOVERY, ("harmless.discovery_waits",), "It waits for its next look."),
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
    ):
        yield from noted(facts, code, messages, cause)
    idle = list(facts.said("harmless.no_domain_in_use"))
    if idle and (imex := list(facts.said("harmless.imex_idle"))):
        yield IMEX.finding("No domain is in use on the node.", LIKELY, [*imex, *idle[:1]])
    elif (stopped := [one for one in facts.said("harmless.imex_idle") if one.get("stopped")]) and not any(
        facts.said("dra.domain_mixed", "imex.daemon_failed", "imex.domain_not_up", "dra.in_use")
    ):
        yield IMEX.finding("No IMEX daemon runs, as between two workloads of a domain.", POSSIBLE, stopped)
    hidden = list(facts.said("harmless.mig_figures_hidden"))
    if hidden and (mode := list(facts.said("context.mig_mode"))):
        yield HIDDEN.finding("Figures of the whole GPU are not for the holder of a part.", LIKELY, [*hidden, *mode[:1]])
    consumer = list(facts.said("harmless.consumer_card", "context.card_number"))
    asked = ("dcgm.profiling_absent", "dcgm.profiling_module_state", "context.profiling_asked")
    if consumer and (refused := list(facts.said(*asked))):
        yield CONSUMER.finding("DCGM has no profiling figures for this model.", LIKELY, [*refused, *consumer[:1]])


RULE = Rule(
    (
        COMPLETED,
        CONFLICT,
        DRY_RUN,
        TLS,
        OPTIONAL,
        NOT_HERE,
        DISCOVERY,
        CONSUMER,
        TOTAL,
        UNWANTED,
        IMEX,
        MEMORY_TIME,
        REPLICAS,
        RESERVED,
        HIDDEN,
        NO_SAMPLES,
        UNNAMED,
        WATCHED,
        NO_DATA,
        ALERT,
        PARTITION_FIGURES,
        IDLE_POD,
        OPERATOR_NOTES,
    ),
    find,
)
