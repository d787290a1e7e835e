"""`berth why` by the names that people know: of owners above groups, and of jobs whose pods nobody has created."""

from __future__ import annotations

import json

import pytest
from cli_runs import here

GPU = "nvidia.com/gpu"
NODE = {
    "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "n"},
    "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110", GPU: "8"}},
}  # fmt: skip


def template(gpus: int) -> dict:
    return {"spec": {"containers": [{"name": "c", "resources": {"limits": {GPU: str(gpus)}}}]}}


def pod(name: str, owner: dict | None = None, annotations: dict | None = None, node: str = "", gpus: int = 1) -> dict:
    metadata = {"name": name, "namespace": "ml", "uid": name, "annotations": annotations or {}}
    if owner:
        metadata["ownerReferences"] = [{**owner, "controller": True}]
    spec = {**template(gpus)["spec"], **({"nodeName": node} if node else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def job(name: str, **spec) -> dict:
    whole = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": template(8), **spec}
    metadata = {"name": name, "namespace": "ml", "uid": name, "creationTimestamp": "2026-11-29T11:00:00Z"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": whole}


def why(tmp_path, monkeypatch, name: str, *things: dict, namespace: str = "") -> tuple[int, dict, str]:
    monkeypatch.setenv("BERTH_NOW", "2026-11-29T12:00:00Z")
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, *things]}))
    more = ("-n", namespace) if namespace else ()
    ran = here("why", name, "--from", str(dump), "-o", "json", *more)
    return ran.code, json.loads(ran.out) if ran.out else {}, ran.err


VOLCANO_JOB = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "mpi", "uid": "mpi"}
GROUP = {
    "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
    "metadata": {"name": "mpi-0815", "namespace": "ml"}, "spec": {"minMember": 2},
}  # fmt: skip
IN_GROUP = {"scheduling.k8s.io/group-name": "mpi-0815"}


@pytest.mark.parametrize("name", ["mpi", "ml/mpi", "job/mpi", "jobs/mpi", "mpi-0815"])
def test_a_group_is_found_by_its_job(tmp_path, monkeypatch, name):
    pods = [pod(f"mpi-{i}", VOLCANO_JOB, IN_GROUP, gpus=4) for i in range(2)]
    code, said, _ = why(tmp_path, monkeypatch, name, GROUP, *pods)
    assert code == 0
    assert [a["workload"] for a in said["answers"]] == ["ml/mpi-0815"]


def test_an_owner_in_another_namespace_is_not_meant(tmp_path, monkeypatch):
    pods = [pod(f"mpi-{i}", VOLCANO_JOB, IN_GROUP) for i in range(2)]
    code, _, err = why(tmp_path, monkeypatch, "mpi", GROUP, *pods, namespace="other")
    assert code == 2
    assert "no workload or pod 'mpi' in namespace other. Close to it: " in err and "mpi" in err


def test_an_owner_of_many_answers_with_the_first_and_those_that_wait_before_those_that_run(tmp_path, monkeypatch):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}
    pods = [pod("web-a", owner, node="n"), *(pod(f"web-{i}", owner, gpus=9) for i in range(4))]
    code, said, _ = why(tmp_path, monkeypatch, "web", *pods)
    assert code == 1
    assert [a["workload"] for a in said["answers"]] == ["ml/web-0", "ml/web-1", "ml/web-2"]
    assert said["notes"][0] == "web owns 5 workloads; the first 3 are answered"


@pytest.mark.parametrize("name", ["big", "ml/big", "job/big"])
def test_a_suspended_job_waits_for_who_suspended_it(tmp_path, monkeypatch, name):
    code, said, _ = why(tmp_path, monkeypatch, name, job("big", suspend=True))
    answer = said["answers"][0]
    assert (code, answer["workload"], answer["reason"]) == (1, "ml/big", "Gated")
    assert (answer["pods"], answer["gpus"], answer["where"]) == (2, 16.0, "spec.suspend")
    assert answer["sentence"] == "it is suspended: spec.suspend is true"
    assert answer["unlock"] == ["whoever set spec.suspend makes it false"]


def test_suspended_jobs_that_wait_for_nothing(tmp_path, monkeypatch):
    done = {**job("done", suspend=True), "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    above = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "set", "namespace": "ml"},
             "spec": {"replicatedJobs": [{"name": "w", "template": {"spec": job("x")["spec"]}}]}}  # fmt: skip
    child = job("child", suspend=True)
    child["metadata"]["ownerReferences"] = [
        {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "set", "uid": "s", "controller": True}
    ]
    for name in ("done", "child", "free"):
        assert why(tmp_path, monkeypatch, name, done, above, child, job("free", suspend=False))[0] == 2


def test_a_suspended_job_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    code, said, err = why(tmp_path, monkeypatch, "a", pod("a"), job("odd", suspend=True, parallelism="two"))
    assert code == 0
    assert any("Job ml/odd: spec.parallelism" in note for note in said["notes"])
    assert err == ""
