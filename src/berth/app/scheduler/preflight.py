"""Is this cluster ready for Berth: what the scheduler may do, what is served, who else schedules, what nodes lack.

`gather` asks the cluster; `checks_of` judges what was found and asks nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from berth.app.scheduler.configuration import Configuration
from berth.app.scheduler.rights import FOREIGN, For, Right, rights
from berth.app.scheduler.webhooks import Webhook, webhooks_of
from berth.base.units import counted, duration
from berth.kube import wire, wire_queues
from berth.kube.client import Client
from berth.kube.discover import Served
from berth.kube.errors import ApiError
from berth.kube.lease import Lease
from berth.kube.listing import pages
from berth.kube.review import Action, User, may, may_we, who_am_i
from berth.model.gpus import GpuMapping, gpus_expected
from berth.model.resources import is_accelerator
from berth.model.topology import Level, discover
from berth.sources.assemble import levels_of
from berth.sources.inventory import Inventory, seconds, some
from berth.sources.live.kinds import NEEDED, PLAIN
from berth.sources.nodes import read_node

T = TypeVar("T")

SUPPORTED = ((1, 35), (1, 37))  # oldest and newest version of Kubernetes that the tests run on
OURS = ("gpuqueues", "gputopologies", "gpuclasses", "verdicts")
VERSION = "v1alpha1"
# By Helm first: kinds that kubectl has made are not Helm's, and its next `helm install` would be refused.
INSTALLED_BY = (
    "They come with `helm install` of Berth. Without Helm: kubectl apply --server-side -k deploy/crds; a later "
    "`helm install` then takes --take-ownership."
)
SKEW_S = 5.0  # between our clock and that of whoever renewed a Lease

OK, NOTE, FINDING, UNSEEN = "ok", "note", "finding", "unseen"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. `remedy` is empty where nothing is to be done."""

    area: str
    state: str
    said: str
    remedy: str = ""


@dataclass
class Found:
    """What the cluster answered. A list is None where it may not be seen, with the reason in `refused`."""

    configuration: Configuration
    who: str
    served: Served
    granted: Mapping[Right, bool]
    nodes: list[wire.Node] | None = None
    priorities: list[wire.PriorityClass] | None = None
    webhooks: list[Webhook] | None = None
    leases: list[Lease] | None = None
    topologies: list[tuple[str, wire_queues.Topology]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    mapping: GpuMapping | None = None
    levels: tuple[Level, ...] = ()
    now_s: float = 0.0


# ---- asking


async def gather(
    client: Client,
    served: Served,
    configuration: Configuration,
    *,
    now_s: float,
    namespace: str = "",
    service_account: tuple[str, str] | None = None,
    shadow: bool = False,
    mapping: GpuMapping | None = None,
    levels: tuple[Level, ...] = (),
) -> Found:
    """All facts. `service_account` (namespace, name) is whose rights are looked at; None: those of whoever asks."""
    user = None
    if service_account is not None:
        inside, name = service_account
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{inside}", "system:authenticated")
        user = User(f"system:serviceaccount:{inside}:{name}", groups=groups)
    needed = [r for r in rights(configuration, shadow, namespace) if _is_there(r, served)]
    granted = await asyncio.gather(*(_granted(client, user, right) for right in needed))
    who = user.username if user is not None else (await who_am_i(client)).username
    found = Found(
        configuration, who or "?", served, dict(zip(needed, granted, strict=True)), mapping=mapping, levels=levels,
        now_s=now_s,
    )  # fmt: skip

    async def listed(name: str, path: str, type: type[T]) -> list[T] | None:
        try:
            return [item async for page in pages(client, path, type, is_lenient=True) for item in page.items]
        except ApiError as error:
            if not (error.is_forbidden or error.is_not_found):
                raise
            found.refused[name] = error.message
            return None

    hooks = "/apis/admissionregistration.k8s.io/v1"
    found.nodes, found.priorities, mutating, validating, found.leases = await asyncio.gather(
        listed("nodes", "/api/v1/nodes", wire.Node),
        listed("priorityclasses", "/apis/scheduling.k8s.io/v1/priorityclasses", wire.PriorityClass),
        listed("webhooks", f"{hooks}/mutatingwebhookconfigurations", dict),
        listed("webhooks", f"{hooks}/validatingwebhookconfigurations", dict),
        listed("leases", "/apis/coordination.k8s.io/v1/leases", Lease),
    )
    if mutating is not None and validating is not None:
        found.webhooks = [*webhooks_of(mutating, True), *webhooks_of(validating, False)]
    for group in ("berth.dev", "kueue.x-k8s.io", "kai.scheduler"):
        resource = "gputopologies" if group == "berth.dev" else "topologies"
        there = served.preferred(group, resource)
        if there is not None:
            for thing in await listed(resource, there.path(), wire_queues.Topology) or ():
                found.topologies.append((group, thing))
    return found


def _is_there(right: Right, served: Served) -> bool:
    return served.has(right.group, right.resource)


async def _granted(client: Client, user: User | None, right: Right) -> bool:
    action = Action(right.verb, right.resource, right.group, right.namespace, right.name, right.subresource)
    ruling = await (may_we(client, action) if user is None else may(client, user, action))
    return ruling.allowed


# ---- judging


def checks_of(found: Found) -> list[Check]:
    """What was found, area by area; findings are what somebody should mend."""
    return [
        *_server(found),
        *_rights(found),
        *_kinds(found),
        *_webhooks(found),
        *_leases(found),
        *_nodes(found),
        *_topology(found),
        *_priorities(found),
    ]


def exit_code(checks: Iterable[Check]) -> int:
    """1 with findings, 3 where something could not be seen, else 0."""
    states = {check.state for check in checks}
    return 1 if FINDING in states else 3 if UNSEEN in states else 0


def _server(found: Found) -> Iterator[Check]:
    server = found.served.server
    oldest, newest = (".".join(map(str, version)) for version in SUPPORTED)
    if server.number == (0, 0):
        yield Check("API server", UNSEEN, f"its version {server.git_version!r} cannot be read")
    elif SUPPORTED[0] <= server.number <= SUPPORTED[1]:
        yield Check("API server", OK, f"Kubernetes {server.git_version}")
    else:
        side = "older" if server.number < SUPPORTED[0] else "newer"
        yield Check(
            "API server", FINDING, f"Kubernetes {server.git_version} is {side} than what Berth is tested with",
            f"Berth is tested with {oldest} to {newest}.",
        )  # fmt: skip
    for group in found.served.unseen:
        said = f"the API group {group} does not answer"
        yield Check("API server", FINDING, said, "See the APIService that serves it.")


def _rights(found: Found) -> Iterator[Check]:
    by_purpose: dict[For, list[Right]] = {}
    for right in found.granted:
        by_purpose.setdefault(right.purpose, []).append(right)
    for purpose, needed in by_purpose.items():
        verbs: dict[tuple[str, str, str], list[str]] = {}
        for right in needed:
            if not found.granted[right]:
                verbs.setdefault((right.called, right.namespace, right.name), []).append(right.verb)
        if not verbs:
            yield Check("rights", OK, f"{purpose.name.lower()}: {counted(len(needed), 'right')} of {found.who}")
        # Resources that lack the same verbs are told together.
        alike: dict[tuple[tuple[str, ...], str], list[str]] = {}
        for (called, namespace, name), lacking in verbs.items():
            alike.setdefault((tuple(lacking), namespace), []).append(f"{called} {name}".rstrip())
        for (lacking_verbs, namespace), called_all in alike.items():
            where = f" in namespace {namespace}" if namespace else ""
            said = f"{found.who} may not {', '.join(lacking_verbs)} {', '.join(called_all)}{where}: {purpose.value}"
            first = called_all[0].partition(" ")[0]
            yield Check("rights", FINDING, said, _can_i(found.who, lacking_verbs[0], first, namespace))


def _can_i(who: str, verb: str, called: str, namespace: str) -> str:
    kind, slash, subresource = called.partition("/")
    below = f" --subresource={subresource}" if slash else ""
    acting = f" --as={who}" if who.startswith("system:serviceaccount:") else ""
    return f"kubectl auth can-i {verb} {kind}{below} {f'-n {namespace}' if namespace else '-A'}{acting}"


def _kinds(found: Found) -> Iterator[Check]:
    served = found.served
    for kind in NEEDED:
        if not served.has(kind.group, kind.resource):
            said = f"{kind.called} are not served: nothing can be decided"
            yield Check("kinds", FINDING, said, "Is this Kubernetes?")
    absent = [resource for resource in OURS if not served.has("berth.dev", resource)]
    if absent:
        called = ", ".join(f"{resource}.berth.dev" for resource in absent)
        lost = "nobody can look up why a workload waits" if "verdicts" in absent else "the defaults hold"
        state = FINDING if "verdicts" in absent else NOTE
        yield Check("kinds", state, f"not installed: {called}; {lost}", INSTALLED_BY)
    for resource in OURS:
        versions = [each.version for each in served.resources.get(("berth.dev", resource), ())]
        if versions and VERSION not in versions:
            yield Check(
                "kinds", FINDING, f"{resource}.berth.dev is served as {', '.join(versions)}, not as {VERSION}",
                "Install the kinds of this version of Berth: `helm upgrade`, or kubectl apply --server-side "
                "-k deploy/crds",
            )  # fmt: skip
    if not absent:
        yield Check("kinds", OK, f"the kinds of berth.dev/{VERSION} are installed")
    here = [kind.called for kind in PLAIN if served.has(kind.group, kind.resource)]
    gone = [kind.called for kind in PLAIN if not served.has(kind.group, kind.resource)]
    yield Check("kinds", OK, f"understood and served: {', '.join(here) or 'none'}")
    if gone:
        yield Check("kinds", NOTE, f"understood and not served here: {', '.join(gone)}")


def _webhooks(found: Found) -> Iterator[Check]:
    if found.webhooks is None:
        yield _unseen("webhooks", found.refused.get("webhooks", ""))
        return
    foreign = [hook for hook in found.webhooks if hook.family is not None]
    for hook in foreign:
        assert hook.family is not None
        state = FINDING if hook.family.is_in_the_way else NOTE
        yield Check("webhooks", state, hook.sentence, hook.family.remedy)
    if not foreign:
        yield Check("webhooks", OK, "no other scheduler's webhook looks at pods")


def _leases(found: Found) -> Iterator[Check]:
    if found.leases is None:
        yield _unseen("other schedulers", found.refused.get("leases", ""))
        return
    by_name: dict[str, list[Lease]] = {}
    for lease in found.leases:
        by_name.setdefault((lease.metadata.name if lease.metadata else None) or "", []).append(lease)
    alive: list[str] = []
    for scheduler, names in FOREIGN.items():
        serves = scheduler in found.configuration.scheduler_names
        held = [lease for name in names for lease in by_name.get(name, ()) if _is_alive(lease, found.now_s)]
        for lease in held:
            alive.append(scheduler)
            said = f"{scheduler} is alive: {_of_lease(lease, found.now_s)}"
            if serves:
                yield Check(
                    "other schedulers", FINDING, f"{said}; its pods are not Berth's while it is",
                    f"Stop it, or take {scheduler} out of schedulerNames.",
                )  # fmt: skip
            else:
                yield Check("other schedulers", NOTE, f"{said}; it places its own pods on the same nodes")
        if serves and not held:
            no_lease = "it keeps no Lease, so that nobody can tell whether it runs" if not names else "no Lease is held"
            yield Check("other schedulers", OK if names else NOTE, f"{scheduler} is served by Berth: {no_lease}")
    if not alive:
        yield Check("other schedulers", OK, "no Lease of another scheduler is held")
    election = found.configuration.leader_election
    for lease in by_name.get(election.name, ()):
        if _is_alive(lease, found.now_s):
            yield Check("other schedulers", NOTE, f"Berth itself leads here: {_of_lease(lease, found.now_s)}")


def _is_alive(lease: Lease, now_s: float) -> bool:
    spec = lease.spec
    if spec is None or not spec.holder_identity:
        return False
    return now_s - seconds(spec.renew_time) < (spec.lease_duration_seconds or 15) + SKEW_S


def _of_lease(lease: Lease, now_s: float) -> str:
    meta, spec = lease.metadata, lease.spec
    assert meta is not None and spec is not None
    renewed = duration(max(0.0, now_s - seconds(spec.renew_time)))
    return f"Lease {meta.namespace}/{meta.name}, held by {spec.holder_identity}, renewed {renewed} ago"


def _nodes(found: Found) -> Iterator[Check]:
    if found.nodes is None:
        yield _unseen("nodes", found.refused.get("nodes", ""))
        return
    readings = [read_node(node, (), found.mapping) for node in found.nodes]
    with_gpus = [r for r in readings if any(is_accelerator(name) and amount for name, amount in r.node.capacity)]
    # A class of which not even the memory is known satisfies no wish but that for any GPU.
    no_class = [r.node.name for r in with_gpus if not (r.gpu_classes and r.gpu_classes[0].memory_bytes)]
    silent = [r.node.name for r in readings if r not in with_gpus and gpus_expected(r.node.labels)]
    if no_class:
        yield Check(
            "nodes", FINDING, f"{_nodes_have(no_class, 'GPUs whose class nobody tells')}: {some(no_class)}",
            "Run GPU Feature Discovery, or map labels to classes: gpuClasses in the configuration, --gpu-classes.",
        )  # fmt: skip
    if silent:
        yield Check(
            "nodes", FINDING, f"{_nodes_have(silent, 'labels of GPUs and no GPU to offer')}: {some(silent)}",
            "See whether driver and device plugin run there.",
        )  # fmt: skip
    doubtful = [f"{r.node.name}: {problem}" for r in readings for problem in r.problems]
    if doubtful:
        yield Check("nodes", FINDING, f"{counted(len(doubtful), 'value')} of nodes cannot be right: {some(doubtful)}")
    classes: dict[str, int] = {}
    for reading in with_gpus:
        if reading.node.name not in no_class:
            classes[reading.node.gpu_class] = classes.get(reading.node.gpu_class, 0) + 1
    if classes:
        told = ", ".join(f"{name} on {counted(number, 'node')}" for name, number in sorted(classes.items()))
        yield Check("nodes", OK, f"{counted(len(readings), 'node')}, {told}")
    elif not no_class:
        yield Check("nodes", FINDING if not readings else NOTE, f"{counted(len(readings), 'node')}, none offers GPUs")


def _nodes_have(names: Sequence[str], what: str) -> str:
    return counted(len(names), f"node has {what}", f"nodes have {what}")


def _topology(found: Found) -> Iterator[Check]:
    if found.nodes is None:
        return
    readings = [read_node(node, (), found.mapping).node for node in found.nodes]
    gpu_nodes = [n for n in readings if any(is_accelerator(name) and amount for name, amount in n.capacity)]
    inventory = Inventory()
    inventory.topologies = found.topologies
    named = found.levels or levels_of(inventory)
    levels = discover([n.labels for n in readings], named).levels
    if not levels:
        yield Check(
            "topology", NOTE, "no node carries a label of a domain: gangs are placed without regard to racks",
            "Label nodes, and name the labels in a GPUTopology.",
        )  # fmt: skip
        return
    lacking = False
    for level in levels:
        without = [n.name for n in gpu_nodes if level.label not in n.labels]
        if without:
            lacking = True
            yield Check(
                "topology", FINDING,
                f"{counted(len(without), 'GPU node lacks', 'GPU nodes lack')} the label {level.label} of level "
                f"{level.name}: {some(without)}",
                "What asks for one domain of that level is never placed there; label them.",
            )  # fmt: skip
    if not lacking:
        told = ", ".join(f"{level.name} ({level.label})" for level in levels)
        yield Check("topology", OK, f"every GPU node has its place: {told}")


def _priorities(found: Found) -> Iterator[Check]:
    if found.priorities is None:
        yield _unseen("priorities", found.refused.get("priorityclasses", ""))
        return
    own = [p for p in found.priorities if not _name(p).startswith("system-")]
    if not own:
        yield Check(
            "priorities", NOTE, "no PriorityClass of your own: every workload has priority 0, and age alone decides",
            "Make one for what goes first.",
        )  # fmt: skip
        return
    listed = ", ".join(f"{_name(p)} {p.value or 0}" for p in sorted(own, key=lambda p: -(p.value or 0))[:8])
    yield Check("priorities", OK, f"{counted(len(own), 'PriorityClass', 'PriorityClasses')}: {listed}")
    defaults = [_name(p) for p in own if p.global_default]
    if len(defaults) > 1:
        yield Check("priorities", FINDING, f"several are the default: {', '.join(defaults)}", "Leave one.")


def _name(thing: wire.PriorityClass) -> str:
    return (thing.metadata.name if thing.metadata else None) or ""


def _unseen(area: str, said: str) -> Check:
    return Check(area, UNSEEN, f"not looked at: {said or 'it may not be seen'}", "Ask as somebody who may list them.")
