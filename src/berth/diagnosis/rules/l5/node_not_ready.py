"""L2, L3. A node that is not Ready takes no pod, whatever its GPUs do."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import LIKELY, WEAK, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen

_SOURCES = ("kubernetes, pkg/controller/nodelifecycle", "Kubernetes documentation: node status")

NOT_READY = Code(
    name="NodeNotReady",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.AccountStale,
    title="the node is not Ready",
    meaning="The kubelet reports nothing, or says that it cannot serve. What runs may go on; after five minutes pods "
    "are taken from the node, and its devices count for nobody.",
    known_by="The node's condition Ready is Unknown or False, NotReady in its list, or an event NodeNotReady.",
    disproved_by="kubectl get node NODE: Ready since then.",
    counter_check="kubectl describe node NODE: condition Ready True, lease renewed within a minute",
    fix=Fix(
        steps=(
            "on NODE: systemctl status kubelet containerd (or crio, k3s, rke2-agent); journalctl -u kubelet -n 50",
            "a machine that hangs or is gone: its console, BMC, the cloud's serial log; dmesg for Xid and stuck tasks",
            "after an installation of toolkit or driver: the runtime was restarted with a configuration that it does "
            "not read",
        ),
        risk="a restart of the runtime is felt by pods with exec probes and logs",
        rollback="the former configuration of the runtime",
    ),
    verify=("kubectl get node NODE: Ready",),
    sources=_SOURCES,
)
NO_NETWORK = Code(
    name="PodNetworkNotReady",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="the runtime has no pod network",
    meaning="Without a CNI configuration that it can read the runtime starts no pod but those of the host's network, "
    "and the node stays NotReady. An installer that writes the runtime's configuration anew loses the paths of CNI.",
    known_by="The kubelet: container runtime network not ready, cni plugin not initialized.",
    disproved_by="/etc/cni/net.d holds a configuration, and the node is Ready.",
    counter_check="on NODE: ls /etc/cni/net.d /opt/cni/bin: not empty; containerd config dump | grep -A3 cni: the same "
    "paths",
    fix=Fix(
        steps=(
            "pods of the network plugin (Calico, Cilium, flannel) on NODE: Running",
            "the runtime's configuration was rewritten (toolkit, nvidia-ctk): its section of CNI with the paths of "
            "this distribution, then restart it",
            "a new node: wait until the network's DaemonSet has come",
        ),
        risk="a restart of the runtime",
        rollback="the former configuration of the runtime",
    ),
    verify=("kubectl get node NODE: Ready",),
    sources=("containerd, CRI plugin: CNI configuration", *_SOURCES),
)
STALLED = Code(
    name="RuntimeStalled",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="the runtime does not answer the kubelet in time",
    meaning="The kubelet asks the runtime for all pods once a second. Where that hangs for three minutes the node is "
    "NotReady: a runtime that is down or overloaded, a container that cannot be ended, a disk that hangs.",
    known_by="PLEG is not healthy, or container runtime is down.",
    disproved_by="crictl ps answers at once, and the node is Ready.",
    counter_check="on NODE: time crictl ps: below a second; ps -eo pid,stat,wchan:32,comm | grep ' D': nothing",
    fix=Fix(
        steps=(
            "on NODE: systemctl status containerd; journalctl -u containerd -n 50",
            "processes in state D, with nvidia in their stack: the driver hangs; dmesg for Xid; restart NODE",
            "too many pods or a slow disk: fewer pods, another disk for the runtime",
        ),
        risk="a restart of NODE ends what runs on it",
        rollback="nothing to undo",
    ),
    verify=("kubectl get node NODE: Ready",),
    sources=("kubernetes, pkg/kubelet/pleg", *_SOURCES),
)


def find(facts: Facts) -> Iterator[Answer]:
    networks = list(facts.said("node.network_not_ready"))
    for said in by_node(networks).values():
        yield NO_NETWORK.finding("The runtime's network plugin is not initialised.", LIKELY, said)
    stalled = list(facts.said("node.runtime_stalled"))
    for said in by_node(stalled).values():
        yield STALLED.finding("The kubelet gets no answer of the runtime in time.", LIKELY, said)
    if networks or stalled:
        return
    silent = [
        node
        for node in facts.of(NodeSeen)
        if any(one.type == "Ready" and one.status in ("Unknown", "False") for one in node.conditions)
    ]
    for node in silent:
        reason = next(one.reason for one in node.conditions if one.type == "Ready")
        yield NOT_READY.finding(f"{node.name} is not Ready: {reason or 'no reason'}.", WEAK, [node], node=node.name)
    if not silent:
        for said in by_node(facts.said("node.not_ready")).values():
            name = next((one for each in said if (one := value(each, "node"))), "")
            yield NOT_READY.finding(f"{name or 'The node'} is not Ready.", WEAK, said, node=name)


RULE = Rule((NOT_READY, NO_NETWORK, STALLED), find)
