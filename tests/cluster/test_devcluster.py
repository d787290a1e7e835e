"""The control plane and what watches it are what they claim to be."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from devcluster import Cluster, InvariantBroken, InvariantWatcher, Limit, Refused, gpu_pod, pod_group
from devcluster.amounts import asked, thousandths
from devcluster.fake_kubelet import duration_s
from devcluster.options import API_SERVER, CONTROLLER_MANAGER, ETCD, KWOK
from devcluster.process import Identity

REPOSITORY = Path(__file__).parent.parent.parent


def pod_of(admin, namespace, name):
    return admin.get(f"/api/v1/namespaces/{namespace}/pods/{name}")


def phase_of(admin, namespace, name):
    return pod_of(admin, namespace, name)["status"].get("phase")


@pytest.fixture
def pod_groups(cluster):
    """PodGroup of scheduling.k8s.io/v1beta1 came with 1.37."""
    if cluster.options.minor < 37:
        pytest.skip(f"Kubernetes {cluster.options.kubernetes} has no PodGroup v1beta1")


# --- the control plane


def test_it_is_the_version_that_was_asked_for(cluster, admin):
    assert admin.get("/version")["gitVersion"] == f"v{cluster.options.kubernetes}"
    groups = {group["name"] for group in admin.get("/apis")["groups"]}
    assert {"scheduling.k8s.io", "resource.k8s.io", "admissionregistration.k8s.io"} <= groups


def test_the_workload_api_is_served(admin, pod_groups):
    assert {"PodGroup", "Workload"} <= {
        resource["kind"] for resource in admin.get("/apis/scheduling.k8s.io/v1beta1")["resources"]
    }


def test_nodes_are_ready_untainted_and_labelled(cluster, admin, make_nodes):
    make_nodes(40, "mixed")
    nodes = admin.items("/api/v1/nodes")
    assert len(nodes) == 40
    assert not any(node["spec"].get("taints") for node in nodes)
    assert all(
        {"Ready": "True"}.items() <= {c["type"]: c["status"] for c in node["status"]["conditions"]}.items()
        for node in nodes
    )
    products = {node["metadata"]["labels"].get("nvidia.com/gpu.product") for node in nodes}
    assert products == {"NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L40S", None}
    assert {node["metadata"]["labels"]["example.com/rack"] for node in nodes} == {"r0", "r1", "r2"}


def test_a_user_without_rights_is_refused_and_a_service_account_has_a_token(cluster, admin, namespace):
    viewer = cluster.client("viewer")
    with pytest.raises(Refused) as refused:
        viewer.items("/api/v1/pods")
    assert refused.value.status == 403
    viewer.close()
    assert admin.service_account_token(namespace, "default").count(".") == 2


def test_the_real_scheduler_binds_and_the_kubelet_runs(kube_scheduler, admin, namespace, make_nodes, kubelet):
    make_nodes(2)
    admin.create_all(
        gpu_pod(
            f"p{i}", namespace, 4, scheduler="default-scheduler", annotations={"devcluster.berth.dev/run-for": "1s"}
        )
        for i in range(4)
    )

    def phases():
        return {pod["status"].get("phase") for pod in admin.items(f"/api/v1/namespaces/{namespace}/pods")}

    admin.until(lambda: phases() == {"Running"}, 15, "four pods run")
    admin.until(lambda: phases() == {"Succeeded"}, 5, "four pods succeed")


def test_a_pod_group_can_be_deleted(admin, namespace, pod_groups):
    path = admin.path_of(admin.create(pod_group("gang", namespace, 2)))
    admin.delete(path)
    admin.until(lambda: not admin.items(path.rsplit("/", 1)[0]), 10, "the controller lets go of the PodGroup")


@pytest.mark.parametrize("name", [ETCD, API_SERVER, CONTROLLER_MANAGER])
def test_state_survives_the_end_of_a_component(cluster, admin, namespace, make_nodes, name):
    make_nodes(3)
    admin.create(gpu_pod("before", namespace))
    before = cluster.usage()[name]
    cluster.restart(name)
    cluster.wait_ready(API_SERVER)
    assert len(admin.items("/api/v1/nodes")) == 3
    assert phase_of(admin, namespace, "before") == "Pending"
    admin.create(gpu_pod("after", namespace))
    assert before.cpu_s > 0 and before.rss_bytes > 10 * 2**20


def test_a_paused_api_server_answers_when_it_is_resumed(cluster, admin):
    cluster.pause(API_SERVER)
    with pytest.raises(TimeoutError):
        admin.request("GET", "/version", timeout_s=0.5)
    cluster.resume(API_SERVER)
    assert admin.get("/version")


def test_the_api_server_counts_its_requests(cluster, admin, namespace, make_nodes):
    make_nodes(1)
    before = cluster.requests()
    admin.create_all(gpu_pod(f"p{i}", namespace) for i in range(5))
    admin.bind(namespace, "p0", "n00000")
    with pytest.raises(Refused):
        admin.bind(namespace, "p0", "n00000")
    done = cluster.requests().since(before)
    assert done.of(verb="POST", resource="pods", status=201) == 5
    assert done.of(verb="POST", resource="pods/binding", status=201) == 1
    assert done.of(verb="POST", resource="pods/binding", status=409) == 1
    assert done.writes("pods/binding") == 2


def test_nothing_is_left_when_the_owner_is_killed():
    program = """
        import json, time
        from devcluster import Cluster
        cluster = Cluster().start()
        print(json.dumps([str(cluster.state), cluster.state.joinpath("state.json").read_text()]), flush=True)
        time.sleep(60)
    """
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    state, known = json.loads(owner.stdout.readline())
    processes = [Identity(*pair) for pair in json.loads(known)["processes"].values()]
    assert len(processes) == 3 and all(process.is_alive for process in processes)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    until = time.monotonic() + 10
    while any(process.is_alive for process in processes) or Path(state).exists():
        assert time.monotonic() < until, "processes or their folder are left"
        time.sleep(0.05)


def test_up_status_down(tmp_path):
    def run(command, *arguments):
        program = [sys.executable, "-m", "devcluster", command, "--state", str(tmp_path / "state"), *arguments]
        return subprocess.run(program, cwd=REPOSITORY, capture_output=True, text=True)

    up = run("up", "--nodes", "20", "--kubelet", "fake", "--audit")
    try:
        assert up.returncode == 0, up.stderr
        assert up.stdout.strip() == str(tmp_path / "state" / "kubeconfig")
        again = run("up")
        assert again.returncode == 2 and f"devcluster down --state {tmp_path / 'state'}` ends it" in again.stderr
        cluster = Cluster.attach(str(tmp_path / "state"))
        assert len(cluster.kubectl("get", "nodes", "-o", "name").split()) == 20
        cluster.admin.create(gpu_pod("p"))
        cluster.admin.bind("default", "p", "n00003")
        cluster.admin.until(lambda: phase_of(cluster.admin, "default", "p") == "Running", 5, "the pod runs")
        assert "fake-kubelet" in run("status").stdout
        written = set(cluster.audited_writes())
        assert {("admin", "create", "pods", 201), ("admin", "create", "pods/binding", 201)} <= written
        assert ("admin", "patch", "pods/status", 200) in written  # by the kubelet
    finally:
        down = run("down")
        assert down.returncode == 0
    assert "Ended: 4 programs" in down.stderr
    assert not list((tmp_path / "state").glob("kubeconfig*")), "it leads nowhere any more"
    assert run("status").returncode == 1
    assert cluster.usage() == {}
    cluster.admin.close()


# --- the kubelet that is not there


def test_the_kubelet_admits_what_fits_and_refuses_the_rest(cluster, admin, namespace, make_nodes, kubelet):
    make_nodes(1, allocatable={"cpu": "40"})
    admin.create_all([gpu_pod("six", namespace, 6), gpu_pod("three", namespace, 3), gpu_pod("none", namespace, 0)])
    busy = gpu_pod("busy", namespace, 0)
    busy["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "16500m"
    admin.create(busy)
    for name in ("six", "three", "busy", "none"):
        admin.bind(namespace, name, "n00000")
        admin.until(lambda name=name: phase_of(admin, namespace, name) != "Pending", 5, f"{name} is decided")
    assert [phase_of(admin, namespace, name) for name in ("six", "none")] == ["Running", "Running"]
    refused = {name: pod_of(admin, namespace, name)["status"] for name in ("three", "busy")}
    assert {status["phase"] for status in refused.values()} == {"Failed"}
    words = "Pod was rejected: Node didn't have enough resource: "
    assert refused["three"]["reason"] == "OutOfnvidia.com/gpu"
    assert refused["three"]["message"] == words + "nvidia.com/gpu, requested: 3, used: 6, capacity: 8"
    assert refused["busy"]["reason"] == "OutOfcpu"
    assert refused["busy"]["message"] == words + "cpu, requested: 16500, used: 24000, capacity: 40000"
    assert [(each.pod, each.reason) for each in kubelet.rejections] == [
        ("three", "OutOfnvidia.com/gpu"),
        ("busy", "OutOfcpu"),
    ]


def test_a_deleted_pod_takes_its_time_but_not_longer_than_its_grace(cluster, admin, namespace, make_nodes, run_kubelet):
    run_kubelet(stop_s=1.0)
    make_nodes(1)
    admin.create_all([gpu_pod("patient", namespace, 8), gpu_pod("next", namespace, 8)])
    admin.bind(namespace, "patient", "n00000")
    admin.until(lambda: phase_of(admin, namespace, "patient") == "Running", 5)
    path = f"/api/v1/namespaces/{namespace}/pods"
    began = time.monotonic()
    admin.delete(f"{path}/patient")
    admin.until(lambda: len(admin.items(path)) == 1, 5)
    assert 0.9 < time.monotonic() - began < 3
    admin.bind(namespace, "next", "n00000")
    admin.until(lambda: phase_of(admin, namespace, "next") == "Running", 5, "the room is free again")


def test_the_kubelet_can_refuse_devices_as_the_device_manager_does_and_late(
    cluster, admin, namespace, make_nodes, run_kubelet
):
    run_kubelet(refuses_devices_first=True, reject_s=0.5)
    make_nodes(1)
    admin.create_all([gpu_pod("six", namespace, 6), gpu_pod("three", namespace, 3)])
    admin.bind(namespace, "six", "n00000")
    admin.until(lambda: phase_of(admin, namespace, "six") == "Running", 5)
    admin.bind(namespace, "three", "n00000")
    time.sleep(0.3)
    assert phase_of(admin, namespace, "three") == "Pending"
    admin.until(lambda: phase_of(admin, namespace, "three") == "Failed", 5)
    refused = pod_of(admin, namespace, "three")["status"]
    assert refused["reason"] == "UnexpectedAdmissionError"
    assert refused["message"] == (  # word for word what test_real_kubelet.py sees
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
        "Requested: 3, Available: 2, which is unexpected"
    )


def test_a_pod_can_be_refused_for_another_reason_and_ended_by_hand(cluster, admin, namespace, make_nodes, run_kubelet):
    broken = ("UnexpectedAdmissionError", "Allocate failed due to no devices, which is unexpected")
    kubelet = run_kubelet(refuse=lambda pod: broken if pod["metadata"]["name"] == "unlucky" else None)
    make_nodes(1)
    admin.create_all([gpu_pod("unlucky", namespace), gpu_pod("lucky", namespace)])
    for name in ("unlucky", "lucky"):
        admin.bind(namespace, name, "n00000")
    admin.until(lambda: phase_of(admin, namespace, "unlucky") == "Failed", 5)
    assert pod_of(admin, namespace, "unlucky")["status"]["reason"] == "UnexpectedAdmissionError"
    admin.until(lambda: phase_of(admin, namespace, "lucky") == "Running", 5)
    kubelet.finish(namespace, "lucky", succeeded=False)
    assert phase_of(admin, namespace, "lucky") == "Failed"


def test_the_kubelet_goes_on_after_the_api_server_was_away(cluster, admin, namespace, make_nodes, kubelet):
    make_nodes(1)
    admin.create(gpu_pod("first", namespace))
    admin.bind(namespace, "first", "n00000")
    admin.until(lambda: phase_of(admin, namespace, "first") == "Running", 5)
    cluster.restart(API_SERVER, down_s=0.5)
    admin.create(gpu_pod("second", namespace))
    admin.bind(namespace, "second", "n00000")
    admin.until(lambda: phase_of(admin, namespace, "second") == "Running", 10, "the second pod runs")


def test_kwok_runs_ends_and_deletes_pods(cluster, admin, namespace, make_nodes):
    cluster.start_component(KWOK)
    make_nodes(2)
    ends = {"devcluster.berth.dev/run-for": "1s"}
    admin.create_all([gpu_pod("job", namespace, annotations=ends), gpu_pod("stays", namespace)])
    for name in ("job", "stays"):
        admin.bind(namespace, name, "n00001")
    admin.until(lambda: phase_of(admin, namespace, "job") == "Succeeded", 10, "the pod ends by itself")
    assert phase_of(admin, namespace, "stays") == "Running"
    path = f"/api/v1/namespaces/{namespace}/pods"
    admin.delete(f"{path}/stays")
    admin.until(lambda: [pod["metadata"]["name"] for pod in admin.items(path)] == ["job"], 10, "the pod stops")


# --- what must never happen is seen


def test_a_node_over_its_allocatable_stops_the_test_at_once(cluster, admin, namespace, make_nodes, watch_invariants):
    watcher = watch_invariants()
    make_nodes(1)
    admin.create_all(gpu_pod(f"p{i}", namespace, 4) for i in range(3))
    admin.bind(namespace, "p0", "n00000")
    admin.bind(namespace, "p1", "n00000")
    time.sleep(0.3)
    watcher.check()
    began = time.monotonic()
    with pytest.raises(InvariantBroken, match=r"12 of 8 nvidia\.com/gpu"):
        admin.bind(namespace, "p2", "n00000")
        time.sleep(10)
    assert time.monotonic() - began < 2
    assert [violation.rule for violation in watcher.violations] == ["over-allocatable"]


def test_room_that_was_freed_may_be_used_again(cluster, admin, namespace, make_nodes, invariants, kubelet):
    make_nodes(1)
    for i in range(4):
        admin.create(gpu_pod(f"p{i}", namespace, 8))
        admin.bind(namespace, f"p{i}", "n00000")
        admin.until(lambda i=i: phase_of(admin, namespace, f"p{i}") == "Running", 5)
        if i % 2:
            kubelet.finish(namespace, f"p{i}")
        else:
            admin.delete(f"/api/v1/namespaces/{namespace}/pods/p{i}")
            admin.until(lambda i=i: f"p{i}" not in str(admin.items(f"/api/v1/namespaces/{namespace}/pods")), 5)
    assert invariants.binds == 4


def test_with_a_foreign_scheduler_over_commit_has_to_settle(cluster, admin, namespace, make_nodes, watch_invariants):
    watcher = watch_invariants(foreign=True, settle_s=1.0)
    make_nodes(2)
    admin.create_all(gpu_pod(f"own{i}", namespace, 8) for i in range(2))
    admin.create_all(gpu_pod(f"other{i}", namespace, 8, scheduler="default-scheduler") for i in range(2))
    for i in range(2):
        admin.bind(namespace, f"other{i}", f"n0000{i}")
        admin.bind(namespace, f"own{i}", f"n0000{i}")
    admin.until(lambda: set(watcher.over_now()) == {"n00000", "n00001"}, 2, "both nodes are seen over")
    admin.delete(f"/api/v1/namespaces/{namespace}/pods/own0", grace_s=0)
    with pytest.raises(InvariantBroken, match="n00001 for more than 1 s"):
        time.sleep(10)
    assert [violation.subject for violation in watcher.violations] == ["n00001"]


def test_a_gang_that_stays_partly_bound_is_seen(admin, namespace, pod_groups, make_nodes, watch_invariants):
    watcher = watch_invariants(partial_s=0.5)
    make_nodes(2)
    for name in ("whole", "half"):
        admin.create(pod_group(name, namespace, 2))
        admin.create_all(gpu_pod(f"{name}{i}", namespace, 2, group=name) for i in range(2))
    keys = {"labels": {"berth.dev/gang": "keyed"}, "annotations": {"berth.dev/min-count": "2"}}
    admin.create_all(gpu_pod(f"keyed{i}", namespace, 2, **keys) for i in range(2))
    for name in ("whole0", "whole1", "keyed0", "keyed1"):
        admin.bind(namespace, name, "n00000")
    admin.delete(
        f"/api/v1/namespaces/{namespace}/pods/whole1", grace_s=0
    )  # was whole: no decision that left it partial
    time.sleep(0.8)
    watcher.check()
    with pytest.raises(InvariantBroken, match=f"1 of 2 pods of PodGroup {namespace}/half"):
        admin.bind(namespace, "half0", "n00001")
        time.sleep(10)
    assert 0 <= watcher.gangs[f"{namespace}/keyed"].longest_partial_s < 0.5


def test_a_limit_that_is_passed_is_seen(cluster, admin, namespace, make_nodes, watch_invariants):
    team = Limit("team-a", lambda pod: pod["metadata"]["labels"].get("team") == "a", "nvidia.com/gpu", 3)
    watch_invariants(limits=[team])
    make_nodes(1)
    admin.create_all(gpu_pod(f"p{i}", namespace, 2, labels={"team": "a"}) for i in range(2))
    admin.bind(namespace, "p0", "n00000")
    with pytest.raises(InvariantBroken, match=r"team-a: 4 nvidia\.com/gpu"):
        admin.bind(namespace, "p1", "n00000")
        time.sleep(10)


def test_a_pod_that_changes_its_node_is_seen(cluster):
    """The API server refuses it, so that the watcher is told what a broken one would say."""
    watcher = InvariantWatcher(cluster.access_of("admin"), interrupt=False)

    def on(node):
        pod = gpu_pod("p", nodeName=node)
        pod["metadata"]["uid"] = "u1"
        return pod | {"status": {"phase": "Running"}}

    asyncio.run(watcher._meet(on("a"), is_gone=False))
    watcher.check()
    asyncio.run(watcher._meet(on("b"), is_gone=False))
    with pytest.raises(InvariantBroken, match="default/p was on a and is on b"):
        watcher.check()


def test_the_watcher_sees_what_happened_while_the_api_server_was_away(
    cluster, admin, namespace, make_nodes, watch_invariants
):
    watcher = watch_invariants()
    make_nodes(1)
    cluster.restart(API_SERVER)
    admin.create_all(gpu_pod(f"p{i}", namespace, 8) for i in range(2))
    with pytest.raises(InvariantBroken):
        for i in range(2):
            admin.bind(namespace, f"p{i}", "n00000")
        time.sleep(10)
    assert watcher.violations[0].subject == "n00000"


# --- amounts


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("1", 1000),
        ("1500m", 1500),
        ("2Gi", 2 * 2**30 * 1000),
        ("1e3", 10**6),
        ("0.1", 100),
        ("1n", 1),
        ("3k", 3 * 10**6),
    ],
)
def test_quantities(quantity, expected):
    assert thousandths(quantity) == expected


def test_what_a_pod_occupies():
    def container(cpu, **more):
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {"containers": [container("1"), container("2")], "overhead": {"cpu": "250m"}}
    assert asked({"spec": spec}) == {"cpu": 3250, "pods": 1000}
    start = [container("1", restartPolicy="Always"), container("5")]
    assert asked({"spec": {**spec, "initContainers": start}})["cpu"] == 6250  # the step with the sidecar is the largest
    start = [container("5"), container("1", restartPolicy="Always")]
    assert asked({"spec": {**spec, "initContainers": start}})["cpu"] == 5250
    assert asked({"spec": {**spec, "resources": {"requests": {"cpu": "4"}}}})["cpu"] == 4250


def test_durations():
    assert duration_s("1m30s") == 90 and duration_s("500ms") == 0.5
    with pytest.raises(ValueError, match="no duration"):
        duration_s("soon")
