"""The published policies for jobs over time: against a plain twin, event for event, and against published figures."""

from __future__ import annotations

import csv
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_schedule import Job, simulate

from berth.model.jobs import Jobs
from berth.simulation.baselines.schedules import NAMES, run
from berth.simulation.queueing.figures import figures_of
from berth.simulation.queueing.schedule import Overhead, Schedule
from berth.sources.job_traces import jobs_of, read_jobs

OVERHEADS = {"published": Overhead.EachEvent, "start": Overhead.AtStart, "none": Overhead.Nothing}
NODES, NODE_GPUS = 3, 4

some_jobs = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 30), st.integers(1, NODES * NODE_GPUS), st.integers(0, 6)),
    min_size=1, max_size=14,
)  # fmt: skip


def offered(rows: list[tuple[int, int, int, int]]) -> Jobs:
    return jobs_of("made up", [(f"j{i}", float(s), float(d), w, float(r), "") for i, (s, d, w, r) in enumerate(rows)])


def twin(
    policy: str, rows: list[tuple[int, int, int, int]], overhead: str
) -> tuple[list[Job], list[tuple[Fraction, str, int]]]:
    """The jobs in order of submission, and every start, stop and end."""
    order = sorted(range(len(rows)), key=lambda i: rows[i][0])
    jobs = [
        Job(k, *(Fraction(rows[i][n]) for n in (0, 1)), rows[i][2], Fraction(rows[i][3])) for k, i in enumerate(order)
    ]
    return jobs, simulate(policy, jobs, NODES, NODE_GPUS, overhead)


@settings(max_examples=150, deadline=None)
@given(some_jobs, st.sampled_from(["fifo", "srtf"]), st.sampled_from(list(OVERHEADS)))
def test_fifo_and_srtf_agree_with_the_plain_twin(
    rows: list[tuple[int, int, int, int]], policy: str, overhead: str
) -> None:
    got = run(policy, offered(rows), NODES, NODE_GPUS, OVERHEADS[overhead])
    jobs, told = twin(policy, rows, overhead)
    assert got.start_s.tolist() == [float(job.start) for job in jobs]
    assert got.end_s.tolist() == [float(job.end) for job in jobs]
    assert got.preemptions.tolist() == [job.preemptions for job in jobs]
    assert _by_time(got) == _told_by_time(jobs, told), "event for event: who runs and who waits after each"


def _by_time(got: Schedule) -> dict[float, tuple[float, float]]:
    """GPUs in use and jobs that wait after the last event of each moment."""
    events = got.events
    return {
        at: (float(used.sum()), float(waiting.sum()))
        for at, used, waiting in zip(events.at_s.tolist(), events.used, events.waiting, strict=True)
    }


def _told_by_time(jobs: list[Job], told: list[tuple[Fraction, str, int]]) -> dict[float, tuple[float, float]]:
    running: set[int] = set()
    found: dict[float, tuple[float, float]] = {}
    for at in sorted({*(job.submit for job in jobs), *(when for when, _, _ in told)}):
        for _, what, number in [one for one in told if one[0] == at]:
            (running.add if what == "start" else running.discard)(number)
        there = [job for job in jobs if job.submit <= at < job.end]
        in_use = sum(job.width for job in jobs if job.number in running)
        found[float(at)] = (float(in_use), float(len(there) - len(running)))
    return found


@settings(max_examples=80, deadline=None)
@given(some_jobs, st.sampled_from(NAMES), st.sampled_from(list(OVERHEADS)))
def test_what_holds_of_every_schedule(rows: list[tuple[int, int, int, int]], policy: str, overhead: str) -> None:
    got = run(policy, offered(rows), NODES, NODE_GPUS, OVERHEADS[overhead])
    assert np.isfinite(got.end_s).all()
    assert (got.start_s >= got.jobs.submit_s).all() and (got.jct_s >= got.jobs.service_s - 1e-9).all()
    events = got.events
    assert (np.diff(events.at_s) >= 0).all()
    assert (events.used.sum(axis=1) <= NODES * NODE_GPUS).all() and (events.used <= events.wanted).all()
    lasted = np.diff(events.at_s, append=events.at_s[-1])
    in_use = (events.used.sum(axis=1) * lasted).sum()
    computed = ((got.jobs.service_s + got.lost_s) * got.jobs.width).sum()
    assert in_use == pytest.approx(computed), "what is in use computes or pays for a start"


def test_figures_of_a_schedule_that_can_be_worked_out_by_hand() -> None:
    """Two nodes' worth: a job of 8 for 10 s, and one of 8 that comes at 2 s and waits for it."""
    rows = [("a", 0.0, 10.0, 12, 0.0, "x"), ("b", 2.0, 6.0, 12, 0.0, "y")]
    got = figures_of(run("fifo", jobs_of("two", rows), NODES, NODE_GPUS, Overhead.Nothing), "none")
    assert (got.avg_jct_s, got.p50_jct_s, got.makespan_s, got.avg_wait_s) == (12.0, 14.0, 16.0, 4.0)
    assert got.gpu_utilisation == pytest.approx(1.0)
    assert [(q.queue, q.jobs, q.gpu_hours) for q in got.queues] == [("x", 1, 12 * 10 / 3600), ("y", 1, 12 * 6 / 3600)]
    first, second = got.queues
    assert first.share[0] == pytest.approx(1.0) and second.share[-1] == pytest.approx(1.0)
    assert first.due_share[100] == pytest.approx(0.5), "from 2 s on each is owed half"


published = pytest.mark.skipif("BERTH_DATA" not in os.environ, reason="BERTH_DATA names no folder of public data")
TRACES = [f"{n}{p}" for n in (1, 2, 3, 4) for p in ("", "p")]
# Average JCT differs where equal keys are told apart by the last digit of a sum (one part in ten thousand at most).
EXACT = {"srtf": {*TRACES} - {"2"}, "srsf": {*TRACES} - {"2p", "4p"}, "tiresias-l": {*TRACES} - {"4p"}}
# Of Tiresias-L on trace 4 with all jobs at time 0 the published average is 0.37 % above ours; why is not known.
NEARLY = {("tiresias-l", "4p"): 4e-3}


@published
@pytest.mark.parametrize("trace", TRACES)
def test_published_results_come_out(trace: str) -> None:
    jobs, results = read_jobs(f"muri:{trace}"), _published(trace)
    for policy in ("srtf", "srsf", "tiresias-l"):
        got = run(policy, jobs, 8, 8, Overhead.EachEvent)
        near = NEARLY.get((policy, trace), 1e-3)
        assert got.jct_s.mean() == pytest.approx(results[policy, "avg_jct_s"], rel=near)
        if trace in EXACT[policy]:
            told = figures_of(got, "")
            metrics = ("avg_jct_s", "makespan_s", "p99_jct_s") if policy == "tiresias-l" else ("avg_jct_s",)
            for metric in metrics:
                assert getattr(told, metric) == pytest.approx(results[policy, metric], rel=1e-8), metric


def _published(trace: str) -> dict[tuple[str, str], float]:
    path = Path(os.environ["BERTH_DATA"], "traces", "muri-philly", "published_sim_results.csv")
    name = f"trace{trace.replace('p', '_pr')}"
    with path.open() as file:
        return {
            (row["policy"].lower().replace("_", "-"), row["metric"]): float(row["value"])
            for row in csv.DictReader(file)
            if row["trace"] == name
        }


def test_a_schedule_knows_what_never_started() -> None:
    jobs = offered([(0, 5, 1, 0)])
    infinite = np.full(1, np.inf)
    events = run("fifo", jobs, 1, 1, Overhead.Nothing).events
    got = Schedule(jobs, "x", 1, infinite, infinite, np.zeros(1, np.int64), np.zeros(1), events, 0.0)
    assert figures_of(got, "").finished == 0
