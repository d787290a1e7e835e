"""`berth check` of jobs with volumes: claims that are there, and those that come with the pod, decide as they will."""

from __future__ import annotations

import json

import pytest
from cli_runs import here
from storage_objects import EBS, LOCAL, NODES, ZONE, claim, csi_node, local, node, pod, storage_class, volume

LIMITS = (csi_node("n1", ebs_csi_aws_com=25), csi_node("n2", ebs_csi_aws_com=25))


@pytest.fixture
def check(tmp_path):
    """The answer to a job on a cluster: (exit code, answer, notes)."""

    def run(job, *things, arguments="-n a"):
        (tmp_path / "job.json").write_text(json.dumps(job))
        (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(things)}))
        ran = here("check", "-f", str(tmp_path / "job.json"), "--from", str(tmp_path / "dump.json"), "-o", "json",
                   *arguments.split())  # fmt: skip
        said = json.loads(ran.out)
        return ran.code, said["answers"][0], [note for note in said["notes"] if "pods" not in note]

    return run


def on(answer):
    return [place["node"] for place in answer["placement"]]


def asking(*claims, ephemeral=None):
    job = pod("job", *claims)
    del job["metadata"]["uid"], job["status"], job["metadata"]["namespace"]
    if ephemeral is not None:
        job["spec"]["volumes"].append({"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": ephemeral}}})
    return job


def test_a_claim_that_is_there_says_where_the_job_may_run(check):
    bound = volume("v", driver=EBS, on="b", key=ZONE, of="data")
    things = (*NODES, *LIMITS, claim("data", volume="v"), bound, storage_class("s"))
    code, answer, notes = check(asking("data"), *things)
    assert (code, on(answer), notes) == (0, ["n2"], [])
    code, answer, _ = check(asking("data"), *things, arguments="-n elsewhere")
    assert code == 0 and on(answer) == ["n1"]  # no claim of that name there


def test_a_claim_that_waits_for_its_first_consumer_is_no_reason_to_wait(check):
    things = (*NODES, *LIMITS, claim("data", "s"), storage_class("s", zones=("b",)), volume("other"))
    code, answer, notes = check(asking("data"), *things)
    assert (code, on(answer), notes) == (0, ["n2"], [])


def test_a_claim_that_comes_with_the_pod(check):
    things = (*NODES, *LIMITS, LOCAL, local("v", "n2"), claim("other"))
    asked = {"requests": {"storage": "5Gi"}}
    spec = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"], "resources": asked}
    code, answer, notes = check(asking(ephemeral=spec), *things)
    assert (code, on(answer), notes) == (0, ["n2"], [])
    large = {**spec, "resources": {"requests": {"storage": "5Ti"}}}
    code, answer, _ = check(asking(ephemeral=large), *things)
    assert code == 1 and answer["reason"] == "NotEnoughResources"


def test_the_default_class(check):
    default = storage_class("s", zones=("b",))
    default["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}
    _, answer, notes = check(asking(ephemeral=spec), *NODES, *LIMITS, default, claim("other"), volume("other"))
    assert on(answer) == ["n2"] and notes == []


@pytest.mark.parametrize("job", [asking("nobody-made-it"), asking(ephemeral={"storageClassName": "at-once"}),
                                 asking(ephemeral={"storageClassName": 7})])  # fmt: skip
def test_what_nobody_can_know_is_told(check, job):
    things = (*NODES, *LIMITS, storage_class("at-once", waits=False), claim("other"), volume("other"))
    code, _, notes = check(job, *things)
    assert (code, notes) == (0, ["job mounts volume claims: where their volumes are was not considered"])


def test_a_claim_without_a_volume_is_waited_for(check):
    things = (*NODES, *LIMITS, storage_class("at-once", waits=False), claim("data", "at-once"), volume("other"))
    code, answer, _ = check(asking("data"), *things)
    assert (code, answer["verdict"], answer["reason"]) == (1, "NotYet", "WaitingForVolume")


def test_why_of_a_pod_that_waits(tmp_path):
    things = (node("n1"), *LIMITS, storage_class("s"), claim("c", "s"), volume("other"), pod("p", "c"))
    (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(things)}))
    ran = here("why", "a/p", "--from", str(tmp_path / "dump.json"))
    assert ran.code == 0 and ran.out.startswith("FITS NOW a/p"), ran.out
