"""Workloads that are asked to leave for another: what they are told, and what their Verdict remembers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from berth.actions.events import PREEMPTING, Event
from berth.actions.subjects import PodKey, Pods, Reference, SubjectKey, object_of, shown_on
from berth.base.units import counted
from berth.kube import wire_verdict as wire
from berth.model.cluster import Allocation
from berth.model.workload import Workload
from berth.scheduling.plan import Plan

PREEMPTED = "Preempted"


@dataclass(slots=True)
class Departure:
    """Pods of one workload that are asked to leave for another, until each request has been answered.

    `pods` by the GPU hours that are lost with each; `gone` those that do leave.
    """

    victim: SubjectKey
    victim_on: Reference
    winner: Workload | None  # None where it leaves for a reservation
    why: str
    pods: dict[PodKey, float] = field(default_factory=dict)
    gone: list[PodKey] = field(default_factory=list)
    left: int = 0

    @property
    def sentence(self) -> str:
        """`2 pods asked to leave: it has lower priority and stands where room is needed`."""
        return f"{counted(len(self.gone), 'pod')} asked to leave: {self.why}"

    def event(self) -> Event:
        """On the victim; the winner's own reason is MakingRoom. It is named within one namespace only."""
        if self.winner is None:
            return Event(self.victim_on, PREEMPTED, self.sentence, PREEMPTING, True, None)
        same = self.victim[1] == self.winner.namespace
        note = f"{self.sentence}; {self.winner.kind} {self.winner.name} gets its place" if same else self.sentence
        return Event(self.victim_on, PREEMPTED, note, PREEMPTING, True, object_of(self.winner) if same else None)

    def as_eviction(self, at: str) -> wire.Eviction:
        lost_s = round(sum(self.pods[key] for key in self.gone) * 3600)
        return wire.Eviction(at, PREEMPTED, self.sentence, len(self.gone), lost_s)


class Departures:
    """Those whose requests have not all been answered."""

    def __init__(self) -> None:
        self._of: dict[PodKey, Departure] = {}

    def clear(self) -> None:
        self._of.clear()

    def take(self, plan: Plan, world: Pods) -> None:
        for departure in departures(plan, world):
            self._of.update(dict.fromkeys(departure.pods, departure))

    def answered(self, pod: PodKey, is_leaving: bool) -> Departure | None:
        """The departure that is complete with this answer, if any of its pods does leave."""
        one = self._of.pop(pod, None)
        if one is None:
            return None
        one.left -= 1
        if is_leaving:
            one.gone.append(pod)
        return None if one.left or not one.gone else one


def departures(plan: Plan, world: Pods) -> Iterable[Departure]:
    """Who is asked to leave by a plan, by victim and by whom it is for."""
    found: dict[tuple[str, int], Departure] = {}
    reserved: dict[tuple[str, str], Departure] = {}
    for eviction in plan.evictions:
        allocation = eviction.allocation
        group = (allocation.workload_identity, eviction.beneficiary)
        one = found.get(group)
        if one is None:
            victim, victim_on = _victim(allocation, world)
            winner = plan.workloads[eviction.beneficiary]
            one = found[group] = Departure(victim, victim_on, winner, eviction.rule.value)
        one.pods[allocation.namespace, allocation.name] = eviction.gpu_hours
        one.left += 1
    for vacating in plan.vacating:
        allocation = vacating.allocation
        place = (allocation.workload_identity, vacating.booking)
        there = reserved.get(place)
        if there is None:
            victim, victim_on = _victim(allocation, world)
            why = f"its place is kept from now on by GPUReservation {vacating.booking}"
            there = reserved[place] = Departure(victim, victim_on, None, why)
        there.pods[allocation.namespace, allocation.name] = vacating.gpu_hours
        there.left += 1
    return [*found.values(), *reserved.values()]


def _victim(held: Allocation, world: Pods) -> tuple[SubjectKey, Reference]:
    """The workload that a pod belongs to, and its object: the pod itself where there is none."""
    pod = Reference("v1", "Pod", held.namespace, held.name, held.uid)
    namespace, _, name = held.workload.partition("/")
    if not name or held.workload_kind == "Pod":
        return ("Pod", held.namespace, held.name), pod
    workload = Workload(name, (), namespace, held.workload_kind)
    for _, membership in world.members_of(workload):
        api_version, uid = membership.api_version, membership.uid
        known = Workload(name, (), namespace, held.workload_kind, api_version=api_version, uid=uid)
        return (held.workload_kind, namespace, name), shown_on(known, world) or pod
    return (held.workload_kind, namespace, name), pod
