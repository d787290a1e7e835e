"""Owners of pods, and what their groups name, that we have not heard of: each kind's watch may be late by itself.

Until its owner is known, nobody knows whether a pod stands alone or is one of many. So it waits for the owner, for a
bounded time, and is then taken for what it looks like, which is told. Where a right is missing the owner would never
come: then the pod waits for the right, and that is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from msgspec.structs import replace

from berth.dialects.objects import Unseen
from berth.model.workload import Workload
from berth.sources.absent import unmet

log = logging.getLogger("berth.world")

GroupKey = tuple[str, str]  # (kind of what makes the pods one workload, its key)

PATIENCE_S = 5.0  # for an owner whose kind is followed, and whose watch stands; for one whose kind is not served yet
BEHIND_S = 60.0  # while its kind is being listed, or cannot be watched now
FOR_EVER = float("inf")  # while its kind may not be seen
_LOOK_S = 1.0  # between two looks whether a watch stands again
_BARRED_LOOK_S = 15.0  # and whether a right has been given


class Unheard:
    """`patience_s` says for how long an owner of a kind (API group, kind) is waited for: 0 where it is not followed.

    `needs` are the rights that are missing to see one, "" where none is; `named` is told of an owner that is waited
    for. Times are seconds since the epoch. A workload is known by its key; what none of them names any more is
    forgotten.
    """

    def __init__(self, patience_s: Callable[[str, str], float] = lambda group, kind: 0.0) -> None:
        self.patience_s = patience_s
        self.needs: Callable[[str, str], str] = lambda group, kind: ""
        self.named: Callable[[str, str], None] = lambda group, kind: None
        self._named: dict[GroupKey, frozenset[Unseen]] = {}
        self._by: dict[Unseen, set[GroupKey]] = {}
        self._since: dict[Unseen, float] = {}
        self._pending: dict[Unseen, None] = {}  # still waited for, and not told
        self._barred: dict[Unseen, None] = {}  # waited for until it may be seen, and told
        self._looked_s = 0.0

    def waits(self, key: GroupKey, unseen: Collection[Unseen], now_s: float) -> bool:
        """Whether the workload waits, untold, for one of these owners of its pods, its only ones not seen."""
        if not unseen and key not in self._named:
            return False
        concerns = [one for one in unseen if self.patience_s(one.group, one.kind) or self.needs(one.group, one.kind)]
        named = frozenset(concerns)
        before = self._named.pop(key, frozenset())
        for one in before - named:
            self._forget(one, key)
        if named:
            self._named[key] = named
        for one in named - before:
            self._by.setdefault(one, set()).add(key)
            if one not in self._since:
                self._begin(one, now_s)
        return any(one in self._pending for one in named)

    def doubted(self, key: GroupKey, workload: Workload) -> Workload:
        """The workload, with whom it waits for, and what is doubtful of it because an owner did not come."""
        named = self._named.get(key)
        if not named:
            return workload
        inorder = sorted(named, key=lambda one: one.called)
        missing = tuple(unmet(one, self.needs(one.group, one.kind)) for one in inorder if one in self._barred)
        told = tuple(_doubt(one, self.needs(one.group, one.kind)) for one in inorder if one not in self._barred)
        return replace(workload, unmet=(*workload.unmet, *missing), findings=(*workload.findings, *told))

    def over(self, now_s: float) -> list[GroupKey]:
        """Workloads that have waited long enough for an owner, or of whose wait something else is to be said."""
        found: list[GroupKey] = []
        self._looked_s = now_s
        for one in [one for one in self._barred if self.patience_s(one.group, one.kind) != FOR_EVER]:
            # It may be seen now: it has as long as any other to show itself.
            del self._barred[one]
            self._begin(one, now_s)
            found += sorted(self._by[one])
        for one in [one for one in self._pending if self.patience_s(one.group, one.kind) == FOR_EVER]:
            del self._pending[one]
            self._bar(one)
            found += sorted(self._by[one])
        for one in [one for one in self._pending if self._ends_s(one) <= now_s]:
            del self._pending[one]
            found += sorted(self._by[one])
            log.warning("what pods belong to has not been seen, they are decided on without it", extra={
                "object": one.called, "workloads": len(self._by[one]), "waited_s": round(now_s - self._since[one], 1),
            })  # fmt: skip
        return found

    @property
    def next_s(self) -> float:
        """When it is to be looked at again; infinity where nothing is waited for."""
        barred_s = self._looked_s + _BARRED_LOOK_S if self._barred else FOR_EVER
        if not self._pending:
            return barred_s
        return min(barred_s, self._looked_s + _LOOK_S, *(self._ends_s(one) for one in self._pending))

    def _begin(self, one: Unseen, now_s: float) -> None:
        patience_s = self.patience_s(one.group, one.kind)
        self._since[one] = self._looked_s = now_s
        if patience_s == FOR_EVER:
            self._bar(one)
        elif patience_s:
            self._pending[one] = None
            self.named(one.group, one.kind)

    def _bar(self, one: Unseen) -> None:
        self._barred[one] = None
        log.warning("pods wait for an owner that may not be seen", extra={
            "object": one.called, "needs": self.needs(one.group, one.kind),
        })  # fmt: skip

    def _ends_s(self, one: Unseen) -> float:
        return self._since[one] + self.patience_s(one.group, one.kind)

    def _forget(self, one: Unseen, key: GroupKey) -> None:
        by = self._by[one]
        by.discard(key)
        if not by:
            del self._by[one], self._since[one]
            self._pending.pop(one, None)
            self._barred.pop(one, None)


def _doubt(one: Unseen, needs: str) -> str:
    unseen = f"may not be seen (Berth needs {needs})" if needs else "has not been seen"
    return f"{one.called}, which its pods belong to, {unseen}: they were taken for what they look like."
