"""Pods whose bind has been sent and not been seen yet."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from berth.sources.inventory import Key, PodRecord


class Sent(Struct, frozen=True, gc=False):
    """A bind on its way: the pod as it waited, and the node that it goes to."""

    waiting: PodRecord
    node: str


class Assumed:
    """By pod, what has been sent. The API server's word ends it: a node on the pod, another uid, its end."""

    def __init__(self) -> None:
        self._sent: dict[Key, Sent] = {}

    def __len__(self) -> int:
        return len(self._sent)

    def __contains__(self, key: Key) -> bool:
        return key in self._sent

    def items(self) -> list[tuple[Key, str]]:
        """(pod, node) of each bind that is on its way."""
        return [(key, sent.node) for key, sent in self._sent.items()]

    def put(self, record: PodRecord, node: str) -> PodRecord:
        """The record as it will be once the bind has been seen."""
        self._sent[record.key] = Sent(record, node)
        return replace(record, node=node)

    def seen(self, record: PodRecord) -> PodRecord:
        """A record from the API server, with the node that is on its way where none is there yet."""
        sent = self._sent.get(record.key)
        if sent is None:
            return record
        if record.node or record.uid != sent.waiting.uid or record.has_ended:
            del self._sent[record.key]
            return record
        self._sent[record.key] = Sent(record, sent.node)
        return replace(record, node=sent.node)

    def refused(self, key: Key) -> PodRecord | None:
        """Take the bind back: the pod as it waits; None where nothing was on its way any more."""
        sent = self._sent.pop(key, None)
        return sent.waiting if sent else None

    def drop(self, key: Key) -> None:
        self._sent.pop(key, None)
