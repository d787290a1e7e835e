"""Volcano's job controller makes a job's pods once its PodGroup is let in: what its own scheduler did, for ours.

Berth lets a group in as soon as it is there: its pods then wait in sight, with a reason. Whether they may run is
decided when they are there, by the queue's quota and limit as for everybody else.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from berth.actions.fence import Fenced, Withdrawn
from berth.actions.outbox import Lane, Outbox
from berth.dialects.conditions import let_in
from berth.dialects.groups import VOLCANO
from berth.dialects.objects import controlling, owner_refs
from berth.kube.client import Client
from berth.kube.discover import Resource, Served
from berth.kube.errors import ApiError
from berth.kube.reflect import Change, Reflector

_JOB = ("batch.volcano.sh", "Job")
_GROUP = "group"


class LettingIn:
    """Follows Volcano's PodGroups, where the cluster has them, and lets in those of jobs whose scheduler is ours."""

    def __init__(
        self,
        client: Client,
        served: Served,
        schedulers: Collection[str],
        *,
        may_write: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._client = Fenced(client, may_write)
        self._schedulers = frozenset(schedulers)
        self._follows = client
        self._is_there = asyncio.Event()
        self._resource: Resource | None = None
        self._groups: dict[tuple[str, str], dict[str, Any]] = {}
        self._outbox = Outbox(
            [Lane(_GROUP, self._let_in, _GROUP, patience_s=0.0)],
            may_write=may_write, busy=lambda: False, clock=clock, counts=self.counts, in_flight=8,
        )  # fmt: skip
        self.install(served)

    def install(self, served: Served) -> None:
        """What the cluster serves now: where it has such groups, they are followed from now on."""
        if self._resource is None:
            self._resource = served.preferred(VOLCANO, "podgroups")
        if self._resource is not None:
            self._is_there.set()

    async def run(self) -> None:
        """Until cancelled. Where the cluster has no such groups, from when they are installed."""
        await self._is_there.wait()
        if self._resource is not None:
            await Reflector(self._follows, self._resource.path(), dict, self.take).run()

    async def close(self, drain_s: float = 0.0) -> None:
        await self._outbox.close(drain_s)

    def serve(self, schedulers: Collection[str]) -> None:
        """Names that are served from now on: groups that were another's may be ours."""
        self._schedulers = frozenset(schedulers)
        for key in self._groups:
            self._outbox.add(_GROUP, key)
        self._outbox.kick()

    def take(self, changes: list[Change[Any]]) -> None:
        """What the reflector tells."""
        for change in changes:
            group = change.object
            if group is not None and let_in(group) is not None and _job_of(group):
                self._groups[change.key] = group
                self._outbox.add(_GROUP, change.key)
            else:
                self._groups.pop(change.key, None)
        self._outbox.kick()

    async def _let_in(self, key: Any) -> None:
        group = self._groups.get(key)
        status = let_in(group) if group is not None else None
        if group is None or status is None or self._resource is None:
            return
        namespace, name = key
        if not await self._is_ours(namespace, _job_of(group)):
            return  # it may become ours: `serve`
        meta = group["metadata"]
        precondition = {"uid": meta.get("uid"), "resourceVersion": meta.get("resourceVersion")}
        path = self._resource.path(namespace, name)
        if "status" in self._resource.subresources:
            path += "/status"
        try:
            await self._client.patch(path, msgspec.json.encode({"metadata": precondition, "status": status}))
        except ApiError as error:
            # Somebody wrote meanwhile: the watch brings the group as it is now.
            if not (error.is_conflict or error.is_not_found):
                raise
        except Withdrawn:
            self._outbox.add(_GROUP, key)
            raise
        else:
            self.counts["groups_let_in"] += 1
            self._groups.pop(key, None)

    async def _is_ours(self, namespace: str, job: str) -> bool:
        try:
            found = await self._client.get(f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs/{job}")
        except ApiError as error:
            if error.is_not_found:
                return False
            raise
        spec = found.get("spec")
        return isinstance(spec, dict) and str(spec.get("schedulerName") or "volcano") in self._schedulers


def _job_of(group: dict[str, Any]) -> str:
    """The Volcano Job that the group was made for, "" where it is another's: that one's pods do not wait for it."""
    meta = group.get("metadata")
    owner = controlling(owner_refs(meta.get("ownerReferences") if isinstance(meta, dict) else None))
    return owner.name if owner is not None and (owner.group, owner.kind) == _JOB else ""
