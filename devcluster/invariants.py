"""What must never happen, watched from outside: reads the API server by itself and fails a test at once."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from devcluster.access import Access
from devcluster.amounts import allocatable, asked
from devcluster.api import Api, Object, Refused
from devcluster.background import BackgroundLoop
from devcluster.watch import DELETED, SYNCED, changes

_GROUPS = "/apis/scheduling.k8s.io/v1beta1/podgroups"
_TICK_S = 0.05
# A node that has just been given less may have been bound to before its scheduler could know.
_SHRINK_GRACE_S = 1.0

GangOf = Callable[[Object], tuple[str, int | None] | None]


@dataclass(frozen=True)
class Violation:
    """What happened: `rule` is over-allocatable, node-changed, partial-gang or over-limit."""

    rule: str
    subject: str
    text: str
    at_s: float  # time.time()

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


class InvariantBroken(AssertionError):
    """Raised in the main thread as soon as a rule is broken."""


@dataclass(frozen=True)
class Limit:
    """At most so much of a resource (in its own unit) by the bound pods that `counts`."""

    name: str
    counts: Callable[[Object], bool]
    resource: str
    at_most: int


@dataclass
class Gang:
    """How a gang stands: `minimum` None until its PodGroup is seen. Times are time.monotonic()."""

    name: str
    minimum: int | None
    bound: set[str] = field(default_factory=set)  # pod uids
    first_s: float = 0.0
    last_s: float = 0.0
    whole_s: float = 0.0  # 0 until the minimum was bound
    longest_partial_s: float = 0.0

    @property
    def is_partial(self) -> bool:
        return bool(self.bound) and not self.whole_s and self.minimum is not None and len(self.bound) < self.minimum


@dataclass
class _Seen:
    name: str
    node: str
    occupies: dict[str, int]
    is_own: bool
    limits: tuple[Limit, ...]
    gang: Gang | None


class InvariantWatcher:
    """Watches nodes and pods from `start` to `stop`; `check` raises what was found.

    own        schedulerNames that are under test. A pod of theirs that is bound to a node without room is a violation.
    foreign    others bind to the same nodes meanwhile: where their pods lie, a node may be over its allocatable for
               `settle_s` seconds, and longer is a violation.
    partial_s  how long a gang that was never whole may be partly bound.
    gang_of    (name, minimum) of a pod's gang, or None. By default PodGroups of scheduling.k8s.io, and the label
               berth.dev/gang with the annotation berth.dev/min-count.
    limits     sums that may not be passed.
    interrupt  raise InvariantBroken in the main thread at once (SIGUSR1), wherever that is.
    """

    def __init__(
        self,
        access: Access,
        *,
        own: Collection[str] = ("berth",),
        foreign: bool = False,
        settle_s: float = 10.0,
        partial_s: float = 1.0,
        gang_of: GangOf | None = None,
        limits: Sequence[Limit] = (),
        interrupt: bool = True,
    ) -> None:
        self.violations: list[Violation] = []
        self.gangs: dict[str, Gang] = {}
        self.binds = 0  # pods of `own` that were seen to get a node
        self._access = access
        self._own, self._foreign, self._settle_s = frozenset(own), foreign, settle_s
        self._partial_s, self._gang_of, self._limits = partial_s, gang_of or _gang_of, tuple(limits)
        self._interrupt = interrupt
        self._pods: dict[str, _Seen] = {}  # by uid, those with a node
        self._offers: dict[str, dict[str, int]] = {}
        self._used: dict[str, dict[str, int]] = {}
        self._shrunk_s: dict[str, float] = {}
        self._over_since_s: dict[str, float] = {}
        self._spent: dict[str, int] = {limit.name: 0 for limit in limits}
        self._partial: dict[str, Gang] = {}
        self._reported: set[tuple[str, str]] = set()
        self._raised = False
        self._synced = threading.Event()
        self._loop: BackgroundLoop | None = None
        self._handler_before: Any = None

    def start(self) -> InvariantWatcher:
        """Watching, with everything that is there now seen."""
        if self._interrupt and threading.current_thread() is threading.main_thread():
            self._handler_before = signal.signal(signal.SIGUSR1, self._raise_in_main)
        else:
            self._interrupt = False
        self._loop = BackgroundLoop("invariants")
        self._loop.spawn(self._live())
        if not self._synced.wait(20):
            raise TimeoutError("The invariant watcher saw no pods within 20 s.")
        return self

    def stop(self) -> None:
        """Stop watching. Call `check` after it."""
        if self._interrupt:
            self._interrupt = False
            signal.signal(signal.SIGUSR1, self._handler_before or signal.SIG_DFL)
        if self._loop is not None:
            self._loop.run(self._api.close())
            self._loop.close()
            self._loop = None

    def check(self) -> None:
        """Raise InvariantBroken for what was found and not raised yet."""
        if self.violations and not self._raised:
            self._raised = True
            raise InvariantBroken("\n".join(map(str, self.violations)))

    def __enter__(self) -> InvariantWatcher:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        if kind is None:
            self.check()

    # --- what a test may ask

    @property
    def nodes_in_use(self) -> int:
        """Nodes with at least one pod of `own` that has not ended."""
        return len({pod.node for pod in list(self._pods.values()) if pod.is_own and pod.occupies})

    def over_now(self) -> dict[str, float]:
        """Nodes over their allocatable with foreign pods, and for how many seconds."""
        now = time.monotonic()
        return {node: now - since for node, since in list(self._over_since_s.items())}

    # --- inside: on the loop

    async def _live(self) -> None:
        self._api = Api(self._access)
        watches = [self._watch_nodes(), self._watch_pods(), self._tick()]
        if self._gang_of is _gang_of and await self._has_groups():
            watches.append(self._watch_groups())
        await asyncio.gather(*watches)

    async def _has_groups(self) -> bool:
        try:
            await self._api.request("GET", _GROUPS + "?limit=1")
        except Refused:
            return False
        return True

    async def _watch_nodes(self) -> None:
        async for change, node in changes(self._api, "/api/v1/nodes"):
            if change == SYNCED:
                continue
            name = node["metadata"]["name"]
            offers = {} if change == DELETED else allocatable(node)
            before = self._offers.get(name, {})
            if any(offers.get(resource, 0) < amount for resource, amount in before.items()):
                self._shrunk_s[name] = time.monotonic()
            self._offers[name] = offers

    async def _watch_groups(self) -> None:
        async for change, group in changes(self._api, _GROUPS):
            if change in (SYNCED, DELETED):
                continue
            minimum = (group["spec"].get("schedulingPolicy", {}).get("gang") or {}).get("minCount")
            name = _group_name(group["metadata"]["namespace"], group["metadata"]["name"])
            gang = self.gangs.setdefault(name, Gang(name, None))
            gang.minimum = minimum
            self._judge_gang(gang)

    async def _watch_pods(self) -> None:
        async for change, pod in changes(self._api, "/api/v1/pods"):
            if change == SYNCED:
                self._synced.set()
            elif pod["spec"].get("nodeName"):
                await self._meet(pod, is_gone=change == DELETED)

    async def _meet(self, pod: Object, is_gone: bool) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        has_ended = is_gone or pod["status"].get("phase") in ("Succeeded", "Failed")
        occupies = {} if has_ended else asked(pod)
        seen = self._pods.get(uid)
        if seen is None:
            if is_gone:
                return
            is_own = pod["spec"].get("schedulerName") in self._own
            limits = tuple(limit for limit in self._limits if limit.counts(pod))
            seen = self._pods[uid] = _Seen(name, node, {}, is_own, limits, self._find_gang(pod))
            self.binds += is_own
        elif seen.node != node:
            self._report("node-changed", uid, f"{name} was on {seen.node} and is on {node}.")
        self._count_in_gang(seen.gang, pod, is_gone)
        grows = bool(occupies) and not seen.occupies
        self._occupy(seen, occupies)
        if is_gone:
            del self._pods[uid]
        if grows:
            self._judge_limits(seen)
        if grows or not occupies:
            await self._judge_node(node, seen if grows else None)

    def _occupy(self, seen: _Seen, occupies: dict[str, int]) -> None:
        used = self._used.setdefault(seen.node, {})
        for sign, amounts in ((-1, seen.occupies), (1, occupies)):
            for resource, amount in amounts.items():
                used[resource] = used.get(resource, 0) + sign * amount
            for limit in seen.limits:
                self._spent[limit.name] += sign * amounts.get(limit.resource, 0)
        seen.occupies = occupies

    def _judge_limits(self, seen: _Seen) -> None:
        for limit in seen.limits:
            spent = self._spent[limit.name]
            if spent > limit.at_most * 1000:
                text = f"{spent / 1000:g} {limit.resource} with {seen.name}, at most {limit.at_most} allowed."
                self._report("over-limit", limit.name, f"{limit.name}: {text}")

    async def _judge_node(self, node: str, newest: _Seen | None) -> None:
        """Has the node too much on it, now that `newest` has come (or, None, something has gone)?"""
        short = self._short_of(node)
        if not short:
            self._over_since_s.pop(node, None)
            return
        if newest is None:
            return
        # Nodes and pods come over two watches: ask again before anybody is accused.
        try:
            self._offers[node] = allocatable(await self._api.request("GET", f"/api/v1/nodes/{node}"))
        except Refused:
            return  # the node is gone
        short = self._short_of(node)
        just_shrunk = time.monotonic() - self._shrunk_s.get(node, -_SHRINK_GRACE_S) < _SHRINK_GRACE_S
        others = any(pod.node == node and pod.occupies and not pod.is_own for pod in self._pods.values())
        if not any(resource in newest.occupies for resource, _, _ in short):
            return
        if (self._foreign and others) or just_shrunk:
            self._over_since_s.setdefault(node, time.monotonic())
        elif newest.is_own:
            self._report("over-allocatable", node, f"{newest.name} came to {node}: {_figures(short)}")

    def _short_of(self, node: str) -> list[tuple[str, int, int]]:
        """(resource, used, offered) of what the node has too little of, or does not have at all."""
        offers = self._offers.get(node)
        if offers is None:
            return []
        used = self._used.get(node, {})
        pairs = ((resource, amount, offers.get(resource, 0)) for resource, amount in used.items())
        return [(resource, amount, offered) for resource, amount, offered in pairs if amount > offered]

    def _find_gang(self, pod: Object) -> Gang | None:
        found = self._gang_of(pod)
        if found is None:
            return None
        name, minimum = found
        gang = self.gangs.setdefault(name, Gang(name, minimum))
        if minimum is not None:
            gang.minimum = minimum
        return gang

    def _count_in_gang(self, gang: Gang | None, pod: Object, is_gone: bool) -> None:
        if gang is None:
            return
        uid, now = pod["metadata"]["uid"], time.monotonic()
        leaves = is_gone or pod["metadata"].get("deletionTimestamp") or pod["status"].get("phase") == "Failed"
        if leaves:
            gang.bound.discard(uid)
            if not gang.bound:
                gang.first_s = gang.whole_s = 0.0
        elif uid not in gang.bound:
            gang.first_s = gang.first_s or now
            gang.last_s = now
            gang.bound.add(uid)
        self._judge_gang(gang)

    def _judge_gang(self, gang: Gang) -> None:
        if gang.is_partial:
            self._partial[gang.name] = gang
            return
        if gang.bound and gang.minimum is not None and not gang.whole_s:
            gang.whole_s = gang.last_s
            gang.longest_partial_s = max(gang.longest_partial_s, gang.whole_s - gang.first_s)
        self._partial.pop(gang.name, None)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            now = time.monotonic()
            for gang in self._partial.values():
                gang.longest_partial_s = max(gang.longest_partial_s, now - gang.first_s)
                if now - gang.first_s > self._partial_s:
                    text = f"{len(gang.bound)} of {gang.minimum} pods of {gang.name} are bound since"
                    self._report("partial-gang", gang.name, f"{text} {now - gang.first_s:.2f} s.")
            for node, since in list(self._over_since_s.items()):
                if not self._short_of(node):
                    del self._over_since_s[node]
                elif now - since > self._settle_s:
                    figures = _figures(self._short_of(node))
                    self._report("over-allocatable", node, f"{node} for more than {self._settle_s:g} s: {figures}")

    def _report(self, rule: str, subject: str, text: str) -> None:
        if (rule, subject) in self._reported:
            return
        self._reported.add((rule, subject))
        self.violations.append(Violation(rule, subject, text, time.time()))
        if self._interrupt:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def _raise_in_main(self, number: int, frame: FrameType | None) -> None:
        self.check()


def _gang_of(pod: Object) -> tuple[str, int | None] | None:
    """The gang as upstream Kubernetes or Berth's own keys say it."""
    metadata = pod["metadata"]
    group = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    if group:
        return _group_name(metadata["namespace"], group), None
    name = metadata.get("labels", {}).get("berth.dev/gang")
    minimum = metadata.get("annotations", {}).get("berth.dev/min-count")
    if name and minimum:
        return f"{metadata['namespace']}/{name}", int(minimum)
    return None


def _group_name(namespace: str, name: str) -> str:
    return f"PodGroup {namespace}/{name}"


def _figures(short: list[tuple[str, int, int]]) -> str:
    return ", ".join(f"{used / 1000:g} of {offered / 1000:g} {resource}" for resource, used, offered in short) + "."
