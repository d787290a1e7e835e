"""What depends on other pods: inter-pod affinity and anti-affinity, topology spread, host ports.

Counts per node of the pods that a selector matches, kept in step with the draft; a decision asks for a mask of
the nodes that they leave open. Built only where some pod has such a constraint. Source of the rules: the
InterPodAffinity, PodTopologySpread and NodePorts filters of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from berth.model.snapshot import Snapshot
from berth.model.workload import LabelSelector, PodClass, PodTerm, Requirement, Spread
from berth.scheduling.columns import Columns
from berth.scheduling.feasibility import selected

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
Labels = tuple[tuple[str, str], ...]
Scope = tuple[str, ...] | None  # namespaces, None for all
ANY_IP = "0.0.0.0"


@dataclass(frozen=True)
class Who:
    """As much of a pod as other pods look at."""

    namespace: str
    labels: Labels
    pod_class: PodClass


@dataclass
class Neighbours:
    """Counts per node, (N,) int64 each: pods by selector, holders of anti-affinity terms, taken host ports."""

    columns: Columns
    pods: list[tuple[int, Who, int]] = field(default_factory=list)  # who came (1) and who went (-1), on which node
    expected: dict[tuple[PodTerm, str], None] = field(default_factory=dict)  # terms of pods that wait
    _matching: dict[tuple[LabelSelector, Scope], I64] = field(default_factory=dict)
    _holding: dict[tuple[PodTerm, str], I64] = field(default_factory=dict)
    _ports: dict[tuple[str, str, int], I64] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, columns: Columns) -> Neighbours | None:
        """None where no pod, running or waiting, has a constraint on other pods."""
        sets = (s.pod_class for w in snapshot.workloads for s in w.pod_sets)
        held = (a.pod_class for a in snapshot.allocations)
        if not any(c.depends_on_pods for c in {id(c): c for c in (*sets, *held)}.values()):
            return None
        neighbours = cls(columns)
        for w in snapshot.workloads:
            for pod_set in w.pod_sets:
                neighbours.expected.update(((term, w.namespace), None) for term in pod_set.pod_class.apart)
        for a in snapshot.allocations:
            n = columns.index.get(a.node)
            if n is not None:
                neighbours.add(n, Who(a.namespace, a.labels, a.pod_class), 1)
        return neighbours

    def add(self, node: int, who: Who, count: int) -> None:
        """`count` such pods are on a node from now on (negative: are gone)."""
        if self.pods and self.pods[-1] == (node, who, -count):
            self.pods.pop()  # what a draft takes back was mostly put last
        else:
            self.pods.append((node, who, count))
        labels = dict(who.labels)
        for (selector, scope), counts in self._matching.items():
            if (scope is None or who.namespace in scope) and matches(selector, labels):
                counts[node] += count
        for term in who.pod_class.apart:
            key = (term, who.namespace)
            self._holding.setdefault(key, np.zeros(self.columns.size, np.int64))[node] += count
        for port in who.pod_class.host_ports:
            self._ports.setdefault(port, np.zeros(self.columns.size, np.int64))[node] += count

    def copy(self) -> Neighbours:
        """The same, to be changed on its own."""
        return Neighbours(
            self.columns, list(self.pods), self.expected,
            {k: v.copy() for k, v in self._matching.items()}, {k: v.copy() for k, v in self._holding.items()},
            {k: v.copy() for k, v in self._ports.items()},
        )  # fmt: skip

    def concern(self, who: Who) -> bool:
        """Whether other pods could keep this one off a node."""
        if who.pod_class.depends_on_pods:
            return True
        labels = dict(who.labels)
        return any(
            _in_scope(term, of, who.namespace) and matches(term.selector, labels)
            for term, of in (*self._holding, *self.expected)
        )

    def leave_open(self, who: Who) -> Mask:
        """(N,) nodes that the pods which are there, and those of the draft, leave open to one more pod."""
        open_ = np.ones(self.columns.size, bool)
        labels = dict(who.labels)
        for term in who.pod_class.apart:
            open_ &= ~self._near(self._count(term.selector, _scope(term, who.namespace)), term.topology_key)
        for (term, of), holders in self._holding.items():
            if _in_scope(term, of, who.namespace) and matches(term.selector, labels):
                open_ &= ~self._near(holders, term.topology_key)
        for term in who.pod_class.near:
            counts = self._count(term.selector, _scope(term, who.namespace))
            near = self._near(counts, term.topology_key)
            if not near.any() and _in_scope(term, who.namespace, who.namespace) and matches(term.selector, labels):
                # The first pod of a group that wants to be near itself may go anywhere.
                near = self.columns.label(term.topology_key)[0] >= 0
            open_ &= near
        for spread in who.pod_class.spread:
            open_ &= self._evenly(spread, who, labels)
        for ip, protocol, port in who.pod_class.host_ports:
            for (taken_ip, taken_protocol, taken_port), counts in self._ports.items():
                if (protocol, port) == (taken_protocol, taken_port) and (ip == taken_ip or ANY_IP in (ip, taken_ip)):
                    open_ &= counts == 0
        return open_

    def _count(self, selector: LabelSelector, scope: Scope) -> I64:
        """Matching pods by node; counted once, then kept in step."""
        key = (selector, scope)
        if key not in self._matching:
            counts = np.zeros(self.columns.size, np.int64)
            answers: dict[Labels, bool] = {}
            for node, who, count in self.pods:
                if scope is None or who.namespace in scope:
                    if who.labels not in answers:
                        answers[who.labels] = matches(selector, dict(who.labels))
                    counts[node] += count * answers[who.labels]
            self._matching[key] = counts
        return self._matching[key]

    def _near(self, counts: I64, topology_key: str) -> Mask:
        """Nodes that share their value of the key with a node that has a count."""
        codes, vocabulary = self.columns.label(topology_key)
        by_value = np.bincount(codes[codes >= 0], weights=counts[codes >= 0], minlength=len(vocabulary) or 1)
        mask: Mask = (codes >= 0) & (by_value[np.maximum(codes, 0)] > 0)
        return mask

    def _evenly(self, spread: Spread, who: Who, labels: Mapping[str, str]) -> Mask:
        """Nodes on which one more pod keeps the skew. Domains count where a node matches the pod's selector."""
        codes, vocabulary = self.columns.label(spread.topology_key)
        known = codes >= 0
        eligible = known & selected(who.pod_class, self.columns)
        counts = self._count(spread.selector, (who.namespace,))
        by_value = np.bincount(codes[eligible], weights=counts[eligible], minlength=len(vocabulary) or 1)
        there = np.bincount(codes[eligible], minlength=len(vocabulary) or 1) > 0
        least = int(by_value[there].min()) if there.any() else 0
        if int(there.sum()) < spread.min_domains:
            least = 0
        itself = 1 if matches(spread.selector, labels) else 0
        mask: Mask = known & (by_value[np.maximum(codes, 0)] + itself - least <= spread.max_skew)
        return mask


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy a selector; an empty one matches everything."""
    return all(labels.get(k) == v for k, v in selector.labels) and all(_holds(e, labels) for e in selector.expressions)


def _holds(expression: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression.key)
    match expression.operator:
        case "In":
            return value is not None and value in expression.values
        case "NotIn":
            return value is None or value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False


def _scope(term: PodTerm, own: str) -> Scope:
    return None if term.all_namespaces else (term.namespaces or (own,))


def _in_scope(term: PodTerm, own: str, namespace: str) -> bool:
    scope = _scope(term, own)
    return scope is None or namespace in scope
