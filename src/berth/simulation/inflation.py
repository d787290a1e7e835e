"""The arrivals of one run: the trace shuffled, and grown or cut to 1.3 times the cluster's GPUs.

Source of the rule: the published FGD simulator (USENIX ATC 2023). The generator is NumPy's PCG64, so a seed
gives another sample of the same experiment than the published one, and always the same one here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from berth.base.errors import BadInput
from berth.model.trace import Int, Trace
from berth.simulation.offer import Classes, Nodes, Offer, classes_of
from berth.simulation.typical import TypicalPods, typical_pods

# Offered GPUs over the cluster's GPUs, as a ratio of integers so that the limit is exact.
TUNE = (13, 10)
# How many extra pods are drawn at a time; part of what a seed means, so not a knob.
DRAWN_AT_ONCE = 1024
# Bounds on what a foreign trace can make a run cost: about 2 GB for the class x node table of a policy.
MAX_TABLE = 500_000_000
MAX_OFFERED = 20_000_000


@dataclass(frozen=True)
class Prepared:
    """What all runs of a trace share. `by_name` holds pod indices in the order of their names."""

    trace: Trace
    typical: TypicalPods
    classes: Classes
    class_of: Int
    by_name: Int


def prepare(trace: Trace) -> Prepared:
    """Compute once what does not depend on the seed. BadInput where a run would be too large."""
    classes, class_of = classes_of(trace)
    kinds, nodes = len(classes.num_gpu), len(trace.cluster.names)
    if kinds * nodes > MAX_TABLE:
        raise BadInput(
            f"trace {trace.name}",
            f"has {kinds} distinct requests and {nodes} nodes: at most {MAX_TABLE} pairs fit.",
            "Round the requests, or take fewer nodes.",
        )
    asked, limit = int(trace.pods.asked_milli.sum()), trace.cluster.capacity_milli * TUNE[0] // TUNE[1]
    if asked and len(class_of) * limit > asked * MAX_OFFERED:
        raise BadInput(
            f"trace {trace.name}",
            f"asks for so little GPU that filling the cluster takes more than {MAX_OFFERED} pods.",
            "Take fewer nodes, or leave out CPU-only pods.",
        )
    by_name = np.array(sorted(range(len(trace.pods.names)), key=trace.pods.names.__getitem__), dtype=np.int64)
    return Prepared(trace, typical_pods(trace), classes, class_of, by_name)


def offer(prepared: Prepared, seed: int) -> Offer:
    """The run of one seed: pods in arrival order, nodes in tie-break order."""
    trace = prepared.trace
    generator = np.random.Generator(np.random.PCG64(seed))
    pods = generator.permutation(prepared.by_name)
    limit = trace.cluster.capacity_milli * TUNE[0] // TUNE[1]
    pods = tuned(pods, trace.pods.gpu_milli, trace.pods.num_gpu, limit, generator)
    order = generator.permutation(len(trace.cluster.names)).astype(np.int64)
    cluster = trace.cluster
    nodes = Nodes(cluster.cpu_milli[order], cluster.memory_mib[order], cluster.gpus[order], cluster.model[order])
    return Offer(nodes, prepared.classes, prepared.class_of[pods], order, cluster.models, prepared.typical, seed)


def tuned(pods: Int, gpu_milli: Int, num_gpu: Int, limit: int, generator: np.random.Generator) -> Int:
    """The list of pods (indices into the trace, in arrival order) that asks for `limit` GPU milli.

    Too short: pods drawn uniformly, with replacement, from the trace are appended until the next draw would
    exceed the limit. The original's test adds the share of one GPU, not of all that a pod asks; kept.
    Too long: uniformly chosen pods leave until it does not exceed the limit.
    """
    asked = gpu_milli * num_gpu
    total = int(asked[pods].sum())
    if total > limit:
        leaving = generator.permutation(len(pods))
        left_after = total - np.cumsum(asked[pods[leaving]])
        gone = leaving[: int(np.argmax(left_after <= limit)) + 1]
        return np.delete(pods, gone)
    if not asked.any():
        return pods
    parts = [pods]
    while True:
        drawn = generator.integers(0, len(gpu_milli), size=DRAWN_AT_ONCE)
        before = total + np.concatenate(([0], np.cumsum(asked[drawn])[:-1]))
        exceeds = before + gpu_milli[drawn] > limit
        if exceeds.any():
            parts.append(drawn[: int(np.argmax(exceeds))])
            return np.concatenate(parts)
        parts.append(drawn)
        total += int(asked[drawn].sum())
