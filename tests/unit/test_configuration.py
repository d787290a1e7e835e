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
    ("text", "said"),
    [
        ("batch: {windowMS: 1}\n", ": batch.windowMS is no key of the configuration. Perhaps batch.windowMs."),
        ("bach: 5\n", ": bach is no key of the configuration. Perhaps batch."),
        ("zzz: 5\n", ": zzz is no key of the configuration. Known are apiVersion, kind, schedulerNames"),
        ("batch: 5\n", ": batch is 5. Write an object with windowMs, mostMs, or leave it out."),
        ("batch:\n", ": batch is empty. Write an object"),
        ("batch: {windowMs: -5}\n", ": batch.windowMs is -5. Write 0 to 60000 milliseconds."),
        ("batch: {windowMs: .nan}\n", ": batch.windowMs is nan. Write a number."),
        ("batch: {windowMs: 100}\n", ": batch.windowMs is 100, and batch.mostMs 50. windowMs is at most mostMs"),
        ("leaderElection: {renewSeconds: 20}\n", "leaderElection.renewSeconds is 20, and leaseSeconds 15."),
        ("leaderElection: {name: Bad Name!}\n", ": leaderElection.name is 'Bad Name!'. Write a name of a Lease"),
        ("leaderElection: {namespace: a.b}\n", ": leaderElection.namespace is 'a.b'. Write a namespace"),
        ("schedulerNames: []\n", ": schedulerNames is empty. Name one scheduler at least: [berth]."),
        ("schedulerNames: berth\n", ": schedulerNames is 'berth'. Write a list"),
        ("schedulerNames: ['', berth]\n", ": schedulerNames has the name ''."),
        ("schedulerNames: [not a name]\n", ": schedulerNames has the name 'not a name'."),
        ("schedulerNames: [a, a]\n", ": schedulerNames has a twice."),
        ("schedulerNames: [5]\n", ": schedulerNames[0] is 5. Write text"),
        ("topology: {levels: [{name: rack}]}\n", ": topology.levels[0].label is missing. Write name and label."),
        ("topology: {levels: [{name: r, label: 'bad label!!'}]}\n", "has the label 'bad label!!' for level r."),
        ("topology: {levels: [{name: r, label: a}, {name: r, label: b}]}\n", "has the level r twice."),
        ("server: {port: many}\n", ": server.port is 'many'. Write a whole number."),
        ("server: {port: true}\n", ": server.port is true. Write a whole number."),
        ("preemption: {enabled: 'no'}\n", ": preemption.enabled is 'no'. Write true or false."),
        ("shares: {usageWeight: 11}\n", ": shares.usageWeight is 11. Write 0 (the past does not count) to 10."),
        ("shares: {usageHalfLifeHours: -1}\n", ": shares.usageHalfLifeHours is -1. Write hours, 168 for a week"),
        ("order: {by: size}\n", ": order.by is 'size'. Write age or least-left."),
        ("order: {setsAside: true}\n", ": order.setsAside is true, and order.by age. Write order.by: least-left"),
        (
            "order: {by: least-left, setsAside: true}\npreemption: {enabled: false}\n",
            ": order.setsAside is true, and preemption.enabled false. Who is set aside is asked to leave",
        ),
        ("order: {stopWaitSeconds: -1}\n", ": order.stopWaitSeconds is -1. Write 0 to 86400, such as 1000."),
        ("order: {aging: .inf}\n", ": order.aging is inf. Write a number."),
        ("order: {aging: 101}\n", ": order.aging is 101. Write 0 (age does not count) to 100, such as 0.02."),
        ("defragmentation: {gpuHoursPerDay: -1}\n", ": defragmentation.gpuHoursPerDay is -1."),
        (
            "defragmentation: {gpuHoursPerDay: 8}\npreemption: {enabled: false}\n",
            ": defragmentation.gpuHoursPerDay is 8, and preemption.enabled false. Who moves is asked to leave",
        ),
        ("defragmentation: {days: [Caturday]}\n", ": defragmentation.days has 'Caturday'. Write some of Mon,"),
        ("defragmentation: {start: '25:00'}\n", ": defragmentation.start is '25:00'. Write a time of day"),
        ("defragmentation: {timeZone: Mars}\n", ": defragmentation.timeZone is 'Mars'. Write a zone such as"),
        ("logFormat: xml\n", ": logFormat is 'xml'. Write json or text."),
        ("clients: {inFlight: 0}\n", ": clients.inFlight is 0. Write 1 to 1024."),
        ("nodeAgents: {silentSeconds: 5}\n", ": nodeAgents.silentSeconds is 5. Write 30 or more, such as 300."),
        ("gpuClasses: 'class: 5'\n", ": gpuClasses"),
        ("logLevel: info\nlogLevel: debug\n", ", line 4, column 1 is no YAML: the key 'logLevel' is there twice."),
        ("batch: {windowMs: 5\n", ", line 4, column 1 is no YAML: expected ',' or '}', but got the end of the file."),
    ],
)
def test_a_fault_in_the_file_names_field_value_and_remedy(tmp_path, text, said):
    file = written(tmp_path, text)
    with pytest.raises(BadInput) as caught:
        configure(file)
    sentence = caught.value.sentence
    assert sentence.startswith(file) and said in sentence.replace(": is ", " is ").replace(": has ", " has ")
    assert "^" not in sentence and "$" not in sentence and "\n" not in sentence


@pytest.mark.parametrize(
    ("flags", "environ", "said"),
    [
        ({"logLevel": "loud"}, {}, "--set logLevel: is 'loud'."),
        ({}, {"BERTH_LOG_LEVEL": "loud"}, "BERTH_LOG_LEVEL: is 'loud'."),
        ({"server.port": "high"}, {}, "--set server.port: is 'high'. Write a whole number."),
        ({"batch.mostMs": "inf"}, {}, "--set batch.mostMs: is 'inf'. Write a number."),
        ({"topology.levels": "rack"}, {}, "--set topology.levels: has the label '' for level rack."),
        ({"schedulerNames": "berth,,a"}, {}, "--set schedulerNames: has the name ''."),
        ({}, {"BERTH_GPU_CLASSES": "nonsense"}, "BERTH_GPU_CLASSES"),
    ],
)
def test_a_fault_is_told_of_the_place_that_it_came_from(tmp_path, flags, environ, said):
    with pytest.raises(BadInput) as caught:
        configure(written(tmp_path, "logLevel: debug\nserver: {port: 1}\n"), flags, environ)
    assert caught.value.sentence.startswith(said)


def test_a_file_of_another_shape_is_told_whatever_flags_lie_over_it(tmp_path):
    with pytest.raises(BadInput, match="batch: is 5"):
        configure(written(tmp_path, "batch: 5\n"), {"batch.windowMs": "4"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("order: {aging: 0.2}\n", "order.aging: is 0.2, and by age nothing goes by it. Write order.by: least-left"),
        ("order: {stopWaitSeconds: 60}\n", "order.stopWaitSeconds: is 60, and nobody is set aside. Write order.by"),
        ("order: {by: least-left, stopWaitSeconds: 60}\n", "order.stopWaitSeconds: is 60, and nobody is set aside."),
        (
            "defragmentation: {gpuHoursPerDay: 8, start: '22:00'}\n",
            "defragmentation.start: is 22:00, and no end is written: the window ends at midnight. Write defragm",
        ),
        ("defragmentation: {days: [Mon]}\n", "defragmentation.days: is written, and gpuHoursPerDay is 0: nothing m"),
        ("defragmentation: {end: '06:00'}\n", "defragmentation.end: is written, and gpuHoursPerDay is 0"),
        (
            "preemption: {enabled: false, beyondBudgets: true}\n",
            "preemption.beyondBudgets: is true, and preemption.enabled false: nobody is asked to leave.",
        ),
        (
            "shares: {usageWeight: 0, usageHalfLifeHours: 24}\n",
            "shares.usageHalfLifeHours: is 24, and usageWeight 0: the past does not count.",
        ),
    ],
)
def test_a_value_that_does_nothing_with_the_others_is_told(tmp_path, text, said):
    file = written(tmp_path, text)
    (sentence,) = configure(file).unknown
    assert sentence.startswith(f"{file}: {said}")


@pytest.mark.parametrize(
    "text",
    [
        "order: {by: age, setsAside: false, stopWaitSeconds: 1000, aging: 0.02}\n"
        "defragmentation: {gpuHoursPerDay: 0, days: [], start: '', end: '', timeZone: UTC}\n",
        "order: {by: least-left, aging: 0.2}\n",
        "order: {by: least-left, setsAside: true, stopWaitSeconds: 60, aging: 0.2}\n",
        "defragmentation: {gpuHoursPerDay: 8, days: [Sat], start: '22:00', end: '06:00'}\n",
        "defragmentation: {gpuHoursPerDay: 8, end: '06:00'}\n",
        "shares: {usageWeight: 0}\n",
    ],
)
def test_values_that_go_together_are_not_told_of(tmp_path, text):
    assert configure(written(tmp_path, text)).unknown == ()


def test_variables_that_set_nothing_are_told_and_those_of_others_are_not():
    environ = {
        "BERTH_BATCH_WINDOWMS": "4", "BERTH_CONFIG": "x", "BERTH_NOW": "0", "BERTH_METRICS_PORT": "tcp://10.0.0.1:8090",
        "BERTH_METRICS_SERVICE_HOST": "10.0.0.1", "BERTH_METRICS_PORT_8090_TCP_ADDR": "10.0.0.1", "BERTH_ZZZ": "1",
    }  # fmt: skip
    assert configure(None, {}, environ).unknown == (
        "BERTH_BATCH_WINDOWMS sets nothing. Perhaps BERTH_BATCH_WINDOW_MS.", "BERTH_ZZZ sets nothing.",
    )  # fmt: skip


def test_the_address_of_a_value_is_where_it_is_written(tmp_path):
    file = written(tmp_path, "server: {port: 1}\n")
    made = configure(file, {"batch.windowMs": "1"}, {"BERTH_LOG_LEVEL": "info"})
    assert [made.where(path) for path in ("server.port", "batch.windowMs", "logLevel", "batch.mostMs")] == [
        f"{file}: server.port", "--set batch.windowMs", "BERTH_LOG_LEVEL", "batch.mostMs",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["kind: SchedulerConfiguration\n", "apiVersion: berth.dev/v1alpha1\n"])
def test_a_head_that_is_missing_is_told(tmp_path, text):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"is missing\. Write"):
        configure(str(path))


def test_another_kind_of_file_is_refused(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("apiVersion: v1\nkind: ConfigMap\n")
    with pytest.raises(BadInput, match=r"berth\.dev/v1alpha1"):
        configure(str(path))


def test_a_flag_that_is_no_number_is_refused():
    with pytest.raises(BadInput, match=r"server\.port"):
        configure(None, {"server.port": "high"})
