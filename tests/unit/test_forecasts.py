"""How good expected starts were: what is counted, and how it is told."""

from __future__ import annotations

import json

import pytest
from cli_runs import here

HEADER = "job,submit,gpus,duration,limit\n"


def trace_of(tmp_path, rows):
    path = tmp_path / "jobs.csv"
    path.write_text(HEADER + "".join(f"{','.join(str(cell) for cell in row)}\n" for row in rows))
    return str(path)


@pytest.fixture
def in_line(tmp_path):
    """One node of two GPUs, jobs of two GPUs, an hour each as their limits say, fifty minutes apart."""
    return trace_of(tmp_path, [(f"j{i}", 3000 * i, 2, 3600, 3600) for i in range(50)])


def told(*arguments: str):
    ran = here("simulate", "jobs", *arguments, "--cluster", "1x2", "--overhead", "none", "-o", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_forecasts_are_told_beside_the_runs(in_line):
    record = told("--trace", in_line, "--forecasts")
    assert [run["policy"] for run in record["runs"]] == ["berth-live"]
    (found,) = record["forecasts"]
    assert (found["jobs"], found["at_once"], found["moments"]) == (50, 1, 49)
    first = found["at_submission"]
    assert first["forecasts"] == 49
    assert first["coverage"] + first["early"] + first["late"] == pytest.approx(1.0)
    assert [(size["gpus"], size["forecasts"]) for size in found["sizes"]] == [("2 to 4", 49)]
    assert found["later"]["forecasts"] > 49
    assert found["coverage_with_at_once"] == pytest.approx((49 * first["coverage"] + 1) / 50)


def test_limits_that_are_what_jobs_take_are_learned(in_line):
    """Once a few have ended, the next start is known nearly to the minute."""
    (found,) = told("--trace", in_line, "--forecasts")["forecasts"]
    assert found["at_submission"]["median_error_s"] < 0.2 * found["at_submission"]["median_wait_s"]


def test_forecasts_are_told_of_all_policies_of_a_live_cluster(in_line):
    policies = ["berth-live-least-left", "berth-live-set-aside"]
    record = told("--trace", in_line, "--policy", ",".join(policies), "--forecasts")
    assert [one["policy"] for one in record["forecasts"]] == policies


def test_the_same_trace_has_the_same_forecasts(in_line):
    one, other = (told("--trace", in_line, "--forecasts")["forecasts"][0] for _ in range(2))
    assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_a_policy_that_makes_none_is_a_usage_error(in_line):
    ran = here("simulate", "jobs", "--trace", in_line, "--policy", "fifo", "--forecasts")
    assert ran.code == 2
    assert "berth-live" in ran.err


def test_the_table_says_how_often_it_was_right(in_line):
    ran = here("simulate", "jobs", "--trace", in_line, "--cluster", "1x2", "--forecasts")
    assert ran.code == 0, ran.err
    assert "in p10 to p90" in ran.out
    assert "1 of 50 jobs started at once" in ran.out
