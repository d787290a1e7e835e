"""What has changed between two judgements, as events on the Node. Source: events.k8s.io/v1; a note has 1,024 bytes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from berth.node.fitness import NODE, Memory, Standing
from berth.node.policy import State

CONTROLLER = "berth.dev/agent"
PATH = "/apis/events.k8s.io/v1/namespaces/default/events"
_NOTE_BYTES = 1024


class Transition(Struct, frozen=True):
    """A device or the node has another state than before."""

    target: str
    before: State | None  # None: it was not judged before
    now: Standing

    @property
    def reason(self) -> str:
        return self.now.code or self.now.state.value

    @property
    def note(self) -> str:
        who = "the node" if self.target == NODE else f"GPU {self.target}"
        was = f", was {self.before.value}" if self.before is not None else ""
        why = f": {self.now.text}" if self.now.text else ""
        return f"{who} is {self.now.state.value}{was}{why}"


def transitions(before: Memory, now: Memory) -> Iterator[Transition]:
    """In the order of targets, the node last. What is fit at its first look is no news."""
    for target, standing in now.standings.items():
        old = before.standings.get(target)
        if old is None and standing.state is State.Fit:
            continue
        if old is None or (old.state, old.code) != (standing.state, standing.code):
            yield Transition(target, old.state if old is not None else None, standing)


def event_of(one: Transition, node: str, uid: str, now_s: float, instance: str) -> bytes:
    """The object to be created."""
    return msgspec.json.encode(
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{node[:230]}.{secrets.token_hex(8)}", "namespace": "default"},
            "eventTime": datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": CONTROLLER,
            "reportingInstance": instance[:128] or "berth-agent",
            "action": "Judging",
            "reason": one.reason[:128],
            "regarding": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid or node},
            "note": _cut(one.note),
            "type": "Normal" if one.now.state is State.Fit else "Warning",
        }
    )


def _cut(note: str) -> str:
    data = note.encode()
    return note if len(data) <= _NOTE_BYTES else data[: _NOTE_BYTES - 3].decode(errors="ignore") + "…"
