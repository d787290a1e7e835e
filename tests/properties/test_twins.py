"""The compiled loops compute what the plain definitions say (berth.scheduling.plain)."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from strategies import TIGHT, Size, snapshots

from berth.scheduling import headroom, kernels, plain, plain_prices, portable, prices, scoring, singles
from berth.scheduling.placing import place_run
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


# --- exponentials and prices ---------------------------------------------------------------------------------


@often
@given(x=st.floats(-699, 699))
def test_exp(x):
    assert portable.exp(x) == pytest.approx(math.exp(x), rel=1e-10)


@often
@given(x=st.floats(1e-300, 1e300))
def test_log(x):
    assert portable.log(x) == pytest.approx(math.log(x), rel=1e-10, abs=1e-10)


KNOBS = headroom.Knobs(quantum=10.0, tau=10.0, tau_classes=40.0, eta=0.01, average=0.3)


@st.composite
def economies(draw):
    """Kinds with shares and prices, which of them each group of nodes may use, and nodes."""
    shapes = st.sampled_from(
        [(0, 1000), (1, 1000), (2, 1000), (3, 1000), (4, 1000), (1, 200), (1, 250), (1, 500), (1, 995), (2, 500)]
    )
    shares = draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0]), min_size=1, max_size=5))
    assume(sum(shares))
    kinds = [
        plain_prices.Kind(share / sum(shares), float(draw(st.sampled_from([0, 500, 4000, 16000]))), *draw(shapes))
        for share in shares
    ]
    times = st.sampled_from([0.05, 0.5, 1.0, 1.3, 2.0])
    prices = [kind.asked * draw(times) for kind in kinds]
    groups = draw(st.integers(1, 3))
    allowed = [[kind.devices > 0 and draw(st.booleans()) for kind in kinds] for _ in range(groups)]
    nodes = draw(
        st.lists(
            st.tuples(
                st.integers(0, groups - 1),
                st.sampled_from([0, 3000, 16000, 64000]),
                st.lists(st.sampled_from([-1, 0, 5, 250, 500, 750, 1000, 1000]), min_size=4, max_size=4),
            ),
            min_size=1,
            max_size=4,
        )
    )
    return kinds, prices, draw(st.sampled_from([1e-5, 0.001, 0.01])), allowed, nodes


def compiled_economy(kinds, prices, cpu_price, allowed, nodes):
    """As headroom.py wants it: mix, prices, nodes, worth, book and scratch."""
    one_by_one = [k.devices > 0 and k.is_one_by_one for k in kinds]
    several = [k.devices > 0 and not k.is_one_by_one for k in kinds]
    sizes = sorted({k.size for k, one in zip(kinds, one_by_one, strict=True) if one})
    counts = sorted({k.devices for k, many in zip(kinds, several, strict=True) if many})
    channel = [
        sizes.index(k.size) if one else len(sizes) + counts.index(k.devices) if many else -1
        for k, one, many in zip(kinds, one_by_one, several, strict=True)
    ]
    mix = headroom.Mix(
        np.array([k.share for k in kinds]), np.array([k.cpu for k in kinds]),
        np.array([float(k.asked) for k in kinds]), np.array(channel, np.int64),
        np.array([float(k.parts) for k in kinds]), np.array(allowed, bool),
        np.array(sizes, np.int64), np.array(counts, np.int64),
    )  # fmt: skip
    group, cpu, left = zip(*nodes, strict=True)
    there = headroom.Nodes(
        np.array(group, np.int64), np.ones(len(nodes), np.int64), np.array(cpu, np.int64)[:, None],
        np.array(left, np.int32),
    )  # fmt: skip
    worth, scratch = headroom.worth_for(mix, 4), headroom.scratch_for(mix, 4)
    return mix, np.array([*prices, cpu_price]), there, worth, headroom.book_for(len(nodes)), scratch


@often
@given(economy=economies())
def test_prices_and_worth(economy):
    """What devices are worth, what the cluster would take, and where the prices go."""
    kinds, old, cpu_price, allowed, nodes = economy
    mix, price, there, worth, book, scratch = compiled_economy(*economy)
    prices.step(KNOBS.eta, price, mix, KNOBS, there, worth, book, scratch)
    old, cpu_price = plain_prices.normalised(old, cpu_price, kinds)
    unit = headroom.ONE / KNOBS.quantum
    fills = [
        [plain_prices.Fill([k if may else plain_prices.Kind(0.0, 0.0) for k, may in zip(kinds, of_group, strict=True)],
                           old, lane, KNOBS.tau, KNOBS.tau_classes) for lane in plain_prices.lanes(cpu_price)]
        for of_group in allowed
    ]  # fmt: skip
    for k, by_lane in enumerate(fills):
        for lane, fill in enumerate(by_lane):
            assert worth.rate[lane] / unit == pytest.approx(fill.cpu_price, abs=1e-8)
            for level in range(headroom.LEVELS):
                assert worth.device[k, level, lane] / unit == pytest.approx(fill.device(level), abs=1e-4)
            for free in range(5):
                assert worth.whole[k, free, lane] / unit == pytest.approx(fill.whole(free), abs=1e-4)
    pods, idle_cpu = plain_prices.Pods(float), 0.0
    for k in range(len(allowed)):
        in_first, used = 0.0, 0.0
        for n, (group, cpu, left) in enumerate(nodes):
            if group != k:
                continue
            lane = int(np.argmin(book.by_lane[n]))
            fill = fills[k][lane]
            shared, free = [x // 10 for x in left if 0 < x < 1000], left.count(1000)
            value = fill.cpu_price * cpu + sum(fill.device(x) for x in shared) + fill.whole(free)
            assert book.value[n] / unit == pytest.approx(value, abs=1e-3)
            taken = [fill.on_whole(free), *(fill.on_device(x) for x in shared)]
            for some in taken:
                for j, count in some.items():
                    pods[j] += count
                    used += count * kinds[j].cpu if lane == 0 else 0.0
            in_first += cpu if lane == 0 else 0
        idle_cpu += in_first - used
    idle_cpu = max(0.0, idle_cpu)
    assert scratch.wanted.tolist() == pytest.approx([pods[j] for j in range(len(kinds))], rel=1e-6, abs=1e-7)
    new, new_cpu_price = plain_prices.moved(kinds, old, cpu_price, pods, idle_cpu, KNOBS.eta)
    assert price.tolist() == pytest.approx([*new, new_cpu_price], rel=1e-6, abs=2e-6)


# --- ranks, runs of single pods ------------------------------------------------------------------------------


def worths_of(market):
    """The worths of each node's group, in the words of the plain twin."""
    rate, device, whole = (array.tolist() for array in market.worth)
    by_group = [plain.Worths(rate, device[k], whole[k]) for k in range(len(device))]
    return [by_group[k] for k in market.group.tolist()]


def plainly(now):
    """A round's draft in the words of the plain twin."""
    draft, tables, columns = now.draft, now.draft.tables, now.draft.columns
    hosts_ = [
        plain.Host(
            draft.free[n].tolist(), draft.device_free[n].tolist(), columns.island[n].tolist(), int(columns.pool[n]),
            bool(columns.suspect[n]),
        )
        for n in range(columns.size)
    ]
    classes = [
        plain.Ask(tuple(tables.need[m].tolist()), *tables.ask[m, :3].tolist(), bool(tables.ask[m, 3]))
        for m in range(len(tables.rows))
    ]
    return SimpleNamespace(hosts=hosts_, classes=classes)


def renewal(market, hosts_):
    """The compiled prices, followed on a copy of their own at what the plain hosts have left."""
    now, smooth = market.following.now.copy(), market.following.smooth.copy()
    following = market.following._replace(now=now, smooth=smooth)
    mix = market.mix._replace(share=market.mix.share.copy())
    worth = headroom.Worth(*(array.copy() for array in market.worth))
    learned, book = np.zeros(1, np.int64), headroom.book_for(len(hosts_))

    def renew(arrived):
        count = np.array([float(arrived[j]) for j in range(len(mix.share))])
        learned[0] = sum(arrived.values()) - 1
        nodes = headroom.Nodes(
            market.group, np.ones(len(hosts_), np.int64), np.array([h.free for h in hosts_], np.int64),
            np.array([h.devices for h in hosts_], np.int32),
        )  # fmt: skip
        learning = market.learning._replace(counts=count, arrived=learned)
        singles.refresh(mix, market.knobs, following, learning, nodes, worth, book, market.scratch)
        return worths_of(SimpleNamespace(worth=worth, group=market.group))

    return renew


policies = st.builds(
    Policy,
    quantum=st.sampled_from([1.0, 10.0, 80.0]),
    warm_steps=st.sampled_from([4, 50]),
    refresh=st.sampled_from([1, 2, 200]),
    learn_arrivals=st.booleans(),
)
SINGLES = Size(nodes=5, workloads=14, pods=1, pod_sets=1, gates=False)
PLAIN_SINGLES = Size(
    **{**{f: getattr(TIGHT, f) for f in TIGHT.__dataclass_fields__}, "workloads": 14, "pods": 1, "pod_sets": 1}
)


def packed(rank):
    """A rank as one number."""
    return (rank.is_suspect << 60) + (rank.loss << 22) + (rank.dislike << 7) + rank.left


@often
@given(snapshot=st.one_of(snapshots(SINGLES), snapshots(PLAIN_SINGLES)), policy=policies)
def test_ranks(snapshot, policy):
    now = Round.of(snapshot, policy, Tables())
    twin, market, preference = plainly(now), now.losses.market(now.draft), now.draft.tables.preference
    worths = worths_of(market)
    assert market.book.value.tolist() == [w.of(host) for w, host in zip(worths, twin.hosts, strict=True)]
    for m, ask in enumerate(twin.classes):
        ranks = now.losses.of_row(m, now.draft)
        for n, copies in enumerate(now.draft.copies[m].tolist()):
            if copies:
                best, _ = plain.choices(ask, twin.hosts[n], worths[n], int(preference[m, n]))[0]
                assert ranks[n] == packed(best)
            else:
                assert ranks[n] == scoring.NO_ROOM


@often
@given(snapshot=st.one_of(snapshots(SINGLES), snapshots(PLAIN_SINGLES)), policy=policies, data=st.data())
def test_runs_of_single_pods(snapshot, policy, data):
    now = Round.of(snapshot, policy, Tables())
    run = np.flatnonzero(now.singles()).tolist()
    assume(run)
    run = data.draw(st.permutations(run))
    twin, ledger, columns, tables = plainly(now), now.ledger, now.draft.columns, now.draft.tables
    market = now.losses.market(now.draft)
    milli = {row: gpu_milli(c.requests, c.gpu_milli) for c, row in tables.rows.items()}
    rows = [now.rows[w][0] for w in run]
    pods = [
        plain.Single(twin.classes[m], tables.static[m].tolist(), tables.preference[m].tolist(), int(now.queue[w]),
                     milli[m], int(market.learning.kind[m]))
        for w, m in zip(run, rows, strict=True)
    ]  # fmt: skip
    limits = plain.Limits(ledger.parent.tolist(), ledger.limit.tolist(), ledger.used.tolist())
    gpu_class = [c if c >= 0 else limits.all_classes for c in columns.gpu_class.tolist()]
    expected = plain.Run(
        pods, twin.hosts, worths_of(market), renewal(market, twin.hosts), limits, gpu_class, policy.refresh,
        policy.learn_arrivals,
    ).place()  # fmt: skip
    place_run(np.array(run, np.int64), now)
    decided = {int(b[0][i]): (int(b[2][i]), int(b[3][i])) for b in now.binds for i in range(len(b[0]))}
    event(f"placed {len(decided)} of {len(run)}")
    assert decided == {w: (n, mask_of(d)) for w, (n, d) in zip(run, expected, strict=True) if n >= 0}
    if ledger.has_limits:  # without any, nobody reads it
        assert ledger.used.tolist() == limits.used
    assert now.draft.free.tolist() == [h.free for h in twin.hosts]
    assert now.draft.device_free.tolist() == [h.devices for h in twin.hosts]
    worths = worths_of(market)
    assert market.book.value.tolist() == [w.of(host) for w, host in zip(worths, twin.hosts, strict=True)]
