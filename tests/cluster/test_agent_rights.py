"""The agent with the rights that deploy/agent gives, on the API server that holds it to its own node."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import Admin, Cluster, Refused
from devcluster.real_node import RealNode
from scheduler import install_kinds
from test_agent import GPU, machine, plugin_process, settings_of  # noqa: F401

ROOT = Path(__file__).parents[2]
NAMESPACE, ACCOUNT = "berth-system", "berth-agent"
LEDGERS = "/apis/berth.dev/v1alpha1/nodeledgers"
STRATEGIC = "application/strategic-merge-patch+json"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@pytest.fixture
def installed(cluster: Cluster) -> Iterator[Admin]:
    """What `kubectl apply -k deploy/agent` makes, but for the pods."""
    admin = cluster.admin
    install_kinds(admin)
    things = [one for one in yaml.safe_load_all((ROOT / "deploy/agent/agent.yaml").read_text()) if one]
    things = [one for one in things if one["kind"] != "DaemonSet"]
    if not admin.items("/api/v1/namespaces", fieldSelector=f"metadata.name={NAMESPACE}"):
        admin.make_namespace(NAMESPACE)
    for thing in things:
        admin.apply(thing)
    yield admin
    cluster.heal()
    for thing in things:
        admin.delete(admin.path_of(thing))
    admin.delete(LEDGERS)


def token_of(admin: Admin, node: str = "") -> str:
    """A token as the kubelet gets one for a pod of that node; without a node one that is bound to nothing."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
    spec: dict[str, Any] = {"expirationSeconds": 3600}
    if node:
        uid = admin.get(f"/api/v1/nodes/{node}")["metadata"]["uid"]
        spec["boundObjectRef"] = {"kind": "Node", "apiVersion": "v1", "name": node, "uid": uid}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return str(admin.request("POST", path, body)["status"]["token"])


@pytest.fixture
def as_agent(cluster: Cluster, installed: Admin) -> Iterator[Callable[[str], Admin]]:
    """as_agent("n00000"): the API as the agent of that node has it."""
    opened: list[Admin] = []

    def open_as(node: str) -> Admin:
        opened.append(Admin(cluster.access_of(token=token_of(installed, node))))
        return opened[-1]

    yield open_as
    for one in opened:
        one.close()


def refused(work: Callable[[], Any], words: str) -> None:
    with pytest.raises(Refused) as caught:
        work()
    assert (caught.value.status, words in str(caught.value)) == (403, True), str(caught.value)


def until_the_policy_holds(agent: Admin, other: str) -> None:
    """A policy is in force a moment after it was made."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            agent.patch(f"/api/v1/nodes/{other}/status", {"status": {"conditions": []}})
        except Refused as answer:
            if answer.status == 403 and "writes only what is of that node" in str(answer):
                return
        time.sleep(0.2)
    raise AssertionError("the policy does not hold")


def test_an_agent_writes_of_its_own_node_only(
    as_agent: Callable[[str], Admin], installed: Admin, make_nodes: Callable[..., list[str]]
) -> None:
    mine, other = make_nodes(2)
    agent = as_agent(mine)
    until_the_policy_holds(agent, other)
    own = {"apiVersion": "berth.dev/v1alpha1", "kind": "NodeLedger", "metadata": {"name": mine}}
    agent.create(own)
    agent.patch(f"{LEDGERS}/{mine}/status", {"status": {"state": "Fit"}})
    assert installed.get(f"{LEDGERS}/{mine}")["status"]["state"] == "Fit"
    only = f"the agent of node {mine} writes only what is of that node, not of {other}"
    refused(lambda: agent.create({**own, "metadata": {"name": other}}), only)
    installed.create({**own, "metadata": {"name": other}})
    refused(lambda: agent.patch(f"{LEDGERS}/{other}/status", {"status": {"state": "Unfit"}}), only)
    event = {
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"generateName": "x", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "berth.dev/agent",
        "reportingInstance": "a", "action": "Judging", "reason": "Fit", "type": "Normal", "note": "",
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": other},
    }  # fmt: skip
    refused(lambda: agent.request("POST", EVENTS, event), only)
    agent.request("POST", EVENTS, {**event, "regarding": {**event["regarding"], "name": mine}})  # type: ignore[dict-item]


def test_of_its_node_it_writes_the_condition_and_nothing_else(
    as_agent: Callable[[str], Admin], installed: Admin, make_nodes: Callable[..., list[str]]
) -> None:
    mine, other = make_nodes(2)
    agent = as_agent(mine)
    until_the_policy_holds(agent, other)
    path = f"/api/v1/nodes/{mine}/status"
    said = {"type": "GPUHealthy", "status": "False", "reason": "GpuFellOffBus", "message": "GPU 3"}
    agent.patch(path, {"status": {"conditions": [said]}}, STRATEGIC)
    conditions = {one["type"]: one for one in installed.get(path)["status"]["conditions"]}
    assert conditions["GPUHealthy"]["reason"] == "GpuFellOffBus" and len(conditions) > 1
    ready = {"type": "Ready", "status": "False", "reason": "x", "message": ""}
    words = "only the condition GPUHealthy is the agent's"
    refused(lambda: agent.patch(path, {"status": {"conditions": [ready]}}, STRATEGIC), words)
    refused(lambda: agent.patch(path, {"status": {"allocatable": {GPU: "64"}}}, STRATEGIC), words)
    labelled = {"metadata": {"labels": {"x": "y"}}}
    refused(lambda: agent.patch(path, labelled, STRATEGIC), "labels and annotations of the node are not the agent's")
    refused(lambda: agent.patch(f"/api/v1/nodes/{mine}", labelled, STRATEGIC), "cannot patch resource")


def test_taints_of_others_are_not_the_agents(
    as_agent: Callable[[str], Admin], installed: Admin, make_nodes: Callable[..., list[str]]
) -> None:
    """With the right that writes.taint adds."""
    mine, other = make_nodes(2)
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-agent"
    rules = installed.get(path)["rules"]
    installed.patch(path, {"rules": [*rules, {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]}]})
    agent = as_agent(mine)
    until_the_policy_holds(agent, other)
    node = f"/api/v1/nodes/{mine}"
    unfit = {"key": "berth.dev/unfit", "value": "GpuFellOffBus", "effect": "NoSchedule"}
    theirs = {"key": "example.com/theirs", "effect": "NoSchedule"}
    agent.patch(node, {"spec": {"taints": [unfit]}})
    installed.patch(node, {"spec": {"taints": [unfit, theirs]}})
    words = "only the taint berth.dev/unfit is the agent's to change"
    refused(lambda: agent.patch(node, {"spec": {"taints": [unfit]}}), words)
    refused(lambda: agent.patch(node, {"spec": {"unschedulable": True}}), words)
    agent.patch(node, {"spec": {"taints": [theirs]}})
    assert [one["key"] for one in installed.get(node)["spec"]["taints"]] == ["example.com/theirs"]
    refused(lambda: agent.patch(f"/api/v1/nodes/{other}", {"spec": {"taints": [unfit]}}), "writes only what is of")


def test_a_token_that_is_bound_to_no_node_writes_nothing(
    as_agent: Callable[[str], Admin], make_nodes: Callable[..., list[str]]
) -> None:
    mine, other = make_nodes(2)
    until_the_policy_holds(as_agent(mine), other)
    unbound = as_agent("")
    body = {"apiVersion": "berth.dev/v1alpha1", "kind": "NodeLedger", "metadata": {"name": mine}}
    refused(lambda: unbound.create(body), "says which node that is on; this one does not")


def test_kubectl_apply_brings_a_pod_to_every_node_tainted_or_not(
    cluster: Cluster, make_nodes: Callable[..., list[str]]
) -> None:
    """The namespace admits what the pods ask for, and the policy knows them by their account there."""
    admin = cluster.admin
    install_kinds(admin)
    try:
        cluster.kubectl("apply", "-k", str(ROOT / "deploy" / "agent"))
        names = make_nodes(2)
        admin.patch(
            f"/api/v1/nodes/{names[1]}",
            {"spec": {"unschedulable": True, "taints": [{"key": "berth.dev/unfit", "effect": "NoSchedule"}]}},
        )
        pods = "/api/v1/namespaces/berth-agent/pods"
        found = admin.until(lambda: len(admin.items(pods)) == 2 and admin.items(pods), 30, "two pods are made")
        assert {pod["spec"]["serviceAccountName"] for pod in found} == {"berth-agent"}
        binding = admin.get("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/berth-agent")
        assert binding["subjects"][0]["namespace"] == "berth-agent"
    finally:
        cluster.kubectl("delete", "-k", str(ROOT / "deploy" / "agent"), "--wait=false")


class Agent:
    """`berth agent` as the DaemonSet runs it, with a token of the node."""

    def __init__(self, kubeconfig: Path, arguments: list[str], log: Path) -> None:
        self.log = log
        command = [sys.executable, "-m", "berth.app.cli.main", "agent", f"--kubeconfig={kubeconfig}", *arguments]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "MALLOC_ARENA_MAX": "2"}
        self.process = subprocess.Popen(
            command, cwd=ROOT, stderr=log.open("a"), stdout=subprocess.DEVNULL, env=environment
        )

    def rss_mib(self) -> float:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def run_agent(
    cluster: Cluster, installed: Admin, real_node: RealNode, machine: Path, tmp_path: Path  # noqa: F811
) -> Iterator[Callable[..., Agent]]:
    running: list[Agent] = []

    def run(**values: object) -> Agent:
        kubeconfig = cluster.kubeconfig_of(f"agent-{real_node.name}", token_of(installed, real_node.name))
        given = {"server.port": 0, "server.address": "127.0.0.1", "looks.seconds": 5, "writes.heartbeatSeconds": 10}
        flags = [part for path, value in {**given, **values}.items() for part in ("--set", f"{path}={value}")]
        agent = Agent(kubeconfig, [*settings_of(real_node, machine), *flags], tmp_path / "agent.log")
        running.append(agent)
        return agent

    yield run
    for agent in running:
        agent.process.kill()
        agent.process.wait()
        print(agent.log.read_text()[-4000:])


def test_a_plugin_that_stands_still_is_in_the_ledger_the_condition_and_an_event(
    run_agent: Callable[..., Agent],
    installed: Admin,
    real_node: RealNode,
    plugin_process: subprocess.Popen[str],  # noqa: F811
) -> None:
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-agent"
    taints = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]}  # what writes.taint adds
    installed.patch(role, {"rules": [*installed.get(role)["rules"], taints]})
    agent = run_agent(**{"writes.taint": "true"})
    path = f"{LEDGERS}/{real_node.name}"

    def ledger() -> dict[str, Any]:
        found = [one for one in installed.items(LEDGERS) if one["metadata"]["name"] == real_node.name]
        return dict(found[0].get("status") or {}) if found else {}

    def condition() -> dict[str, Any]:
        listed = installed.get(f"/api/v1/nodes/{real_node.name}")["status"]["conditions"]
        return next((one for one in listed if one["type"] == "GPUHealthy"), {})

    def tainted() -> set[str]:
        return {one["key"] for one in installed.get(f"/api/v1/nodes/{real_node.name}")["spec"].get("taints", [])}

    installed.until(lambda: ledger().get("boundaries"), 30, "the ledger is written")
    assert ledger()["boundaries"][0]["allocatable"] == 8
    installed.until(lambda: condition().get("status"), 15, "the condition is written")
    owner = installed.get(path)["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("Node", real_node.name)
    plugin_process.send_signal(signal.SIGSTOP)
    installed.until(lambda: ledger().get("code") == "PluginSilent", 30, "the ledger says that it stands still")
    assert ledger()["state"] == "Suspect", "it may answer again in a moment"
    assert ledger()["boundaries"][0]["partsAt"] == "Plugin"
    since = ledger()["since"]
    agent.process.kill()
    agent.process.wait()
    agent = run_agent(**{"writes.taint": "true"})  # goes on from what the ledger says
    installed.until(lambda: ledger().get("state") == "Unfit", 90, "it has lasted")
    (fault,) = [one for one in ledger()["faults"] if one["code"] == "PluginSilent"]
    assert fault["firstSeen"] == since, "another process has gone on with the same account"
    installed.until(lambda: condition().get("status") == "False", 15, "the condition says so")
    assert condition()["reason"] == "PluginSilent"
    def told() -> list[str]:
        events = [one for one in installed.items(EVENTS) if one["regarding"].get("name") == real_node.name]
        return [one["note"] for one in events if one["reason"] == "PluginSilent"]

    installed.until(lambda: any("is Unfit" in note for note in told()), 15, "an event says so")
    installed.until(lambda: "berth.dev/unfit" in tainted(), 15, "the node is tainted")
    plugin_process.send_signal(signal.SIGCONT)
    installed.until(lambda: condition().get("status") != "False", 120, "it is taken back")
    # Nothing of this machine's hardware can be seen: it is not unfit any more, and not known to be fit.
    assert condition()["status"] == "Unknown" and "berth.dev/unfit" in tainted()
    assert agent.rss_mib() < 60
    lines = agent.log.read_text()
    assert '"not done"' not in lines, "every right is there"
    agent.process.send_signal(signal.SIGTERM)
    assert agent.process.wait(10) == 0
