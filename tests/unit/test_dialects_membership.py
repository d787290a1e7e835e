"""Which workload a pod of a dump belongs to, and how far that workload has come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from berth.dialects.membership import (
    Membership,
    Memberships,
    OwnerRef,
    PodFacts,
    Standing,
    index,
    membership_of,
    merged,
    standings,
)
from berth.model.workload import TopologyWish

TEMPLATE = {"spec": {"containers": [{"name": "c"}]}}


def thing(kind: str, name: str, spec: Mapping[str, Any], api: str, owner: OwnerRef | None = None, **meta: Any) -> Any:
    metadata: dict[str, Any] = {"name": name, "namespace": "ml", **meta}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "controller": True}
        ]
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def ref(kind: str, name: str, api: str) -> OwnerRef:
    return OwnerRef(api, kind, name, "u", True)


def pod(
    name: str = "p", *, owner: OwnerRef | None = None, group: str = "", bound: bool = False, **keys: str
) -> PodFacts:
    """Keys with a value that begins with `@` are annotations, all others labels; `__` is `/`, `_` is as is."""
    labels = {k: v for k, v in keys.items() if not v.startswith("@")}
    annotations = {k: v[1:] for k, v in keys.items() if v.startswith("@")}
    return PodFacts(name, "ml", labels, annotations, (owner,) if owner else (), group, "berth", "", bound)


def of(facts: PodFacts, *objects: Any) -> Membership:
    return membership_of(facts, index(objects))


def needs(m: Membership) -> list[tuple[str, int, int]]:
    return [(s.name, s.count, s.min_count) for s in m.sets]


def progress(m: Membership, *pods: tuple[PodFacts, str]) -> list[tuple[str, int, int, int, int]]:
    return [(s.name, s.waiting, s.bound, s.missing, s.min_count) for s in standings(m, pods)]


# ---- alone


def test_a_bare_pod_stands_alone() -> None:
    m = of(pod("solo"))
    assert (m.kind, m.key, needs(m), m.minimum) == ("Pod", "ml/solo", [("pods", 1, 1)], 1)
    assert progress(m, (pod("solo"), "pods")) == [("pods", 1, 0, 0, 1)]


def test_pods_of_a_deployment_stand_alone_under_their_own_names() -> None:
    deployment = ref("Deployment", "d", "apps/v1")
    rs = thing("ReplicaSet", "d-1", {"replicas": 2, "template": TEMPLATE}, "apps/v1", deployment)
    top = thing("Deployment", "d", {"replicas": 2, "template": TEMPLATE}, "apps/v1", labels={"berth.dev/queue": "web"})
    read = Memberships(index([rs, top]))
    owner = ref("ReplicaSet", "d-1", "apps/v1")
    first, second = read.of(pod("d-1-a", owner=owner)), read.of(pod("d-1-b", owner=owner))
    assert (first.key, second.key) == ("ml/d-1-a", "ml/d-1-b")
    assert first.queue == "web"
    assert first.provenance == (
        ("alone", "pods of ReplicaSet d-1 start one by one"),
        ("queue", "label berth.dev/queue of Deployment d"),
    )


def test_owners_that_are_unknown_or_absent() -> None:
    assert of(pod(owner=ref("Workflow", "w", "argoproj.io/v1alpha1"))).kind == "Pod"
    assert of(pod(owner=ref("Job", "j", "batch/v1"))).kind == "Pod"  # nobody can tell whether it is a gang
    assert of(pod(owner=ref("Node", "n", "v1"))).kind == "Pod"


# ---- by owner


def test_an_indexed_job_is_a_gang() -> None:
    spec = {"parallelism": 4, "completions": 4, "completionMode": "Indexed", "template": TEMPLATE}
    job = thing("Job", "train", spec, "batch/v1")
    m = of(pod("train-0", owner=ref("Job", "train", "batch/v1")), job)
    assert (m.kind, m.key, m.pod_set, needs(m)) == ("Job", "ml/train", "pods", [("pods", 4, 4)])
    assert progress(m, (pod("a"), "pods"), (pod("b", bound=True), "pods")) == [("pods", 1, 1, 2, 3)]


def test_a_job_near_its_end_is_a_smaller_gang() -> None:
    spec = {"parallelism": 4, "completions": 6, "template": TEMPLATE}
    job = thing("Job", "j", spec, "batch/v1", annotations={"berth.dev/min-count": "4"})
    job["status"] = {"succeeded": 4}
    m = of(pod(owner=ref("Job", "j", "batch/v1")), job)
    assert needs(m) == [("pods", 2, 2)]


def test_a_training_job_with_roles() -> None:
    replicas = {"Master": {"template": TEMPLATE}, "Worker": {"replicas": 3, "template": TEMPLATE}}
    job = thing("PyTorchJob", "llm", {"pytorchReplicaSpecs": replicas}, "kubeflow.org/v1")
    owner = ref("PyTorchJob", "llm", "kubeflow.org/v1")
    m = of(pod(owner=owner, **{"training.kubeflow.org/replica-type": "worker"}), job)
    assert (m.kind, m.pod_set, needs(m)) == ("PyTorchJob", "worker", [("master", 1, 1), ("worker", 3, 3)])
    assert m.sets[1].template == TEMPLATE
    # the master has not been created yet: it is counted all the same
    assert progress(m, (pod("w0"), "worker"), (pod("w1"), "worker")) == [
        ("master", 0, 0, 1, 1),
        ("worker", 2, 0, 1, 3),
    ]


def test_the_highest_owner_decides_and_keys_come_down() -> None:
    jobs = [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 2, "template": TEMPLATE}}}]
    train = ref("TrainJob", "tj", "trainer.kubeflow.org/v1alpha1")
    jobset = thing("JobSet", "tj", {"replicatedJobs": jobs}, "jobset.x-k8s.io/v1alpha2", train)
    above = thing(
        "TrainJob",
        "tj",
        {"trainer": {"numNodes": 4}},
        train.api_version,
        labels={"kueue.x-k8s.io/queue-name": "lq"},
        annotations={"berth.dev/gpu-memory": "80Gi"},
    )
    job = thing("Job", "tj-w-0", {"template": TEMPLATE}, "batch/v1", ref("JobSet", "tj", "jobset.x-k8s.io/v1alpha2"))
    labels = {"jobset.sigs.k8s.io/replicatedjob-name": "w", "jobset.sigs.k8s.io/jobset-name": "tj"}
    m = of(pod(owner=ref("Job", "tj-w-0", "batch/v1"), **labels), jobset, above, job)
    assert (m.kind, m.pod_set, needs(m), m.queue) == ("JobSet", "w", [("w", 4, 4)], "lq")
    assert m.inherited == {"berth.dev/gpu-memory": "80Gi"}


def test_a_jobset_is_found_by_label_where_its_jobs_are_not_in_the_dump() -> None:
    jobs = [{"name": "w", "template": {"spec": {"parallelism": 2, "template": TEMPLATE}}}]
    jobset = thing("JobSet", "js", {"replicatedJobs": jobs}, "jobset.x-k8s.io/v1alpha2")
    labels = {"jobset.sigs.k8s.io/replicatedjob-name": "w", "jobset.sigs.k8s.io/jobset-name": "js"}
    m = of(pod(owner=ref("Job", "js-w-0", "batch/v1"), **labels), jobset)
    assert (m.key, needs(m)) == ("ml/js", [("w", 2, 2)])


def test_each_group_of_a_leaderworkerset_is_its_own_workload() -> None:
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 3, "workerTemplate": TEMPLATE}}
    lws = thing("LeaderWorkerSet", "s", spec, "leaderworkerset.x-k8s.io/v1")
    key = "leaderworkerset.sigs.k8s.io/"
    leader = pod(
        "s-1",
        owner=ref("StatefulSet", "s", "apps/v1"),
        **{key + "name": "s", key + "group-index": "1", key + "worker-index": "0"},
    )
    m = of(leader, lws)
    assert (m.key, m.pod_set, needs(m)) == ("ml/s-1", "leader", [("leader", 1, 1), ("worker", 2, 2)])
    # workers that nobody has created yet are part of the gang
    assert progress(m, (leader, "leader")) == [("leader", 1, 0, 0, 1), ("worker", 0, 0, 2, 2)]
    without = pod(
        "s-0-1",
        **{key + "name": "s", key + "group-index": "0", key + "worker-index": "1", key + "size": "@3"},
    )
    m = of(without)
    assert (m.key, m.pod_set, needs(m)) == ("ml/s-0", "worker", [("leader", 1, 1), ("worker", 2, 2)])


def test_workers_that_come_after_their_leader() -> None:
    group = {"size": 3, "workerTemplate": TEMPLATE}
    spec = {"startupPolicy": "LeaderReady", "leaderWorkerTemplate": group}
    lws = thing("LeaderWorkerSet", "s", spec, "leaderworkerset.x-k8s.io/v1")
    labels = {"leaderworkerset.sigs.k8s.io/name": "s", "leaderworkerset.sigs.k8s.io/worker-index": "0"}
    m = of(pod("s-0", **labels), lws)
    assert progress(m, (pod("s-0"), "leader")) == [("leader", 1, 0, 0, 1), ("worker", 0, 0, 0, 0)]
    assert progress(m, (pod("s-0", bound=True), "leader"), (pod("s-0-1"), "worker")) == [
        ("leader", 0, 1, 0, 0),
        ("worker", 1, 0, 1, 2),
    ]


def test_a_ray_cluster_of_a_ray_job() -> None:
    spec = {
        "headGroupSpec": {"template": TEMPLATE},
        "workerGroupSpecs": [{"groupName": "g", "replicas": 4, "minReplicas": 2, "template": TEMPLATE}],
    }
    job = ref("RayJob", "rj", "ray.io/v1")
    cluster = thing("RayCluster", "rj-x", spec, "ray.io/v1", job)
    owner = ref("RayCluster", "rj-x", "ray.io/v1")
    head = of(pod("h", owner=owner, **{"ray.io/node-type": "head", "ray.io/group": "headgroup"}), cluster)
    worker = of(pod("w", owner=owner, **{"ray.io/node-type": "worker", "ray.io/group": "g"}), cluster)
    assert (head.key, head.pod_set, worker.pod_set) == ("ml/rj-x", "head", "g")
    assert needs(worker) == [("head", 1, 1), ("g", 4, 2)]
    # head and two workers run: the rest need not start together
    pods = [(pod("h", bound=True), "head"), (pod("a", bound=True), "g"), (pod("b", bound=True), "g"), (pod("c"), "g")]
    assert progress(worker, *pods) == [("head", 0, 1, 0, 0), ("g", 1, 2, 1, 0)]


def test_an_owner_known_by_name_only_is_as_large_as_its_pods() -> None:
    owner = ref("PyTorchJob", "llm", "kubeflow.org/v1")
    m = of(pod(owner=owner, **{"training.kubeflow.org/replica-type": "worker"}))
    assert (m.kind, m.key, m.least) == ("PyTorchJob", "ml/llm", -1)
    assert "not among the objects" in m.notes[0]
    pods = [(pod("a"), "worker"), (pod("b"), "worker"), (pod("m", bound=True), "master")]
    assert progress(m, *pods) == [("worker", 2, 0, 0, 2), ("master", 0, 1, 0, 0)]


def test_an_owner_that_cannot_be_read_is_told_and_never_raises() -> None:
    job = thing("PyTorchJob", "llm", {"pytorchReplicaSpecs": {"Worker": {"replicas": "3"}}}, "kubeflow.org/v1")
    m = of(pod(owner=ref("PyTorchJob", "llm", "kubeflow.org/v1")), job)
    assert m.key == "ml/llm"
    assert "PyTorchJob llm cannot be read: spec.pytorchReplicaSpecs.Worker.replicas" in m.contradictions[0]


@pytest.mark.parametrize("broken", [None, 5, "x", [], {"metadata": 5}, {"spec": 3}])
def test_nonsense_among_the_objects_is_passed_over(broken: Any) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "ml"}, "spec": broken}
    m = of(pod(owner=ref("Job", "j", "batch/v1")), job)
    assert m.kind == "Pod"


def test_owners_that_go_in_circles() -> None:
    a = thing("Job", "a", {"template": TEMPLATE}, "batch/v1", ref("Job", "b", "batch/v1"))
    b = thing("Job", "b", {"template": TEMPLATE}, "batch/v1", ref("Job", "a", "batch/v1"))
    assert of(pod(owner=ref("Job", "a", "batch/v1")), a, b).kind == "Pod"


# ---- by group


def upstream(minimum: int | None = 4, **spec: Any) -> Any:
    policy = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
    return thing("PodGroup", "pg", {"schedulingPolicy": policy, **spec}, "scheduling.k8s.io/v1beta1")


def test_the_upstream_group() -> None:
    group = upstream(4, priorityClassName="high", schedulingConstraints={"topology": [{"key": "rack"}]})
    m = of(pod(group="pg"), group)
    assert (m.kind, m.key, m.minimum, m.priority_class) == ("PodGroup", "ml/pg", 4, "high")
    assert m.topology == (TopologyWish("rack"),)
    # two pods of four are there: two are missing, none may start without the others
    assert progress(m, (pod("a"), "pods"), (pod("b"), "pods")) == [("pods", 2, 0, 2, 4)]
    pods = [(pod("a", bound=True), "pods"), (pod("b", bound=True), "pods"), (pod("c"), "pods"), (pod("d"), "pods")]
    assert progress(m, *pods) == [("pods", 2, 2, 0, 2)]
    assert of(pod(group="pg"), upstream(None)).minimum == 1


def test_what_an_upstream_group_leaves_out_its_workload_says() -> None:
    group = thing(
        "PodGroup", "pg", {"workloadRef": {"workloadName": "w", "templateName": "t"}}, "scheduling.k8s.io/v1beta1"
    )
    templates = [{"name": "t", "schedulingPolicy": {"gang": {"minCount": 3}}}]
    workload = thing("Workload", "w", {"podGroupTemplates": templates}, "scheduling.k8s.io/v1beta1")
    assert of(pod(group="pg"), group, workload).minimum == 3


def test_a_group_that_is_not_there() -> None:
    m = of(pod(group="pg"))
    assert m.waits_for is not None and m.waits_for.called == "PodGroup ml/pg (scheduling.k8s.io)"
    assert (m.key, m.least) == ("ml/pg", -1)


def test_berths_own_gang() -> None:
    keys = {"berth.dev/gang": "g", "berth.dev/pod-set": "worker", "berth.dev/min-count": "@3"}
    m = of(pod(**keys))
    assert (m.kind, m.key, m.pod_set, m.minimum) == ("Gang", "ml/g", "worker", 3)
    assert of(pod(**{"berth.dev/gang": "g"})).least == -1  # no minimum: all of them


def test_a_kai_group_with_sub_groups() -> None:
    spec = {
        "minMember": 5,
        "queue": "team",
        "preemptibility": "non-preemptible",
        "topologyConstraint": {"requiredTopologyLevel": "block", "preferredTopologyLevel": "rack"},
        "subGroups": [
            {"name": "all"},
            {"name": "lead", "parent": "all", "minMember": 1},
            {"name": "work", "parent": "all", "minMember": 4, "topologyConstraint": {"requiredTopologyLevel": "rack"}},
        ],
    }
    group = thing("PodGroup", "pg", spec, "scheduling.run.ai/v2alpha2")
    m = of(pod(**{"pod-group-name": "@pg", "kai.scheduler/subgroup-name": "work"}), group)
    assert (m.pod_set, needs(m)) == ("work", [("lead", 1, 1), ("work", 4, 4)])
    assert (m.queue, m.preemptible) == ("team", False)
    assert m.topology == (TopologyWish("block"), TopologyWish("rack", False))
    assert m.sets[1].topology == (TopologyWish("rack"),)


def test_a_volcano_group_with_tasks_and_owner() -> None:
    tasks = [
        {"name": "ps", "replicas": 1, "template": TEMPLATE},
        {"name": "worker", "replicas": 6, "template": TEMPLATE},
    ]
    job = thing("Job", "v", {"queue": "q", "minAvailable": 4, "tasks": tasks}, "batch.volcano.sh/v1alpha1")
    spec = {"minMember": 4, "minTaskMember": {"ps": 1, "worker": 3}, "queue": "q"}
    group = thing("PodGroup", "v-1", spec, "scheduling.volcano.sh/v1beta1")
    keys = {"scheduling.k8s.io/group-name": "@v-1", "volcano.sh/task-spec": "@worker"}
    m = of(pod(owner=ref("Job", "v", "batch.volcano.sh/v1alpha1"), **keys), job, group)
    assert (m.key, m.pod_set, needs(m), m.queue) == ("ml/v-1", "worker", [("ps", 1, 1), ("worker", 6, 3)], "q")
    assert m.contradictions == ()


def test_a_minimum_above_the_sum_of_its_tasks() -> None:
    group = thing("PodGroup", "g", {"minMember": 4, "minTaskMember": {"ps": 1}}, "scheduling.volcano.sh/v1beta1")
    keys = {"scheduling.k8s.io/group-name": "@g", "volcano.sh/task-spec": "@worker"}
    m = of(pod(**keys), group)
    assert (m.minimum, needs(m)) == (4, [("ps", 1, 1), ("worker", 0, 0)])
    pods = [(pod("p"), "ps"), *((pod(f"w{i}"), "worker") for i in range(5))]
    assert progress(m, *pods) == [("ps", 1, 0, 0, 1), ("worker", 5, 0, 0, 3)]


def test_a_scheduler_plugins_group_shares_its_minimum_among_roles() -> None:
    replicas = {"Master": {"template": TEMPLATE}, "Worker": {"replicas": 7, "template": TEMPLATE}}
    job = thing("PyTorchJob", "llm", {"pytorchReplicaSpecs": replicas}, "kubeflow.org/v1")
    group = thing("PodGroup", "llm", {"minMember": 6}, "scheduling.x-k8s.io/v1alpha1")
    keys = {"scheduling.x-k8s.io/pod-group": "llm", "training.kubeflow.org/replica-type": "worker"}
    m = of(pod(owner=ref("PyTorchJob", "llm", "kubeflow.org/v1"), **keys), job, group)
    assert (m.kind, m.minimum) == ("PodGroup", 6)
    everyone = [(pod("m"), "master"), *((pod(f"w{i}"), "worker") for i in range(7))]
    assert progress(m, *everyone) == [("master", 1, 0, 0, 1), ("worker", 7, 0, 0, 5)]


def test_a_kueue_group_of_plain_pods() -> None:
    keys = {"kueue.x-k8s.io/pod-group-name": "g", "kueue.x-k8s.io/pod-group-total-count": "@3"}
    m = of(pod(**keys))
    assert (m.key, needs(m), m.minimum) == ("ml/g", [("pods", 3, 0)], 3)
    workload = thing("Workload", "g", {"podSets": [{"count": 2}, {"count": 3}]}, "kueue.x-k8s.io/v1beta2")
    assert of(pod(**{"kueue.x-k8s.io/pod-group-name": "g"}), workload).minimum == 5


def test_precedence_and_contradictions() -> None:
    kai = thing("PodGroup", "pg", {"minMember": 8}, "scheduling.run.ai/v2alpha2")
    plugins = thing("PodGroup", "pg", {"minMember": 4}, "scheduling.x-k8s.io/v1alpha1")
    keys = {"pod-group-name": "@pg", "scheduling.x-k8s.io/pod-group": "pg"}
    m = of(pod(group="pg", **keys), upstream(4), kai, plugins)
    assert (m.minimum, m.provenance[0]) == (4, ("gang", "spec.schedulingGroup"))
    assert m.contradictions == (
        "upstream (spec.schedulingGroup) says pg with 4 pods, but KAI (annotation pod-group-name of the pod) "
        "says pg with 8 pods; the first was taken.",
    )


def test_an_annotation_against_a_group() -> None:
    m = of(pod(group="pg", **{"berth.dev/min-count": "@2"}), upstream(4))
    assert m.minimum == 4
    assert "asks for 4 pods, but annotation berth.dev/min-count of the pod for 2" in m.contradictions[0]
    group = thing("PodGroup", "pg", {"minMember": 8}, "scheduling.x-k8s.io/v1alpha1")
    ours = of(pod(**{"scheduling.x-k8s.io/pod-group": "pg", "berth.dev/min-count": "@2"}), group)
    assert ours.minimum == 2  # Berth's keys go before scheduler-plugins


def test_a_group_that_its_owner_can_never_fill() -> None:
    job = thing("Job", "j", {"parallelism": 2, "template": TEMPLATE}, "batch/v1")
    group = thing("PodGroup", "pg", {"minMember": 8}, "scheduling.x-k8s.io/v1alpha1")
    keys = {"scheduling.x-k8s.io/pod-group": "pg"}
    m = of(pod(owner=ref("Job", "j", "batch/v1"), **keys), job, group)
    assert (m.pod_set, needs(m)) == ("j", [("j", 2, 0)])
    assert "asks for 8 pods, but Job j makes 2" in m.contradictions[0]


def test_a_group_for_each_pod_does_not_wait_for_the_owners_other_pods() -> None:
    rs = thing("ReplicaSet", "d", {"replicas": 3, "template": TEMPLATE}, "apps/v1")
    owner = ref("ReplicaSet", "d", "apps/v1")
    group = thing("PodGroup", "pg-a", {"minMember": 1}, "scheduling.run.ai/v2alpha2")
    facts = pod("a", owner=owner, **{"pod-group-name": "@pg-a"})
    m = of(facts, rs, group)
    assert (m.key, progress(m, (facts, m.pod_set))) == ("ml/pg-a", [("d", 1, 0, 0, 1)])
    absent = of(facts, rs)
    assert progress(absent, (facts, absent.pod_set)) == [("d", 1, 0, 0, 1)]


def test_two_jobs_in_one_gang_are_two_sets() -> None:
    a = thing("Job", "a", {"parallelism": 2, "template": TEMPLATE}, "batch/v1")
    b = thing("Job", "b", {"parallelism": 3, "template": TEMPLATE}, "batch/v1")
    keys = {"berth.dev/gang": "g", "berth.dev/min-count": "@5"}
    read = Memberships(index([a, b]))
    one = read.of(pod("a-0", owner=ref("Job", "a", "batch/v1"), **keys))
    two = read.of(pod("b-0", owner=ref("Job", "b", "batch/v1"), **keys))
    both = merged([one, two, one])
    assert (both.key, needs(both)) == ("ml/g", [("a", 2, 0), ("b", 3, 0)])
    assert progress(both, (pod("a-0"), one.pod_set), (pod("b-0"), two.pod_set)) == [
        ("a", 1, 0, 1, 2),
        ("b", 1, 0, 2, 3),
    ]


@pytest.mark.parametrize(
    "keys",
    [
        {"berth.dev/gang": "g", "berth.dev/min-count": "@many"},
        {"berth.dev/time-limit": "@soon"},
        {"kueue.x-k8s.io/podset-slice-required-topology": "@rack"},
        {"kai.scheduler/preemptibility": "perhaps"},
    ],
)
def test_values_that_cannot_be_read_are_told(keys: dict[str, str]) -> None:
    m = of(pod(**keys))
    assert m.contradictions
    assert "passed over" in m.contradictions[0]


def test_a_group_object_that_cannot_be_read_is_told() -> None:
    group = thing("PodGroup", "pg", {"minMember": "three"}, "scheduling.x-k8s.io/v1alpha1")
    m = of(pod(**{"scheduling.x-k8s.io/pod-group": "pg"}), group)
    assert 'PodGroup ml/pg: spec.minMember: "three"' in m.contradictions[0]


def test_ended_pods_are_neither_waiting_nor_missing() -> None:
    spec = {"parallelism": 3, "completions": 3, "completionMode": "Indexed", "template": TEMPLATE}
    m = of(pod(owner=ref("Job", "j", "batch/v1")), thing("Job", "j", spec, "batch/v1"))
    over = PodFacts("a", "ml", ended=True)
    assert standings(m, [(over, "pods"), (pod("b"), "pods")]) == (
        Standing("pods", 1, 0, 1, 2, (), {"spec": {"containers": [{"name": "c"}]}}),
    )


def test_merged_needs_a_pod() -> None:
    with pytest.raises(ValueError, match="one pod at least"):
        merged([])


def test_a_label_that_kai_does_not_read_is_told() -> None:
    m = of(pod(**{"pod-group.scheduling.run.ai/name": "g", "pod-group-name": "@pg-p-1"}))
    assert m.key == "ml/pg-p-1"
    assert "KAI joins pods by the annotation pod-group-name" in m.contradictions[0]
    both = of(pod(**{"pod-group.scheduling.run.ai/name": "g", "pod-group-name": "@g"}))
    assert both.contradictions == ()


def test_a_share_of_a_gpu_that_is_not_read_is_told() -> None:
    m = of(pod(**{"gpu-fraction": "@0.5"}))
    assert "annotation gpu-fraction of the pod (0.5), which is not read" in m.contradictions[0]


def test_the_tiers_of_a_volcano_group_are_known_whoever_owns_its_pods() -> None:
    tier = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": "r0"},
            "spec": {"tier": 1, "tierName": "rack"}}  # fmt: skip
    spec = {"minMember": 2, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    group = thing("PodGroup", "g", spec, "scheduling.volcano.sh/v1beta1")
    assert of(pod(**{"scheduling.k8s.io/group-name": "@g"}), group, tier).topology == (TopologyWish("rack"),)
    assert of(pod(**{"scheduling.volcano.sh/group-name": "@g"}), group).topology == (TopologyWish("tier-1"),)


@pytest.mark.parametrize("kind", ["CronJob", "Deployment", "TrainJob", "RayJob"])
def test_a_minimum_on_an_owner_holds_for_what_it_makes(kind: str) -> None:
    apis = {"CronJob": "batch/v1", "Deployment": "apps/v1", "TrainJob": "trainer.kubeflow.org/v1alpha1",
            "RayJob": "ray.io/v1"}  # fmt: skip
    job = {"parallelism": 3, "completions": 3, "template": TEMPLATE}
    ray = {"headGroupSpec": {"template": TEMPLATE},
           "workerGroupSpecs": [{"groupName": "w", "replicas": 2, "minReplicas": 2, "template": TEMPLATE}]}  # fmt: skip
    jobs = [{"name": "n", "template": {"spec": job}}]
    makes = {
        "CronJob": ("Job", job, "batch/v1"),
        "Deployment": ("ReplicaSet", {"replicas": 3, "template": TEMPLATE}, "apps/v1"),
        "TrainJob": ("JobSet", {"replicatedJobs": jobs}, "jobset.x-k8s.io/v1alpha2"),
        "RayJob": ("RayCluster", ray, "ray.io/v1"),
    }  # fmt: skip
    made, spec, api = makes[kind]
    keys = {"annotations": {"berth.dev/min-count": "2"}, "labels": {"berth.dev/queue": "vision"}}
    above = thing(kind, "top", {}, apis[kind], **keys)
    below = thing(made, "made", spec, api, ref(kind, "top", apis[kind]))
    m = of(pod(owner=ref(made, "made", api)), above, below)
    assert (m.kind, m.name, m.minimum, m.queue) == (made, "made", 2, "vision")
    assert ("gang", f"annotation berth.dev/min-count of {kind} top") in m.provenance
