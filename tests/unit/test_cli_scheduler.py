"""`berth scheduler`: which value holds, where it came from, and what is refused before anything starts."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runs import here
from played_cluster import Played

from berth.app.agent import configuration as agent_configuration
from berth.app.agent import meanings as agent_meanings
from berth.app.scheduler import configuration, meanings, run
from berth.kube.errors import Unreachable


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """(configured, access, shadow) of each start; nothing runs."""
    calls: list[Any] = []
    root = logging.getLogger()
    before, level = root.handlers[:], root.level

    def main(configured: Any, access: Any, shadow: bool) -> int:
        calls.append((configured, access, shadow))
        return 0

    monkeypatch.setattr(run, "main", main)
    yield calls
    root.handlers[:] = before
    root.setLevel(level)
    logging.captureWarnings(False)


def start(tmp_path: Path, *arguments: str) -> Any:
    return here("scheduler", "--kubeconfig", Played().kubeconfig(tmp_path, server="http://127.0.0.1:9"), *arguments)


def test_flags_go_before_variables_before_the_file(tmp_path, monkeypatch, started):
    file = tmp_path / "config.yaml"
    head = "apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\n"
    file.write_text(f"{head}batch: {{windowMs: 1, mostMs: 90}}\nlogLevel: debug\n")
    monkeypatch.setenv("BERTH_BATCH_WINDOW_MS", "2")
    monkeypatch.setenv("BERTH_BATCH_MOST_MS", "70")
    ran = start(tmp_path, "--config", str(file), "--set", "batch.windowMs=3", "--scheduler-name", "berth",
                "--scheduler-name", "volcano")  # fmt: skip
    assert ran.code == 0
    configured, access, shadow = started[0]
    value = configured.value
    assert (value.batch.window_ms, value.batch.most_ms, value.log_level) == (3.0, 70.0, "debug")
    assert value.scheduler_names == ("berth", "volcano") and not shadow
    told = {path: source for path, _, source in configured.sources}
    assert told["batch.windowMs"] == told["schedulerNames"] == "flag"
    assert told["batch.mostMs"] == "variable BERTH_BATCH_MOST_MS"
    assert (told["logLevel"], told["server.port"]) == (f"file {file}", "default")
    assert access.server == "http://127.0.0.1:9"
    monkeypatch.setenv("BERTH_CONFIG", str(file))
    start(tmp_path)
    assert started[1][0].value.log_level == "debug"


@pytest.mark.parametrize(("arguments", "elects", "shadow"), [
    ((), True, False), (("--no-leader-election",), False, False), (("--shadow",), False, True),
    (("--set", "leaderElection.enabled=false"), False, False),
])  # fmt: skip
def test_who_only_looks_on_holds_no_lease(tmp_path, started, arguments, elects, shadow):
    assert start(tmp_path, *arguments).code == 0
    configured, _, looks_on = started[0]
    assert (configured.value.leader_election.enabled, looks_on) == (elects, shadow)


@pytest.mark.parametrize(("arguments", "said"), [
    (("--set", "batch.windowMS=3"), "--set batch.windowMS: there is no such value. Perhaps batch.windowMs"),
    (("--set", "batch.windowMs"), "'batch.windowMs' sets nothing. Write path=value"),
    (("--set", "logLevel=info", "--set", "logLevel=debug"), "logLevel is set twice"),
    (("--set", "logLevel=loud"), "is 'loud'. Write debug, info, warning or error."),
    (("--shadow", "--set", "leaderElection.enabled=true"), "say different things"),
    (("--scheduler-name", "a", "--set", "schedulerNames=b"), "say different things"),
    (("--config", "/nowhere.yaml"), "/nowhere.yaml: cannot be read"),
])  # fmt: skip
def test_what_is_wrong_is_a_usage_error(tmp_path, started, arguments, said):
    ran = start(tmp_path, *arguments)
    assert ran.code == 2 and said in " ".join(ran.err.split()) and not started


def test_no_way_to_the_cluster_is_exit_code_3(tmp_path, monkeypatch, started):
    def main(*_: Any) -> int:
        raise Unreachable("Connect call failed ('127.0.0.1', 9)", may_have_arrived=False)

    monkeypatch.setattr(run, "main", main)
    ran = start(tmp_path)
    assert ran.code == 3 and "http://127.0.0.1:9: cannot be reached: the connection was refused." in ran.err


@pytest.mark.parametrize(
    ("command", "configure", "meanings"),
    [("scheduler", configuration.configure, meanings.MEANINGS),
     ("agent", agent_configuration.configure, agent_meanings.MEANINGS)],
)  # fmt: skip
def test_help_says_what_every_value_means(command, configure, meanings):
    paths = [path for path, _, _ in configure().sources if path not in ("apiVersion", "kind")]
    assert list(meanings) == paths, "in the order of the configuration"
    text = here(command, "--help").out
    for path in paths:
        assert f"  {path}=" in text
    assert '=["' not in text, "lists as --set takes them"


def test_preflight_tells_of_values_that_do_nothing(tmp_path):
    file = tmp_path / "berth.yaml"
    head = "apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\n"
    file.write_text(head + "order: {aging: 0.2}\n")
    ran = here("preflight", "--config", str(file), "--kubeconfig", str(tmp_path / "none"))
    assert f"note: {file}: order.aging: is 0.2, and by age nothing goes by it." in ran.err
