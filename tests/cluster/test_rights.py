"""With the rights that deploy/kustomize gives and no others everything works; a right less costs what it is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import Admin, Cluster, Refused, gpu_pod
from gangs import FORMS, UPSTREAM, bound
from programs import ROOT
from scheduler import Replica
from stage import SetStage, Stage
from versions import needs_pod_groups

NAMESPACE, ACCOUNT = "berth-system", "system:serviceaccount:berth-system:berth"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
KINDS = ("ServiceAccount", "ConfigMap", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "PriorityClass")
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/berth"


@pytest.fixture
def installed(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """The ServiceAccount with its roles, as `kubectl apply -k deploy/kustomize` makes them; its configuration."""
    things = [thing for thing in yaml.safe_load_all((ROOT / "deploy/kustomize/berth.yaml").read_text()) if thing]
    things = [thing for thing in things if thing["kind"] in KINDS]
    if not cluster.admin.items("/api/v1/namespaces", fieldSelector=f"metadata.name={NAMESPACE}"):
        cluster.admin.make_namespace(NAMESPACE)
    for thing in things:
        cluster.admin.apply(thing)
    (settings,) = [thing for thing in things if thing["kind"] == "ConfigMap"]
    yield dict(yaml.safe_load(settings["data"]["config.yaml"]))
    cluster.heal()
    cluster.admin.delete(LEASE)
    for thing in things:
        cluster.admin.delete(cluster.admin.path_of(thing))


@pytest.fixture
def run_as_account(
    cluster: Cluster, installed: dict[str, Any], run_scheduler: Callable[..., Replica], tmp_path: Path
) -> Callable[..., Replica]:
    """A replica with the chart's own configuration and a token of its ServiceAccount."""
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(installed))

    def run(name: str = "a", **options: Any) -> Replica:
        token = cluster.admin.service_account_token(NAMESPACE, "berth")
        kubeconfig = cluster.kubeconfig_of(f"{ACCOUNT}-{name}", token)
        values = {"leaderElection.namespace": NAMESPACE, **options.pop("values", {})}
        return run_scheduler(name, f"--config={file}", kubeconfig=kubeconfig, values=values, **options)

    return run


def without(admin: Admin, role: str, resource: str, verb: str) -> None:
    """The role of that name with a right less."""
    path = f"{RBAC}/clusterroles/{role}"
    rules = admin.get(path)["rules"]
    less = []
    for rule in rules:
        kept = [each for each in rule.get("resources", []) if each != resource]
        if kept == rule.get("resources", []):
            less.append(rule)
            continue
        less.append(rule | {"resources": kept}) if kept else None
        verbs = [each for each in rule["verbs"] if each != verb]
        less.append(rule | {"resources": [resource], "verbs": verbs}) if verbs else None
    admin.patch(path, {"rules": less})


def play(stage: Stage) -> None:
    """Everything that the scheduler does: it binds gangs of every form, tells, makes room, takes back what it told."""
    admin = stage.admin
    gangs = [stage.gang(form, form, 4, 2) for form in FORMS]
    stage.create(*gangs)
    stage.wait_whole(*gangs)
    waits = stage.gang(UPSTREAM, "waits", 4, 4)
    stage.create(waits)
    stage.wait_verdict("waits", "NotEnoughGpus")
    group = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{stage.namespace}/podgroups/waits"
    stage.until(lambda: admin.get(group).get("status", {}).get("conditions"), 15, "the group is told")
    stage.until(lambda: condition_of(stage.pod("waits-0")), 15, "its pods are told")
    events = f"/apis/events.k8s.io/v1/namespaces/{stage.namespace}/events"
    stage.until(
        lambda: any("berth" in e["reportingController"] for e in admin.items(events)), 15, "an event is written"
    )
    urgent = stage.single("urgent", 8, priority_class="system-cluster-critical")
    stage.create(urgent)
    stage.wait_whole(urgent)  # somebody has been asked to leave


def condition_of(pod: dict[str, Any]) -> dict[str, Any] | None:
    conditions = pod["status"].get("conditions", [])
    return next((c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), None)


@needs_pod_groups
def test_its_rights_are_enough_for_all_that_it_does(
    set_stage: SetStage, run_as_account: Callable[..., Replica], cluster: Cluster
) -> None:
    stage = set_stage(4)
    first = run_as_account("a")
    queue = {
        "apiVersion": "berth.dev/v1alpha1",
        "kind": "GPUQueue",
        "metadata": {"name": stage.namespace},
        "spec": {"namespaces": [stage.namespace]},
    }
    path = stage.admin.path_of(stage.admin.create(queue))
    try:
        play(stage)
        stage.until(lambda: stage.admin.get(path).get("status", {}).get("conditions"), 15, "the queue is told")
        second = run_as_account("b", wait=False)
        second.wait_said("synced")
        first.stop()
        second.wait_decides()
        after = stage.single("after", 1)
        for pod in stage.pods("upstream"):
            stage.delete(pod["metadata"]["name"])
        stage.create(after)
        stage.wait_whole(after)
        for replica in (first, second):
            refused = [line for line in replica.lines() if "403" in str(line) or "forbidden" in str(line).lower()]
            assert not refused, refused[0]
        assert second.metrics().of("berth_api_requests_total", code="403") == 0
        assert second.metrics().of("berth_api_requests_total", code="200") > 0
    finally:
        stage.admin.delete(path)


def test_a_volume_that_waits_for_its_first_consumer_needs_no_right_more(
    set_stage: SetStage, run_as_account: Callable[..., Replica]
) -> None:
    """The provisioner is played by this test, the claim is bound by Kubernetes."""
    stage = set_stage(2)
    admin = stage.admin
    replica = run_as_account()
    name = f"waits-{stage.namespace}"
    admin.create({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": "example.com/nobody", "volumeBindingMode": "WaitForFirstConsumer",
    })  # fmt: skip
    try:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": name,
        }
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                 "metadata": {"name": "scratch", "namespace": stage.namespace}, "spec": spec}  # fmt: skip
        path = admin.path_of(admin.create(claim))
        pod = gpu_pod("uses-it", stage.namespace, 2)
        pod["spec"]["volumes"] = [{"name": "scratch", "persistentVolumeClaim": {"claimName": "scratch"}}]
        admin.create(pod)
        selected = "volume.kubernetes.io/selected-node"
        node = stage.until(
            lambda: admin.get(path)["metadata"].get("annotations", {}).get(selected), 15, "a node is chosen"
        )
        host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        admin.create({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": name,
                "claimRef": {"namespace": stage.namespace, "name": "scratch"},
                "local": {"path": "/scratch"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}},
            },
        })  # fmt: skip
        stage.until(lambda: stage.pod("uses-it")["spec"].get("nodeName") == node, 20, "the pod is bound there")
        assert replica.metrics().of("berth_api_requests_total", code="403") == 0
    finally:
        admin.delete(f"/apis/storage.k8s.io/v1/storageclasses/{name}")
        admin.delete(f"/api/v1/persistentvolumes/{name}")


@pytest.mark.parametrize(
    ("resource", "verb"),
    [
        ("verdicts", "create"),
        pytest.param("podgroups/status", "patch", marks=needs_pod_groups),
        ("pods/status", "patch"),
        ("events", "create"),
    ],
)
def test_who_may_not_tell_binds_all_the_same(
    set_stage: SetStage, run_as_account: Callable[..., Replica], installed: dict[str, Any], resource: str, verb: str
) -> None:
    stage = set_stage(2)
    without(stage.admin, "berth", resource, verb)
    replica = run_as_account()
    first = [stage.gang(UPSTREAM, f"runs-{number}", 2, 2) for number in range(3)]
    waits = stage.gang(UPSTREAM, "waits", 2, 8)
    stage.create(*first)
    stage.wait_whole(*first)
    stage.create(waits)
    last = stage.single("last", 4)
    stage.create(last)
    stage.wait_whole(last, timeout_s=5)
    said = stage.until(lambda: [r for r in replica.lines() if "forbidden" in str(r).lower()], 15, "it says so")
    assert len(said) < 30, "but not without end"


def test_who_may_not_evict_binds_all_the_same(
    set_stage: SetStage, run_as_account: Callable[..., Replica], installed: dict[str, Any]
) -> None:
    """Nobody leaves for the pod of high priority; it waits, and what fits beside it is bound."""
    stage = set_stage(2)
    without(stage.admin, "berth", "pods/eviction", "create")
    replica = run_as_account()
    low = [stage.single(f"low-{number}", 4) for number in range(3)]
    stage.create(*low)
    stage.wait_whole(*low)
    urgent = stage.single("urgent", 8, priority_class="system-cluster-critical")
    stage.create(urgent)
    stage.until(lambda: replica.said("eviction refused"), 15, "it says so")
    small = stage.single("small", 2)
    stage.create(small)
    stage.wait_whole(small, timeout_s=30)
    assert len(bound(stage.pods())) == 4
    assert len(replica.said("eviction refused")) < 20


def test_pods_whose_job_may_not_be_seen_wait_and_the_right_is_named(
    set_stage: SetStage, run_as_account: Callable[..., Replica], installed: dict[str, Any]
) -> None:
    """Alone each of them would be bound as if nobody belonged with it."""
    stage = set_stage(2)
    for verb in ("list", "watch"):
        without(stage.admin, "berth", "jobs", verb)
    run_as_account()
    template = gpu_pod("template", stage.namespace, 2)
    spec = {**template["spec"], "restartPolicy": "Never"}
    stage.admin.create({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": stage.namespace},
        "spec": {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": {"spec": spec}},
    })  # fmt: skip
    other = stage.single("other", 2)
    stage.create(other)
    stage.wait_whole(other)
    said = stage.until(stage.verdicts, 20, "it is told")
    assert {each["reason"] for each in said} == {"WaitingForOwner"}
    named = f"Job {stage.namespace}/train has not been seen: Berth needs get, list, watch on jobs.batch"
    assert said[0]["sentence"] == named
    stage.stays(lambda: len(bound(stage.pods())) == 1, 2, "none of its pods is bound")


@needs_pod_groups
def test_a_shadow_writes_nothing(
    set_stage: SetStage, run_scheduler: Callable[..., Replica], kube_scheduler: Cluster
) -> None:
    """Beside the real kube-scheduler, whose pods it would have placed too."""
    stage = set_stage(2, own=("default-scheduler",))
    shadow = run_scheduler(
        "a", "--shadow", values={"schedulerNames": "default-scheduler", "logLevel": "debug"}, wait=False
    )
    shadow.wait_said("looks on")
    pods = [stage.single(f"theirs-{number}", 2, scheduler="default-scheduler") for number in range(6)]
    stage.create(*pods, stage.gang(UPSTREAM, "waits", 4, 8, scheduler="default-scheduler"))
    stage.wait_whole(*pods)
    shadow.wait_said("decided", waiting=1)
    for verb in ("POST", "PUT", "PATCH", "DELETE"):
        assert shadow.metrics().of("berth_api_requests_total", verb=verb) == 0, verb
    assert shadow.metrics().of("berth_api_requests_total", verb="WATCH") > 0
    assert stage.verdict("waits") is None
    shadow.stop()
    report = "\n".join(str(line["message"]) for line in shadow.lines())
    assert "Shadow of 10 pods" in report and "4  waiting by both" in report, report


def test_what_it_may_not_do_is_refused_to_its_token_too(cluster: Cluster, installed: dict[str, Any]) -> None:
    """A few requests that would do harm in the hands of others, for real."""
    token = cluster.admin.service_account_token(NAMESPACE, "berth")
    client = Admin(cluster.access_of(token=token))
    try:
        harmful = [
            ("GET", "/api/v1/secrets", None),
            ("POST", "/api/v1/namespaces/default/pods", gpu_pod("mine")),
            ("PATCH", "/api/v1/nodes/n00000", {"spec": {"unschedulable": True}}),
            ("DELETE", "/apis/berth.dev/v1alpha1/gpuqueues/research", None),
            ("POST", f"{RBAC}/clusterrolebindings", {}),
            ("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/berth/token", {}),
        ]
        for method, path, body in harmful:
            with pytest.raises(Refused) as refused:
                client.request(method, path, body)
            assert refused.value.status == 403, path
    finally:
        client.close()
