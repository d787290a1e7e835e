"""L4. Labels decide which components of the operator run on a node; a wrong or old one keeps them away."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen

WORKLOAD = Code(
    name="WorkloadLabelSkipsContainers",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="the node is labelled for virtual machines: no component for containers runs on it",
    meaning="With sandbox workloads the operator gives this node vfio or vGPU components; the GPUs belong to vfio-pci "
    "and are not offered to containers.",
    known_by="nvidia.com/gpu.workload.config is vm-passthrough or vm-vgpu.",
    disproved_by="The node is meant for virtual machines, and pods ask for its passthrough or vGPU resource.",
    counter_check="on NODE: lspci -nnk -d 10de:: vfio-pci is in use, and pods ask for the passthrough or vGPU resource",
    fix=Fix(
        steps=("kubectl label node NODE nvidia.com/gpu.workload.config=container --overwrite",
               "reboot NODE, or unbind the GPUs from vfio-pci",
               "sandboxWorkloads.defaultWorkload decides for nodes without the label"),
        risk="virtual machines on the node lose their GPU",
        rollback="the former label",
    ),
    verify=("lspci -nnk -d 10de: on NODE: Kernel driver in use: nvidia", "the device plugin runs on NODE"),
    sources=("GPU Operator documentation: KubeVirt", "gpu-operator issues 568, 468, 2272"),
)  # fmt: skip

_NOT_UPGRADED = (
    "to keep a node out of driver upgrades: nvidia.com/gpu-driver-upgrade.skip=true, not gpu.deploy.driver=false"
)

HELD_BACK = Code(
    name="OperandsHeldBackByLabel",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="a label keeps components of the operator away from the node",
    meaning="A component whose nvidia.com/gpu.deploy label is false is removed from the node, the driver too.",
    known_by="nvidia.com/gpu.deploy.operands or gpu.deploy.<component> is false.",
    disproved_by="It is meant so: the host brings that component (driver, toolkit).",
    counter_check="kubectl get node NODE --show-labels | tr , '\\n' | grep gpu.deploy: no false",
    fix=Fix(
        steps=("kubectl label node NODE nvidia.com/gpu.deploy.<component>=true --overwrite; of operands: remove it, "
               "kubectl label node NODE nvidia.com/gpu.deploy.operands-",
               _NOT_UPGRADED),
        risk="the component starts; a driver is installed anew",
        rollback="the former label",
    ),
    verify=("kubectl get pod -A -o wide --field-selector spec.nodeName=NODE: the component runs",),
    sources=("gpu-operator controllers/state_manager.go", "gpu-operator pull request 2575"),
)  # fmt: skip

WORKLOAD_UNKNOWN = Code(
    name="WorkloadLabelUnknown",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Warning,
    effect=Effect.OperandsHeldBack,
    title="the node's workload label has a value that the operator does not know",
    meaning="The operator takes its default for that node (container, if nothing else is set): components for "
    "containers run where virtual machines were meant, or the other way round.",
    known_by="The operator: invalid GPU workload config.",
    disproved_by="The label has one of the values by now.",
    counter_check="kubectl get node NODE -L nvidia.com/gpu.workload.config: container, vm-passthrough or vm-vgpu",
    fix=Fix(
        steps=(
            "kubectl label node NODE nvidia.com/gpu.workload.config=container --overwrite (or vm-passthrough, vm-vgpu)",
            "Kata containers: vm-passthrough, and sandboxWorkloads.enabled=true",
        ),
        risk="the other kind of components comes; GPUs change their driver",
        rollback="the former label",
    ),
    verify=("kubectl logs of the operator: no 'invalid GPU workload config' any more",),
    sources=("gpu-operator controllers/state_manager.go", "gpu-operator issue 1871"),
)

STALE_MODE = Code(
    name="ResourceModeLabelStale",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Warning,
    effect=Effect.OperandsHeldBack,
    title="the node is still labelled for resource claims",
    meaning="The operator never overwrites this label; with `dra` the device plugin does not come back to the node.",
    known_by="nvidia.com/gpu-operator.resource-allocation.mode is dra, and a ClusterPolicy or a device plugin is in "
    "use.",
    disproved_by="The node serves claims on purpose.",
    counter_check="kubectl get resourceslice -o wide | grep NODE: slices of gpu.nvidia.com",
    fix=Fix(
        steps=("kubectl label node NODE nvidia.com/gpu-operator.resource-allocation.mode-",),
        risk="the device plugin starts; claims on that node must be gone",
        rollback="set the label again",
    ),
    verify=("the device plugin runs on NODE",),
    sources=("gpu-operator pull request 2571",),
)

_BROUGHT_BY_HOST = (
    "driver",
    "container-toolkit",
    "nvsm",
    "vgpu-manager",
    "sandbox-device-plugin",
    "mig-manager",
    "mps",
)


def find(facts: Facts) -> Iterator[Answer]:
    for node in facts.of(NodeSeen):
        labels = node.labels
        workload = labels.get("nvidia.com/gpu.workload.config", "")
        if workload.startswith("vm-"):
            yield WORKLOAD.finding(
                f"nvidia.com/gpu.workload.config={workload}: only components for virtual machines run there.",
                ESTABLISHED,
                [node],
                node=node.name,
            )
        yield from _held_back(node)
        wants_claims = labels.get("nvidia.com/gpu-operator.resource-allocation.mode") == "dra"
        if wants_claims and labels.get("nvidia.com/gpu.deploy.device-plugin") == "true":
            yield STALE_MODE.finding(
                "The label says dra, the device plugin is wanted.", POSSIBLE, [node], node=node.name
            )
    for said in by_node(facts.said("operator.workload_unknown")).values():
        told = next((one for each in said if (one := value(each, "workload")) and one != "NodeName"), "")
        yield WORKLOAD_UNKNOWN.finding(f"There is no workload {told or 'of that name'}.", LIKELY, said)
    if not any(node.labels for node in facts.of(NodeSeen)):
        yield from _mentioned(facts)


def _mentioned(facts: Facts) -> Iterator[Answer]:
    """Labels in prose, where none were printed."""
    for said in by_node(facts.said("operator.workload_label")).values():
        yield WORKLOAD.finding(f"gpu.workload.config is {value(said[0], 'workload')}.", LIKELY, said)
    off = [one for one in facts.said("operator.deploy_off") if one.get("component") not in _BROUGHT_BY_HOST]
    for said in by_node(off).values():
        yield HELD_BACK.finding(f"gpu.deploy.{said[0].get('component')} is false.", LIKELY, said)


def _held_back(node: NodeSeen) -> Iterator[Answer]:
    off = [key.removeprefix("nvidia.com/gpu.deploy.") for key, value in node.labels.items()
           if key.startswith("nvidia.com/gpu.deploy.") and value in ("false", "")]  # fmt: skip
    missed = [name for name in off if name not in _BROUGHT_BY_HOST]
    if missed:
        labels = [*map(_again, sorted(missed)), *(["--overwrite"] if missed != ["operands"] else [])]
        yield HELD_BACK.finding(
            f"gpu.deploy of {', '.join(sorted(missed))} is false or empty.",
            ESTABLISHED if "operands" in missed or "device-plugin" in missed else LIKELY,
            [node],
            node=node.name,
            fix=replace(HELD_BACK.fix, steps=(f"kubectl label node NODE {' '.join(labels)}", _NOT_UPGRADED)),
        )


def _again(name: str) -> str:
    """The label as it has to be. That of all operands is removed: where it is gone, the operator sets those of the
    components by itself."""
    return f"nvidia.com/gpu.deploy.{name}{'-' if name == 'operands' else '=true'}"


RULE = Rule((WORKLOAD, WORKLOAD_UNKNOWN, HELD_BACK, STALE_MODE), find)
