"""What a dump says of who may be asked to leave: how gangs leave, grace, checkpoints, budgets, who never preempts."""

from __future__ import annotations

import json

import pytest
from dump_objects import NODE, as_list, pod, read, write

from berth.model.budget import Budget
from berth.model.workload import LabelSelector, Requirement
from berth.sources.inventory import seconds

GROUPS = {
    "scheduling.k8s.io/v1beta1": ("spec", {"schedulingGroup": {"podGroupName": "g"}}),
    "scheduling.volcano.sh/v1beta1": ("annotations", {"scheduling.k8s.io/group-name": "g"}),
}


@pytest.fixture
def snapshot(tmp_path):
    def made(*things):
        return read(write(tmp_path, "d.json", json.dumps(as_list(list(things)))))

    return made


def group(api: str, **spec) -> dict:
    meta = {"name": "g", "namespace": "train", "uid": "uid-g"}
    return {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": spec}


def member(api: str, name: str, node: str | None = "gpu-1") -> dict:
    place, keys = GROUPS[api]
    found = pod(name, node)
    (found["spec"] if place == "spec" else found["metadata"]["annotations"]).update(keys)
    return found


def gang(snapshot, api: str, **spec) -> tuple:
    found = snapshot(NODE, group(api, **spec), member(api, "a"), member(api, "b"), member(api, "c", None))
    return found.allocations, found.workloads[0]


UPSTREAM, VOLCANO = GROUPS
POLICY = {"schedulingPolicy": {"gang": {"minCount": 2}}}


@pytest.mark.parametrize(("mode", "disruption"), [({}, "single"), ({"single": {}}, "single"), ({"all": {}}, "all")])
def test_a_pod_group_of_kubernetes_says_how_its_pods_leave(snapshot, mode, disruption):
    held, waits = gang(snapshot, UPSTREAM, **POLICY, **({"disruptionMode": mode} if mode else {}))
    assert {(a.disruption, a.gang_minimum) for a in held} == {(disruption, 0)}
    assert waits.disruption == disruption


def test_a_gang_of_another_dialect_keeps_its_minimum_or_goes_whole(snapshot):
    held, _ = gang(snapshot, VOLCANO, minMember=2)
    assert {(a.disruption, a.gang_minimum) for a in held} == {("all", 2)}


def test_what_a_template_says_holds_where_its_pod_group_is_silent(snapshot):
    template = {"name": "t", **POLICY, "disruptionMode": {"all": {}}, "preemptionPolicy": "Never"}
    meta = {"name": "w", "namespace": "train"}
    workload = {
        "apiVersion": UPSTREAM, "kind": "Workload", "metadata": meta, "spec": {"podGroupTemplates": [template]},
    }  # fmt: skip
    silent = group(UPSTREAM, workloadRef={"workloadName": "w", "templateName": "t"})
    found = snapshot(NODE, workload, silent, member(UPSTREAM, "a"), member(UPSTREAM, "c", None))
    assert found.allocations[0].disruption == "all"
    assert not found.workloads[0].preempts


def test_a_group_states_its_priority_as_a_number(snapshot):
    held, waits = gang(snapshot, UPSTREAM, **POLICY, priority=-7)
    assert {a.priority for a in held} == {-7} and waits.priority == -7


def test_a_workload_is_known_by_kind_and_uid(snapshot):
    _, waits = gang(snapshot, UPSTREAM, **POLICY)
    assert (waits.identity, waits.key, waits.uid) == ("PodGroup train/g", "train/g", "uid-g")
    assert waits.api_version == UPSTREAM
    alone = snapshot(NODE, pod("x", None)).workloads[0]
    assert (alone.identity, alone.uid, alone.api_version) == ("Pod train/x", "uid-x", "v1")


def test_a_job_and_a_pod_group_of_one_name_are_two_workloads(snapshot):
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "g", "namespace": "train", "uid": "uid-job"},
        "spec": {"parallelism": 2, "completions": 2, "completionMode": "Indexed",
                 "template": {"spec": {"containers": [{"name": "c"}]}}},
    }  # fmt: skip
    mine = pod("j", None)
    mine["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "g", "uid": "uid-job", "controller": True}
    ]
    found = snapshot(NODE, job, group(VOLCANO, minMember=1), member(VOLCANO, "a", None), mine)
    assert {(w.identity, w.uid) for w in found.workloads} == {("PodGroup train/g", "uid-g"), ("Job train/g", "uid-job")}


def test_a_pod_that_is_being_deleted_holds_its_place_until_it_is_gone(snapshot):
    going = pod("a")
    going["metadata"].update(deletionTimestamp="2026-11-29T12:00:00Z", deletionGracePeriodSeconds=600)
    going["spec"]["terminationGracePeriodSeconds"] = 600
    found = snapshot(NODE, going, pod("b")).allocations
    assert [(a.is_ending, a.ends_s, a.grace_s) for a in found] == [
        (True, seconds("2026-11-29T12:00:00Z"), 600), (False, 0.0, 30.0),
    ]  # fmt: skip
    assert found[0].uid == "uid-a" and not found[0].is_controlled


def test_the_last_checkpoint_is_the_pods_or_its_owners(snapshot):
    key, own, owners = "berth.dev/last-checkpoint", "2026-11-29T11:00:00Z", "2026-11-29T10:30:00Z"
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "train", "annotations": {key: owners, "berth.dev/min-runtime": "2h",
                     "berth.dev/preemptible": "false", "berth.dev/checkpoint-every": "30m",
                     "berth.dev/time-limit": "1d"}},
        "spec": {"parallelism": 3, "completions": 3, "template": {"spec": {"containers": [{"name": "c"}]}}},
    }  # fmt: skip
    pods = [pod("a"), pod("b"), pod("c")]
    for one in pods:
        one["metadata"]["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
        ]
    pods[1]["metadata"]["annotations"][key] = own
    pods[2]["metadata"]["annotations"][key] = "yesterday"
    a, b, c = snapshot(NODE, job, *pods).allocations
    assert (a.last_checkpoint_s, b.last_checkpoint_s, c.last_checkpoint_s) == (seconds(owners), seconds(own), 0.0)
    assert a.is_controlled and a.preemptible is False
    assert (a.min_runtime_s, a.checkpoint_every_s, a.time_limit_s) == (7200, 1800, 86400)


@pytest.mark.parametrize(("priority", "preemptible"), [(50, True), (100, False)])
def test_kai_protects_from_a_priority_of_100_up(snapshot, priority, preemptible):
    one = pod("a")
    one["spec"].update(schedulerName="kai-scheduler", priority=priority)
    assert snapshot(NODE, one).allocations[0].preemptible is preemptible


def test_who_never_preempts(snapshot):
    polite, by_class, pushy = pod("a", None), pod("b", None), pod("c", None)
    polite["spec"].update(priority=5, preemptionPolicy="Never")
    by_class["spec"].update(priority=5, priorityClassName="patient")
    pushy["spec"].update(priority=5, preemptionPolicy="PreemptLowerPriority")
    patient = {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "patient"}, "value": 5,
        "preemptionPolicy": "Never",
    }  # fmt: skip
    found = snapshot(NODE, patient, polite, by_class, pushy).workloads
    assert {w.name: w.preempts for w in found} == {"a": False, "b": False, "c": True}


def budget(name: str, spec: dict, status: dict | None) -> dict:
    found = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec,
             "metadata": {"name": name, "namespace": "train"}}  # fmt: skip
    return found if status is None else {**found, "status": status}


def test_budgets_are_read_with_what_they_allow_now(snapshot):
    by_label = {"selector": {"matchLabels": {"app": "web"}}}
    by_word = {"selector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}
    found = snapshot(
        NODE,
        budget("two", by_label, {"disruptionsAllowed": 2}),
        budget("not-counted-yet", by_word, None),
        budget("everything", {"selector": {}}, {"disruptionsAllowed": -1}),
        budget("nothing", {}, {"disruptionsAllowed": 1}),
        budget("odd", {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}, {}),
    )
    assert set(found.budgets) == {
        Budget("train", "two", LabelSelector((("app", "web"),)), 2),
        Budget("train", "not-counted-yet", LabelSelector(expressions=(Requirement("tier", "Exists"),)), 0),
        Budget("train", "everything", LabelSelector(), 0),
    }
