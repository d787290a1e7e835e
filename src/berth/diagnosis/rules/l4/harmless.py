"""L4. Lines of operator, discovery and DCGM, and capacities, that look wrong and are right."""

from __future__ import annotations

import re
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
NOT_YET = trap(
    "ContainerFigureNotYet",
    Layer.L4,
    Effect.BlindMonitoring,
    "a container's figures are not there before it has used its GPU",
    meaning="The library in the container writes what the monitor reads, and begins with the first call of CUDA. Until "
    "then there is no series for the container.",
    known_by="Only the figures of a container are missing, those of the host are there.",
    disproved_by="The container has computed on its GPU for minutes, and there is no series.",
    counter_check="nvidia-smi on NODE while a program of the container runs: shows it; then the series is there",
    sources=("HAMi issue 1794",),
    instead_of=("PluginTroubleTold",),
)
BOOKED = trap(
    "SharedMemoryOnlyBooked",
    Layer.L5,
    Effect.MemoryShort,
    "a pod uses more GPU memory than it was booked with: the scheduler does not enforce it",
    meaning="KAI and other schedulers that share cards by memory count what pods ask for; nothing in the container "
    "holds it to that. Only MPS limits, MIG or an intercepting library do.",
    known_by="A pod with the annotation gpu-memory or gpu-fraction that uses more.",
    disproved_by="HAMi's library or MPS limits are in the container: they enforce.",
    counter_check="nvidia-smi on NODE: the process's memory; no CUDA_DEVICE_MEMORY_LIMIT in its environment",
    sources=("KAI Scheduler issue 262, documentation: GPU sharing",),
    steps=("nothing to mend; where it has to be enforced: MIG, MPS limits, or a scheduler that does",),
)
UNNEEDED = trap(
    "DriverToolkitUnneeded",
    Layer.L4,
    Effect.OperandsHeldBack,
    "an alert about the driver toolkit on a cluster without GPU nodes",
    meaning="The operator judges Node Feature Discovery by labels of GPU nodes. Where there is none it finds none, and "
    "calls the discovery too old; no driver is wanted anywhere.",
    known_by="The alert, and no GPU node in the cluster.",
    disproved_by="A node has feature.node.kubernetes.io/pci-10de.present=true.",
    counter_check="oc get node -l feature.node.kubernetes.io/pci-10de.present=true: none",
    sources=("gpu-operator issue 324",),
    instead_of=("DriverToolkitUnusable", "NfdLabelsMissing"),
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
_NO_GPU = re.compile(r"no gpu nodes?\b", re.IGNORECASE)
_SCHEDULERS = re.compile(r"kueue|volcano|scheduler|jobset|podgroup|queue", re.IGNORECASE)


def find(facts: Facts) -> Iterator[Answer]:
    for code, messages, cause in (
        (COMPLETED, ("harmless.completed_validator",), "The validation ran and passed."),
        (DRY_RUN, ("harmless.dry_run",), "The kinds come with the installation."),
        (TLS, ("harmless.lease_waited_for",), "Somebody looked whether the port is open."),
        (
            OPTIONAL,
            ("harmless.metric_optional", "harmless.dcgm_optional_module", "harmless.nvlink_without_links"),
            "The machine has no such part.",
        ),
        (NOT_HERE, ("harmless.diagnostic_not_here",), "The test is not for this setup."),
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
        (UNNAMED, ("harmless.device_name_unknown",), "Only the name is missing."),
        (ALERT, ("harmless.alert_told",), "The alert looks at one figure only."),
        (OPERATOR_NOTES, ("harmless.operator_notes",), "This cluster does not use it."),
        (NOT_YET, ("harmless.figure_not_yet",), "The container has not used its GPU yet."),
        (BOOKED, ("harmless.memory_only_booked",), "The amount is booked and not enforced."),
        (DISCOVERY, ("harmless.discovery_waits",), "It waits for its next look."),
    ):
        yield from noted(facts, code, messages, cause)
    toolkit = [one for one in facts.said("openshift.toolkit_missing") if "too old" in one.origin.text]
    if toolkit and (none := [one for one in facts.said("operator.nfd_absent") if _NO_GPU.search(one.origin.text)]):
        yield UNNEEDED.finding("No node has a GPU.", LIKELY, [*toolkit, *none])
    for said in list(facts.said("harmless.conflict_retried"))[:1]:
        queued = _SCHEDULERS.search(said.origin.text)
        yield CONFLICT.finding(
            "The object changed between reading and writing.", LIKELY, [said], layer=Layer.L5 if queued else None
        )
    idle = list(facts.said("harmless.no_domain_in_use"))
    if idle and (imex := list(facts.said("harmless.imex_idle"))):
        yield IMEX.finding("No domain is in use on the node.", LIKELY, [*imex, *idle[:1]])
    elif (stopped := [one for one in facts.said("harmless.imex_idle") if one.get("stopped")]) and not any(
        facts.said("dra.domain_mixed", "imex.daemon_failed", "imex.domain_not_up", "dra.in_use")
    ):
        yield IMEX.finding("No IMEX daemon runs, as between two workloads of a domain.", POSSIBLE, stopped)


RULE = Rule(
    (
        COMPLETED,
        CONFLICT,
        DRY_RUN,
        TLS,
        OPTIONAL,
        NOT_HERE,
        DISCOVERY,
        UNWANTED,
        IMEX,
        UNNAMED,
        ALERT,
        OPERATOR_NOTES,
        NOT_YET,
        BOOKED,
        UNNEEDED,
    ),
    find,
)
