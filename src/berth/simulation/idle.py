"""How useful the idle GPUs are: what typical requests cannot reach of them, and which shapes still fit.

The measure follows fragmentation as FGD defines it (Weng et al., USENIX ATC 2023), with two differences
that suit a cluster of many GPU models with nodes for CPU-only pods: a request is only held against nodes
that would do for it when empty, and requests without GPUs are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from berth.model.cluster import Health
from berth.model.resources import CPU, MEMORY, NVIDIA_GPU, get
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE, PodClass
from berth.scheduling.columns import columns_of
from berth.scheduling.feasibility import blocks_of
from berth.simulation.occupancy import Occupancy

COVERED = 0.95  # of all arrivals that ask for GPUs; rarer requests are not typical
SHAPES = (1, 2, 4, 8)


class Typical(NamedTuple):
    """M typical requests of one pod. `would_do` (M, N): the node is open to it and is large enough."""

    share: np.ndarray
    cpu: np.ndarray
    memory: np.ndarray
    gpus: np.ndarray
    milli: np.ndarray
    would_do: np.ndarray


def typical_of(cluster: Snapshot) -> Typical:
    """The most popular GPU requests of the cluster's demand, COVERED of them."""
    asked = [(c, s) for c, s in zip(cluster.demand.classes, cluster.demand.shares, strict=True) if _gpus(c)]
    asked.sort(key=lambda pair: -pair[1])  # stable: equal shares keep the order of the demand
    total = sum(s for _, s in asked)
    kept, covered = [], 0.0
    for pod_class, share in asked:
        if covered >= COVERED * total:
            break
        kept.append((pod_class, share))
        covered += share
    classes = [c for c, _ in kept]
    columns = columns_of(cluster, classes)
    return Typical(
        share=np.array([s for _, s in kept]),
        cpu=np.array([get(c.requests, CPU) for c in classes], np.int64),
        memory=np.array([get(c.requests, MEMORY) for c in classes], np.int64),
        gpus=np.array([_gpus(c) for c in classes], np.int64),
        milli=np.array([c.gpu_milli for c in classes], np.int64),
        would_do=np.array([blocks_of(c, columns) == 0 for c in classes]).reshape(len(classes), len(cluster.nodes)),
    )


def _gpus(pod_class: PodClass) -> int:
    return get(pod_class.requests, NVIDIA_GPU)


def stranded_pct(typical: Typical, now: Occupancy) -> float:
    """Of the idle GPUs that a typical request could use on empty nodes, the percentage out of its reach now.

    0 where nothing is idle.
    """
    lost = reachable = 0.0
    idle = now.device.sum(axis=1)
    for m in range(len(typical.share)):
        enough = now.device >= typical.milli[m]
        runs = (
            (now.cpu >= typical.cpu[m])
            & (now.memory >= typical.memory[m])
            & (now.pods > 0)
            & (enough.sum(axis=1) >= typical.gpus[m])
        )
        usable = np.where(runs, (now.device * enough).sum(axis=1), 0)
        inside = typical.would_do[m]
        reachable += typical.share[m] * float(idle[inside].sum())
        lost += typical.share[m] * float((idle - usable)[inside].sum())
    return 100 * lost / reachable if reachable else 0.0


def open_nodes(cluster: Snapshot) -> np.ndarray:
    """(N,) nodes that new pods may go to at all."""
    unfit = [n.health is Health.Unfit or bool(n.unsafe) for n in cluster.nodes]
    return np.array([n.ready and not n.cordoned and not u for n, u in zip(cluster.nodes, unfit, strict=True)], bool)


def room_by_shape(now: Occupancy, is_open: np.ndarray) -> np.ndarray:
    """(C, S) how many pods of SHAPES whole GPUs each GPU class still takes, by devices alone."""
    whole = (now.device == WHOLE).sum(axis=1)
    room = np.zeros((len(now.allocated), len(SHAPES)), np.int64)
    for s, shape in enumerate(SHAPES):
        fits = np.where(is_open & (now.gpu_class >= 0), whole // shape, 0)
        np.add.at(room[:, s], np.maximum(now.gpu_class, 0), fits)
    return room
