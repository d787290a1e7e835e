"""What check, why, nodes and free print of the example cluster, word for word, and their JSON."""

from __future__ import annotations

import json

import golden_files
import pytest
from cli_runs import CLUSTER, ROOT, here

NOW = "2026-11-29T12:00:00Z"
COMMANDS = {
    "check-fits": (0, "check -f examples/pytorchjob.yaml --from"),
    "check-fits-not": (1, "check -f examples/llm-one-rack.yaml --from"),
    "why-waits": (1, "why finetune --from"),
    "why-runs": (0, "why research/pretrain --from"),
    "queue": (0, "queue --from"),
    "queue-vision": (0, "queue vision --from"),
    "nodes": (0, "nodes --from"),
    "free": (0, "free --from"),
    "free-by-rack": (0, "free --by rack --from"),
}


@pytest.fixture(autouse=True)
def _at_home(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("BERTH_NOW", NOW)
    for variable in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "BERTH_DATA", "BERTH_TRACEBACK"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize("name", COMMANDS)
def test_answers_are_as_somebody_has_read_them(name, form):
    code, command = COMMANDS[name]
    ran = here(*command.split(), CLUSTER, "-o", form)
    assert ran.code == code
    golden_files.check(f"cli/{name}.{'txt' if form == 'table' else 'json'}", ran.out)
    assert form == "table" or json.loads(ran.out)["kind"]


@pytest.mark.parametrize("form", ["wide", "csv"])
def test_nodes_in_other_forms(form):
    golden_files.check(f"cli/nodes-{form}.txt", here("nodes", "--from", CLUSTER, "-o", form).out)


@pytest.mark.parametrize(("form", "name"), [("wide", ""), ("csv", ""), ("csv", "vision"), ("yaml", "vision")])
def test_the_queue_in_other_forms(form, name):
    file = f"cli/queue-{f'{name}-' if name else ''}{form}.txt"
    golden_files.check(file, here("queue", *name.split(), "--from", CLUSTER, "-o", form).out)


def test_names_of_queues_and_of_what_waits():
    queues = here("queue", "--from", CLUSTER, "-o", "name").out.split()
    assert queues == ["gpuqueue.berth.dev/research", "gpuqueue.berth.dev/vision"]
    assert here("queue", "vision", "--from", CLUSTER, "-o", "name").out == "vision/sweep-0\n"


def test_names_are_never_cut(tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal
    monkeypatch.setenv("COLUMNS", "40")
    long = "ip-10-0-123-45.us-west-2.compute.internal"
    dump = tmp_path / "d.yaml"
    dump.write_text((ROOT / CLUSTER).read_text().replace("name: h100-3\n", f"name: {long}\n"))
    for form in ("table", "wide"):
        out = here("nodes", "--from", str(dump), "-o", form).out
        assert long in out and "…" not in out
        assert all(line == line.rstrip() for line in out.splitlines())


def test_colour_stands_beside_words_only(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    first = here("check", "-f", "examples/pytorchjob.yaml", "--from", CLUSTER).out.splitlines()[0]
    assert first.startswith("\x1b[1;32mFITS NOW \x1b[0mresearch/llm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in here("nodes", "--from", CLUSTER).out.replace("\x1b[1m", "").replace("\x1b[0m", "").replace(
        "\x1b[2m", ""
    )


def waiting(created: str) -> str:
    return json.dumps(
        {
            "kind": "List",
            "apiVersion": "v1",
            "items": [
                {
                    "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
                    "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "1"}},
                },
                {
                    "apiVersion": "v1", "kind": "Pod",
                    "metadata": {"name": "a", "namespace": "ml", "creationTimestamp": created},
                    "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
                },
            ],
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("created", "told"),
    [
        ("2026-11-29T11:59:15Z", "waits 45 s"),
        ("2026-11-29T09:30:00Z", "waits 2 h 30 min"),
        ("2026-11-29T10:30:00+01:00", "waits 2 h 30 min"),
        ("2026-11-25T10:00:00Z", "waits 4 d 2 h"),
    ],
)
def test_the_clock_can_be_set(tmp_path, created, told):
    dump = tmp_path / "d.json"
    dump.write_text(waiting(created))
    assert told in here("why", "a", "--from", str(dump)).out.splitlines()[0]


def test_a_pod_of_the_future_does_not_wait(tmp_path):
    dump = tmp_path / "d.json"
    dump.write_text(waiting("2027-01-01T00:00:00Z"))
    assert "waits" not in here("why", "a", "--from", str(dump)).out


@pytest.mark.parametrize("now", ["yesterday", "12", "2026-13-01"])
def test_a_clock_that_cannot_be_read(monkeypatch, now):
    monkeypatch.setenv("BERTH_NOW", now)
    ran = here("nodes", "--from", CLUSTER)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"berth: BERTH_NOW: '{now}' is no time. Write it as 2026-01-31T12:00:00Z.\n"


COPIES = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: REPLICAS
  template: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: GPUS}}}]}}
"""


def copies(tmp_path, replicas: int, gpus: int, *more: str):
    job = tmp_path / "job.yaml"
    job.write_text(COPIES.replace("REPLICAS", str(replicas)).replace("GPUS", str(gpus)))
    return here("check", "-f", str(job), "--from", CLUSTER, *more)


def test_copies_that_are_refused_alike_share_one_block(tmp_path):
    ran = copies(tmp_path, 500, 8)
    blocks = ran.out.split("\n\n")
    assert ran.code == 1
    assert [b.split("\n")[0][:8] for b in blocks] == ["FITS NOW", "NOT YET "]
    assert blocks[1].rstrip().endswith("the same holds for 498 more workloads, up to default/web-499")
    assert len(json.loads(copies(tmp_path, 500, 8, "-o", "json").out)["answers"]) == 500


def test_large_numbers_are_written_out(tmp_path):
    assert "Deployment · 1 pod · 1,000,000 GPUs" in copies(tmp_path, 1, 1_000_000).out


def test_more_copies_than_are_looked_at(tmp_path):
    ran = copies(tmp_path, 100_001, 1)
    assert ran.code == 2
    assert "job.yaml: Deployment web: it asks for 100,001 independent pods, and 100,000 at most" in ran.err


def test_every_manifest_that_is_named_is_answered_for():
    pod, job = "examples/pod.yaml", "examples/llm-one-rack.yaml"
    for files in ((pod, job), (job, pod)):
        ran = here("check", "-f", files[0], "-f", files[1], "--from", CLUSTER, "-o", "json")
        assert ran.code == 1
        assert [one["workload"] for one in json.loads(ran.out)["answers"]] == [
            {pod: "research/notebook", job: "research/llm"}[file] for file in files
        ]


@pytest.mark.parametrize("option", ["--from", "--gpu-classes", "--topology"])
@pytest.mark.parametrize(
    "command", ["check -f examples/pod.yaml", "why finetune", "queue", "nodes", "free", "doctor", "ledger"]
)
def test_what_is_one_is_not_given_twice(command, option):
    if option != "--from" and command in ("doctor", "ledger"):
        return
    ran = here(*command.split(), option, CLUSTER, option, "other.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert f"'{option}': it was given 2 times ({CLUSTER}, other.yaml), and one is read." in ran.err
