"""A real control plane for the tests of this folder: one for the whole run, emptied between tests.

Without its programs the tests are skipped, and fail under `make test-cluster` unless BERTH_ALLOW_SKIP=1.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from devcluster import Admin, Cluster, FakeKubelet, InvariantWatcher, Options, Refused, fake_nodes
from devcluster.binaries import MissingBinaries
from devcluster.device_plugin import DevicePlugin
from devcluster.options import SCHEDULER
from devcluster.real_node import RealNode, missing
from scheduler import berth_kinds, run_scheduler  # noqa: F401
from stage import berth_object, high, proxy, set_stage  # noqa: F401


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cluster: needs the real control plane (set on every test of tests/cluster)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/tests/cluster/" in item.path.as_posix():
            item.add_marker("cluster")


@pytest.fixture(scope="session")
def control_plane() -> Iterator[Cluster]:
    """etcd, API server and controller-manager, without a scheduler. Use `cluster`, which cleans up."""
    try:
        cluster = Cluster(Options()).start()
    except MissingBinaries as absent:
        leave_out_unless_required(str(absent))
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(control_plane: Cluster) -> Iterator[Cluster]:
    """The control plane with no nodes and no pods of earlier tests, everything of its options running."""
    control_plane.heal()
    yield control_plane
    control_plane.heal()
    empty(control_plane.admin)


@pytest.fixture
def admin(cluster: Cluster) -> Admin:
    return cluster.admin


@pytest.fixture
def new_namespace(cluster: Cluster) -> Iterator[Callable[..., str]]:
    """Makes namespaces with names of their own; they go after the test."""
    made: list[str] = []

    def new(prefix: str = "test", labels: dict[str, str] | None = None) -> str:
        name = f"{prefix}-{secrets.token_hex(3)}"
        cluster.admin.make_namespace(name, labels)
        made.append(name)
        return name

    yield new
    cluster.heal()
    for name in made:
        cluster.admin.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def namespace(new_namespace: Callable[..., str]) -> str:
    return new_namespace()


@pytest.fixture
def make_nodes(cluster: Cluster) -> Callable[..., list[str]]:
    """make_nodes(4, "h100"): fake nodes; gives their names. Keywords as in devcluster.nodes.fake_node."""

    def make(count: int, profile: str = "h100", first: int = 0, **node: Any) -> list[str]:
        made = cluster.admin.create_all(fake_nodes(count, profile, first, **node))
        return [each["metadata"]["name"] for each in made]

    return make


@pytest.fixture
def run_kubelet(cluster: Cluster) -> Iterator[Callable[..., FakeKubelet]]:
    """run_kubelet(stop_s=0.5): a FakeKubelet that runs until the test ends."""
    with ExitStack() as running:
        yield lambda **options: running.enter_context(FakeKubelet(cluster.access_of("admin"), **options))


@pytest.fixture
def kubelet(run_kubelet: Callable[..., FakeKubelet]) -> FakeKubelet:
    """A FakeKubelet that starts and stops pods at once."""
    return run_kubelet()


@pytest.fixture
def real_node(cluster: Cluster) -> Iterator[RealNode]:
    """A node with a real kubelet and containers, until the test ends. It needs root and a few packages."""
    leave_out_unless_required(missing())
    with RealNode(cluster) as node:
        yield node


@pytest.fixture
def device_plugin(real_node: RealNode) -> Iterator[DevicePlugin]:
    """Four devices nvidia.com/gpu of the real node, over the device plugin protocol; the node advertises them."""
    devices = [f"GPU-{index:08d}" for index in range(4)]
    with DevicePlugin(real_node.device_plugins, devices=devices) as plugin:
        real_node.wait_allocatable("nvidia.com/gpu", len(devices))
        yield plugin


@pytest.fixture
def watch_invariants(cluster: Cluster) -> Iterator[Callable[..., InvariantWatcher]]:
    """watch_invariants(foreign=True): an InvariantWatcher until the test ends; what it finds fails the test."""
    watchers: list[InvariantWatcher] = []

    def watch(**options: Any) -> InvariantWatcher:
        watchers.append(InvariantWatcher(cluster.access_of("admin"), **options).start())
        return watchers[-1]

    yield watch
    for watcher in reversed(watchers):
        watcher.stop()
    for watcher in watchers:
        watcher.check()


@pytest.fixture
def invariants(watch_invariants: Callable[..., InvariantWatcher]) -> InvariantWatcher:
    """Watches pods whose schedulerName is berth, by the default rules."""
    return watch_invariants()


@pytest.fixture
def kube_scheduler(cluster: Cluster) -> Cluster:
    """The cluster with the real kube-scheduler (schedulerName default-scheduler) until the test ends."""
    cluster.start_component(SCHEDULER)
    return cluster


def leave_out_unless_required(reason: str) -> None:
    """Skip with the reason, or fail where it is said that nothing may be skipped. Nothing happens without a reason."""
    if not reason:
        return
    if os.environ.get("BERTH_CLUSTER_REQUIRED") and not os.environ.get("BERTH_ALLOW_SKIP"):
        pytest.fail(f"{reason}\nBERTH_ALLOW_SKIP=1 leaves these tests out.", pytrace=False)
    pytest.skip(reason)


def empty(admin: Admin) -> None:
    """No pods and no nodes: at once, not by the controllers. Pods of Jobs would stay until theirs lets them go."""

    def is_empty() -> bool:
        pods = [pod["metadata"] for pod in admin.items("/api/v1/pods")]
        for namespace in {pod["namespace"] for pod in pods}:
            admin.delete(f"/api/v1/namespaces/{namespace}/pods", grace_s=0)
        for pod in pods:
            if pod.get("finalizers"):
                _let_go(admin, f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}")
        return not pods

    admin.until(is_empty, 60, "all pods are gone")
    admin.delete("/api/v1/nodes")


def _let_go(admin: Admin, path: str) -> None:
    try:
        admin.patch(path, {"metadata": {"finalizers": None}})
    except Refused as refused:
        if refused.status != 404:  # the controller was quicker
            raise
