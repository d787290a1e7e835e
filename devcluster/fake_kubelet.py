"""Runs the pods of fake nodes as kubelets would: admits or refuses them, ends them, takes its time.

kwok does the same for more nodes and admits everything. This one refuses what does not fit, in the words of the real
kubelet, and its times can be chosen.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from devcluster.access import Access
from devcluster.amounts import PODS, allocatable, asked
from devcluster.api import STRATEGIC, Api, Object, Refused
from devcluster.background import BackgroundLoop
from devcluster.watch import DELETED, SYNCED, changes

RUN_FOR = "devcluster.berth.dev/run-for"  # annotation: "30s"; the pod ends after that time
EXIT_CODE = "devcluster.berth.dev/exit-code"  # annotation: "1"; it then ends as Failed
_FINAL = ("Succeeded", "Failed")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# The order in which the real one looks; it names the first that is short.
_NATIVE = (PODS, "cpu", "memory", "ephemeral-storage")

Seconds = float | Callable[[Object], float | None] | None


@dataclass(frozen=True)
class Rejection:
    """A pod that was not admitted: (reason, message) as they stand in its status."""

    namespace: str
    pod: str
    node: str
    reason: str
    message: str
    at_s: float  # time.time()


class FakeKubelet:
    """Kubelets for all nodes that are annotated as fake (`kwok.x-k8s.io/node`), from `start` to `stop`.

    start_s, stop_s, run_s: seconds until a pod runs, that it takes to stop (never longer than its grace), and after
    which it succeeds; a number, a function of the pod, or None for "until it is deleted". The annotations RUN_FOR and
    EXIT_CODE go over run_s. reject_s: seconds until a refused pod is Failed; a kubelet of 1.37 often takes ten, until
    it writes all statuses again. `refuses_devices_first` gives GPUs that are short the words of the real kubelet's
    device manager, which looks before the sum of the node's resources is taken: UnexpectedAdmissionError instead of
    OutOfnvidia.com/gpu. `refuse` may give (reason, message) for a pod that the node would have room for,
    such as ("UnexpectedAdmissionError", "Allocate failed ...").
    """

    def __init__(
        self,
        access: Access,
        *,
        start_s: Seconds = 0.0,
        stop_s: Seconds = 0.0,
        run_s: Seconds = None,
        reject_s: Seconds = 0.0,
        refuses_devices_first: bool = False,
        refuse: Callable[[Object], tuple[str, str] | None] | None = None,
    ) -> None:
        self.rejections: list[Rejection] = []
        self.refuse = refuse
        self._access = access
        self._reject_s = reject_s
        self._devices_first = refuses_devices_first
        self._start_s, self._stop_s, self._run_s = start_s, stop_s, run_s
        self._offers: dict[str, dict[str, int]] = {}  # by fake node
        self._real_nodes: set[str] = set()
        self._on_node: dict[str, dict[str, dict[str, int]]] = {}  # node -> pod uid -> what it occupies
        self._seen: dict[str, str] = {}  # pod uid -> node, from admission on
        self._stopping: set[str] = set()
        self._waiting: dict[str, dict[str, Object]] = {}  # bound to nodes that the watch has not shown yet
        self._loop: BackgroundLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> FakeKubelet:
        self._loop = BackgroundLoop("fake-kubelet")
        self._loop.spawn(self._live())
        return self

    def stop(self) -> None:
        """Stop acting. Pods stay as they are."""
        if self._loop is not None:
            self._loop.run(self._api.close())
            self._loop.close()
            self._loop = None

    def __enter__(self) -> FakeKubelet:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def finish(self, namespace: str, pod: str, succeeded: bool = True) -> None:
        """End a running pod now."""
        assert self._loop is not None, "start() comes first"
        found = self._loop.run(self._api.request("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}"))
        self._loop.run(self._end(found, 0 if succeeded else 1))

    # --- inside: everything below runs on the loop

    async def _live(self) -> None:
        self._api = Api(self._access)
        self._at_once = asyncio.Semaphore(64)
        await asyncio.gather(self._watch_nodes(), self._watch_pods())

    async def _watch_nodes(self) -> None:
        async for change, node in changes(self._api, "/api/v1/nodes"):
            if change == SYNCED:
                continue
            name = node["metadata"]["name"]
            if "kwok.x-k8s.io/node" not in node["metadata"].get("annotations", {}):
                self._real_nodes.add(name)
                self._waiting.pop(name, None)
            elif change == DELETED:
                self._offers.pop(name, None)
            else:
                self._offers[name] = allocatable(node)
                for pod in self._waiting.pop(name, {}).values():
                    self._meet(pod)

    async def _watch_pods(self) -> None:
        async for change, pod in changes(self._api, "/api/v1/pods"):
            if change == SYNCED or not pod["spec"].get("nodeName"):
                continue
            if change == DELETED:
                self._forget(pod)
            else:
                self._meet(pod)

    def _meet(self, pod: Object) -> None:
        """A pod that has a node, new or changed."""
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        if node in self._real_nodes:
            return
        if node not in self._offers:
            self._waiting.setdefault(node, {})[uid] = pod
            return
        phase = pod["status"].get("phase", "Pending")
        if phase in _FINAL:
            self._release(uid, node)
        elif uid not in self._seen:
            self._seen[uid] = node
            if phase == "Running" or pod["metadata"].get("deletionTimestamp"):
                self._on_node.setdefault(node, {})[uid] = asked(pod)  # it ran before this began to watch
                self._act(self._end_later(pod))
            else:
                self._admit(pod)
        if pod["metadata"].get("deletionTimestamp") and uid not in self._stopping:
            self._stopping.add(uid)
            self._act(self._end_deleted(pod))

    def _forget(self, pod: Object) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        self._release(uid, node)
        self._seen.pop(uid, None)
        self._stopping.discard(uid)
        self._waiting.get(node, {}).pop(uid, None)

    def _release(self, uid: str, node: str) -> None:
        self._on_node.get(node, {}).pop(uid, None)

    def _admit(self, pod: Object) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        asks = asked(pod)
        refusal = self._short_of(asks, node) or (self.refuse(pod) if self.refuse else None)
        if refusal is None:
            self._on_node.setdefault(node, {})[uid] = asks
            self._act(self._run(pod))
            return
        reason, message = refusal
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        self.rejections.append(Rejection(namespace, name, node, reason, message, time.time()))
        status = {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}"}
        self._act(self._reject(pod, status))

    async def _reject(self, pod: Object, status: Object) -> None:
        await asyncio.sleep(_seconds(self._reject_s, pod) or 0.0)
        await self._set_status(pod, status)

    def _short_of(self, asks: Mapping[str, int], node: str) -> tuple[str, str] | None:
        """What does not suffice. A device that the node does not know at all is let through, as in reality."""
        offers = self._offers[node]
        there = self._on_node.get(node, {}).values()
        for resource in sorted(asks, key=self._turn):
            if asks[resource] == 0 or (resource not in offers and resource not in _NATIVE):
                continue
            used, capacity = sum(each.get(resource, 0) for each in there), offers.get(resource, 0)
            if used + asks[resource] > capacity and self._devices_first and resource not in _NATIVE:
                words = "Allocate failed due to requested number of devices unavailable for {}. Requested: {}, "
                words += "Available: {}, which is unexpected"
                figures = [asks[resource] // 1000, (capacity - used) // 1000]
                return "UnexpectedAdmissionError", words.format(resource, *figures)
            if used + asks[resource] > capacity:
                scale = 1 if resource == "cpu" else 1000  # it counts CPU in thousandths, all else in units
                figures = [amount // scale for amount in (asks[resource], used, capacity)]
                text = "Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}"
                return f"OutOf{resource}", text.format(resource, *figures)
        return None

    def _turn(self, resource: str) -> tuple[int, str]:
        """When a resource is looked at: native ones in their order, devices after them or, by the option, before."""
        if resource in _NATIVE:
            return _NATIVE.index(resource), resource
        return (-1 if self._devices_first else len(_NATIVE)), resource

    async def _run(self, pod: Object) -> None:
        await asyncio.sleep(_seconds(self._start_s, pod) or 0.0)
        now = _now()
        reached = ("Initialized", "ContainersReady", "Ready")
        conditions = [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in reached]
        await self._set_status(pod, {"phase": "Running", "startTime": now, "conditions": conditions})
        await self._end_later(pod)

    async def _end_later(self, pod: Object) -> None:
        notes = pod["metadata"].get("annotations", {})
        run_s = duration_s(notes[RUN_FOR]) if RUN_FOR in notes else _seconds(self._run_s, pod)
        if run_s is not None:
            await asyncio.sleep(run_s)
            if pod["metadata"]["uid"] not in self._stopping:
                await self._end(pod, int(notes.get(EXIT_CODE, "0")))

    async def _end(self, pod: Object, exit_code: int) -> None:
        ready = {"type": "Ready", "status": "False", "reason": "PodCompleted", "lastTransitionTime": _now()}
        reason = "Error" if exit_code else "Completed"
        ended = {"terminated": {"exitCode": exit_code, "reason": reason, "finishedAt": _now()}}
        told = {"ready": False, "restartCount": 0, "image": "", "imageID": "", "state": ended}
        containers = [{"name": one["name"], **told} for one in pod["spec"]["containers"]]
        phase = "Failed" if exit_code else "Succeeded"
        await self._set_status(pod, {"phase": phase, "conditions": [ready], "containerStatuses": containers})
        self._release(pod["metadata"]["uid"], pod["spec"]["nodeName"])

    async def _end_deleted(self, pod: Object) -> None:
        """The containers stop, the room is free, and only then the object goes."""
        grace_s = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        if pod["status"].get("phase") not in _FINAL:
            await asyncio.sleep(min(grace_s, _seconds(self._stop_s, pod) or 0.0))
        uid = pod["metadata"]["uid"]
        self._release(uid, pod["spec"]["nodeName"])
        await self._ask("DELETE", _path(pod), {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})

    async def _set_status(self, pod: Object, status: Object) -> None:
        same = {"uid": pod["metadata"]["uid"]}  # not a later pod of the same name
        await self._ask("PATCH", f"{_path(pod)}/status", {"metadata": same, "status": status}, STRATEGIC)

    async def _ask(self, method: str, path: str, body: Any, content: str = "application/json") -> None:
        """Until the API server has answered; that the pod is gone, or is another one, is an answer."""
        while True:
            try:
                async with self._at_once:
                    await self._api.request(method, path, body, content)
                return
            except Refused as refused:
                if refused.status in (404, 409, 422):
                    return
            except (aiohttp.ClientError, ConnectionError, TimeoutError):
                pass
            await asyncio.sleep(0.2)

    def _act(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def serve(kubeconfig: Path, stop_s: float = 0.0, run_s: float | None = None) -> None:
    """FakeKubelet in a process of its own, until the process is ended."""
    kubelet = FakeKubelet(Access.read(kubeconfig), stop_s=stop_s, run_s=run_s)
    asyncio.run(kubelet._live())


def duration_s(text: str) -> float:
    """Seconds of "500ms", "30s", "1m30s"."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is no duration; write 500ms, 30s or 1m30s.")
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)


def _seconds(given: Seconds, pod: Object) -> float | None:
    return given(pod) if callable(given) else given


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
