"""L3. The kubelet's topology manager holds a device for one that fits on no NUMA node."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
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
    counter_check="on NODE: cat /sys/bus/pci/devices/<GPU>/numa_node: a node that lscpu lists; kubectl get node NODE: "
    "RESOURCE free",
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


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("kubelet.hints_empty")).values():
        resource = said_of(one.get("resource") or one.get("resource2") for one in said)
        yield EMPTY.finding(
            f"No NUMA node is possible for {resource}, says the device manager.", LIKELY, said, resource=resource
        )


RULE = Rule((EMPTY,), find)
