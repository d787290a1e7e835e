"""The API server by verb: objects in, objects or typed refusals out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar, overload

import msgspec

from berth.kube.binding import binding_body, eviction_body
from berth.kube.connection import JSON, JSON_PATCH, Body, Connection
from berth.kube.errors import ApiError

__all__ = ["JSON", "PATCHES", "Body", "Client", "PatchKind"]

T = TypeVar("T")
PatchKind = Literal["merge", "strategic", "json", "apply"]

PATCHES: dict[PatchKind, str] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": JSON_PATCH,
    "apply": "application/apply-patch+yaml",
}


class Client(Connection):
    @overload
    async def get(self, path: str, type: type[T], *, params: Mapping[str, str | int] | None = None) -> T: ...
    @overload
    async def get(
        self, path: str, type: None = None, *, params: Mapping[str, str | int] | None = None
    ) -> dict[str, Any]: ...
    async def get(self, path: str, type: Any = None, *, params: Mapping[str, str | int] | None = None) -> Any:
        """The object at `path`, decoded into `type` (a mapping where none is given)."""
        return _decode(await self.request("GET", path, params=params), type, "GET", path)

    @overload
    async def post(self, path: str, obj: Body, type: type[T], *, urgent: bool = False) -> T: ...
    @overload
    async def post(self, path: str, obj: Body, type: None = None, *, urgent: bool = False) -> bytes: ...
    async def post(self, path: str, obj: Body, type: Any = None, *, urgent: bool = False) -> Any:
        """Create. The answer's bytes, or decoded where a type is given."""
        answer = await self.request("POST", path, obj, urgent=urgent)
        return answer if type is None else _decode(answer, type, "POST", path)

    async def put(self, path: str, obj: Body) -> bytes:
        """Replace. A `metadata.resourceVersion` in `obj` is its precondition."""
        return await self.request("PUT", path, obj)

    async def patch(
        self,
        path: str,
        obj: Body,
        kind: PatchKind = "merge",
        field_manager: str = "berth",
        *,
        force: bool = False,
        dry_run: bool = False,
    ) -> bytes:
        """Change. `force` takes over fields of other managers (only with `apply`).

        A `metadata.resourceVersion` or `metadata.uid` in `obj` is a precondition.
        """
        params = {"fieldManager": field_manager}
        if force and kind == "apply":
            params["force"] = "true"
        if dry_run:
            params["dryRun"] = "All"
        return await self.request("PATCH", path, obj, content_type=PATCHES[kind], params=params)

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_s: int | None = None,
        dry_run: bool = False,
    ) -> bytes:
        """Delete, if uid and resourceVersion are still these."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        conditions = {"uid": uid, "resourceVersion": resource_version}
        if given := {key: value for key, value in conditions.items() if value is not None}:
            options["preconditions"] = given
        if dry_run:
            options["dryRun"] = ["All"]
        return await self.request("DELETE", path, options)

    async def bind(
        self,
        namespace: str,
        pod: str,
        uid: str,
        resource_version: str | None,
        node: str,
        annotations: Mapping[str, str] | None = None,
        *,
        timeout_s: float = 30.0,
    ) -> None:
        """Give the pod to the node, if it is still the pod with this uid (and resourceVersion, where given).

        `annotations` are added to the pod in the same write. Raises ApiError: `is_conflict` where the pod is
        another one, is bound already or is being deleted. Unreachable with `may_have_arrived` leaves open
        whether it is bound.
        """
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/binding"
        body = binding_body(namespace, pod, uid, resource_version, node, annotations)
        await self.request("POST", path, body, timeout_s=timeout_s, is_bind=True)

    async def evict(
        self, namespace: str, pod: str, uid: str, grace_s: int | None = None, dry_run: bool = False
    ) -> None:
        """Ask the pod to leave, as its PodDisruptionBudgets allow. `is_too_many`: they do not allow it now.

        That answer is not retried here: whether to wait or to choose another victim is a decision.
        """
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
        await self.request("POST", path, eviction_body(namespace, pod, uid, grace_s, dry_run), most_attempts=1)


def _decode(body: bytes, type: Any, verb: str, path: str) -> Any:
    try:
        return msgspec.json.decode(body, type=type or dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = f"the answer is not what it should be: {error}"
        raise ApiError(200, "Undecodable", problem, verb=verb, path=path) from None
