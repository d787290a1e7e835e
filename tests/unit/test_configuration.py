"""The scheduler's configuration: where each value comes from, and errors that name the field and the remedy."""

from __future__ import annotations

import pytest

from berth.app.scheduler.configuration import configure
from berth.base.errors import BadInput

HEAD = "apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\n"


def written(tmp_path, text):
    path = tmp_path / "berth.yaml"
    path.write_text(HEAD + text)
    return str(path)


def source(configured, path):
    return next((value, told) for found, value, told in configured.sources if found == path)


def test_flag_before_variable_before_file_before_default(tmp_path):
    file = written(tmp_path, "batch: {windowMs: 1, mostMs: 70}\nschedulerNames: [from-file]\nlogLevel: debug\n")
    made = configure(file, {"batch.windowMs": "3"}, {"BERTH_BATCH_WINDOW_MS": "2", "BERTH_SCHEDULER_NAMES": "a,b"})
    assert (made.value.batch.window_ms, made.value.batch.most_ms) == (3.0, 70.0)
    assert made.value.scheduler_names == ("a", "b")
    assert source(made, "batch.windowMs")[1] == "flag"
    assert source(made, "schedulerNames")[1] == "variable BERTH_SCHEDULER_NAMES"
    assert source(made, "logLevel") == ("debug", f"file {file}")
    assert source(made, "server.port") == ("8090", "default")


def test_values_are_told_as_they_are_written_in_the_file(tmp_path):
    told = {path: value for path, value, _ in configure(None, {"leaderElection.enabled": "false"}).sources}
    assert told["leaderElection.enabled"] == "false"
    assert told["preemption.enabled"] == "true"
    assert told["schedulerNames"] == '["berth"]'
    assert told["topology.levels"] == "[]"
    assert (told["batch.windowMs"], told["logLevel"], told["gpuClasses"]) == ("5.0", "info", "")
    levels = configure(None, {}, {"BERTH_TOPOLOGY_LEVELS": "rack=example.com/rack"})
    assert source(levels, "topology.levels")[0] == '[{"name":"rack","label":"example.com/rack"}]'
    # What was told can be written into a file, and means the same.
    again = "".join(
        f"{path.partition('.')[0]}: {value}\n" for path, value in told.items() if "." not in path and value
    ).removeprefix(HEAD)
    assert configure(written(tmp_path, again)).value.scheduler_names == ("berth",)


def test_levels_in_a_variable():
    made = configure(None, {}, {"BERTH_TOPOLOGY_LEVELS": "block=example.com/block,rack=example.com/rack"})
    assert [(level.name, level.label) for level in made.value.topology.levels] == [
        ("block", "example.com/block"), ("rack", "example.com/rack"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("batch: {windowMS: 1}\n", ("batch", "windowMS", "batch.windowMs")),
        ("leaderElection: {renewSeconds: 20}\n", ("leaderElection", "rise in this order")),
        ("schedulerNames: []\n", ("schedulerNames", "[berth]")),
        ("server: {port: many}\n", ("server.port",)),
        ("logFormat: xml\n", ("logFormat", "json or text")),
        ("clients: {inFlight: 0}\n", ("clients.inFlight", "1 to 1024")),
    ],
)
def test_a_fault_in_the_file_names_field_and_remedy(tmp_path, text, says):
    with pytest.raises(BadInput) as caught:
        configure(written(tmp_path, text))
    for words in says:
        assert words in caught.value.sentence


def test_another_kind_of_file_is_refused(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("apiVersion: v1\nkind: ConfigMap\n")
    with pytest.raises(BadInput, match=r"berth\.dev/v1alpha1"):
        configure(str(path))


def test_a_flag_that_is_no_number_is_refused():
    with pytest.raises(BadInput, match=r"server\.port"):
        configure(None, {"server.port": "high"})
