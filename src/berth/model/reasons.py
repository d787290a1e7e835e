"""Why a workload waits: stable codes, each with its sentence. A reason is made by the line that rejects.

Codes are public: they are never renamed, and docs/reasons.md has one section for each.
"""

from __future__ import annotations

from enum import Enum, IntEnum

from msgspec import Struct


class Answer(Enum):
    """`Never`: not in this cluster as it is built. `NotYet`: when something is released or mended."""

    Fits = "Fits"
    NotYet = "NotYet"
    Never = "Never"


class Reason(Enum):
    """Code = (answer, what it says in one line). The name is the code."""

    # the request itself
    InvalidRequest = (Answer.Never, "the request breaks a rule of Kubernetes")
    Unsupported = (Answer.Never, "the pod asks for something that Berth does not place")
    MisspeltResource = (Answer.Never, "no node advertises the resource, and its name resembles one that is")
    UnknownResource = (Answer.Never, "no node advertises the resource")
    # the cluster as it is built
    NoNodes = (Answer.Never, "the cluster has no nodes")
    ClassUnavailable = (Answer.Never, "no node has a GPU of the class asked for")
    NoNodeMatches = (Answer.Never, "no node matches the node selector or affinity")
    NotTolerated = (Answer.Never, "every node that would do has a taint that is not tolerated")
    LargerThanNode = (Answer.Never, "one pod asks for more than any node that would do has")
    LargerThanCluster = (Answer.Never, "the gang asks for more than the cluster has")
    UnknownTopologyLevel = (Answer.Never, "no node carries the label of the topology level")
    TopologyTooSmall = (Answer.Never, "no domain of the level is large enough, even empty")
    LargerThanLimit = (Answer.Never, "the workload asks for more than its queue may ever use")
    # the rules of the queue
    TimeLimitTooLong = (Answer.Never, "the workload's run-time limit is above that of its queue")
    ClassNotAllowed = (Answer.Never, "the queue does not allow the GPU classes that would do")
    SharingNotAllowed = (Answer.Never, "the queue, or the pods themselves, take no GPUs in the way that would do")
    CheckpointMissing = (Answer.Never, "the queue takes nothing that may have to leave and does not save its work")
    # the cluster as it is now
    NodesHeldBack = (Answer.NotYet, "it would fit on nodes that are cordoned, not ready, unfit or suspect")
    NotEnoughGpus = (Answer.NotYet, "too few GPUs are free")
    NotEnoughResources = (
        Answer.NotYet,
        "GPUs are free, but not together with enough CPU, memory or the like",
    )
    Fragmented = (Answer.NotYet, "enough GPUs are free, but scattered")
    TopologyFragmented = (Answer.NotYet, "enough is free, but not in one domain of the level")
    PodsInTheWay = (Answer.NotYet, "anti-affinity, spread or host ports of other pods keep it out")
    MakingRoom = (Answer.NotYet, "pods are leaving to make room for it")
    BehindReservation = (Answer.NotYet, "the room that would do is held for another workload")
    Reserved = (Answer.NotYet, "the room that would do is kept by people for others")
    # the queue
    QuotaExceeded = (
        Answer.NotYet,
        "others wait within their quota, and this workload would go above its own",
    )
    LimitExceeded = (Answer.NotYet, "the queue's limit is reached")
    # the workload's own state
    WaitingForOwner = (Answer.NotYet, "what its pods belong to does not exist yet, or may not be seen")
    Gated = (Answer.NotYet, "a scheduling gate is closed")
    WaitingForVolume = (Answer.NotYet, "a volume claim is not bound to a volume yet")
    WaitingForGang = (Answer.NotYet, "pods of the gang have not been created yet")
    BindRefused = (Answer.NotYet, "it was placed and refused, and is tried again after a while")

    @property
    def answer(self) -> Answer:
        return self.value[0]

    @property
    def summary(self) -> str:
        return self.value[1]


class Block(IntEnum):
    """Why one node cannot take one pod of a class: the first check that failed, in the order of checks.

    Written by the column computation that counts how many fit, so the two cannot disagree.
    """

    Nothing = 0
    NotReady = 1
    Unfit = 2
    Cordoned = 3
    NodeName = 4
    Selector = 5
    Taint = 6
    NoResource = 7  # the node does not advertise a resource that is asked for
    GpuClass = 8
    TooSmall = 9  # the node would be too small even when empty
    Gpus = 10  # too few free devices
    GpuShare = 11  # enough free in total, on no single device
    Cpu = 12
    Memory = 13
    Pods = 14
    Resource = 15  # another counted resource is used up
    OtherPods = 16  # anti-affinity, spread, host ports
    Queue = 17  # the queue's limit for the node's GPU class
    Rdma = 18
    Dynamic = 19  # the resource is given by dynamic allocation alone
    Suspect = 20  # a GPU of it, or the node, may be failing: no new gang starts there
    QueueClass = 21  # a GPU class that the queue does not allow
    QueueSharing = 22  # it gives GPUs in a way that the queue or the pods do not take: whole, in parts, in time-slices


# What each block says of a node, after a count: "3 cordoned".
BLOCK_WORDS: dict[Block, str] = {
    Block.NotReady: "not ready or under pressure",
    Block.Unfit: "unfit",
    Block.Cordoned: "cordoned",
    Block.Suspect: "suspect",
    Block.NodeName: "not the node named",
    Block.Selector: "not matching selector or affinity",
    Block.Taint: "with a taint that is not tolerated",
    Block.NoResource: "without the resource",
    Block.GpuClass: "with another GPU class",
    Block.Rdma: "without RDMA",
    Block.Dynamic: "with dynamic resource allocation alone",
    Block.TooSmall: "too small",
    Block.Gpus: "with too few free GPUs",
    Block.GpuShare: "with free GPU shares on no single GPU",
    Block.Cpu: "short of CPU",
    Block.Memory: "short of memory",
    Block.Pods: "full of pods",
    Block.Resource: "short of another resource",
    Block.OtherPods: "kept out by other pods",
    Block.Queue: "above the queue's limit",
    Block.QueueClass: "of a class that the queue does not allow",
    Block.QueueSharing: "sharing GPUs otherwise than allowed",
}

HELD_BACK = (Block.NotReady, Block.Unfit, Block.Cordoned, Block.Suspect)


class Cause(Struct, frozen=True, gc=False):
    """One reason with its numbers. `need` and `have` are in `unit`, `where` says of what or in what."""

    reason: Reason
    sentence: str
    need: int = 0
    have: int = 0
    unit: str = "GPUs"
    where: str = ""
    unlock: tuple[str, ...] = ()  # what would make it fit, most telling first
    blocks: tuple[tuple[Block, int], ...] = ()  # nodes by what keeps one pod off them, most nodes first
    nearest: tuple[tuple[str, str], ...] = ()  # (node, what it lacks), nearest first
    proven: bool = True  # False where the exact search ended at its bound before it could tell
    codes: tuple[tuple[str, int], ...] = ()  # unfit and suspect nodes by what was found there, most nodes first


class Verdict(Struct, frozen=True, gc=False):
    """What the scheduler says of one workload. The first cause is the dominant one."""

    workload: str
    answer: Answer
    causes: tuple[Cause, ...] = ()

    @property
    def reason(self) -> Reason | None:
        return self.causes[0].reason if self.causes else None

    @property
    def message(self) -> str:
        """As it is written on the pod: `Reason: one sentence with numbers`."""
        if not self.causes:
            return self.answer.value
        return f"{self.causes[0].reason.name}: {self.causes[0].sentence}"
