"""Writes that are sent only while we lead, each once: what is to be sent again is asked about again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from berth.kube.client import JSON, PATCHES, PatchKind

_TIMEOUT_S = 15.0
MANAGER = "berth"


class Withdrawn(Exception):
    """Not sent: we may not write any more."""


class Sender(Protocol):
    """What is asked of the client."""

    async def request(
        self, verb: str, path: str, body: bytes | None = None, *, content_type: str = JSON,
        params: Mapping[str, str | int] | None = None, timeout_s: float = 30.0, most_attempts: int = 1,
    ) -> bytes: ...  # fmt: skip


class Fenced:
    """A client's writes. Each raises Withdrawn where `may_write` does not hold at that moment, else ApiError.

    The client's own retries are left out: they would go on after the leadership has ended.
    """

    def __init__(self, client: Sender, may_write: Callable[[], bool]) -> None:
        self._client = client
        self._may_write = may_write

    async def get(self, path: str) -> dict[str, Any]:
        """An object as a mapping. Reads are not fenced."""
        found = msgspec.json.decode(await self._client.request("GET", path, timeout_s=_TIMEOUT_S))
        return found if isinstance(found, dict) else {}

    async def post(self, path: str, body: bytes) -> bytes:
        return await self._send("POST", path, body)

    async def patch(self, path: str, body: bytes, kind: PatchKind = "merge") -> bytes:
        return await self._send("PATCH", path, body, PATCHES[kind], {"fieldManager": MANAGER})

    async def delete(self, path: str) -> bytes:
        return await self._send("DELETE", path, msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions"}))

    async def _send(
        self, verb: str, path: str, body: bytes, content_type: str = JSON, params: Mapping[str, str] | None = None
    ) -> bytes:
        if not self._may_write():
            raise Withdrawn(path)
        return await self._client.request(
            verb, path, body, content_type=content_type, params=params, timeout_s=_TIMEOUT_S, most_attempts=1
        )
