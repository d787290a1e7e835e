"""Shadow: decide beside another scheduler, write nothing, and compare what was decided with what happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from msgspec import Struct

from berth.actions.binding import Binder
from berth.app.scheduler.driver import Driver, by_workload
from berth.model.reasons import Verdict
from berth.model.snapshot import Snapshot
from berth.model.workload import Workload
from berth.scheduling.plan import Plan
from berth.sources.live.world import World
from berth.views.shadow import Comparison

Key = tuple[str, str]  # (namespace, name)

MOST_EXAMPLES = 5
PARTIAL_S = 5.0  # a gang that was partly bound for longer is told of


class Opinion(Struct):
    """What Berth says of one pod, from its first decision on, and what became of it. Times are epoch seconds.

    `node` "": it would have waited, for `reason`. `seen_s` is when the pod was first decided upon, `placed_s` when
    Berth would have placed it, `bound_s` when somebody did, on `bound_to`.
    """

    workload: str
    is_gang: bool
    seen_s: float
    node: str = ""
    placed_s: float = 0.0
    reason: str = ""
    sentence: str = ""
    bound_to: str = ""
    bound_s: float = 0.0
    is_gone: bool = False


class Shadow(Driver):
    """A driver that sends nothing. What others bind is told by the world."""

    def __init__(
        self,
        world: World,
        binder: Binder,
        *,
        now: Callable[[], float],
        told: Callable[[Plan, Snapshot, float], None] = lambda plan, snapshot, seconds: None,
        window_s: float,
        most_s: float,
    ) -> None:
        super().__init__(world, binder, now=now, told=told, window_s=window_s, most_s=most_s)
        self.opinions: dict[Key, Opinion] = {}
        self._evictions: set[Key] = set()
        self._begun: dict[str, float] = {}
        self._partial: set[str] = set()
        self._faster: dict[Key, tuple[str, float]] = {}
        world.on_bound = self.saw_bound
        world.on_gone = self.saw_gone

    def _send(self, plan: Plan) -> int:
        now_s = self._now()
        for workload, places in by_workload(plan):
            for name, node in places:
                one = self._opinion(workload, name, now_s)
                if not one.node:
                    one.node, one.placed_s = node, now_s
        for w, verdict in plan.verdicts.items():
            self._take_verdict(plan.workloads[w], verdict, now_s)
        self._evictions.update((e.allocation.namespace, e.allocation.name) for e in plan.evictions)
        for w in plan.verdicts:
            self._watch_partial(plan.workloads[w], now_s)
        self._catch_up()
        return 0

    def _catch_up(self) -> None:
        """Binds that came before an opinion count from now on."""
        for key, (node, bound_s) in list(self._faster.items()):
            one = self.opinions.get(key)
            if one is not None:
                del self._faster[key]
                self._compare(key, one, node, bound_s)
                self._world.let_through(key)

    def _make_room(self, plan: Plan) -> None:
        """Nobody is asked to leave."""

    def _give_back(self, plan: Plan, now_s: float) -> None:
        """Nor here."""

    def _take_verdict(self, workload: Workload, verdict: Verdict, now_s: float) -> None:
        for name in (name for names in workload.pods for name in names):
            one = self._opinion(workload, name, now_s)
            if not one.node and verdict.causes:
                one.reason, one.sentence = verdict.causes[0].reason.name, verdict.causes[0].sentence

    def _watch_partial(self, workload: Workload, now_s: float) -> None:
        if workload.has_begun and workload.is_gang and any(s.min_count for s in workload.pod_sets):
            since_s = self._begun.setdefault(workload.identity, now_s)
            if now_s - since_s > PARTIAL_S:
                self._partial.add(workload.identity)
        else:
            self._begun.pop(workload.identity, None)

    def _opinion(self, workload: Workload, name: str, now_s: float) -> Opinion:
        key = (workload.namespace, name)
        one = self.opinions.get(key)
        if one is None:
            one = self.opinions[key] = Opinion(workload.identity, workload.is_gang, now_s)
        return one

    def saw_bound(self, key: Key, node: str) -> bool:
        """Whether it is to be held back: whoever is faster than Berth is compared with what Berth would have said."""
        one = self.opinions.get(key)
        if one is not None:
            if not one.bound_to:
                self._compare(key, one, node, self._now())
            return False
        self._faster[key] = (node, self._now())
        return True

    def _compare(self, key: Key, one: Opinion, node: str, bound_s: float) -> None:
        one.bound_to, one.bound_s = node, bound_s
        if one.node != node:
            berth = f"would have placed it on {one.node}" if one.node else f"would have had it wait: {_said(one)}"
            self._journal.differs("/".join(key), node, berth)

    def saw_gone(self, key: Key) -> None:
        self._faster.pop(key, None)
        one = self.opinions.get(key)
        if one is not None:
            one.is_gone = True

    def comparison(self) -> Comparison:
        """What has been seen so far."""
        return compare(self.opinions.items(), len(self._evictions), len(self._partial))


def compare(opinions: Iterable[tuple[Key, Opinion]], evictions: int = 0, partial_gangs: int = 0) -> Comparison:
    """Opinions against what happened."""
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    earlier: list[float] = []
    examples: dict[str, list[str]] = {"other": [], "only they": [], "only berth": [], "both wait": []}
    pods = 0
    for (namespace, name), one in opinions:
        pods += 1
        pod = f"{namespace}/{name}"
        if one.node and one.bound_to:
            counts["same" if one.node == one.bound_to else "other"] += 1
            earlier.append(round(one.bound_s - one.placed_s, 3))
            if one.node != one.bound_to:
                _example(examples["other"], f"{pod} is on {one.bound_to}; Berth would have placed it on {one.node}")
        elif one.bound_to:
            counts["only they"] += 1
            reasons[one.reason] += 1
            _example(examples["only they"], f"{pod} is on {one.bound_to}; Berth would have waited: {_said(one)}")
        elif one.is_gone:
            counts["gone"] += 1
        elif one.node:
            counts["only berth"] += 1
            _example(examples["only berth"], f"{pod} waits; Berth would have placed it on {one.node}")
        else:
            counts["both wait"] += 1
            reasons[one.reason] += 1
            _example(examples["both wait"], f"{pod} waits; Berth says {_said(one)}")
    return Comparison(
        pods, counts["same"], counts["other"], counts["only they"], counts["only berth"], counts["both wait"],
        counts["gone"], evictions, partial_gangs, tuple(sorted(earlier)), tuple(reasons.most_common()),
        tuple(sentence for sentences in examples.values() for sentence in sentences),
    )  # fmt: skip


def _said(one: Opinion) -> str:
    return f"{one.reason}: {one.sentence}" if one.reason else "nothing yet"


def _example(sentences: list[str], sentence: str) -> None:
    if len(sentences) < MOST_EXAMPLES:
        sentences.append(sentence)
