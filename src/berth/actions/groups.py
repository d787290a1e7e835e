"""The status of groups: what became of their workload, written until it says what is true."""

from __future__ import annotations

from collections.abc import Callable

from berth.actions.conditions import node_would_help
from berth.actions.notice import UNHEARD, Notice, Said
from berth.actions.placing import Placing
from berth.actions.subjects import Pods, group_path, stamp
from berth.actions.writing import Writing
from berth.base.units import counted
from berth.dialects.conditions import Fate, State
from berth.model.reasons import Reason


class GroupNotices:
    """`now` is seconds since the epoch."""

    def __init__(self, writing: Writing, now: Callable[[], float]) -> None:
        self._writing = writing
        self._now = now
        self.world: Pods | None = None

    def placed(self, placing: Placing) -> Fate:
        return Fate(State.Placed, stamp(self._now()), message=placing.sentence, has_begun=True, pods=len(placing.pods))

    def placed_before(self, notice: Notice) -> Fate | None:
        """Of a workload that an earlier leader has placed: its pods have nodes."""
        count = self._running(notice)
        if not count:
            return None
        said = f"{counted(count, 'pod')} placed"
        return Fate(State.Placed, stamp(self._now()), message=said, has_begun=True, pods=count)

    async def write(self, notice: Notice) -> None:
        """Raises ApiError, Withdrawn. What has changed when the write has come back is written next.

        A group is told that it waits only once the Verdict names it, uid and all: by that Verdict the next leader
        knows whose status is still to be taken back.
        """
        while notice.workload is not None and (path := group_path(notice.workload)):
            placed, told = notice.placed, notice.told
            if placed is not None:
                fate, after = placed, (State.Placed, placed.message)
            elif notice.state is State.Waiting and told is not None and told.uid == notice.workload.uid:
                fate, after = self._waiting(notice, told), (State.Waiting, told.verdict.message)
                if after == notice.group_told:
                    break
            elif notice.state is State.Gone and notice.group_told is not None:
                fate, after = Fate(State.Gone, stamp(self._now())), None
            else:
                break
            uid = notice.workload.uid
            if fate.state is State.Waiting:
                notice.group_told = UNHEARD  # before the answer: where none comes, it may say this or what it said
            await self._writing.tell_group(path, uid, fate)
            if notice.workload.uid == uid:
                notice.group_told = after
                if notice.placed is placed:
                    notice.placed = None

    def _waiting(self, notice: Notice, told: Said) -> Fate:
        reason = told.verdict.reason
        return Fate(
            State.Waiting,
            stamp(self._now()),
            told.code,
            told.verdict.message,
            node_would_help=node_would_help(reason),
            lacks_pods=reason is Reason.WaitingForGang,
            has_begun=self._running(notice) > 0,
        )

    def _running(self, notice: Notice) -> int:
        """How many pods of the workload have a node."""
        if self.world is None or notice.workload is None:
            return 0
        return sum(1 for pod, _ in self.world.members_of(notice.workload) if pod.node and not pod.has_ended)
