"""What queues ask of their workloads: inherited down the tree, given where nobody says anything, and printed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml
from cli_runs import here as run_command
from msgspec.structs import replace

from berth.kube.wire_queues import GPUQueue
from berth.model.cluster import Allocation
from berth.model.paying import payers_of
from berth.model.queue import Queue
from berth.model.queue_rules import NO_RULES, QueueRules, rules_of
from berth.model.resources import NVIDIA_GPU, resources
from berth.model.workload import Capability, PodClass, PodSet, Workload
from berth.scheduling.admission import against_rules
from berth.sources.governing import Governors, governed
from berth.sources.queues_read import queue_of

EXAMPLES = Path(__file__).parents[2] / "examples"
HOUR = 3600.0
GPU, CPU = PodClass(resources({NVIDIA_GPU: 1})), PodClass(resources({"cpu": 1000}))


def a_workload(pod_class: PodClass = GPU, queue: str = "q", **said: object) -> Workload:
    return replace(Workload("w", (PodSet("main", pod_class),), "team", queue=queue), **said)


# ---- the tree


def test_rules_hold_for_the_queues_below() -> None:
    top = Queue(
        "top", max_time_limit_s=8 * HOUR, allowed_classes=("A", "B", "C"), checkpoint_required=True, preemptible=True,
        defaults=(("time-limit", "1h"), ("rdma", "required")),
    )  # fmt: skip
    mid = Queue("mid", "top", max_time_limit_s=24 * HOUR, allowed_classes=("B", "C", "D"), preemptible=False)
    low = Queue("low", "mid", max_time_limit_s=2 * HOUR, defaults=(("time-limit", "30m"),))
    rules = rules_of((top, mid, low, Queue("beside")))
    assert set(rules) == {"top", "mid", "low"}
    assert (rules["mid"].max_time_limit_s, rules["mid"].max_by) == (8 * HOUR, "top"), "the shortest counts"
    assert (rules["low"].max_time_limit_s, rules["low"].max_by) == (2 * HOUR, "low")
    assert rules["low"].classes == ("B", "C"), "what every queue on the way allows"
    assert (rules["low"].preemptible, rules["low"].preemptible_by) == (False, "mid"), "the nearest is believed"
    assert rules["low"].checkpoint_by == "top"
    assert dict(rules["low"].defaults) == {"time-limit": ("30m", "low"), "rdma": ("required", "top")}


def test_queues_that_are_above_each_other_end() -> None:
    rules = rules_of((Queue("a", "b", max_time_limit_s=60.0), Queue("b", "a", max_time_limit_s=30.0)))
    assert rules["a"].max_time_limit_s == rules["b"].max_time_limit_s == 30.0
    assert rules_of((Queue("a"), Queue("b", "a"))) == {}


def test_an_object_is_read_as_it_is_written() -> None:
    spec = {
        "parent": "top", "borrowing": False, "lending": False, "reclaim": "Never", "maxTimeLimit": "1d12h",
        "preemptible": False, "allowedClasses": ["A"], "checkpointRequired": True, "quota": {"*": 4},
        "defaults": {"time-limit": "4h", "gpu-memory": "40Gi"},
    }  # fmt: skip
    read = queue_of("q", msgspec.convert({"metadata": {"name": "q"}, "spec": spec}, GPUQueue))
    assert read == Queue(
        "q", "top", quota=(("*", 4),), borrowing=False, lending=False, reclaim="Never", max_time_limit_s=36 * HOUR,
        preemptible=False, allowed_classes=("A",), checkpoint_required=True,
        defaults=(("gpu-memory", "40Gi"), ("time-limit", "4h")),
    )  # fmt: skip
    blank = queue_of("q", msgspec.convert({"metadata": {"name": "q"}, "spec": {}}, GPUQueue))
    assert blank == Queue("q")
    assert queue_of("q", msgspec.convert({"spec": {"maxTimeLimit": "soon", "reclaim": "x"}}, GPUQueue)) == Queue("q")


# ---- what is given


def test_what_a_workload_says_goes_before_what_its_queue_gives() -> None:
    given = {
        "checkpoint-every": "10m", "min-runtime": "5m", "preemptible": "true", "time-limit": "4h",
        "gpu-memory": "40Gi", "gpu-product": "H100",
    }  # fmt: skip
    queues = (Queue("q", defaults=tuple(given.items())),)
    governors, payers = Governors(queues), payers_of(queues)
    silent = governors.workload(a_workload(), payers)
    assert (silent.time_limit_s, silent.min_runtime_s, silent.checkpoint_every_s) == (4 * HOUR, 300.0, 600.0)
    assert silent.preemptible is True
    assert silent.pod_sets[0].pod_class.least == Capability(memory_bytes=40 * 2**30, products=("H100",))
    assert dict(silent.provenance)["time limit"] == "defaults of queue q"
    assert dict(silent.provenance)["gpu-memory"] == "defaults of queue q"
    own = PodClass(resources({NVIDIA_GPU: 1}), least=Capability(memory_bytes=2**30))
    spoken = a_workload(own, time_limit_s=60.0, min_runtime_s=1.0, checkpoint_every_s=2.0, preemptible=False)
    told = governors.workload(spoken, payers)
    assert (told.time_limit_s, told.min_runtime_s, told.checkpoint_every_s, told.preemptible) == (60.0, 1.0, 2.0, False)
    assert told.pod_sets[0].pod_class.least == Capability(memory_bytes=2**30, products=("H100",))
    assert "time limit" not in dict(told.provenance)
    assert governors.workload(a_workload(queue="other"), payers) == a_workload(queue="other")


def test_pods_without_gpus_are_not_asked_about_gpus() -> None:
    rules = rules_of((Queue("q", allowed_classes=("A",), defaults=(("gpu-memory", "40Gi"),)),))["q"]
    assert governed(a_workload(CPU), rules).pod_sets[0].pod_class == CPU
    assert governed(a_workload(), rules).pod_sets[0].pod_class.queue_classes == ("A",)


@pytest.mark.parametrize(
    ("default", "longest_s", "limit_s", "by"),
    [
        ("4h", 0.0, 4 * HOUR, "defaults of queue q"),
        ("4h", 8 * HOUR, 4 * HOUR, "defaults of queue q"),
        ("12h", 8 * HOUR, 8 * HOUR, "maxTimeLimit of queue q"),  # a default that would be refused is none
        ("", 8 * HOUR, 8 * HOUR, "maxTimeLimit of queue q"),
    ],
)
def test_who_states_no_limit_gets_one(default: str, longest_s: float, limit_s: float, by: str) -> None:
    queue = Queue("q", max_time_limit_s=longest_s, defaults=(("time-limit", default),) if default else ())
    found = governed(a_workload(), rules_of((queue,))["q"])
    assert (found.time_limit_s, dict(found.provenance)["time limit"]) == (limit_s, by)
    assert against_rules(found, rules_of((queue,))["q"]) is None


def test_a_pod_that_runs_has_what_it_was_started_with() -> None:
    queues = (Queue("q", max_time_limit_s=HOUR, preemptible=False),)
    held = Governors(queues).allocation(Allocation("n", "team", "p", GPU, queue="q"), payers_of(queues))
    assert (held.time_limit_s, held.preemptible) == (HOUR, False)


def test_a_value_that_cannot_be_read_is_told_and_passed_over() -> None:
    rules = rules_of((Queue("q", defaults=(("min-runtime", "5m"), ("time-limit", "soon"))),))["q"]
    found = governed(a_workload(), rules)
    assert (found.time_limit_s, found.min_runtime_s) == (0.0, 300.0)
    assert len(found.findings) == 1 and "spec.defaults.time-limit" in found.findings[0]


def test_nothing_is_asked_where_nobody_asks() -> None:
    assert against_rules(a_workload(time_limit_s=1e9), NO_RULES) is None
    assert against_rules(a_workload(CPU), QueueRules(checkpoint_by="q")) is None, "it has nothing that others want"


# ---- presets, and what is printed


@pytest.mark.parametrize("kind", ["interactive", "serving", "batch"])
def test_presets_are_queues_and_stand_among_the_examples(kind: str) -> None:
    printed = run_command("queue", "--preset", kind).out
    assert printed == (EXAMPLES / "queues" / f"{kind}.yaml").read_text()
    thing = yaml.safe_load(run_command("queue", "--preset", kind, "team-a").out)
    assert (thing["kind"], thing["metadata"]["name"]) == ("GPUQueue", "team-a")
    queue = queue_of("team-a", msgspec.convert(thing, GPUQueue))
    assert queue.borrowing or queue.quota, "who does not borrow states a quota"
    assert (queue.preemptible, queue.checkpoint_required) == ((True, True) if kind == "batch" else (False, False))


@pytest.mark.parametrize("name", ["a: b", "Bad Name", "team_a", "-a", "a-", "a..b", "a\n", "q" * 64])
def test_a_preset_has_no_name_that_kubernetes_refuses(name: str) -> None:
    done = run_command("queue", "--preset", "batch", "--", name)
    assert (done.code, done.out) == (2, "")
    assert repr(name) in done.err and "lower case letters, digits, - and ., at most 63" in done.err


@pytest.mark.parametrize("name", ["a", "team-a.vision", "q" * 63, "123", "true", "1e3", "null"])
def test_a_preset_has_the_name_that_was_asked_for(name: str) -> None:
    done = run_command("queue", "--preset", "batch", name)
    assert yaml.safe_load(done.out)["metadata"]["name"] == name


@pytest.mark.parametrize(("output", "code"), [("yaml", 0), ("table", 0), ("json", 2), ("csv", 2), ("wide", 2)])
def test_a_preset_is_yaml_and_nothing_else(output: str, code: int) -> None:
    done = run_command("queue", "--preset", "batch", "-o", output)
    assert done.code == code
    assert done.out.endswith("min-runtime: 30m\n") if not code else f"-o {output} is for what is looked at" in done.err


def test_a_queue_is_printed_with_what_holds_in_it(tmp_path: Path) -> None:
    node = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10", "nvidia.com/gpu": "8"},
                   "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip
    ours = {"apiVersion": "berth.dev/v1alpha1"}
    items = [
        node,
        {**ours, "kind": "GPUQueue", "metadata": {"name": "top"}, "spec": {"maxTimeLimit": "1d"}},
        {**ours, "kind": "GPUQueue", "metadata": {"name": "low"},
         "spec": {"parent": "top", "quota": {"*": 4}, "preemptible": True, "checkpointRequired": True,
                  "allowedClasses": ["H100-80GB"], "defaults": {"time-limit": "4h"}}},
        {**ours, "kind": "GPUReservation", "metadata": {"name": "always"}, "spec": {"queue": "low", "gpus": 2}},
        {**ours, "kind": "GPUReservation", "metadata": {"name": "over"},
         "spec": {"queue": "low", "gpus": 2, "until": "2020-01-01T00:00:00Z"}},
    ]  # fmt: skip
    dump = tmp_path / "dump.yaml"
    dump.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    printed = run_command("queue", "low", "--from", str(dump)).out
    for words in (
        "Queue low, below top", "guaranteed 4, limit none", "24 h (queue top)", "yes, where a workload says nothing",
        "H100-80GB", "required of what may have to leave", "time-limit 4h", "always: 2 GPUs, now",
    ):  # fmt: skip
        assert words in printed, words
    assert "over:" not in printed
    policy = msgspec.json.decode(run_command("queue", "low", "--from", str(dump), "-o", "json").out)["policy"]
    assert (policy["maxTimeLimitSeconds"], policy["preemptible"], policy["checkpointRequired"]) == (86400, True, True)
    assert [one["name"] for one in policy["reservations"]] == ["always"]
    assert policy["expectedWaitSeconds"] is None
