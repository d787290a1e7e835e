"""Pods whose owner has not been heard of: they wait for it, not for ever, and not for what we do not hear of."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from berth.kube import wire
from berth.model.reasons import Reason
from berth.model.workload import Unmet
from berth.scheduling.cycle import cycle
from berth.sources.live.unheard import BEHIND_S, FOR_EVER, PATIENCE_S
from berth.sources.live.world import World

Object = dict[str, Any]

GROUPS = {
    "Job": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2", "ReplicaSet": "apps/v1", "Deployment": "apps/v1",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1", "StatefulSet": "apps/v1",
}  # fmt: skip
# What a cluster follows, for how long an owner of it is waited for.
FOLLOWED = {(api.rpartition("/")[0], kind): PATIENCE_S for kind, api in GROUPS.items()}
TEMPLATE = {"spec": {"containers": [{"name": "c"}]}}
INDEXED = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": TEMPLATE}


def ref(owner: Object) -> Object:
    meta = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
            "controller": True}  # fmt: skip


def owner(kind: str, name: str, spec: Object, above: Object | None = None, uid: str = "") -> Object:
    meta: Object = {"name": name, "namespace": "a", "uid": uid or f"{kind}-{name}"}
    if above is not None:
        meta["ownerReferences"] = [ref(above)]
    return {"apiVersion": GROUPS[kind], "kind": kind, "metadata": meta, "spec": spec}


def pod(name: str, of: Object, labels: Object | None = None, annotations: Object | None = None) -> wire.Pod:
    meta = {"name": name, "namespace": "a", "uid": name, "ownerReferences": [ref(of)], "labels": labels or {},
            "annotations": annotations or {}}  # fmt: skip
    spec = {"schedulerName": "berth", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}, wire.Pod)


def world(*pods: wire.Pod, patience: dict[tuple[str, str], float] | None = None) -> World:
    made = World({"berth"})
    known = FOLLOWED if patience is None else patience
    made.unheard.patience_s = lambda group, kind: known.get((group, kind), 0.0)
    for one in pods:
        made.put_pod(one)
    return made


def waiting(of: World, now_s: float = 100.0) -> dict[str, int]:
    """Pods to be decided on, the missing ones too, by workload."""
    return {w.identity: w.pod_count for w in of.snapshot(now_s).workloads}


def copied(thing: Object) -> Object:
    found: Object = msgspec.json.decode(msgspec.json.encode(thing))
    return found


HAS = {"nvidia.com/gpu": "8", "cpu": "64", "memory": "512Gi", "pods": "110"}
NODE = msgspec.convert({"metadata": {"name": "n0"}, "status": {
    "capacity": HAS, "allocatable": HAS, "conditions": [{"type": "Ready", "status": "True"}]}}, wire.Node)  # fmt: skip
JOB = owner("Job", "pair", INDEXED)
JOBSET = owner("JobSet", "train", {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": INDEXED}}]})
OF_JOBSET = owner("Job", "train-w-0", INDEXED, JOBSET)
DEPLOYMENT = owner("Deployment", "serve", {"replicas": 2, "template": TEMPLATE})
OF_DEPLOYMENT = owner("ReplicaSet", "serve-1", {"replicas": 2, "template": TEMPLATE}, DEPLOYMENT)
LWS = owner("LeaderWorkerSet", "llm", {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": TEMPLATE}})
OF_LWS = owner("StatefulSet", "llm", {"replicas": 1, "template": TEMPLATE}, LWS)
IN_LWS = {"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/group-index": "0"}
OF_A_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "llm-0", "uid": "leader"}}


@pytest.mark.parametrize(
    ("owners", "labels", "whole"),
    [
        ([JOB], {}, {"Job a/pair": 2}),
        ([OF_JOBSET, JOBSET], {}, {"JobSet a/train": 4}),
        ([JOBSET, OF_JOBSET], {"jobset.sigs.k8s.io/jobset-name": "train"}, {"JobSet a/train": 4}),
        ([OF_DEPLOYMENT, DEPLOYMENT], {}, {"Pod a/p": 1}),
        ([OF_LWS, LWS], IN_LWS, {"LeaderWorkerSet a/llm-0": 2}),
    ],
    ids=["Job", "JobSet-Job", "JobSet by label", "Deployment-ReplicaSet", "LeaderWorkerSet"],
)
def test_a_pod_waits_until_every_owner_above_it_has_been_seen(
    owners: list[Object], labels: Object, whole: dict[str, int]
) -> None:
    nearest = min(owners, key=lambda one: one["kind"] in ("JobSet", "Deployment", "LeaderWorkerSet"))
    w = world(pod("p", nearest, labels))
    for one in owners:
        assert waiting(w) == {}
        w.put_object(copied(one))
    assert waiting(w) == whole
    assert w.changes_by_itself_s == float("inf")
    assert not any(each.findings for each in w.snapshot(100.0).workloads)


def test_a_group_that_leaves_its_numbers_to_a_workload_waits_for_that_too() -> None:
    """Each of them alone says that one pod is enough."""
    api = {"apiVersion": "scheduling.k8s.io/v1beta1"}
    templates = [{"name": "t", "schedulingPolicy": {"gang": {"minCount": 2}}}]
    workload = {**api, "kind": "Workload", "metadata": {"name": "w", "namespace": "a"},
                "spec": {"podGroupTemplates": templates}}  # fmt: skip
    group = {**api, "kind": "PodGroup", "metadata": {"name": "g", "namespace": "a"},
             "spec": {"workloadRef": {"workloadName": "w", "templateName": "t"}}}  # fmt: skip
    w = world(patience={("scheduling.k8s.io", "Workload"): PATIENCE_S})
    spec = {"schedulerName": "berth", "schedulingGroup": {"podGroupName": "g"},
            "containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]}  # fmt: skip
    made = {"metadata": {"name": "p", "namespace": "a", "uid": "p"}, "spec": spec, "status": {"phase": "Pending"}}
    w.put_pod(msgspec.convert(made, wire.Pod))
    assert [each.unmet for each in w.snapshot(100.0).workloads] == [
        (Unmet("PodGroup a/g (scheduling.k8s.io) does not exist yet", "PodGroup a/g created"),)
    ]
    w.put_object(group)
    assert waiting(w) == {}
    w.put_object(workload)
    assert waiting(w) == {"PodGroup a/g": 2}


def test_an_owner_that_comes_wakes_who_decides() -> None:
    w = world(pod("p", JOB))
    assert waiting(w) == {}
    woken: list[int] = []
    w.on_change = lambda: woken.append(1)
    w.put_object(copied(JOB))
    assert woken


def test_the_wait_is_bounded_and_then_the_doubt_is_told(caplog: pytest.LogCaptureFixture) -> None:
    w = world(pod("p-0", JOB), pod("p-1", JOB))
    assert waiting(w, 100.0) == {}
    assert 100.0 < w.changes_by_itself_s <= 100.0 + PATIENCE_S
    assert waiting(w, 99.9 + PATIENCE_S) == {}
    with caplog.at_level(logging.WARNING):
        assert waiting(w, 100.0 + PATIENCE_S) == {"Pod a/p-0": 1, "Pod a/p-1": 1}
    assert [record.object for record in caplog.records] == ["Job a/pair (batch)"]  # type: ignore[attr-defined]
    for each in w.snapshot(100.0 + PATIENCE_S).workloads:
        (doubt,) = each.findings
        assert doubt.startswith("Job a/pair (batch), which its pods belong to, has not been seen")
    assert w.changes_by_itself_s == float("inf")
    # Who names the same owner later does not wait again, as long as others do ...
    w.put_pod(pod("p-2", JOB))
    assert len(waiting(w, 106.0)) == 3
    # ... and when it comes after all, the doubt goes.
    w.put_object(copied(JOB))
    (job,) = w.snapshot(107.0).workloads
    assert job.identity == "Job a/pair" and not job.findings


def test_a_watch_that_is_known_to_be_behind_is_waited_for_longer() -> None:
    patience = {("batch", "Job"): BEHIND_S}
    w = world(pod("p", JOB), patience=patience)
    assert waiting(w, 100.0) == {}
    assert waiting(w, 100.0 + 2 * PATIENCE_S) == {}
    assert w.changes_by_itself_s <= 101.0 + 2 * PATIENCE_S, "it is looked at again whether it stands"
    patience["batch", "Job"] = PATIENCE_S
    assert waiting(w, 101.0 + 2 * PATIENCE_S) == {"Pod a/p": 1}


def test_what_nobody_follows_or_may_read_is_not_waited_for() -> None:
    workflow = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w", "uid": "w"}}
    assert waiting(world(pod("p", workflow))) == {"Pod a/p": 1}
    assert waiting(world(pod("p", OF_A_POD))) == {"Pod a/p": 1}
    assert waiting(world(pod("p", JOB), patience={})) == {"Pod a/p": 1}
    patience = dict(FOLLOWED)
    w = world(pod("p", JOB), patience=patience)
    assert waiting(w) == {}
    patience["batch", "Job"] = 0.0  # the right was taken away
    assert waiting(w, 101.0) == {"Pod a/p": 1}


def test_pods_whose_owner_may_not_be_seen_wait_for_the_right_and_it_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """Alone each of them would be bound as if nobody belonged with it."""
    patience, needed = {("batch", "Job"): FOR_EVER}, {("batch", "Job"): "get, list, watch on jobs.batch"}
    with caplog.at_level(logging.WARNING):
        w = world(pod("p", JOB), patience=patience)
        w.put_node(NODE)
        w.unheard.needs = lambda group, kind: needed.get((group, kind), "")
        w.snapshot(100.0)
    assert [record.needs for record in caplog.records] == ["get, list, watch on jobs.batch"]  # type: ignore[attr-defined]
    for now_s in (100.0, 1e6):
        plan = cycle(w.snapshot(now_s))
        assert not len(plan.node)
        (verdict,) = plan.verdicts.values()
        assert verdict.causes[0].reason is Reason.WaitingForOwner
        assert verdict.causes[0].sentence == (
            "Job a/pair has not been seen: Berth needs get, list, watch on jobs.batch"
        )
    assert w.changes_by_itself_s < 1e6 + 60, "it is looked at again whether the right has been given"
    # The right is given: the Job has its time to show itself.
    patience["batch", "Job"] = PATIENCE_S
    needed.clear()
    assert waiting(w, 1e6 + 60) == {}
    w.put_object(copied(JOB))
    assert waiting(w, 1e6 + 61) == {"Job a/pair": 2}
    assert not any(each.unmet or each.findings for each in w.snapshot(1e6 + 61).workloads)


def test_a_right_that_is_taken_away_while_an_owner_is_waited_for_is_told() -> None:
    patience = dict(FOLLOWED)
    w = world(pod("p", JOB), patience=patience)
    assert waiting(w, 100.0) == {}
    patience["batch", "Job"] = FOR_EVER
    w.unheard.needs = lambda group, kind: "get, list, watch on jobs.batch"
    (kept,) = w.snapshot(103.0).workloads
    assert kept.unmet and not kept.findings
    w.drop_pod(("a", "p"))
    assert waiting(w, 104.0) == {}
    assert w.changes_by_itself_s == float("inf"), "nothing is remembered"


def test_an_owner_above_one_that_says_the_size_is_no_reason_to_wait_but_it_is_told() -> None:
    patience = {("batch", "Job"): PATIENCE_S}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c", "uid": "c"}}
    job = owner("Job", "pair", INDEXED, cron)
    w = world(pod("p", job), patience=patience)
    w.unheard.needs = lambda group, kind: "get, list, watch on cronjobs.batch" if kind == "CronJob" else ""
    w.put_object(job)
    (made,) = w.snapshot(100.0).workloads
    assert made.identity == "Job a/pair" and not made.unmet
    assert made.findings == (
        "CronJob a/c (batch), which its pods belong to, may not be seen (Berth needs get, list, watch on "
        "cronjobs.batch): they were taken for what they look like.",
    )


def test_an_owner_that_was_made_anew_under_its_name_is_not_the_one_that_we_know() -> None:
    w = world()
    w.put_object(owner("Job", "pair", {**INDEXED, "parallelism": 1, "completions": 1}, uid="before"))
    w.put_pod(pod("p", JOB))
    assert waiting(w) == {}
    w.put_object(copied(JOB))
    assert waiting(w) == {"Job a/pair": 2}


def test_pods_of_an_owner_that_was_deleted_are_not_started_before_they_are_deleted_too() -> None:
    w = world(pod("p", JOB))
    w.put_object(copied(JOB))
    assert waiting(w) == {"Job a/pair": 2}
    w.drop_object(("batch", "Job", "a", "pair"))
    assert waiting(w, 101.0) == {}
    w.drop_pod(("a", "p"))
    assert waiting(w, 101.1) == {}
    assert w.changes_by_itself_s == float("inf"), "nothing is remembered"


def test_an_owner_that_is_named_again_is_waited_for_anew() -> None:
    w = world(pod("p", JOB))
    assert waiting(w, 100.0) == {}
    assert waiting(w, 105.0) == {"Pod a/p": 1}
    w.drop_pod(("a", "p"))
    assert waiting(w, 106.0) == {}
    w.put_pod(pod("q", JOB))
    assert waiting(w, 107.0) == {}


def test_pods_that_run_wait_for_nobody() -> None:
    w = world(pod("p", JOB))
    runs = pod("q", JOB)
    w.put_pod(msgspec.structs.replace(runs, spec=msgspec.structs.replace(runs.spec, node_name="n0")))
    assert waiting(w) == {}
    assert [each.name for each in w.snapshot(100.0).allocations] == ["q"]
