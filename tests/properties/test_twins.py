"""The compiled loops compute what the plain definitions say (berth.scheduling.plain)."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from strategies import TIGHT, Size, snapshots

from berth.scheduling import kernels, plain
from berth.scheduling.policy import Policy
from berth.scheduling.quota import gpu_milli
from berth.scheduling.round import Round
from berth.scheduling.tables import Tables

often = settings(
    max_examples=400, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)  # fmt: skip
POOL = 3  # cpu, memory, pods, devices, another


# --- fit -----------------------------------------------------------------------------------------------------


@st.composite
def hosts(draw):
    size = draw(st.integers(1, 6))
    devices = draw(
        st.lists(st.sampled_from([-1, 0, 200, 250, 500, 700, 750, 1000, 1000]), min_size=size, max_size=size)
    )
    joined = draw(st.lists(st.integers(-1, 2), min_size=size, max_size=size))
    free = draw(st.lists(st.integers(-2, 9), min_size=5, max_size=5))
    pool = draw(st.sampled_from([POOL, POOL, POOL, -1]))
    if pool == POOL:
        free[POOL] = devices.count(1000)
    return plain.Host(free, devices, joined, pool)


@st.composite
def asks(draw):
    kind = draw(st.sampled_from(["none", "one", "many", "many", "share", "shares"]))
    devices = (
        {"none": 0, "one": 1, "share": 1}.get(kind) if kind in ("none", "one", "share") else draw(st.integers(2, 4))
    )
    milli = draw(st.sampled_from([200, 250, 300, 500, 700])) if kind.startswith("share") else 1000
    need = [
        draw(st.integers(0, 3)),
        draw(st.integers(0, 3)),
        1,
        devices if milli == 1000 else 0,
        draw(st.integers(0, 1)),
    ]
    one_island = devices > 1 and draw(st.booleans())
    return plain.Ask(tuple(need), POOL if devices else -1, devices, milli, one_island)


def arrays(host, ask):
    """As the kernels want them: need, ask, free, left, islands, pool."""
    return (
        np.array(ask.need, np.int64),
        np.array([ask.resource, ask.devices, ask.milli, ask.one_island], np.int32),
        np.array(host.free, np.int64),
        np.array(host.devices, np.int32),
        np.array(host.islands, np.int32),
        host.pool,
    )


def mask_of(devices):
    return sum(1 << g for g in devices)


@often
@given(host=hosts(), ask=asks())
def test_copies_on(host, ask):
    assert kernels.copies_on(*arrays(host, ask)) == plain.copies_on(ask, host)


@often
@given(host=hosts(), ask=asks())
def test_choose_devices(host, ask):
    assume(ask.devices)
    _, asked, _, left, islands, _ = arrays(host, ask)
    assert kernels.choose_devices(left, islands, *asked[1:].tolist()) == mask_of(plain.choose_devices(ask, host))


@often
@given(host=hosts(), ask=asks(), sign=st.sampled_from([1, -1]), data=st.data())
def test_take(host, ask, sign, data):
    devices = ()
    if ask.is_on_devices_of(host):
        able = [g for g, left in enumerate(host.devices) if ask.milli <= left]
        assume(len(able) >= ask.devices)
        devices = tuple(data.draw(st.permutations(able))[: ask.devices])
    need, asked, free, left, _, pool = arrays(host, ask)
    kernels.take(1, mask_of(devices), need, asked, free, left, pool)
    plain.take(ask, host, devices)
    if sign < 0:
        kernels.take(-1, mask_of(devices), need, asked, free, left, pool)
        plain.take(ask, host, devices, -1)
    assert (free.tolist(), left.tolist()) == (host.free, host.devices)


@often
@given(host=hosts(), ask=asks(), data=st.data())
def test_put_copies(host, ask, data):
    """As many as are counted find devices, one after the other; and no more are counted than find them."""
    most, _ = plain.copies_on(ask, host)
    copies = data.draw(st.integers(0, min(most, 8)))
    need, asked, free, left, islands, pool = arrays(host, ask)
    masks = np.zeros(copies, np.int64)
    kernels.put_copies(0, 0, masks, need[None], asked[None], free[None], left[None], islands[None], np.array([pool]))
    chosen = plain.put_copies(ask, host, copies)
    assert masks.tolist() == [mask_of(devices) for devices in chosen]
    assert (free.tolist(), left.tolist()) == (host.free, host.devices)
    assert plain.copies_on(ask, host)[0] == most - copies
    if ask.is_on_devices_of(host):
        assert all(len(devices) == ask.devices for devices in chosen)


@often
@given(
    cluster=st.lists(hosts(), min_size=1, max_size=4), classes=st.lists(asks(), min_size=1, max_size=3), data=st.data()
)
def test_refresh_nodes(cluster, classes, data):
    widest = max(len(h.devices) for h in cluster)
    for host in cluster:
        host.islands += [-1] * (widest - len(host.devices))
        host.devices += [-1] * (widest - len(host.devices))
    shape = len(classes), len(cluster)
    static = data.draw(
        st.lists(st.sampled_from([0, 0, 0, 3, 9]), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    )
    static = np.array(static, np.uint8).reshape(shape)
    nodes = np.array(
        data.draw(st.permutations(range(len(cluster))))[: data.draw(st.integers(0, len(cluster)))], np.int64
    )
    copies, block = np.full(shape, -7, np.int32), np.full(shape, 77, np.uint8)
    need, ask = (np.stack([arrays(cluster[0], c)[i] for c in classes]) for i in (0, 1))
    free, left, islands = (np.stack([arrays(h, classes[0])[i] for h in cluster]) for i in (2, 3, 4))
    pool = np.array([h.pool for h in cluster], np.int32)
    rows = np.arange(len(classes))
    kernels.refresh_nodes(nodes, rows, need, ask, static, free, left, islands, pool, copies, block)
    for m, one in enumerate(classes):
        for n, host in enumerate(cluster):
            expected = plain.count_again(one, host, int(static[m, n])) if n in nodes else (-7, 77)
            assert (copies[m, n], block[m, n]) == expected


# --- supply, loss, runs of single pods -----------------------------------------------------------------------


def plainly(now):
    """A round's draft and demand in the words of the plain twin."""
    draft, tables, columns, losses = now.draft, now.draft.tables, now.draft.columns, now.losses
    hosts_ = [
        plain.Host(
            draft.free[n].tolist(), draft.device_free[n].tolist(), columns.island[n].tolist(), int(columns.pool[n])
        )
        for n in range(columns.size)
    ]
    classes = [
        plain.Ask(tuple(tables.need[m].tolist()), *tables.ask[m, :3].tolist(), bool(tables.ask[m, 3]))
        for m in range(len(tables.rows))
    ]
    policy = now.policy
    kinds = []
    for row, demand in zip(losses.rows.tolist(), losses.demand.tolist(), strict=True):
        part = policy.whole_copies_many if classes[row].devices > 1 else policy.whole_copies
        kinds.append(plain.Kind(classes[row], demand, round(2 * part)))
    allows = [[not tables.static[row, n] for n in range(columns.size)] for row in losses.rows.tolist()]
    pods = columns.column("pods")
    pools = set(columns.pool.tolist())
    counts = [c for c in range(len(columns.resources)) if c != pods and c not in pools]
    market = plain.Market(hosts_, kinds, allows, counts, losses.quantum)
    market.weigh()
    return SimpleNamespace(market=market, classes=classes)


policies = st.builds(
    Policy,
    quantum=st.sampled_from([1, 20, 80]),
    whole_copies=st.sampled_from([0.0, 0.5, 1.0]),
    whole_copies_many=st.sampled_from([0.5, 1.0]),
    refresh=st.sampled_from([1, 2, 200]),
    learn_arrivals=st.booleans(),
)
SINGLES = Size(nodes=5, workloads=14, pods=1, pod_sets=1, gates=False)
PLAIN_SINGLES = Size(
    **{**{f: getattr(TIGHT, f) for f in TIGHT.__dataclass_fields__}, "workloads": 14, "pods": 1, "pod_sets": 1}
)


@often
@given(snapshot=st.one_of(snapshots(SINGLES), snapshots(PLAIN_SINGLES)), policy=policies)
def test_supply_scarcity_and_losses(snapshot, policy):
    now = Round.of(snapshot, policy, Tables())
    twin = plainly(now)
    size = now.draft.columns.size
    supply = [[twin.market.supply(k, n) for k in range(len(twin.market.kinds))] for n in range(size)]
    assert now.losses.supply.tolist() == supply
    if not policy.learn_arrivals:
        assert now.losses.weight.tolist() == twin.market.weights
        assert now.losses.value.tolist() == [twin.market.value(n) for n in range(size)]
    for m, ask in enumerate(twin.classes):
        losses = now.losses.of_row(m, now.draft)
        for n in np.flatnonzero(now.draft.copies[m] > 0).tolist():
            assert losses[n] == twin.market.loss_on(ask, n)[0]


@often
@given(snapshot=st.one_of(snapshots(SINGLES), snapshots(PLAIN_SINGLES)), policy=policies, data=st.data())
def test_runs_of_single_pods(snapshot, policy, data):
    now = Round.of(snapshot, policy, Tables())
    run = [w for w in range(len(snapshot.workloads)) if now.is_single(w)]
    assume(run)
    run = data.draw(st.permutations(run))
    twin, ledger, columns, tables = plainly(now), now.ledger, now.draft.columns, now.draft.tables
    milli = {row: gpu_milli(c.requests, c.gpu_milli) for c, row in tables.rows.items()}
    rows = [now.rows[w][0] for w in run]
    pods = [
        plain.Single(twin.classes[m], tables.static[m].tolist(), int(now.queue[w]), milli[m], int(now.arrivals[m]))
        for w, m in zip(run, rows, strict=True)
    ]
    limits = plain.Limits(ledger.parent.tolist(), ledger.limit.tolist(), ledger.used.tolist())
    gpu_class = [c if c >= 0 else limits.all_classes for c in columns.gpu_class.tolist()]
    expected = plain.Run(pods, twin.market, limits, gpu_class, policy.refresh).place()
    now.place_run(np.array(run, np.int64))
    decided = {int(b[0][i]): (int(b[2][i]), int(b[3][i])) for b in now.binds for i in range(len(b[0]))}
    event(f"placed {len(decided)} of {len(run)}")
    assert decided == {w: (n, mask_of(d)) for w, (n, d) in zip(run, expected, strict=True) if n >= 0}
    if ledger.has_limits:  # without any, nobody reads it
        assert ledger.used.tolist() == limits.used
    assert now.draft.free.tolist() == [h.free for h in twin.market.hosts]
    assert now.draft.device_free.tolist() == [h.devices for h in twin.market.hosts]
    assert now.losses.supply.tolist() == [
        [twin.market.supply(k, n) for k in range(len(twin.market.kinds))] for n in range(columns.size)
    ]
