"""Events: one for each change of a workload, on its own object; what is said again counts up instead.

Source: events.k8s.io/v1. A note has at most 1,024 bytes there.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from berth.actions.fence import Fenced
from berth.actions.subjects import Reference
from berth.kube.errors import ApiError
from berth.model.reasons import Answer, Verdict

CONTROLLER = "berth.dev/scheduler"
SCHEDULING, BINDING, PREEMPTING = "Scheduling", "Binding", "Preempting"
_NOTE_BYTES = 1024
_INSTANCE = 128
_REMEMBERED = 4096
_SERIES_S = 360.0  # the same again within this time belongs to the series; API servers keep events for an hour


class Event(Struct, frozen=True, gc=False):
    """`reason` is the reason's code, or what was done; `related` the other party of a preemption."""

    regarding: Reference
    reason: str
    note: str
    action: str = SCHEDULING
    is_warning: bool = False
    related: Reference | None = None

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.regarding.uid or f"{self.regarding.namespace}/{self.regarding.name}", self.reason, self.note


class _Series(Struct):
    path: str
    count: int
    last_s: float


class Events:
    """Writes events and remembers the last ones, so that a repetition becomes a count."""

    def __init__(self, client: Fenced, instance: str) -> None:
        self._client = client
        self._instance = instance[:_INSTANCE] or "berth"
        self._written: OrderedDict[tuple[str, str, str], _Series] = OrderedDict()

    async def write(self, event: Event, now_s: float) -> None:
        """Raises ApiError. `now_s` is seconds since the epoch."""
        known = self._written.get(event.identity)
        if known is not None and now_s - known.last_s < _SERIES_S:
            series = {"series": {"count": known.count + 1, "lastObservedTime": _micro(now_s)}}
            try:
                await self._client.patch(known.path, msgspec.json.encode(series))
            except ApiError as error:
                if not error.is_not_found:
                    raise
            else:
                known.count += 1
                known.last_s = now_s
                self._written.move_to_end(event.identity)
                return
        namespace = event.regarding.namespace or "default"
        name = f"{event.regarding.name[:230]}.{secrets.token_hex(8)}"
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        await self._client.post(path, self._body(event, namespace, name, now_s))
        self._written[event.identity] = _Series(f"{path}/{name}", 1, now_s)
        while len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)

    def _body(self, event: Event, namespace: str, name: str, now_s: float) -> bytes:
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": _micro(now_s),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
            "action": event.action,
            "reason": event.reason,
            "regarding": event.regarding.as_regarding(),
            "note": _cut(event.note),
            "type": "Warning" if event.is_warning else "Normal",
        }
        if event.related is not None:
            body["related"] = event.related.as_regarding()
        return msgspec.json.encode(body)


def waiting(on: Reference, verdict: Verdict) -> Event:
    """A workload waits, and why. That it can never run is a warning; that it waits for its turn is not."""
    reason = verdict.reason.name if verdict.reason else verdict.answer.value
    note = verdict.causes[0].sentence if verdict.causes else ""
    if verdict.causes and verdict.causes[0].unlock:
        note = f"{note}. What would help: {verdict.causes[0].unlock[0]}"
    return Event(on, reason, note, is_warning=verdict.answer is Answer.Never)


def placed(on: Reference, where: str) -> Event:
    return Event(on, "Scheduled", where, BINDING)


def doubtful(on: Reference, findings: Sequence[str]) -> Event:
    """What is doubtful of a workload that runs from now on: without a Verdict nothing else says it."""
    more = f" And {len(findings) - 1} more." if len(findings) > 1 else ""
    return Event(on, "Finding", findings[0] + more, BINDING, is_warning=True)


def _micro(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _cut(note: str) -> str:
    data = note.encode()
    return note if len(data) <= _NOTE_BYTES else data[: _NOTE_BYTES - 3].decode(errors="ignore") + "…"
