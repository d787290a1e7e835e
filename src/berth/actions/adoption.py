"""What earlier leaders have told: their Verdicts, and what the waiting pods say."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from msgspec import Struct

from berth.actions.conditions import PodSaid, PodThere
from berth.actions.notice import UNHEARD, Notice
from berth.actions.subjects import PodKey
from berth.actions.verdicts import name_of
from berth.dialects.conditions import State
from berth.kube import wire_verdict as wire
from berth.kube.errors import ApiError
from berth.kube.listing import pages
from berth.model.workload import Workload

log = logging.getLogger("berth.telling")


class Left(Struct, frozen=True):
    """`notices` are of Verdicts, whose workloads count as gone until a plan says that they wait.

    `pods` are those that wait for one of our schedulers, as far as they say anything of ours.
    """

    notices: tuple[Notice, ...] = ()
    pods: dict[PodKey, PodSaid] = {}


async def left_by_others(client: Any, schedulers: Collection[str], has_verdicts: bool) -> Left:
    """One list each. What may not be listed counts as absent, and is told."""
    found = await _list(client, wire.path(), wire.VerdictObject) if has_verdicts else []
    pods: dict[PodKey, PodSaid] = {}
    for pod in await _list(client, "/api/v1/pods", PodThere, fieldSelector="spec.nodeName="):
        said = pod.said
        if pod.spec.scheduler_name in schedulers and (said.code or said.node):
            pods[pod.metadata.namespace, pod.metadata.name] = said
    return Left(tuple(notice for each in found if (notice := _notice(each)) is not None), pods)


def _notice(found: wire.VerdictObject) -> Notice | None:
    """None for a Verdict that is not named as ours are."""
    said, meta = found.workload or wire.WorkloadReference(), found.metadata or wire.VerdictMeta()
    key = (said.kind or "", meta.namespace or "", said.name or "")
    if name_of(key) != meta.name:
        return None
    workload = Workload(key[2], (), key[1], key[0], api_version=said.api_version or "", uid=said.uid or "")
    return Notice(key, workload, State.Gone, has_object=True, there=found, group_told=UNHEARD)


async def _list(client: Any, path: str, kind: Any, **selectors: str) -> list[Any]:
    found: list[Any] = []
    try:
        async for page in pages(client, path, kind, params=selectors, is_lenient=True):
            if page.is_first:
                found.clear()
            found += page.items
    except ApiError as error:
        log.warning("what earlier leaders wrote cannot be listed", extra={"said": error.sentence})
        return []
    return found
