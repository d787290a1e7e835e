"""What a queue is played forward with, as columns (starts_field.py makes them of a snapshot).

Shapes: N nodes, P pools (nodes that the same workloads may use), L levels (the most units of a node), R workloads that
run, J in all: those that run, those that wait in the order in which they came, those that come; Q nodes of the tree of
queues, parents first. Times are seconds from now, amounts of GPUs are units of so many milli.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


class Ground(NamedTuple):
    """free, pool (N,) int64: free units of each node, and its pool; levels: a node has at most so many units.
    first (R + 1,), node, units: the pods of each workload that runs; ran_s (R,) since when it does."""

    free: I64
    pool: I64
    levels: int
    pools: int
    first: I64
    node: I64
    units: I64
    ran_s: F64


class Tree(NamedTuple):
    """The queues. first_child (Q + 1,), child: the children of each, `child` without the root; parent -1 at the root.

    weight, base (Q,) float64: of the virtual time by which children are merged, held + asked above the base ÷ weight;
    held, limit (Q,) int64 milli.
    """

    parent: I64
    first_child: I64
    child: I64
    weight: F64
    base: F64
    held: I64
    limit: I64


class Asked(NamedTuple):
    """Columns (K,) of what workloads ask for; several that come may share a row.

    leaf: the node of the tree in whose line it stands; milli: what its queue is charged; priority; pods_a of units_a
    each and pods_b of units_b, the larger first; pools: a bit for each pool that it may use; limit_s: when it has to
    have ended, from its start (of who runs: from now), infinite where it has no limit; rank: at equal priority the
    least stands first, at equal rank who came first.
    """

    leaf: I64
    milli: I64
    priority: I64
    pods_a: I64
    units_a: I64
    pods_b: I64
    units_b: I64
    pools: I64
    limit_s: F64
    rank: F64


class Rules(NamedTuple):
    """depth: so many in the line are looked at at each moment; crowd: of every so many that run one more end or
    submission is waited for before the line is looked at (each changes little where many run); searches: for a place in
    time, in vain; pops: ends looked at for one; overrun_s: who is past its limit is taken to end so much later; steps:
    moments at most."""

    depth: int
    crowd: int
    searches: int
    pops: int
    overrun_s: float
    steps: int
