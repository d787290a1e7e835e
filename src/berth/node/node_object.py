"""The Node object of this machine: what the agent reads of it, and the patches that change its own part of it.

A condition is its own by its type, a taint by its key, a cordon by an annotation: what others have set is left alone.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from berth.evidence.formats.node_ledger import Status
from berth.node.policy import State

CONDITION = "GPUHealthy"
TAINT = "berth.dev/unfit"
CORDONED = "berth.dev/cordoned-by-agent"  # an annotation: whoever set it takes the cordon off again
LONGEST_MESSAGE = 1024


class Taint(Struct, frozen=True, rename="camel", omit_defaults=True):
    key: str = ""
    value: str | None = None
    effect: str = ""
    time_added: str | None = None


class Condition(Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class _Meta(Struct, frozen=True, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Spec(Struct, frozen=True):
    taints: tuple[Taint, ...] | None = None
    unschedulable: bool | None = None


class _Status(Struct, frozen=True):
    conditions: tuple[Condition, ...] | None = None


class NodeObject(Struct, frozen=True):
    """What decides a patch."""

    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    def condition(self) -> Condition | None:
        return next((one for one in self.status.conditions or () if one.type == CONDITION), None)


def read_node(raw: bytes) -> NodeObject:
    """Raises msgspec.MsgspecError."""
    return msgspec.json.decode(raw, type=NodeObject)


def path_of(node: str) -> str:
    return f"/api/v1/nodes/{node}"


def condition_of(status: Status) -> tuple[str, str, str]:
    """Status, reason and message of the condition: False as soon as one device is unfit, or the node itself."""
    unfit = [one for one in status.devices if one.state == State.Unfit.value]
    if unfit or status.state == State.Unfit.value:
        code = status.code or unfit[0].code
        which = ", ".join(f"GPU {one.index if one.index is not None else one.pci}: {one.code}" for one in unfit[:8])
        message = which or status.message
        return "False", code, f"{message}. {status.message}" if which and status.message else message
    if status.state == State.Unknown.value:
        return "Unknown", status.code or "NotSeen", status.message or "nothing could be seen"
    if status.state == State.Suspect.value:
        return "True", status.code, f"suspect: {status.message}"
    return "True", "Fit", f"{status.gpus} GPUs are fit for work"


def condition_change(node: NodeObject, status: Status, at: str) -> bytes | None:
    """A strategic merge patch of the node's status; None where it says so already."""
    said, reason, message = condition_of(status)
    old = node.condition()
    if old is not None and (old.status, old.reason, old.message) == (said, reason, message[:LONGEST_MESSAGE]):
        return None
    since = old.last_transition_time if old is not None and old.status == said else at
    condition = {
        "type": CONDITION,
        "status": said,
        "reason": reason,
        "message": message[:LONGEST_MESSAGE],
        "lastHeartbeatTime": at,
        "lastTransitionTime": since,
    }
    return msgspec.json.encode({"status": {"conditions": [condition]}})


def spec_change(node: NodeObject, status: Status, at: str, *, taints: bool, cordons: bool) -> bytes | None:
    """A merge patch of taints and cordon; None where nothing is to be changed. Its precondition is the version that
    was read: taints are one list, and others write to it, too."""
    is_unfit = status.state == State.Unfit.value
    spec: dict[str, Any] = {}
    metadata: dict[str, Any] = {"resourceVersion": node.metadata.resource_version}
    if taints:
        listed = node.spec.taints or ()
        is_there = any(one.key == TAINT for one in listed)
        if is_unfit and not is_there:
            spec["taints"] = [*listed, Taint(TAINT, status.code[:63], "NoSchedule", at)]
        elif is_there and not is_unfit and status.state != State.Unknown.value:
            spec["taints"] = [one for one in listed if one.key != TAINT]
    is_ours = CORDONED in (node.metadata.annotations or {})
    if cordons and is_unfit and not node.spec.unschedulable:
        spec["unschedulable"] = True
        metadata["annotations"] = {CORDONED: status.code or "unfit"}
    elif cordons and is_ours and not is_unfit and status.state != State.Unknown.value:
        spec["unschedulable"] = None
        metadata["annotations"] = {CORDONED: None}
    return msgspec.json.encode({"metadata": metadata, "spec": spec}) if spec else None
