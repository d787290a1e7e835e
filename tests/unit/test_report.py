"""What is printed: the report of a day, the tables of the packing experiment, in UTF-8 and in ASCII."""

from __future__ import annotations

import json
from itertools import count, pairwise

import msgspec
import pytest
from first_fit import first_fit
from golden_files import check, screen

from berth.model.reasons import Answer, Cause, Reason, Verdict
from berth.simulation.day import replay
from berth.simulation.outcome import LeftWaiting, Outcome
from berth.simulation.packing import LOADS, Run, summaries
from berth.simulation.workday import Day, builtin_day
from berth.views import curves, packing, records, report, tables


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    """Four hours of a part of the built-in day, by first fit and a clock that counts."""
    day, ticks, length_s = builtin_day(42), count(), 4 * 3600.0
    kept = [i for i, w in enumerate(day.workloads) if i % 6 == 1 and w.created_s < length_s]
    part = Day(
        name=day.name,
        seed=day.seed,
        cluster=msgspec.structs.replace(day.cluster, nodes=day.cluster.nodes[::7]),
        workloads=tuple(day.workloads[i] for i in kept),
        runs_s=tuple(day.runs_s[i] for i in kept),
        length_s=length_s,
    )
    return replay(part, first_fit, timer=lambda: next(ticks) / 128)


@pytest.mark.parametrize(("encoding", "name"), [("utf-8", "day.txt"), ("ascii", "day-ascii.txt")])
def test_report_of_a_day(outcome, encoding, name):
    to, raw = screen(encoding)
    report.show(outcome, to)
    text = raw.getvalue().decode(encoding)
    assert max(map(len, text.splitlines())) <= 100
    check(name, text)


def test_report_has_no_colour_without_a_terminal(outcome):
    to, raw = screen()
    report.show(outcome, to)
    assert b"\x1b" not in raw.getvalue()


def test_record_of_a_day_is_json_with_codes(outcome):
    record = json.loads(records.to_json(records.day(outcome)))
    assert record["kind"] == "SimulatedDay"
    assert record["decisions_per_second"] > 0
    assert {one["verdict"]["reason"] for one in record["left"]} <= Reason.__members__.keys()
    assert len(record["classes"]) == 8
    assert records.day_csv(outcome).count("\n") == 9


def _left(name: str, reason: Reason, gpus: float, waited_s: float = 60) -> LeftWaiting:
    verdict = Verdict(name, reason.answer, (Cause(reason, "words"),))
    return LeftWaiting(name, "Job", "q", 1, gpus, waited_s, verdict)


def test_most_telling_is_one_a_reason_and_the_largest():
    left = [
        _left("small", Reason.Fragmented, 1),
        _left("never", Reason.LargerThanNode, 500),
        _left("large", Reason.Fragmented, 64),
        _left("older", Reason.NotEnoughGpus, 8, 90),
        _left("younger", Reason.NotEnoughGpus, 8, 30),
        LeftWaiting("silent", "Job", "q", 1, 900, 60, None),
    ]
    assert [one.workload for one in report.most_telling(left)] == ["large", "older", "never"]
    assert [one.workload for one in report.most_telling(left, most=1)] == ["large"]


def test_a_verdict_that_fits_has_a_word():
    assert set(report.ANSWER_WORDS) == set(Answer)


def _run(trace: str, policy: str, seed: int, at: float) -> Run:
    by_load: dict[str, float | None] = {str(load): at + seed / 10 - load / 100 for load in LOADS}
    if trace == "openb:short":
        by_load["130"] = None
    return Run(trace, policy, seed, by_load, dict(by_load), dict(by_load), 1000, 100 + seed, 5000.0)


def _runs() -> list[Run]:
    pairs = [("berth", 5.0), ("fgd", 5.5), ("random", 13.0)]
    return [
        _run(trace, policy, seed, at)
        for trace in ("openb:default", "openb:short")
        for policy, at in pairs
        for seed in (1, 2, 3)
    ]


@pytest.mark.parametrize(("encoding", "name"), [("utf-8", "packing.txt"), ("ascii", "packing-ascii.txt")])
def test_tables_of_the_packing_experiment(encoding, name):
    to, raw = screen(encoding)
    packing.show(_runs(), summaries(_runs()), to)
    text = raw.getvalue().decode(encoding)
    assert max(map(len, text.splitlines())) <= 100
    check(name, text)


def test_one_run_has_no_deviation():
    runs = [_run("openb:default", "fgd", 1, 5.0)]
    to, raw = screen()
    packing.show(runs, summaries(runs), to)
    text = raw.getvalue().decode()
    assert "4.10" in text
    assert "±0" not in text
    assert "nan" not in text


def test_records_of_the_packing_experiment():
    record = json.loads(records.to_json(records.packing(_runs(), summaries(_runs()), "known")))
    first = record["runs"][0]
    assert set(first["unallocated_gpu_pct"]) == {str(load) for load in LOADS}
    assert {"trace", "policy", "seed", "frag_rate_pct", "frag_pct_of_capacity"} <= set(first)
    assert {"failed_pods", "placements_per_second"} <= set(first)
    assert {"trace", "policy", "n", "mean", "sd"} == set(record["summary"][0])
    lines = records.packing_csv(_runs()).splitlines()
    assert len(lines) == 1 + len(_runs()) * len(LOADS)
    assert lines[0].startswith("trace,policy,seed,arrived_pct,unallocated_gpu_pct")


def test_csv_disarms_formulas():
    assert records.to_csv(("a",), [("=1+1",), ("-",), (-2,)]) == "a\n'=1+1\n'-\n-2\n"


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_curves_are_drawn_the_same_each_time(tmp_path, suffix):
    pytest.importorskip("matplotlib")
    first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    for path in (first, second):
        curves.check_plot(path)
        curves.draw(summaries(_runs()), path)
    assert first.read_bytes() == second.read_bytes()
    if suffix == "svg":
        drawn = first.read_text()
        assert "openb:default" in drawn and "fgd" in drawn


def test_labels_keep_their_distance():
    placed = curves._apart([1.0, 1.1, 1.2, 5.0], 1.0)
    assert placed == sorted(placed)
    assert min(b - a for a, b in pairwise(placed)) >= 1 - 1e-9
    assert sum(placed[:3]) / 3 == pytest.approx(1.1)
    assert placed[3] == 5


def test_bar_and_curve_fit_their_width():
    for share in (-0.1, 0, 0.333, 0.999, 1, 1.2):
        for held in (0, 0.001, 0.2, 1):
            assert len(tables.bar(share, held, 20, tables.BLOCKS)) == 20
    assert tables.curve([0, 50, 100], 0, 100, tables.ASCII) == "_+#"
    assert len(tables.curve([5, 5], 5, 5, tables.BLOCKS)) == 2
