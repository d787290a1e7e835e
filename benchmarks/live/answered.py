"""When the API server had carried out each bind, by its own audit log: what a watch shows comes later, and bunched."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec


class _Object(msgspec.Struct):
    name: str = ""
    subresource: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Entry(msgspec.Struct, rename="camel"):
    stage: str = ""
    object_ref: _Object | None = None
    response_status: _Status | None = None
    stage_timestamp: str = ""


_entry = msgspec.json.Decoder(_Entry).decode


def bind_times(log: Path) -> dict[str, float]:
    """By pod, in epoch seconds; empty without an audit log."""
    found: dict[str, float] = {}
    for line in log.read_bytes().splitlines() if log.exists() else ():
        try:
            entry = _entry(line)
        except msgspec.DecodeError:  # the last line may be under way
            continue
        what, status = entry.object_ref, entry.response_status
        is_bind = what is not None and what.subresource == "binding" and status is not None and status.code == 201
        if what is not None and is_bind and entry.stage == "ResponseComplete":
            found[what.name] = datetime.fromisoformat(entry.stage_timestamp).timestamp()
    return found


def longest_partial_s(gangs: Iterable[Iterable[str]], times: dict[str, float]) -> float | None:
    """The longest from the first to the last bind of a gang. None where not all are known."""
    spans = []
    for pods in gangs:
        moments = [times.get(pod) for pod in pods]
        known = [moment for moment in moments if moment is not None]
        if not known or len(known) < len(moments):
            return None
        spans.append(max(known) - min(known))
    return max(spans, default=None)
