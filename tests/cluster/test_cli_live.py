"""Commands on a real API server: whose rights they use, which right they name, what they do without kinds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import Admin, Cluster
from devcluster.binaries import program
from programs import ROOT, berth, install_kinds, remove_kinds

RBAC = "rbac.authorization.k8s.io/v1"
NO_CLUSTER = "cannot list nodes and pods in the whole cluster"


@pytest.fixture
def kinds(admin: Admin) -> None:
    """The kinds of berth.dev, served."""
    install_kinds(admin)


@pytest.fixture
def rights(admin: Admin) -> Iterator[Callable[..., None]]:
    """rights("alice", ["get", "list"], ["pods"], namespace="x"): until the test ends."""
    made: list[dict[str, Any]] = []

    def give(user: str, verbs: list[str], resources: list[str], groups: list[str] = ["*"], namespace: str = "") -> None:  # noqa: B006
        name = f"test-{user}-{len(made)}"
        meta = {"name": name, **({"namespace": namespace} if namespace else {})}
        prefix = "" if namespace else "Cluster"
        rules = [{"apiGroups": groups, "resources": resources, "verbs": verbs}]
        role = {"apiVersion": RBAC, "kind": f"{prefix}Role", "metadata": meta, "rules": rules}
        binding = {
            "apiVersion": RBAC, "kind": f"{prefix}RoleBinding", "metadata": meta,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": f"{prefix}Role", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        }  # fmt: skip
        for thing in (role, binding):
            admin.create(thing)
            made.append(thing)

    yield give
    for thing in made:
        admin.delete(admin.path_of(thing))


def pod(name: str, namespace: str, gpus: int = 8, node: str = "") -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(gpus)}
    spec: dict[str, Any] = {
        "schedulerName": "berth",
        "containers": [{"name": "c", "image": "x", "resources": {"limits": limits}}],
    }
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def verdict(name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "berth.dev/v1alpha1", "kind": "Verdict",
        "metadata": {"name": f"pod-{name}", "namespace": namespace},
        "workload": {"kind": "Pod", "name": name}, "queue": namespace, "pods": 1, "gpus": "8", "verdict": "NotYet",
        "reason": "NotEnoughGpus", "sentence": "8 GPUs asked for; 0 are free", "position": 1, "ahead": 3,
        "since": "2026-01-01T00:00:00Z", "at": "2026-01-01T00:00:10Z",
    }  # fmt: skip


def test_an_admin_sees_everything(cluster, admin, new_namespace, make_nodes, kinds):
    one, other = new_namespace("one"), new_namespace("other")
    nodes = make_nodes(2)
    for thing in (pod("runs", one, 8, nodes[0]), pod("fits", one), pod("large", other, 16), verdict("fits", one)):
        admin.create(thing)
    config = cluster.kubeconfig
    assert berth(config, "nodes", "-o", "name").out.split() == [f"node/{n}" for n in nodes]
    assert berth(config, "free", "-o", "json").record["classes"][0]["free_milli"] == 8000
    runs = berth(config, "why", f"{one}/runs", "-o", "json")
    assert runs.code == 0 and runs.record["answers"][0]["placement"][0]["node"] == nodes[0]
    fits = berth(config, "why", "fits", "-n", one, "-o", "json")
    assert fits.code == 1 and fits.record["answers"][0]["told"]["ahead"] == 3
    anew = berth(config, "why", "fits", "-n", one, "--anew", "-o", "json")
    assert anew.code == 0 and anew.record["answers"][0]["told"] is None
    queue = berth(config, "queue", "-A", "-o", "json")
    said = {w["workload"]: (w["reason"], w["saidBy"]) for w in queue.record["waiting"]}
    assert said == {f"{one}/fits": ("NotEnoughGpus", "scheduler"), f"{other}/large": ("LargerThanNode", "here")}
    assert berth(config, "queue", other, "-o", "name").out == f"{other}/large\n"


def test_a_viewer_of_one_namespace_sees_only_it(cluster, admin, new_namespace, make_nodes, rights, kinds):
    hers, his = new_namespace("hers"), new_namespace("his")
    nodes = make_nodes(1)
    for namespace in (hers, his):
        for thing in (pod("runs", namespace, 4, nodes[0]), pod("waits", namespace), verdict("waits", namespace)):
            admin.create(thing)
    rights("alice", ["get", "list", "watch"], ["pods", "verdicts"], namespace=hers)
    config = cluster.kubeconfig_of("alice")
    waits = berth(config, "why", "waits", "-n", hers)
    assert waits.code == 1 and "NOT YET  NotEnoughGpus" in waits.out and "said by the scheduler" in waits.out
    runs = berth(config, "why", "runs", "-n", hers)
    assert runs.code == 0 and f"1 pod on {nodes[0]}" in runs.out
    queue = berth(config, "queue", "-n", hers, "-o", "json")
    assert queue.code == 0 and [w["workload"] for w in queue.record["waiting"]] == [f"{hers}/waits"]
    for ran in (berth(config, "why", "waits", "-n", his), berth(config, "queue", "-n", his),
                berth(config, "queue", "-A"), berth(config, "nodes"), berth(config, "free")):  # fmt: skip
        assert ran.code == 3 and ran.out == "" and NO_CLUSTER in ran.err and "asked as alice" in ran.err
        assert his not in ran.err.replace(f"namespace {his}", "")
    assert f"nor pods and verdicts.berth.dev in namespace {his}" in berth(config, "why", "waits", "-n", his).err


def test_the_right_that_is_missing_is_named(cluster, admin, namespace, make_nodes, rights):
    make_nodes(1)
    admin.create(pod("fits", namespace))
    config = cluster.kubeconfig_of("viewer")
    ran = berth(config, "nodes")
    assert ran.code == 3 and ran.err == (
        f"berth: {NO_CLUSTER}: needs get, list on nodes, pods; asked as viewer. "
        "Check with: kubectl auth can-i list nodes -A\n"
    )
    rights("viewer", ["get", "list"], ["nodes"])
    said = "cannot list pods in the whole cluster: needs get, list on pods; asked as viewer"
    assert said in berth(config, "free").err
    rights("viewer", ["get", "list"], ["pods"])
    ran = berth(config, "why", "fits", "-n", namespace)
    unread, note = ran.err.splitlines()
    assert unread.startswith(f"note: cannot list verdicts.berth.dev in namespace {namespace}: ")
    assert unread.endswith("; what follows is worked out here")
    assert ran.code == 0 and note.startswith("note: cannot list priorityclasses.scheduling.k8s.io, ")
    assert "jobs.batch" in note and note.endswith("; asked as viewer; what they say did not count")
    # As somebody else, with the right to act so.
    assert berth(config, "nodes", "--as", "admin").code == 3
    assert berth(cluster.kubeconfig, "nodes", "--as", "nobody").code == 3


def test_kinds_that_are_absent_are_no_error(cluster, admin, namespace, make_nodes):
    remove_kinds(admin)
    make_nodes(1)
    admin.create(pod("fits", namespace))
    for arguments in (["nodes"], ["free"], ["queue", "-A"], ["why", "fits", "-n", namespace]):
        ran = berth(cluster.kubeconfig, *arguments)
        # Beside that nobody schedules here, which is true, there is nothing to say.
        assert (ran.code, [line for line in ran.err.splitlines() if "no Berth" not in line]) == (0, []), arguments
    ran = berth(cluster.kubeconfig, "preflight", "-o", "json")
    assert ran.code == 1
    assert any("verdicts.berth.dev" in c["said"] for c in ran.record["checks"] if c["state"] == "finding")


def test_a_job_is_checked_where_it_would_be_made(cluster, admin, namespace, make_nodes, kinds, tmp_path):
    make_nodes(1)
    queue = {"apiVersion": "berth.dev/v1alpha1", "kind": "GPUQueue", "metadata": {"name": namespace},
             "spec": {"limit": {"*": 2}}}  # fmt: skip
    admin.create(queue)
    try:
        job = tmp_path / "pod.yaml"
        manifest = pod("new", namespace, 4)
        del manifest["metadata"]["namespace"]
        job.write_text(yaml.safe_dump(manifest))
        config = tmp_path / "kubeconfig"
        tree = yaml.safe_load(cluster.kubeconfig.read_text())
        tree["contexts"][0]["context"]["namespace"] = namespace
        config.write_text(yaml.safe_dump(tree))
        ran = berth(config, "check", "-f", str(job), "-o", "json")
        assert (ran.code, ran.record["answers"][0]["reason"]) == (1, "LargerThanLimit")
        assert berth(cluster.kubeconfig, "check", "-f", str(job)).code == 0
    finally:
        admin.delete(admin.path_of(queue))


def test_kubectl_finds_the_commands_and_completes_names(cluster, admin, namespace, kinds, tmp_path):
    """With console scripts in PATH, as pip puts them there."""
    for name, target in (("kubectl-berth", "main:main"), ("kubectl_complete-berth", "complete:kubectl")):
        module, _, function = target.partition(":")
        script = tmp_path / name
        script.write_text(f"#!{sys.executable}\nfrom berth.app.cli.{module} import {function} as run\nrun()\n")
        script.chmod(0o755)
    admin.create(verdict("llm", namespace))
    path = f"{tmp_path}:{os.environ['PATH']}"

    def kubectl(*arguments: str) -> str:
        command = [str(program("kubectl")), *arguments]
        environment = {**os.environ, "PATH": path, "KUBECONFIG": str(cluster.kubeconfig)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout

    assert kubectl("berth", "why", f"{namespace}/llm").startswith("NOT YET  NotEnoughGpus")
    assert "Usage: kubectl berth why" in kubectl("berth", "why", "--help")
    completed = kubectl("__complete", "berth", "why", "-n", namespace, "").splitlines()
    assert completed == ["llm\tNotEnoughGpus", ":4"]
    assert "queue\tWho waits where, in which order, and why." in kubectl("__complete", "berth", "q").splitlines()


# ---- preflight


def test_the_role_of_the_chart_is_all_that_preflight_asks_for(cluster, admin, make_nodes, kinds):
    make_nodes(2)
    made = []
    try:
        admin.make_namespace("berth-system")
        roles = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
        for thing in yaml.safe_load_all((ROOT / "deploy/kustomize/berth.yaml").read_text()):
            if thing and thing["kind"] in roles:
                admin.apply(thing)
                made.append(thing)
        account = ["--service-account", "berth-system/berth"]
        config = cluster.state / "preflight.yaml"
        configured = next(
            t for t in yaml.safe_load_all((ROOT / "deploy/kustomize/berth.yaml").read_text())
            if t and t["kind"] == "ConfigMap"
        )  # fmt: skip
        config.write_text(configured["data"]["config.yaml"])
        ran = berth(cluster.kubeconfig, "preflight", *account, "--config", str(config), "-o", "json")
        assert [c for c in ran.record["checks"] if c["area"] == "rights" and c["state"] != "ok"] == []
        assert ran.record["askedAs"] == "system:serviceaccount:berth-system:berth"
        admin.delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/berth")
        ran = berth(cluster.kubeconfig, "preflight", *account, "--config", str(config), "-o", "json")
        assert ran.code == 1 and any("create pods/binding" in c["said"] for c in ran.record["checks"])
    finally:
        for thing in made:
            admin.delete(admin.path_of(thing))
        admin.delete("/api/v1/namespaces/berth-system")


def test_preflight_sees_who_else_schedules(cluster, admin, make_nodes, kinds):
    make_nodes(1)
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "yunikorn-admission-controller-mutations"},
        "webhooks": [{
            "name": "admission-webhook.yunikorn.mutate-pods", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": "Ignore", "objectSelector": {"matchLabels": {"nobody": "has-this"}},
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        }],
    }  # fmt: skip
    admin.create(hook)
    try:
        ran = berth(cluster.kubeconfig, "preflight", "-o", "json")
    finally:
        admin.delete(admin.path_of(hook))
    assert ran.code == 1
    (said,) = [c["said"] for c in ran.record["checks"] if c["area"] == "webhooks"]
    assert said.startswith("YuniKorn's webhook admission-webhook.yunikorn.mutate-pods (create of pods that its sel")


# ---- the way there


def changed(cluster: Cluster, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    tree = yaml.safe_load(cluster.kubeconfig.read_text())
    change(tree)
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(tree))
    return path


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def test_a_client_certificate_that_has_expired(cluster, tmp_path):
    authority = cluster.ca.parent
    key, request, certificate = (str(tmp_path / name) for name in ("key", "request", "certificate"))
    signing = next(authority.glob("ca*.key"))
    openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-subj", "/CN=late", "-out", request)
    openssl("x509", "-req", "-in", request, "-CA", str(cluster.ca), "-CAkey", str(signing), "-CAcreateserial",
            "-CAserial", str(tmp_path / "serial"), "-days", "-1", "-out", certificate)  # fmt: skip

    def late(tree: dict[str, Any]) -> None:
        tree["users"][0]["user"] = {"client-certificate": certificate, "client-key": key}

    ran = berth(changed(cluster, tmp_path, late), "nodes")
    assert ran.code == 3 and "the client certificate has expired on " in ran.err and ran.err.count("\n") == 1


def test_a_server_that_is_not_the_one_that_is_meant(cluster, tmp_path):
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(tmp_path / "k"), "-subj", "/CN=other",
            "-days", "1", "-out", str(tmp_path / "other.crt"))  # fmt: skip

    def other(tree: dict[str, Any]) -> None:
        tree["clusters"][0]["cluster"].pop("certificate-authority-data")
        tree["clusters"][0]["cluster"]["certificate-authority"] = str(tmp_path / "other.crt")

    ran = berth(changed(cluster, tmp_path, other), "nodes")
    assert ran.code == 3 and "its certificate cannot be trusted" in ran.err and ran.err.count("\n") == 1


def test_a_token_that_is_not_valid(cluster, tmp_path):
    def wrong(tree: dict[str, Any]) -> None:
        tree["users"][0]["user"] = {"token": "not-a-token"}

    ran = berth(changed(cluster, tmp_path, wrong), "nodes")
    assert ran.code == 3 and "the token is not valid, or no longer" in ran.err and "not-a-token" not in ran.err


def test_nobody_listens_there(cluster, tmp_path):
    def away(tree: dict[str, Any]) -> None:
        tree["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"

    ran = berth(changed(cluster, tmp_path, away), "queue")
    assert ran.code == 3 and "https://127.0.0.1:9: cannot be reached: the connection was refused." in ran.err
