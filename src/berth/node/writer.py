"""The only writes of the agent: the NodeLedger, the condition, taint, cordon and events of its own node.

Each is by itself: a right that is missing costs what it is for, is told once in a while, and stops nothing else.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection

import msgspec
from msgspec import Struct

from berth.evidence.fact import Fact
from berth.evidence.formats.node_ledger import GROUP, KIND, RESOURCE, VERSION, Status, status_in
from berth.evidence.formats.objects import CUT_OUT
from berth.evidence.piece import Piece
from berth.evidence.read import read
from berth.kube.errors import ApiError
from berth.kube.few import FewRequests
from berth.node import node_object
from berth.node.keeper import Report
from berth.node.node_object import NodeObject
from berth.node.status import lasting, stamp
from berth.node.transitions import PATH, event_of, transitions

log = logging.getLogger("berth.agent")

REPEAT_S = 600.0  # a refusal is told again after
MOST_EVENTS = 16  # of one look
NODE_S = 300.0  # the Node object is read again after, sooner while the ledger parts or something has changed
MANAGER = "berth-agent"
_QUEUE_LABELS = ("berth.dev/queue", "kueue.x-k8s.io/queue-name", "kai.scheduler/queue")


class Writes(Struct, frozen=True):
    """What the configuration lets the agent write."""

    ledger: bool = True
    condition: bool = True
    events: bool = True
    taint: bool = False
    cordon: bool = False
    heartbeat_s: float = 60.0
    queues: bool = True


class _Pod(Struct, frozen=True):
    metadata: _PodMeta


class _PodMeta(Struct, frozen=True):
    uid: str = ""
    labels: dict[str, str] | None = None


class Writer:
    """Reads and writes the objects of one node. `counts` has (what, "written" or the refusal's reason)."""

    def __init__(self, client: FewRequests, node: str, writes: Writes, instance: str = "") -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.knows = False  # what the NodeLedger says
        self._client = client
        self._node = node
        self._writes = writes
        self._instance = instance
        self._object = NodeObject()
        self._facts: tuple[Fact, ...] = ()
        self._read_s = 0.0
        self._said: Status | None = None  # what the NodeLedger says, as far as we know
        self._said_s = 0.0
        self._told: dict[str, float] = {}
        self._queues: dict[str, str] = {}

    # ---- what is read

    async def restored(self, now_s: float = 0.0) -> Status | None:
        """The NodeLedger that is there; None where there is none. `knows` afterwards whether that is so: an API server
        that does not answer is no ledger that is not there, and what stands in it must not be written over."""
        found: list[Status | None] = []

        async def get() -> None:
            try:
                raw = await self._client.request("GET", ledger_path(self._node), most_attempts=2)
            except ApiError as error:
                if not (error.is_not_found or error.is_forbidden):
                    raise
                found.append(None)
            else:
                found.append(status_in(raw))

        await self._try("nodeledgers get", get, now_s)
        self.knows = bool(found)
        self._said = found[0] if found else None
        return self._said

    async def node_facts(self, now_s: float, is_wanted: bool) -> tuple[Fact, ...]:
        """The Node object as facts. Asked for where it is old, or `is_wanted` now."""
        if not is_wanted and now_s - self._read_s < NODE_S:
            return self._facts

        async def get() -> None:
            raw = await self._client.request("GET", node_object.path_of(self._node), most_attempts=2)
            self._object = node_object.read_node(raw)
            self._facts = tuple(read([Piece(raw, f"Node {self._node}", CUT_OUT, self._node)]))
            self._read_s = now_s

        await self._try("nodes get", get, now_s)
        return self._facts

    async def queues_of(self, pods: Collection[str]) -> dict[str, str]:
        """The queue of each pod that is named, by namespace/name. A pod is asked for once; without the right, and for
        pods that name none, it is their namespace."""
        self._queues = {pod: queue for pod, queue in self._queues.items() if pod in pods}
        for pod in pods:
            namespace, slash, name = pod.partition("/")
            if pod in self._queues or not slash:
                continue
            self._queues[pod] = namespace
            if self._writes.queues:
                await self._ask_queue(pod, namespace, name)
        return dict(self._queues)

    async def _ask_queue(self, pod: str, namespace: str, name: str) -> None:
        async def get() -> None:
            found = await self._client.get(f"/api/v1/namespaces/{namespace}/pods/{name}", _Pod)
            labels = found.metadata.labels or {}
            self._queues[pod] = next((labels[key] for key in _QUEUE_LABELS if labels.get(key)), namespace)

        await self._try("pods get", get, 0.0, quiet=True)

    # ---- what is written

    async def write(self, report: Report) -> None:
        """All that is to be said of a look; what is said already is not written again."""
        now_s = report.looked.at_s
        if not report.has_gpus and self._said is None:
            return  # a node without GPUs has no ledger
        if self._writes.ledger and self.knows and self._is_due(report.status, now_s):
            await self._try("nodeledgers patch", lambda: self._write_ledger(report.status, now_s), now_s)
        if self._writes.condition and self._read_s:
            body = node_object.condition_change(self._object, report.status, stamp(now_s))
            if body is not None:
                await self._try("nodes/status patch", lambda: self._patch_status(body), now_s)
        if (self._writes.taint or self._writes.cordon) and self._read_s:
            await self._write_spec(report.status, now_s)
        if self._writes.events:
            for one in list(transitions(report.before, report.memory))[:MOST_EVENTS]:
                event = event_of(one, self._node, self._object.metadata.uid, now_s, self._instance)
                await self._try("events create", lambda event=event: self._client.post(PATH, event), now_s)  # type: ignore[misc]

    def _is_due(self, status: Status, now_s: float) -> bool:
        if self._said is None or now_s - self._said_s >= self._writes.heartbeat_s:
            return True
        return lasting(status) != lasting(self._said)

    async def _write_ledger(self, status: Status, now_s: float) -> None:
        path = ledger_path(self._node)
        try:
            await self._client.patch(f"{path}/status", body_of(status), field_manager=MANAGER)
        except ApiError as error:
            if not error.is_not_found:
                raise
            await self._create()
            await self._client.patch(f"{path}/status", body_of(status), field_manager=MANAGER)
        self._said, self._said_s = status, now_s

    async def _create(self) -> None:
        meta: dict[str, object] = {"name": self._node}
        if self._object.metadata.uid:
            # The ledger goes when the node does.
            owner = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": self._object.metadata.uid}
            meta["ownerReferences"] = [owner]
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": meta}
        try:
            await self._client.post(f"/apis/{GROUP}/{VERSION}/{RESOURCE}", msgspec.json.encode(body))
        except ApiError as error:
            if not error.is_already_there:
                raise

    async def _patch_status(self, body: bytes) -> None:
        path = f"{node_object.path_of(self._node)}/status"
        self._object = node_object.read_node(await self._client.patch(path, body, "strategic", MANAGER))

    async def _write_spec(self, status: Status, now_s: float) -> None:
        body = node_object.spec_change(
            self._object, status, stamp(now_s), taints=self._writes.taint, cordons=self._writes.cordon
        )
        if body is None:
            return

        async def patch() -> None:
            try:
                answer = await self._client.patch(node_object.path_of(self._node), body, "merge", MANAGER)
            except ApiError as error:
                if not error.is_conflict:
                    raise
                self._read_s = 0.0  # somebody else wrote: read it again, decide at the next look
            else:
                self._object = node_object.read_node(answer)

        await self._try("nodes patch", patch, now_s)

    async def _try(
        self, what: str, work: Callable[[], Awaitable[object]], now_s: float, *, quiet: bool = False
    ) -> None:
        try:
            await work()
        except ApiError as error:
            self.counts[what, error.reason or str(error.status)] += 1
            if not quiet and now_s - self._told.get(what, -REPEAT_S) >= REPEAT_S:
                self._told[what] = now_s
                log.warning("not done", extra={"what": what, "error": error.sentence})
        except msgspec.MsgspecError as error:
            self.counts[what, "Undecodable"] += 1
            log.warning("not done", extra={"what": what, "error": str(error)})
        else:
            self.counts[what, "done"] += 1


def ledger_path(node: str) -> str:
    return f"/apis/{GROUP}/{VERSION}/{RESOURCE}/{node}"


def body_of(status: Status) -> bytes:
    """A merge patch that says all of it: what is left out of the status is taken out of the object, too."""
    said = msgspec.to_builtins(status)
    whole = {field.encode_name: said.get(field.encode_name) for field in msgspec.structs.fields(Status)}
    driver = {"version": None, "cuda": None, "nvml": None}
    whole["driver"] = driver | (said.get("driver") or {})
    return msgspec.json.encode({"status": whole})
