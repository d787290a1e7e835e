"""Workloads whose binds are on their way, until each has been answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from berth.actions.subjects import PodKey, Pods, Reference, SubjectKey, key_of, shown_on
from berth.base.units import counted
from berth.model.workload import Workload
from berth.scheduling.plan import Plan


class Sent(Protocol):
    """Pods of which it can be asked whether they are among them."""

    def __contains__(self, key: PodKey, /) -> bool: ...


class World(Pods, Protocol):
    """What is asked of the world. `assumed` are the pods whose bind is on its way."""

    @property
    def assumed(self) -> Sent: ...


@dataclass(slots=True)
class Placing:
    """`pods` are those that were sent, each with its node; `left` of them have not been answered."""

    workload: Workload
    pods: dict[PodKey, str]
    scope: str
    shown_on: Reference
    left: int
    has_failed: bool = False

    @property
    def key(self) -> SubjectKey:
        return key_of(self.workload)

    @property
    def sentence(self) -> str:
        """`512 pods placed on 512 nodes in block b1`."""
        nodes = set(self.pods.values())
        on = f"on {next(iter(nodes))}" if len(nodes) == 1 else f"on {counted(len(nodes), 'node')}"
        if self.workload.kind == "Pod":
            return f"Placed {on}"
        scope = f" in {self.scope}" if self.scope and len(nodes) > 1 else ""
        return f"{counted(len(self.pods), 'pod')} placed {on}{scope}"


def placings(plan: Plan, world: World) -> Iterator[Placing]:
    """The workloads of a plan of which at least one bind was sent."""
    taken: dict[tuple[int, int], int] = {}
    sent: dict[int, dict[PodKey, str]] = {}
    for w, s, n in zip(plan.workload.tolist(), plan.pod_set.tolist(), plan.node.tolist(), strict=True):
        workload = plan.workloads[w]
        names = workload.pods[s]
        at = taken.get((w, s), 0)
        taken[w, s] = at + 1
        if at < len(names):  # else the pod does not exist yet
            key = (workload.namespace, names[at])
            if key in world.assumed:
                sent.setdefault(w, {})[key] = plan.nodes[n].name
    for w, pods in sent.items():
        workload = plan.workloads[w]
        if (on := shown_on(workload, world)) is not None:
            yield Placing(workload, pods, plan.scopes.get(w, ""), on, len(pods))
