"""What holds of every plan, whatever the snapshot: nothing is given twice, everything asked for is kept."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import oracle
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import CROWDED, TIGHT, allocations, nodes, pod_classes, snapshots

from berth.model.cluster import Allocation, Health
from berth.model.queue import ANY_CLASS
from berth.model.reasons import Answer, Reason
from berth.model.resources import is_accelerator
from berth.scheduling.cycle import cycle
from berth.scheduling.tables import Tables

often = settings(
    max_examples=200, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)  # fmt: skip

everything = st.one_of(snapshots(), snapshots(CROWDED))

# Reasons whose numbers are an amount asked for and a smaller amount that there is.
COUNTS = {
    Reason.LargerThanNode, Reason.LargerThanCluster, Reason.TopologyTooSmall, Reason.LargerThanLimit,
    Reason.NotEnoughGpus, Reason.NotEnoughResources, Reason.Fragmented, Reason.TopologyFragmented,
    Reason.NodesHeldBack, Reason.QuotaExceeded, Reason.LimitExceeded, Reason.WaitingForGang,
}  # fmt: skip


def by_workload(plan):
    """Binds by the workload's index: (pod set, node, devices)."""
    found = defaultdict(list)
    index = {w.key: i for i, w in enumerate(plan.workloads)}
    for bind in plan.binds():
        found[index[bind.workload.key]].append((bind.pod_set, bind.node, bind.devices))
    return found


# --- nothing is given twice ----------------------------------------------------------------------------------


@often
@given(snapshot=everything)
def test_every_pod_fits_where_it_goes_on_top_of_those_before_it(snapshot):
    """One by one in the plan's order: allowed there, room for every amount, devices that are free and as asked."""
    left = {node.name: oracle.left_on(node, snapshot.allocations) for node in snapshot.nodes}
    for bind in cycle(snapshot).binds():
        pod_class = bind.workload.pod_sets[bind.pod_set].pod_class
        assert oracle.would_do(pod_class, bind.node, snapshot), bind
        assert not pod_class.unsupported
        after = oracle.put_on(pod_class, bind.node, left[bind.node.name], bind.devices)
        assert after is not None, bind
        left[bind.node.name] = after


@often
@given(snapshot=snapshots())
def test_no_device_is_given_beyond_its_milli(snapshot):
    """By addition alone, so that it does not share a mistake with the rule that puts pods on devices."""
    used = Counter()
    for bind in cycle(snapshot).binds():
        pod_class = bind.workload.pod_sets[bind.pod_set].pod_class
        assert len(set(bind.devices)) == len(bind.devices)
        resource, asked, milli = oracle.device_ask(pod_class)
        if oracle.has_devices(bind.node) and resource == bind.node.device_resource:
            assert len(bind.devices) == asked
        else:
            assert bind.devices == ()
        for g in bind.devices:
            used[bind.node.name, g] += milli
    left = {n.name: {g: m for g, _, m in oracle.left_on(n, snapshot.allocations).devices} for n in snapshot.nodes}
    for (name, g), milli in used.items():
        assert milli <= left[name][g]


# --- what may be failing -------------------------------------------------------------------------------------


@st.composite
def ailing(draw):
    """Plain pods on plain nodes, of which some are suspect, unsafe, or have an unfit GPU."""
    snapshot = draw(snapshots(TIGHT))
    found = []
    for node in snapshot.nodes:
        ill = draw(st.sampled_from(["", "", "suspect", "suspect GPU", "unsafe", "unfit GPU"]))
        first = node.devices[:1]
        if ill in ("suspect GPU", "unfit GPU"):
            health = Health.Suspect if ill == "suspect GPU" else Health.Unfit
            first = tuple(replace(device, health=health) for device in first)
        found.append(replace(
            node, devices=first + node.devices[1:], health=Health.Suspect if ill == "suspect" else Health.Fit,
            unsafe=("nvidia.com/gpu",) if ill == "unsafe" else (),
        ))  # fmt: skip
    return replace(snapshot, nodes=tuple(found))


@often
@given(snapshot=st.one_of(ailing(), everything))
def test_nobody_gets_what_is_unfit_or_may_be(snapshot):
    for bind in cycle(snapshot).binds():
        asked = {name for name, _ in bind.workload.pod_sets[bind.pod_set].pod_class.requests}
        assert bind.node.health != Health.Unfit and not asked & set(bind.node.unsafe), bind
        assert all(bind.node.devices[g].health in (Health.Fit, Health.Suspect) for g in bind.devices), bind


@often
@given(snapshot=st.one_of(ailing(), everything))
def test_no_new_gang_starts_on_a_suspect_node(snapshot):
    for bind in cycle(snapshot).binds():
        assert bind.workload.has_begun or bind.workload.pod_count == 1 or not oracle.is_suspect(bind.node), bind


@often
@given(snapshot=ailing())
def test_a_suspect_node_is_used_where_no_other_would_do(snapshot):
    left = {node.name: oracle.left_on(node, snapshot.allocations) for node in snapshot.nodes}
    for bind in cycle(snapshot).binds():
        workload, pod_class = bind.workload, bind.workload.pod_sets[bind.pod_set].pod_class
        wishes = (*workload.topology, *workload.pod_sets[bind.pod_set].topology)
        if oracle.is_suspect(bind.node) and workload.pod_count == 1 and not wishes:
            for node in snapshot.nodes:
                if not oracle.is_suspect(node) and oracle.would_do(pod_class, node, snapshot):
                    assert not any(oracle.ways_to_put(pod_class, node, left[node.name])), (bind, node.name)
        left[bind.node.name] = oracle.put_on(pod_class, bind.node, left[bind.node.name], bind.devices)


# --- gangs and topology --------------------------------------------------------------------------------------


@often
@given(snapshot=everything)
def test_gangs_are_placed_whole_or_not_at_all(snapshot):
    plan = cycle(snapshot)
    for w, binds in by_workload(plan).items():
        workload, pods = snapshot.workloads[w], Counter(s for s, _, _ in binds)
        assert not workload.gates
        assert len(binds) <= workload.pod_count - workload.missing_pods
        for s, pod_set in enumerate(workload.pod_sets):
            assert pod_set.min_count <= pods[s] <= pod_set.count, (workload.key, pod_set.name, pods[s])


@often
@given(snapshot=everything)
def test_required_topology_is_kept(snapshot):
    assert_topology_is_kept(snapshot, cycle(snapshot))


def assert_topology_is_kept(snapshot, plan):
    for w, binds in by_workload(plan).items():
        workload = snapshot.workloads[w]
        everyone = [node for _, node, _ in binds]
        for wish in workload.topology:
            if wish.required and not wish.slice_size:
                assert oracle.keeps_whole(wish, everyone, snapshot.topology), (workload.key, wish)
        for s, pod_set in enumerate(workload.pod_sets):
            mine = [node for of, node, _ in binds if of == s]
            for wish in (*pod_set.topology, *(w for w in workload.topology if w.slice_size)):
                keeps = oracle.keeps_slices if wish.slice_size else oracle.keeps_whole
                if wish.required:
                    assert keeps(wish, mine, snapshot.topology), (workload.key, pod_set.name, wish)


# --- queues --------------------------------------------------------------------------------------------------


def queue_of(queue, namespace, snapshot):
    """The name of the queue that pays: the one named, where the namespace may; else the one where it is at home."""
    lists = {q.name: q.namespaces for q in snapshot.queues}
    at_home = [name for name in lists if namespace in lists[name]] or [name for name in lists if name == namespace]
    if queue in at_home or (queue and not at_home and not lists.get(queue)):
        return queue
    return max(at_home, default="")


def chain_of(name, snapshot):
    """The queue and those above it."""
    queues = {q.name: q for q in snapshot.queues}
    while name in queues:
        yield queues[name]
        name = queues[name].parent


def milli_of(pod_class):
    return sum(amount * pod_class.gpu_milli for name, amount in pod_class.requests if is_accelerator(name))


@often
@given(snapshot=everything)
def test_no_limit_of_any_queue_of_the_tree_is_broken(snapshot):
    """A limit that running pods have broken already is not broken further."""
    held, added = Counter(), Counter()
    class_of = {n.name: n.gpu_class for n in snapshot.nodes}
    pods = [(a.queue, a.namespace, a.pod_class, class_of.get(a.node, ""), held) for a in snapshot.allocations]
    pods += [
        (b.workload.queue, b.workload.namespace, b.workload.pod_sets[b.pod_set].pod_class, b.node.gpu_class, added)
        for b in cycle(snapshot).binds()
    ]
    for queue, namespace, pod_class, gpu_class, book in pods:
        for above in chain_of(queue_of(queue, namespace, snapshot), snapshot):
            book[above.name, ANY_CLASS] += milli_of(pod_class)
            if gpu_class:
                book[above.name, gpu_class] += milli_of(pod_class)
    for queue in snapshot.queues:
        for gpu_class, limit in queue.limit:
            key = queue.name, gpu_class
            assert not added[key] or held[key] + added[key] <= limit * 1000, (key, held[key], added[key])


# --- verdicts ------------------------------------------------------------------------------------------------


@often
@given(snapshot=everything)
def test_who_waits_has_one_verdict_and_who_is_placed_has_none(snapshot):
    plan = cycle(snapshot)
    placed = set(plan.placed.tolist())
    assert placed | set(plan.verdicts) == set(range(len(snapshot.workloads)))
    assert not placed & set(plan.verdicts)
    for w, verdict in plan.verdicts.items():
        assert verdict.workload == snapshot.workloads[w].key
        assert verdict.causes and verdict.answer is not Answer.Fits
        is_never = any(c.reason.answer is Answer.Never for c in verdict.causes)
        assert verdict.answer is (Answer.Never if is_never else Answer.NotYet)
        assert verdict.reason.answer is verdict.answer
        for cause in verdict.causes:
            assert cause.sentence and cause.need >= 0 and cause.have >= 0, cause
            assert sum(nodes_ for _, nodes_ in cause.blocks) <= len(snapshot.nodes)
            if cause.reason in COUNTS and cause.proven and (cause.need or cause.have):
                assert cause.need > cause.have, cause


# --- the same answer -----------------------------------------------------------------------------------------


def answer_of(plan):
    """All of a plan that is told."""
    columns = (plan.workload, plan.pod_set, plan.node, plan.devices)
    return [c.tolist() for c in columns], dict(plan.verdicts), dict(plan.scopes)


@often
@given(snapshot=snapshots())
def test_the_same_snapshot_gives_the_same_plan(snapshot):
    tables = Tables()
    first = answer_of(cycle(snapshot))
    assert first == answer_of(cycle(snapshot))
    assert first == answer_of(cycle(snapshot, cache=tables)) == answer_of(cycle(snapshot, cache=tables))


@st.composite
def histories(draw):
    """A snapshot and what becomes of it: pods come and go, nodes change, appear, vanish, are cordoned."""
    snapshot = draw(snapshots())
    found = [snapshot]
    for step in range(draw(st.integers(1, 5))):
        cluster, running, waiting = list(snapshot.nodes), list(snapshot.allocations), list(snapshot.workloads)
        match draw(st.sampled_from(["bind", "bind", "start", "start", "end", "end", "cordon", "change", "add",
                                    "remove", "waits", "class"])):  # fmt: skip
            case "bind":
                running += [
                    Allocation(b.node.name, b.workload.namespace, f"{b.workload.name}-{step}-{i}",
                               b.workload.pod_sets[b.pod_set].pod_class, devices=b.devices, queue=b.workload.queue)
                    for i, b in enumerate(cycle(snapshot).binds())
                ]  # fmt: skip
            case "start":
                running.append(draw(allocations(tuple(cluster), f"b{step}")))
            case "end" if running:
                running.pop(draw(st.integers(0, len(running) - 1)))
            case "cordon":
                n = draw(st.integers(0, len(cluster) - 1))
                cluster[n] = replace(cluster[n], cordoned=not cluster[n].cordoned)
            case "change":
                n = draw(st.integers(0, len(cluster) - 1))
                cluster[n] = draw(nodes(cluster[n].name))
            case "add":
                cluster.insert(draw(st.integers(0, len(cluster))), draw(nodes(f"m{step}")))
            case "remove" if len(cluster) > 1:
                cluster.pop(draw(st.integers(0, len(cluster) - 1)))
            case "waits" if waiting:
                waiting = draw(st.permutations(waiting))[: draw(st.integers(0, len(waiting)))]
            case "class":
                one = waiting[0] if waiting else snapshot.workloads[0] if snapshot.workloads else found[0].workloads[0]
                sets = (replace(one.pod_sets[0], pod_class=draw(pod_classes())), *one.pod_sets[1:])
                waiting.append(replace(one, name=f"v{step}", pod_sets=sets))
        snapshot = replace(snapshot, nodes=tuple(cluster), allocations=tuple(running), workloads=tuple(waiting))
        found.append(snapshot)
    return found


def assert_same_tables(kept, fresh):
    """Equal for every class of the fresh tables, and every resource that a node has or a class asks for."""
    ours, theirs = kept.columns, fresh.columns
    known = [r for r, name in enumerate(theirs.resources) if ours.column(name) >= 0]
    resources = [ours.column(theirs.resources[r]) for r in known]
    unknown = [r for r in range(len(theirs.resources)) if r not in known]
    assert not fresh.need[:, unknown].any() and (theirs.empty[:, unknown] <= 0).all()
    np.testing.assert_array_equal(ours.free[:, resources], theirs.free[:, known])
    np.testing.assert_array_equal(ours.empty[:, resources], theirs.empty[:, known])
    np.testing.assert_array_equal(ours.device_free, theirs.device_free)
    np.testing.assert_array_equal(ours.island, theirs.island)
    np.testing.assert_array_equal(ours.domain, theirs.domain)
    assert ours.lost == theirs.lost
    for pod_class, row in fresh.rows.items():
        mine = kept.rows[pod_class]
        np.testing.assert_array_equal(kept.need[mine][resources], fresh.need[row][known])
        asked = kept.ask[mine].tolist()
        asked[0] = known[resources.index(asked[0])] if asked[0] >= 0 else -1
        assert asked == fresh.ask[row].tolist()
        for name in ("static", "copies", "block"):
            np.testing.assert_array_equal(getattr(kept, name)[mine], getattr(fresh, name)[row], err_msg=name)


@often
@given(history=histories())
def test_the_plan_does_not_depend_on_the_cache(history):
    kept = Tables()
    for snapshot in history:
        fresh = Tables()
        assert answer_of(cycle(snapshot, cache=kept)) == answer_of(cycle(snapshot, cache=fresh))
        assert_same_tables(kept, fresh)
