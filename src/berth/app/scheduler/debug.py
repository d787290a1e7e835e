"""/debug/snapshot: the cluster as it decides, with what this scheduler holds of it, as a Kubernetes List.

The objects are listed anew when they are asked for, and not rendered from what the scheduler keeps: it keeps pod
classes and memberships, of which no manifest can be made that means exactly the same, while the Structs that it
decodes into hold all that decides and nothing else. `berth why --from` reads the result. Where the two differ,
`known` and `assumed` of the BerthState tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from berth import __version__
from berth.app.scheduler.redaction import plain, typed
from berth.app.scheduler.settings import Configuration
from berth.kube import wire
from berth.kube.client import Client
from berth.kube.discover import Resource, Served, served
from berth.kube.errors import ApiError
from berth.kube.listing import Page, pages
from berth.kube.review import PathAction, User, may, review_token
from berth.kube.wire_state import (
    AssumedBind,
    BerthState,
    StateCause,
    StateConfiguration,
    StateLevel,
    StateMeta,
    StateNearest,
    StateTimings,
    StateVerdict,
)
from berth.model.reasons import Cause, Verdict
from berth.scheduling.plan import Plan
from berth.sources.cluster import KINDS
from berth.sources.live.kinds import Kind

if TYPE_CHECKING:
    from berth.app.scheduler.state import State
    from berth.sources.live.world import World

PATH = "/debug/snapshot"
PAGE_OBJECTS = 250


class NotAllowed(Exception):
    """401 without a token that the API server knows, 403 where its owner may not see this."""

    def __init__(self, status: int, said: str) -> None:
        self.status = status
        super().__init__(said)


async def admitted(client: Client, authorization: str) -> User:
    """Who asks, if they may. `authorization` is the header. Raises NotAllowed, ApiError."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise NotAllowed(401, "A bearer token is needed: kubectl create token NAME")
    answer = await review_token(client, token.strip())
    if not answer.authenticated:
        raise NotAllowed(401, "The API server does not know this token.")
    ruling = await may(client, answer.user, PathAction("get", PATH))
    if not ruling.allowed:
        raise NotAllowed(403, f"{answer.user.username} may not get {PATH}. The ClusterRole for it ends in -debug.")
    return answer.user


async def snapshot(client: Client, state: State, configuration: Configuration) -> AsyncIterator[bytes]:
    """The List, piece by piece. Raises ApiError before the first piece, or in between where the API server fails."""
    found = await served(client)
    resources = {kind: found.preferred(kind.group, kind.resource) for kind in KINDS}
    not_seen: list[tuple[Kind, str]] = []
    head = b'{"apiVersion":"v1","kind":"List","metadata":{},"items":[\n'
    verdicts = await asyncio.to_thread(_verdicts, state.measures.last_plan)
    yield head + await asyncio.to_thread(msgspec.json.encode, state_of(state, configuration, verdicts, found))
    for kind, resource in resources.items():
        if resource is None:
            continue
        try:
            async for page in pages(client, resource.path(), kind.type or dict, PAGE_OBJECTS, is_lenient=True):
                if page.items:
                    yield await asyncio.to_thread(_rendered, page, kind, resource, state.world)
        except ApiError as error:
            if not (error.is_forbidden or error.is_not_found):
                raise
            not_seen.append((kind, error.message))
    for kind, said in not_seen:
        details = {"group": kind.group, "kind": kind.resource}
        status = {"kind": "Status", "apiVersion": "v1", "reason": "Forbidden", "message": said, "details": details}
        yield b",\n" + msgspec.json.encode(status)
    yield b"\n]}\n"


def _rendered(page: Page[Any], kind: Kind, resource: Resource, world: World) -> bytes:
    """The objects of a page, each after a comma."""
    head = {"apiVersion": resource.api_version, "kind": kind.kind}
    parts = []
    for item in page.items:
        reduced = typed(item) if kind.type else plain(item)
        if isinstance(item, wire.Pod):
            _put_on_node(item, reduced, world)
        parts.append(b",\n" + msgspec.json.encode({**reduced, **head}))
    return b"".join(parts)


def _put_on_node(pod: wire.Pod, reduced: dict[str, Any], world: World) -> None:
    """A pod whose bind is on its way stands where the scheduler counts it."""
    meta, spec = pod.metadata or wire.NO_META, pod.spec or wire.PodSpec()
    if spec.node_name:
        return
    record = world.record((meta.namespace or "default", meta.name or ""))
    if record is not None and record.node and record.uid == meta.uid:
        reduced.setdefault("spec", {})["nodeName"] = record.node


def state_of(
    state: State, configuration: Configuration, verdicts: tuple[StateVerdict, ...] = (), found: Served | None = None
) -> BerthState:
    """What is ours: who leads, what is on its way, what the last plan said, how long it took."""
    measures, leadership, world = state.measures, state.leadership, state.world
    return BerthState(
        metadata=StateMeta(configuration.leader_election.name),
        version=__version__,
        at=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        is_leader=leadership is None or leadership.is_leader(),
        epoch=leadership.epoch if leadership is not None else 0,
        configuration=StateConfiguration(
            configuration.scheduler_names,
            tuple(StateLevel(level.name, level.label) for level in configuration.topology.levels),
            configuration.gpu_classes,
            configuration.node_agents.silent_seconds,
        ),
        known=dict(world.size),
        assumed=tuple(AssumedBind(*key, node) for key, node in world.assumed.items()),
        verdicts=verdicts,
        timings=StateTimings(measures.cycles, measures.last_cycle_s, dict(measures.step_seconds)),
        not_seen=found.unseen if found is not None else (),
    )


def _verdicts(plan: Plan | None) -> tuple[StateVerdict, ...]:
    """What a plan says of those that wait. Of thousands: not on the event loop."""
    if plan is None:
        return ()
    return tuple(_verdict(plan.workloads[w].identity, verdict) for w, verdict in plan.verdicts.items())


def _verdict(workload: str, verdict: Verdict) -> StateVerdict:
    return StateVerdict(workload, verdict.answer.value, tuple(_cause(cause) for cause in verdict.causes))


def _cause(cause: Cause) -> StateCause:
    return StateCause(
        cause.reason.name, cause.sentence, cause.need, cause.have, cause.unit, cause.where, cause.unlock,
        {block.name or "": nodes for block, nodes in cause.blocks},
        tuple(StateNearest(node, lacks) for node, lacks in cause.nearest),
        cause.proven,
        dict(cause.codes),
    )  # fmt: skip
