"""Whether a node would do for a pod class, by the node alone and whatever runs on it.

Each check writes the block that it stands for, in the order in which an operator would look: is it the right
kind of node at all, is it held back, is it large enough. What is used up at the moment is the kernels' part.
Source: the filters of kube-scheduler (docs/filters.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from berth.model.cluster import Health, Node, Taint
from berth.model.gpus import satisfies
from berth.model.reasons import Block
from berth.model.resources import is_accelerator
from berth.model.sharing import sharing_of
from berth.model.workload import WHOLE, Capability, NodeTerm, PodClass, Requirement, Toleration, Workload
from berth.scheduling.columns import Columns

Blocks = NDArray[np.uint8]
Mask = NDArray[np.bool_]

# Set by Kubernetes itself and taken away again: what they keep off comes back.
NOT_READY_TAINTS = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.cloudprovider.kubernetes.io/uninitialized",
)
CORDON_TAINT = "node.kubernetes.io/unschedulable"
UNFIT_TAINT = "berth.dev/unfit"  # a node agent's, while the node is unfit: it goes by itself, too
_KEPT_AWAY = ("NoSchedule", "NoExecute")


def blocks_of(pod_class: PodClass, columns: Columns) -> Blocks:
    """(N,) uint8: the first check that keeps the class off each node, Block.Nothing where none does."""
    blocks = np.zeros(columns.size, np.uint8)

    def refuse(mask: Mask, block: Block) -> None:
        blocks[mask & (blocks == Block.Nothing)] = block

    if pod_class.node_name:
        names = np.array([n.name != pod_class.node_name for n in columns.nodes], bool)
        refuse(names, Block.NodeName)
    refuse(~selected(pod_class, columns), Block.Selector)
    for name, _ in pod_class.requests:
        column = columns.column(name)
        lacks = columns.empty[:, column] <= 0 if column >= 0 else np.ones(columns.size, bool)
        if name not in ("cpu", "memory", "ephemeral-storage"):
            refuse(lacks & ~columns.is_dynamic(name), Block.NoResource)
    if pod_class.least != Capability():
        refuse(~_capable(pod_class.least, columns), Block.GpuClass)
    if pod_class.least.rdma:
        refuse(~np.array([n.rdma for n in columns.nodes], bool), Block.Rdma)
    tainted, held = _taints(pod_class, columns)
    refuse(tainted, Block.Taint)
    for name, amount in pod_class.requests:
        column = columns.column(name)
        refuse(columns.is_dynamic(name), Block.Dynamic)
        if pod_class.gpu_milli < WHOLE and is_accelerator(name):
            # A share is of a device: what is only counted (replicas, partitions) has none to share.
            refuse((columns.pool != column) | (columns.empty[:, column] < amount), Block.TooSmall)
        elif column >= 0:
            refuse(columns.empty[:, column] < amount, Block.TooSmall)
        else:
            refuse(np.ones(columns.size, bool), Block.TooSmall)
    if pod_class.queue_classes is not None:
        allowed = [c.name in pod_class.queue_classes for c in columns.gpu_classes]
        refuse(~np.array([*allowed, False], bool)[columns.gpu_class], Block.QueueClass)
    if (ways := pod_class.ways) is not None:
        refuse(~_shared_as_allowed(pod_class, ways, columns), Block.QueueSharing)
    for block in (Block.NotReady, Block.Unfit, Block.Cordoned):
        refuse(held == block, block)
    refused_by = [columns.index[name] for name in pod_class.refused_by if name in columns.index]
    refuse(np.isin(np.arange(columns.size), refused_by), Block.Unfit)
    return blocks


def _shared_as_allowed(pod_class: PodClass, allowed: Sequence[str], columns: Columns) -> Mask:
    """(N,) nodes that give all GPUs that are asked for in one of these ways."""
    names = [name for name, _ in pod_class.requests if is_accelerator(name)]
    cut = np.array([*(bool(c.profile) for c in columns.gpu_classes), False], bool)[columns.gpu_class].tolist()
    return np.array([
        all(set(sharing_of(name, pod_class.gpu_milli, node, is_cut)) <= set(allowed) for name in names)
        for node, is_cut in zip(columns.nodes, cut, strict=True)
    ], bool)  # fmt: skip


def is_held(static: Blocks) -> Mask:
    """Where a node is held back: not ready, unfit, cordoned or suspect, and nothing else is against it."""
    mask: Mask = ((static > Block.Nothing) & (static <= Block.Cordoned)) | (static == Block.Suspect)
    return mask


def starts_a_gang(workload: Workload) -> bool:
    """It is a new gang: such get no suspect node, since one GPU that fails ends all of it. What is left of a gang that
    has begun may use them, after all others: its pods that run wait for it."""
    return workload.is_gang and not workload.has_begun


def without_suspects(workload: Workload, static: Blocks, columns: Columns) -> Blocks:
    """(N,) blocks of a class, with the suspect nodes that nothing else keeps a new gang off."""
    if not columns.suspect.any() or not starts_a_gang(workload):
        return static
    return np.where(columns.suspect & (static == Block.Nothing), np.uint8(Block.Suspect), static)


def selected(pod_class: PodClass, columns: Columns) -> Mask:
    """(N,) nodes that match node selector and required node affinity (terms are alternatives)."""
    mask = np.ones(columns.size, bool)
    for key, value in pod_class.node_selector:
        codes, vocabulary = columns.label(key)
        mask &= codes == vocabulary.get(value, -2)
    if pod_class.node_affinity:
        any_term = np.zeros(columns.size, bool)
        for term in pod_class.node_affinity:
            any_term |= matches_term(term, columns)
        mask &= any_term
    return mask


def matches_term(term: NodeTerm, columns: Columns) -> Mask:
    """(N,) nodes on which all expressions of a term hold; a term without any matches nothing."""
    if not term.expressions and not term.fields:
        return np.zeros(columns.size, bool)
    mask = np.ones(columns.size, bool)
    for requirement in term.expressions:
        mask &= _holds(requirement, *columns.label(requirement.key))
    for requirement in term.fields:
        names = {n.name: i for i, n in enumerate(columns.nodes)}
        mask &= _holds(requirement, np.arange(columns.size, dtype=np.int32), names)
    return mask


def preference_of(pod_class: PodClass, columns: Columns) -> NDArray[np.int16]:
    """(N,) the weights of the preferred terms that hold on each node."""
    total = np.zeros(columns.size, np.int64)
    for preferred in pod_class.preferred_nodes:
        total += preferred.weight * matches_term(preferred.term, columns)
    return np.clip(total, 0, np.iinfo(np.int16).max).astype(np.int16)


def _holds(requirement: Requirement, codes: NDArray[np.int32], vocabulary: dict[str, int]) -> Mask:
    wanted = np.array([vocabulary[v] for v in requirement.values if v in vocabulary], np.int32)
    match requirement.operator:
        case "In":
            return np.isin(codes, wanted)
        case "NotIn":
            return ~np.isin(codes, wanted)
        case "Exists":
            return codes >= 0
        case "DoesNotExist":
            return codes < 0
        case "Gt" | "Lt":
            return _compares(requirement, codes, vocabulary)
    return np.zeros(len(codes), bool)


def _compares(requirement: Requirement, codes: NDArray[np.int32], vocabulary: dict[str, int]) -> Mask:
    """Gt and Lt compare integers; a label or a bound that is not one does not match."""
    bound = _integer(requirement.values[0]) if len(requirement.values) == 1 else None
    if bound is None:
        return np.zeros(len(codes), bool)
    above = requirement.operator == "Gt"
    right = [
        code
        for value, code in vocabulary.items()
        if (number := _integer(value)) is not None and (number > bound if above else number < bound)
    ]
    return np.isin(codes, np.array(right, np.int32))


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _capable(least: Capability, columns: Columns) -> Mask:
    least = replace(least, rdma=False)  # of the node, not of its GPUs
    if least == Capability():
        return np.ones(columns.size, bool)
    able = np.array([satisfies(c, least) for c in columns.gpu_classes] + [False], bool)
    mask: Mask = able[columns.gpu_class]
    return mask


def _taints(pod_class: PodClass, columns: Columns) -> tuple[Mask, Blocks]:
    """Nodes with a taint that is not tolerated; and the block of nodes that are held back."""
    tainted = np.zeros(columns.size, bool)
    held = np.zeros(columns.size, np.uint8)
    answers: dict[tuple[tuple[Taint, ...], bool, bool, bool], tuple[bool, Block]] = {}
    for n in columns.guarded:
        node = columns.nodes[n]
        unfit = is_unfit_for(pod_class, node)
        key = (node.taints, node.cordoned, node.ready, unfit)
        if key not in answers:
            answers[key] = _held_by(node, unfit, pod_class.tolerations)
        tainted[n], held[n] = answers[key]
    return tainted, held


def is_unfit_for(pod_class: PodClass, node: Node) -> bool:
    """By its health: the node is unfit, or the kubelet may give out an unfit device of what the pod asks for."""
    if node.health == Health.Unfit:
        return True
    return bool(node.unsafe) and any(name in node.unsafe for name, _ in pod_class.requests)


def _held_by(node: Node, unfit: bool, tolerations: tuple[Toleration, ...]) -> tuple[bool, Block]:
    held = Block.Unfit if unfit else Block.Nothing
    if node.cordoned and not _tolerates(tolerations, Taint(CORDON_TAINT)):
        held = Block.Cordoned
    tainted = False
    for taint in node.taints:
        if taint.effect not in _KEPT_AWAY or _tolerates(tolerations, taint):
            continue
        if taint.key in NOT_READY_TAINTS:
            held = Block.NotReady
        elif taint.key == CORDON_TAINT:
            held = held or Block.Cordoned
        elif taint.key == UNFIT_TAINT:
            held = held or Block.Unfit
        else:
            tainted = True
    if not node.ready and not any(t.key in NOT_READY_TAINTS for t in node.taints):
        held = Block.NotReady
    return tainted, held


def untolerated(node: Node, tolerations: tuple[Toleration, ...]) -> list[Taint]:
    """The taints of a node that keep a pod with these tolerations away."""
    return [t for t in node.taints if t.effect in _KEPT_AWAY and not _tolerates(tolerations, t)]


def _tolerates(tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
    return any(_tolerates_one(t, taint) for t in tolerations)


def _tolerates_one(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    if not toleration.key:
        return False
    return toleration.value == taint.value
