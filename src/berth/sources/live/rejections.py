"""What kubelets did not admit, and whom that tells of: the pods that were refused, or the node.

Whoever was refused on a node is kept off it for a while: its next pod has another name, so it is known by its owner.
The node is left alone by everybody only where the kubelet's reason speaks of the node, and the refused one is not
itself the likelier cause: it was refused on other nodes, too, and has run on none. Who is refused on one node after
the other is left alone as a whole. Once a pod of it is admitted its refusals count against the nodes again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from berth.dialects.objects import controlling
from berth.kube import wire
from berth.model.workload import PodClass
from berth.sources.inventory import PodRecord
from berth.sources.live.refusals import Refusals
from berth.sources.live.unheard import GroupKey

# What a kubelet says of a pod that it did not admit; `OutOfcpu` and the like besides. Of the node:
_OF_NODE = frozenset(("UnexpectedAdmissionError", "PreemptContainerFailed", "InvalidNodeInfo", "NodeShutdown"))
# and of how the pod and the node go together:
_OF_POD = frozenset(("TopologyAffinityError", "NodeAffinity"))
_REJECTED = "Pod was rejected"  # how the message begins, whatever the reason
NODE_S, OWNER_S, MOST_S = 2.0, 1.0, 300.0  # first pauses: on a node, of who is refused everywhere; and the longest
_NAMED = 3

Who = tuple[object, ...]  # an owner, or a namespace and a class of pods


class Rejected(Struct, frozen=True):
    """A pod that a kubelet did not admit. `alike` are the pods of its namespace that ask for the same."""

    node: str
    owner: Who
    alike: Who
    reason: str
    message: str = ""

    @property
    def is_of_node(self) -> bool:
        """The kubelet names something that is wrong with the node, or with what we know of it."""
        return self.reason in _OF_NODE or self.reason.startswith("OutOf")

    @property
    def why(self) -> str:
        said = f"{self.reason}: {self.message}" if self.message else self.reason
        return f"the kubelet of {self.node} did not admit a pod like this: {said}"


def rejected(record: PodRecord, group: GroupKey, node: str, status: wire.PodStatus) -> Rejected | None:
    """A pod that has failed because its kubelet did not admit it; None where it failed otherwise.

    `record` as it was before, of the workload `group`.
    """
    reason, message = status.reason or "", status.message or ""
    is_known = reason in _OF_NODE or reason in _OF_POD or reason.startswith("OutOf")
    if not is_known and not message.startswith(_REJECTED):
        return None
    said = message.removeprefix(_REJECTED).removeprefix(": ")
    return Rejected(node, owner_of(record, group), _alike(record.namespace, record.reading.pod_class), reason, said)


def owner_of(record: PodRecord, group: GroupKey) -> Who:
    """Whose pod it is: its controller's; without one its workload's."""
    owner = controlling(record.owners)
    return (record.namespace, *group) if owner is None else (record.namespace, owner.kind, owner.name, owner.uid)


def _alike(namespace: str, pod_class: PodClass) -> Who:
    return namespace, pod_class


class Rejections:
    """`distrust` (node, why, now) leaves a node alone for a while, `trust` ends that."""

    def __init__(self, distrust: Callable[[str, str, float], None], trust: Callable[[str], None]) -> None:
        self._distrust = distrust
        self._trust = trust
        self._on_node: Refusals[tuple[Who, str]] = Refusals(NODE_S, MOST_S)
        self._owners: Refusals[Who] = Refusals(OWNER_S, MOST_S)
        self._nodes: dict[Who, set[str]] = {}  # on which each was refused, as long as that is remembered
        self._of_node: set[tuple[Who, str]] = set()  # of these, refusals whose reason speaks of the node
        self._have_run: set[Who] = set()
        self._changed: set[Who] = set()

    def __bool__(self) -> bool:
        """Some refusal is remembered."""
        return bool(self._nodes) or len(self._owners) > 0

    # ---- what kubelets say

    def take(self, one: Rejected, now_s: float) -> None:
        has_been = (one.alike, one.node) in self._of_node
        for who in (one.owner, one.alike) if one.is_of_node else (one.owner,):
            self._on_node.add((who, one.node), one.why, now_s)
            self._nodes.setdefault(who, set()).add(one.node)
            self._changed.add(who)
        is_everywhere = one.owner in self._owners or len(self._nodes[one.owner]) > 1
        # Many that are refused at once, the pods of a gang, are one failure of their owner.
        if is_everywhere and self._owners.of(one.owner, now_s) is None:
            self._owners.add(one.owner, one.why, now_s)
        if not one.is_of_node:
            return
        self._of_node.add((one.alike, one.node))
        if one.alike in self._have_run:
            self._distrust(one.node, one.why, now_s)
        elif is_everywhere or self._is_suspect(one.alike):
            for node in self._nodes[one.alike]:
                if not any(n == node and who != one.alike and not self._is_suspect(who) for who, n in self._of_node):
                    self._trust(node)
        elif not has_been:  # the same once more is no second witness
            self._distrust(one.node, one.why, now_s)

    def admitted(self, record: PodRecord, group: GroupKey, node: str, now_s: float) -> None:
        """A kubelet has admitted a pod: its node works, and where its like was refused that was the node's fault."""
        owner, alike = owner_of(record, group), _alike(record.namespace, record.reading.pod_class)
        if owner in self._owners:
            self._owners.drop(owner)
            self._changed.add(owner)
        for who in (owner, alike):
            if who in self._nodes:
                self._on_node.drop((who, node))
                self._changed.add(who)
        if alike not in self._nodes:
            self._prune()
            return
        self._trust(node)
        self._have_run.add(alike)
        for one in sorted(self._nodes[alike] - {node}):
            if (alike, one) in self._of_node and (refusal := self._on_node.of((alike, one), now_s)):
                self._distrust(one, refusal.why, now_s)
        self._prune()

    # ---- what follows for who waits

    def nodes_off(self, waiting: Iterable[PodRecord], group: GroupKey, now_s: float) -> dict[str, str]:
        """Nodes that a workload is kept off for now, each with why."""
        found: dict[str, str] = {}
        if self._nodes:
            for who in _whos(waiting, group):
                for node in self._nodes.get(who, ()):
                    if refusal := self._on_node.of((who, node), now_s):
                        found[node] = refusal.why
        return dict(sorted(found.items()))

    def why_off(self, waiting: Iterable[PodRecord], group: GroupKey, now_s: float) -> str:
        """Why a workload is left alone as a whole; "" where it is not."""
        if len(self._owners):
            for who in _whos(waiting, group):
                if refusal := self._owners.of(who, now_s):
                    return refusal.why
        return ""

    def concerns(self, waiting: Iterable[PodRecord], group: GroupKey) -> bool:
        """Something has changed for this workload since `settled`."""
        return any(who in self._changed for who in _whos(waiting, group))

    def over(self, now_s: float) -> bool:
        """Let pass what is over. Whether anything has changed for anybody since `settled`."""
        if self._nodes or len(self._owners):
            self._changed.update(who for who, _ in self._on_node.over(now_s))
            self._changed.update(self._owners.over(now_s))
            self._prune()
        return bool(self._changed)

    def settled(self) -> None:
        """Who is concerned has been looked at."""
        self._changed.clear()

    @property
    def next_s(self) -> float:
        """When one of them is over; infinity where none is waited for."""
        return min(self._on_node.next_s, self._owners.next_s)

    def _is_suspect(self, alike: Who) -> bool:
        """It was refused on several nodes lately, and has run on none since."""
        return len(self._nodes.get(alike, ())) > 1 and alike not in self._have_run

    def _prune(self) -> None:
        self._of_node = {pair for pair in self._of_node if pair in self._on_node}
        for who, nodes in list(self._nodes.items()):
            nodes -= {node for node in nodes if (who, node) not in self._on_node}
            if not nodes:
                del self._nodes[who]
        self._have_run.intersection_update(self._nodes)


def findings(nodes_off: Mapping[str, str]) -> Sequence[str]:
    """What is told of a workload that is kept off nodes."""
    told = [f"{why[:1].upper()}{why[1:].rstrip('.')}. For now it is placed elsewhere." for why in nodes_off.values()]
    more = len(told) - _NAMED
    return [*told[:_NAMED], *([f"The same on {more:,} more."] if more > 0 else [])]


def _whos(records: Iterable[PodRecord], group: GroupKey) -> set[Who]:
    """Under which names refusals of these pods are known. Of a gang of thousands most pods are the same."""
    apart = {(id(r.owners), id(r.reading.pod_class)): r for r in records if r.waits}
    found: set[Who] = set()
    for record in apart.values():
        found.add(owner_of(record, group))
        found.add(_alike(record.namespace, record.reading.pod_class))
    return found
