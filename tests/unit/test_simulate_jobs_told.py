"""What `berth simulate jobs` is asked for and does not do is told: in the table, JSON and page, and beside CSV."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_runs import CLUSTER, ROOT, Ran, here

EVENTFUL = (
    "job,submit,duration,gpus,pods,min_pods,cancelled,class,priority\n"
    "a,0,1000,4,1,1,,H100,0\nb,10,1000,4,2,1,500,,5\nc,20,300,8,1,1,,,0\n"
)
PLAIN = "job,submit,duration,gpus\na,0,1000,4\nb,5,10,8\n"
TOLD = (
    "published policies pass over what Berth's own heed of this trace: 2 node events (nodes never fail), "
    "1 cancelled job (none is given up), 1 job with min_pods (all pods or none), priorities"
)
CLASSES = "classes that jobs name (H100) do not count"


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def jobs(folder: Path, text: str, *more: str, events: str = "", cluster: str = "2x8") -> Ran:
    arguments = ["simulate", "jobs", "--trace", written(folder, "jobs.csv", text), "--cluster", cluster, *more]
    if events:
        arguments += ["--node-events", written(folder, "events.csv", "at,node,state\n" + events)]
    return here(*arguments)


FAILS = "100,node-0000,down\n200,node-0000,up\n"


def test_what_published_policies_pass_over_is_among_their_notes(tmp_path: Path) -> None:
    page = str(tmp_path / "page.html")
    ran = jobs(tmp_path, EVENTFUL, "--policy", "fifo,srtf,berth", "-o", "json", "--report", page, events=FAILS)
    notes = {run["policy"]: run["notes"] for run in json.loads(ran.out)["runs"]}
    assert TOLD in notes["fifo"] and TOLD in notes["srtf"] and TOLD not in notes["berth"]
    assert any(CLASSES in note for note in notes["berth"])
    shown = Path(page).read_text(encoding="utf-8").replace("&#x27;", "'")
    assert shown.count(TOLD) == 1
    table = jobs(tmp_path, EVENTFUL, "--policy", "fifo", events=FAILS).out
    assert TOLD in re.sub(r"\s+", " ", table)
    beside = jobs(tmp_path, EVENTFUL, "--policy", "fifo", "-o", "csv", events=FAILS)
    assert TOLD in beside.err and len(beside.out.splitlines()) == 2


def test_what_is_not_in_the_trace_is_not_told(tmp_path: Path) -> None:
    ran = jobs(tmp_path, PLAIN, "--policy", "fifo,berth", "-o", "json")
    assert [run["notes"] for run in json.loads(ran.out)["runs"]] == [[], []]
    one = jobs(tmp_path, PLAIN, "--policy", "fifo", "-o", "json", events=FAILS)
    (run,) = json.loads(one.out)["runs"]
    assert run["notes"][0].endswith("of this trace: 2 node events (nodes never fail)")


@pytest.mark.parametrize(
    ("setting", "policies", "code", "words"),
    [
        ("aging=1", "fifo", 2, "--set aging: fifo does not go by it. It is of berth, berth-blind,"),
        ("stop_wait_s=1", "berth-live,sjf", 2, "berth-live, sjf do not go by it"),
        ("stop_wait_s=1", "berth-live-least-left", 2, "does not go by it"),
        ("aging=1", "berth,berth-live", 0, "note: berth-live: --set aging changes nothing there"),
        ("aging=1", "berth,fifo", 0, ""),
    ],
)
def test_a_setting_that_changes_nothing_is_told(
    tmp_path: Path, setting: str, policies: str, code: int, words: str
) -> None:
    ran = jobs(tmp_path, PLAIN, "--policy", policies, "--set", setting)
    assert ran.code == code
    assert words in ran.err if words else not ran.err


@pytest.mark.parametrize(
    ("setting", "policies"),
    [("aging=100", "berth"), ("aging=100", "berth-blind"), ("aging=100", "berth-live-least-left"),
     ("aging=100", "berth-live-set-aside"), ("stop_wait_s=90000", "berth"), ("stop_wait_s=90000", "berth-blind"),
     ("stop_wait_s=90000", "berth-live-set-aside")],
)  # fmt: skip
def test_who_is_said_to_go_by_a_setting_does(setting: str, policies: str) -> None:
    common = ("simulate", "jobs", "--trace", "builtin:small", "--policy", policies, "-o", "csv")
    assert figures(here(*common, "--set", setting)) != figures(here(*common))


@pytest.mark.parametrize(
    ("setting", "policies"),
    [("aging=100", "berth-live"), ("stop_wait_s=90000", "berth-live"), ("stop_wait_s=90000", "berth-live-least-left")],
)
def test_who_is_said_to_go_by_none_does_not(setting: str, policies: str) -> None:
    common = ("simulate", "jobs", "--trace", "builtin:small", "-o", "csv")
    beside = here(*common, "--policy", f"{policies},berth", "--set", setting)
    assert figures(beside)[0] == figures(here(*common, "--policy", policies))[0]


def figures(ran: Ran) -> list[str]:
    """Of each run its times; sums over other moments differ in their last digits."""
    return [",".join(line.split(",")[1:11]) for line in ran.out.splitlines()[1:]]


@pytest.mark.parametrize(
    ("cluster", "code", "words"),
    [
        ("nosuch.json", 3, "--cluster nosuch.json: there is no such file or folder."),
        ("some/folder", 3, "there is no such file or folder. Name a dump, or write nodes x GPUs of each, such as 8x8."),
        ("examples/clusters.yaml", 3, "Close to it: examples/cluster.yaml."),
        ("8y8", 2, "'8y8' is no cluster. Write nodes x GPUs"),
        ("8.5x8", 2, "is no cluster"),
    ],
)
def test_a_cluster_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: str, code: int, words: str
) -> None:
    monkeypatch.chdir(ROOT)
    ran = jobs(tmp_path, PLAIN, "--policy", "fifo", cluster=cluster)
    assert ran.code == code and words in ran.err


def test_events_are_told_by_their_row_whoever_meets_them(tmp_path: Path) -> None:
    ran = jobs(tmp_path, PLAIN, "--policy", "fifo", events="100,node-0000,down\n200,node-0009,up\n")
    assert ran.code == 2
    assert "events.csv: row 3, column node: there is no node 'node-0009'. The cluster has node-0000 to" in ran.err
    none = jobs(tmp_path, PLAIN, "--policy", "fifo", events="\n")
    assert none.code == 2 and "events.csv: has no events." in none.err


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("1e3", "is '1e3': it has to be a whole number from 1 to 1024. Write it in digits alone: 1000."),
        ("8.0", "Write it in digits alone: 8."),
        ("1e9", "Mend the cell or drop the row."),
        ("0.5", "Mend the cell or drop the row."),
        ("eight", "Mend the cell or drop the row."),
        ("nan", "Mend the cell or drop the row."),
        ("inf", "Mend the cell or drop the row."),
    ],
)
def test_a_whole_number_that_is_written_otherwise(tmp_path: Path, cell: str, words: str) -> None:
    ran = jobs(tmp_path, f"job,submit,duration,gpus\na,0,1,{cell}\n", "--policy", "fifo")
    assert ran.code == 2 and words in ran.err


def test_of_several_classes_any_will_do_and_one_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    head = "job,submit,duration,gpus,class\n"
    either = jobs(tmp_path, f"{head}a,0,100,4,H200|H100\n", "--policy", "berth", "-o", "json", cluster=CLUSTER)
    assert json.loads(either.out)["runs"][0]["finished"] == 1
    none = jobs(tmp_path, f"{head}a,0,100,4,H200|B200\n", "--policy", "berth", cluster=CLUSTER)
    assert none.code == 2
    assert "job a: asks for GPUs of class H200|B200, and no node that jobs may use has any. There are A100" in none.err


def test_published_policies_that_cannot_run_are_not_left_out_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    ran = jobs(tmp_path, PLAIN, "-o", "json", cluster=CLUSTER)
    runs = json.loads(ran.out)["runs"]
    assert [run["policy"] for run in runs] == ["berth", "berth-blind"]
    assert any("published policies know like nodes only" in note for note in runs[0]["notes"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("job;submit;duration;gpus\na;0;1;1\n", "row 1: has semicolons between its columns. Save it with commas."),
        ("job\tsubmit\tduration\tgpus\n", "row 1: has tabs between its columns."),
        ("job,submit,duration,gpus\na,2024-01-01T00:00:00Z,1,1\n", "Write seconds, such as 1704067200 (since 1970)."),
        ("job,submit,duration,gpus\na,2024-01-01 00:00:00,1,1\n", "Write seconds, such as 1704067200 (since 1970)."),
        ("job,submit,duration,gpus\na,0,1.5h,1\n", "column duration: is '1.5h': it has to be a number from 0 to 1e+10. "
         "Write seconds alone: 5400."),
        ("job,submit,duration,gpus\na,0,-5,1\n", "Mend the cell or drop the row."),
    ],
)  # fmt: skip
def test_what_is_meant_by_a_table_or_cell_is_told(tmp_path: Path, text: str, words: str) -> None:
    ran = jobs(tmp_path, text, "--policy", "fifo")
    assert ran.code == 2 and words in ran.err


def test_times_before_the_submission_are_told(tmp_path: Path) -> None:
    late = "job,submit,duration,gpus,cancelled,deadline\na,100,5,1,50,300\nb,100,5,1,,20\nc,1,5,1,90,90\n"
    ran = jobs(tmp_path, late, "--policy", "fifo")
    assert "cancelled is before submit, of a: it is a time as submit is" in ran.err
    assert "deadline is before submit, of b: it is a time" in ran.err


@pytest.mark.parametrize(
    ("cluster", "words"),
    [("0x8", "1 to 99,999 nodes"), ("1000000x8", "1 to 99,999 nodes"), ("8x64", "63 GPUs at most"),
     ("8x0", "63 GPUs at most")],
)  # fmt: skip
def test_a_shape_that_cannot_be_is_told_by_its_bound(tmp_path: Path, cluster: str, words: str) -> None:
    ran = jobs(tmp_path, PLAIN, "--policy", "fifo", cluster=cluster)
    assert ran.code == 2 and words in ran.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("job,submit,duration\na,0,1\n", "row 1: lacks the column gpus. The header has to have job, submit, duration,"),
        ("job,gpus\na,1\n", "row 1: lacks the columns submit, duration. The header has to have job,"),
        ("", "row 1: there is none: the file is empty. The header has to have job, submit, duration, gpus."),
        ("\n \n\n", "there is none: the file is empty."),
        ("\n\njob,submit,duration\n", "row 3: lacks the column gpus."),
        ("\njob,submit,duration,gpus\na,0,1,0\n", "row 3, column gpus: is '0': it has to be a whole number from 1"),
        ("job,submit,duration,gpus,pods\na,0,1,1,0\n", "pods: is '0': it has to be a whole number from 1 to 100000"),
        ("job,submit,duration,gpus,min_pods\na,0,1,1,0\n", "min_pods: is '0': it has to be a whole number from 1"),
        ("job,submit,duration,gpus,checkpoint\na,0,1,1,9\n", "Call it 'checkpoint_every' if that is meant"),
    ],
)  # fmt: skip
def test_what_a_file_has_to_have_is_told(tmp_path: Path, text: str, words: str) -> None:
    ran = jobs(tmp_path, text, "--policy", "fifo")
    assert ran.code == 2 and words in ran.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "at,node\n1,node-0000\n",
            "events.csv: row 1: lacks the column state. The header has to have at, node, state.",
        ),
        ("", "events.csv: row 1: there is none: the file is empty. The header has to have at, node, state."),
    ],
)
def test_what_a_file_of_events_has_to_have_is_told(tmp_path: Path, text: str, words: str) -> None:
    ran = jobs(tmp_path, PLAIN, "--policy", "berth", "--node-events", written(tmp_path, "events.csv", text))
    assert ran.code == 2 and words in ran.err


def test_blank_lines_before_the_header_are_no_header(tmp_path: Path) -> None:
    ran = jobs(tmp_path, f"\n\n{PLAIN}", "--policy", "fifo", "-o", "json")
    assert json.loads(ran.out)["runs"][0]["finished"] == 2


@pytest.mark.parametrize(
    ("begin", "events", "early", "late"),
    [
        (0, "2000,node-0000,down\n3000,node-0000,up\n", "", "2 of 2 node events come after the end, at 1000 s"),
        (0, "100,node-0000,down\n3000,node-0001,up\n", "", "1 of 2 node events comes after the end, at"),
        (5000, "50,node-0000,down\n5100,node-0000,up\n", "1 of 2 node events comes before the first", ""),
        (0, "0,node-0000,down\n100,node-0000,up\n", "", ""),
    ],
)  # fmt: skip
def test_events_outside_the_time_of_the_trace_are_told(
    tmp_path: Path, begin: int, events: str, early: str, late: str
) -> None:
    text = f"job,submit,duration,gpus\na,{begin},1000,4\n"
    ran = jobs(tmp_path, text, "--policy", "berth,fifo", "-o", "json", events=events)
    assert f"events.csv: {early}" in ran.err if early else "before the first" not in ran.err
    own, published = (run["notes"] for run in json.loads(ran.out)["runs"])
    assert ["berth: " in note and f"events.csv: {late}" in note for note in own] == ([True] if late else [])
    assert not any("after the end" in note for note in published)


def test_limits_that_published_policies_pass_over_are_told(tmp_path: Path) -> None:
    text = "job,submit,duration,gpus,limit,checkpoint_every\na,0,1,1,5,\nb,0,1,1,0,9\n"
    ran = jobs(tmp_path, text, "--policy", "fifo", "-o", "json")
    (note,) = json.loads(ran.out)["runs"][0]["notes"]
    assert note.endswith("of this trace: 1 run-time limit, 1 job with checkpoint_every")
    ran = jobs(tmp_path, PLAIN, "--policy", "fifo", "--limits", "1", "-o", "json")
    assert any(note.endswith("2 run-time limits") for note in json.loads(ran.out)["runs"][0]["notes"])


def test_time_since_1970_leaves_figures_as_exact(tmp_path: Path) -> None:
    full = "job,submit,duration,gpus,pods\na,{0},100,8,2\nb,{0},77,8,2\n"
    for begin in (0, 1764547200):
        ran = jobs(tmp_path, full.format(begin), "--policy", "fifo,berth", "-o", "json")
        assert [run["gpu_utilisation"] for run in json.loads(ran.out)["runs"]] == pytest.approx([1.0, 1.0], abs=1e-12)


def test_the_pace_of_decisions_holds_no_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What loads compiled code before a run is no part of the time that decisions took."""
    from berth.simulation.baselines import schedules
    from berth.sources.job_csv import read_job_file

    plain, order = schedules._run, []
    monkeypatch.setattr(schedules, "_run", lambda *given: order.append(len(given[1])) or plain(*given))
    schedules._loaded.cache_clear()
    trace = read_job_file(Path(written(tmp_path, "jobs.csv", PLAIN)))
    for policy in ("fifo", "sjf"):
        schedules.run(policy, trace, 2, 8, schedules.Overhead.Nothing)
    assert order == [1, 2, 2], "one job alone, before the first"


@pytest.mark.parametrize("policies", [("berth", "berth-live"), ("berth-live-set-aside",)])
def test_own_policies_decide_on_a_few_jobs_before_the_clock_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policies: tuple[str, ...]
) -> None:
    from berth.app import compile as compiling
    from berth.simulation.queueing import engine

    few, ran, seen = compiling.few_jobs, engine.steps, []
    monkeypatch.setattr(compiling, "few_jobs", lambda: seen.append("few") or few())
    monkeypatch.setattr(
        engine, "steps", lambda jobs, *given, **more: seen.append(jobs.name) or ran(jobs, *given, **more)
    )
    assert jobs(tmp_path, PLAIN, "--policy", ",".join(policies)).code == 0
    assert seen == ["few", "few", str(tmp_path / "jobs.csv")] * len(policies), "loaded, then decided and measured"


def test_waits_of_two_jobs_are_a_step() -> None:
    from berth.views.charts import distributions

    chart = distributions([("p", (0.0,) * 10 + (1000.0,) * 11)], 10.0, 1000.0, "waits", (), [0])
    assert 'points="0,1000 0,500 1000,500 1000,0 1000,0"' in chart
