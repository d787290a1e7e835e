"""Answers to people about one workload: what if it were submitted now, and why does it wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from berth.base.units import counted
from berth.model.cluster import Allocation, Node
from berth.model.paying import payers_of
from berth.model.reasons import Answer, Reason, Verdict
from berth.model.snapshot import Snapshot
from berth.model.topology import Topology
from berth.model.workload import PodSet, Workload, identity_of
from berth.scheduling.columns import Columns
from berth.scheduling.cycle import cycle
from berth.scheduling.giving_way import told, who_would_leave
from berth.scheduling.plan import Eviction, devices_of
from berth.scheduling.policy import Policy
from berth.scheduling.quota import gpu_milli, milli_of
from berth.scheduling.room_kept import kept_from
from berth.scheduling.seen import demand_seen
from berth.scheduling.tables import Tables
from berth.scheduling.unlocking import proven

OWN_RULES = "berth"


@dataclass(frozen=True)
class Placed:
    """Pods of one set on one node. `devices` holds the indexes that each pod gets, where they are known."""

    pod_set: str
    node: str
    pods: int
    devices: tuple[tuple[int, ...], ...]
    named: bool
    domains: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Answered:
    """The verdict on one workload, and where it would go or is. `rules` is whose rules apply in the cluster.

    `leaving` are the pods that would be asked to leave for it, where that would make room.
    """

    workload: Workload
    verdict: Verdict
    placed: tuple[Placed, ...]
    scope: str
    gpus: float
    rules: str
    is_running: bool = False
    waited_s: float = 0.0
    remarks: tuple[str, ...] = ()
    leaving: tuple[Eviction, ...] = ()


def what_if(snapshot: Snapshot, workloads: Sequence[Workload], policy: Policy | None = None) -> list[Answered]:
    """Each of `workloads` as if it were submitted now, one after the other; those that wait already stand aside."""
    demand = snapshot.demand if snapshot.demand.classes else demand_seen(snapshot)
    asked = replace(snapshot, workloads=tuple(workloads), demand=demand)
    tables = Tables()
    policy = policy or Policy()
    # Asking moves nobody: the answer is about the room that there is.
    plan = cycle(asked, replace(policy, evicts=False), tables)
    columns = tables.columns
    assert columns is not None
    leaving = who_would_leave(asked, plan.verdicts, policy, tables)
    places: dict[int, dict[tuple[int, int], list[tuple[int, ...]]]] = {}
    for w, s, n, mask in zip(
        plan.workload.tolist(), plan.pod_set.tolist(), plan.node.tolist(), plan.devices.tolist(), strict=True
    ):
        places.setdefault(w, {}).setdefault((s, n), []).append(devices_of(mask))
    ahead, payers = _ahead(snapshot), payers_of(snapshot.queues)
    kept = kept_from(asked, [w for w, verdict in plan.verdicts.items() if _lacks_room(verdict)])
    verdicts = {**plan.verdicts, **proven(asked, plan.verdicts, policy, tables)}
    answers = []
    for w, workload in enumerate(workloads):
        placed = tuple(
            _placed(workload.pod_sets[s].name, n, devices, columns)
            for (s, n), devices in places.get(w, {}).items()
        )
        verdict = verdicts.get(w) or Verdict(workload.key, Answer.Fits)
        remarks = list(_remarks(workload))
        if doubt := payers.doubt(workload.queue, workload.namespace):
            remarks.append(doubt)
        if ahead and verdict.answer is Answer.Fits:
            remarks.append(f"{ahead} already; whether they go first is for their queues to say.")
        if verdict.answer is Answer.Fits and (part := _part_that_starts(workload, placed)):
            remarks.append(part)
        if w in kept:
            remarks.append(kept[w])
        if w in leaving:
            remarks.append(told(leaving[w]))
        answers.append(
            Answered(
                workload,
                verdict,
                placed,
                plan.scopes.get(w, ""),
                milli_of(workload) / 1000,
                workload.scheduler or OWN_RULES,
                remarks=tuple(remarks),
                leaving=tuple(leaving.get(w, ())),
            )
        )
    return answers


def why(snapshot: Snapshot, name: str, namespace: str | None, policy: Policy | None = None) -> list[Answered]:
    """Workloads of that name: those that wait with their verdict, those that run with their places.

    `name` is a workload's or a pod's name, `kind/name`, `namespace/name` or `kind namespace/name`.
    Empty where there is none.
    """
    waiting = [
        i
        for i, w in enumerate(snapshot.workloads)
        if _is_called(w.name, w.kind, w.namespace, name, namespace)
        or any(_is_called(pod, "Pod", w.namespace, name, namespace) for pods in w.pods for pod in pods)
    ]
    answers: list[Answered] = []
    if waiting:
        alone = [snapshot.workloads[i] for i in waiting]
        for one in what_if(snapshot, alone, policy):
            others = len(snapshot.workloads) - 1
            remarks = [r for r in one.remarks if " already; " not in r]
            if one.verdict.answer is Answer.Fits:
                remarks.append(_would_fit(one.workload, others))
            answers.append(
                Answered(
                    one.workload,
                    _whose(one),
                    one.placed,
                    one.scope,
                    one.gpus,
                    one.rules,
                    waited_s=max(0.0, snapshot.now_s - one.workload.created_s) if one.workload.created_s else 0.0,
                    remarks=tuple(remarks),
                    leaving=one.leaving,
                )
            )
    running: dict[str, list[Allocation]] = {}
    for a in snapshot.allocations:
        workload_name = a.workload.rpartition("/")[2]
        if _is_called(workload_name, a.workload_kind, a.namespace, name, namespace) or _is_called(
            a.name, "Pod", a.namespace, name, namespace
        ):
            running.setdefault(a.workload_identity, []).append(a)
    for held in running.values():
        answers.append(_running(held[0].workload or held[0].key, held, snapshot))
    return answers


def _whose(one: Answered) -> Verdict:
    """What Berth does not place another scheduler may: of its pods Berth cannot say *never*."""
    verdict, whose = one.verdict, one.workload.scheduler
    if verdict.reason is not Reason.Unsupported or whose in ("", OWN_RULES):
        return verdict
    cause = replace(
        verdict.causes[0],
        sentence=f"the pod asks for {verdict.causes[0].where}, which is {whose}'s to place: Berth cannot tell",
        unlock=(f"look at the events of {whose}",),
    )
    return replace(verdict, answer=Answer.NotYet, causes=(cause, *verdict.causes[1:]))


def names_of(snapshot: Snapshot) -> list[str]:
    """What `why` can be asked about."""
    waiting = [w.key for w in snapshot.workloads]
    return waiting + list(dict.fromkeys(a.workload or f"{a.namespace}/{a.name}" for a in snapshot.allocations))


def _is_called(name: str, kind: str, namespace: str, asked: str, in_namespace: str | None) -> bool:
    if in_namespace is not None and namespace != in_namespace:
        return False
    if asked in (name, identity_of(kind, f"{namespace}/{name}")):
        return True
    first, slash, rest = asked.partition("/")
    if not slash or rest != name:
        return False
    return first == namespace or (bool(kind) and first.lower() in (kind.lower(), kind.lower() + "s"))


def _placed(pod_set: str, n: int, devices: Sequence[tuple[int, ...]], columns: Columns) -> Placed:
    node = columns.nodes[n]
    domains = tuple(
        (level.name, columns.domain_names[i][columns.domain[i, n]])
        for i, level in enumerate(columns.topology.levels)
        if columns.domain[i, n] >= 0
    )
    return Placed(pod_set, node.name, len(devices), tuple(devices), node.named_devices, domains)


def _part_that_starts(workload: Workload, placed: Sequence[Placed]) -> str:
    """Of a gang that may grow, what starts now where that is not all of it."""
    started = sum(one.pods for one in placed)
    if not 0 < started < workload.pod_count:
        return ""
    milli = {s.name: gpu_milli(s.pod_class.requests, s.pod_class.gpu_milli) for s in workload.pod_sets}
    gpus, all_gpus = sum(one.pods * milli[one.pod_set] for one in placed) / 1000, milli_of(workload) / 1000
    all_pods = f"{workload.pod_count} pods, {gpus:g} of {all_gpus:g} GPUs"
    return f"It starts with {started} of {all_pods}; the rest follows as room comes."


def _running(key: str, held: Sequence[Allocation], snapshot: Snapshot) -> Answered:
    """A workload that holds capacity, as the API server tells it."""
    nodes: dict[str, Node] = {n.name: n for n in snapshot.nodes}
    by_place: dict[tuple[str, str], list[Allocation]] = {}
    for a in held:
        by_place.setdefault((a.pod_set or "pods", a.node), []).append(a)
    placed = tuple(
        Placed(
            pod_set, name, len(pods), tuple(a.devices for a in pods if a.devices),
            bool(name in nodes and nodes[name].named_devices),
            _path(nodes[name], snapshot.topology) if name in nodes else (),
        )
        for (pod_set, name), pods in by_place.items()
    )  # fmt: skip
    namespace, _, name = key.rpartition("/")
    first = held[0]
    workload = Workload(
        name, (PodSet("pods", first.pod_class, len(held), len(held)),), namespace or first.namespace,
        kind=first.workload_kind or ("Workload" if len(held) > 1 else "Pod"),
        queue=first.queue, scheduler=first.scheduler,
    )  # fmt: skip
    gone = sorted({a.node for a in held if a.node not in nodes})
    found = dict(snapshot.findings).get(first.workload_identity, ())
    remarks = (*(f"node {n} is not in the dump" for n in gone), *found)
    gpus = sum(max(gpu_milli(a.pod_class.requests, a.pod_class.gpu_milli), len(a.devices) * a.pod_class.gpu_milli)
               for a in held) / 1000  # fmt: skip
    return Answered(
        workload,
        Verdict(key, Answer.Fits),
        placed,
        "",
        gpus,
        first.scheduler or OWN_RULES,
        is_running=True,
        remarks=remarks,
    )


def _path(node: Node, topology: Topology) -> tuple[tuple[str, str], ...]:
    """Domains of a node as the tables name them: by their path from the widest level down."""
    found = []
    for depth, level in enumerate(topology.levels):
        if level.label in node.labels:
            path = [node.labels.get(above.label, "") for above in topology.levels[: depth + 1]]
            found.append((level.name, "/".join(part for part in path if part)))
    return tuple(found)


def _ahead(snapshot: Snapshot) -> str:
    count = len(snapshot.workloads)
    return f"{counted(count, 'workload waits', 'workloads wait')}" if count else ""


def _would_fit(workload: Workload, others: int) -> str:
    whose = workload.scheduler or "its scheduler"
    whom = "the other waiting workload" if others == 1 else f"one of the {others:,} other waiting workloads"
    rest = f", unless {whom} goes first" if others else ""
    return f"There is room by Berth's rules{rest}. If it stays pending, {whose} knows why: look at its events."


def _lacks_room(verdict: Verdict) -> bool:
    """It waits for room that is not there, and no reservation has been named as the cause."""
    return verdict.answer is Answer.NotYet and not any(c.reason is Reason.Reserved for c in verdict.causes)


def _remarks(workload: Workload) -> tuple[str, ...]:
    if workload.scheduler and workload.scheduler != OWN_RULES:
        return (f"{workload.scheduler} schedules it; this answer applies Berth's rules to the same cluster.",)
    return ()
