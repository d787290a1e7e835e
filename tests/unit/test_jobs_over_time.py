"""Jobs over time through Berth's own cycle, and the command that shows them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_runs import here as run_command
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.base.errors import BadInput
from berth.model.jobs import Jobs, NodeEvent
from berth.model.reasons import Reason
from berth.model.snapshot import Snapshot
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from berth.simulation.baselines import schedules
from berth.simulation.queueing.causes import Explained
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.engine import run
from berth.simulation.queueing.figures import OfCause, figures_of
from berth.simulation.queueing.limits import FACTORS, with_limits
from berth.simulation.queueing.schedule import Events, Overhead, Schedule
from berth.sources.job_csv import read_job_file, read_node_events
from berth.sources.job_traces import jobs_of, read_jobs
from berth.views.jobs import all_hours, durations, hours
from berth.views.jobs_page import page as page_of

OVERHEADS = list(Overhead)
JOBS = "job,submit,duration,gpus,pods,queue\na,0,100,4,1,x\nb,5,50,8,2,x\nc,7,10,1,,y\n"

some_jobs = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 30), st.integers(1, 10), st.integers(0, 6), st.sampled_from("xy")),
    min_size=1, max_size=12,
)  # fmt: skip


def own(jobs: Jobs, overhead: Overhead = Overhead.Nothing, *, knows: bool = False) -> Schedule:
    policy, cache = Policy(evicts=knows, sets_aside=knows, explains=False), Tables()
    cluster = like_nodes(3, 4)
    return run("berth", jobs, cluster, overhead, lambda snapshot: cycle(snapshot, policy, cache), knows=knows)


@settings(max_examples=25, deadline=None)
@given(some_jobs, st.sampled_from(OVERHEADS), st.booleans())
def test_every_job_ends_and_all_time_is_accounted_for(
    rows: list[tuple[int, int, int, int, str]], overhead: Overhead, knows: bool
) -> None:
    """Over-commitment ends the run by itself: every bind is booked apart from the scheduler."""
    jobs = jobs_of("made up", [(f"j{i}", float(s), float(d), w, float(r), q) for i, (s, d, w, r, q) in enumerate(rows)])
    got = own(jobs, overhead, knows=knows)
    assert np.isfinite(got.end_s).all() and (got.start_s >= jobs.submit_s).all()
    lasted = np.diff(got.events.at_s, append=got.events.at_s[-1])
    in_use = (got.events.used.sum(axis=1) * lasted).sum()
    assert in_use == pytest.approx(((jobs.service_s + got.lost_s) * jobs.width).sum())
    assert (got.events.used.sum(axis=1) <= 12).all() and (got.events.waiting[-1] == 0).all()


def test_who_fits_passes_who_does_not() -> None:
    rows = [("first", 0.0, 10.0, 8, 0.0, ""), ("wide", 1.0, 10.0, 12, 0.0, ""), ("small", 2.0, 3.0, 2, 0.0, "")]
    got = own(jobs_of("three", rows))
    assert got.start_s.tolist() == [0.0, 10.0, 2.0]
    assert got.end_s.tolist() == [10.0, 20.0, 5.0]


def test_a_start_costs_what_it_costs_once_or_at_each_event() -> None:
    rows = [("a", 0.0, 10.0, 4, 2.0, ""), ("b", 5.0, 10.0, 4, 2.0, "")]
    assert own(jobs_of("two", rows), Overhead.AtStart).end_s.tolist() == [12.0, 17.0]
    assert own(jobs_of("two", rows), Overhead.EachEvent).end_s.tolist() == [12.0, 17.0]
    assert own(jobs_of("two", rows)).end_s.tolist() == [10.0, 15.0]


def test_limits_are_drawn_and_let_the_first_in_line_start() -> None:
    rows = [(f"narrow{i}", float(i), 100.0, 4, 0.0, "") for i in range(12)]
    jobs = jobs_of("made up", [*rows, ("wide", 2.5, 10.0, 12, 0.0, "")])
    drawn = with_limits(jobs, 7)
    assert set((drawn.limit_s / drawn.service_s).tolist()) <= set(FACTORS)
    assert (with_limits(jobs, 7).limit_s == drawn.limit_s).all()
    assert (with_limits(jobs, 8).limit_s != drawn.limit_s).any()
    assert "seed 7" in drawn.notes[-1]
    place = drawn.names.index("wide")
    assert own(jobs).start_s[place] > 300, "narrow ones pass it again and again"
    assert own(drawn).start_s[place] < 300, "who fills in has to have ended by the time that it was promised"


def test_a_node_that_fails_takes_the_work_since_the_start_with_it() -> None:
    rows = [("a", 0.0, 10.0, 12, 1.0, "")]
    fails = (NodeEvent(4.0, "node-0001", False), NodeEvent(50.0, "node-0001", True))
    got = own(replace(jobs_of("one", rows), node_events=fails), Overhead.AtStart)
    assert got.end_s.tolist() == [61.0] and got.preemptions.tolist() == [1], "it starts again when the node is back"
    assert got.lost_s.tolist() == [5.0], "4 s until the node failed, and a start"
    with pytest.raises(BadInput) as raised:
        own(replace(jobs_of("one", rows), node_events=(NodeEvent(1.0, "gpu-9", False),)))
    assert "no node 'gpu-9'" in raised.value.sentence


def test_node_events_of_a_file(tmp_path: Path) -> None:
    jobs, events = tmp_path / "jobs.csv", tmp_path / "nodes.csv"
    jobs.write_text("job,submit,duration,gpus\na,0,10,8\n")
    events.write_text("at,node,state\n4,node-0000,down\n9,node-0000,up\n")
    given = ("--trace", str(jobs), "--cluster", "1x8", "--policy", "berth-blind", "-o", "json")
    done = run_command("simulate", "jobs", *given, "--node-events", str(events))
    assert json.loads(done.out)["runs"][0]["makespan_s"] == 19.0
    events.write_text("at,node,state\n4,gpu-1,down\n")
    assert run_command("simulate", "jobs", *given, "--node-events", str(events)).code == 2


def test_what_kept_it_before_its_node_failed_is_counted_once() -> None:
    rows = [("a", 0.0, 10.0, 12, 1.0, ""), ("b", 2.0, 1.0, 12, 1.0, "")]
    fails = (NodeEvent(4.0, "node-0001", False), NodeEvent(5.0, "node-0001", True))
    got = own(replace(jobs_of("two", rows), node_events=fails), Overhead.EachEvent)
    in_use = (got.events.used.sum(axis=1) * np.diff(got.events.at_s, append=got.events.at_s[-1])).sum()
    assert in_use == pytest.approx(((got.jobs.service_s + got.lost_s) * got.jobs.width).sum())


def test_what_never_ends_is_said_and_is_not_the_best(tmp_path: Path) -> None:
    jobs, events = tmp_path / "jobs.csv", tmp_path / "nodes.csv"
    jobs.write_text("job,submit,duration,gpus\na,0,10,1\nb,0,10,1\n")
    events.write_text("at,node,state\n14,node-0000,down\n")
    given = ("--trace", str(jobs), "--cluster", "1x1", "--policy", "berth-blind,fifo", "--node-events", str(events))
    told = run_command("simulate", "jobs", *given).out
    assert "berth-blind: 1 of 2 jobs ended" in told
    (fifo,) = [line for line in told.splitlines() if line.strip().startswith("fifo")][:1]
    assert "*" in fifo


@pytest.mark.parametrize("overhead", ["none", "start"])
@pytest.mark.parametrize(("setting", "wait_s"), [((), 1000.0), (("--set", "stop_wait_s=0"), 0.0)])
def test_nothing_is_waited_for_where_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: tuple[str, ...], wait_s: float, overhead: str
) -> None:
    path, seen = tmp_path / "jobs.csv", []

    def decide(_: Snapshot, policy: Policy, tables: Tables) -> Plan:
        seen.append(policy.stop_wait_s)
        return cycle(_, policy, tables)

    monkeypatch.setattr("berth.simulation.queueing.as_live.cycle", decide)
    path.write_text(JOBS)
    given = ("--trace", str(path), "--cluster", "3x8", "--policy", "berth-live-set-aside", "--overhead", overhead)
    assert run_command("simulate", "jobs", *given, *setting).code == 0
    assert set(seen) == {wait_s}


def test_what_is_left_to_do_decides_at_the_moments_at_which_causes_are_asked_for(tmp_path: Path) -> None:
    """Here that is each of them: of a trace as short as this one every decision is explained."""
    path = tmp_path / "jobs.csv"
    path.write_text("job,submit,duration,gpus,limit\nlong,0,5000,8,14400\nshort,1300,50,1,60\nnext,3000,40,1,60\n")
    given = ("--trace", str(path), "--cluster", "1x8", "--policy", "berth-live-set-aside", "--overhead", "none")
    stops = run_command("simulate", "jobs", *given, "--set", "stop_wait_s=0", "-o", "json")
    waits = run_command("simulate", "jobs", *given, "-o", "json")
    told = [json.loads(done.out)["runs"][0] for done in (stops, waits)]
    assert [one["preemptions"] for one in told] == [2, 2]
    assert [one["avg_wait_s"] for one in told] == pytest.approx([0.0, 2000 / 3]), "1,000 s each, by default"


def test_where_no_job_has_ended_there_are_no_times(tmp_path: Path) -> None:
    jobs, events, page = tmp_path / "jobs.csv", tmp_path / "nodes.csv", tmp_path / "page.html"
    jobs.write_text("job,submit,duration,gpus,cancelled\na,0,10,1,5\n")
    events.write_text("at,node,state\n0,node-0000,down\n")
    given = ("--trace", str(jobs), "--cluster", "1x1", "--policy", "berth-blind,berth-live", "--node-events")
    given = (*given, str(events), "--report", str(page))
    told = run_command("simulate", "jobs", *given).out
    rows = [line.split() for line in told.splitlines() if line.strip().startswith("berth-")]
    assert [row[1:7] for row in rows[:2]] == [["-"] * 6] * 2 and "berth-blind: the job did not end" in told
    times = ("avg_jct_s", "p50_jct_s", "p95_jct_s", "p99_jct_s", "makespan_s", "avg_wait_s")
    for one in json.loads(run_command("simulate", "jobs", *given, "-o", "json").out)["runs"]:
        assert [one[key] for key in times] == [None] * 6 and (one["finished"], one["cancelled"]) == (0, 1)
        assert [one["queues"][0][key] for key in times] == [None] * 6
    head, *lines = run_command("simulate", "jobs", *given, "-o", "csv").out.splitlines()
    for line in lines:
        of = dict(zip(head.split(","), line.split(","), strict=True))
        assert [of[key] for key in times] == [""] * 6 and of["finished"] == "0"
    text = page.read_text()
    assert "nan" not in text.lower() and "class=best" not in text


def test_who_ends_all_that_nobody_gave_up_may_be_the_best(tmp_path: Path) -> None:
    jobs, events = tmp_path / "jobs.csv", tmp_path / "nodes.csv"
    jobs.write_text("job,submit,duration,gpus,cancelled\na,0,10,1,\nb,0,90,1,5\n")
    given = ("--trace", str(jobs), "--cluster", "1x1", "--policy", "berth-blind,fifo")

    def starred(*more: str) -> list[bool]:
        told = run_command("simulate", "jobs", *given, *more).out.splitlines()
        return ["*" in line for line in told if line.strip().startswith(("berth-blind ", "fifo "))][:2]

    assert starred() == [True, False], "fifo knows of no giving up and takes longer"
    events.write_text("at,node,state\n3,node-0000,down\n")
    assert starred("--node-events", str(events)) == [False, True], "its one job that nobody gave up has not ended"


def test_who_is_given_up_leaves_at_once_wherever_it_is() -> None:
    rows = [("runs", 0.0, 100.0, 12, 0.0, ""), ("waits", 1.0, 5.0, 12, 0.0, ""), ("next", 2.0, 5.0, 12, 0.0, "")]
    given_up = np.array([30.0, 10.0, np.inf])
    got = own(replace(jobs_of("three", rows), cancelled_s=given_up))
    assert got.end_s.tolist() == [np.inf, np.inf, 35.0] and got.start_s[2] == 30.0
    assert (got.events.used[-1] == 0).all() and (got.events.wanted[-1] == 0).all()


@settings(max_examples=25, deadline=None)
@given(some_jobs, st.sampled_from(OVERHEADS), st.booleans(), st.integers(0, 60), st.integers(1, 60))
def test_use_and_demand_are_what_runs_and_waits(
    rows: list[tuple[int, int, int, int, str]], overhead: Overhead, knows: bool, at_s: int, for_s: int
) -> None:
    """With a node that fails and returns: everybody ends, and nothing is left in the books."""
    jobs = jobs_of("made up", [(f"j{i}", float(s), float(d), w, float(r), q) for i, (s, d, w, r, q) in enumerate(rows)])
    fails = (NodeEvent(at_s, "node-0000", False), NodeEvent(at_s + for_s, "node-0000", True))
    got = own(replace(jobs, node_events=fails), overhead, knows=knows)
    assert np.isfinite(got.end_s).all()
    events = got.events
    assert (events.used[-1] == 0).all() and (events.wanted[-1] == 0).all() and (events.waiting[-1] == 0).all()
    assert (events.used >= 0).all() and (events.used <= events.wanted).all() and (events.waiting >= 0).all()


def test_who_has_little_left_to_do_goes_before_who_has_much() -> None:
    """A long job that fills the cluster is set aside for a short one, and computes on where it stopped."""
    rows = [("long", 0.0, 100.0, 12, 5.0, ""), ("short", 10.0, 10.0, 4, 5.0, "")]
    got = own(jobs_of("two", rows), Overhead.AtStart, knows=True)
    assert got.start_s.tolist() == [0.0, 10.0]
    assert got.end_s.tolist() == [125.0, 25.0], "10 s of running less 5 s of its start, then 5 s of a start and 95 s"
    assert got.preemptions.tolist() == [1, 0] and got.lost_s.tolist() == [10.0, 5.0]


def test_who_has_less_left_is_not_set_aside() -> None:
    rows = [("first", 0.0, 20.0, 12, 0.0, ""), ("second", 15.0, 10.0, 12, 0.0, "")]
    got = own(jobs_of("two", rows), knows=True)
    assert got.end_s.tolist() == [20.0, 30.0] and not got.preemptions.any()


def test_a_narrow_job_goes_elsewhere_for_a_wide_one_that_should_run() -> None:
    """Three nodes of four: one GPU is in use on each, and eight in one job fit once two share a node."""
    rows = [
        *((f"narrow{i}", 0.0, 50.0, 3, 0.0, "") for i in range(3)),
        *((f"filler{i}", 0.0, 1.0, 1, 0.0, "") for i in range(3)),
        ("wide", 2.0, 5.0, 4, 0.0, ""),
    ]
    got = own(jobs_of("moves", rows), knows=True)
    assert got.start_s[-1] == 2.0 and np.isfinite(got.end_s).all()


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS)
    jobs = read_jobs(str(path))
    assert jobs.width.tolist() == [4, 16, 1] and jobs.queues == ("x", "y")
    done = run_command("simulate", "jobs", "--trace", str(path), "--cluster", "3x8", "-o", "json")
    runs = json.loads(done.out)["runs"]
    assert [one["policy"] for one in runs] == ["berth", "berth-blind", "fifo", "sjf", "srtf", "srsf", "tiresias-l"]
    assert all(one["finished"] == 3 for one in runs)
    assert [queue["queue"] for queue in runs[0]["queues"]] == ["x", "y"]
    table = run_command("simulate", "jobs", "--trace", str(path), "--cluster", "3x8").out
    assert "3 jobs on 24 GPUs" in table and "Average wait" in table
    lines = run_command("simulate", "jobs", "--trace", str(path), "--cluster", "3x8", "-o", "csv").out.splitlines()
    assert len(lines) == 8 and lines[0].startswith("trace,policy,jobs,gpus")


def test_a_page_to_show_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    path, page = tmp_path / "jobs.csv", tmp_path / "report.html"
    path.write_text(JOBS.replace(",x\n", ",<x>\n"))
    run_command("simulate", "jobs", "--trace", str(path), "--cluster", "3x8", "--report", str(page))
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>") and text.count("<details class=policy") == 7
    assert "http" not in text and "<script" not in text and "<x>" not in text and "&lt;x&gt;" in text
    assert text.count("<svg") == text.count('role="img" aria-label="') > 7, "every chart is told in words, too"
    assert text.count("<svg") <= text.count("<polygon") + text.count("<polyline"), "no chart is empty"


def test_why_jobs_wait_and_what_is_idle_meanwhile() -> None:
    """Two jobs hold five GPUs each of two nodes; one of six waits for them while six are idle, three and three."""
    rows = [("a", 0.0, 100.0, 5, 0.0, "x"), ("b", 0.0, 100.0, 5, 0.0, "x"), ("c", 10.0, 50.0, 6, 0.0, "y")]
    jobs, cache = jobs_of("three", rows), Tables()
    plain, telling = Policy(evicts=False, explains=False), Policy(evicts=False)
    decide = Explained(lambda s: cycle(s, plain, cache), lambda s: cycle(s, telling, cache), 1.0)
    got = run("berth", jobs, like_nodes(2, 8), Overhead.Nothing, decide)
    (cause,) = decide.over_time(got.events, 150)
    assert (cause.reason, max(cause.waiting)) == ("Fragmented", 1.0)
    assert [i for i, waits in enumerate(cause.waiting) if waits] == list(range(10, 100))
    told = figures_of(got, "", (cause,))
    assert max(told.stranded) == 6.0 and told.stranded_gpu_hours == pytest.approx(90 * 6 / 3600)
    assert [(size.gpus, max(size.waiting)) for size in told.sizes] == [("5 to 8", 1.0)]
    text = page_of([told])
    assert "Enough GPUs are free, but scattered" in text and "0.15 GPU-h" in text


def test_a_page_of_seven_policies_and_many_queues_stays_small() -> None:
    """The worst case: nothing stands still for a moment, so no point of a line can be left out."""
    rng = np.random.Generator(np.random.PCG64(1))
    jobs = jobs_of("busy", [(f"j{i}", float(i), 3.0, 1 + i % 20, 1.0, f"queue-{i % 15:02}") for i in range(900)])
    events = Events(np.arange(900.0), *(rng.random((900, 15)) * 30 for _ in range(3)))
    causes = [OfCause(reason.name, reason.summary, tuple(rng.random(400))) for reason in list(Reason)[:9]]
    busy = Schedule(
        jobs, "srsf", 512, jobs.submit_s + 1, jobs.submit_s + 5, np.ones(900, np.int64), np.ones(900), events, 1.0
    )  # fmt: skip
    runs = [figures_of(replace(busy, policy=f"policy-{i}"), "", causes) for i in range(7)]
    text = page_of(runs)
    assert len(text.encode()) < 1_000_000 and text.count("<details class=policy") == 7
    assert "8 others" in text and "Other causes" in text


def test_times_count_from_the_first_submission() -> None:
    """Unix times: nothing is as long as the years since 1970, and what happened before anybody came is over."""
    rows = [("a", 1.7e9, 10.0, 4, 0.0, ""), ("b", 1.7e9 + 5, 10.0, 12, 0.0, "")]
    fails = (NodeEvent(3.0, "node-0001", False), NodeEvent(1.7e9 + 20, "node-0001", True))
    jobs = jobs_of("unix", rows)
    own_told = figures_of(own(replace(jobs, node_events=fails)), "")
    assert own_told.makespan_s == 30.0 and own_told.part_s * len(own_told.waiting) == 30.0
    theirs = figures_of(schedules.run("srtf", jobs, 3, 4, Overhead.AtStart), "")
    assert theirs.makespan_s == 20.0 and theirs.part_s * len(theirs.waiting) == 20.0


def test_deadlines_are_met_or_missed() -> None:
    rows = [("in time", 0.0, 10.0, 12, 0.0, ""), ("late", 0.0, 10.0, 12, 0.0, ""), ("free", 0.0, 1.0, 12, 0.0, "")]
    rows += [("given up", 0.0, 99.0, 12, 0.0, ""), ("too late", 0.0, 99.0, 12, 0.0, "")]
    jobs = replace(
        jobs_of("five", rows),
        deadline_s=np.array([10.0, 19.0, np.inf, 50.0, 100.0]), cancelled_s=np.array([np.inf] * 3 + [30.0, 90.0]),
    )  # fmt: skip
    got = own(jobs)
    assert got.deadlines_met.tolist() == [1, -1, 0, 0, 0]
    told = figures_of(got, "")
    assert (told.deadlines_met, told.deadlines_missed) == (1, 1)


@pytest.mark.parametrize(("gpu_hours", "words"), [
    (0, "0 GPU-h"), (0.001, "0.01 GPU-h"), (0.42, "0.42 GPU-h"), (4.2, "4.2 GPU-h"), (42.4, "42 GPU-h"),
])  # fmt: skip
def test_what_is_little_is_not_nothing(gpu_hours: float, words: str) -> None:
    assert hours(gpu_hours) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("job,submit,duration\na,0,1\n", "lacks the column gpus"),
        ("job,submit,duration,gpus\n", "has no jobs"),
        ("job,submit,duration,gpus\na,0,1,0\n", "it has to be a whole number from 1 to 1024"),
        ("job,submit,duration,gpus\na,soon,1,1\n", "column submit): is 'soon'"),
        ("job,submit,duration,gpus\na,0,nan,1\n", "a number from 0"),
        ("job,submit,duration,gpus\na,0,1,1\na,0,1,1\n", "an earlier row has this name"),
        ("job,submit,duration,gpus,pods\na,0,1,1,0\n", "a whole number from 1 to 100000"),
        ("job,submit,duration,gpus\na/b,0,1,1\n", "holds no slash"),
        ("job,submit,duration,gpus,prioritiy\na,0,1,1,3\n", "Call it 'priority'"),
        ("job,submit,duration,gpus,Queue\na,0,1,1,x\n", "Call it 'queue'"),
        ("job,submit,duration,gpus,time_limit\na,0,1,1,3\n", "Call it 'limit'"),
        ("job,submit_time,duration,gpus\na,0,1,1\n", "Call it 'submit'"),
        ("job,submit,duration,gpus,pods,min_pods\na,0,1,1,2,3\n", "1 to the 2 pods"),
        ("job,submit,duration,gpus,priority\na,0,1,1,-\n", "whole number from -"),
        ("job,submit,duration,gpus,deadline\na,0,1,1,soon\n", "column deadline): is 'soon'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_row_and_column(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    with pytest.raises(BadInput) as raised:
        read_job_file(path)
    sentence = raised.value.sentence
    assert words.replace("): is", ": is") in sentence or words.split("): ")[-1] in sentence, sentence


def test_columns_that_are_not_known_are_told_of(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job,submit,duration,gpus,cost centre,queue,queues,priority\na,0,1,1,4711,x,y,-5\n")
    jobs = read_job_file(path)
    assert "cost centre, queues" in jobs.remarks[0]
    assert jobs.priority.tolist() == [-5]


def test_node_events(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("at,node,state\n9,node-1,up\n3,node-1,down\n")
    assert [(one.at_s, one.is_up) for one in read_node_events(path)] == [(3.0, False), (9.0, True)]
    path.write_text("at,node,state\n9,node-1,broken\n")
    with pytest.raises(BadInput):
        read_node_events(path)


def test_a_pod_that_no_node_holds_is_named(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS)
    done = run_command("simulate", "jobs", "--trace", str(path), "--cluster", "9x4")
    assert done.code == 2 and "job b: asks for 8 GPUs in one pod; a node has 4" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--trace", "nothing"), "neither a known trace nor a file"),
        (("--trace", "muri:9"), "neither a known trace nor a file"),
        (("--trace", "muri:1", "--policy", "best"), "'best' is not known"),
        (("--trace", "muri:1", "--cluster", "eight"), "nodes x GPUs"),
        (("--trace", "muri:1", "--cluster", "1x64"), "63 GPUs at most"),
        (("--trace", ""), "not known"),
    ],
)
def test_wrong_input_is_a_usage_error(arguments: tuple[str, ...], words: str) -> None:
    done = run_command("simulate", "jobs", *arguments)
    assert done.code == 2 and words in done.err


def test_a_job_that_no_cluster_of_that_size_holds_is_named(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS)
    done = run_command("simulate", "jobs", "--trace", str(path), "--cluster", "1x8")
    assert done.code == 2 and "job b: asks for 16 GPUs, the cluster has 8" in done.err


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        ([7188.0, 7200.0, 19944.0], ["2.00 h", "2.00 h", "5.54 h"]),
        ([80.0, 234.0, 13320.0], ["1.33 min", "3.90 min", "222 min"]),
        ([0.0, 1.0, 17.0, 13442.0], ["0 min", "0.02 min", "0.28 min", "224 min"]),
        ([3.0, 42.0], ["3 s", "42 s"]),
        ([0.0, 0.0], ["0 s", "0 s"]),
        ([float("nan"), 90_000.0, 900_000.0], ["-", "1.04 d", "10.4 d"]),
        ([], []),
    ],
)
def test_what_stands_side_by_side_has_one_unit(seconds, told):
    assert durations(seconds) == told


def test_gpu_hours_side_by_side_have_as_many_digits():
    assert all_hours([0.5, 4.0, 42.0]) == ["0.5 GPU-h", "4.0 GPU-h", "42.0 GPU-h"]
    assert all_hours([0.0, 0.0]) == ["0 GPU-h", "0 GPU-h"]


def test_no_two_policies_of_a_page_look_alike(tmp_path):
    path, page = tmp_path / "jobs.csv", tmp_path / "report.html"
    path.write_text("job,submit,duration,gpus\na,0,900,8\nb,1,90,8\nc,2,9000,4\n")
    policies = ("berth", "berth-blind", "berth-live", "berth-live-least-left", "berth-live-set-aside", "fifo", "sjf",
                "srtf", "srsf", "tiresias-l", "srsf-sticky")  # fmt: skip
    arguments = ("--trace", str(path), "--cluster", "1x8", "--policy", ",".join(policies), "--report", str(page))
    assert run_command("simulate", "jobs", *arguments).code == 0
    text = page.read_text()
    legend = re.search(r'<ul class="legend of-lines">(.*?)</ul>', text).group(1)
    looks = re.findall(r'<i class="([^"]+)"></i>([^<]+)', legend)
    assert [name for _, name in looks] == list(policies)
    assert len({look for look, _ in looks}) == len(policies)
    first = re.search(r'<figcaption>2 to 4 GPUs.*?</figure>', text, re.S).group(0)
    lines = re.findall(r'<polyline class="([^"]+)"', first)
    assert len({line.removesuffix(" strong") for line in lines}) == len(policies)
    for row in re.findall(r"<td class=bar[^>]*><b>[\d.]+ (\w+)</b>", text):
        assert row == "min", "a column has one unit"
