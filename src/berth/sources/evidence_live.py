"""Evidence from a live cluster, with the rights that whoever asks has: objects first, then the logs they point to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from urllib.parse import quote

from msgspec import Raw, Struct

from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import PodSeen
from berth.evidence.piece import Piece
from berth.kube.client import Client
from berth.kube.discover import Resource, Served
from berth.kube.errors import ApiError
from berth.kube.listing import pages

LOG_LINES = 2000
MOST_LOGS = 24  # of pods, the suspicious first
LONGEST_LOG_S = 15.0


class Wanted(Struct, frozen=True):
    """A kind that a diagnosis reads. Kinds that are not served are no loss: nobody made any."""

    group: str
    resource: str
    needed: bool = False  # without it much stays unconfirmed
    params: dict[str, str] = {}


WANTED = (
    Wanted("", "nodes", needed=True),
    Wanted("", "pods", needed=True),
    Wanted("", "events", needed=True, params={"fieldSelector": "type=Warning"}),
    Wanted("apps", "daemonsets"),
    Wanted("node.k8s.io", "runtimeclasses"),
    Wanted("", "resourcequotas"),
    Wanted("", "limitranges"),
    Wanted("scheduling.k8s.io", "priorityclasses"),
    Wanted("resource.k8s.io", "deviceclasses"),
    Wanted("resource.k8s.io", "resourceslices"),
    Wanted("resource.k8s.io", "resourceclaims"),
    Wanted("nvidia.com", "clusterpolicies"),
    Wanted("nvidia.com", "nvidiadrivers"),
    Wanted("resource.nvidia.com", "computedomains"),
    Wanted("kueue.x-k8s.io", "clusterqueues"),
    Wanted("kueue.x-k8s.io", "localqueues"),
    Wanted("kueue.x-k8s.io", "workloads"),
    Wanted("kueue.x-k8s.io", "resourceflavors"),
    Wanted("scheduling.volcano.sh", "podgroups"),
    Wanted("scheduling.volcano.sh", "queues"),
    Wanted("scheduling.k8s.io", "podgroups"),
    Wanted("karpenter.sh", "nodeclaims"),
    Wanted("berth.dev", "nodeledgers"),
    Wanted("berth.dev", "verdicts"),
)

# Namespaces whose configuration says how devices are offered.
_CONFIGURED = ("gpu-operator", "nvidia-gpu-operator", "nvidia-device-plugin", "kube-system")
_OPERANDS = (
    "device-plugin", "container-toolkit", "driver", "validator", "feature-discovery", "mig-manager", "dcgm",
    "fabricmanager", "mps", "dra", "hami", "volcano",
)  # fmt: skip


async def pieces_of(
    client: Client, served: Served, notes: list[str], namespace: str = ""
) -> AsyncIterator[Piece]:
    """Every kind that is served and may be listed: of the whole cluster, and where that is not allowed, of `namespace`.
    What may not be seen is noted, with the right that is missing."""
    for wanted in WANTED:
        kind = served.preferred(wanted.group, wanted.resource)
        if kind is None:
            continue
        places = ("", namespace) if namespace and kind.is_namespaced else ("",)
        for place in places:
            try:
                async for piece in _listed(client, kind, kind.path(place), wanted.params):
                    yield piece
                break
            except ApiError as error:
                if place or not error.is_forbidden or len(places) == 1:
                    notes.append(_refused(kind, error, place))
                else:
                    notes.append(f"{kind.resource} of other namespaces may not be seen: needs list on {kind.resource}")
    kind = served.preferred("", "configmaps")
    for namespace in _CONFIGURED if kind is not None else ():
        assert kind is not None
        try:
            async for piece in _listed(client, kind, kind.path(namespace), {}):
                yield piece
        except ApiError as error:
            if not error.is_not_found:
                notes.append(_refused(kind, error, namespace))


async def _listed(client: Client, kind: Resource, path: str, params: dict[str, str]) -> AsyncIterator[Piece]:
    head = f'{{"apiVersion":"{kind.api_version}","kind":"{kind.kind}List","items":['.encode()
    async for page in pages(client, path, Raw, params=params):
        text = head + b",".join(bytes(item) for item in page.items) + b"]}"
        yield Piece(text, "", "objects", taken_s=time.time())


def _refused(kind: Resource, error: ApiError, namespace: str = "") -> str:
    where = f" in namespace {namespace}" if namespace else ""
    if error.is_forbidden:
        return f"{kind.resource}{where} may not be seen: needs list on {kind.resource}"
    return f"{kind.resource}{where} could not be read: {error}"


async def logs_of(client: Client, pods: Iterable[PodSeen], notes: list[str]) -> list[Piece]:
    """What the containers of these pods wrote last, and before their last restart."""
    wanted = [
        (pod, state.container, previous)
        for pod in list(pods)[:MOST_LOGS]
        for state in pod.states
        for previous in ((False, True) if state.restarts else (False,))
    ]
    refused: set[str] = set()
    found = await asyncio.gather(*(_log(client, *one, refused) for one in wanted))
    if refused:
        notes.append(f"logs may not be read: needs get on pods/log ({', '.join(sorted(refused)[:3])})")
    return [piece for piece in found if piece is not None]


async def _log(client: Client, pod: PodSeen, container: str, previous: bool, refused: set[str]) -> Piece | None:
    path = f"/api/v1/namespaces/{quote(pod.namespace)}/pods/{quote(pod.name)}/log"
    params: dict[str, str | int] = {"container": container, "tailLines": LOG_LINES, "timestamps": "true"}
    if previous:
        params["previous"] = "true"
    try:
        raw = await client.request(
            "GET", path, params=params, timeout_s=LONGEST_LOG_S, most_attempts=1, accept="*/*"
        )
    except ApiError as error:
        if error.is_forbidden:
            refused.add(pod.namespace)
        return None
    before = " before its restart" if previous else ""
    kind = "plugin-log" if is_operand_log(pod) else "app-log"
    return Piece(raw, f"log of {pod.key} {container}{before}", kind, pod.on, pod.key)


def is_operand_log(pod: PodSeen) -> bool:
    return any(word in pod.name for word in _OPERANDS)


def suspicious(facts: Facts, nodes: frozenset[str] = frozenset(), pod: str = "") -> list[PodSeen]:
    """Pods whose logs may say more: what prepares nodes and does not run well, or serves the nodes that are asked
    about, and the pod that is asked about."""
    ranked: list[tuple[int, str, PodSeen]] = []
    for one in facts.of(PodSeen):
        if one.key == pod:
            ranked.append((0, one.key, one))
        elif is_operand_log(one):
            troubled = any(
                state.state == "waiting" or state.restarts or (state.state == "terminated" and state.exit_code)
                for state in one.states
            )
            if troubled:
                ranked.append((1, one.key, one))
            elif one.on in nodes:
                ranked.append((2, one.key, one))
    return [one for _, _, one in sorted(ranked, key=lambda each: each[:2])]
