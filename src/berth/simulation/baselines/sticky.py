"""Places for SRSF where a move costs what a start costs: who runs on stays where it is, and moves only to make room.

Who is to run is chosen by the count of GPUs alone. The newcomers are placed widest first, each on the fullest node that
has room, or on free nodes. Where one finds no room, the node is cleared on which the fewest GPUs of narrower jobs have
to move; where that leads nowhere, all are placed anew, widest first.

Shapes: C who are to run, N nodes, S places of a job (node -1: none).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from berth.model.jobs import Int
from berth.scheduling.kernels import compiled

Mask = NDArray[np.bool_]


@compiled
def place_sticky(jobs: Int, width: Int, runs: Mask, node: Int, taken: Int, node_gpus: int, nodes: int) -> Mask:
    """(C,) which of them stay where they are; the places of the others are written to `node` and `taken` (J, S)."""
    free, stays, placed = np.full(nodes, node_gpus), np.zeros(len(jobs), np.bool_), np.zeros(len(jobs), np.bool_)
    for c in range(len(jobs)):
        if runs[jobs[c]]:
            stays[c] = placed[c] = True
            _book(free, node[jobs[c]], taken[jobs[c]], -1)
    order, tries = np.argsort(-width[jobs], kind="mergesort"), 0
    while not placed.all():
        for c in order:
            if placed[c]:
                continue
            j = jobs[c]
            if best_fit(free, node_gpus, width[j], node[j], taken[j]):
                placed[c] = True
            elif tries > len(jobs) or not _clear(jobs, width, node, taken, free, node_gpus, width[j], stays, placed):
                free[:], placed[:], stays[:] = node_gpus, False, False
                for d in order:
                    placed[d] = best_fit(free, node_gpus, width[jobs[d]], node[jobs[d]], taken[jobs[d]])
                return stays
            tries += 1
            break
    return stays


@compiled
def best_fit(free: Int, node_gpus: int, width: int, node: Int, taken: Int) -> bool:
    """Take the GPUs: on the fullest node that has enough, more than a node has on free nodes and one for the rest."""
    whole, rest, found = width // node_gpus, width % node_gpus, 0
    node[:] = -1
    if not whole:
        best = -1
        for n in range(len(free)):
            if free[n] >= rest and (best < 0 or free[n] < free[best]):
                best = n
        if best < 0:
            return False
        node[0], taken[0] = best, rest
        free[best] -= rest
        return True
    for n in range(len(free)):
        if found < whole and free[n] == node_gpus:
            node[found], taken[found] = n, node_gpus
            found += 1
    if found == whole and rest:
        for n in range(len(free)):
            if found == whole and free[n] >= rest and not (node[:whole] == n).any():
                node[found], taken[found] = n, rest
                found += 1
    if found < whole + (1 if rest else 0):
        node[:] = -1
        return False
    _book(free, node, taken, -1)
    return True


@compiled
def _clear(
    jobs: Int, width: Int, node: Int, taken: Int, free: Int, node_gpus: int, wanted: int, stays: Mask, placed: Mask
) -> bool:
    """Take narrower jobs off one node so that it has room; False where no node can have it."""
    enough, best, least = min(wanted, node_gpus), -1, 2**31
    for n in range(len(free)):
        if free[n] < enough:
            there, moved = free[n], 0
            for narrow in range(1, enough if wanted <= node_gpus else node_gpus):
                for c in range(len(jobs)):
                    if there < enough and placed[c] and width[jobs[c]] == narrow and node[jobs[c], 0] == n:
                        there += narrow
                        moved += narrow
            if there >= enough and moved < least:
                best, least = n, moved
    if best < 0:
        return False
    for narrow in range(1, node_gpus):
        for c in range(len(jobs)):
            j = jobs[c]
            if free[best] < enough and placed[c] and width[j] == narrow and node[j, 0] == best:
                _book(free, node[j], taken[j], 1)
                node[j, :] = -1
                placed[c] = stays[c] = False
    return True


@compiled
def _book(free: Int, node: Int, taken: Int, sign: int) -> None:
    for s in range(len(node)):
        if node[s] >= 0:
            free[node[s]] += sign * taken[s]
