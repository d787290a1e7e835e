"""What depends on other pods: inter-pod affinity and anti-affinity, topology spread, host ports.

Counts per node of the pods that a selector matches, kept in step with the draft; a decision asks for a mask of
the nodes that they leave open. Built only where some pod has such a constraint. Source of the rules: the
InterPodAffinity, PodTopologySpread and NodePorts filters of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from berth.model.cluster import Allocation
from berth.model.workload import LabelSelector, PodClass, PodSet, PodTerm, Requirement, Spread, Workload
from berth.scheduling.columns import Columns
from berth.scheduling.crowd import Crowd
from berth.scheduling.feasibility import selected

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
Labels = tuple[tuple[str, str], ...]
Scope = tuple[str, ...] | None  # namespaces, None for all
ANY_IP = "0.0.0.0"
MOST_SELECTORS = 256  # that are followed


@dataclass(frozen=True)
class Who:
    """As much of a pod as other pods look at."""

    namespace: str
    labels: Labels
    pod_class: PodClass


Selected = tuple[LabelSelector, Scope]
Port = tuple[str, str, int]


class Residents:
    """What the pods of the snapshot are to their neighbours, kept in step with it: counts per node, (N,) each.

    matching by selector, holding by anti-affinity term and the namespace of who has it, ports that are taken.
    Selectors are counted when somebody asks, and followed from then on.
    """

    def __init__(self, columns: Columns, crowd: Crowd) -> None:
        self.columns = columns
        self.crowd = crowd
        self.matching: dict[Selected, I64] = {}
        self.holding: dict[tuple[PodTerm, str], I64] = {}
        self.ports: dict[Port, I64] = {}
        depends = self._depends()
        for p in np.flatnonzero(depends[crowd.kind] & (crowd.node >= 0)).tolist() if depends.any() else ():
            self._rules(crowd.allocations[p], int(crowd.node[p]), 1)

    def follow(self) -> None:
        """Pods have come and gone."""
        crowd = self.crowd
        if len(self.matching) > MOST_SELECTORS:
            self.matching.clear()
        for p, n in zip(crowd.gone.tolist(), crowd.left.tolist(), strict=True):
            self._change(crowd.before[p], n, -1)
        for p in crowd.came.tolist():
            self._change(crowd.allocations[p], int(crowd.node[p]), 1)
        if len(crowd.gone):  # what nobody holds any more is no rule
            self.holding = {term: count for term, count in self.holding.items() if count.any()}
            self.ports = {port: count for port, count in self.ports.items() if count.any()}

    def _change(self, a: Allocation, node: int, count: int) -> None:
        if node < 0:
            return
        if self.matching:
            labels = dict(a.labels)
            for (selector, scope), counts in self.matching.items():
                if (scope is None or a.namespace in scope) and matches(selector, labels):
                    counts[node] += count
        if a.pod_class.depends_on_pods:
            self._rules(a, node, count)

    def _rules(self, a: Allocation, node: int, count: int) -> None:
        size = self.columns.size
        for term in a.pod_class.apart:
            self.holding.setdefault((term, a.namespace), np.zeros(size, np.int64))[node] += count
        for port in a.pod_class.host_ports:
            self.ports.setdefault(port, np.zeros(size, np.int64))[node] += count

    def count(self, key: Selected) -> I64:
        """Matching pods by node."""
        if key not in self.matching:
            selector, scope = key
            counts = np.zeros(self.columns.size, np.int64)
            answers: dict[Labels, bool] = {}
            for a, node in zip(self.crowd.allocations, self.crowd.node.tolist(), strict=True):
                if node >= 0 and (scope is None or a.namespace in scope):
                    if a.labels not in answers:
                        answers[a.labels] = matches(selector, dict(a.labels))
                    counts[node] += answers[a.labels]
            self.matching[key] = counts
        return self.matching[key]

    def _depends(self) -> Mask:
        """(classes,) their pods have rules on other pods."""
        return np.array([c.depends_on_pods for c in self.crowd.classes] or [False], bool)

    @property
    def have_rules(self) -> bool:
        """Some pod that runs has a rule on other pods, whether its node is there or not."""
        depends = self._depends()
        return bool(depends.any()) and bool(depends[self.crowd.kind].any())


@dataclass
class Neighbours:
    """The residents with what a draft puts beside them and takes away; counts per node, (N,) int64 each.

    `pods` are who came (1) and who went (-1) in the draft, on which node.
    """

    residents: Residents
    pods: list[tuple[int, Who, int]] = field(default_factory=list)
    expected: dict[tuple[PodTerm, str], None] = field(default_factory=dict)  # terms of pods that wait
    _matching: dict[Selected, I64] = field(default_factory=dict)
    _holding: dict[tuple[PodTerm, str], I64] = field(default_factory=dict)
    _ports: dict[Port, I64] = field(default_factory=dict)
    _own: set[object] = field(default_factory=set)  # terms and ports whose counts are no longer the residents'
    _about: dict[str, tuple[LabelSelector, ...]] = field(default_factory=dict)  # by namespace, selectors of terms

    @classmethod
    def of(
        cls, workloads: Sequence[Workload], residents: Residents, kinds: Iterable[Sequence[PodSet]] | None = None
    ) -> Neighbours | None:
        """None where no pod, running or waiting, has a constraint on other pods. `kinds` are the pod sets of the
        workloads, once each, where they are at hand."""
        sets = kinds if kinds is not None else (w.pod_sets for w in workloads)
        classes = {id(s.pod_class): s.pod_class for one in sets for s in one}
        if not residents.have_rules and not any(c.depends_on_pods for c in classes.values()):
            return None
        neighbours = cls(residents, _holding=dict(residents.holding), _ports=dict(residents.ports))
        for w in workloads:
            for pod_set in w.pod_sets:
                neighbours.expected.update(((term, w.namespace), None) for term in pod_set.pod_class.apart)
        return neighbours

    @property
    def columns(self) -> Columns:
        return self.residents.columns

    def add(self, node: int, who: Who, count: int) -> None:
        """`count` such pods are on a node from now on (negative: are gone)."""
        if self.pods and self.pods[-1] == (node, who, -count):
            self.pods.pop()  # what a draft takes back was mostly put last
        else:
            self.pods.append((node, who, count))
        if self._matching:
            labels = dict(who.labels)
            for (selector, scope), counts in self._matching.items():
                if (scope is None or who.namespace in scope) and matches(selector, labels):
                    counts[node] += count
        for term in who.pod_class.apart:
            key = (term, who.namespace)
            if key not in self._own:
                self._own.add(key)
                self._about.clear()
                known = self._holding.get(key)
                self._holding[key] = np.zeros(self.columns.size, np.int64) if known is None else known.copy()
            self._holding[key][node] += count
        for port in who.pod_class.host_ports:
            if port not in self._own:
                self._own.add(port)
                taken = self._ports.get(port)
                self._ports[port] = np.zeros(self.columns.size, np.int64) if taken is None else taken.copy()
            self._ports[port][node] += count

    def copy(self) -> Neighbours:
        """The same, to be changed on its own."""
        return Neighbours(
            self.residents, list(self.pods), self.expected,
            {k: v.copy() for k, v in self._matching.items()}, {k: v.copy() for k, v in self._holding.items()},
            {k: v.copy() for k, v in self._ports.items()}, {*self._holding, *self._ports},
        )  # fmt: skip

    def concern(self, who: Who) -> bool:
        """Whether other pods could keep this one off a node."""
        if who.pod_class.depends_on_pods:
            return True
        if who.namespace not in self._about:
            terms = (*self._holding, *self.expected)
            speak = {term.selector: None for term, of in terms if _in_scope(term, of, who.namespace)}
            self._about[who.namespace] = tuple(speak)
        labels = dict(who.labels)
        return any(matches(selector, labels) for selector in self._about[who.namespace])

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
            counts = self.residents.count(key).copy()
            for node, who, count in self.pods:
                if (scope is None or who.namespace in scope) and matches(selector, dict(who.labels)):
                    counts[node] += count
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
