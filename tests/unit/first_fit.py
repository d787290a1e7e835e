"""A scheduler for tests of the replay: first fit in the order of arrival, nothing else."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from berth.model.reasons import Answer, Cause, Reason, Verdict
from berth.model.resources import CPU, MEMORY, NVIDIA_GPU, get
from berth.model.snapshot import Snapshot
from berth.simulation.occupancy import Occupancy

REASONS = (Reason.NotEnoughGpus, Reason.Fragmented, Reason.LimitExceeded)


def first_fit(snapshot: Snapshot):
    """Gangs whole or not at all. What it says of who waits depends on the length of the name only."""
    books, index = Occupancy(snapshot), {n.name: i for i, n in enumerate(snapshot.nodes)}
    for held in snapshot.allocations:
        books.take(index[held.node], held.pod_class, held.devices)
    binds: list[tuple[int, int, int, int]] = []
    verdicts: dict[int, Verdict] = {}
    for w, workload in enumerate(snapshot.workloads):
        placed: list[tuple[int, int, int, tuple[int, ...]]] = []
        wanted = [s for s, pod_set in enumerate(workload.pod_sets) for _ in range(pod_set.count)]
        for s in wanted:
            found = _place(books, workload.pod_sets[s].pod_class)
            if found is None:
                break
            placed.append((w, s, *found))
        if len(placed) == len(wanted):
            binds += [(w, s, n, sum(1 << g for g in devices)) for w, s, n, devices in placed]
            continue
        for _, s, n, devices in placed:
            books.release(n, workload.pod_sets[s].pod_class, devices)
        reason = REASONS[len(workload.name) % len(REASONS)]
        cause = Cause(reason, f"{reason.summary}, says a test", unlock=("waiting",))
        verdicts[w] = Verdict(workload.key, Answer.NotYet, (cause,))
    columns = np.array(binds, np.int64).reshape(len(binds), 4).T
    return SimpleNamespace(
        workload=columns[0], pod_set=columns[1], node=columns[2], devices=columns[3], verdicts=verdicts
    )


def _place(books: Occupancy, pod_class):
    gpus = get(pod_class.requests, NVIDIA_GPU)
    for n, node in enumerate(books.nodes):
        free = [g for g in range(len(node.devices)) if books.device[n, g] >= pod_class.gpu_milli]
        enough = books.cpu[n] >= get(pod_class.requests, CPU) and books.memory[n] >= get(pod_class.requests, MEMORY)
        if node.ready and not node.cordoned and enough and books.pods[n] > 0 and len(free) >= gpus:
            devices = tuple(free[:gpus])
            books.take(n, pod_class, devices)
            return n, devices
    return None
