"""Where a story is played: fake nodes with kubelets, a namespace, a watcher of what must never happen, schedulers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import gangs
from devcluster import Admin, Cluster, FakeKubelet, InvariantWatcher, Limit
from gangs import Gang, Object
from proxy import Proxy
from scheduler import Replica


@dataclass
class Stage:
    """`run` as the fixture run_scheduler; nodes are n00000, n00001, ... with eight GPUs each."""

    cluster: Cluster
    namespace: str
    nodes: list[str]
    kubelet: FakeKubelet
    watcher: InvariantWatcher
    run: Callable[..., Replica]

    @property
    def admin(self) -> Admin:
        return self.cluster.admin

    # --- what is created

    def gang(self, form: str, name: str, size: int, gpus: int = 1, **pod: Any) -> Gang:
        return gangs.gang(form, name, self.namespace, size, gpus, **pod)

    def single(self, name: str, gpus: int = 1, **pod: Any) -> Gang:
        return gangs.single(name, self.namespace, gpus, **pod)

    def replicas(self, name: str, count: int, gpus: int = 1, minimum: int = 0, **pod: Any) -> Gang:
        return gangs.replicas(name, self.namespace, count, gpus, minimum, **pod)

    def mixed(self, wave: str) -> list[Gang]:
        """Gangs of every form and a few single pods: 32 pods, 56 GPUs."""
        made = [self.gang(form, f"{wave}-{form}-{number}", 4, 2) for form in gangs.FORMS for number in range(2)]
        return [*made, *(self.single(f"{wave}-alone-{number}") for number in range(8))]

    def create(self, *made: Gang) -> None:
        gangs.create_all(self.admin, made)

    def delete(self, name: str) -> None:
        """A pod, at once."""
        self.admin.delete(f"{self.pods_path}/{name}", grace_s=0)

    # --- what became of it

    @property
    def pods_path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def pod(self, name: str) -> Object:
        found: Object = self.admin.get(f"{self.pods_path}/{name}")
        return found

    def pods(self, name: str = "") -> list[Object]:
        """Of a gang, or all; those on their way out left out."""
        return gangs.pods_of(self.admin, self.namespace, name)

    def nodes_of(self, name: str = "") -> list[str]:
        """The nodes of the bound pods of a gang, or of all, sorted."""
        return sorted(pod["spec"]["nodeName"] for pod in gangs.bound(self.pods(name)))

    def wait_whole(self, *made: Gang, timeout_s: float = 20.0) -> None:
        """Until every pod of these gangs is bound."""
        gangs.wait_whole(self.admin, made, timeout_s)

    def wait_binds(self, count: int) -> None:
        """Until so many binds have been seen since the start, looked at as often as can be."""
        self.admin.until(lambda: self.watcher.binds >= count, 15, f"{count} pods are bound", every_s=0.001)

    def until(self, claim: Callable[[], Any], timeout_s: float, what: str) -> Any:
        return self.admin.until(claim, timeout_s, what, every_s=0.1)

    def stays(self, claim: Callable[[], bool], seconds: float, what: str) -> None:
        """The claim holds now and goes on to hold for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert claim(), f"no longer: {what}"
            time.sleep(0.1)

    def verdicts(self) -> list[Object]:
        """What is said of those that wait."""
        return self.admin.items(f"/apis/berth.dev/v1alpha1/namespaces/{self.namespace}/verdicts")

    def verdict(self, name: str) -> Object | None:
        """What is said of the waiting workload of that name."""
        return next((each for each in self.verdicts() if each["workload"]["name"] == name), None)

    def wait_verdict(self, name: str, reason: str, timeout_s: float = 15.0) -> Object:
        """Until it says this reason."""

        def said() -> Object | None:
            verdict = self.verdict(name)
            return verdict if verdict is not None and verdict.get("reason") == reason else None

        try:
            found: Object = self.until(said, timeout_s, reason)
        except TimeoutError:
            raise AssertionError(f"{name} does not wait for {reason}: {self.verdict(name)}") from None
        return found


SetStage = Callable[..., Stage]


@pytest.fixture
def set_stage(
    cluster: Cluster, namespace: str, make_nodes: Callable[..., list[str]], run_kubelet: Callable[..., FakeKubelet],
    watch_invariants: Callable[..., InvariantWatcher], run_scheduler: Callable[..., Replica],
) -> Callable[..., Stage]:  # fmt: skip
    """set_stage(16, partial_s=5.0): a stage with so many nodes. `kubelet` has options of FakeKubelet, the others are
    the watcher's: how long a gang may be partly bound, whether others schedule beside it, limits."""

    def make(
        nodes: int = 16, *, partial_s: float = 5.0, profile: str = "h100", foreign: bool = False,
        own: Sequence[str] = ("berth",), limits: Sequence[Limit] = (), kubelet: dict[str, Any] | None = None,
        node: dict[str, Any] | None = None,
    ) -> Stage:  # fmt: skip
        made = make_nodes(nodes, profile, **(node or {}))
        watcher = watch_invariants(gang_of=gangs.gang_of, partial_s=partial_s, foreign=foreign, own=own, limits=limits)
        return Stage(cluster, namespace, made, run_kubelet(**(kubelet or {})), watcher, run_scheduler)

    return make


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[Proxy]:
    """In front of the API server, for whoever is given its kubeconfig."""
    with Proxy(cluster) as running:
        yield running


@pytest.fixture
def high(cluster: Cluster) -> str:
    """A priority class above the default; it stays."""
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "test-high"}}
    cluster.admin.apply(kind | {"value": 1000})
    return "test-high"


@pytest.fixture
def berth_object(cluster: Cluster) -> Iterator[Callable[..., str]]:
    """berth_object("GPUQueue", "research", limit={"*": 8}): made until the test ends; gives its path."""
    made: list[str] = []

    def make(kind: str, name: str, **spec: Any) -> str:
        thing = {"apiVersion": "berth.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        made.append(cluster.admin.path_of(cluster.admin.create(thing)))
        return made[-1]

    yield make
    for path in made:
        cluster.admin.delete(path)
