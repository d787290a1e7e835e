"""What if: who would be asked to leave, told by check and why without anybody leaving."""

from __future__ import annotations

import json

import pytest
from cli_runs import here

NODE = """
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {
    capacity: {cpu: "64", memory: 256Gi, pods: "110", nvidia.com/gpu: "8"},
    allocatable: {cpu: "64", memory: 256Gi, pods: "110", nvidia.com/gpu: "8"},
    conditions: [{type: Ready, status: "True"}]}}
"""
CLASSES = """
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: patient}, value: 1000,
   preemptionPolicy: Never}
"""
POD = """
- apiVersion: v1
  kind: Pod
  metadata: {name: %s, namespace: lab, creationTimestamp: "%s", ownerReferences: [
    {apiVersion: apps/v1, kind: ReplicaSet, name: low, uid: u1, controller: true}]}
  spec: {nodeName: n1, priority: 0, schedulerName: berth, containers: [
    {name: main, resources: {limits: {nvidia.com/gpu: "4"}}}]}
  status: {phase: Running, startTime: "%s"}
"""
JOB = """
apiVersion: v1
kind: Pod
metadata: {name: urgent, namespace: lab}
spec: {schedulerName: berth, priorityClassName: %s, containers: [
  {name: main, image: x, resources: {limits: {nvidia.com/gpu: "4"}}}]}
"""


@pytest.fixture
def ask(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTH_NOW", "2026-11-29T12:00:00Z")

    def ask(priority_class, classes=CLASSES):
        began = ("2026-11-29T08:00:00Z", "2026-11-29T10:00:00Z")
        pods = "".join(POD % (f"low-{i}", at, at) for i, at in enumerate(began, 1))
        (tmp_path / "dump.yaml").write_text(f"apiVersion: v1\nkind: List\nitems:\n{NODE}{classes}{pods}")
        (tmp_path / "job.yaml").write_text(JOB % priority_class)
        files = ("-f", str(tmp_path / "job.yaml"), "--from", str(tmp_path / "dump.yaml"))
        ran = here("check", *files, "-o", "json")
        assert ran.code == 1
        (answer,) = json.loads(ran.out)["answers"]
        return answer, json.loads(ran.out)["notes"]

    return ask


def test_the_cheapest_to_leave_is_named_and_the_answer_stays_not_yet(ask):
    answer, _ = ask("high")
    assert (answer["verdict"], answer["reason"], answer["placement"]) == ("NotYet", "NotEnoughGpus", [])
    assert answer["wouldLeave"] == [{"pod": "lab/low-2", "node": "n1", "gpuHours": 8.0}]
    assert answer["remarks"] == [
        "It would start by making room: 1 pod of lower priority would be asked to leave (lab/low-2); "
        "8.0 GPU-hours of work would be lost."
    ]


def test_nobody_leaves_for_who_never_preempts(ask):
    answer, notes = ask("patient")
    assert (answer["wouldLeave"], answer["remarks"], notes) == ([], [], [])


def test_a_priority_class_that_was_not_seen_is_told(ask):
    answer, notes = ask("high", classes="")
    assert answer["wouldLeave"] == []
    assert notes == ["PriorityClass high was not seen: priority 0 was taken"]


QUEUES = """
- {apiVersion: berth.dev/v1alpha1, kind: GPUQueue, metadata: {name: ours}, spec: {quota: {"*": 4}, namespaces: [lab]}}
- {apiVersion: berth.dev/v1alpha1, kind: GPUQueue, metadata: {name: theirs},
   spec: {quota: {"*": 2}, namespaces: [other], preemptible: true}}
"""


def test_who_is_owed_it_takes_it_back_from_who_holds_more(tmp_path):
    theirs = "".join(POD % (f"low-{i}", "2026-11-29T08:00:00Z", "2026-11-29T08:00:00Z") for i in (1, 2))
    theirs = theirs.replace("namespace: lab", "namespace: other")
    (tmp_path / "dump.yaml").write_text(f"apiVersion: v1\nkind: List\nitems:\n{NODE}{QUEUES}{theirs}")
    (tmp_path / "job.yaml").write_text((JOB % "none").replace("priorityClassName: none, ", ""))
    ran = here("check", "-f", str(tmp_path / "job.yaml"), "--from", str(tmp_path / "dump.yaml"), "-o", "json")
    (answer,) = json.loads(ran.out)["answers"]
    assert [one["pod"].rpartition("-")[0] for one in answer["wouldLeave"]] == ["other/low"]
    assert "1 pod of queues that hold more than they are due would be asked to leave" in answer["remarks"][-1]


def test_work_of_which_nobody_says_when_it_began_has_no_number(tmp_path):
    theirs = (POD % ("low-1", "x", "y")).replace(', creationTimestamp: "x"', "").replace(', startTime: "y"', "")
    (tmp_path / "dump.yaml").write_text(f"apiVersion: v1\nkind: List\nitems:\n{NODE}{CLASSES}{theirs}")
    (tmp_path / "job.yaml").write_text((JOB % "high").replace('nvidia.com/gpu: "4"', 'nvidia.com/gpu: "8"'))
    ran = here("check", "-f", str(tmp_path / "job.yaml"), "--from", str(tmp_path / "dump.yaml"), "-o", "json")
    (answer,) = json.loads(ran.out)["answers"]
    assert [one["gpuHours"] for one in answer["wouldLeave"]] == [None]
    assert "nobody says since when they run" in answer["remarks"][-1]
