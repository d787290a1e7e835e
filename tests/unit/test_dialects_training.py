"""Kubeflow, JobSet, LeaderWorkerSet, Ray, Trainer and Volcano jobs as people write them."""

from __future__ import annotations

import textwrap

import pytest

from berth.base.errors import BadInput
from berth.dialects.shape import Shape
from berth.sources.manifests import shapes_in

POD = "{containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}"
TEMPLATE = f"template: {{spec: {POD}}}"


def shapes(text: str) -> list[Shape]:
    return shapes_in(textwrap.dedent(text).encode(), "jobs/a.yaml")


def refused(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        shapes(text)
    return caught.value.sentence


def sets_of(shape: Shape) -> list[tuple[str, int, int]]:
    return [(s.name, s.count, s.min_count) for s in shape.sets]


def pytorch(more: str = "", workers: str = "3", meta: str = "") -> str:
    return f"""
    apiVersion: kubeflow.org/v1
    kind: PyTorchJob
    metadata: {{name: llm, namespace: ml{meta}}}
    spec:
      {more}
      pytorchReplicaSpecs:
        Worker: {{replicas: {workers}, restartPolicy: OnFailure, {TEMPLATE}}}
        Master: {{replicas: 1, {TEMPLATE}}}
    """


def test_a_pytorchjob_is_one_gang_with_the_master_first() -> None:
    (shape,) = shapes(pytorch("runPolicy: {suspend: true, activeDeadlineSeconds: 60}"))
    assert sets_of(shape) == [("master", 1, 1), ("worker", 3, 3)]
    assert (shape.key, shape.suspended, shape.time_limit_s) == ("ml/llm", True, 60.0)
    assert shape.sets[1].path == "spec.pytorchReplicaSpecs.Worker.template"
    assert dict(shape.provenance)["gang"] == "all replicas of PyTorchJob llm"


def test_min_available_and_terms_of_the_run_policy() -> None:
    (shape,) = shapes(pytorch("runPolicy: {schedulingPolicy: {minAvailable: 3, queue: q, priorityClass: high}}"))
    assert sets_of(shape) == [("master", 1, 1), ("worker", 3, 2)]
    assert (shape.queue, shape.priority_class) == ("q", "high")


def test_elastic_workers_start_with_the_least() -> None:
    (shape,) = shapes(pytorch("elasticPolicy: {minReplicas: 2, maxReplicas: 8}"))
    assert sets_of(shape) == [("master", 1, 1), ("worker", 3, 2)]
    assert "may grow to 8 workers" in shape.notes[0]
    assert "fewer than this minimum" in refused(pytorch("elasticPolicy: {minReplicas: 9}"))


def test_errors_of_training_jobs() -> None:
    assert refused(pytorch(workers='"3"')) == (
        'jobs/a.yaml: spec.pytorchReplicaSpecs.Worker.replicas: "3": a number is needed, not text. '
        "Write 3 without quotes."
    )
    assert "it would never start" in refused(pytorch("runPolicy: {schedulingPolicy: {minAvailable: 7}}"))
    empty = "{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a}, spec: {}}"
    assert "spec.tfReplicaSpecs: null: a TFJob needs its replicas here" in refused(empty)


@pytest.mark.parametrize(
    ("kind", "field", "roles"),
    [
        ("TFJob", "tfReplicaSpecs", ("Chief", "PS", "Worker")),
        ("XGBoostJob", "xgbReplicaSpecs", ("Master", "Worker")),
        ("JAXJob", "jaxReplicaSpecs", ("Worker",)),
        ("PaddleJob", "paddleReplicaSpecs", ("Master", "Worker")),
        ("MPIJob", "mpiReplicaSpecs", ("Launcher", "Worker")),
    ],
)
def test_the_other_training_jobs(kind: str, field: str, roles: tuple[str, ...]) -> None:
    replicas = ", ".join(f"{role}: {{replicas: 2, {TEMPLATE}}}" for role in reversed(roles))
    (shape,) = shapes(
        f"{{apiVersion: kubeflow.org/v1, kind: {kind}, metadata: {{name: a}}, spec: {{{field}: {{{replicas}}}}}}}"
    )
    assert [s.name for s in shape.sets] == [role.lower() for role in roles]
    assert shape.minimum == 2 * len(roles)


def test_zero_workers() -> None:
    (shape,) = shapes(pytorch(workers="0"))
    assert sets_of(shape) == [("master", 1, 1), ("worker", 0, 0)]


def test_a_launcher_that_waits_is_no_part_of_the_start() -> None:
    (shape,) = shapes(f"""
    apiVersion: kubeflow.org/v2beta1
    kind: MPIJob
    metadata: {{name: mpi}}
    spec:
      launcherCreationPolicy: WaitForWorkersReady
      mpiReplicaSpecs:
        Launcher: {{{TEMPLATE}}}
        Worker: {{replicas: 4, {TEMPLATE}}}
    """)
    assert [(s.name, s.follows) for s in shape.sets] == [("launcher", True), ("worker", False)]
    assert (shape.minimum, shape.pod_count) == (4, 5)


def jobset(more: str = "", meta: str = "", workers: str = "parallelism: 4, completions: 4") -> str:
    return f"""
    apiVersion: jobset.x-k8s.io/v1alpha2
    kind: JobSet
    metadata: {{name: js{meta}}}
    spec:
      {more}
      replicatedJobs:
        - name: driver
          template: {{spec: {{{TEMPLATE}}}}}
        - name: workers
          replicas: 2
          template: {{spec: {{{workers}, {TEMPLATE}}}}}
    """


def test_a_jobset_is_one_gang() -> None:
    (shape,) = shapes(jobset())
    assert sets_of(shape) == [("driver", 1, 1), ("workers", 8, 8)]
    assert shape.sets[1].path == "spec.replicatedJobs[1].template.spec.template"


def test_what_starts_in_order_is_no_part_of_the_start() -> None:
    (shape,) = shapes(jobset("startupPolicy: {startupPolicyOrder: InOrder}"))
    assert [s.follows for s in shape.sets] == [False, True]
    assert shape.minimum == 1


def test_the_tail_of_a_jobset() -> None:
    (shape,) = shapes(jobset(workers="parallelism: 4, completions: 10"))
    assert (shape.sets[1].count, shape.sets[1].later) == (8, 12)
    assert "12 more pods of workers" in shape.notes[0]


def test_the_minimum_of_a_jobset_and_its_exclusive_topology() -> None:
    meta = (
        ', annotations: {kai.scheduler/batch-min-member: "5",'
        " alpha.jobset.sigs.k8s.io/exclusive-topology: example.com/rack}"
    )
    (shape,) = shapes(jobset(meta=meta))
    assert sets_of(shape) == [("driver", 1, 1), ("workers", 8, 4)]
    assert [(w.level, w.slice_size) for w in shape.sets[1].topology] == [("example.com/rack", 4)]
    assert "not that it is alone there" in shape.notes[0]


def test_a_job_that_waits_for_completion_is_a_workload_of_its_own() -> None:
    text = jobset().replace(
        "- name: workers", "- name: workers\n          dependsOn: [{name: driver, status: Complete}]"
    )
    first, second = shapes(text)
    assert sets_of(first) == [("driver", 1, 1)]
    assert (second.name, sets_of(second)) == ("js-workers", [("workers", 8, 8)])
    ready = text.replace("status: Complete", "status: Ready")
    (one,) = shapes(ready)
    assert one.sets[1].follows


def test_errors_of_a_jobset() -> None:
    assert "spec.replicatedJobs[1].replicas" in refused(jobset().replace("replicas: 2", "replicas: two"))
    assert "every replicated job needs a name" in refused(jobset().replace("- name: driver", "- replicas: 1"))


def lws(more: str, group: str = "size: 4", meta: str = "") -> str:
    return f"""
    apiVersion: leaderworkerset.x-k8s.io/v1
    kind: LeaderWorkerSet
    metadata: {{name: serve{meta}}}
    spec: {{{more}, leaderWorkerTemplate: {{{group}, workerTemplate: {{spec: {POD}}}}}}}
    """


def test_each_replica_of_a_leaderworkerset_is_a_gang() -> None:
    (shape,) = shapes(lws("replicas: 3"))
    assert (shape.copies, sets_of(shape)) == (3, [("leader", 1, 1), ("worker", 3, 3)])
    assert shape.sets[0].template == shape.sets[1].template


def test_leader_template_order_and_topology() -> None:
    meta = (
        ", annotations: {leaderworkerset.sigs.k8s.io/exclusive-topology: rack,"
        " leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology: host}"
    )
    group = "size: 5, subGroupPolicy: {subGroupSize: 2}, leaderTemplate: {spec: {containers: [{name: l}]}}"
    (shape,) = shapes(lws("startupPolicy: LeaderReady", group, meta))
    assert shape.copies == 1
    assert (shape.sets[1].follows, shape.minimum) == (True, 1)
    assert shape.sets[0].path == "spec.leaderWorkerTemplate.leaderTemplate"
    assert [(w.level, w.slice_size) for w in shape.topology] == [("rack", 0)]
    assert [(w.level, w.slice_size) for w in shape.sets[1].topology] == [("host", 2)]


def test_small_and_empty_leaderworkersets() -> None:
    (single,) = shapes(lws("replicas: 2", "size: 1"))
    assert (single.copies, sets_of(single)) == (2, [("leader", 1, 1)])
    (none,) = shapes(lws("replicas: 0"))
    assert none.pod_count == 0
    assert "it must be 1 or more" in refused(lws("replicas: 1", "size: 0"))


GROUPS = f"""
headGroupSpec: {{{TEMPLATE}}}, workerGroupSpecs: [
  {{groupName: a, replicas: 4, minReplicas: 2, maxReplicas: 8, numOfHosts: 2, {TEMPLATE}}},
  {{groupName: b, replicas: 3, {TEMPLATE}}}, {{groupName: c, replicas: 9, suspend: true, {TEMPLATE}}}]
"""


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("RayCluster", GROUPS),
        ("RayJob", f"rayClusterSpec: {{{GROUPS}}}"),
        ("RayService", f"rayClusterConfig: {{{GROUPS}}}"),
    ],
)
def test_ray(kind: str, spec: str) -> None:
    spec = " ".join(spec.split())
    (shape,) = shapes(
        f"{{apiVersion: ray.io/v1, kind: {kind}, spec: {{{spec}}},"
        " metadata: {name: r, labels: {ray.io/priority-class-name: high}}}"
    )
    # replicas × hosts; a minReplicas of 0 does not mean that no worker is needed
    assert sets_of(shape) == [("head", 1, 1), ("a", 8, 4), ("b", 3, 3)]
    assert shape.priority_class == "high"
    assert "Worker group c is suspended" in shape.notes[0]


def test_edges_of_ray() -> None:
    (shape,) = shapes(
        "{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {clusterSelector: {ray.io/cluster: x}}}"
    )
    assert (shape.pod_count, "RayCluster that is there already" in shape.notes[0]) == (0, True)
    assert "spec.rayClusterSpec: null: a RayJob needs its cluster here" in refused(
        "{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {}}"
    )
    cluster = (
        f"headGroupSpec: {{{TEMPLATE}}}, workerGroupSpecs: [{{groupName: a, replicas: 1, minReplicas: 3, {TEMPLATE}}}]"
    )
    (low,) = shapes(
        f"{{apiVersion: ray.io/v1, kind: RayCluster, metadata: {{name: r}}, spec: {{suspend: true, {cluster}}}}}"
    )
    assert (sets_of(low)[1], low.suspended) == (("a", 3, 3), True)
    assert "below minReplicas" in low.notes[0]


TRAIN_JOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: fine, namespace: ml, labels: {kueue.x-k8s.io/queue-name: lq}}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 4, resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}
"""
RUNTIME = """
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch-distributed}
spec:
  mlPolicy: {numNodes: 2}
  template:
    spec:
      replicatedJobs:
        - name: dataset-initializer
          template: {spec: {template: {spec: {containers: [{name: d}]}}}}
        - name: node
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec: {template: {spec: {nodeSelector: {pool: gpu}, containers: [{name: node, image: x}]}}}
"""


def test_a_trainjob_without_its_runtime_is_known_by_its_resources() -> None:
    (shape,) = shapes(TRAIN_JOB)
    assert sets_of(shape) == [("node", 4, 4)]
    assert shape.queue == "lq"
    assert shape.sets[0].template["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": 8}}
    assert "torch-distributed" in shape.notes[0]


def test_a_trainjob_with_its_runtime_has_its_template() -> None:
    (shape,) = shapes(TRAIN_JOB + RUNTIME)
    spec = shape.sets[0].template["spec"]
    assert spec["nodeSelector"] == {"pool": "gpu"}
    assert spec["containers"][0] == {"name": "node", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    assert shape.notes == ()
    (shape,) = shapes(TRAIN_JOB.replace("numNodes: 4, ", "") + RUNTIME)
    assert sets_of(shape) == [("node", 2, 2)]


def volcano(more: str = "", tasks: str = "") -> str:
    default = f"- {{name: ps, replicas: 1, {TEMPLATE}}}\n        - {{name: worker, replicas: 4, {TEMPLATE}}}"
    return f"""
    apiVersion: batch.volcano.sh/v1alpha1
    kind: Job
    metadata: {{name: v}}
    spec:
      queue: research
      {more}
      tasks:
        {tasks or default}
    """


def test_a_volcano_job() -> None:
    (shape,) = shapes(volcano("minAvailable: 3"))
    assert sets_of(shape) == [("ps", 1, 1), ("worker", 4, 2)]
    assert (shape.queue, shape.scheduler) == ("research", "volcano")
    (whole,) = shapes(volcano())
    assert sets_of(whole) == [("ps", 1, 1), ("worker", 4, 4)]


def test_minimums_of_volcano_tasks() -> None:
    tasks = (
        f"- {{name: a, replicas: 4, minAvailable: 1, {TEMPLATE}}}\n"
        f"        - {{name: b, replicas: 4, minAvailable: 2, {TEMPLATE}}}"
    )
    (own,) = shapes(volcano(tasks=tasks))
    assert sets_of(own) == [("a", 4, 1), ("b", 4, 2)]
    (more,) = shapes(volcano("minAvailable: 5", tasks))
    assert sets_of(more) == [("a", 4, 3), ("b", 4, 2)]
    (less,) = shapes(volcano("minAvailable: 2", tasks))
    assert less.minimum == 2
    assert "it would never start" in refused(volcano("minAvailable: 9", tasks))
    assert "spec.tasks[1].minAvailable" in refused(volcano(tasks=tasks.replace("minAvailable: 2", "minAvailable: 9")))


def test_the_network_topology_of_volcano() -> None:
    more = "networkTopology: {mode: hard, highestTierAllowed: 2}"
    (shape,) = shapes(volcano(more))
    assert [(w.level, w.required) for w in shape.topology] == [("tier-2", True)]
    hypernode = """
    ---
    apiVersion: topology.volcano.sh/v1alpha1
    kind: HyperNode
    metadata: {name: s0}
    spec: {tier: 2, tierName: spine}
    """
    (named,) = shapes(volcano("networkTopology: {mode: soft, highestTierAllowed: 2}") + hypernode)
    assert [(w.level, w.required) for w in named.topology] == [("spine", False)]
    tasks = (
        f"- {{name: a, replicas: 8, {TEMPLATE}, partitionPolicy: {{totalPartitions: 2, partitionSize: 4,"
        " networkTopology: {highestTierName: rack}}}"
    )
    (cut,) = shapes(volcano(tasks=tasks))
    assert [(w.level, w.slice_size) for w in cut.sets[0].topology] == [("rack", 4)]
