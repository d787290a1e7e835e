"""Who may leave together: disruption budgets, and gangs that keep their minimum or leave whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.model.budget import Budget
from berth.scheduling.neighbours import matches
from berth.scheduling.roster import Roster

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass
class Allowance:
    """Of some pods, `left` more may leave; `pods` (P,) are positions in the roster."""

    pods: Mask
    left: int


@dataclass(frozen=True)
class Leaving:
    """Pods that leave together, or those of them that must not, so that another set has to be found."""

    pods: I64
    barred: I64


class Allowances:
    """What budgets and gangs still allow, told as pods are given up.

    `respected`: budgets hold. Else they are passed over, and the pods beyond them are told.
    """

    def __init__(self, roster: Roster, budgets: Sequence[Budget], gone: Mask) -> None:
        self.roster = roster
        self.budgets = [a for budget in budgets if (a := _of_budget(budget, roster)) is not None]
        for known in self.budgets:
            # Who has been told to leave and has not begun to is not in the budget's count yet.
            known.left -= int((known.pods & gone & ~roster.ending).sum())
        there = (roster.node >= 0) & ~gone
        self._in_gang = np.bincount(roster.gang[there & (roster.gang >= 0)], minlength=len(roster.least))
        self._in_team = np.bincount(roster.team[there & (roster.team >= 0)], minlength=len(roster.least_of_team))
        self._there = there

    def exhausted(self) -> Mask:
        """(P,) pods of a budget that allows none."""
        none = np.zeros(len(self.roster.node), bool)
        for budget in self.budgets:
            if budget.left <= 0:
                none |= budget.pods
        return none

    def members(self, gang: int) -> I64:
        """Positions of the pods of a gang that are still there."""
        found: I64 = np.flatnonzero((self.roster.gang == gang) & self._there)
        return found

    def spare(self, gang: int) -> int:
        """Pods that may leave a gang one by one."""
        least = int(self.roster.least[gang])
        return max(int(self._in_gang[gang]) - least, 0) if least else 0

    def alone(self) -> Mask:
        """(P,) pods that may leave without their whole gang: those of no gang, and of one above its minimum."""
        roster = self.roster
        spare = np.where(roster.least > 0, self._in_gang - roster.least, 0) > 0
        team = (roster.least_of_team == 0) | (self._in_team > roster.least_of_team)
        alone = roster.gang < 0
        if len(roster.least):
            alone = alone | (spare[roster.gang] & team[roster.team])
        mask: Mask = alone
        return mask

    def closed(self, pods: I64, may_leave: Mask, whole: bool, respected: bool) -> Leaving:
        """All that leave when these do, told in the order in which they are wanted most.

        Gangs that would fall below their minimum leave whole, if all of a gang may (`may_leave`, (P,)) and `whole`.
        Else what goes beyond their spare pods is barred; so is, where budgets are `respected`, what goes beyond them.
        """
        roster = self.roster
        units: dict[int, tuple[I64, I64]] = {}  # by gang, or -1 - pod: (pods asked, all that leave for them)
        barred: list[I64] = []
        for p in pods.tolist():
            g = int(roster.gang[p])
            if g < 0:
                units[-1 - p] = (np.array([p]), np.array([p]))
            elif g not in units:
                mine = pods[roster.gang[pods] == g]
                if self._keeps_minimum(g, mine):
                    units[g] = (mine, mine)
                elif whole and may_leave[everyone := self.members(g)].all():
                    units[g] = (mine, everyone)
                else:
                    barred.append(self._beyond_spare(g, mine))
                    units[g] = (mine, mine[:0])
        leaving = np.zeros(len(roster.node), bool)
        used, full = [0] * len(self.budgets), set()
        for mine, everyone in units.values():
            more = [int(b.pods[everyone].sum()) for b in self.budgets] if respected else []
            over = [i for i, n in enumerate(more) if n and used[i] + n > self.budgets[i].left]
            if over:
                barred.append(mine)
                full.update(over)
                continue
            leaving[everyone] = True
            for i, n in enumerate(more):
                used[i] += n
        barred += [np.flatnonzero(self.budgets[i].pods & ~leaving) for i in full]
        return Leaving(np.flatnonzero(leaving), np.unique(np.concatenate(barred)) if barred else np.zeros(0, np.int64))

    def _keeps_minimum(self, gang: int, mine: I64) -> bool:
        roster = self.roster
        if len(mine) > self.spare(gang):
            return False
        teams, counts = np.unique(roster.team[mine], return_counts=True)
        least = roster.least_of_team[teams]
        return bool(((least == 0) | (self._in_team[teams] - counts >= least)).all())

    def _beyond_spare(self, gang: int, mine: I64) -> I64:
        """All pods of a gang but as many of these as may leave one by one, the first of them."""
        stay = np.zeros(len(self.roster.node), bool)
        stay[self.members(gang)] = True
        spare = self.spare(gang)
        left = np.maximum(self._in_team - self.roster.least_of_team, 0)
        for p in mine.tolist():
            team = self.roster.team[p]
            if spare and (left[team] > 0 or not self.roster.least_of_team[team]):
                stay[p] = False
                spare -= 1
                left[team] -= 1
        found: I64 = np.flatnonzero(stay)
        return found

    def give_up(self, pods: I64) -> None:
        """These pods leave."""
        roster = self.roster
        for budget in self.budgets:
            budget.left -= int(budget.pods[pods].sum())
        self._there[pods] = False
        for codes, counts in ((roster.gang[pods], self._in_gang), (roster.team[pods], self._in_team)):
            np.subtract.at(counts, codes[codes >= 0], 1)

    def beyond(self, pods: I64) -> Mask:
        """(len(pods),) which of these go beyond what budgets allow, counted in their order."""
        over = np.zeros(len(pods), bool)
        for budget in self.budgets:
            mine = budget.pods[pods]
            over |= mine & (np.cumsum(mine) > budget.left)
        return over


def _of_budget(budget: Budget, roster: Roster) -> Allowance | None:
    """The pods of a budget; None where there are none."""
    known: dict[tuple[tuple[str, str], ...], bool] = {}
    pods = np.zeros(len(roster.node), bool)
    for p, a in enumerate(roster.allocations):
        if a.namespace != budget.namespace or a.is_ending:
            continue
        if a.labels not in known:
            known[a.labels] = matches(budget.selector, dict(a.labels))
        pods[p] = known[a.labels]
    return Allowance(pods, budget.allowed) if pods.any() else None
