"""Pods, Deployments, StatefulSets, DaemonSets, Jobs and CronJobs as people write them."""

from __future__ import annotations

import textwrap

import pytest

from berth.base.errors import BadInput
from berth.dialects.shape import Shape
from berth.sources.manifests import shapes_in

POD = "{containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}"


def shapes(text: str) -> list[Shape]:
    return shapes_in(textwrap.dedent(text).encode(), "jobs/a.yaml")


def refused(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        shapes(text)
    assert caught.value.exit_code == 2
    return caught.value.sentence


def job(spec: str, more: str = "", template: str = "") -> str:
    return f"""
    apiVersion: batch/v1
    kind: Job
    metadata: {{name: train, namespace: ml{more}}}
    spec: {{{spec}, template: {{{template}spec: {POD}}}}}
    """


def test_a_pod_is_a_workload_by_itself() -> None:
    (shape,) = shapes(f"""
    apiVersion: v1
    kind: Pod
    metadata: {{name: notebook}}
    spec: {{schedulerName: berth, priorityClassName: high, schedulingGates: [{{name: quota}}], {POD[1:-1]}}}
    """)
    assert (shape.kind, shape.key, shape.copies, shape.pod_count) == ("Pod", "default/notebook", 1, 1)
    assert (shape.scheduler, shape.priority_class, shape.gates) == ("berth", "high", ("quota",))
    assert not shape.is_gang
    assert shape.sets[0].template["spec"]["containers"]


def test_generate_name_will_do() -> None:
    (shape,) = shapes(f"""
    apiVersion: v1
    kind: Pod
    metadata: {{generateName: run-}}
    spec: {POD}
    """)
    assert shape.name == "run"


@pytest.mark.parametrize(
    ("kind", "replicas", "copies"), [("Deployment", 3, 3), ("ReplicaSet", 1, 1), ("StatefulSet", 2, 2)]
)
def test_pods_of_a_deployment_stand_alone(kind: str, replicas: int, copies: int) -> None:
    (shape,) = shapes(f"""
    apiVersion: apps/v1
    kind: {kind}
    metadata: {{name: serve}}
    spec: {{replicas: {replicas}, template: {{metadata: {{labels: {{app: x}}}}, spec: {POD}}}}}
    """)
    assert (shape.copies, shape.pod_count, shape.is_gang) == (copies, 1, False)
    assert shape.sets[0].labels == {"app": "x"}
    assert shape.sets[0].path == "spec.template"


def test_replicas_default_to_one_and_zero_asks_for_nothing() -> None:
    (one,) = shapes(
        f"{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: a}}, spec: {{template: {{spec: {POD}}}}}}}"
    )
    assert (one.copies, one.pod_count) == (1, 1)
    (none,) = shapes(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a},"
        f" spec: {{replicas: 0, template: {{spec: {POD}}}}}}}"
    )
    assert none.pod_count == 0
    assert "spec.replicas is 0" in none.notes[0]


def test_an_annotation_makes_a_statefulset_a_gang_and_says_what_stands_against_it() -> None:
    text = f"""
    apiVersion: apps/v1
    kind: StatefulSet
    metadata: {{name: s, annotations: {{scheduling.volcano.sh/group-min-member: "3"}}}}
    spec: {{replicas: 4, template: {{spec: {POD}}}}}
    """
    (shape,) = shapes(text)
    assert (shape.copies, shape.pod_count, shape.minimum) == (1, 4, 3)
    assert "one after the other" in shape.notes[0]
    (parallel,) = shapes(text.replace("replicas: 4", "replicas: 4, podManagementPolicy: Parallel"))
    assert parallel.notes == ()


def test_a_daemonset_is_read_as_one_pod_and_says_so() -> None:
    (shape,) = shapes(f"""
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {{name: d}}
    spec: {{template: {{spec: {POD}}}}}
    """)
    assert shape.pod_count == 1
    assert "each node" in shape.notes[0]


@pytest.mark.parametrize(
    ("spec", "copies", "pods", "minimum", "later"),
    [
        ("backoffLimit: 0", 1, 1, 1, 0),
        ("parallelism: 4", 4, 1, 1, 0),  # a work queue: independent pods
        ("parallelism: 4, completions: 4", 4, 1, 1, 0),
        ("parallelism: 4, completions: 4, completionMode: Indexed", 1, 4, 4, 0),  # torchrun
        ("parallelism: 9, completions: 4, completionMode: Indexed", 1, 4, 4, 0),  # never more than completions
        ("parallelism: 4, completions: 100, completionMode: Indexed", 4, 1, 1, 96),  # an array of tasks
        ("parallelism: 3, completions: 10", 3, 1, 1, 7),
        ("completions: 5", 1, 1, 1, 4),
        ("completions: 1, parallelism: 1, completionMode: Indexed", 1, 1, 1, 0),
    ],
)
def test_what_a_job_runs_at_once(spec: str, copies: int, pods: int, minimum: int, later: int) -> None:
    (shape,) = shapes(job(spec))
    assert (shape.copies, shape.pod_count, shape.minimum, shape.sets[0].later) == (copies, pods, minimum, later)
    assert shape.is_gang is (minimum > 1)


@pytest.mark.parametrize("spec", ["parallelism: 0", "completions: 0", "parallelism: 0, completions: 8"])
def test_a_job_without_pods(spec: str) -> None:
    (shape,) = shapes(job(spec))
    assert shape.pod_count == 0
    assert "asks for no pods" in shape.notes[0]


@pytest.mark.parametrize(
    "annotation",
    [
        "berth.dev/min-count",
        "kai.scheduler/batch-min-member",
        "scheduling.volcano.sh/group-min-member",
        "kueue.x-k8s.io/job-min-parallelism",
    ],
)
def test_an_annotation_makes_a_job_a_gang(annotation: str) -> None:
    (shape,) = shapes(job("parallelism: 8", f', annotations: {{{annotation}: "6"}}'))
    assert (shape.copies, shape.pod_count, shape.minimum) == (1, 8, 6)
    assert dict(shape.provenance)["gang"] == f"annotation {annotation} of Job train"


def test_the_tail_of_a_job_is_no_part_of_its_gang() -> None:
    (shape,) = shapes(job("parallelism: 4, completions: 6", ', annotations: {berth.dev/min-count: "4"}'))
    assert (shape.minimum, shape.sets[0].later) == (4, 2)
    assert "2 more come one by one" in shape.notes[0]


def test_upstream_scheduling_of_a_job() -> None:
    spec = (
        "parallelism: 8, scheduling: {schedulingPolicy: {gang: {minCount: 8}},"
        " schedulingConstraints: {topology: [{key: example.com/rack}]}}"
    )
    (shape,) = shapes(job(spec))
    assert shape.minimum == 8
    assert [(w.level, w.required) for w in shape.topology] == [("example.com/rack", True)]
    assert "only 8 pods run at once" in refused(job(spec.replace("minCount: 8", "minCount: 9")))


def test_a_topology_wish_makes_pods_one_workload() -> None:
    wish = "metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: rack}}, "
    (shape,) = shapes(job("parallelism: 4, completions: 4", template=wish))
    assert shape.minimum == 4
    assert shape.sets[0].topology[0].level == "rack"


def test_a_minimum_that_is_never_reached_is_refused() -> None:
    sentence = refused(job("parallelism: 4", ', annotations: {berth.dev/min-count: "9"}'))
    assert sentence.startswith('jobs/a.yaml: metadata.annotations["berth.dev/min-count"]: "9": only 4 pods')
    assert sentence.endswith("Write 4 or less.")


def test_suspend_limit_and_terms_of_a_job() -> None:
    more = (
        ", labels: {kueue.x-k8s.io/queue-name: lq}, annotations: {berth.dev/min-runtime: 1h30m,"
        ' berth.dev/preemptible: "false", berth.dev/checkpoint-every: 10m}'
    )
    (shape,) = shapes(job("suspend: true, activeDeadlineSeconds: 600", more))
    assert (shape.suspended, shape.time_limit_s, shape.min_runtime_s) == (True, 600.0, 5400.0)
    assert (shape.queue, shape.preemptible, shape.checkpoint_every_s) == ("lq", False, 600.0)
    (shape,) = shapes(job("activeDeadlineSeconds: 600", ", annotations: {berth.dev/time-limit: 2d}"))
    assert shape.time_limit_s == 172800.0


def test_keys_of_the_owner_reach_the_pods() -> None:
    more = ", annotations: {berth.dev/gpu-memory: 80Gi, berth.dev/gpu-link: nvlink, other: x}"
    template = "metadata: {annotations: {berth.dev/gpu-memory: 40Gi}}, "
    (shape,) = shapes(job("parallelism: 1", more, template))
    assert shape.sets[0].template["metadata"]["annotations"] == {
        "berth.dev/gpu-memory": "40Gi",
        "berth.dev/gpu-link": "nvlink",
    }


def test_a_cron_job_is_one_of_its_runs() -> None:
    (shape,) = shapes(f"""
    apiVersion: batch/v1
    kind: CronJob
    metadata: {{name: nightly, namespace: ml, labels: {{berth.dev/queue: night}}}}
    spec:
      schedule: "0 3 * * *"
      suspend: true
      jobTemplate:
        spec: {{parallelism: 2, completions: 2, completionMode: Indexed, template: {{spec: {POD}}}}}
    """)
    assert (shape.kind, shape.key, shape.minimum) == ("CronJob", "ml/nightly", 2)
    assert (shape.suspended, shape.queue) == (True, "night")
    assert shape.sets[0].path == "spec.jobTemplate.spec.template"


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            'parallelism: "3"',
            'jobs/a.yaml: spec.parallelism: "3": a number is needed, not text. Write 3 without quotes.',
        ),
        ("parallelism: 1.5", "jobs/a.yaml: spec.parallelism: 1.5: a whole number is needed."),
        ("parallelism: true", "jobs/a.yaml: spec.parallelism: true: a whole number is needed."),
        ("parallelism: many", 'jobs/a.yaml: spec.parallelism: "many": a whole number is needed.'),
        ("parallelism: -1", "jobs/a.yaml: spec.parallelism: -1: it cannot be negative."),
        ("parallelism: 99999999999", "jobs/a.yaml: spec.parallelism: 99999999999: the largest number"),
        ("parallelism: [1]", "jobs/a.yaml: spec.parallelism: a list: a whole number is needed."),
        ('suspend: "true"', 'jobs/a.yaml: spec.suspend: "true": true or false is needed.'),
        ("completionMode: 5", "jobs/a.yaml: spec.completionMode: 5: text is needed."),
    ],
)
def test_wrong_types_name_file_path_value_rule_and_remedy(spec: str, sentence: str) -> None:
    assert refused(job(spec)).startswith(sentence)


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        ("{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: [1]}", "spec: a list: a mapping is needed"),
        ("{apiVersion: batch/v1, kind: Job, spec: {}}", "metadata.name: null: every object needs a name"),
        ("{kind: Job, metadata: {name: a}}", "apiVersion: it is missing. Write that of Job: batch."),
        ("{apiVersion: batch/v1, kind: Job, metadata: {name: 5}}", "metadata.name: 5: text is needed"),
        (
            "{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: [x]}}",
            "metadata.labels: a list: a mapping is needed",
        ),
    ],
)
def test_broken_objects(manifest: str, sentence: str) -> None:
    assert sentence in refused(manifest)


def test_unknown_fields_pass_and_null_is_absent() -> None:
    (shape,) = shapes(job("parallelism: null, completions: null, frobnicate: {a: [1]}"))
    assert shape.pod_count == 1


@pytest.mark.parametrize("text", ["soon", "5", "6 hours", "-1h", "h", "1h x"])
def test_durations_that_cannot_be_read(text: str) -> None:
    sentence = refused(job("parallelism: 1", f', annotations: {{berth.dev/time-limit: "{text}"}}'))
    assert 'metadata.annotations["berth.dev/time-limit"]' in sentence
    assert "it is not a duration. Write 90s, 30m, 6h, 2d or 1h30m." in sentence
