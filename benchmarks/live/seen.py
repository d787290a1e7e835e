"""What one watch of pods shows: when each was made, bound, given a reason, told to leave. Times are epoch seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import msgspec

from devcluster.api import Api


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    deletion_timestamp: str = ""


class Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class Status(msgspec.Struct):
    phase: str = ""
    conditions: list[Condition] = []


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class Pod(msgspec.Struct):
    metadata: Meta
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


class Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_pod = msgspec.json.Decoder(Pod).decode
_event = msgspec.json.Decoder(Event).decode


class Record:
    """One pod."""

    __slots__ = ("asked_s", "bound_s", "gang", "gone_s", "made_s", "name", "node", "phase", "reason_s")

    def __init__(self, name: str, gang: str, now: float) -> None:
        self.name, self.gang, self.made_s = name, gang, now
        self.bound_s = self.asked_s = self.gone_s = self.reason_s = 0.0
        self.node = self.phase = ""


class Pods:
    """All pods of a namespace. `moved` are those whose node changed: there must be none."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.records: dict[str, Record] = {}
        self.bound = 0
        self.moved: list[str] = []
        self.on_bound: list[Callable[[Record], None]] = []
        self.on_asked: list[Callable[[Record], None]] = []
        self.forgets = False  # what is gone, for runs without an end
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/pods"

    async def follow(self, ready: asyncio.Event) -> None:
        """Until cancelled."""
        listed = await self._api.request("GET", self._path + "?limit=1")
        version = listed["metadata"]["resourceVersion"]
        ready.set()
        while True:
            url = f"{self._api.url}{self._path}?watch=1&resourceVersion={version}"
            rest = b""
            async with self._api.session.get(url, timeout=aiohttp.ClientTimeout(total=None)) as answer:
                async for piece in answer.content.iter_any():
                    rest += piece
                    *lines, rest = rest.split(b"\n")
                    now = time.time()
                    for line in lines:
                        event = _event(line)
                        pod = _pod(event.object)
                        version = pod.metadata.resource_version or version
                        self._take(event.type, pod, now)

    def _take(self, kind: str, pod: Pod, now: float) -> None:
        name = pod.metadata.name
        one = self.records.get(name)
        if one is None and kind == "DELETED":
            return
        if one is None:
            one = self.records[name] = Record(name, pod.metadata.labels.get("gang", ""), now)
        if pod.spec.node_name and not one.node:
            one.node, one.bound_s = pod.spec.node_name, now
            self.bound += 1
            for told in self.on_bound:
                told(one)
        elif pod.spec.node_name and one.node != pod.spec.node_name:
            self.moved.append(name)
        if not one.node and not one.reason_s:
            said = any(c.type == "PodScheduled" and c.status == "False" and c.message for c in pod.status.conditions)
            one.reason_s = now if said else 0.0
        one.phase = pod.status.phase
        if pod.metadata.deletion_timestamp and not one.asked_s:
            one.asked_s = now
            for told in self.on_asked:
                told(one)
        if kind == "DELETED":
            one.gone_s = now
            one.asked_s = one.asked_s or now
            if self.forgets:
                del self.records[name]

    def over_committed(self, gpus: Callable[[Record], int], room: int = 8) -> int:
        """Nodes on which more GPUs are in use than they have."""
        used: dict[str, int] = {}
        for one in self.records.values():
            if one.node and not one.gone_s and one.phase not in ("Succeeded", "Failed"):
                used[one.node] = used.get(one.node, 0) + gpus(one)
        return sum(1 for number in used.values() if number > room)


async def first_seen(api: Api, path: str, holds: Callable[[Any], bool], until_s: float) -> float:
    """When an object of a list first satisfied a claim; 0.0 where none did until then. By a watch."""
    listed = await api.request("GET", path)
    version = listed["metadata"]["resourceVersion"]
    if any(holds(item) for item in listed["items"]):
        return time.time()
    url = f"{api.url}{path}?watch=1&resourceVersion={version}"
    rest = b""
    try:
        async with asyncio.timeout(max(0.1, until_s - time.time())):
            async with api.session.get(url, timeout=aiohttp.ClientTimeout(total=None)) as answer:
                async for piece in answer.content.iter_any():
                    rest += piece
                    *lines, rest = rest.split(b"\n")
                    for line in lines:
                        if holds(msgspec.json.decode(line)["object"]):
                            return time.time()
    except TimeoutError:
        pass
    return 0.0
