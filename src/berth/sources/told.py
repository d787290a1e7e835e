"""What the scheduler has said of workloads that wait: Verdict objects, read from the cluster."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from berth.base.quantity import QuantityError, scaled
from berth.kube.client import Client
from berth.kube.discover import Served
from berth.kube.errors import ApiError
from berth.kube.listing import pages
from berth.kube.wire import Quantity
from berth.kube.wire_verdict import CauseSaid, Estimate, Eviction, VerdictMeta, VerdictObject, WorkloadReference
from berth.model.told import Told, ToldCause
from berth.sources.cluster import Missing, missing
from berth.sources.inventory import seconds
from berth.sources.live.kinds import Kind

VERDICTS = Kind("berth.dev", "verdicts", "Verdict", VerdictObject)


class Answers(Struct, frozen=True):
    """The verdicts of a namespace, or ("") of all. `missing` is the right that is lacking to see them.

    `is_served` is False where the cluster has no such kind.
    """

    found: tuple[Told, ...] = ()
    missing: Missing | None = None
    is_served: bool = True

    def called(self, asked: str) -> list[Told]:
        return [one for one in self.found if one.is_called(asked)]


async def verdicts(client: Client, served: Served, namespace: str = "") -> Answers:
    """What the scheduler has said of all that waits. Raises ApiError for every refusal but a missing right."""
    resource = served.preferred(VERDICTS.group, VERDICTS.resource)
    if resource is None:
        return Answers(is_served=False)
    found: list[Told] = []
    try:
        async for page in pages(client, resource.path(namespace), VerdictObject, is_lenient=True):
            if page.is_first:
                found.clear()
            found.extend(told_by(item) for item in page.items)
    except ApiError as error:
        if error.is_not_found:
            return Answers(is_served=False)
        if error.is_forbidden:
            return Answers(missing=missing(VERDICTS, namespace, error))
        raise
    return Answers(tuple(found))


def told_by(thing: VerdictObject) -> Told:
    """What an object says."""
    meta, subject = thing.metadata or VerdictMeta(), thing.workload or WorkloadReference()
    expected, evicted = thing.expected_start or Estimate(), thing.last_eviction or Eviction()
    causes = tuple(_cause(c) for c in thing.causes or ()) or (ToldCause(thing.reason or "", thing.sentence or ""),)
    return Told(
        namespace=meta.namespace or "default",
        name=subject.name or meta.name or "",
        kind=subject.kind or "Workload",
        uid=subject.uid or "",
        own_name=meta.name or "",
        queue=thing.queue or "",
        pods=thing.pods or 0,
        gpu_milli=_milli(thing.gpus),
        verdict=thing.verdict or "",
        causes=causes if causes[0].reason or causes[0].sentence else (),
        unlock=tuple(thing.unlock or ()),
        position=thing.position or 0,
        ahead=thing.ahead,
        ahead_here=tuple(thing.ahead_here or ()),
        starts_s=(seconds(expected.p10), seconds(expected.p50), seconds(expected.p90)),
        since_s=seconds(thing.since),
        at_s=seconds(thing.at),
        evicted=evicted.sentence or "",
        evicted_s=seconds(evicted.at),
        findings=tuple(thing.findings or ()),
    )


def by_identity(found: Iterable[Told]) -> dict[str, Told]:
    """The latest word on each workload."""
    latest: dict[str, Told] = {}
    for one in found:
        before = latest.get(one.identity)
        if before is None or before.at_s <= one.at_s:
            latest[one.identity] = one
    return latest


def _cause(cause: CauseSaid) -> ToldCause:
    blocks = sorted((cause.blocks or {}).items(), key=lambda item: (-item[1], item[0]))
    return ToldCause(
        cause.reason or "",
        cause.sentence or "",
        cause.need,
        cause.have,
        cause.unit or "",
        cause.where or "",
        tuple(cause.unlock or ()),
        tuple(blocks),
        tuple((n.node or "", n.lacks or "") for n in cause.nearest or ()),
        cause.proven is not False,
        tuple(sorted((cause.codes or {}).items(), key=lambda item: (-item[1], item[0]))),
    )


def _milli(amount: Quantity) -> int:
    try:
        return scaled(str(amount), 1000) if amount is not None else 0
    except QuantityError:
        return 0
