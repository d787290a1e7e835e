"""What Kubernetes says of pods beside pods, one pod after the other: near, apart, spread, host ports.

Source: the filters InterPodAffinity, PodTopologySpread and NodePorts of kube-scheduler. Slow and plain on purpose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from berth.model.cluster import Node
from berth.model.snapshot import Snapshot
from berth.model.workload import LabelSelector, PodClass, PodTerm, Spread
from berth.scheduling.plan import Plan


class Placed(Struct, frozen=True):
    """A pod on a node, with what rules look at."""

    node: Node
    pod_class: PodClass
    labels: dict[str, str]
    namespace: str


def running(snapshot: Snapshot) -> list[Placed]:
    nodes = {n.name: n for n in snapshot.nodes}
    return [
        Placed(nodes[a.node], a.pod_class, dict(a.labels), a.namespace) for a in snapshot.allocations if a.node in nodes
    ]


def broken_rules(snapshot: Snapshot, plan: Plan) -> list[str]:
    """Placed workloads for whose pods there is no order in which each is allowed beside those before it."""
    there, found = running(snapshot), []
    by_workload: dict[str, list[Placed]] = {}
    for bind in plan.binds():
        pod_set = bind.workload.pod_sets[bind.pod_set]
        by_workload.setdefault(bind.workload.key, []).append(
            Placed(bind.node, pod_set.pod_class, dict(pod_set.labels), bind.workload.namespace)
        )
    for key, pods in by_workload.items():
        waiting = list(pods)
        while waiting:
            open_ = [p for p in waiting if not objections(p, there, snapshot.nodes)]
            if not open_:
                why = objections(waiting[0], there, snapshot.nodes)
                found.append(f"{key}: {len(waiting)} pods are where they may not be ({why[0]})")
                break
            # The emptiest domain first: another order may only look forbidden.
            chosen = min(open_, key=lambda p: crowd(p, there))
            waiting.remove(chosen)
            there.append(chosen)
        there += waiting
    return found


def crowd(pod: Placed, there: Iterable[Placed]) -> int:
    """Pods of the spread rules that share a domain with the pod."""
    there = list(there)
    return sum(
        selected(rule.selector, other.labels) and same(rule.topology_key, other.node, pod.node)
        for rule in pod.pod_class.spread
        for other in there
    )


def objections(pod: Placed, there: Sequence[Placed], nodes: Iterable[Node]) -> list[str]:
    """Why the pod may not be on its node beside those that are there."""
    found = []
    for term in pod.pod_class.apart:
        if any(meant(term, pod, o) and same(term.topology_key, o.node, pod.node) for o in there):
            found.append(f"anti-affinity on {pod.node.name}")
    for other in there:
        for term in other.pod_class.apart:
            if meant(term, other, pod) and same(term.topology_key, other.node, pod.node):
                found.append(f"the anti-affinity of others on {pod.node.name}")
    near = pod.pod_class.near
    if near:
        found += _near(pod, near, there)
    for rule in pod.pod_class.spread:
        if not _evenly(pod, rule, there, nodes):
            found.append(f"spread on {pod.node.name}")
    ports = set(pod.pod_class.host_ports)
    if any(o.node.name == pod.node.name and ports & set(o.pod_class.host_ports) for o in there):
        found.append(f"a host port on {pod.node.name}")
    return found


def _near(pod: Placed, near: tuple[PodTerm, ...], there: Sequence[Placed]) -> list[str]:
    if any(term.topology_key not in pod.node.labels for term in near):
        return [f"affinity on {pod.node.name}, which is in no such domain"]
    if all(any(meant(t, pod, o) and same(t.topology_key, o.node, pod.node) for o in there) for t in near):
        return []
    # The first pod of a group that wants to be near itself may start anywhere.
    is_first = not any(
        all(meant(t, pod, o) for t in near) and t.topology_key in o.node.labels for t in near for o in there
    )
    if is_first and all(meant(t, pod, pod) for t in near):
        return []
    return [f"affinity on {pod.node.name}"]


def _evenly(pod: Placed, rule: Spread, there: Sequence[Placed], nodes: Iterable[Node]) -> bool:
    key = rule.topology_key
    if key not in pod.node.labels:
        return False
    keys = {r.topology_key for r in pod.pod_class.spread}
    eligible = [n for n in nodes if keys <= set(n.labels) and _selects(pod.pod_class, n)]
    counts: Counter[str] = Counter({n.labels[key]: 0 for n in eligible})
    names = {n.name for n in eligible}
    for other in there:
        if other.node.name in names and other.namespace == pod.namespace and selected(rule.selector, other.labels):
            counts[other.node.labels[key]] += 1
    least = min(counts.values(), default=0) if len(counts) >= rule.min_domains else 0
    itself = selected(rule.selector, pod.labels)
    return counts[pod.node.labels[key]] + itself - least <= rule.max_skew


def _selects(pod_class: PodClass, node: Node) -> bool:
    """Node selectors alone: scenarios that spread use no affinity over nodes."""
    return all(node.labels.get(k) == v for k, v in pod_class.node_selector)


def meant(term: PodTerm, owner: Placed, other: Placed) -> bool:
    """The term of `owner` speaks of `other`."""
    namespaces = term.namespaces or (owner.namespace,)
    return (term.all_namespaces or other.namespace in namespaces) and selected(term.selector, other.labels)


def selected(selector: LabelSelector, labels: dict[str, str]) -> bool:
    return all(labels.get(k) == v for k, v in selector.labels)


def same(key: str, one: Node, other: Node) -> bool:
    return key in one.labels and one.labels[key] == other.labels.get(key)
