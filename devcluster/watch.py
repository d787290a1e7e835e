"""What happens to the objects of one list, without gaps: list, watch, and list again where the watch was lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec

from devcluster.api import Api, Object, Refused

ADDED, MODIFIED, DELETED, SYNCED = "ADDED", "MODIFIED", "DELETED", "SYNCED"


class _Event(msgspec.Struct):
    type: str
    object: dict[str, Any]


_EVENTS = msgspec.json.Decoder(_Event)
_LOST = (aiohttp.ClientError, ConnectionError, TimeoutError)


async def changes(api: Api, path: str) -> AsyncIterator[tuple[str, Object]]:
    """(ADDED | MODIFIED | DELETED, object), and (SYNCED, {}) each time the list has been seen whole.

    What went away while nobody looked comes as DELETED with its last known state. It goes on through restarts of
    the API server until it is cancelled.
    """
    known: dict[str, Object] = {}
    while True:
        try:
            listed = await api.request("GET", path)
        except (*_LOST, Refused):
            await asyncio.sleep(0.1)
            continue
        version = listed["metadata"]["resourceVersion"]
        now = {item["metadata"]["uid"]: item for item in listed["items"]}
        for uid in [uid for uid in known if uid not in now]:
            yield DELETED, known.pop(uid)
        for uid, item in now.items():
            before = known.get(uid)
            known[uid] = item
            if before is None:
                yield ADDED, item
            elif before["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
                yield MODIFIED, item
        yield SYNCED, {}
        while version:
            try:
                async for kind, item in _watch(api, path, version):
                    if kind == "ERROR":  # 410: the version is too old to go on from
                        version = ""
                        break
                    version = item["metadata"]["resourceVersion"]
                    if kind == "BOOKMARK":
                        continue
                    if kind == DELETED:
                        known.pop(item["metadata"]["uid"], None)
                    else:
                        known[item["metadata"]["uid"]] = item
                    yield kind, item
            except Refused as refused:
                version = "" if refused.status == 410 else version
                await asyncio.sleep(0.05)
            except _LOST:
                await asyncio.sleep(0.05)


async def _watch(api: Api, path: str, version: str) -> AsyncIterator[tuple[str, Object]]:
    joint = "&" if "?" in path else "?"
    url = f"{api.url}{path}{joint}watch=1&allowWatchBookmarks=1&resourceVersion={version}"
    async with api.session.get(url, timeout=aiohttp.ClientTimeout(total=None, sock_connect=10)) as answer:
        if answer.status != 200:
            raise Refused(answer.status, "", (await answer.text())[:300], f"WATCH {path}")
        rest = b""
        async for chunk in answer.content.iter_any():
            rest += chunk
            if b"\n" not in chunk:
                continue
            lines = rest.split(b"\n")
            rest = lines.pop()
            for line in lines:
                event = _EVENTS.decode(line)
                yield event.type, event.object
