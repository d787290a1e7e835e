"""Clusters and traces of `berth simulate jobs` that need no public data: of a dump, of a load, drawn."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_runs import here as run_command

from berth.app.cli.options import now_s
from berth.base.errors import BadInput
from berth.model.queue import Queue
from berth.simulation.queueing.cluster import like_site, refuse_too_wide, site_for
from berth.simulation.queueing.drawn import BUILTIN, LOAD, cluster_of, drawn_jobs
from berth.simulation.queueing.due import due_over_time
from berth.sources.job_csv import read_job_file
from berth.sources.job_traces import jobs_of

H100, A100 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB"


def node(name: str, gpus: int, product: str = H100, **spec: Any) -> dict[str, Any]:
    has = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(gpus)}},
        "spec": spec, "status": {"allocatable": has, "capacity": has},
    }  # fmt: skip


def pod(name: str, on: str, gpus: int) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "team"},
        "spec": {"nodeName": on, "containers": [container]}, "status": {"phase": "Running"},
    }  # fmt: skip


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "GPUQueue", "metadata": {"name": name}, "spec": spec}


def dump(folder: Path, *objects: dict[str, Any]) -> str:
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(path)


def trace(folder: Path, text: str) -> str:
    path = folder / "jobs.csv"
    path.write_text(text)
    return str(path)


def runs(*arguments: str) -> list[dict[str, Any]]:
    done = run_command("simulate", "jobs", *arguments, "-o", "json")
    assert done.code == 0, done.err
    found: list[dict[str, Any]] = json.loads(done.out)["runs"]
    return found


def test_a_dump_is_a_cluster_with_nothing_on_it(tmp_path: Path) -> None:
    """What runs there is no part of the trace; nodes that take nobody new are no part of the cluster."""
    seen = dump(
        tmp_path, node("a", 8), node("b", 8), node("cordoned", 8, unschedulable=True),
        node("theirs", 8, taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]),
        node("gpu-taint", 8, taints=[{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]),
        pod("busy", "a", 8),
    )  # fmt: skip
    jobs = trace(tmp_path, "job,submit,duration,gpus,pods\na,0,10,8,3\n")
    told = runs("--trace", jobs, "--cluster", seen)
    assert [one["policy"] for one in told][:3] == ["berth", "berth-blind", "fifo"]
    assert {one["gpus"] for one in told} == {24} and {one["makespan_s"] for one in told} == {10.0}
    assert f"the cluster begins empty: 1 pod that runs in {seen} left out" in told[0]["notes"]
    assert any(note.startswith("2 nodes with GPUs") for note in told[0]["notes"])


def test_classes_and_queues_of_a_dump_count(tmp_path: Path) -> None:
    """Two jobs want the one A100 node, one after the other; the limit of a queue holds its second job back."""
    seen = dump(tmp_path, node("h", 8), node("a", 4, A100), queue("x", limit={"*": 4}))
    rows = ["a1,0,10,4,A100,y", "a2,0,10,4,A100,y", "x1,0,10,4,H100,x", "x2,0,10,4,H100,x"]
    jobs = trace(tmp_path, "job,submit,duration,gpus,class,queue\n" + "\n".join(rows) + "\n")
    (blind, *others) = runs("--trace", jobs, "--cluster", seen, "--policy", "berth-blind")
    assert not others and blind["gpus"] == 12 and blind["makespan_s"] == 20.0
    assert {queue["queue"]: queue["avg_jct_s"] for queue in blind["queues"]} == {"x": 15.0, "y": 15.0}
    assert {cause["reason"] for cause in blind["causes"]} == {"NotEnoughGpus", "LimitExceeded"}
    done = run_command("simulate", "jobs", "--trace", jobs, "--cluster", seen, "--policy", "fifo")
    assert done.code == 2 and "know like nodes only" in done.err


def test_what_is_due_follows_the_tree_of_queues() -> None:
    """Of 12 GPUs research is owed two thirds, of which vision, that wants all, gets what speech leaves; a queue that is
    in no tree weighs 1 at the top; a queue's own jobs are beside its children."""
    tree = (Queue("research", weight=2), Queue("vision", "research", 3), Queue("speech", "research", 1))
    names, wanted = ("vision", "speech", "others"), np.array([[12.0, 12.0], [1.0, 12.0], [12.0, 0.0]])
    assert due_over_time(names, wanted, 12, tree).tolist() == [[7.0, 9.0], [1.0, 3.0], [4.0, 0.0]]
    own = due_over_time(("research", "vision"), np.array([[12.0], [12.0]]), 12, tree)
    assert own.tolist() == [[3.0], [9.0]]
    assert due_over_time(("a", "b"), np.array([[12.0], [12.0]]), 12).tolist() == [[6.0], [6.0]]
    ring = (Queue("a", "b"), Queue("b", "a"))
    assert due_over_time(("a", "c"), np.array([[12.0], [4.0]]), 12, ring).tolist() == [[8.0], [4.0]]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            "a,0,10,4,B200",
            "asks for GPUs of class B200, and no node that jobs may use has any. There are A100-80GB, H100",
        ),
        ("a,0,10,8,A100", "asks for 8 GPUs of class A100 in one pod; a node has 4"),
        ("a,0,10,9,", "asks for 9 GPUs in one pod; a node has 8"),
    ],
)
def test_what_no_node_of_a_dump_holds_is_named(tmp_path: Path, row: str, words: str) -> None:
    seen = dump(tmp_path, node("h", 8), node("a", 4, A100))
    jobs = trace(tmp_path, f"job,submit,duration,gpus,class\n{row}\n")
    done = run_command("simulate", "jobs", "--trace", jobs, "--cluster", seen)
    assert done.code == 2 and words in done.err


def test_a_dump_without_nodes_for_jobs(tmp_path: Path) -> None:
    jobs = trace(tmp_path, "job,submit,duration,gpus\na,0,10,1\n")
    seen = dump(tmp_path, node("a", 8, unschedulable=True), pod("p", "a", 1))
    done = run_command("simulate", "jobs", "--trace", jobs, "--cluster", seen)
    assert done.code == 2 and "no node that jobs may use" in done.err


def test_a_load_says_how_many_nodes_there_are(tmp_path: Path) -> None:
    """16 GPUs for 100 s, of 100 s: 16 GPUs on average are 67 % of three nodes, and four at 50 %."""
    rows = [("a", 0.0, 100.0, 12, 0.0, ""), ("b", 100.0, 100.0, 4, 0.0, "")]
    jobs = jobs_of("two", rows)
    assert [site_for(jobs, load).shape for load in (100, 70, 50)] == [(2, 8), (3, 8), (4, 8)]
    assert "the mean load is 67 %" in site_for(jobs, 70).notes[0]
    assert site_for(jobs_of("wide", [*rows, ("c", 50.0, 1.0, 64, 0.0, "")]), 100).shape == (8, 8)
    with pytest.raises(BadInput):
        site_for(jobs_of("one", rows[:1]), 70)
    path = trace(tmp_path, "job,submit,duration,gpus\na,0,100,8\nb,100,100,8\n")
    assert {one["gpus"] for one in runs("--trace", path, "--load", "70", "--policy", "fifo")} == {24}
    both = run_command("simulate", "jobs", "--trace", path, "--load", "70", "--cluster", "2x8")
    assert both.code == 2 and "Leave it or --cluster out" in both.err


def test_a_gang_that_runs_with_less_fits_a_smaller_cluster(tmp_path: Path) -> None:
    path = Path(trace(tmp_path, "job,submit,duration,gpus,pods,min_pods\na,0,10,8,4,2\n"))
    refuse_too_wide(read_job_file(path), like_site(2, 8))
    with pytest.raises(BadInput):
        refuse_too_wide(read_job_file(path), like_site(1, 8))


@pytest.mark.parametrize("name", [f"builtin:{kind}" for kind in ("small", "week")])
def test_built_in_traces_are_the_same_each_time_and_load_their_cluster(name: str) -> None:
    jobs, again, other = drawn_jobs(name), drawn_jobs(name), drawn_jobs(f"{name}:7")
    assert (jobs.submit_s == again.submit_s).all() and (jobs.width == again.width).all()
    assert len(other) != len(jobs) or (other.service_s != jobs.service_s).any()
    nodes, gpus = cluster_of(name)
    refuse_too_wide(jobs, like_site(nodes, gpus))
    days = BUILTIN[name.removeprefix("builtin:")].days
    asked = float((jobs.service_s * jobs.width).sum()) / (days * 86400 * nodes * gpus)
    assert LOAD <= asked < LOAD + 0.3 and jobs.submit_s[0] == 0.0 and (np.diff(jobs.submit_s) >= 0).all()
    assert jobs.submit_s[-1] <= days * 86400 and (jobs.min_pods <= np.maximum(jobs.width // gpus, 1)).all()
    assert ((jobs.limit_s == 0) | (jobs.limit_s >= jobs.service_s)).all()


def test_a_built_in_trace_needs_no_file() -> None:
    (fifo, srsf) = runs("--trace", "builtin:small", "--policy", "fifo,srsf")
    assert fifo["gpus"] == 32 and fifo["finished"] == fifo["jobs"] and srsf["avg_jct_s"] < fifo["avg_jct_s"]
    assert "the trace is drawn" in fifo["notes"][0]


@pytest.mark.parametrize("name", ["builtin:", "builtin:year", "builtin:week:x", "builtin:week:"])
def test_what_is_not_built_in_is_told_with_what_is(name: str) -> None:
    done = run_command("simulate", "jobs", "--trace", name, "--policy", "fifo")
    assert done.code == 2 and "builtin:small (a day on 4 nodes of 8 GPUs)" in done.err


def test_a_column_that_is_not_read_is_told_on_stderr(tmp_path: Path) -> None:
    path = trace(tmp_path, "job,submit,duration,gpus,cost centre\na,0,10,1,4711\n")
    done = run_command("simulate", "jobs", "--trace", path, "--policy", "fifo", "-o", "csv")
    assert "not read: the column cost centre" in done.err and "cost centre" not in done.out


def test_what_is_due_is_no_more_than_limits_let_a_queue_have() -> None:
    wanted = np.full((2, 1), 16.0)
    by_limit = (Queue("a", limit=(("*", 4),)), Queue("b", weight=0))
    assert due_over_time(("a", "b"), wanted, 16, by_limit).tolist() == [[4.0], [12.0]]
    by_class = (Queue("a", limit=(("H100", 1),)), Queue("b"))
    there = {"H100": 20, "A100": 12}
    assert due_over_time(("a", "b"), np.full((2, 1), 32.0), 32, by_class, there).tolist() == [[13.0], [19.0]]
    own_only = (Queue("a", quota=(("*", 3),), borrowing=False), Queue("b"))
    assert due_over_time(("a", "b"), wanted, 16, own_only).tolist() == [[3.0], [13.0]]
    above = (Queue("top", limit=(("*", 6),)), Queue("a", "top"), Queue("b"))
    assert due_over_time(("a", "b"), wanted, 16, above).tolist() == [[6.0], [10.0]]


def test_what_a_limit_leaves_is_due_to_others_in_a_run(tmp_path: Path) -> None:
    seen = dump(tmp_path, node("n1", 8), queue("a", limit={"H100-80GB": 2}), queue("b"))
    rows = "".join(f"{q}{i},0,100,1,{q}\n" for q in "ab" for i in range(8))
    (run,) = runs("--trace", trace(tmp_path, f"job,submit,duration,gpus,queue\n{rows}"), "--cluster", seen,
                  "--policy", "berth")  # fmt: skip
    assert {one["queue"]: one["due_share"][0] for one in run["queues"]} == {"a": 0.25, "b": 0.75}


def test_notes_on_the_objects_of_a_dump_are_those_of_the_queue(tmp_path: Path) -> None:
    odd = queue("a", wieght=2, parent="zz", quota={"H10": 4})
    ring = queue("b", parent="c"), queue("c", parent="b")
    seen = dump(tmp_path, node("n1", 8), odd, *ring)
    told = json.loads(run_command("queue", "--from", seen, "-o", "json").out)["notes"]
    about = [note for note in told if "GPUQueue" in note]
    assert len(about) == 5
    (run,) = runs(
        "--trace", trace(tmp_path, "job,submit,duration,gpus\nj,0,1,1\n"), "--cluster", seen, "--policy", "berth"
    )
    assert [note for note in run["notes"] if "GPUQueue" in note] == about


def test_why_jobs_wait_for_ever_is_told(tmp_path: Path) -> None:
    seen = dump(
        tmp_path,
        node("n1", 8),
        queue("batch", checkpointRequired=True, preemptible=True),
        queue("free", limit={"*": 0}),
    )
    head = "job,submit,duration,gpus,queue,checkpoint_every\n"
    stuck = f"{head}a,0,100,8,batch,\nb,5,100,8,batch,0\nc,9,50,1,free,\n"
    given = ("--cluster", seen, "--policy", "berth,berth-live-least-left")
    for run in runs("--trace", trace(tmp_path, stuck), *given):
        told = f"{run['policy']}: 3 jobs wait at the end: 2 CheckpointMissing (the queue takes nothing that may"
        assert any(note.startswith(told) and ", 1 LargerThanLimit (" in note for note in run["notes"])
        assert f"{run['policy']}: none of 3 jobs ended; there are no times" in run["notes"]
    page = tmp_path / "page.html"
    table = run_command(
        "simulate", "jobs", "--trace", trace(tmp_path, f"{head}a,0,100,8,batch,\n"), *given, "--report", str(page)
    )
    assert "the job did not end" in table.out and "1 job waits at the end: 1 CheckpointMissing" in table.out
    assert "Average wait" not in table.out and "How long jobs wait" not in page.read_text()
    (saves, *_) = runs("--trace", trace(tmp_path, f"{head}a,0,100,8,batch,1800\n"), *given)
    assert saves["finished"] == 1 and not any("at the end" in note for note in saves["notes"])


def test_a_job_that_saves_its_work_loses_no_more_than_that(tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_text("at,node,state\n70,node-0000,down\n100,node-0000,up\n")
    head = "job,submit,duration,gpus,checkpoint_every\n"
    given = ("--cluster", "1x8", "--policy", "berth-live", "--node-events", str(events))
    ends = [
        runs("--trace", trace(tmp_path, f"{head}a,0,100,8,{every}\n"), *given)[0]["makespan_s"] for every in (0, 30)
    ]
    assert ends == [200.0, 140.0]


def test_reservations_of_a_dump_keep_their_gpus(tmp_path: Path) -> None:
    """One of two nodes is kept for another queue from the moment of the dump on, for a day."""
    until = datetime.fromtimestamp(now_s() + 86_400, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kept: dict[str, Any] = {"apiVersion": "berth.dev/v1alpha1", "kind": "GPUReservation", "metadata": {"name": "day"},
            "spec": {"queue": "a", "nodes": ["n1"], "from": "2020-01-01T00:00:00Z", "until": until}}  # fmt: skip
    lost = {**kept, "metadata": {"name": "lost"}, "spec": {**kept["spec"], "nodes": ["n3"]}}
    seen = dump(tmp_path, node("n1", 8), node("n2", 8), queue("a"), queue("b"), kept, lost)
    at = {"dump": 0, "open": int(now_s()), "over": int(now_s()) + 90_000}
    took = {}
    for name, begin in at.items():
        rows = "".join(f"b{i},{begin},100,8,b\n" for i in range(2))
        (run,) = runs("--trace", trace(tmp_path, f"job,submit,duration,gpus,queue\n{rows}"), "--cluster", seen,
                      "--policy", "berth-live")  # fmt: skip
        took[name] = run["makespan_s"]
        assert f"GPUReservation of {seen} is heeded: day" in run["notes"]
        assert any(note.startswith("GPUReservation lost: there is no node n3") for note in run["notes"])
    assert took == {"dump": 200.0, "open": 200.0, "over": 100.0}
    done = run_command("simulate", "jobs", "--trace", str(tmp_path / "jobs.csv"), "--cluster", seen, "--policy", "fifo")
    assert done.code == 2 and "quotas, limits or reservations" in done.err
