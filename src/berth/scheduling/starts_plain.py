"""What starts_run.py computes, in plain words: its definition, for tests and for reading."""

from __future__ import annotations

from dataclasses import dataclass, field

from berth.scheduling.starts_columns import F64, I64, Asked, Ground, Rules, Tree

NEVER = float("inf")


@dataclass
class Node:
    """`moment` is when what it shows last changed: of nodes that would do as well, the latest is taken."""

    pool: int
    free: int
    kept: int = 0
    moment: int = 0


@dataclass
class Job:
    """A row of `asked` with its times; pods are (node, units) of one that runs."""

    number: int
    leaf: int
    milli: int
    priority: int
    parts: list[tuple[int, int]]  # pods and the units of each
    pools: int
    limit_s: float
    rank: float
    runs_s: float
    began_s: float = 0.0
    due_s: float = NEVER
    pods: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Reservation:
    """By node: units taken by who is next at `at_s`, and units that are released there until then."""

    at_s: float
    taken: dict[int, int]
    released: dict[int, int]


class Queue:
    """One sample. `start_s` is when each job started that waited at first or came."""

    def __init__(
        self, ground: Ground, tree: Tree, asked: Asked, rules: Rules, row: I64, at_s: F64, runs_s: F64
    ) -> None:
        self.tree, self.rules = tree, rules
        self.moment = 0
        self.nodes = [Node(int(p), int(f)) for p, f in zip(ground.pool, ground.free, strict=True)]
        for node in reversed(self.nodes):
            self._changed(node)
        self.held = tree.held.tolist()
        self.jobs = [_job(j, int(r), asked, float(runs_s[j])) for j, r in enumerate(row.tolist())]
        runs = len(ground.first) - 1
        self.running = self.jobs[:runs]
        for j, job in enumerate(self.running):
            some = range(int(ground.first[j]), int(ground.first[j + 1]))
            job.pods = [(int(ground.node[i]), int(ground.units[i])) for i in some]
            job.began_s, job.due_s = -float(ground.ran_s[j]), job.limit_s
        self.ends = {job.number: job.runs_s for job in self.running}
        self.coming = [(float(at), self.jobs[len(self.jobs) - len(at_s) + i]) for i, at in enumerate(at_s.tolist())]
        self.lines: dict[int, list[Job]] = {}
        self.start_s: dict[int, float] = {}
        self.place: Reservation | None = None

    def play(self, waits: int) -> list[float]:
        runs = len(self.running)
        first = self.jobs[runs : runs + waits]
        for job in first:
            self._join(job)
        changes = 0
        for _ in range(self.rules.steps):
            next_comes = self.coming[0][0] if self.coming else NEVER
            now = min(min(self.ends.values(), default=NEVER), next_comes)
            if now == NEVER or all(job.number in self.start_s for job in first):
                break
            for number in sorted((n for n, at in self.ends.items() if at <= now), key=lambda n: (self.ends[n], n)):
                self._end(self.jobs[number])
                changes += 1
            while self.coming and self.coming[0][0] <= now:
                self._join(self.coming.pop(0)[1])
                changes += 1
            if any(node.free for node in self.nodes) and changes > len(self.ends) // self.rules.crowd:
                changes = 0
                self._decide(now)
        return [self.start_s.get(job.number, NEVER) for job in first]

    # ---- the order

    def _join(self, job: Job) -> None:
        line = self.lines.setdefault(job.leaf, [])
        at = len(line)
        while at and (-line[at - 1].priority, line[at - 1].rank) > (-job.priority, job.rank):
            at -= 1
        line.insert(at, job)

    def _order(self, q: int) -> list[Job]:
        """Of a queue and those below it: by virtual time, then priority, rank and the order in which they came."""
        children = self.tree.child[self.tree.first_child[q] : self.tree.first_child[q + 1]].tolist()
        if not children:
            return list(self.lines.get(q, ()))
        lines = {c: self._order(c) for c in children}
        passed = dict.fromkeys(children, 0)
        merged: list[Job] = []
        while any(lines.values()):
            best = min(
                (c for c in children if lines[c]),
                key=lambda c: (self._time(c, passed[c], lines[c][0]), lines[c][0].number),
            )
            passed[best] += lines[best][0].milli
            merged.append(lines[best].pop(0))
        return merged

    def _time(self, q: int, passed: int, job: Job) -> tuple[float, int, float]:
        beyond = self.held[q] + passed + job.milli - float(self.tree.base[q])
        return max(beyond, 0.0) / float(self.tree.weight[q]), -job.priority, job.rank

    def _above(self, q: int) -> list[int]:
        chain = [q]
        while (parent := int(self.tree.parent[chain[-1]])) >= 0:
            chain.append(parent)
        return chain

    # ---- a moment

    def _decide(self, now: float) -> None:
        in_vain = 0
        for job in self._order(0)[: self.rules.depth]:
            if not any(node.free for node in self.nodes):
                break
            if any(self.held[q] + job.milli > int(self.tree.limit[q]) for q in self._above(job.leaf)):
                continue
            has_ended = self.place is not None and now + job.limit_s <= self.place.at_s
            if self._put(job) or (has_ended and self._pass(job)):
                self._start(job, now)
            elif self.place is None and in_vain < self.rules.searches and self._limited():
                self.place = self._reserve(job, now)
                in_vain += self.place is None
        self._give_back()
        self.place = None

    def _start(self, job: Job, now: float) -> None:
        self.lines[job.leaf].remove(job)
        for q in self._above(job.leaf):
            self.held[q] += job.milli
        job.began_s, job.due_s = now, now + job.limit_s
        self.ends[job.number] = now + job.runs_s
        self.start_s[job.number] = now

    def _end(self, job: Job) -> None:
        del self.ends[job.number]
        for n, units in reversed(job.pods):
            self._set(n, self.nodes[n].free + units, 0)
        for q in self._above(job.leaf):
            self.held[q] -= job.milli

    def _limited(self) -> bool:
        return any(self.jobs[n].due_s < NEVER for n in self.ends)

    # ---- room

    def _changed(self, node: Node) -> None:
        self.moment += 1
        node.moment = self.moment

    def _set(self, n: int, free: int, kept: int) -> None:
        node = self.nodes[n]
        shows = node.free - node.kept
        node.free, node.kept = free, kept
        if free - kept != shows:
            self._changed(node)

    def _put(self, job: Job) -> bool:
        job.pods = []
        for count, units in job.parts:
            for _ in range(count):
                fits = [
                    n
                    for n, node in enumerate(self.nodes)
                    if job.pools >> node.pool & 1 and node.free - node.kept >= units
                ]
                if not fits:
                    for n, back in reversed(job.pods):
                        self._set(n, self.nodes[n].free + back, self.nodes[n].kept)
                    job.pods = []
                    return False
                n = min(fits, key=lambda n: self._tightness(self.nodes[n]))
                self._set(n, self.nodes[n].free - units, self.nodes[n].kept)
                job.pods.append((n, units))
        return True

    @staticmethod
    def _tightness(node: Node) -> tuple[int, int, int]:
        return node.free - node.kept, node.pool, -node.moment

    # ---- a place in time

    def _keep(self) -> None:
        assert self.place is not None
        for n, taken in self.place.taken.items():
            kept = min(max(taken - self.place.released.get(n, 0), 0), self.nodes[n].free)
            self._set(n, self.nodes[n].free, kept)

    def _give_back(self) -> None:
        for n in self.place.taken if self.place is not None else ():
            self._set(n, self.nodes[n].free, 0)

    def _pass(self, job: Job) -> bool:
        assert self.place is not None
        self._give_back()
        placed = self._put(job)
        for n, units in job.pods:
            if n in self.place.taken:
                self.place.released[n] = self.place.released.get(n, 0) + units
        self._keep()
        return placed

    def _reserve(self, job: Job, now: float) -> Reservation | None:
        """The earliest end, by limits, after which there is room for it."""
        known = [self.jobs[n] for n in self.ends if self.jobs[n].due_s < NEVER]
        for one in known:
            if one.due_s <= now:
                one.due_s = now + max(self.rules.overrun_s, (now - one.began_s) / 10)
        ends = sorted((one.due_s, one.number) for one in known)
        lift: dict[int, int] = {}
        for i, (at, number) in enumerate(ends):
            for n, units in reversed(self.jobs[number].pods):
                if job.pools >> self.nodes[n].pool & 1:
                    lift[n] = lift.get(n, 0) + units
            if i + 1 < len(ends) and ends[i + 1][0] <= at:
                continue
            if (taken := self._laid_out(job, lift)) is not None:
                place = Reservation(at, taken, {n: lift.get(n, 0) for n in taken})
                self.place = place
                self._keep()
                return place
        return None

    def _laid_out(self, job: Job, lift: dict[int, int]) -> dict[int, int] | None:
        """On nodes that somebody leaves, in the order in which they do, then on those with the fewest free units."""
        taken: dict[int, int] = {}
        others = sorted(
            (n for n, node in enumerate(self.nodes) if n not in lift and job.pools >> node.pool & 1),
            key=lambda n: self._tightness(self.nodes[n]),
        )
        for count, units in job.parts:
            left = count
            for n in (*lift, *others):
                while left and self.nodes[n].free + lift.get(n, 0) - taken.get(n, 0) >= units:
                    taken[n] = taken.get(n, 0) + units
                    left -= 1
            if left:
                return None
        return taken


def _job(number: int, r: int, asked: Asked, runs_s: float) -> Job:
    parts = [(int(asked.pods_a[r]), int(asked.units_a[r])), (int(asked.pods_b[r]), int(asked.units_b[r]))]
    return Job(
        number, int(asked.leaf[r]), int(asked.milli[r]), int(asked.priority[r]), [p for p in parts if p[0]],
        int(asked.pools[r]), float(asked.limit_s[r]), float(asked.rank[r]), runs_s,
    )  # fmt: skip


def run_once(
    ground: Ground, tree: Tree, asked: Asked, rules: Rules, row: I64, at_s: F64, runs_s: F64, waits: int
) -> list[float]:
    """When each of those that wait starts; arguments as of `run_all`, of one sample."""
    return Queue(ground, tree, asked, rules, row, at_s, runs_s).play(waits)
