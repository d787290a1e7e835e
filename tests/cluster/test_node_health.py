"""NodeLedgers on a real API server: a scheduler that follows them, and one for whom there are none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from devcluster import Admin, Cluster, gpu_pod
from programs import berth
from scheduler import Replica

LEDGERS = "/apis/berth.dev/v1alpha1/nodeledgers"


def say(admin: Admin, node: str, unfit: str = "", suspect: str = "") -> None:
    """What the agent of a node would write: its third GPU is ill."""
    devices: list[dict[str, Any]] = [{"index": g, "pci": f"0000:{g:02x}:00", "state": "Fit"} for g in range(8)]
    if unfit or suspect:
        devices[3] |= {"state": "Unfit" if unfit else "Suspect", "code": unfit or suspect}
    made = {"apiVersion": "berth.dev/v1alpha1", "kind": "NodeLedger", "metadata": {"name": node}}
    admin.apply(made)
    beat = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    admin.patch(f"{LEDGERS}/{node}/status", {"status": {"heartbeat": beat, "devices": devices}})


def node_of(admin: Admin, namespace: str, pod: str) -> str:
    return str(admin.get(f"/api/v1/namespaces/{namespace}/pods/{pod}")["spec"].get("nodeName", ""))


def condition_of(admin: Admin, namespace: str, pod: str) -> str:
    status = admin.get(f"/api/v1/namespaces/{namespace}/pods/{pod}")["status"]
    return next((c.get("message", "") for c in status.get("conditions", ()) if c["type"] == "PodScheduled"), "")


def test_what_agents_find_decides(
    cluster: Cluster, admin: Admin, namespace: str, make_nodes: Callable[..., list[str]],
    run_scheduler: Callable[..., Replica],
) -> None:  # fmt: skip
    nodes = sorted(make_nodes(2))
    ill, doubtful = nodes
    say(admin, ill, unfit="Xid79")
    say(admin, doubtful, suspect="RowRemapPending")
    replica = run_scheduler()
    try:
        # A lone pod takes the suspect node, where nothing fit is left; the unsafe one is for nobody.
        admin.create(gpu_pod("one", namespace, 2))
        admin.until(lambda: node_of(admin, namespace, "one"), 20, "the pod is bound")
        assert node_of(admin, namespace, "one") == doubtful
        gang = {"labels": {"berth.dev/gang": "train"}, "annotations": {"berth.dev/min-count": "2"}}
        admin.create_all([gpu_pod(f"train-{n}", namespace, 2, **gang) for n in range(2)])
        said = admin.until(lambda: condition_of(admin, namespace, "train-0"), 20, "the gang is told why it waits")
        assert said.startswith("NodesHeldBack: 2 pods of 2 GPUs asked for; none could start, and 1 node with"), said
        assert "Xid 79 on 1" in said or "1 suspect: row remap pending on 1" in said
        # The same answer worked out by a command.
        ran = berth(cluster.kubeconfig, "why", "train", "-n", namespace, "--anew")
        assert ran.code == 1 and "NodesHeldBack" in ran.out and "Xid 79 on 1" in ran.out, ran.out + ran.err
        wide = berth(cluster.kubeconfig, "nodes", "-o", "wide").out
        assert {line.split()[2] for line in wide.splitlines() if line.startswith((ill, doubtful))} == {
            "unfit", "suspect"
        }, wide  # fmt: skip
        assert replica.metrics().of("berth_node_findings", state="unfit", code="Xid79") == 1
        # Mended: the gang starts at once.
        say(admin, ill)
        for n in range(2):
            admin.until(lambda pod=f"train-{n}": node_of(admin, namespace, pod), 20, "the gang is bound")
            assert node_of(admin, namespace, f"train-{n}") == ill
        # Agents that are taken away leave the cluster as it was before.
        admin.delete(LEDGERS)
        admin.until(lambda: replica.metrics().of("berth_node_agents", state="absent") == 2, 20, "no agent is known")
    finally:
        admin.delete(LEDGERS)
