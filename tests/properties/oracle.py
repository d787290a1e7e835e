"""The rules of the game written down literally and slowly, without a look at how the core does it.

What is left on a node, whether a node would do for a pod, whether a plan keeps what was asked, and whether a
single workload fits at all (every placement is tried). Plain Python over the model, no arrays.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations

from msgspec.structs import replace

from berth.model.cluster import Health
from berth.model.gpus import satisfies
from berth.model.resources import get, is_accelerator
from berth.model.workload import Capability

WHOLE = 1000


# --- what is left --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Left:
    """What is left on one node: amounts of resources, and (island, milli) of each device that may be given out.

    `devices` is () where the node knows none; then its GPUs are among the amounts.
    """

    amounts: tuple[tuple[str, int], ...]
    devices: tuple[tuple[int, int, int], ...] = ()  # (index, island, milli)

    def get(self, name):
        return dict(self.amounts).get(name, 0)


def left_on(node, allocations, mended=False):
    """What `allocations` leave of a node. Counted pods probably hold the fullest devices on which they fit.

    `mended`: every device that is there may be given out, whatever its health and whatever the kubelet admits.
    """
    amounts = Counter(dict(node.allocatable))
    if "pods" not in amounts:
        amounts["pods"] = 2**31
    milli = {}
    if node.devices and get(node.allocatable, node.device_resource):
        admitted = get(node.allocatable, node.device_resource)
        for device in node.devices:
            is_given = device.health in (Health.Fit, Health.Suspect) and len(milli) < admitted
            if is_given or mended:
                milli[device.index] = WHOLE
    mine = [a for a in allocations if a.node == node.name]
    for a in mine:
        amounts["pods"] -= 1
        for name, amount in a.pod_class.requests:
            amounts[name] -= amount
    for a in mine:
        for g in a.devices:
            if milli.get(g):
                milli[g] = max(0, milli[g] - a.pod_class.gpu_milli)
    for a in mine:
        asked = get(a.pod_class.requests, node.device_resource)
        if asked and not a.devices:
            able = sorted((left, g) for g, left in milli.items() if left >= a.pod_class.gpu_milli)
            for left, g in able[:asked]:
                milli[g] = left - a.pod_class.gpu_milli
    if node.devices and get(node.allocatable, node.device_resource):
        amounts.pop(node.device_resource)
    island = {d.index: d.island for d in node.devices}
    return Left(
        tuple(sorted((name, amount) for name, amount in amounts.items())),
        tuple((g, island[g], left) for g, left in sorted(milli.items())),
    )


def has_devices(node):
    """The node knows the units of its GPU resource one by one."""
    return bool(node.devices) and get(node.allocatable, node.device_resource) > 0


# --- would a node do -----------------------------------------------------------------------------------------


def would_do(pod_class, node, snapshot, mended=False):
    """By the node alone, whatever runs and however large it is. `mended`: nodes held back are in service."""
    if pod_class.node_name and pod_class.node_name != node.name:
        return False
    if any(node.labels.get(key) != value for key, value in pod_class.node_selector):
        return False
    if pod_class.node_affinity and not any(_term_holds(t, node) for t in pod_class.node_affinity):
        return False
    gpu_class = next((c for c in snapshot.gpu_classes if c.name == node.gpu_class), None)
    if pod_class.least.rdma and not node.rdma:
        return False
    beside_rdma = replace(pod_class.least, rdma=False)
    if beside_rdma != Capability() and (gpu_class is None or not satisfies(gpu_class, beside_rdma)):
        return False
    for taint in node.taints:
        is_state = taint.key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unschedulable")
        if mended and is_state:
            continue
        keeps_away = taint.effect in ("NoSchedule", "NoExecute")
        if keeps_away and not _tolerated(pod_class, taint.key, taint.value, taint.effect):
            return False
    if mended:
        return True
    if node.cordoned and not _tolerated(pod_class, "node.kubernetes.io/unschedulable", "", "NoSchedule"):
        return False
    if not node.ready and not any(t.key == "node.kubernetes.io/not-ready" for t in node.taints):
        return False
    return node.health != Health.Unfit and not any(name in node.unsafe for name, _ in pod_class.requests)


def is_suspect(node):
    """The node, or a device of it, may be failing."""
    return Health.Suspect in (node.health, *(d.health for d in node.devices))


def may_use(workload, node, mended=False):
    """A new gang starts on no suspect node."""
    is_new_gang = sum(s.count for s in workload.pod_sets) > 1 and not workload.has_begun
    return mended or not (is_new_gang and is_suspect(node))


def _term_holds(term, node):
    checks = [(r, node.labels.get(r.key)) for r in term.expressions] + [(r, node.name) for r in term.fields]
    return bool(checks) and all(_holds(r, value) for r, value in checks)


def _holds(requirement, value):
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise NotImplementedError(requirement.operator)


def _tolerated(pod_class, key, value, effect):
    return any(
        t.effect in ("", effect) and t.key in ("", key) and (t.operator == "Exists" or (t.key and t.value == value))
        for t in pod_class.tolerations
    )


# --- putting one pod on a node -------------------------------------------------------------------------------


def device_ask(pod_class):
    """(resource, devices, milli of each) of the GPUs that a pod asks for; ("", 0, 1000) for none."""
    for name, amount in pod_class.requests:
        if is_accelerator(name):
            return name, amount, pod_class.gpu_milli
    return "", 0, WHOLE


def ways_to_put(pod_class, node, left):
    """Every way to put one pod on a node: what would be left, for each choice of devices."""
    resource, devices, milli = device_ask(pod_class)
    on_devices = devices > 0 and has_devices(node) and resource == node.device_resource
    amounts = dict(left.amounts)
    amounts["pods"] -= 1
    for name, amount in pod_class.requests:
        if name == resource and (on_devices or milli < WHOLE):
            continue
        amounts[name] = amounts.get(name, 0) - amount
    asked = {"pods", *(name for name, _ in pod_class.requests)}
    if any(amount < 0 for name, amount in amounts.items() if name in asked):
        return
    if devices and milli < WHOLE and not on_devices:
        return  # a share is of a device, and this node knows none
    rest = tuple(sorted(amounts.items()))
    if not on_devices:
        yield Left(rest, left.devices)
        return
    able = [d for d in left.devices if d[2] >= milli]
    for chosen in combinations(able, devices):
        if pod_class.least.link == "nvlink" and devices > 1:
            joined = {island for _, island, _ in chosen}
            if len(joined) != 1 or -1 in joined:
                continue
        taken = {g for g, _, _ in chosen}
        yield Left(rest, tuple((g, i, m - milli if g in taken else m) for g, i, m in left.devices))


def put_on(pod_class, node, left, devices):
    """What is left once a pod is on these devices; None where it does not fit there."""
    resource, count, milli = device_ask(pod_class)
    on_devices = count > 0 and has_devices(node) and resource == node.device_resource
    if on_devices and len(devices) != count:
        return None
    before = {g: m for g, _, m in left.devices}
    for after in ways_to_put(pod_class, node, left):
        now = {g: m for g, _, m in after.devices}
        if not on_devices or all(before[g] - now[g] == (milli if g in devices else 0) for g in before):
            return after
    return None


# --- domains -------------------------------------------------------------------------------------------------


def domain_of(level, node, topology):
    """The domain of a node at a level: labels from the widest level down to it; None where its own is missing."""
    if level in ("host", "kubernetes.io/hostname"):
        return node.name
    for depth, known in enumerate(topology.levels):
        if level in (known.name, known.label):
            if known.label not in node.labels:
                return None
            return tuple(node.labels.get(above.label, "") for above in topology.levels[: depth + 1])
    return None


def keeps_whole(wish, nodes, topology):
    """All of these nodes are in one domain of the wished level."""
    domains = {domain_of(wish.level, node, topology) for node in nodes}
    return not domains or (len(domains) == 1 and None not in domains)


def keeps_slices(wish, nodes, topology):
    """The pods on these nodes (one entry a pod) fall into slices, each in one domain, only the last one short."""
    pods = Counter(domain_of(wish.level, node, topology) for node in nodes)
    if None in pods:
        return False
    slices = sum(-(-count // wish.slice_size) for count in pods.values())
    return slices == -(-len(nodes) // wish.slice_size)


# --- does a workload fit -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pod:
    """One pod of the minimum, with what it must share a domain with: (level, name of the group)."""

    pod_class: object
    groups: tuple[tuple[str, object], ...]


def pods_of(workload):
    """The pods of every set's minimum. Pods of a slice are neighbours in the list; the last slice may be short."""
    found: list[Pod] = []
    for s, pod_set in enumerate(workload.pod_sets):
        for i in range(pod_set.min_count):
            groups = [(w.level, "all") for w in workload.topology if w.required and not w.slice_size]
            sliced = [w for w in workload.topology if w.slice_size]  # every set is cut into slices
            for wish in (*pod_set.topology, *sliced):
                if wish.required:
                    groups.append((wish.level, (s, i // wish.slice_size if wish.slice_size else "all")))
            found.append(Pod(pod_set.pod_class, tuple(groups)))
    return found


def fits(workload, snapshot, empty=False):
    """Some placement of the workload's minimum keeps every rule. `empty`: only DaemonSets run, all is mended."""
    if any(s.pod_class.unsupported for s in workload.pod_sets):
        return False
    if not any(s.min_count for s in workload.pod_sets):
        # Without a minimum one pod is enough, but not none.
        of_one = [replace(workload, pod_sets=(replace(s, min_count=1),)) for s in workload.pod_sets if s.count]
        return any(fits(one, snapshot, empty) for one in of_one)
    running = [a for a in snapshot.allocations if a.is_daemon] if empty else snapshot.allocations
    left = tuple(left_on(node, running, empty) for node in snapshot.nodes)
    nodes = {node.name for node in snapshot.nodes if may_use(workload, node, empty)}
    return _Search(snapshot, pods_of(workload), empty, nodes).run(0, left, {})


@dataclass
class _Search:
    snapshot: object
    pods: list[Pod]
    mended: bool
    nodes: set[str]  # that it may use, by name

    def __post_init__(self):
        self.dead: set[object] = set()

    def run(self, p, left, chosen):
        """Pods from `p` on find places; `chosen` is the domain of each group that has one."""
        if p == len(self.pods):
            return True
        state = (p, tuple(_likeness(one) for one in left), tuple(sorted(chosen.items(), key=repr)))
        if state in self.dead:
            return False
        pod = self.pods[p]
        for n, node in enumerate(self.snapshot.nodes):
            if node.name not in self.nodes or not would_do(pod.pod_class, node, self.snapshot, self.mended):
                continue
            domains = {group: domain_of(group[0], node, self.snapshot.topology) for group in pod.groups}
            if any(d is None or chosen.get(group, d) != d for group, d in domains.items()):
                continue
            tried = set()
            for after in ways_to_put(pod.pod_class, node, left[n]):
                likeness = _likeness(after)
                if likeness in tried:
                    continue
                tried.add(likeness)
                if self.run(p + 1, (*left[:n], after, *left[n + 1 :]), chosen | domains):
                    return True
        self.dead.add(state)
        return False


def _likeness(left):
    """Devices of one island with as much left are interchangeable."""
    return left.amounts, tuple(sorted((island, milli) for _, island, milli in left.devices))



# --- pods beside pods ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Beside:
    """A pod on a node, as much of it as other pods look at."""

    node: object
    namespace: str
    labels: tuple[tuple[str, str], ...]
    pod_class: object


def chosen_by(selector, labels):
    """The labels satisfy a selector (labels and In, Exists alone are drawn here)."""
    have = dict(labels)
    return all(have.get(k) == v for k, v in selector.labels) and all(
        _holds(e, have.get(e.key)) for e in selector.expressions
    )


def term_means(term, owner, other):
    """A term of one pod's affinity or anti-affinity speaks of the other pod."""
    in_scope = term.all_namespaces or other.namespace in (term.namespaces or (owner.namespace,))
    return in_scope and chosen_by(term.selector, other.labels)


def shares(key, one, other):
    """Both nodes have the label, with the same value."""
    return key in one.labels and one.labels[key] == other.labels.get(key)


def may_join(pod, there, nodes):
    """The pods that are there let this one onto its node, by the rules of kube-scheduler."""
    for other in there:
        if any(term_means(t, pod, other) and shares(t.topology_key, pod.node, other.node) for t in pod.pod_class.apart):
            return False
        if any(
            term_means(t, other, pod) and shares(t.topology_key, pod.node, other.node) for t in other.pod_class.apart
        ):
            return False
        if other.node is pod.node and _ports_clash(pod.pod_class.host_ports, other.pod_class.host_ports):
            return False
    return _is_near(pod, there) and all(_is_even(pod, rule, there, nodes) for rule in pod.pod_class.spread)


def _ports_clash(some, others):
    """The same protocol and port on the same address, or on any."""
    return any(
        (protocol, port) == (other_protocol, other_port) and (ip == other_ip or "0.0.0.0" in (ip, other_ip))
        for ip, protocol, port in some
        for other_ip, other_protocol, other_port in others
    )


def _is_near(pod, there):
    terms = pod.pod_class.near
    if any(t.topology_key not in pod.node.labels for t in terms):
        return False
    if all(any(term_means(t, pod, o) and shares(t.topology_key, pod.node, o.node) for o in there) for t in terms):
        return True
    # The first pod of a group that wants to be near itself may start anywhere.
    met = [o for o in there if all(term_means(t, pod, o) for t in terms)]
    is_first = not any(t.topology_key in o.node.labels for o in met for t in terms)
    return is_first and all(term_means(t, pod, pod) for t in terms)


def _is_even(pod, rule, there, nodes):
    if rule.topology_key not in pod.node.labels:
        return False
    keys = {r.topology_key for r in pod.pod_class.spread}
    eligible = [n for n in nodes if keys <= set(n.labels) and _selects(pod.pod_class, n)]
    pods = {n.labels[rule.topology_key]: 0 for n in eligible}
    for other in there:
        counts = other.namespace == pod.namespace and chosen_by(rule.selector, other.labels)
        if counts and any(other.node is n for n in eligible):
            pods[other.node.labels[rule.topology_key]] += 1
    least = min(pods.values(), default=0) if len(pods) >= rule.min_domains else 0
    itself = chosen_by(rule.selector, pod.labels)
    return pods.get(pod.node.labels[rule.topology_key], 0) + itself - least <= rule.max_skew


def _selects(pod_class, node):
    """Node selector and required node affinity, which say what a spread counts; taints do not."""
    return all(node.labels.get(k) == v for k, v in pod_class.node_selector) and (
        not pod_class.node_affinity or any(_term_holds(t, node) for t in pod_class.node_affinity)
    )


def running_beside(snapshot):
    """The pods that run on nodes that are there."""
    by_name = {n.name: n for n in snapshot.nodes}
    return [
        Beside(by_name[a.node], a.namespace, a.labels, a.pod_class) for a in snapshot.allocations if a.node in by_name
    ]


def some_order(pods, there, nodes):
    """The pods can join in some order, each beside those before it; their order then, or None."""
    if not pods:
        return []
    tried = []
    for i, pod in enumerate(pods):
        if pod in tried:
            continue
        tried.append(pod)
        if may_join(pod, there, nodes):
            rest = some_order(pods[:i] + pods[i + 1 :], [*there, pod], nodes)
            if rest is not None:
                return [pod, *rest]
    return None


def fits_beside(workload, snapshot):
    """Some placement of the minimum, and some order of its pods, keeps every rule on pods beside pods too."""
    left = tuple(left_on(node, snapshot.allocations) for node in snapshot.nodes)
    sets = [[s, pod_set.min_count] for s, pod_set in enumerate(workload.pod_sets)]
    return _Beside(workload, snapshot).run(sets, left, running_beside(snapshot), {})


@dataclass
class _Beside:
    workload: object
    snapshot: object

    def __post_init__(self):
        self.groups = {}
        for s, pod_set in enumerate(self.workload.pod_sets):
            wishes = [w for w in (*self.workload.topology, *pod_set.topology) if w.required]
            self.groups[s] = [(w.level, "all" if w in self.workload.topology else s) for w in wishes]

    def run(self, sets, left, there, chosen):
        """`sets` are [pod set, pods that have no place yet]; any of them may be next."""
        if not any(rest for _, rest in sets):
            return True
        for i, (s, rest) in enumerate(sets):
            if not rest:
                continue
            pod_set = self.workload.pod_sets[s]
            fewer = [*sets[:i], [s, rest - 1], *sets[i + 1 :]]
            for n, node in enumerate(self.snapshot.nodes):
                pod = Beside(node, self.workload.namespace, pod_set.labels, pod_set.pod_class)
                if not may_use(self.workload, node) or not would_do(pod_set.pod_class, node, self.snapshot):
                    continue
                domains = {g: domain_of(g[0], node, self.snapshot.topology) for g in self.groups[s]}
                if any(d is None or chosen.get(g, d) != d for g, d in domains.items()):
                    continue
                if not may_join(pod, there, self.snapshot.nodes):
                    continue
                seen = set()
                for after in ways_to_put(pod_set.pod_class, node, left[n]):
                    if _likeness(after) in seen:
                        continue
                    seen.add(_likeness(after))
                    now = (*left[:n], after, *left[n + 1 :])
                    if self.run(fewer, now, [*there, pod], chosen | domains):
                        return True
        return False
