"""From a scenario file to a snapshot. README.md tells the format; a key that it does not name is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from berth.dialects.fields import Field
from berth.model.booking import FOR_EVER, Booking
from berth.model.budget import Budget
from berth.model.cluster import NO_ISLAND, Allocation, Device, GpuClass, Health, Node, Partition, Taint
from berth.model.gpus import gpu_class_of
from berth.model.hold import Hold, Leaving, Place
from berth.model.mig_profiles import profile_of
from berth.model.paying import payers_of
from berth.model.queue import Queue
from berth.model.resources import CPU, MEMORY, MIG_PREFIX, NVIDIA_GPU, NVIDIA_SHARED, PODS, amount_of, resources
from berth.model.snapshot import Snapshot
from berth.model.topology import Level, Topology
from berth.model.workload import (
    WHOLE,
    Capability,
    LabelSelector,
    NodeTerm,
    PodClass,
    PodSet,
    PodTerm,
    PreferredTerm,
    Requirement,
    Spread,
    Toleration,
    TopologyWish,
    Unbound,
    Unmet,
    Workload,
)
from berth.scheduling.policy import Policy
from berth.sources.governing import Governors
from berth.sources.health import Finding, Report, heed

HERE = Path(__file__).parent
NOW_S = 1_000_000.0
HOST = "kubernetes.io/hostname"
PLENTY_CPU, PLENTY_MEMORY, PLENTY_PODS = "256", "2048Gi", "110"
_POD_KEYS = {
    "gpus", "fraction", "cpu", "memory", "ask", "needs", "selector", "affinity", "prefer", "tolerate", "node",
    "hostPorts", "near", "apart", "spread", "unbound", "unsupported", "problems", "labels",
}  # fmt: skip
_SET_KEYS = _POD_KEYS | {"name", "pods", "minimum", "inOne", "ratherInOne", "slices"}
_WORKLOAD_KEYS = _SET_KEYS | {"sets", "namespace", "queue", "priority", "waiting", "gates", "missing", "unmet"}
_WORKLOAD_KEYS |= {"begun", "refused", "preempts", "timeLimit", "mayLeave", "savesEvery", "protected"}
_LEAVING_KEYS = {
    "since", "saved", "savesEvery", "protected", "mayLeave", "gang", "minimum", "oneByOne", "ending", "grace", "kept",
    "timeLimit",
}  # fmt: skip


class Scenario(Struct, frozen=True):
    """A file: what the cluster is and what is submitted, and what must come of it."""

    name: str
    why: str
    complaint: int
    snapshot: Snapshot
    policy: Policy
    expect: Mapping[str, Any]


class _Loader(yaml.SafeLoader):
    """Only `true` and `false` are truth values: `on` is a word that scenarios use."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, shape) for tag, shape in resolvers if not tag.endswith(":bool")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), ["t", "f"])


def scenario_files() -> list[Path]:
    return sorted(HERE.glob("*/*.yaml"))


def read(path: Path) -> Scenario:
    return scenario_of(yaml.load(path.read_text(), _Loader), path.name)


def scenario_of(written: Mapping[str, Any], where: str) -> Scenario:
    """The scenario that a file's content says; `where` is told in errors."""
    keys = {"name", "why", "complaint", "topology", "cluster", "running", "queues", "submit", "expect"}
    only(written, keys | {"budgets", "holds", "policy", "reservations", "usage", "moves"}, where)
    levels = tuple(level_named(name) for name in written.get("topology", ()))
    nodes, classes = _cluster(written["cluster"], levels)
    queues = tuple(_queue(q) for q in written.get("queues", ()))
    governors, payers = Governors(queues), payers_of(queues)
    running = _used(written["cluster"], nodes) + _running(written.get("running", ()), nodes)
    snapshot = Snapshot(
        nodes=nodes,
        allocations=tuple(governors.allocation(a, payers) for a in running),
        workloads=tuple(governors.workload(_workload(w), payers) for w in written.get("submit", ())),
        gpu_classes=classes,
        queues=queues,
        topology=Topology(levels),
        now_s=NOW_S,
        budgets=tuple(_budget(b) for b in written.get("budgets", ())),
        holds=tuple(_hold(h) for h in written.get("holds", ())),
        bookings=tuple(_booking(b) for b in written.get("reservations", ())),
        usage=written.get("usage", {}),
        moves_hours=float(written.get("moves", 0)),
    )
    return Scenario(
        name=written["name"],
        why=written.get("why", ""),
        complaint=written.get("complaint", 0),
        snapshot=snapshot,
        policy=_policy(written.get("policy", {})),
        expect=written["expect"],
    )


def only(written: Mapping[str, Any], known: set[str], where: str) -> None:
    strange = set(written) - known
    assert not strange, f"{where}: unknown keys {sorted(strange)}; known are {sorted(known)}"


def level_named(name: str) -> Level:
    """A level of the scenario is a label that its nodes carry: `rack` is `topology.example/rack`."""
    return Level(name, f"topology.example/{name}")


# ---- nodes


def _groups(cluster: Any) -> list[Mapping[str, Any]]:
    return [cluster] if isinstance(cluster, Mapping) else list(cluster or ())


def _cluster(cluster: Any, levels: tuple[Level, ...]) -> tuple[tuple[Node, ...], tuple[GpuClass, ...]]:
    nodes: list[Node] = []
    classes: dict[str, GpuClass] = {}
    so_far = {level.name: 0 for level in levels}
    for group in _groups(cluster):
        shorthand = {level.name for level in levels} | {f"{level.name}s" for level in levels}
        only(
            group,
            {
                "nodes", "name", "gpus", "class", "used", "cpu", "memory", "pods", "labels", "taints", "cordoned",
                "notReady", "unfit", "badGpus", "islands", "rdma", "mig", "shared", "extra", "named",
                "dynamic", "agent", "withdrawn",
            } | shorthand,
            "cluster",
        )  # fmt: skip
        gpu_class = _class(group)
        if gpu_class:
            classes[gpu_class.name] = gpu_class
            for profile in group.get("mig", {}):
                part = gpu_class_of({"nvidia.com/gpu.product": f"{gpu_class.name}-MIG-{profile}"})
                if part:
                    classes[part.name] = part
        count = group.get("nodes", 1)
        for i in range(count):
            nodes.append(_node(group, i, count, len(nodes), gpu_class, levels, so_far))
        for level in levels:
            so_far[level.name] += group.get(f"{level.name}s", 0)
    return tuple(nodes), tuple(classes.values())


def _class(group: Mapping[str, Any]) -> GpuClass | None:
    if not group.get("gpus"):
        return None
    return gpu_class_of({"nvidia.com/gpu.product": group.get("class", "H100-80GB")})


def _node(
    group: Mapping[str, Any], i: int, count: int, position: int, gpu_class: GpuClass | None,
    levels: tuple[Level, ...], so_far: Mapping[str, int],
) -> Node:  # fmt: skip
    name = _node_name(group, i, position)
    labels = {HOST: name, **{k: str(v) for k, v in group.get("labels", {}).items()}}
    for level in levels:
        if level.name in group:
            labels[level.label] = str(group[level.name])
        elif domains := group.get(f"{level.name}s"):
            labels[level.label] = f"{level.name}-{so_far[level.name] + i * domains // count}"
    gpus, mig, shared = group.get("gpus", 0), group.get("mig", {}), group.get("shared", 0)
    bad = group.get("badGpus", 0)
    amounts = {
        CPU: amount_of(CPU, str(group.get("cpu", PLENTY_CPU))),
        MEMORY: amount_of(MEMORY, str(group.get("memory", PLENTY_MEMORY))),
        PODS: int(group.get("pods", PLENTY_PODS)),
        **{k: int(v) for k, v in group.get("extra", {}).items()},
        **{f"{MIG_PREFIX}{profile}": n * gpus for profile, n in mig.items()},
    }
    if shared:
        amounts[NVIDIA_SHARED] = shared * gpus
    elif gpus and not mig and not group.get("dynamic"):
        amounts[NVIDIA_GPU] = gpus
    capacity = resources(amounts)
    whole = NVIDIA_GPU in amounts
    allocatable = resources({**amounts, NVIDIA_GPU: gpus - bad}) if whole else capacity
    if "withdrawn" in group:
        allocatable = resources({**amounts, **{name: amounts[name] - n for name, n in group["withdrawn"].items()}})
    return _as_its_agent_says(group, i, gpus, Node(
        name=name,
        labels=labels,
        taints=tuple(_taint(t) for t in group.get("taints", ())),
        cordoned=_is(group, "cordoned", i),
        ready=not _is(group, "notReady", i),
        health=Health.Unfit if _is(group, "unfit", i) else Health.Fit,
        allocatable=allocatable,
        capacity=capacity,
        gpu_class=gpu_class.name if gpu_class else "",
        device_resource=NVIDIA_GPU if whole else "",
        devices=_devices(group, gpu_class),
        named_devices=bool(group.get("named")),
        rdma=bool(group.get("rdma")),
        dynamic_resources=(NVIDIA_GPU,) if group.get("dynamic") else (),
    ))  # fmt: skip


def _as_its_agent_says(group: Mapping[str, Any], i: int, gpus: int, node: Node) -> Node:
    """`agent: {unfit: {3: Xid79}, suspect: {0: RemapPending}}` is said of each node of the group; a list by node."""
    said = group.get("agent")
    said = said[i] if isinstance(said, list) else said
    if said is None:
        return node
    only(said, {"unfit", "suspect", "state", "code", "offered", "silent"}, "agent")
    found = []
    for g in range(gpus):
        state = next((s for s in ("unfit", "suspect") if g in said.get(s, {})), "")
        health = {"unfit": Health.Unfit, "suspect": Health.Suspect}.get(state, Health.Fit)
        offered = (said["offered"],) if health == Health.Unfit and "offered" in said else ()
        found.append(Finding(index=g, health=health, code=said[state][g] if state else "", offered=offered))
    report = Report(Health[said.get("state", "Fit")], said.get("code", ""), tuple(found))
    return heed(node, report, bool(said.get("silent")))


def _node_name(group: Mapping[str, Any], i: int, position: int) -> str:
    if "name" not in group:
        return f"node-{position}"
    return f"{group['name']}-{i}" if "nodes" in group else group["name"]


def _is(group: Mapping[str, Any], state: str, i: int) -> bool:
    """`cordoned: true` is every node of the group, `cordoned: [0, 2]` the first and the third."""
    written = group.get(state, False)
    return i in written if isinstance(written, list) else bool(written)


def _devices(group: Mapping[str, Any], gpu_class: GpuClass | None) -> tuple[Device, ...]:
    gpus, islands = group.get("gpus", 0), group.get("islands", 1)
    linked = gpu_class is not None and gpu_class.link == "nvlink"
    healthy = gpus - group.get("badGpus", 0)
    found = []
    for g in range(gpus):
        parts = []
        for profile, number in group.get("mig", {}).items():
            shape = profile_of(gpu_class.name if gpu_class else "", profile)
            memory = shape.memory_gib * 2**30 if shape else 0
            parts += [Partition(profile, f"{MIG_PREFIX}{profile}", memory)] * number
        found.append(
            Device(
                index=g,
                island=g * islands // gpus if linked else NO_ISLAND,
                health=Health.Fit if g < healthy else Health.Unfit,
                partitions=tuple(parts),
                replicas=group.get("shared", 0) or 1,
            )
        )
    return tuple(found)


def _taint(text: str) -> Taint:
    """`key=value:NoSchedule`, or `key:NoSchedule`."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return Taint(key, value, effect)


# ---- what runs


def _used(cluster: Any, nodes: tuple[Node, ...]) -> tuple[Allocation, ...]:
    """`used: 3` on each node of a group, or a number for each node: pods of one GPU each."""
    found, first = [], 0
    for group in _groups(cluster):
        count, used = group.get("nodes", 1), group.get("used", 0)
        each = used if isinstance(used, list) else [used] * count
        assert len(each) == count, f"cluster: used names {len(each)} of {count} nodes"
        for node, gpus in zip(nodes[first : first + count], each, strict=True):
            found += [_holds(node.name, f"old-{node.name}-{k}", {"gpus": 1}) for k in range(gpus)]
        first += count
    return tuple(found)


def _running(written: Any, nodes: tuple[Node, ...]) -> tuple[Allocation, ...]:
    found = []
    own = {"name", "on", "namespace", "queue", "priority", "devices", "daemon", "pods"} | _LEAVING_KEYS
    for pod in written:
        only(pod, _POD_KEYS | own, f"running {pod.get('name')}")
        number = pod.get("pods", 1)
        for node in [pod["on"]] if isinstance(pod["on"], str) else pod["on"]:
            assert node == "gone" or node in {n.name for n in nodes}, f"running {pod['name']}: no node {node}"
            found += [_holds(node, pod["name"] if number == 1 else f"{pod['name']}-{k}", pod) for k in range(number)]
    return tuple(found)


def _holds(node: str, name: str, pod: Mapping[str, Any]) -> Allocation:
    return Allocation(
        node=node,
        namespace=pod.get("namespace", "default"),
        name=name,
        pod_class=_pod_class(pod),
        labels=_pairs(pod.get("labels")),
        queue=pod.get("queue", ""),
        devices=tuple(pod.get("devices", ())),
        priority=pod.get("priority", 0),
        is_daemon=bool(pod.get("daemon")),
        started_s=NOW_S - _seconds(pod.get("since", "1h")),
        last_checkpoint_s=NOW_S - _seconds(pod["saved"]) if "saved" in pod else 0.0,
        checkpoint_every_s=_seconds(pod.get("savesEvery", "0s")),
        min_runtime_s=_seconds(pod.get("protected", "0s")),
        time_limit_s=_seconds(pod.get("timeLimit", "0s")),
        preemptible=pod.get("mayLeave"),
        workload=f"{pod.get('namespace', 'default')}/{pod['gang']}" if "gang" in pod else "",
        workload_kind="PodGroup" if "gang" in pod else "",
        disruption="all" if "gang" in pod and not pod.get("oneByOne") else "single",
        gang_minimum=pod.get("minimum", 0),
        is_ending=bool(pod.get("ending")),
        grace_s=_seconds(pod.get("grace", "30s")),
        is_controlled=pod.get("kept", True),
    )


def _seconds(text: str) -> float:
    """`90s`, `30m`, `6h`."""
    return Field(text).seconds()


# ---- what is kept


def _budget(written: Mapping[str, Any]) -> Budget:
    only(written, {"pods", "allowed", "namespace"}, "budgets")
    namespace = written.get("namespace", "default")
    return Budget(namespace, "budget", LabelSelector(_pairs(written["pods"])), written["allowed"])


def _hold(written: Mapping[str, Any]) -> Hold:
    """`{for: train, on: {node-0: 1}, leaving: [old], until: 5m}`; `-1s` for one that is over."""
    only(written, {"for", "on", "set", "leaving", "until"}, "holds")
    until = written.get("until", "5m")
    seconds = -_seconds(until[1:]) if until.startswith("-") else _seconds(until)
    return Hold(
        f"Pod default/{written['for']}",
        tuple(Place(written.get("set", "main"), node, count) for node, count in written["on"].items()),
        leaving=tuple(Leaving("default", name, workload=f"Pod default/{name}") for name in written.get("leaving", ())),
        until_s=NOW_S + seconds,
    )


def _booking(written: Mapping[str, Any]) -> Booking:
    """`{name: sprint, queue: research, gpus: 8, class: H100-80GB, from: 2h, until: 6h}`; `-1h` is an hour ago."""
    only(
        written, {"name", "queue", "workload", "nodes", "gpus", "class", "inOne", "domain", "from", "until"},
        "reservations",
    )  # fmt: skip
    until = written.get("until")
    return Booking(
        written["name"],
        queue=written.get("queue", ""),
        workload=f"default/{written['workload']}" if "workload" in written else "",
        nodes=tuple(written.get("nodes", ())),
        level=written.get("inOne", ""),
        domain=written.get("domain", ""),
        gpu_class=written.get("class", "*"),
        gpus=written.get("gpus", 0),
        from_s=_moment(written["from"]) if "from" in written else 0.0,
        until_s=FOR_EVER if until is None else _moment(until),
    )


def _moment(text: str) -> float:
    return NOW_S + (-_seconds(text[1:]) if text.startswith("-") else _seconds(text))


def _policy(written: Mapping[str, Any]) -> Policy:
    only(written, {"beyondBudgets", "evicts"}, "policy")
    return Policy(beyond_budgets=written.get("beyondBudgets", False), evicts=written.get("evicts", True))


# ---- queues


def _queue(written: Mapping[str, Any]) -> Queue:
    rules = {"timeLimit", "classes", "sharing", "savesRequired", "mayLeave", "defaults"}
    shares = {"parent", "weight", "quota", "limit", "borrowing", "lending", "reclaim"}
    only(written, {"name", "namespaces"} | shares | rules, "queues")
    return Queue(
        name=written["name"],
        parent=written.get("parent", ""),
        weight=written.get("weight", 1),
        quota=_by_class(written.get("quota")),
        limit=_by_class(written.get("limit")),
        namespaces=tuple(written.get("namespaces", ())),
        borrowing=written.get("borrowing", True),
        lending=written.get("lending", True),
        reclaim=written.get("reclaim", "Any"),
        defaults=tuple(written.get("defaults", {}).items()),
        max_time_limit_s=_seconds(written.get("timeLimit", "0s")),
        preemptible=written.get("mayLeave"),
        allowed_classes=tuple(written.get("classes", ())),
        sharing=tuple(written.get("sharing", ())),
        checkpoint_required=written.get("savesRequired", False),
    )


def _by_class(written: Any) -> tuple[tuple[str, int], ...]:
    """`8` is 8 GPUs of any class; else GPUs by class."""
    if written is None:
        return ()
    return (("*", written),) if isinstance(written, int) else tuple(written.items())


# ---- what is submitted


def _workload(written: Mapping[str, Any]) -> Workload:
    name = written["name"]
    only(written, _WORKLOAD_KEYS, f"submit {name}")
    shared = {k: v for k, v in written.items() if k in _POD_KEYS}
    sets = written.get("sets")
    if sets:
        of_all = {k: written[k] for k in ("inOne", "ratherInOne", "slices") if k in written}
        pod_sets = tuple(_pod_set({**shared, **s}) for s in sets)
    else:
        of_all = {}
        pod_sets = (_pod_set({**written, "name": "main"}, _WORKLOAD_KEYS),)
    return Workload(
        name=name,
        pod_sets=pod_sets,
        namespace=written.get("namespace", "default"),
        queue=written.get("queue", ""),
        priority=written.get("priority", 0),
        created_s=NOW_S - written.get("waiting", 0),
        topology=_wishes(of_all),
        gates=tuple(written.get("gates", ())),
        unmet=tuple(Unmet(**one) for one in written.get("unmet", ())),
        missing_pods=written.get("missing", 0),
        preempts=written.get("preempts", True),
        has_begun=written.get("begun", False),
        held_off=written.get("refused", ""),
        time_limit_s=_seconds(written.get("timeLimit", "0s")),
        preemptible=written.get("mayLeave"),
        checkpoint_every_s=_seconds(written.get("savesEvery", "0s")),
        min_runtime_s=_seconds(written.get("protected", "0s")),
    )


def _pod_set(written: Mapping[str, Any], known: set[str] = _SET_KEYS) -> PodSet:
    only(written, known, f"pod set {written.get('name')}")
    pods = written.get("pods", 1)
    return PodSet(
        name=written["name"],
        pod_class=_pod_class(written),
        count=pods,
        min_count=written.get("minimum", pods),
        topology=_wishes(written),
        labels=_pairs(written.get("labels")),
    )


def _wishes(written: Mapping[str, Any]) -> tuple[TopologyWish, ...]:
    wishes = []
    if "inOne" in written:
        wishes.append(TopologyWish(_level(written["inOne"])))
    if "ratherInOne" in written:
        wishes.append(TopologyWish(_level(written["ratherInOne"]), required=False))
    if "slices" in written:
        only(written["slices"], {"pods", "inOne"}, "slices")
        wishes.append(TopologyWish(_level(written["slices"]["inOne"]), slice_size=written["slices"]["pods"]))
    return tuple(wishes)


def _level(name: str) -> str:
    return HOST if name == "node" else name


def _pod_class(written: Mapping[str, Any]) -> PodClass:
    amounts = {name: amount_of(name, str(text)) for name, text in written.get("ask", {}).items()}
    if written.get("gpus", 1 if "fraction" in written else 0):
        amounts[NVIDIA_GPU] = written.get("gpus", 1)
    for name in (CPU, MEMORY):
        if name in written:
            amounts[name] = amount_of(name, str(written[name]))
    return PodClass(
        requests=resources(amounts),
        gpu_milli=round(written["fraction"] * WHOLE) if "fraction" in written else WHOLE,
        least=_least(written.get("needs", {})),
        sharing=tuple(written.get("needs", {}).get("sharing", ())),
        node_selector=_pairs(written.get("selector")),
        node_affinity=tuple(NodeTerm(_requirements(term)) for term in written.get("affinity", ())),
        preferred_nodes=tuple(
            PreferredTerm(p["weight"], NodeTerm(_requirements(p["where"]))) for p in written.get("prefer", ())
        ),
        tolerations=tuple(_toleration(t) for t in written.get("tolerate", ())),
        node_name=written.get("node", ""),
        host_ports=tuple(("0.0.0.0", "TCP", port) for port in written.get("hostPorts", ())),
        near=tuple(_pod_term(t) for t in written.get("near", ())),
        apart=tuple(_pod_term(t) for t in written.get("apart", ())),
        spread=tuple(
            Spread(LabelSelector(_pairs(s["pods"])), _key(s["over"]), s.get("skew", 1), s.get("domains", 1))
            for s in written.get("spread", ())
        ),
        unbound=tuple(Unbound(claim) for claim in written.get("unbound", ())),
        unsupported=tuple(written.get("unsupported", ())),
        problems=tuple(written.get("problems", ())),
    )


def _least(needs: Mapping[str, Any]) -> Capability:
    """The least that a GPU must be: `needs: {memory: 80Gi, compute: 9.0, product: H100, precision: fp8}`."""
    only(needs, {"memory", "compute", "product", "precision", "link", "rdma", "sharing"}, "needs")
    major, _, minor = str(needs.get("compute", "0.0")).partition(".")
    product = needs.get("product", "")
    return Capability(
        memory_bytes=amount_of(MEMORY, str(needs.get("memory", 0))),
        compute=(int(major), int(minor or 0)),
        products=tuple(product.split("|")) if product else (),
        precision=needs.get("precision", ""),
        link=needs.get("link", ""),
        rdma=bool(needs.get("rdma")),
    )


def _pod_term(written: Mapping[str, Any]) -> PodTerm:
    """`{pods: {app: db}, within: rack}`; the pods' own namespace unless `namespaces` names others."""
    only(written, {"pods", "within", "namespaces"}, "near or apart")
    namespaces = tuple(written.get("namespaces", ()))
    return PodTerm(LabelSelector(_pairs(written["pods"])), _key(written["within"]), namespaces)


def _key(level: str) -> str:
    return HOST if level == "node" else level_named(level).label


def _requirements(written: list[str] | str) -> tuple[Requirement, ...]:
    """`zone in a, b` · `gpu exists` · `tier not in old` · `tier absent` · `generation > 2`."""
    return tuple(_requirement(text) for text in ([written] if isinstance(written, str) else written))


def _requirement(text: str) -> Requirement:
    key, _, rest = text.partition(" ")
    for words, operator in (("not in ", "NotIn"), ("in ", "In"), ("> ", "Gt"), ("< ", "Lt")):
        if rest.startswith(words):
            return Requirement(key, operator, tuple(v.strip() for v in rest.removeprefix(words).split(",")))
    operators = {"exists": "Exists", "absent": "DoesNotExist"}
    assert rest in operators, f"affinity {text!r}: in, not in, exists, absent, > and < are known"
    return Requirement(key, operators[rest])


def _toleration(text: str) -> Toleration:
    """`dedicated` tolerates the key whatever its value; `dedicated=ml:NoSchedule` that taint alone."""
    pair, _, effect = text.partition(":")
    key, equals, value = pair.partition("=")
    return Toleration("" if key == "everything" else key, "Equal" if equals else "Exists", value, effect)


def _pairs(written: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((k, str(v)) for k, v in (written or {}).items()))
