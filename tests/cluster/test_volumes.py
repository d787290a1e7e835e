"""Volumes on the real control plane: its volume controllers complete what Berth selects; a provisioner is played.

GPUs that dynamic allocation gives, too: on the real API server nobody is bound to them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from devcluster import Admin, Cluster, FakeKubelet, InvariantWatcher, Refused, gpu_pod
from programs import ROOT
from scheduler import TAKEOVER_S, Replica
from versions import needs_claims_for_resources

Thing = dict[str, Any]

SELECTED = "volume.kubernetes.io/selected-node"
PROVISIONER = "disk.example.com"
RACK = "example.com/rack"
LOCAL, MADE = "local-disks", "made-disks"
KINDS = ("storage.k8s.io/v1/storageclasses", "storage.k8s.io/v1/csinodes", "storage.k8s.io/v1/csidrivers",
         "resource.k8s.io/v1/resourceslices", "resource.k8s.io/v1/deviceclasses")  # fmt: skip


@pytest.fixture(autouse=True)
def swept(cluster: Cluster, new_namespace: Callable[..., str]) -> Iterator[None]:
    """What is in no namespace goes with the test; claims before volumes, so that neither keeps the other."""
    yield
    admin = cluster.admin
    for claim in admin.items("/api/v1/persistentvolumeclaims"):
        path = admin.path_of({**claim, "apiVersion": "v1", "kind": "PersistentVolumeClaim"})
        admin.delete(f"/api/v1/namespaces/{claim['metadata']['namespace']}/pods", grace_s=0)
        admin.delete(path)
        quietly(admin, path)
    for volume in admin.items("/api/v1/persistentvolumes"):
        path = f"/api/v1/persistentvolumes/{volume['metadata']['name']}"
        admin.delete(path)
        quietly(admin, path)
    for kind in KINDS:
        admin.delete(f"/apis/{kind}")


def quietly(admin: Admin, path: str) -> None:
    """Take the finalizers off what waits for others to let go."""
    try:
        admin.patch(path, {"metadata": {"finalizers": None}})
    except Refused as refused:
        assert refused.status == 404, refused


class Provisioner:
    """What an external provisioner does: a volume for each claim of its class of which a node is selected.

    `refuse` are nodes that it gives up instead; while it `rests` it does nothing. `seen` is each (claim, node).
    """

    def __init__(self, admin: Admin, namespace: str, refuse: tuple[str, ...] = (), rests: bool = False) -> None:
        self.seen: list[tuple[str, str]] = []
        self.refuse = refuse
        self.rests = rests
        self._admin = admin
        self._path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Provisioner:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._ended.wait(0.05):
            for claim in [] if self.rests else self._admin.items(self._path):
                node = claim["metadata"].get("annotations", {}).get(SELECTED)
                if node and claim["spec"].get("storageClassName") == MADE and not claim["spec"].get("volumeName"):
                    self._serve(claim, node)

    def _serve(self, claim: Thing, node: str) -> None:
        meta = claim["metadata"]
        if (meta["name"], node) in self.seen:
            return
        self.seen.append((meta["name"], node))
        if node in self.refuse:
            self._admin.patch(f"{self._path}/{meta['name']}", {"metadata": {"annotations": {SELECTED: None}}})
            return
        volume = disk(f"pv-{meta['uid']}", node, "10Gi", MADE, driver=PROVISIONER)
        volume["spec"]["accessModes"] = claim["spec"]["accessModes"]
        volume["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": PROVISIONER}
        volume["spec"]["claimRef"] = {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": meta["name"], "namespace": meta["namespace"],
            "uid": meta["uid"], "resourceVersion": meta["resourceVersion"],
        }  # fmt: skip
        self._admin.create(volume)


def storage_class(name: str, provisioner: str, racks: tuple[str, ...] = (), waits: bool = True) -> Thing:
    made: Thing = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
    }  # fmt: skip
    if racks:
        made["allowedTopologies"] = [{"matchLabelExpressions": [{"key": RACK, "values": list(racks)}]}]
    return made


def disk(name: str, node: str, size: str, of_class: str = LOCAL, driver: str = "") -> Thing:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    source: Thing = {"csi": {"driver": driver, "volumeHandle": name}} if driver else {"local": {"path": f"/mnt/{name}"}}
    return {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": of_class,
            "persistentVolumeReclaimPolicy": "Retain", **source,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }  # fmt: skip


def claim_spec(of_class: str, size: str = "1Gi", mode: str = "ReadWriteOnce") -> Thing:
    return {"storageClassName": of_class, "accessModes": [mode], "resources": {"requests": {"storage": size}}}


def claim(name: str, namespace: str, of_class: str, size: str = "1Gi", mode: str = "ReadWriteOnce") -> Thing:
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": namespace},
        "spec": claim_spec(of_class, size, mode),
    }  # fmt: skip


def pod(name: str, namespace: str, *claims: str, scratch: str = "", gpus: int = 1, **more: Any) -> Thing:
    """A pod with these claims; with `scratch` a claim of that class is made for it."""
    volumes: list[Thing] = [{"name": f"d{i}", "persistentVolumeClaim": {"claimName": c}} for i, c in enumerate(claims)]
    if scratch:
        volumes.append({"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim_spec(scratch)}}})
    return gpu_pod(name, namespace, gpus, volumes=volumes, **more)


class Stage:
    """A namespace, and what became of what was put into it."""

    def __init__(self, admin: Admin, namespace: str) -> None:
        self.admin, self.namespace = admin, namespace

    def create(self, *things: Thing) -> None:
        for thing in things:
            self.admin.create(thing)

    def pods(self) -> dict[str, Thing]:
        return {p["metadata"]["name"]: p for p in self.admin.items(f"/api/v1/namespaces/{self.namespace}/pods")}

    def nodes(self) -> dict[str, str]:
        """By pod, where it has a node."""
        return {name: p["spec"]["nodeName"] for name, p in self.pods().items() if p["spec"].get("nodeName")}

    def claims(self) -> dict[str, Thing]:
        found = self.admin.items(f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims")
        return {c["metadata"]["name"]: c for c in found}

    def selected(self) -> dict[str, str]:
        made = {name: c["metadata"].get("annotations", {}).get(SELECTED) for name, c in self.claims().items()}
        return {name: node for name, node in made.items() if node}

    def until(self, claim: Callable[[], Any], what: str, timeout_s: float = 20.0) -> Any:
        return self.admin.until(claim, timeout_s, what)

    def wait_placed(self, *names: str) -> dict[str, str]:
        self.until(lambda: set(names) <= set(self.nodes()), f"{', '.join(names)} placed")
        return self.nodes()

    def wait_said(self, name: str, reason: str, *words: str) -> str:
        """What the pod's condition says, once it says this reason and these words."""

        def said() -> str:
            for each in self.pods()[name].get("status", {}).get("conditions", []):
                if each["type"] == "PodScheduled" and each["status"] == "False":
                    message = str(each.get("message", ""))
                    if message.startswith(f"{reason}: ") and all(word in message for word in words):
                        return message
            return ""

        try:
            found: str = self.until(said, reason)
        except TimeoutError:
            raise AssertionError(f"{name} does not wait for {reason} {words}: {self.pods()[name]['status']}") from None
        return found


@pytest.fixture
def stage(admin: Admin, namespace: str, kubelet: FakeKubelet, invariants: InvariantWatcher) -> Stage:
    return Stage(admin, namespace)


@pytest.fixture
def racks(make_nodes: Callable[..., list[str]], admin: Admin) -> list[str]:
    """Four nodes, in racks r0, r0, r1, r1."""
    names = make_nodes(4)
    for i, name in enumerate(names):
        admin.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {RACK: f"r{i // 2}"}}})
    return names


# ---- local volumes


def test_local_volumes_get_their_claims_and_pods_go_where_they_are(
    stage: Stage, racks: list[str], run_scheduler: Callable[..., Replica]
) -> None:
    run_scheduler()
    stage.create(
        storage_class(LOCAL, "kubernetes.io/no-provisioner"),
        disk("small", racks[2], "5Gi"), disk("large", racks[2], "50Gi"), disk("elsewhere", racks[3], "5Gi"),
    )  # fmt: skip
    for name, size in (("a", "5Gi"), ("b", "5Gi"), ("c", "10Gi"), ("d", "1Gi")):
        stage.create(claim(name, stage.namespace, LOCAL, size))
    stage.create(pod("c", stage.namespace, "c"))
    assert stage.wait_placed("c")["c"] == racks[2]
    assert stage.claims()["c"]["spec"]["volumeName"] == "large"
    for name in ("a", "b"):
        stage.create(pod(name, stage.namespace, name))
    nodes = stage.wait_placed("a", "b")
    assert sorted(nodes[name] for name in ("a", "b")) == sorted(racks[2:])
    stage.until(lambda: all(stage.claims()[n]["status"]["phase"] == "Bound" for n in "abc"), "claims bound")
    volumes = [stage.claims()[name]["spec"]["volumeName"] for name in "abc"]
    assert len(set(volumes)) == 3
    stage.create(pod("d", stage.namespace, "d"))
    stage.wait_said("d", "NotEnoughResources", f"lack volumes of class {LOCAL}")
    stage.create(disk("new", racks[0], "5Gi"))
    assert stage.wait_placed("d")["d"] == racks[0]


def test_many_claims_at_once_get_a_volume_each(
    stage: Stage, racks: list[str], run_scheduler: Callable[..., Replica]
) -> None:
    """Thirty-two pods, thirty-two volumes, and the real controller that binds: no two the same, nobody left."""
    run_scheduler()
    stage.create(storage_class(LOCAL, "kubernetes.io/no-provisioner"))
    stage.admin.create_all(disk(f"v{i}", racks[i % 4], "5Gi") for i in range(32))
    stage.admin.create_all(pod(f"p{i}", stage.namespace, scratch=LOCAL) for i in range(32))
    nodes = stage.wait_placed(*(f"p{i}" for i in range(32)))
    claims = stage.claims()
    assert len({c["spec"]["volumeName"] for c in claims.values()}) == 32
    where = {v["metadata"]["name"]: v for v in stage.admin.items("/api/v1/persistentvolumes")}
    for i in range(32):
        volume = where[claims[f"p{i}-scratch"]["spec"]["volumeName"]]
        term = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
        assert term["matchExpressions"][0]["values"] == [nodes[f"p{i}"]]


def test_a_gang_that_local_volumes_do_not_suffice_for_takes_none(
    stage: Stage, racks: list[str], run_scheduler: Callable[..., Replica]
) -> None:
    run_scheduler()
    stage.create(storage_class(LOCAL, "kubernetes.io/no-provisioner"), disk("v0", racks[0], "5Gi"))
    keys = {"labels": {"berth.dev/gang": "g"}, "annotations": {"berth.dev/min-count": "2"}}
    stage.create(*(pod(f"w{i}", stage.namespace, scratch=LOCAL, **keys) for i in range(2)))
    stage.wait_said("w0", "NotEnoughResources", f"volumes of class {LOCAL}")
    assert stage.admin.get("/api/v1/persistentvolumes/v0")["spec"].get("claimRef") is None
    stage.create(disk("v1", racks[3], "5Gi"))
    assert sorted(stage.wait_placed("w0", "w1").values()) == [racks[0], racks[3]]


# ---- volumes that are made


def test_a_volume_is_made_where_the_pod_goes(
    stage: Stage, racks: list[str], run_scheduler: Callable[..., Replica]
) -> None:
    run_scheduler()
    stage.create(storage_class(MADE, PROVISIONER, racks=("r1",)), claim("data", stage.namespace, MADE))
    with Provisioner(stage.admin, stage.namespace) as provisioner:
        stage.create(pod("p", stage.namespace, "data", scratch=MADE))
        node = stage.wait_placed("p")["p"]
    assert node in racks[2:] and set(provisioner.seen) == {("data", node), ("p-scratch", node)}


def test_a_gang_holds_its_places_until_all_its_volumes_are_there(
    stage: Stage, racks: list[str], run_scheduler: Callable[..., Replica]
) -> None:
    run_scheduler()
    stage.create(storage_class(MADE, PROVISIONER))
    keys = {"labels": {"berth.dev/gang": "g"}, "annotations": {"berth.dev/min-count": "4"}}
    with Provisioner(stage.admin, stage.namespace, rests=True) as provisioner:
        stage.create(*(pod(f"w{i}", stage.namespace, scratch=MADE, gpus=8, **keys) for i in range(4)))
        stage.until(lambda: len(stage.selected()) == 4, "all claims selected")
        stage.wait_said("w0", "WaitingForVolume", "its place on 4 nodes is held")
        assert set(stage.selected().values()) == set(racks) and stage.nodes() == {}
        nominated = {p["status"].get("nominatedNodeName") for p in stage.pods().values()}
        assert nominated == set(racks)
        stage.create(pod("late", stage.namespace, gpus=8))
        stage.wait_said("late", "BehindReservation")
        provisioner.rests = False
        nodes = stage.wait_placed("w0", "w1", "w2", "w3")
    assert {f"{name}-scratch": node for name, node in nodes.items()} == stage.selected()


def test_a_node_that_the_provisioner_gives_up_is_left_for_another(
    stage: Stage, racks: list[str], run_scheduler: Callable[..., Replica]
) -> None:
    run_scheduler()
    stage.create(storage_class(MADE, PROVISIONER), claim("data", stage.namespace, MADE))
    with Provisioner(stage.admin, stage.namespace, refuse=tuple(racks[:2])) as provisioner:
        stage.create(pod("p", stage.namespace, "data"))
        node = stage.wait_placed("p")["p"]
    tried = [on for _, on in provisioner.seen]
    assert node == tried[-1] and node in racks[2:] and set(tried[:-1]) <= set(racks[:2])
    assert stage.selected() == {"data": node}


def test_a_leader_that_follows_goes_on_where_the_last_one_selected(
    stage: Stage, racks: list[str], run_scheduler: Callable[..., Replica]
) -> None:
    first = run_scheduler("a")
    second = run_scheduler("b", wait=False)
    stage.create(storage_class(MADE, PROVISIONER))
    keys = {"labels": {"berth.dev/gang": "g"}, "annotations": {"berth.dev/min-count": "4"}}
    with Provisioner(stage.admin, stage.namespace, rests=True) as provisioner:
        stage.create(*(pod(f"w{i}", stage.namespace, scratch=MADE, gpus=8, **keys) for i in range(4)))
        stage.until(stage.selected, "a claim selected")
        first.kill()
        chosen = stage.selected()
        second.wait_decides(TAKEOVER_S + 5)
        stage.until(lambda: len(stage.selected()) == 4, "all claims selected", TAKEOVER_S + 10)
        assert chosen.items() <= stage.selected().items(), "what was selected stays"
        provisioner.rests = False
        nodes = stage.wait_placed("w0", "w1", "w2", "w3")
    assert {f"{name}-scratch": node for name, node in nodes.items()} == stage.selected()


# ---- what else volumes decide


def test_a_node_attaches_no_more_volumes_than_its_driver_says(
    stage: Stage, make_nodes: Callable[..., list[str]], run_scheduler: Callable[..., Replica]
) -> None:
    (node,) = make_nodes(1)
    spec = {"drivers": [{"name": PROVISIONER, "nodeID": node, "allocatable": {"count": 2}}]}
    stage.create(
        {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node}, "spec": spec},
        storage_class(MADE, PROVISIONER),
    )
    run_scheduler()
    with Provisioner(stage.admin, stage.namespace):
        stage.create(*(pod(f"p{i}", stage.namespace, scratch=MADE) for i in range(3)))
        stage.until(lambda: len(stage.nodes()) == 2, "two placed")
        (left,) = set(stage.pods()) - set(stage.nodes())
        stage.wait_said(left, "NotEnoughResources", f"attachable-volumes-csi-{PROVISIONER}")
        gone = next(iter(stage.nodes()))
        stage.admin.delete(f"/api/v1/namespaces/{stage.namespace}/pods/{gone}", grace_s=0)
        stage.wait_placed(left)


def test_a_claim_of_one_pod_alone_goes_to_the_next_when_it_is_free(
    stage: Stage, racks: list[str], run_scheduler: Callable[..., Replica]
) -> None:
    run_scheduler()
    stage.create(storage_class(MADE, PROVISIONER), claim("data", stage.namespace, MADE, mode="ReadWriteOncePod"))
    with Provisioner(stage.admin, stage.namespace):
        stage.create(pod("first", stage.namespace, "data"))
        stage.wait_placed("first")
        stage.create(pod("second", stage.namespace, "data"))
        stage.wait_said("second", "WaitingForVolume", "can be used by one pod alone, and is by first")
        stage.admin.delete(f"/api/v1/namespaces/{stage.namespace}/pods/first", grace_s=0)
        stage.wait_placed("second")


def test_what_is_missing_is_named_and_no_more_once_it_is_there(
    stage: Stage, racks: list[str], run_scheduler: Callable[..., Replica]
) -> None:
    run_scheduler()
    stage.create(pod("p", stage.namespace, "data"))
    stage.wait_said("p", "WaitingForVolume", "the volume claim data does not exist")
    stage.create(claim("data", stage.namespace, MADE))
    with Provisioner(stage.admin, stage.namespace):
        stage.create(storage_class(MADE, PROVISIONER))
        stage.wait_placed("p")


def test_the_rights_of_the_chart_are_enough_for_volumes(
    stage: Stage, racks: list[str], cluster: Cluster, run_scheduler: Callable[..., Replica]
) -> None:
    things = yaml.safe_load_all((ROOT / "deploy/kustomize/berth.yaml").read_text())
    (role,) = [t for t in things if t and t["kind"] == "ClusterRole" and t["metadata"]["name"] == "berth"]
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "volumes"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "volumes"},
        "subjects": [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}],
    }  # fmt: skip
    role["metadata"]["name"] = "volumes"
    stage.create(role, binding)
    try:
        kubeconfig = cluster.kubeconfig_of("alice")
        run_scheduler(kubeconfig=kubeconfig, values={"leaderElection.enabled": "false"})
        stage.create(
            storage_class(LOCAL, "kubernetes.io/no-provisioner"), disk("v", racks[1], "5Gi"),
            storage_class(MADE, PROVISIONER), claim("data", stage.namespace, MADE),
        )  # fmt: skip
        with Provisioner(stage.admin, stage.namespace):
            stage.create(pod("p", stage.namespace, "data", scratch=LOCAL))
            assert stage.wait_placed("p") == {"p": racks[1]}
    finally:
        for thing in (binding, role):
            stage.admin.delete(stage.admin.path_of(thing))


# ---- dynamic resource allocation


@needs_claims_for_resources
def test_gpus_that_dynamic_allocation_alone_gives_are_refused_by_name(
    stage: Stage, make_nodes: Callable[..., list[str]], run_scheduler: Callable[..., Replica]
) -> None:
    (node,) = make_nodes(1, "cpu")
    stage.create(
        {
            "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.example.com"},
            "spec": {"extendedResourceName": "nvidia.com/gpu",
                     "selectors": [{"cel": {"expression": 'device.driver == "gpu.nvidia.com"'}}]},
        },
        {
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{node}-gpus"},
            "spec": {"driver": "gpu.nvidia.com", "nodeName": node, "devices": [{"name": "gpu-0"}],
                     "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}},
        },
    )  # fmt: skip
    run_scheduler()
    claims = [{"name": "gpu", "resourceClaimName": "mine"}]
    stage.create(pod("by-resource", stage.namespace), pod("by-claim", stage.namespace, gpus=0, resourceClaims=claims))
    stage.wait_said("by-resource", "Unsupported", "1 node that has it gives nvidia.com/gpu by dynamic resource")
    stage.wait_said("by-claim", "Unsupported", "resource claims (dynamic allocation of devices)")
    (plugin,) = make_nodes(1, "h100", first=1)
    assert stage.wait_placed("by-resource") == {"by-resource": plugin}
    time.sleep(0.5)
    assert "by-claim" not in stage.nodes()
