"""What a group's status says of a decision, in each dialect's own form.

A function gets the group object as it is and the fate of its pods, and answers with the status fields that
change; None where the object says it already, or where the dialect has no word for it. Lists are given whole:
that is how a merge patch replaces them.

Sources: k8s.io/api scheduling/v1beta1, KAI scheduling.run.ai/v2alpha2, Volcano scheduling.volcano.sh/v1beta1,
scheduler-plugins scheduling.x-k8s.io/v1alpha1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from msgspec import Struct

from berth.dialects.groups import KAI, PLUGINS, UPSTREAM, VOLCANO
from berth.dialects.objects import group_of
from berth.dialects.shape import Manifest

Status = dict[str, Any]

UNSCHEDULABLE = "Unschedulable"  # the word that autoscalers act on
WAITING = "BerthWaiting"  # no other node would help

INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
ON_NODE_POOL = "UnschedulableOnNodePool"
NODE_POOL = "kai.scheduler/node-pool"
SCHEDULED = "Scheduled"
INQUEUE = "Inqueue"


class State(Enum):
    """`Gone`: nothing of it waits any more, and it was not placed; what was said of it is no longer true."""

    Waiting = "waiting"
    Placed = "placed"
    Gone = "gone"


class Fate(Struct, frozen=True):
    """What became of a group at `at` (RFC 3339). `message` as it stands on the pods: `Reason: sentence`.

    `code` is the reason's; `node_would_help` says that nodes which are not there would end the wait; `lacks_pods`
    that the group's own pods are missing. `has_begun`: some of its pods are bound. `pods`: how many were placed.
    """

    state: State
    at: str
    code: str = ""
    message: str = ""
    node_would_help: bool = False
    lacks_pods: bool = False
    has_begun: bool = False
    pods: int = 0

    @property
    def reason(self) -> str:
        """The condition's reason, of those that other programs know."""
        if self.state is State.Placed:
            return SCHEDULED
        return UNSCHEDULABLE if self.node_would_help else WAITING


def status_change(group: Manifest, fate: Fate) -> Status | None:
    """Fields of `status` that must be written for the group to say what became of it."""
    write = _WRITERS.get(group_of(str(group.get("apiVersion") or "")))
    return write(group, fate) if write else None


def is_told(api_version: str) -> bool:
    """The group is of a kind whose status Berth writes."""
    return group_of(api_version) in _WRITERS


def let_in(group: Manifest) -> Status | None:
    """Volcano's job controller makes pods only once the group's phase has left Pending."""
    return {"phase": INQUEUE} if _phase(group) in ("", "Pending") else None


# ---- dialects


def _upstream(group: Manifest, fate: Fate) -> Status | None:
    """One condition. True is for good: it says that the group was scheduled once."""
    conditions = _list(_status(group).get("conditions"))
    before = _of_type(conditions, INITIALLY_SCHEDULED)
    if before is not None and before.get("status") == "True":
        return None
    if fate.state is State.Gone:
        return {"conditions": _without(conditions, INITIALLY_SCHEDULED)} if before is not None else None
    if fate.state is State.Waiting and fate.has_begun:
        return None
    placed = fate.state is State.Placed
    said: Status = {
        "type": INITIALLY_SCHEDULED,
        "status": "True" if placed else "False",
        "reason": fate.reason,
        "message": fate.message,
    }
    generation = _meta(group).get("generation")
    if isinstance(generation, int):
        said["observedGeneration"] = generation
    if before is not None and _same(before, said):
        return None
    return {"conditions": [*_without(conditions, INITIALLY_SCHEDULED), _since(said, before, fate.at)]}


def _kai(group: Manifest, fate: Fate) -> Status | None:
    """A scheduling condition for the group's node pool, last in the list; none once it no longer holds."""
    conditions = _list(_status(group).get("schedulingConditions"))
    labels = _meta(group).get("labels")
    pool = str((labels if isinstance(labels, Mapping) else {}).get(NODE_POOL) or "default")
    others = [c for c in conditions if (c.get("type"), c.get("nodePool") or "default") != (ON_NODE_POOL, pool)]
    if fate.state is not State.Waiting:
        return {"schedulingConditions": others} if len(others) != len(conditions) else None
    if fate.has_begun:
        return None
    before = next((c for c in reversed(conditions) if c not in others), None)
    said = {
        "type": ON_NODE_POOL,
        "nodePool": pool,
        "status": "True",
        "reason": UNSCHEDULABLE,
        "message": fate.message,
        "reasons": [{"reason": fate.code, "message": fate.message}],
    }
    if before is not None and _same(before, said) and conditions[-1] is before:
        return None
    said = {**_since(said, before, fate.at), "transitionID": str(_last_transition(conditions) + 1)}
    return {"schedulingConditions": [*others, said]}


def _volcano(group: Manifest, fate: Fate) -> Status | None:
    """Conditions `Unschedulable` and `Scheduled`, and the phase: pods that wait are there, so the group is let in.

    Running is said of a group whose pods have places. The phase never goes back to Pending: the job controller
    would stop to make pods.
    """
    conditions = _list(_status(group).get("conditions"))
    phase = _phase(group)
    change: Status = {}
    if fate.state is State.Waiting:
        change = let_in(group) or {}
        if not fate.has_begun:
            reason = "NotEnoughResources" if fate.node_would_help else fate.code
            change |= _volcano_says(
                conditions, UNSCHEDULABLE, "NotEnoughTasks" if fate.lacks_pods else reason, SCHEDULED, fate
            )
    elif fate.state is State.Placed:
        change = {"phase": "Running"} if phase in ("", "Pending", INQUEUE, "Unknown") else {}
        change |= _volcano_says(conditions, SCHEDULED, SCHEDULED, UNSCHEDULABLE, fate)
    elif _of_type(conditions, UNSCHEDULABLE) is not None:
        change = {"conditions": _without(conditions, UNSCHEDULABLE)}
    return change or None


def _volcano_says(conditions: list[Status], kind: str, reason: str, instead_of: str, fate: Fate) -> Status:
    before = _of_type(conditions, kind)
    said = {"type": kind, "status": "True", "reason": reason, "message": fate.message}
    if before is not None and _same(before, said) and _of_type(conditions, instead_of) is None:
        return {}
    said = {**_since(said, before, fate.at), "transitionID": fate.at}
    return {"conditions": [*(c for c in conditions if c.get("type") not in (kind, instead_of)), said]}


def _plugins(group: Manifest, fate: Fate) -> Status | None:
    """The phase as far as its own controller, which may not be there, has not written more.

    There are no conditions. `scheduled` is of releases before 0.26; later ones drop it.
    """
    phase, status = _phase(group), _status(group)
    if fate.state is State.Waiting and not phase:
        return {"phase": "Pending"}
    if fate.state is State.Placed and phase in ("", "Pending", "PreScheduling"):
        change: Status = {"phase": "Scheduling", "scheduled": fate.pods}
        return change if status.get("scheduleStartTime") else {**change, "scheduleStartTime": fate.at}
    return None


_WRITERS: dict[str, Callable[[Manifest, Fate], Status | None]] = {
    UPSTREAM: _upstream,
    KAI: _kai,
    VOLCANO: _volcano,
    PLUGINS: _plugins,
}


# ---- reading what is there; other programs write here too, so nothing is taken for granted


def _meta(group: Manifest) -> Mapping[str, Any]:
    meta = group.get("metadata")
    return meta if isinstance(meta, Mapping) else {}


def _status(group: Manifest) -> Mapping[str, Any]:
    status = group.get("status")
    return status if isinstance(status, Mapping) else {}


def _phase(group: Manifest) -> str:
    return str(_status(group).get("phase") or "")


def _list(raw: Any) -> list[Status]:
    return [c for c in raw if isinstance(c, dict)] if isinstance(raw, list) else []


def _of_type(conditions: list[Status], kind: str) -> Status | None:
    return next((c for c in conditions if c.get("type") == kind), None)


def _without(conditions: list[Status], kind: str) -> list[Status]:
    return [c for c in conditions if c.get("type") != kind]


def _same(before: Status, said: Status) -> bool:
    return all(before.get(key) == value for key, value in said.items())


def _since(said: Status, before: Status | None, at: str) -> Status:
    """With the time of the last change of status: kept while the status stays."""
    held = before.get("lastTransitionTime") if before is not None and before.get("status") == said["status"] else None
    return {**said, "lastTransitionTime": held or at}


def _last_transition(conditions: list[Status]) -> int:
    last = str(conditions[-1].get("transitionID") or "") if conditions else ""
    return int(last) if last.isascii() and last.isdigit() else 0
