"""Every file in time/runs, through the scheduling cycle and event by event."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import yaml

from berth.model.jobs import Jobs, NodeEvent
from berth.model.queue import ANY_CLASS, Queue
from berth.model.snapshot import Snapshot
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.engine import schedule_of, steps
from berth.simulation.queueing.schedule import Overhead, Schedule

HERE = Path(__file__).parent / "time" / "runs"
FILES = sorted(HERE.glob("*.yaml"))
KEYS = {"name", "why", "cluster", "knows", "remembers", "queues", "clock", "nodes", "jobs", "expect"}
JOB_KEYS = {
    "name", "at", "takes", "gpus", "pods", "minimum", "queue", "priority", "restart", "limit", "givenUp", "deadline",
}  # fmt: skip
EXPECTED = {"starts", "ends", "stops", "before", "waits", "deadline"}
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_run(path: Path) -> None:
    written = yaml.safe_load(path.read_text())
    only(written, KEYS, path.name)
    jobs, cluster = _jobs(written), _cluster(written)
    got, reasons = _run(jobs, cluster, written)
    for name, expected in written["expect"].items():
        only(expected, EXPECTED, f"{path.name}: expect of {name}")
        _judge(jobs.names.index(name), expected, got, reasons)
    _holds_of_every_run(got)
    again, _ = _run(jobs, cluster, written)
    assert again.start_s.tolist() == got.start_s.tolist() and again.end_s.tolist() == got.end_s.tolist()


def test_there_are_runs_for_every_edge() -> None:
    assert len(FILES) >= 12


def only(written: Mapping[str, Any], known: set[str], where: str) -> None:
    strange = set(written) - known
    assert not strange, f"{where}: unknown keys {sorted(strange)}; known are {sorted(known)}"


def seconds(text: Any) -> float:
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?)([smhd])", str(text))
    assert found, f"{text!r} is no time: write 90s, 10m, 2h or 1d"
    return float(found[1]) * UNITS[found[2]]


def _jobs(written: Mapping[str, Any]) -> Jobs:
    rows = sorted(written["jobs"], key=lambda row: seconds(row.get("at", "0s")))
    for row in rows:
        only(row, JOB_KEYS, f"job {row.get('name')}")
    queues = tuple(dict.fromkeys(row.get("queue", "all") for row in rows))

    def times(key: str, otherwise: float) -> np.ndarray:
        return np.array([seconds(row[key]) if key in row else otherwise for row in rows])

    def counts(key: str, otherwise: int) -> np.ndarray:
        return np.array([row.get(key, otherwise) for row in rows], np.int64)

    pods = counts("pods", 1)
    return Jobs(
        name="run", names=tuple(row["name"] for row in rows), submit_s=times("at", 0.0), service_s=times("takes", 0.0),
        limit_s=times("limit", 0.0), restart_s=times("restart", 0.0), width=counts("gpus", 0) * pods,
        pod_gpus=counts("gpus", 0), priority=counts("priority", 0),
        queue=np.array([queues.index(row.get("queue", "all")) for row in rows], np.int64),
        owner=np.zeros(len(rows), np.int64), gpu_class=np.full(len(rows), -1, np.int64), queues=queues,
        node_events=tuple(
            NodeEvent(seconds(event["at"]), event["node"], {"up": True, "down": False}[event["is"]])
            for event in written.get("nodes", ())
        ),
        cancelled_s=times("givenUp", np.inf), deadline_s=times("deadline", np.inf),
        min_pods=np.array([row.get("minimum", row.get("pods", 1)) for row in rows], np.int64),
    )  # fmt: skip


def _cluster(written: Mapping[str, Any]) -> Snapshot:
    nodes, gpus = map(int, written["cluster"].split("x"))
    own = tuple(
        Queue(
            q["name"], q.get("parent", ""), q.get("weight", 1),
            ((ANY_CLASS, q["quota"]),) if "quota" in q else (), ((ANY_CLASS, q["limit"]),) if "limit" in q else (),
        )
        for q in written.get("queues", ())
    )  # fmt: skip
    named = {queue.name for queue in own}
    others = dict.fromkeys(row.get("queue", "all") for row in written["jobs"])
    queues = (*own, *(Queue(name) for name in others if name not in named))
    return msgspec.structs.replace(like_nodes(nodes, gpus), queues=queues)


def _run(jobs: Jobs, cluster: Snapshot, written: Mapping[str, Any]) -> tuple[Schedule, dict[int, str]]:
    """The schedule, and of each job the last reason for which it waited."""
    knows, remembers = written.get("knows", False), written.get("remembers", False)
    policy, cache, clock = Policy(sets_aside=knows or remembers), Tables(), written.get("clock")

    def decide(snapshot: Snapshot) -> Plan:
        if clock is not None and snapshot.now_s >= seconds(clock["at"]):
            snapshot = msgspec.structs.replace(snapshot, now_s=snapshot.now_s + seconds(clock["jumps"]))
        return cycle(snapshot, policy, cache)

    reasons: dict[int, str] = {}
    for state in steps(jobs, cluster, Overhead.AtStart, decide, knows=knows, remembers=remembers):
        for job, verdict in state.said.items():
            if job in state.waiting and verdict.reason is not None:
                reasons[job] = verdict.reason.name
    return schedule_of("berth", state), reasons


def _judge(job: int, expected: Mapping[str, Any], got: Schedule, reasons: Mapping[int, str]) -> None:
    name = got.jobs.names[job]
    for key, at in (("starts", got.start_s[job]), ("ends", got.end_s[job])):
        if key in expected:
            assert _is_at(float(at), expected[key]), f"{name} {key} at {at:g} s, expected {expected[key]}"
    if "stops" in expected:
        assert got.preemptions[job] == expected["stops"], f"{name} stops"
    if "waits" in expected:
        assert reasons.get(job) == expected["waits"], f"{name} waits"
    if "deadline" in expected:
        assert got.deadlines_met[job] == {"met": 1, "missed": -1}[expected["deadline"]], f"{name}: deadline"
    later = expected.get("before", [])
    for other in [later] if isinstance(later, str) else later:
        after = got.start_s[got.jobs.names.index(other)]
        assert got.start_s[job] <= after, f"{name} starts at {got.start_s[job]:g} s, {other} at {after:g} s"


def _is_at(at: float, expected: Any) -> bool:
    if isinstance(expected, Mapping):
        only(expected, {"after", "by"}, "a time")
        return seconds(expected.get("after", "0s")) <= at <= seconds(expected.get("by", "1000000d"))
    return at == (np.inf if expected == "never" else pytest.approx(seconds(expected), abs=1e-3))


def _holds_of_every_run(got: Schedule) -> None:
    jobs, events = got.jobs, got.events
    if np.isfinite(got.end_s).all():
        lasted = np.diff(events.at_s, append=events.at_s[-1])
        in_use = (events.used.sum(axis=1) * lasted).sum()
        assert in_use == pytest.approx(((jobs.service_s + got.lost_s) * jobs.width).sum())
        assert (events.used[-1] == 0).all() and (events.waiting[-1] == 0).all() and (events.wanted[-1] == 0).all()
    assert (events.used.sum(axis=1) <= events.up + 1e-9).all()
