"""Lists in pages, decoded straight into what is kept, without holding the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct, field

from berth.kube.client import Client
from berth.kube.errors import ApiError

T = TypeVar("T")

PAGE_OBJECTS = 500
SMALLEST_PAGE = 50
MOST_HELD_S = 0.012
"""Decoding a page longer than this halves the next page: objects of this kind are large."""
MOST_RESTARTS = 5
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)


class ListMeta(Struct, frozen=True, rename="camel"):
    resource_version: str | None = None
    next: str | None = field(default=None, name="continue")
    remaining_item_count: int | None = None


class Listed(Struct, Generic[T], frozen=True):
    items: list[T] | None = None
    metadata: ListMeta | None = None


class Undecodable(Struct, frozen=True):
    """An object that is not what it should be: what is wrong with it, and the object as it came."""

    problem: str
    raw: bytes


class Page(Struct, Generic[T], frozen=True):
    """Some of the objects. `is_first` also after a restart: whoever collects begins anew.

    `resource_version` is that of the whole list, the same on each page, and what a watch goes on from.
    """

    items: list[T]
    resource_version: str
    is_first: bool
    is_last: bool
    undecodable: tuple[Undecodable, ...] = ()


async def pages(
    client: Client,
    path: str,
    type: type[T],
    limit: int = PAGE_OBJECTS,
    *,
    params: Mapping[str, str | int] | None = None,
    is_lenient: bool = False,
) -> AsyncIterator[Page[T]]:
    """The list at `path`, page by page, all of one moment.

    Where that moment becomes too old between two pages (410), the list starts again: the next page `is_first`.
    `is_lenient`: an object that cannot be decoded is told beside the others, else it is an error. Raises ApiError.
    """
    whole: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Listed[type])  # type: ignore[valid-type]
    token = ""
    restarts = 0
    while True:
        asked: dict[str, str | int] = {**(params or {}), "limit": limit}
        if token:
            asked["continue"] = token
        try:
            body = await client.request("GET", path, params=asked, timeout_s=60.0)
        except ApiError as error:
            if not token or not error.is_gone or restarts >= MOST_RESTARTS:
                raise
            restarts, token = restarts + 1, ""
            continue
        began_s = time.perf_counter()
        undecodable: list[Undecodable] = []
        try:
            page = whole.decode(body)
        except _UNREADABLE as error:
            if not is_lenient:
                raise _undecodable(path, error) from None
            page = _one_by_one(body, type, path, undecodable)
        if time.perf_counter() - began_s > MOST_HELD_S:
            limit = max(SMALLEST_PAGE, limit // 2)
        del body
        meta = page.metadata or ListMeta()
        is_first, token = not token, meta.next or ""
        yield Page(page.items or [], meta.resource_version or "", is_first, not token, tuple(undecodable))
        if not token:
            return
        await asyncio.sleep(0)


def _one_by_one(body: bytes, type: type[T], path: str, undecodable: list[Undecodable]) -> Listed[T]:
    try:
        raw = msgspec.json.decode(body, type=Listed[msgspec.Raw])
    except _UNREADABLE as error:
        raise _undecodable(path, error) from None
    one = msgspec.json.Decoder(type)
    items: list[T] = []
    for each in raw.items or ():
        try:
            items.append(one.decode(each))
        except _UNREADABLE as error:
            undecodable.append(Undecodable(str(error), bytes(each)))
    return Listed(items, raw.metadata)


def _undecodable(path: str, error: Exception) -> ApiError:
    return ApiError(200, "Undecodable", f"the list is not what it should be: {error}", verb="GET", path=path)
