"""Commands on a dump with NodeLedgers: what they say of nodes whose agents found something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden_files
import pytest
from cli_runs import here

from berth.model.cluster import Health
from berth.model.snapshot import Snapshot
from berth.sources.assemble import read_snapshot
from berth.views.metrics import Measures, Moment, exposition

GPU = "nvidia.com/gpu"
BEAT, OLD = "2026-11-29T12:00:00Z", "2026-11-29T11:00:00Z"
COMMANDS = {
    "health-nodes": "nodes",
    "health-nodes-wide": "nodes -o wide",
    "health-free": "free",
    "health-why": "why train",
    "health-check": "check -f {job}",
}


def node(name: str, allocatable: int = 8) -> dict[str, Any]:
    has = {"cpu": "192", "memory": "2Ti", "pods": "110"}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}},
        "status": {"capacity": {**has, GPU: "8"}, "allocatable": {**has, GPU: str(allocatable)}},
    }  # fmt: skip


def ledger(name: str, beat: str = BEAT, unfit: str = "", suspect: str = "", **status: Any) -> dict[str, Any]:
    devices: list[dict[str, Any]] = [{"index": g, "state": "Fit"} for g in range(8)]
    for state, code in (("Unfit", unfit), ("Suspect", suspect)):
        if code:
            devices[3] = {"index": 3, "state": state, "code": code}
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "NodeLedger", "metadata": {"name": name},
            "status": {"heartbeat": beat, "devices": devices, **status}}  # fmt: skip


def pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "ml", "labels": {"berth.dev/gang": "train"},
            "annotations": {"berth.dev/min-count": "6"}, "creationTimestamp": "2026-11-29T11:00:00Z",
        },
        "spec": {"schedulerName": "berth", "containers": [{"resources": {"limits": {GPU: "8"}}}]},
        "status": {"phase": "Pending"},
    }  # fmt: skip


OBJECTS = [
    node("fit"), node("withdrawn", 7), node("offered"), node("offered-too"), node("suspect"), node("broken"),
    node("silent"), node("no-agent"),
    ledger("fit", state="Fit"), ledger("withdrawn", unfit="Xid79", state="Suspect", code="Xid79"),
    ledger("offered", unfit="Xid79"), ledger("offered-too", unfit="RowRemapPending"),
    ledger("suspect", suspect="NvLinkFault", state="Suspect", code="NvLinkFault"),
    ledger("broken", state="Unfit", code="DriverAbsent"),
    ledger("silent", OLD, suspect="NvLinkFault"),
    *(pod(f"train-{n}") for n in range(6)),
]  # fmt: skip
JOB = {
    "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "eight", "namespace": "ml"},
    "spec": {"template": {"spec": {"containers": [{"name": "a", "resources": {"limits": {GPU: "8"}}}]}}},
}  # fmt: skip


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BERTH_NOW", "2026-11-29T13:00:00Z")
    (tmp_path / "job.json").write_text(json.dumps(JOB))
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
    return file


@pytest.mark.parametrize("name", COMMANDS)
def test_answers_are_as_somebody_has_read_them(name: str, dump: Path) -> None:
    ran = here(*COMMANDS[name].format(job="job.json").split(), "--from", dump.name)
    golden_files.check(f"cli/{name}.txt", ran.out + ran.err)


def test_records_carry_codes(dump: Path) -> None:
    nodes = {n["name"]: n for n in json.loads(here("nodes", "--from", dump.name, "-o", "json").out)["nodes"]}
    assert {name: (n["state"], n["code"], n["agent"]) for name, n in nodes.items()} == {
        "fit": ("ready", "", "heard"),
        "withdrawn": ("ready", "Xid79", "heard"),
        "offered": ("unfit", "Xid79", "heard"),
        "offered-too": ("unfit", "RowRemapPending", "heard"),
        "suspect": ("suspect", "NvLinkFault", "heard"),
        "broken": ("unfit", "DriverAbsent", "heard"),
        "silent": ("ready", "", "silent"),
        "no-agent": ("ready", "", ""),
    }
    (answer,) = json.loads(here("why", "train", "--from", dump.name, "-o", "json").out)["answers"]
    assert answer["nodes"] == {"Unfit": 3, "Suspect": 1, "Gpus": 1}
    assert answer["codes"] == {"DriverAbsent": 1, "NvLinkFault": 1, "RowRemapPending": 1, "Xid79": 1}
    (free,) = json.loads(here("free", "--from", dump.name, "-o", "json").out)["classes"]
    assert (free["gpus"], free["healthy"], free["unfit"], free["suspect"]) == (64, 39, 3, 8)


def test_metrics_count_what_agents_found(dump: Path) -> None:
    snapshot: Snapshot = read_snapshot(str(dump), now_s=0.0)
    assert {n.health for n in snapshot.nodes} == {Health.Fit, Health.Suspect, Health.Unfit}
    text = exposition(Measures(), Moment(snapshot=snapshot)).decode()
    for line in (
        'berth_gpus_unfit{gpu_class="H100-80GB"} 3.0', 'berth_gpus_suspect{gpu_class="H100-80GB"} 8.0',
        'berth_node_findings{code="Xid79",state="unfit"} 1.0', 'berth_node_findings{code="Xid79",state="usable"} 1.0',
        'berth_node_findings{code="NvLinkFault",state="suspect"} 1.0', 'berth_node_agents{state="silent"} 1.0',
        'berth_node_agents{state="absent"} 1.0', 'berth_node_agents{state="heard"} 6.0',
    ):  # fmt: skip
        assert line in text, line
