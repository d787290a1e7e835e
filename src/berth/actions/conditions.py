"""What is written on a waiting pod: the condition PodScheduled=False, and the node that is kept for it."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from msgspec import Struct

from berth.dialects.conditions import UNSCHEDULABLE, WAITING
from berth.model.reasons import Reason, Verdict

POD_SCHEDULED = "PodScheduled"

# Would a node that is not there now end the wait? Autoscalers act on the condition's reason `Unschedulable`: they
# try in their own simulation whether a node of one of their pools would take the pod. Where it is said of a wait
# for quota, a gate or a volume, they buy a node that nobody may use; where it is not said, a pool that is empty
# stays empty. So it is said wherever nodes are what is missing, also where no node of today could ever do.
NODE_WOULD_HELP: dict[Reason, bool] = {
    Reason.InvalidRequest: False,
    Reason.Unsupported: False,
    Reason.MisspeltResource: True,  # the name may be that of a pool which is empty now
    Reason.UnknownResource: True,
    Reason.NoNodes: True,
    Reason.ClassUnavailable: True,
    Reason.NoNodeMatches: True,
    Reason.NotTolerated: True,
    Reason.LargerThanNode: True,
    Reason.LargerThanCluster: True,
    Reason.UnknownTopologyLevel: False,  # new nodes are labelled by whoever labelled the old ones
    Reason.TopologyTooSmall: True,
    Reason.LargerThanLimit: False,
    Reason.TimeLimitTooLong: False,
    Reason.ClassNotAllowed: True,  # a node of a class that the queue allows
    Reason.SharingNotAllowed: True,  # a node that gives GPUs as the queue allows
    Reason.CheckpointMissing: False,
    Reason.NodesHeldBack: True,
    Reason.NotEnoughGpus: True,
    Reason.NotEnoughResources: True,
    Reason.Fragmented: True,
    Reason.TopologyFragmented: True,
    Reason.PodsInTheWay: True,
    Reason.BehindReservation: True,
    Reason.Reserved: True,
    Reason.MakingRoom: False,  # its place is coming free
    Reason.QuotaExceeded: False,
    Reason.LimitExceeded: False,
    Reason.WaitingForOwner: False,
    Reason.Gated: False,
    Reason.WaitingForVolume: False,
    Reason.WaitingForGang: False,
    Reason.BindRefused: False,
}


def node_would_help(reason: Reason | None) -> bool:
    """A reason that the table does not have is no call for nodes."""
    return reason is not None and NODE_WOULD_HELP.get(reason, False)


class PodSaid(Struct, frozen=True, gc=False):
    """What a pod's status says, as far as it is ours: the reason's code, the node kept for it; "" for nothing."""

    uid: str
    code: str = ""
    node: str = ""


FIELDS = ("code", "node")  # of PodSaid, those that are written


def condition(verdict: Verdict, since: str) -> bytes:
    """The condition of every pod of a workload, encoded once. `since` "": it was False before."""
    said = {
        "type": POD_SCHEDULED,
        "status": "False",
        "reason": UNSCHEDULABLE if node_would_help(verdict.reason) else WAITING,
        "message": verdict.message,
    }
    return msgspec.json.encode({**said, "lastTransitionTime": since} if since else said)


def change(after: PodSaid, changed: Collection[str], condition: bytes) -> bytes:
    """The body of a strategic merge patch of the pod's status, for the pod with this uid and no other.

    `changed` are those of FIELDS that are written; `condition` is what is written for the code.
    """
    parts = []
    if "code" in changed and condition:
        parts.append(b'"conditions":[' + condition + b"]")
    if "node" in changed:
        parts.append(b'"nominatedNodeName":' + (msgspec.json.encode(after.node) if after.node else b"null"))
    return b'{"metadata":{"uid":"' + after.uid.encode() + b'"},"status":{' + b",".join(parts) + b"}}"


def bound_after_all(uid: str, since: str) -> bytes:
    """The body that takes the condition back: the bind had arrived first."""
    said = {"type": POD_SCHEDULED, "status": "True", "reason": None, "message": None, "lastTransitionTime": since}
    return msgspec.json.encode({"metadata": {"uid": uid}, "status": {"conditions": [said]}})


class _SpecSeen(Struct, frozen=True, rename="camel"):
    node_name: str | None = None
    scheduler_name: str | None = None


class _MetaSeen(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _ConditionSeen(Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class _StatusSeen(Struct, frozen=True, rename="camel"):
    conditions: tuple[_ConditionSeen, ...] | None = None
    nominated_node_name: str | None = None


class PodThere(Struct, frozen=True):
    """Of a pod as the API server has it only what we may have written, and whether it has a node."""

    metadata: _MetaSeen = _MetaSeen()
    spec: _SpecSeen = _SpecSeen()
    status: _StatusSeen = _StatusSeen()

    @property
    def said(self) -> PodSaid:
        """What it says in our words. Another scheduler's condition counts as nothing."""
        code = ""
        for one in self.status.conditions or ():
            if one.type == POD_SCHEDULED and one.status == "False":
                word = (one.message or "").partition(": ")[0]
                reason = Reason.__members__.get(word)
                if reason and one.reason == (UNSCHEDULABLE if node_would_help(reason) else WAITING):
                    code = word
        return PodSaid(self.metadata.uid, code, self.status.nominated_node_name or "")


_POD = msgspec.json.Decoder(PodThere)


def pod_in(answer: bytes) -> PodThere:
    """The pod that the API server answered with; one without a node where the answer cannot be read."""
    try:
        return _POD.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return PodThere()
