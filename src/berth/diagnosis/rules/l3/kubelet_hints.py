"""L3. Hints of the kubelet's topology manager: none for a device, or more than it can count through."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

EMPTY = Code(
    name="DeviceHintsEmpty",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="to the topology manager a device fits on no NUMA node",
    meaning="The device manager gives a list of hints that is there and empty: none of the free devices lies on a NUMA "
    "node that it knows. With the policies restricted and single-numa-node each such pod is refused.",
    known_by="The kubelet writes hints of a resource as an empty list, or that it has no possible NUMA affinity.",
    disproved_by="Other pods have all devices: then the list is empty because nothing is free.",
    counter_check="on NODE: cat /sys/bus/pci/devices/<GPU>/numa_node: a node that lscpu lists; kubectl describe node "
    "NODE: all of RESOURCE is requested",
    fix=Fix(
        steps=(
            "-1 as NUMA node: the firmware tells none; a plugin should then send no topology at all (a newer release)",
            "a kubelet that takes an empty list of nodes for no choice: update it",
            "until then: topologyManagerPolicy best-effort",
        ),
        risk="without alignment a GPU may be used from the far socket",
        rollback="the former policy",
    ),
    verify=("a new pod with RESOURCE: 1 on NODE is admitted",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/topology_hints.go", "kubernetes issue 112234"),
)

MANY = Code(
    name="TopologyHintsTooMany",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the topology manager counts through more NUMA nodes than it can",
    meaning="For each container the kubelet tries every subset of the NUMA nodes. With each node the work doubles: a "
    "machine whose GPUs bring NUMA nodes of their own, as GB200 does, has more than thirty, and the kubelet does not "
    "come to the allocation.",
    known_by="The kubelet's time goes into generateDeviceTopologyHints or IterateBitMasks, or somebody reports it of a "
    "machine with ten NUMA nodes or more.",
    disproved_by="lscpu shows eight NUMA nodes or fewer, or the kubelet's topology manager policy is none.",
    counter_check="on NODE: lscpu | grep 'NUMA node(s)': 8 or fewer; or grep -i topologyManagerPolicy "
    "/var/lib/kubelet/config.yaml: none",
    fix=Fix(
        steps=(
            "topologyManagerPolicy: none on such nodes, and cpuManagerPolicy and memoryManagerPolicy: none with it",
            "or let the GPUs bring no NUMA nodes: the driver's NVreg_CoherentGPUMemoryMode=driver",
            "restart the kubelet",
        ),
        risk="without alignment a GPU may be used from the far socket",
        rollback="the former policy",
    ),
    verify=("a new pod with RESOURCE: 1 on NODE starts within seconds",),
    sources=("kubernetes pkg/kubelet/cm/topologymanager/bitmask/bitmask.go", "kubernetes issue 135581"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("kubelet.hints_empty")).values():
        resource = said_of(one.get("resource") or one.get("resource2") for one in said)
        yield EMPTY.finding(
            f"No NUMA node is possible for {resource}, says the device manager.", LIKELY, said, resource=resource
        )
    for said in by_node(facts.said("kubelet.hints_many")).values():
        yield MANY.finding("The kubelet's time goes into subsets of NUMA nodes.", POSSIBLE, said)


RULE = Rule((EMPTY, MANY), find)
