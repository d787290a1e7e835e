"""The scheduler's server beside a real API server: probes, figures, and a snapshot that `berth why` reads."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from devcluster import Admin
from programs import berth, install_kinds, scheduler

RBAC = "rbac.authorization.k8s.io/v1"
DEBUG = "test-debug"


@pytest.fixture
def kinds(admin: Admin) -> None:
    install_kinds(admin)


@pytest.fixture
def debugger(admin: Admin):
    """alice may get /debug/snapshot, and nothing else."""
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": DEBUG},
            "rules": [{"nonResourceURLs": ["/debug/snapshot"], "verbs": ["get"]}]}  # fmt: skip
    binding = {"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": DEBUG},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": DEBUG},
               "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]}  # fmt: skip
    admin.create(role)
    admin.create(binding)
    yield "alice"
    for thing in (binding, role):
        admin.delete(admin.path_of(thing))


def job(name: str, namespace: str, pods: int, gpus: int) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "command": ["run", "--key=hunter2"],
                 "env": [{"name": "TOKEN", "value": "hunter2"}],
                 "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}  # fmt: skip
    template = {"metadata": {"annotations": {"berth.dev/min-count": str(pods), "note": "hunter2"}},
                "spec": {"schedulerName": "berth", "restartPolicy": "Never", "containers": [container]}}  # fmt: skip
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": namespace},
            "spec": {"parallelism": pods, "completions": pods, "completionMode": "Indexed",
                     "template": template}}  # fmt: skip


def test_probes_figures_and_the_end(cluster, admin, namespace, make_nodes, kinds, tmp_path):
    make_nodes(2)
    with scheduler(cluster.kubeconfig, tmp_path) as first:
        first.until("/readyz", "^ok$")
        assert first.get("/healthz") == (200, b"ok\n")
        first.until("/metrics", r"^berth_leader 1\.0$")
        for thing in (job("fits", namespace, 2, 4), job("large", namespace, 3, 8)):
            admin.create(thing)
        said = first.until("/metrics", r'^berth_waiting_workloads\{reason="LargerThanCluster",verdict="Never"\} 1\.0$')
        said = first.until("/metrics", r'^berth_binds_total\{result="Bound"\} 2\.0$')
        for line in ("berth_nodes 2.0", "berth_synced 1.0", 'berth_gpus_allocated{gpu_class="H100-80GB"} 8.0',
                     f'berth_queue_waiting_workloads{{queue="{namespace}"}} 1.0'):  # fmt: skip
            assert line in said.splitlines(), line
        # Whoever stands by is ready and does not lead.
        with scheduler(cluster.kubeconfig, tmp_path) as second:
            second.until("/readyz", "^ok$")
            assert "berth_leader 0.0" in second.get("/metrics")[1].decode()
        assert second.process.returncode == 0
        configured = {line["key"]: line["source"] for line in first.lines() if line["message"] == "configuration"}
        assert configured["server.port"] == "flag" and configured["batch.windowMs"] == "default"
        first.process.send_signal(signal.SIGTERM)
        assert first.process.wait(30) == 0
        assert all({"time", "level", "logger", "message"} <= set(line) for line in first.lines())


def test_a_snapshot_is_for_who_may_and_says_what_the_scheduler_says(
    cluster, admin, namespace, make_nodes, kinds, debugger, tmp_path
):
    make_nodes(2)
    for thing in (job("fits", namespace, 2, 4), job("large", namespace, 3, 8), job("much", namespace, 2, 9)):
        admin.create(thing)
    # Numbers of a Verdict may be half a minute old: all that decides is there before the first is written.
    pods = f"/api/v1/namespaces/{namespace}/pods"
    admin.until(lambda: len(admin.items(pods)) == 7, 30, "the jobs have their pods")
    config = cluster.kubeconfig
    with scheduler(config, tmp_path) as running:
        admin.until(lambda: len(admin.items(f"/apis/berth.dev/v1alpha1/namespaces/{namespace}/verdicts")) == 2, 30,
                    "two verdicts are written")  # fmt: skip
        running.until("/metrics", r"^berth_assumed_pods 0\.0$")
        assert running.get("/debug/snapshot")[0] == 401
        assert running.get("/debug/snapshot", "not-a-token")[0] == 401
        status, said = running.get("/debug/snapshot", cluster.token_of("nobody"))
        assert status == 403 and b"nobody may not get /debug/snapshot" in said
        status, body = running.get("/debug/snapshot", cluster.token_of(debugger))
        assert status == 200
        assert cluster.token_of(debugger) not in running.log.read_text()
    assert b"hunter2" not in body
    listed = json.loads(body)
    state = listed["items"][0]
    assert (state["kind"], state["isLeader"], state["known"]["nodes"]) == ("BerthState", True, 2)
    assert {v["workload"] for v in state["verdicts"]} == {f"Job {namespace}/large", f"Job {namespace}/much"}
    dump = tmp_path / "snapshot.json"
    dump.write_bytes(body)
    for name in ("large", "much"):
        live = berth(config, "why", name, "-n", namespace, "-o", "json")
        one = live.record["answers"][0]
        assert live.code == 1 and one["told"] is not None
        # What the scheduler said then, and what is worked out of the objects that it gave.
        for anew in ((), ("--anew",)):
            later = berth(config, "why", name, "-n", namespace, "--from", str(dump), "-o", "json", *anew)
            other = later.record["answers"][0]
            assert later.code == 1 and (other["told"] is None) == bool(anew)
            for key in ("workload", "kind", "verdict", "reason", "sentence", "need", "have", "unit", "where", "nodes",
                        "unlock"):  # fmt: skip
                assert (one[key] or None) == (other[key] or None), key
    runs = berth(config, "why", "fits", "-n", namespace, "--from", str(dump), "-o", "json")
    assert runs.code == 0 and runs.record["answers"][0]["running"]
