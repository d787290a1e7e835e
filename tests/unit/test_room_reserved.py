"""What is booked is not free for others: `berth free` and `berth nodes` by what reservations keep."""

from __future__ import annotations

from io import StringIO
from typing import Any

from msgspec.structs import replace
from rich.console import Console

from berth.model.booking import Booking, Share
from berth.model.cluster import Allocation
from berth.model.queue import Queue
from berth.model.snapshot import Snapshot
from berth.model.workload import Workload
from berth.scheduling.answer import what_if
from berth.scheduling.room import Room
from berth.scheduling.room_kept import reserved_in
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.shown import pod_sets
from berth.views import room as view

NOW_S = 1000.0


def runs(name: str, node: int, gpus: int, queue: str = "") -> Allocation:
    return Allocation(
        node=f"node-{node:04d}", namespace="x", name=name, pod_class=pod_sets(gpus, 8)[0].pod_class, queue=queue
    )


def cluster(*bookings: Booking, running: tuple[Allocation, ...] = (), nodes: int = 3) -> Snapshot:
    queues = (Queue("teaching"), Queue("other"))
    return replace(like_nodes(nodes, 8), now_s=NOW_S, allocations=running, bookings=bookings, queues=queues)


def figures(snapshot: Snapshot) -> tuple[int, int, int, int]:
    (found,) = Room(snapshot).classes()
    return found.free_milli // 1000, found.reserved_milli // 1000, found.allocated_milli // 1000, found.gpus


def test_a_whole_node_is_kept_and_what_is_free_there_is_not_free_for_others() -> None:
    one = Booking("exam", queue="teaching", nodes=("node-0001",))
    snapshot = cluster(one, running=(runs("a", 0, 2), runs("b", 1, 3)))
    assert figures(snapshot) == (14, 5, 5, 24)
    reserved = reserved_in(snapshot)
    assert reserved is not None and reserved.idle == (("exam", 5),), "others are still on three of the eight"
    assert [(n.free_milli, n.reserved_milli, n.allocated_milli) for n in Room(snapshot).nodes()] == [
        (6000, 0, 2000), (0, 5000, 3000), (8000, 0, 0),
    ]  # fmt: skip
    largest = {g.level: g.pods for g in Room(snapshot).classes()[0].gangs}
    assert largest["cluster"][3] == 1, "one node of eight GPUs is left for others"


def test_gpus_of_no_node_are_kept_where_the_last_decision_had_them() -> None:
    one = Booking("exam", queue="teaching", gpus=4, shares=(Share("node-0002", 4),))
    snapshot = cluster(one, running=(runs("member", 2, 3, "teaching"),))
    assert figures(snapshot) == (20, 1, 3, 24), "its members have three of the four"
    reserved = reserved_in(snapshot)
    assert reserved is not None and reserved.idle == (("exam", 1),)


def test_a_window_that_opens_later_keeps_it_from_who_does_not_say_when_it_ends() -> None:
    later = Booking("exam", queue="teaching", nodes=("node-0001",), from_s=NOW_S + 3600)
    over = Booking("exam", queue="teaching", nodes=("node-0001",), until_s=NOW_S - 1)
    assert figures(cluster(later)) == (16, 8, 0, 24)
    assert figures(cluster(over)) == (24, 0, 0, 24) and reserved_in(cluster(over)) is None


def test_nodes_that_are_chosen_by_labels_have_what_all_of_them_keep() -> None:
    one = Booking("exam", queue="teaching", gpus=8, shares=(Share("node-0002", 8),))
    snapshot = cluster(one)
    some = replace(snapshot, nodes=snapshot.nodes[:2], bookings=())
    (found,) = Room(some, reserved_in(snapshot)).classes()
    assert (found.free_milli, found.reserved_milli) == (16_000, 0)


def shown(*bookings: Booking, **more: Any) -> str:
    snapshot = cluster(*bookings, **more)
    found, reserved = Room(snapshot), reserved_in(snapshot)
    out = StringIO()
    idle = reserved.idle if reserved is not None else ()
    view.show_free(found.classes(), (), found.fragmentation(), Console(file=out, width=120), reserved=idle)
    return out.getvalue()


def test_the_answer_says_what_is_reserved() -> None:
    exam = Booking("exam", queue="teaching", nodes=("node-0001",))
    said = shown(exam, Booking("b", queue="other", nodes=("node-0002",)))
    assert "RESERVED" in said and "Reserved, and not counted as free: b 8 GPUs, exam 8 GPUs." in said
    assert "RESERVED" not in shown(), "where nobody reserves anything there is no column"


def asked(gpus: int, pods: int, queue: str = "other", limit_s: float = 0.0) -> Workload:
    sets = (replace(pod_sets(gpus, 8)[0], count=pods, min_count=pods),)
    return Workload("w", sets, queue=queue, time_limit_s=limit_s)


def remarks(snapshot: Snapshot, workload: Workload) -> str:
    (answered,) = what_if(snapshot, [workload])
    assert not answered.placed
    return " ".join(answered.remarks)


def test_who_lacks_room_is_told_what_reservations_keep_of_it() -> None:
    one = Booking("exam", queue="teaching", nodes=("node-0001",))
    busy = cluster(one, running=(runs("a", 0, 4), runs("b", 2, 6)))
    by_exam = "8 GPUs by GPUReservation exam for queue teaching"
    assert f"Idle GPUs that are kept for others do not count as free: {by_exam}." in remarks(busy, asked(8, 2))
    assert "kept" not in remarks(busy, asked(8, 2, queue="teaching")), "it may enter"
    assert "kept" not in remarks(cluster(one, running=(runs("a", 0, 8), runs("c", 1, 8))), asked(8, 2)), "none is idle"
    assert "kept" not in remarks(busy, asked(8, 1)), "the cause names it"
    later = replace(one, from_s=NOW_S + 3600)
    ahead = cluster(later, running=(runs("a", 0, 4), runs("b", 2, 6)))
    assert "GPUReservation exam" in remarks(ahead, asked(8, 2))
    assert "kept" not in remarks(ahead, asked(8, 2, limit_s=1800)), "it ends before the window opens"
