"""From objects to a snapshot: what is held, which pods wait together, priorities, volumes, queues, topology."""

from __future__ import annotations

import json

import pytest
from dump_objects import NODE, as_list, pod, read, write
from msgspec.structs import replace

from berth.base.errors import BadInput
from berth.model.queue import Queue
from berth.model.topology import Level
from berth.model.workload import NodeTerm, Requirement
from berth.scheduling.answer import what_if, why
from berth.sources.assemble import read_snapshot
from berth.sources.inventory import seconds


@pytest.fixture
def snapshot(tmp_path):
    def made(*things):
        return read(write(tmp_path, "d.json", json.dumps(as_list(list(things)))))

    return made


def owned(thing: dict, kind: str, name: str, api_version: str = "batch/v1", **labels: str) -> dict:
    thing["metadata"]["ownerReferences"] = [
        {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    ]
    thing["metadata"]["labels"].update(labels)
    return thing


def node(name: str, **labels: str) -> dict:
    found = json.loads(json.dumps(NODE))
    found["metadata"].update(name=name, uid=name)
    found["metadata"]["labels"].update({k.replace("_", "."): v for k, v in labels.items()})
    return found


def waits_for(workload) -> list[tuple[str, int, int]]:
    return [(s.name, s.count, s.min_count) for s in workload.pod_sets]


PYTORCH = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "train", "namespace": "train", "annotations": {"berth.dev/gpu-memory": "80Gi"}},
    "spec": {
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "template": {"spec": {"containers": [{"name": "pytorch"}]}}},
            "Worker": {"replicas": 3, "template": {"spec": {"containers": [{"name": "pytorch"}]}}},
        }
    },
}


def worker(name: str, node_name: str | None = None, role: str = "worker") -> dict:
    keys = {"training.kubeflow.org/replica-type": role}
    return owned(pod(name, node_name), "PyTorchJob", "train", "kubeflow.org/v1", **keys)


def test_pods_of_one_owner_wait_as_one_workload(snapshot):
    found = snapshot(NODE, PYTORCH, worker("m", role="master"), *(worker(f"w{i}") for i in range(3)))
    assert [w.key for w in found.workloads] == ["train/train"]
    assert sorted(waits_for(found.workloads[0])) == [("master", 1, 1), ("worker", 3, 3)]
    assert found.workloads[0].kind == "PyTorchJob" and found.workloads[0].missing_pods == 0


def test_an_owners_wish_is_its_pods_wish(snapshot):
    found = snapshot(NODE, PYTORCH, *(worker(f"w{i}") for i in range(3)))
    classes = {s.pod_class for s in found.workloads[0].pod_sets}
    assert {c.least.memory_bytes for c in classes} == {80 * 2**30}


def test_pods_that_nobody_has_created_yet_are_counted(snapshot):
    workload = snapshot(NODE, PYTORCH, worker("m", role="master"), worker("w0")).workloads[0]
    assert workload.missing_pods == 2
    assert sorted(waits_for(workload)) == [("master", 1, 1), ("worker", 3, 3)]


def test_pods_that_run_already_count_for_the_gang(snapshot):
    found = snapshot(NODE, PYTORCH, worker("m", "gpu-1", "master"), worker("w0", "gpu-1"), worker("w1"), worker("w2"))
    assert waits_for(found.workloads[0]) == [("worker", 2, 2)]
    assert {a.workload for a in found.allocations} == {"train/train"}


def test_the_rest_of_a_gang_follows_its_running_pods_into_their_domain(snapshot):
    job = json.loads(json.dumps(PYTORCH))
    job["metadata"]["annotations"] = {"berth.dev/topology-required": "rack"}
    nodes = []
    for n in range(4):
        thing = node(f"n{n}")
        thing["metadata"]["labels"].update(
            {"topology.kubernetes.io/block": f"b{n // 2}", "topology.kubernetes.io/rack": "r"}
        )
        nodes.append(thing)
    found = snapshot(*nodes, job, worker("m", "n2", "master"), *(worker(f"w{i}") for i in range(3)))
    (pod_set,) = found.workloads[0].pod_sets
    assert pod_set.pod_class.node_affinity == (
        NodeTerm(
            (
                Requirement("topology.kubernetes.io/block", "In", ("b1",)),
                Requirement("topology.kubernetes.io/rack", "In", ("r",)),
            )
        ),
    )
    assert dict(found.workloads[0].provenance)["domain"].startswith("its running pods are in topology")


def test_a_gang_by_label(snapshot):
    pods = [pod(f"p{i}", None) for i in range(3)]
    for thing in pods:
        thing["metadata"]["labels"]["berth.dev/gang"] = "g"
        thing["metadata"]["annotations"] = {"berth.dev/min-count": "2", "berth.dev/queue": "ignored: a label"}
    workload = snapshot(NODE, *pods).workloads[0]
    assert (workload.name, workload.pod_count) == ("g", 3)
    assert sum(s.min_count for s in workload.pod_sets) == 2


def test_pods_of_one_gang_that_differ_are_sets_of_their_own(snapshot):
    pods = [pod("p0", None), pod("p1", None, "4")]
    for thing in pods:
        thing["metadata"]["labels"]["berth.dev/gang"] = "g"
    sets = snapshot(NODE, *pods).workloads[0].pod_sets
    assert [s.count for s in sets] == [1, 1] and len({s.name for s in sets}) == 2


def test_pods_of_a_replica_set_wait_one_by_one(snapshot):
    pods = [owned(pod(f"p{i}", None), "ReplicaSet", "web", "apps/v1") for i in range(3)]
    found = snapshot(NODE, *pods)
    assert len(found.workloads) == 3
    assert found.workloads[0].pod_sets[0].pod_class is found.workloads[1].pod_sets[0].pod_class


def test_daemons_and_static_pods_are_part_of_the_node(snapshot):
    found = snapshot(
        NODE,
        owned(pod("d", gpus="0"), "DaemonSet", "exporter", "apps/v1"),
        owned(pod("s", gpus="0"), "Node", "gpu-1", "v1"),
        pod("p"),
    )
    assert {a.name: a.is_daemon for a in found.allocations} == {"d": True, "s": True, "p": False}


def test_priorities(snapshot):
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "usual"},
            "value": 5,
            "globalDefault": True,
        },
    ]
    by_number, by_class, by_default = pod("a", None), pod("b", None), pod("c", None)
    by_number["spec"].update(priority=7, priorityClassName="unknown")
    by_class["spec"]["priorityClassName"] = "high"
    found = snapshot(NODE, *classes, by_number, by_class, by_default)
    assert {w.name: w.priority for w in found.workloads} == {"a": 7, "b": 1000, "c": 5}


def test_gates(snapshot):
    gated = pod("a", None)
    gated["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    assert snapshot(NODE, gated).workloads[0].gates == ("kueue.x-k8s.io/admission",)


# ---- volumes


def with_claim(name: str, claim: str) -> dict:
    thing = pod(name, None)
    thing["spec"]["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": claim}}]
    return thing


def claim(name: str, volume: str | None) -> dict:
    meta = {"name": name, "namespace": "train"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": volume}}


def volume(name: str, zone: str) -> dict:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]
    spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def test_a_bound_volume_ties_the_pod_to_its_place(snapshot):
    found = snapshot(NODE, with_claim("a", "data"), claim("data", "v1"), volume("v1", "z1"))
    assert found.workloads[0].pod_sets[0].pod_class.node_affinity == (NodeTerm((Requirement("zone", "In", ("z1",)),)),)
    assert found.notes == ()


def test_an_unbound_or_missing_claim_is_waited_for(snapshot):
    found = snapshot(NODE, with_claim("a", "data"), with_claim("b", "gone"), claim("data", None))
    waits = {w.name: [(u.claim, u.why) for u in w.pod_sets[0].pod_class.unbound] for w in found.workloads}
    assert waits == {"a": [("data", "has no volume yet")], "b": [("gone", "does not exist")]}


def test_a_dump_without_claims_says_so(snapshot):
    found = snapshot(NODE, with_claim("a", "data"))
    assert found.workloads[0].pod_sets[0].pod_class.unsupported == ()
    assert len(found.notes) == 1 and "dump pv,pvc as well: train/a" in found.notes[0]


# ---- queues, topology, mapping


def test_queues(snapshot):
    queues = [
        {"apiVersion": "berth.dev/v1alpha1", "kind": "GPUQueue", "metadata": {"name": "root"}},
        {
            "apiVersion": "berth.dev/v1alpha1",
            "kind": "GPUQueue",
            "metadata": {"name": "ml"},
            "spec": {"parent": "root", "weight": 3, "quota": {"*": 8}, "limit": {"H100-80GB": 16},
                     "namespaces": ["a", "train"]},
        },
    ]
    labelled = pod("a", None)
    labelled["metadata"]["labels"]["berth.dev/queue"] = "ml"
    found = snapshot(NODE, *queues, labelled)
    assert found.queues == (Queue("ml", "root", 3, (("*", 8),), (("H100-80GB", 16),), ("a", "train")), Queue("root"))
    assert found.workloads[0].queue == "ml"


@pytest.mark.parametrize(
    "api_version, kind, level",
    [
        ("berth.dev/v1alpha1", "GPUTopology", {"name": "row", "label": "example.com/row"}),
        ("kueue.x-k8s.io/v1beta2", "Topology", {"nodeLabel": "example.com/row"}),
        ("kai.scheduler/v1alpha1", "Topology", {"nodeLabel": "example.com/row", "alias": "row"}),
    ],
)
def test_levels_that_an_object_names(snapshot, api_version, kind, level):
    spec = {"levels": [level] if kind == "GPUTopology" else [level, {}]}  # Berth's own is held to its schema
    found = snapshot(NODE, {"apiVersion": api_version, "kind": kind, "metadata": {"name": "t"}, "spec": spec})
    assert [lv.label for lv in found.topology.levels] == ["example.com/row"]
    assert found.topology.find("example.com/row") == 0
    assert found.topology.levels[0].name == level.get("name", level.get("alias", "example.com/row"))


def test_levels_by_well_known_labels(snapshot):
    thing = node("n")
    thing["metadata"]["labels"]["topology.kubernetes.io/zone"] = "z"
    assert snapshot(thing).topology.levels == (Level("zone", "topology.kubernetes.io/zone"),)


def test_a_users_mapping_of_labels_to_classes(tmp_path):
    dump = write(tmp_path, "d.json", json.dumps(NODE))
    mapping = write(tmp_path, "m.yaml", "classes:\n- match: {nvidia.com/gpu.count: '8'}\n  class: H200-141GB\n")
    assert read_snapshot(str(dump), now_s=0, gpu_mapping=str(mapping)).nodes[0].gpu_class == "H200-141GB"
    with pytest.raises(BadInput) as refused:
        read_snapshot(str(dump), now_s=0, gpu_mapping=str(tmp_path / "none.yaml"))
    assert refused.value.exit_code == 2


def test_times():
    assert seconds("1970-01-01T00:01:00Z") == seconds("1970-01-01T01:01:00+01:00") == 60.0
    assert seconds("1970-01-01T00:01:00.250000Z") == 60.25
    assert seconds(None) == seconds("") == seconds("yesterday") == 0.0


def test_what_is_doubtful_of_who_runs_is_known_too(snapshot):
    running, waiting = pod("runs", "h100-0"), pod("waits", None)
    for one in (running, waiting):
        one["metadata"]["annotations"] = {"berth.dev/min-runtime": "-5m", "berth.dev/topology-requird": "rack"}
        one["metadata"].pop("ownerReferences", None)
    found = snapshot(NODE, running, waiting)
    ((identity, told),) = found.findings
    assert identity == "Pod train/runs"
    assert "-5m" in told[-1] + told[0] and any("close to it: topology-required" in one for one in told)
    (answer,) = why(found, "runs", "train")
    assert answer.remarks[-len(told) :] == told


def test_a_queue_that_does_not_pay_is_told_of_a_dump_and_before_a_job_is_submitted(snapshot):
    queue = {"apiVersion": "berth.dev/v1alpha1", "kind": "GPUQueue", "metadata": {"name": "ml"},
             "spec": {"namespaces": ["train"]}}  # fmt: skip
    labelled = pod("a", None)
    labelled["metadata"]["labels"]["berth.dev/queue"] = "nope"
    found = snapshot(NODE, queue, labelled)
    doubt = "There is no GPUQueue nope. Queue ml pays, where namespace train is at home."
    (workload,) = found.workloads
    assert workload.queue == "ml" and doubt in workload.findings
    assert any(note.endswith(doubt) for note in found.notes)
    (asked,) = what_if(found, [replace(workload, queue="nope", findings=())])
    assert doubt in asked.remarks
