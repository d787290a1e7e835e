"""An API server in memory for the tests of what users see, a world to tell of, and a clock that does not wait."""

from __future__ import annotations

import asyncio
import itertools
import json
import selectors
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import numpy as np

from berth.actions.binding import Order, Outcome, Result
from berth.actions.telling import Teller
from berth.kube.discover import Resource, Served, ServerVersion
from berth.kube.errors import ApiError, StatusCause
from berth.model.cluster import Node
from berth.model.reasons import Cause, Reason, Verdict
from berth.model.snapshot import Snapshot
from berth.model.workload import PodClass, PodSet, Workload
from berth.scheduling.plan import Plan

START_S = 1_796_000_000.0  # when the tests begin, seconds since the epoch

UPSTREAM = "scheduling.k8s.io/v1beta1"
KAI = "scheduling.run.ai/v2alpha2"
VOLCANO = "scheduling.volcano.sh/v1beta1"
PLUGINS = "scheduling.x-k8s.io/v1alpha1"


class _Jump(selectors.SelectSelector):
    """Does not wait: time goes on by what would have been waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1000.0

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if not found and timeout is None:
            raise RuntimeError("everybody waits, and nothing is due")
        if not found and timeout:
            self.now_s += timeout
        return found


class QuickLoop(asyncio.SelectorEventLoop):
    """An event loop in which an hour passes at once."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now_s


def run(story: Awaitable[Any]) -> Any:
    with asyncio.Runner(loop_factory=QuickLoop) as runner:
        return runner.run(story)  # type: ignore[arg-type]


def served(*absent: str, volcano_status: bool = False) -> Served:
    """All kinds that are told of, but for those named."""
    kinds = (
        ("berth.dev", "v1alpha1", "verdicts", True, ()),
        ("berth.dev", "v1alpha1", "gpuqueues", False, ("status",)),
        ("scheduling.k8s.io", "v1beta1", "podgroups", True, ("status",)),
        ("scheduling.run.ai", "v2alpha2", "podgroups", True, ("status",)),
        ("scheduling.volcano.sh", "v1beta1", "podgroups", True, ("status",) if volcano_status else ()),
        ("scheduling.x-k8s.io", "v1alpha1", "podgroups", True, ("status",)),
    )
    found = {
        (group, name): (Resource(group, version, name, name, namespaced, (), below),)
        for group, version, name, namespaced, below in kinds
        if name not in absent and group not in absent
    }
    return Served(found, ServerVersion("1", "37"))


class FakeApi:
    """Objects by path, as the API server would keep them. `writes` counts what came in: ("POST", "verdicts").

    `latency_s` each request takes. `refuse` may raise for a request before it is carried out,
    `lose` after that.
    """

    def __init__(self, latency_s: float = 0.001) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.writes: Counter[tuple[str, str]] = Counter()
        self.log: list[tuple[str, str, dict[str, Any]]] = []
        self.latency_s = latency_s
        self.refuse: Callable[[str, str], None] = lambda verb, path: None
        self.lose: Callable[[str, str], None] = lambda verb, path: None
        self.in_flight = self.most_in_flight = 0
        self.gone_on_put: set[str] = set()
        self._numbers = itertools.count(1)

    # ---- for the tests

    def put(self, path: str, thing: Mapping[str, Any]) -> dict[str, Any]:
        made = deepcopy(dict(thing))
        meta = made.setdefault("metadata", {})
        parts = path.split("/")
        meta.setdefault("name", parts[-1])
        if "namespaces" in parts and parts[-2] != "namespaces":
            meta.setdefault("namespace", parts[parts.index("namespaces") + 1])
        meta.setdefault("uid", f"uid-of-{meta['name']}")
        meta["resourceVersion"] = str(next(self._numbers))
        self.objects[path] = made
        return made

    def of(self, resource: str) -> dict[str, dict[str, Any]]:
        """Objects of a resource by namespace/name."""
        return {
            f"{thing['metadata'].get('namespace', '')}/{thing['metadata']['name']}": thing
            for path, thing in self.objects.items()
            if path.split("/")[-2] == resource
        }

    def take(self) -> dict[tuple[str, str], int]:
        """What was written since the last time."""
        told, self.writes = dict(self.writes), Counter()
        return told

    # ---- what the client does

    async def request(
        self, verb: str, path: str, body: bytes | None = None, *, content_type: str = "",
        params: Mapping[str, str | int] | None = None, timeout_s: float = 0.0, most_attempts: int = 1,
    ) -> bytes:  # fmt: skip
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency_s)
            self.refuse(verb, path)
            answer = self._answer(verb, path, json.loads(body) if body else {}, content_type, params)
            self.lose(verb, path)
            return json.dumps(answer).encode()
        finally:
            self.in_flight -= 1

    def _answer(self, verb: str, path: str, body: dict[str, Any], content_type: str, params: Any) -> Any:
        path, _, query = path.partition("?")
        subresource = path.endswith("/status")
        path = path.removesuffix("/status")
        if verb != "GET":
            parts = path.split("/")
            resource = parts[-1] if verb == "POST" else parts[-2]
            self.writes[verb, resource] += 1
            self.log.append((verb, path, body))
        if verb == "GET":
            if path in self.objects:
                return self.objects[path]
            parts = path.split("/")
            named = "namespaces" in parts and len(parts) - parts.index("namespaces") > 3
            cluster_wide = parts[-2] in ("gpuqueues",)
            if named or cluster_wide:
                raise ApiError(404, "NotFound", f"{path} is not there", verb=verb, path=path)
            kind = parts[-1]
            found = [t for p, t in self.objects.items() if p.split("/")[-2] == kind]
            selector = (params or {}).get("fieldSelector") or parse_qs(query).get("fieldSelector")
            if selector == "spec.nodeName=":
                found = [t for t in found if not t.get("spec", {}).get("nodeName")]
            return {"items": found, "metadata": {"resourceVersion": "1"}}
        if verb == "POST":
            name = body["metadata"]["name"]
            made = f"{path}/{name}"
            if made in self.objects:
                raise ApiError(409, "AlreadyExists", f"{name} is there", verb=verb, path=path)
            body["metadata"]["uid"] = f"uid-{next(self._numbers)}"
            return self.put(made, body)
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} is not there", verb=verb, path=path)
        thing = self.objects[path]
        expected = body.get("preconditions") if verb == "DELETE" else body.get("metadata")
        for key in ("uid", "resourceVersion"):
            if (expected or {}).get(key) not in (None, thing["metadata"][key]):
                raise ApiError(409, "Conflict", f"{key} is another", verb=verb, path=path)
        if verb == "DELETE":
            return self.objects.pop(path)
        change = {k: v for k, v in body.items() if k != "metadata" or not subresource}
        if "strategic" in content_type:
            _strategic(thing, change)
        else:
            _merge(thing, change)
        thing["metadata"]["resourceVersion"] = str(next(self._numbers))
        return thing


def _merge(thing: dict[str, Any], change: Mapping[str, Any]) -> None:
    for key, value in change.items():
        if value is None:
            thing.pop(key, None)
        elif isinstance(value, dict):
            if not isinstance(thing.get(key), dict):
                thing[key] = {}
            _merge(thing[key], value)
        else:
            thing[key] = deepcopy(value)


def _strategic(pod: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Of a pod's status: conditions are merged by type."""
    status = pod.setdefault("status", {})
    said = dict(change.get("status") or {})
    for condition in said.pop("conditions", ()):
        known = status.setdefault("conditions", [])
        before = next((c for c in known if c["type"] == condition["type"]), None)
        if before is None:
            known.append(before := {})
        _merge(before, condition)
    _merge(status, said)


def forbidden(verb: str, path: str, *causes: str) -> ApiError:
    said = tuple(StatusCause(cause) for cause in causes)
    return ApiError(403, "Forbidden", "cannot", verb=verb, path=path, causes=said)


# ---- a world


@dataclass
class Pod:
    uid: str
    node: str = ""
    gates: tuple[str, ...] = ()
    has_ended: bool = False

    @property
    def waits(self) -> bool:
        return not self.node and not self.has_ended


@dataclass
class FakeWorld:
    """Pods as the scheduler knows them, those of a workload by its identity."""

    pods: dict[tuple[str, str], Pod] = field(default_factory=dict)
    assumed: dict[tuple[str, str], str] = field(default_factory=dict)
    members: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)  # API version and uid of a workload's object

    def record(self, key: tuple[str, str]) -> Pod | None:
        return self.pods.get(key)

    def members_of(self, workload: Workload) -> Iterable[tuple[Pod, Any]]:
        of = self.objects.get(workload.identity)
        return [(self.pods[key], of) for key in self.members.get(workload.identity, ()) if key in self.pods]


GPU = PodClass(requests=(("nvidia.com/gpu", 8),))


def workload(
    name: str, pods: int = 1, *, kind: str = "", namespace: str = "team-a", api_version: str = "", uid: str = "",
    queue: str = "", created: int | None = None, gates: tuple[str, ...] = (), generation: int = 0,
) -> Workload:  # fmt: skip
    """A workload of `pods` pods of 8 GPUs, all of them created, or the first `created`."""
    kind = kind or ("Pod" if pods == 1 else "PodGroup")
    there = pods if created is None else created
    names = (name,) if kind == "Pod" else tuple(f"{name}-{i}" for i in range(there))
    version = api_version or ("v1" if kind == "Pod" else UPSTREAM if kind == "PodGroup" else "")
    known = uid or (f"uid-of-{name}" + (f"-{generation}" if generation else "") if version else "")
    return Workload(
        name, (PodSet("pods", GPU, pods, pods),), namespace, kind, queue, pods=(names,), missing_pods=pods - there,
        api_version=version, uid=known, gates=gates,
    )  # fmt: skip


def refused(w: Workload, reason: Reason = Reason.NotEnoughGpus, have: int = 0, sentence: str = "") -> Verdict:
    need = 8 * w.pod_count
    said = sentence or f"{need} GPUs asked for; {have} are free"
    return Verdict(w.key, reason.answer, (Cause(reason, said, need, have, unlock=(f"{need - have} more GPUs",)),))


NODES = tuple(Node(f"node-{i}") for i in range(2048))


class Cluster:
    """A teller, the API server it writes to, and the world that its plans are of."""

    def __init__(self, api: FakeApi | None = None, **teller: Any) -> None:
        self.api = api or FakeApi()
        self.world = FakeWorld()
        self.leads = True
        self.is_busy = False
        loop = asyncio.get_running_loop()
        self.began_s = loop.time()
        options = {"schedulers": ("berth",), "instance": "berth-0", "served": served(), **teller}
        self.teller = Teller(
            self.api, options.pop("served"), may_write=lambda: self.leads, busy=lambda: self.is_busy,
            clock=loop.time, now=self.now, **options,
        )  # fmt: skip

    def now(self) -> float:
        return START_S + asyncio.get_running_loop().time() - self.began_s

    def create(self, *workloads: Workload, group: Mapping[str, Any] | None = None) -> None:
        """The pods of a workload, and its group object, on the API server and in the world."""
        for w in workloads:
            self.world.objects[w.identity] = w
            if w.kind == "PodGroup":
                path = f"/apis/{w.api_version}/namespaces/{w.namespace}/podgroups/{w.name}"
                meta = {"uid": w.uid, "generation": 1}
                if self.api.objects.get(path, {}).get("metadata", {}).get("uid") != w.uid:
                    made = {"apiVersion": w.api_version, "kind": "PodGroup", "metadata": meta, **(group or {})}
                    self.api.put(path, made)
            for names in w.pods:
                for name in names:
                    key = (w.namespace, name)
                    if key in self.world.pods:
                        continue
                    uid = w.uid if w.kind == "Pod" else f"uid-of-{name}"
                    self.world.pods[key] = Pod(uid, gates=w.gates)
                    self.world.members.setdefault(w.identity, []).append(key)
                    path = f"/api/v1/namespaces/{w.namespace}/pods/{name}"
                    self.api.put(path, {"metadata": {"uid": uid}, "spec": {"schedulerName": "berth"}, "status": {}})

    def delete(self, *workloads: Workload) -> None:
        for w in workloads:
            for names in w.pods:
                for name in names:
                    self.world.pods.pop((w.namespace, name), None)
                    self.api.objects.pop(f"/api/v1/namespaces/{w.namespace}/pods/{name}", None)

    def plan(
        self, waiting: Iterable[tuple[Workload, Verdict]] = (), placed: Iterable[Workload] = (), scope: str = "",
        **snapshot: Any,
    ) -> list[Order]:  # fmt: skip
        """Tell of a plan; its binds are under way then, to be answered by `answer`."""
        waiting, placed = list(waiting), list(placed)
        workloads = [*(w for w, _ in waiting), *placed]
        columns: list[tuple[int, int, int]] = []
        orders = []
        for i, w in enumerate(placed, len(waiting)):
            for s, names in enumerate(w.pods):
                for name in names:
                    node = len(columns)
                    columns.append((i, s, node))
                    key = (w.namespace, name)
                    self.world.pods[key].node = self.world.assumed[key] = NODES[node].name
                    orders.append(Order(key, self.world.pods[key].uid, NODES[node].name))
        of = np.array(columns, np.int32).reshape(-1, 3)
        plan = Plan(
            workloads, NODES, of[:, 0], of[:, 1], of[:, 2], np.zeros(len(of), np.int64),
            {i: v for i, (_, v) in enumerate(waiting)},
            {i: scope for i in range(len(waiting), len(workloads)) if scope}, {},
        )  # fmt: skip
        self.teller.tell(plan, Snapshot(workloads=tuple(workloads), now_s=self.now(), **snapshot), self.world)
        return orders

    def answer(self, orders: Iterable[Order], result: Result = Result.Bound) -> None:
        """What the API server made of the binds."""
        for order in orders:
            self.world.assumed.pop(order.key, None)
            path = f"/api/v1/namespaces/{order.key[0]}/pods/{order.key[1]}"
            if result is Result.Bound and path in self.api.objects:
                pod = self.api.objects[path]
                pod["spec"]["nodeName"] = order.node
                said = [c for c in pod["status"].get("conditions", ()) if c["type"] != "PodScheduled"]
                pod["status"]["conditions"] = [*said, {"type": "PodScheduled", "status": "True"}]
                pod["status"].pop("nominatedNodeName", None)
            elif result is not Result.Bound and order.key in self.world.pods:
                self.world.pods[order.key].node = ""
            self.teller.heard(Outcome(order, result))

    async def settle(self, seconds: float = 0.0) -> None:
        """Let time pass, and all be told that is to be told by then."""
        if seconds:
            await asyncio.sleep(seconds)
        await self.teller.idle()

    # ---- what users see

    def verdict(self, name: str, namespace: str = "team-a") -> dict[str, Any] | None:
        return self.api.objects.get(f"/apis/berth.dev/v1alpha1/namespaces/{namespace}/verdicts/{name}")

    def condition(self, pod: str, namespace: str = "team-a") -> dict[str, Any]:
        thing = self.api.objects[f"/api/v1/namespaces/{namespace}/pods/{pod}"]
        return next((c for c in thing["status"].get("conditions", ()) if c["type"] == "PodScheduled"), {})

    def nominated(self, pod: str, namespace: str = "team-a") -> str:
        thing = self.api.objects[f"/api/v1/namespaces/{namespace}/pods/{pod}"]
        return thing["status"].get("nominatedNodeName", "")

    def group(self, name: str, api_version: str = UPSTREAM, namespace: str = "team-a") -> dict[str, Any]:
        path = f"/apis/{api_version}/namespaces/{namespace}/podgroups/{name}"
        return self.api.objects[path].get("status") or {}

    def events(self) -> list[dict[str, Any]]:
        return list(self.api.of("events").values())
