"""The writes that tell of a workload: its Verdict, its group's status, its pods' conditions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from berth.actions import conditions, verdicts
from berth.actions.conditions import PodThere
from berth.actions.fence import Fenced
from berth.actions.subjects import PodKey, Reference, SubjectKey, pod_path
from berth.dialects.conditions import Fate, status_change
from berth.kube import wire_verdict as wire
from berth.kube.discover import Served
from berth.kube.errors import ApiError

_INVALID = 422
_TRIES = 4  # of a group's status that somebody else writes at the same time


class Writing:
    """Each method is one answer to the API server, with what it needs to get through. Raises ApiError, Withdrawn.

    Kinds that the cluster does not serve are passed over. `counts` has what was written, by kind.
    """

    def __init__(self, client: Fenced, served: Served, counts: Counter[str]) -> None:
        self._client = client
        self.served = served
        self.counts = counts

    @property
    def has_verdicts(self) -> bool:
        return self.served.has(wire.GROUP, wire.RESOURCE)

    # ---- Verdicts

    async def write_verdict(
        self, key: SubjectKey, said: wire.VerdictSaid, owner: Reference | None, is_there: bool
    ) -> None:
        """Make the workload's Verdict say this. `is_there` is what we believe; either way it is one write."""
        namespace, name = key[1], verdicts.name_of(key)
        for exists in (is_there, not is_there, is_there):
            try:
                if exists:
                    await self._client.patch(wire.path(namespace, name), verdicts.change(said, owner))
                else:
                    await self._client.post(wire.path(namespace), verdicts.creation(key, said, owner))
            except ApiError as error:
                if not (error.is_not_found if exists else error.is_already_there):
                    raise
            else:
                self.counts["verdicts_written"] += 1
                return
        raise ApiError(409, "Conflict", "the Verdict comes and goes", verb="PATCH", path=wire.path(namespace, name))

    async def remove_verdict(self, namespace: str, name: str) -> None:
        try:
            await self._client.delete(wire.path(namespace, name))
        except ApiError as error:
            if not error.is_not_found:
                raise
        else:
            self.counts["verdicts_removed"] += 1

    # ---- groups

    async def tell_group(self, path: str, uid: str, fate: Fate) -> None:
        """Make the status of the group with this uid say what became of it, if it does not say so already."""
        for _ in range(_TRIES):
            try:
                group = await self._client.get(path)
            except ApiError as error:
                if error.is_not_found:
                    return
                raise
            meta = group.get("metadata")
            if not isinstance(meta, dict) or meta.get("uid") != uid:
                return
            if await self._change_status(path, group, status_change(group, fate)):
                return
        # Whoever writes so often will be overtaken at the next change.
        self.counts["groups_contended"] += 1

    async def _change_status(self, path: str, group: dict[str, Any], status: dict[str, Any] | None) -> bool:
        """False where somebody else wrote in between."""
        if not status:
            return True
        meta = group["metadata"]
        precondition = {"uid": meta.get("uid"), "resourceVersion": meta.get("resourceVersion")}
        body = msgspec.json.encode({"metadata": precondition, "status": status})
        try:
            await self._client.patch(self._status_path(path), body)
        except ApiError as error:
            if error.is_conflict:
                return False
            if not error.is_not_found:
                raise
        else:
            self.counts["groups_written"] += 1
        return True

    def _status_path(self, path: str) -> str:
        """Volcano's PodGroup has no subresource for its status."""
        _, _, group, version, _, _, resource, _ = path.split("/")
        for one in self.served.resources.get((group, resource), ()):
            if one.version == version and "status" not in one.subresources:
                return path
        return f"{path}/status"

    # ---- pods

    async def write_pod(self, key: PodKey, uid: str, body: bytes) -> PodThere | None:
        """The pod as it is after the patch; None where it is gone or another one."""
        path = pod_path(key)
        try:
            answer = await self._client.patch(f"{path}/status", body, "strategic")
        except ApiError as error:
            # A uid that differs is called invalid, since it may not be changed; a conflict is of other writers.
            is_doubtful = error.is_conflict or error.status == _INVALID
            if error.is_not_found or (is_doubtful and not await self._is_still(path, uid)):
                return None
            raise
        self.counts["pods_written"] += 1
        return conditions.pod_in(answer)

    async def _is_still(self, path: str, uid: str) -> bool:
        """The object of that path is the one with this uid: it was refused for something else."""
        try:
            meta = (await self._client.get(path)).get("metadata")
        except ApiError as error:
            if error.is_not_found:
                return False
            raise
        return isinstance(meta, dict) and meta.get("uid") == uid
