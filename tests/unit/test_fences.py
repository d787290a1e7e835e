"""Quotas that are not lent: at every level of the tree, from everybody who is not below the queue."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.model.queue import Queue
from berth.model.resources import resources
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, PodSet, Workload
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.scheduling.quota import Ledger, ledger_of
from berth.scheduling.tables import Tables
from berth.simulation.queueing.cluster import like_nodes

QUEUES = (
    Queue("lab"), Queue("a", "lab", quota=(("*", 4),), lending=False), Queue("b", "lab"),
    Queue("c", quota=(("*", 2),), lending=False), Queue("below-c", "c"), Queue("d"),
)  # fmt: skip


def ledger(*queues: Queue, gpus: int = 10, named: tuple[str, ...] = ()) -> Ledger:
    return ledger_of(queues or QUEUES, ("X",), named, lambda: np.array([gpus * 1000, gpus * 1000]))


def room(one: Ledger, name: str) -> int:
    return int(one.room(one.index[name])[-1])


@pytest.mark.parametrize(("name", "gpus"), [("a", 8), ("b", 6), ("lab", 6), ("c", 6), ("below-c", 6), ("d", 6)])
def test_each_has_what_the_others_do_not_keep(name: str, gpus: int) -> None:
    """Of 10: a has all but c's 2, everybody else all but a's 4."""
    assert room(ledger(), name) == gpus * 1000


def test_what_is_taken_outside_is_taken_from_all_outside() -> None:
    one = ledger()
    one.take(one.index["b"], 0, 3000)
    assert (room(one, "d"), room(one, "c"), room(one, "a")) == (3000, 3000, 5000)
    one.take(one.index["a"], 0, 4000)
    assert (room(one, "d"), room(one, "c"), room(one, "a")) == (1000, 3000, 1000)
    assert one.tightest(one.index["d"], -1) == "all but c"
    one.take_elsewhere(0, 1000)
    assert (room(one, "d"), room(one, "a")) == (0, 0)


def test_one_at_the_top_needs_no_fence_and_counts_who_is_elsewhere() -> None:
    one = ledger(Queue("c", quota=(("*", 2),), lending=False), Queue("d"))
    assert not one.fences and room(one, "d") == 8000 and one.bounded.tolist() == [False, True, True]
    one.take_elsewhere(0, 3000)
    assert room(one, "d") == 5000


def test_who_lends_is_no_matter() -> None:
    assert not ledger(Queue("a", quota=(("*", 4),)), Queue("b")).bounded.any()
    assert not ledger(Queue("a", lending=False), Queue("b")).fences, "nothing is guaranteed, so nothing is kept"


def a_pod(name: str, queue: str, gpus: int) -> Workload:
    pods = PodSet("p", PodClass(requests=(("nvidia.com/gpu", gpus),)))
    return Workload(name, (pods,), queue=queue, created_s=1.0)


names = st.sampled_from(["lab", "a", "b", "c", "below-c", "d", "x"])
wishes = st.lists(st.tuples(names, st.integers(1, 4)), max_size=14)


@given(wishes)
def test_what_is_not_lent_is_there_for_its_queue(asked: list[tuple[str, int]]) -> None:
    """16 GPUs: after a cycle each keeper has its quota or finds it free."""
    workloads = tuple(a_pod(f"w{i}", queue, gpus) for i, (queue, gpus) in enumerate(asked))
    snapshot: Snapshot = replace(like_nodes(2, 8), workloads=workloads, queues=QUEUES, now_s=10.0)
    plan = cycle(snapshot, Policy(), Tables())
    held: dict[str, int] = {}
    for bind in plan.binds():
        gpus = dict(bind.workload.pod_sets[0].pod_class.requests)["nvidia.com/gpu"]
        held[bind.workload.queue] = held.get(bind.workload.queue, 0) + gpus
    of: dict[str, Any] = {"a": (["a"], 4), "c": (["c", "below-c"], 2)}
    for inside, quota in of.values():
        outside = sum(gpus for queue, gpus in held.items() if queue not in inside)
        assert outside <= 16 - quota


def test_what_is_out_of_service_is_kept_for_nobody() -> None:
    """Of 3 nodes of 4 GPUs one is cordoned: 8 are there, 4 of them kept, so others have 4 and not 8."""
    snapshot = like_nodes(3, 4)
    nodes = (*snapshot.nodes[:2], replace(snapshot.nodes[2], cordoned=True))
    one = PodClass(resources({"nvidia.com/gpu": 1}))
    workloads = tuple(Workload(f"w{i}", (PodSet("pod", one),), queue="d", uid=str(i)) for i in range(6))
    queues = (Queue("c", quota=(("*", 4),), lending=False), Queue("d"))
    plan = cycle(replace(snapshot, nodes=nodes, workloads=workloads, queues=queues), Policy(), Tables())
    assert len(plan.workload) == 4
    (cause,) = {verdict.causes[0] for verdict in plan.verdicts.values()}
    assert cause.where == "c" and "beside what queue c does not lend 0 are left of 4" in cause.sentence
    assert cause.unlock[-1] == "lending: true in queue c, or a lower quota of it"


@pytest.mark.parametrize("lending", [True, False])
def test_what_is_absurd_stays_a_number(lending: bool) -> None:
    huge = Queue("a", weight=10**20, quota=(("*", 10**18), ("X", 10**18)), limit=(("*", 10**19),), lending=lending)
    assert room(ledger(huge, Queue("b")), "a") > 0
