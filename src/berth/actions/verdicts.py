"""The Verdict object of a workload: its name, what it says, and how little is sent when that changes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from berth.actions.subjects import Reference, SubjectKey, object_of, stamp
from berth.kube import wire_verdict as wire
from berth.model.paying import payers_of
from berth.model.queue import Queue
from berth.model.reasons import Cause, Verdict
from berth.model.workload import Workload
from berth.scheduling.quota import milli_of

# Bounds of the schema (deploy/crds): an answer that is too long is cut, not refused.
_SENTENCE, _WHERE, _LINE, _CAUSES, _UNLOCKS, _NEAREST, MOST_AHEAD = 4096, 1024, 1024, 16, 32, 16, 16
_FINDINGS, _CODES = 16, 32
MOVED_S, MOVED = 60.0, 0.1  # an expected start that moves by less is not told anew
Moments = tuple[float, float, float]
NOT_KNOWN: Moments = (0.0, 0.0, 0.0)
_MOST_NAME = 253
_PLAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_ALL = tuple(f.encode_name for f in fields(wire.VerdictSaid))
_NESTED = {
    "workload": tuple(f.encode_name for f in fields(wire.WorkloadReference)),
    "expectedStart": tuple(f.encode_name for f in fields(wire.Estimate)),
    "lastEviction": tuple(f.encode_name for f in fields(wire.Eviction)),
}


class Place(Struct, frozen=True, gc=False):
    """Where a workload stands among those that wait: `position` in its queue, from 1; `ahead` in all queues.

    `here` are those ahead in its own namespace by `Kind/name`; whoever may read the Verdict may know these.
    `starts_s`: p10, p50, p90 of its expected first start, seconds since the epoch; 0.0 where that is not known.
    """

    queue: str
    position: int
    ahead: int
    here: tuple[str, ...] = ()
    starts_s: Moments = NOT_KNOWN


def places(
    waiting: Iterable[Workload], queues: Iterable[Queue], starts_s: Mapping[str, Moments] | None = None
) -> Iterator[Place]:
    """Of each of those that wait, in the order in which they do. `starts_s` by identity."""
    known = starts_s or {}
    payers = payers_of(queues)
    positions: dict[str, int] = {}
    here: dict[str, tuple[str, ...]] = {}
    for ahead, workload in enumerate(waiting):
        queue = payers.of(workload.queue, workload.namespace)
        positions[queue] = position = positions.get(queue, 0) + 1
        before = here.get(workload.namespace, ())
        if len(before) < MOST_AHEAD:
            here[workload.namespace] = (*before, f"{workload.kind}/{workload.name}")
        yield Place(queue, position, ahead, before, known.get(workload.identity, NOT_KNOWN))


def name_of(key: SubjectKey) -> str:
    """The Verdict's name: `podgroup-train`. Two workloads never share one.

    A name that is no object's name or too long is rewritten and carries a digest; it begins with `kind.` instead
    of `kind-`, so that no plain name is like it.
    """
    kind, _, name = key
    word = kind.lower()
    plain = f"{word}-{name}"
    if len(plain) <= _MOST_NAME and word.isascii() and word.isalnum() and _PLAIN.fullmatch(name):
        return plain
    digest = hashlib.sha256(f"{kind}/{name}".encode()).hexdigest()[:16]
    readable = re.sub(r"[^a-z0-9]+", "-", name.lower())[:200].strip("-")
    word = re.sub(r"[^a-z0-9]", "", word)[:32] or "x"
    return f"{word}.{readable}-{digest}" if readable else f"{word}.{digest}"


def said_of(
    workload: Workload, verdict: Verdict, place: Place, since_s: float, now_s: float,
    evicted: wire.Eviction | None = None,
) -> wire.VerdictSaid:  # fmt: skip
    """What the Verdict says at `now_s`; its reason has held since `since_s`."""
    cause = verdict.causes[0] if verdict.causes else None
    milli = milli_of(workload, minimum=True)
    unlock = tuple(dict.fromkeys(line for c in verdict.causes for line in c.unlock))
    return wire.VerdictSaid(
        workload=_reference(workload),
        verdict=verdict.answer.value,
        since=stamp(since_s),
        at=stamp(max(since_s, now_s)),
        queue=place.queue or None,
        pods=sum(s.min_count for s in workload.pod_sets),
        gpus=f"{milli}m" if milli % 1000 else str(milli // 1000),
        reason=cause.reason.name if cause else None,
        sentence=_sentence(cause) if cause else None,
        causes=tuple(_cause(c) for c in verdict.causes[:_CAUSES]) or None,
        unlock=_lines(unlock, _UNLOCKS),
        position=place.position,
        ahead=place.ahead,
        ahead_here=place.here or None,
        expected_start=_expected(place.starts_s),
        last_eviction=evicted,
        findings=_lines(workload.findings, _FINDINGS),
    )


def _expected(starts_s: Moments) -> wire.Estimate | None:
    """What lies beyond all that was looked at is left out."""
    p10, p50, p90 = (stamp(at) if at and isfinite(at) else None for at in starts_s)
    return wire.Estimate(p50, p10, p90) if p50 else None


def has_moved(starts_s: Moments, told_s: Moments, now_s: float) -> bool:
    """It is worth telling anew: by a minute at least, and a tenth of what there was to wait."""
    if not starts_s[1] or not told_s[1]:
        return starts_s != told_s
    enough = max(MOVED_S, MOVED * (told_s[1] - now_s))
    return any(abs(new - old) > enough for new, old in zip(starts_s, told_s, strict=True) if new != old)


def differs(said: wire.VerdictSaid, there: wire.VerdictSaid) -> bool:
    """They say different things, whenever it was that they were last seen to hold."""
    return any(getattr(said, f.name) != getattr(there, f.name) for f in fields(wire.VerdictSaid) if f.name != "at")


def news(said: wire.VerdictSaid, there: wire.VerdictSaid) -> bool:
    """They differ in more than numbers: another workload, answer or reason."""
    return (said.workload, said.verdict, said.reason) != (there.workload, there.verdict, there.reason)


def moment(text: str) -> float:
    """RFC 3339 as seconds since the epoch; 0.0 where it is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def creation(key: SubjectKey, said: wire.VerdictSaid, owner: Reference | None) -> bytes:
    """The body of a POST."""
    meta: dict[str, Any] = {"name": name_of(key), "namespace": key[1]}
    if owner is not None:
        meta["ownerReferences"] = [_owned_by(owner)]
    head = {"apiVersion": f"{wire.GROUP}/{wire.VERSION}", "kind": wire.KIND, "metadata": meta}
    return msgspec.json.encode({**head, **msgspec.to_builtins(said)})


def change(said: wire.VerdictSaid, owner: Reference | None) -> bytes:
    """The body of a merge patch that makes the object say this and nothing else."""
    now = msgspec.to_builtins(said)
    body: dict[str, Any] = {name: now.get(name) for name in _ALL}
    for name, parts in _NESTED.items():
        if body[name] is not None:
            body[name] = {part: body[name].get(part) for part in parts}
    body["metadata"] = {"ownerReferences": [_owned_by(owner)] if owner is not None else None}
    return msgspec.json.encode(body)


def _owned_by(owner: Reference) -> dict[str, str]:
    # With the owner the garbage collector takes the Verdict, whether or not a scheduler is there to do it.
    return {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}


def _reference(workload: Workload) -> wire.WorkloadReference:
    found = object_of(workload)
    return wire.WorkloadReference(
        workload.kind, workload.name, found.api_version if found else None, found.uid if found else None
    )


def _cause(cause: Cause) -> wire.CauseSaid:
    return wire.CauseSaid(
        reason=cause.reason.name,
        sentence=_sentence(cause),
        need=cause.need,
        have=cause.have,
        unit=_cut(cause.unit, 63) or None,
        where=_cut(cause.where, _WHERE) or None,
        unlock=_lines(cause.unlock, _UNLOCKS),
        blocks={block.name: nodes for block, nodes in cause.blocks} or None,
        codes={_cut(code, 63): nodes for code, nodes in cause.codes[:_CODES]} or None,
        nearest=tuple(
            wire.NearestNode(_cut(node, _MOST_NAME), _cut(lacks, _LINE) or None)
            for node, lacks in cause.nearest[:_NEAREST]
        )
        or None,
        proven=None if cause.proven else False,
    )


def _sentence(cause: Cause) -> str:
    return _cut(cause.sentence, _SENTENCE) or cause.reason.summary


def _lines(lines: Sequence[str], most: int) -> tuple[str, ...] | None:
    return tuple(_cut(line, _LINE) for line in lines[:most]) or None


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
