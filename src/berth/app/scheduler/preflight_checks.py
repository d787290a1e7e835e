"""Is this cluster ready for Berth: judged by what it answered (preflight.py), and nobody is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from berth.app.scheduler.preflight import Found
from berth.app.scheduler.preflight_check import FINDING, NOTE, OK, UNSEEN, Check, unseen
from berth.app.scheduler.preflight_schedulers import leases
from berth.app.scheduler.rights import For, Right
from berth.base.units import counted
from berth.kube import wire
from berth.model.gpus import gpus_expected
from berth.model.resources import is_accelerator
from berth.model.topology import discover
from berth.sources.assemble import levels_of
from berth.sources.inventory import Inventory, some
from berth.sources.live.kinds import NEEDED, PLAIN, Kind
from berth.sources.nodes import read_node

SUPPORTED = ((1, 35), (1, 37))  # oldest and newest version of Kubernetes that the tests run on
OURS = ("gpuqueues", "gpureservations", "gputopologies", "gpuclasses", "nodeledgers", "verdicts")
VERSION = "v1alpha1"
# By Helm first: kinds that kubectl has made are not Helm's, and its next `helm install` would be refused.
INSTALLED_BY = (
    "They come with `helm install` of Berth. Without Helm: kubectl apply --server-side -k deploy/crds; a later "
    "`helm install` then takes --take-ownership."
)
# Whose a kind is, by the end of its group; what is not here is Kubernetes' own.
PROJECTS = (
    ("scheduling.x-k8s.io", "scheduler-plugins"), ("volcano.sh", "Volcano"), ("run.ai", "KAI"),
    ("kai.scheduler", "KAI"), ("kueue.x-k8s.io", "Kueue"), ("jobset.x-k8s.io", "JobSet"),
    ("kubeflow.org", "Kubeflow"), ("ray.io", "Ray"), ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
)  # fmt: skip


def checks_of(found: Found) -> list[Check]:
    """What was found, area by area; findings are what somebody should mend."""
    return [
        *_server(found),
        *_rights(found),
        *_kinds(found),
        *_webhooks(found),
        *leases(found),
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
    if found.account is not None and not found.has_account:
        yield Check(
            "rights", FINDING, f"there is no ServiceAccount {'/'.join(found.account)}: nothing was asked of its rights",
            "It comes with `helm install` of Berth; or name the one that is used.",
        )  # fmt: skip
        return
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
            yield Check("rights", FINDING, said, _binding(found, namespace))


def _binding(found: Found, namespace: str) -> str:
    """The command that gives what is missing."""
    whom = f"--serviceaccount={found.account[0]}:{found.account[1]}" if found.account else f"--user={found.who}"
    role = "kubectl create clusterrolebinding berth --clusterrole=berth"
    if namespace:
        role = f"kubectl -n {namespace} create rolebinding berth-leader --role=berth-leader"
    if namespace and found.account:
        return (
            f"{role} {whom} (the role comes with `helm install`; where its Lease has another name say so by --config)"
        )
    other = "" if found.account else "; for the scheduler's own rights ask with --service-account berth-system/berth"
    return f"{role} {whom} (the role comes with `helm install`{other})"


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
        if absent == ["nodeledgers"]:
            lost = "no agent tells which GPUs are unfit"
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
    here = [kind for kind in PLAIN if served.has(kind.group, kind.resource)]
    gone = [kind for kind in PLAIN if not served.has(kind.group, kind.resource)]
    yield Check("kinds", OK, f"understood and served: {_by_project(here, gone) or 'none'}")
    if gone:
        yield Check("kinds", NOTE, f"understood and not served here: {_by_project(gone, here)}")


def _by_project(kinds: Sequence[Kind], others: Sequence[Kind]) -> str:
    """The projects; their kinds only where some of them are among the others."""
    found: dict[str, list[str]] = {}
    for kind in kinds:
        found.setdefault(_project(kind), []).append(kind.called)
    apart = {_project(kind) for kind in others}
    return ", ".join(f"{name} ({', '.join(called)})" if name in apart else name for name, called in found.items())


def _project(kind: Kind) -> str:
    return next((name for group, name in PROJECTS if kind.group.endswith(group)), "Kubernetes")


def _webhooks(found: Found) -> Iterator[Check]:
    if found.webhooks is None:
        yield unseen("webhooks", found.refused.get("webhooks", ""))
        return
    foreign = [hook for hook in found.webhooks if hook.family is not None]
    for hook in foreign:
        assert hook.family is not None
        state = FINDING if hook.family.is_in_the_way else NOTE
        yield Check("webhooks", state, hook.sentence, hook.family.remedy)
    if not foreign:
        yield Check("webhooks", OK, "no other scheduler's webhook looks at pods")


def _nodes(found: Found) -> Iterator[Check]:
    if found.nodes is None:
        yield unseen("nodes", found.refused.get("nodes", ""))
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
        yield unseen("priorities", found.refused.get("priorityclasses", ""))
        return
    own = [p for p in found.priorities if not _name(p).startswith("system-") and not _is_of_berth(p)]
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


def _is_of_berth(thing: wire.PriorityClass) -> bool:
    """The chart's, for the pods of the scheduler."""
    labels = (thing.metadata.labels if thing.metadata else None) or {}
    return labels.get("app.kubernetes.io/part-of") == "berth"


def _name(thing: wire.PriorityClass) -> str:
    return (thing.metadata.name if thing.metadata else None) or ""
