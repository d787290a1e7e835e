"""The status of waiting pods: why they wait, and which node is kept for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from berth.actions import conditions
from berth.actions.conditions import FIELDS, PodSaid
from berth.actions.subjects import PodKey, Pods, stamp
from berth.actions.writing import Writing
from berth.model.hold import Hold
from berth.model.reasons import Verdict
from berth.model.workload import Workload

UNTIL = "until"  # marks an item that looks whether a hold has ended


@dataclass(slots=True)
class _Pod:
    """`said` is what its status says; `why` what it is to say. `kept` the node held for it until `kept_until`."""

    said: PodSaid
    doubts: frozenset[str] = frozenset()  # fields of `said` that a write without an answer may have changed
    why: Verdict | None = None
    kept: str = ""
    kept_until: float = 0.0  # seconds since the epoch; 0.0: until the hold is gone


class PodNotices:
    """A pod is written once when the reason's code changes: its numbers are those of that moment.

    `add` puts a pod in the lane whose writer is `write`, at once or when the clock says so much.
    """

    def __init__(
        self,
        writing: Writing,
        *,
        add: Callable[[Any, float], None],
        clock: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        self._writing = writing
        self._add = add
        self._clock = clock
        self._now = now
        self._pods: dict[PodKey, _Pod] = {}
        self._has_holds = False
        self.world: Pods | None = None

    def __len__(self) -> int:
        return len(self._pods)

    def adopt(self, left: dict[PodKey, PodSaid]) -> None:
        """What the pods say from before."""
        self._pods = {key: _Pod(said) for key, said in left.items()}
        self._has_holds = False

    def confirm(self) -> None:
        """After the first plan: a node that nobody keeps any more is taken back."""
        for key, pod in self._pods.items():
            if pod.said.node and not pod.kept:
                self._add(key, 0.0)

    def tell(self, workload: Workload, verdict: Verdict, code: str) -> None:
        """Why the pods of a workload wait."""
        for names in workload.pods:
            for name in names:
                key = (workload.namespace, name)
                pod = self._pods.get(key)
                if pod is None:
                    pod = self._pods[key] = _Pod(PodSaid(""))
                pod.why = verdict
                if pod.said.code != code:
                    self._add(key, 0.0)

    def forget(self, before: Workload, after: Workload | None = None) -> None:
        """Pods of a workload that wait no more, or not as part of it."""
        left = {name for names in after.pods for name in names} if after is not None else set()
        for names in before.pods:
            for name in names:
                if name not in left:
                    self._pods.pop((before.namespace, name), None)

    def bound(self, key: PodKey) -> None:
        self._pods.pop(key, None)

    def keep(self, kept: dict[PodKey, tuple[str, float]], now_s: float) -> None:
        """Nodes that are held for pods by name, each with its end; for all others nothing is held any more."""
        if not kept and not self._has_holds:
            return
        self._has_holds = bool(kept)
        for key in kept.keys() - self._pods.keys():
            record = self.world.record(key) if self.world is not None else None
            if record is not None:
                self._pods[key] = _Pod(PodSaid(record.uid))
        for key, pod in self._pods.items():
            node, until_s = kept.get(key, ("", 0.0))
            if (pod.kept, pod.kept_until) == (node, until_s):
                continue
            pod.kept, pod.kept_until = node, until_s
            self._add(key, 0.0)
            if node and until_s:
                # A hold may end without a plan that says so.
                self._add((UNTIL, key), self._clock() + max(0.0, until_s - now_s) + 0.01)

    def promising(self, key: PodKey, uid: str, node: str) -> None:
        """This node is being written on a pod elsewhere, so that it is not written here."""
        record = self.world.record(key) if self.world is not None else None
        if record is not None and record.uid == uid and record.waits:
            pod = self._pods.setdefault(key, _Pod(PodSaid(uid)))
            pod.said = PodSaid(uid, pod.said.code if pod.said.uid == uid else "", node)

    def promised(self, key: PodKey, uid: str, node: str, is_written: bool) -> None:
        """What became of it. Where it is not so, or not wanted any more, the node is written here."""
        pod = self._pods.get(key)
        if pod is not None and pod.said.uid == uid and (not is_written or pod.kept != node):
            pod.doubts |= {"node"}
            self._add(key, 0.0)

    async def write(self, item: Any) -> None:
        """Raises ApiError, Withdrawn."""
        if item[0] == UNTIL and not isinstance(item[1], str):
            self._add(item[1], 0.0)  # under its own name, so that one write of a pod is under way at a time
            return
        key: PodKey = item
        pod = self._pods.get(key)
        record = self.world.record(key) if self.world is not None else None
        if pod is None or record is None or not record.waits:
            return
        before = pod.said
        if before.uid != record.uid:
            before, pod.doubts = PodSaid(record.uid), frozenset()
        now_s, why = self._now(), pod.why
        code, said = before.code, b""
        # Of a pod with gates the API server itself says SchedulingGated, and others act on that word.
        is_told = why is None or why.reason is None or (why.reason.name == code and "code" not in pod.doubts)
        if why is not None and why.reason is not None and not is_told and not record.gates:
            code = why.reason.name
            said = conditions.condition(why, "" if before.code else stamp(now_s))
        node = pod.kept if not pod.kept_until or pod.kept_until > now_s else ""
        after = PodSaid(record.uid, code, node)
        changed = pod.doubts | {name for name in FIELDS if getattr(before, name) != getattr(after, name)}
        if not changed:
            pod.said = after
            return
        # Before the answer: where none comes, it may say the one or the other, and both are written again.
        pod.said, pod.doubts = before, changed
        there = await self._writing.write_pod(key, record.uid, conditions.change(after, changed, said))
        if there is None:
            if self._pods.get(key) is pod:
                del self._pods[key]
            return
        # A promise that was written meanwhile came before or after: then the node is written again.
        is_overtaken = pod.said is not before
        pod.said, pod.doubts = after, frozenset({"node"} if is_overtaken else ())
        if there.spec.node_name and code:
            # The bind arrived first, and what it said has just been overwritten.
            body = conditions.bound_after_all(record.uid, stamp(self._now()))
            await self._writing.write_pod(key, record.uid, body)
        elif pod.why is not why or is_overtaken:
            self._add(key, 0.0)


def kept_nodes(holds: Iterable[Hold], waiting: Iterable[Workload]) -> dict[PodKey, tuple[str, float]]:
    """The pods that holds are for, in the order in which they wait: (node, until)."""
    by_identity = {hold.workload: hold for hold in holds}
    kept: dict[PodKey, tuple[str, float]] = {}
    for workload in waiting if by_identity else ():
        hold = by_identity.get(workload.identity)
        if hold is None or (hold.uid and workload.uid and hold.uid != workload.uid):
            continue
        names = {s.name: list(own) for s, own in zip(workload.pod_sets, workload.pods, strict=False)}
        for place in hold.places:
            own = names.get(place.pod_set, [])
            for name in own[: place.count]:
                kept[workload.namespace, name] = (place.node, hold.until_s)
            names[place.pod_set] = own[place.count :]
    return kept
