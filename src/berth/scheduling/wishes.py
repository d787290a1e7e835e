"""What a workload and its sets wish of topology, as levels of this cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from berth.model.topology import HOST_LABEL
from berth.model.workload import PodSet, TopologyWish, Workload
from berth.scheduling.draft import Draft
from berth.scheduling.quota import gpu_milli

Mask = NDArray[np.bool_]


def whole_level(workload: Workload, draft: Draft) -> int | None:
    """Index of the narrowest level that the whole workload is required to share; None where there is none.

    -1 stands for a level that the cluster does not know. A single pod set's own wish for all of its pods is the
    same as the workload's.
    """
    levels = [level_of(w, draft) for w in whole_wishes(workload) if w.required]
    if not levels:
        return None
    return -1 if -1 in levels else max(levels)


def whole_wishes(workload: Workload) -> list[TopologyWish]:
    """Wishes of all pods for one domain: the workload's, and those of a set that is the only one."""
    own = workload.pod_sets[0].topology if len(workload.pod_sets) == 1 else ()
    return [w for w in (*workload.topology, *own) if not w.slice_size]


def set_wishes(workload: Workload, pod_set: PodSet) -> tuple[TopologyWish, ...]:
    """Required wishes of one set: its own, and slices that the whole workload asks for, which every set is cut into."""
    sliced = [w for w in workload.topology if w.slice_size]
    return tuple(w for w in (*pod_set.topology, *sliced) if w.required)


def level_of(wish: TopologyWish, draft: Draft) -> int:
    """Index of the wished level; the number of levels stands for the host; -1 for one that is not known."""
    topology = draft.columns.topology
    if wish.level in (HOST_LABEL, "host", "hostname"):
        return len(topology.levels)
    return topology.find(wish.level)


def labelled(scope: Mask, levels: Sequence[int], draft: Draft) -> Mask:
    """The nodes of a scope that are in some domain of each of these levels."""
    for level in levels:
        if level < len(draft.columns.topology.levels):
            scope = scope & (draft.columns.domain[level] >= 0)
    return scope


def gpu_milli_of(pod_set: PodSet) -> int:
    """How hard one pod is to place: its GPU milli."""
    return gpu_milli(pod_set.pod_class.requests, pod_set.pod_class.gpu_milli)
