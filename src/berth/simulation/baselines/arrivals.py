"""One run of a published policy: every pod of the offer goes to the best node at once, or is dropped.

A score depends on the pod's class and on the node alone, so scores live in a class x node table, and a class
that arrives again re-scores only the nodes that changed since. Resources are only ever taken: a node that
did not fit a class never will, and a class that fitted nowhere is not tried again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from berth.base.staleness import forget_stale
from berth.simulation import fragmentation, offer
from berth.simulation.baselines import bestfit, clustering, dotprod, fgd, packing, random, state
from berth.simulation.baselines.state import (
    WHOLE,
    empty_cluster,
    first_full_gpus,
    fits,
    take,
    tightest_gpu,
)
from berth.simulation.fragmentation import fragmented, tables
from berth.simulation.offer import Offer, Placements

RANDOM, DOTPROD, CLUSTERING, PACKING, BESTFIT, FGD = range(6)
# Below every score: on nodes larger than the published shape BestFit and DotProd go below 0.
INFEASIBLE = np.iinfo(np.int32).min

_bestfit_score, _clustering_score, _dotprod_score = bestfit.score, clustering.score, dotprod.score
_packing_score, _fgd_score, _fgd_gpu = packing.score, fgd.score, fgd.best_gpu
_drawn_node, _drawn_gpu = random.drawn_node, random.drawn_gpu


def place(policy: int, offered: Offer) -> Placements:
    """Place an offer by one of the six policies."""
    pods = len(offered.class_of)
    draws = random.draws(offered.seed, pods) if policy == RANDOM else np.zeros((0, 2))
    cluster = empty_cluster(offered.nodes)
    frag = tables(offered.typical, offered.models, cluster.gpu.shape[1])
    node, gpus = _arrive(policy, cluster, offered.classes, offered.class_of, frag, draws)
    return Placements(node, gpus)


@njit(inline="always")
def _score(policy, state, frag, wasted, n, cpu, num_gpu, gpu_milli):
    """The score of a node that fits: 0 to 100 on nodes of up to 128 cores and 8 GPUs."""
    if policy == FGD:
        return _fgd_score(state, frag, wasted, n, cpu, num_gpu, gpu_milli)
    if policy == BESTFIT:
        return _bestfit_score(state, n, cpu, num_gpu * gpu_milli)
    if policy == DOTPROD:
        return _dotprod_score(state, n, cpu, num_gpu * gpu_milli)
    if policy == PACKING:
        return _packing_score(state, n, num_gpu, gpu_milli)
    if policy == CLUSTERING:
        return _clustering_score(state, n, num_gpu, gpu_milli)
    return 0


@njit
def _first_best(scores):
    """The first node with the highest score; -1 if none is feasible."""
    best = scores[0]
    for n in range(scores.shape[0]):
        best = max(best, scores[n])
    if best == INFEASIBLE:
        return -1
    for n in range(scores.shape[0]):
        if scores[n] == best:
            return n
    return -1


@njit(cache=True)
def _arrive(policy, state, classes, class_of, frag, draws):
    nodes, pods, kinds = state.cpu.shape[0], class_of.shape[0], classes.cpu_milli.shape[0]
    node_of = np.full(pods, -1, np.int64)
    gpus_of = np.zeros(pods, np.int64)
    scores = np.empty((kinds, nodes), np.int32)
    seen = np.full(kinds, -1, np.int64)  # how many placements the class's row of scores knows of
    hopeless = np.zeros(kinds, np.bool_)
    changed = np.empty(pods, np.int64)  # the node of each placement, in order
    last = np.full(nodes, -1, np.int64)  # the last placement on a node
    placed = 0
    wasted = np.zeros(nodes, np.int64)
    if policy == FGD:
        for n in range(nodes):
            wasted[n] = fragmented(frag, state.model[n], state.cpu[n], state.gpu[n])
    for p in range(pods):
        c = class_of[p]
        if hopeless[c]:
            continue
        cpu, memory = classes.cpu_milli[c], classes.memory_mib[c]
        num_gpu, gpu_milli, models = classes.num_gpu[c], classes.gpu_milli[c], classes.models[c]
        row = scores[c]
        if seen[c] < 0 or placed - seen[c] > nodes:
            for n in range(nodes):
                if seen[c] < 0 or (last[n] >= seen[c] and row[n] != INFEASIBLE):
                    if fits(state, n, cpu, memory, num_gpu, gpu_milli, models):
                        row[n] = _score(policy, state, frag, wasted, n, cpu, num_gpu, gpu_milli)
                    else:
                        row[n] = INFEASIBLE
        else:
            for i in range(seen[c], placed):
                n = changed[i]
                if last[n] == i and row[n] != INFEASIBLE:
                    if fits(state, n, cpu, memory, num_gpu, gpu_milli, models):
                        row[n] = _score(policy, state, frag, wasted, n, cpu, num_gpu, gpu_milli)
                    else:
                        row[n] = INFEASIBLE
        seen[c] = placed
        n = _drawn_node(row, INFEASIBLE, draws[p, 0]) if policy == RANDOM else _first_best(row)
        if n < 0:
            hopeless[c] = True
            continue
        chosen = np.int64(0)
        if num_gpu > 0:
            if gpu_milli == WHOLE:
                chosen = first_full_gpus(state.gpu[n], num_gpu)
            elif policy == RANDOM:
                chosen = np.int64(1) << _drawn_gpu(state.gpu[n], gpu_milli, draws[p, 1])
            elif policy == FGD:
                chosen = np.int64(1) << _fgd_gpu(state, frag, wasted, n, cpu, gpu_milli)
            else:
                chosen = np.int64(1) << tightest_gpu(state.gpu[n], gpu_milli)
        take(state, n, cpu, memory, num_gpu, gpu_milli, chosen)
        if policy == FGD:
            wasted[n] = fragmented(frag, state.model[n], state.cpu[n], state.gpu[n])
        node_of[p] = n
        gpus_of[p] = chosen
        changed[placed] = n
        last[n] = placed
        placed += 1
    return node_of, gpus_of


# Only the outermost kernel is cached: an inner one with a cache of its own could be old inside a new one.
forget_stale(_arrive, bestfit, clustering, dotprod, fgd, packing, random, state, fragmentation, offer)
