"""What is expected, as prices look at it: class rows merged into kinds, nodes into groups.

Rows that differ in nothing that is priced (memory, tolerations that change no node, …) are one kind. Nodes that the
same kinds may use are one group, and are looked up in the same tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.model.reasons import Block
from berth.model.workload import WHOLE
from berth.scheduling.columns import Columns
from berth.scheduling.headroom import LEVEL, Mix, Nodes
from berth.scheduling.tables import Tables

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_GROUPS = 64
MOST_KINDS = 256
LEAST_IMAGINED = 0.5  # part of imagined pods where nobody asks for a device


def kinds_of(rows: I64, tables: Tables) -> tuple[I64, I64]:
    """(rows,) kind of each row, -1 where it can be placed nowhere; and (J,) a row that stands for each kind."""
    kinds: dict[tuple[bytes, ...], int] = {}
    first: list[int] = []
    kind = np.full(len(rows), -1, np.int64)
    for i, row in enumerate(rows.tolist()):
        would_do = tables.static[row] == Block.Nothing
        if not would_do.any():
            continue
        key = (tables.need[row, :1].tobytes(), tables.ask[row, :3].tobytes(), np.packbits(would_do).tobytes())
        kind[i] = kinds.setdefault(key, len(kinds))
        if kind[i] == len(first):
            first.append(row)
    return kind, np.array(first, np.int64)


def on_devices(first: I64, tables: Tables) -> Mask:
    """(J,) kinds, each told by a row, that some node has devices for."""
    columns = tables.columns
    assert columns is not None
    ask = tables.ask[first]
    allowed = (tables.static[first] == Block.Nothing) & (columns.pool == ask[:, :1]) & (ask[:, 1:2] > 0)
    found: Mask = allowed.any(axis=1)
    return found


def shares_of(kind: I64, demand: F64, kinds: int) -> F64:
    """(J,) share of each kind in the demand that can be placed; zeros where there is none."""
    shares = np.zeros(kinds)
    np.add.at(shares, kind[kind >= 0], demand[kind >= 0])
    total = shares.sum()
    if len(shares) > MOST_KINDS:
        shares[np.argsort(-shares, kind="stable")[MOST_KINDS:]] = 0.0
    return shares / total if total > 0 else shares


class Layout(NamedTuple):
    """All of the mix but the shares, for some rows; it stays as long as the tables' nodes do.

    mix with shares of nought; group (N,) of each node; shapes of the empty cluster; imagined, the shares of kinds that
    nobody has asked for.
    """

    mix: Mix
    group: I64
    shapes: Nodes
    imagined: F64


def layout_of(first: I64, has_imagined: bool, tables: Tables, columns: Columns) -> Layout:
    """The layout for kinds, each told by a row; with pods that nobody has asked for yet, or without."""
    ask = tables.ask[first].astype(np.int64)
    cpu = tables.need[first, 0].astype(np.float64)
    would_do: Mask = tables.static[first] == Block.Nothing
    allowed: Mask = would_do & (columns.pool == ask[:, :1]) & (ask[:, 1:2] > 0)
    imagined = np.zeros(0)
    if has_imagined:
        more = _imagined(columns)
        ask, cpu = np.concatenate([ask, more.ask]), np.concatenate([cpu, more.cpu])
        allowed = np.concatenate([allowed, more.allowed])
        imagined = more.share
    devices, milli = ask[:, 1], ask[:, 2]
    on_devices = allowed.any(axis=1)
    group, patterns = _groups(allowed)
    one_by_one = on_devices & ((devices == 1) | (milli < WHOLE))
    several = on_devices & ~one_by_one
    size = -(-milli // LEVEL)
    sizes, counts = np.unique(size[one_by_one]), np.unique(devices[several])
    channel = np.full(len(ask), -1, np.int64)
    channel[one_by_one] = np.searchsorted(sizes, size[one_by_one])
    channel[several] = len(sizes) + np.searchsorted(counts, devices[several])
    mix = Mix(
        share=np.zeros(len(ask)),
        cpu=cpu,
        milli=np.where(on_devices, devices * milli, 0).astype(np.float64),
        channel=channel,
        parts=np.where(one_by_one, devices, 1).astype(np.float64),
        allowed=patterns,
        sizes=sizes,
        counts=counts,
    )
    return Layout(mix, group, shapes_of(group, columns), imagined)


def part_imagined(shares: F64, on_devices: Mask, imagined: float) -> float:
    """The part of pods that nobody has asked for yet: more where nobody asks for a device."""
    if (shares[on_devices] > 0).any():
        return imagined
    return max(imagined, LEAST_IMAGINED) if shares.any() else 1.0


def mix_of(layout: Layout, shares: F64, imagined: float) -> Mix:
    """The layout's mix with these shares, (J,), of kinds that were asked for."""
    if len(layout.imagined) or imagined > 0:
        shares = np.concatenate([shares * (1.0 - imagined), layout.imagined * imagined])
    return layout.mix._replace(share=shares)


class _More(NamedTuple):
    """Kinds beside those that were asked for, as columns: ask (J, 4), cpu (J,), allowed (J, N), share (J,)."""

    ask: I64
    cpu: F64
    allowed: Mask
    share: F64


def _imagined(columns: Columns) -> _More:
    """Pods of 1, 2, 4, … whole devices of each kind of node, with half the CPU that goes with them.

    They stand for what may come: without them a node would be worth nothing to whom nobody has asked for yet, and
    pods would be strewn over nodes that should stay whole. Each size has the same part of the devices.
    """
    count = (columns.device_free >= 0).sum(axis=1)
    lines: list[tuple[int, int, float]] = []
    allowed: list[Mask] = []
    for resource in np.unique(columns.pool[(columns.pool >= 0) & (count > 0)]).tolist():
        there = columns.pool == resource
        cpu = float(np.maximum(columns.empty[there, 0], 0).sum()) / float(count[there].sum())
        devices = 1
        while (there & (count >= devices)).any():
            lines.append((resource, devices, devices * cpu / 2))
            allowed.append(there & (count >= devices))
            devices *= 2
    share = np.array([1.0 / devices for _, devices, _ in lines])
    return _More(
        np.array([(resource, devices, WHOLE, 0) for resource, devices, _ in lines], np.int64).reshape(-1, 4),
        np.array([cpu for _, _, cpu in lines]),
        np.array(allowed, bool).reshape(len(lines), columns.size),
        share / share.sum() if len(share) else share,
    )


def _groups(allowed: Mask) -> tuple[I64, Mask]:
    """(N,) groups of equal columns of (J, N), the most common first, and (K, J) what each allows.

    Beyond the bound nodes share one group, which allows what any of them does.
    """
    kinds, size = allowed.shape
    group = np.zeros(size, np.int64)
    for start in range(0, kinds, 32):
        bits = np.zeros(size, np.int64)
        for row in allowed[start : start + 32]:
            bits = bits * 2 + row
        _, group = np.unique(group << 32 | bits, return_inverse=True)
    _, leader, group, count = np.unique(group, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((leader, -count))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    group = place[group].reshape(size)
    patterns: Mask = np.ascontiguousarray(allowed[:, leader[order]].T)
    if len(patterns) > MOST_GROUPS:
        rest = patterns[MOST_GROUPS - 1 :].any(axis=0, keepdims=True)
        patterns = np.concatenate([patterns[: MOST_GROUPS - 1], rest])
        group = np.minimum(group, MOST_GROUPS - 1)
    return group, patterns


def shapes_of(group: I64, columns: Columns) -> Nodes:
    """The empty cluster: nodes of the same group, CPU and number of devices are one line."""
    devices = (columns.device_free >= 0).sum(axis=1)
    lines = np.stack([group, columns.empty[:, 0], devices], axis=1)
    order = np.lexsort(lines.T)
    lines = lines[order]
    new = np.ones(len(lines), bool)
    new[1:] = (lines[1:] != lines[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    times = np.diff(np.append(starts, len(lines)))
    lines = lines[starts]
    width = columns.device_free.shape[1]
    left = np.where(np.arange(width) < lines[:, 2:3], WHOLE, -1).astype(np.int32)
    return Nodes(lines[:, 0].copy(), times.astype(np.int64), lines[:, 1:2].copy(), left)


def key_of(mix: Mix, shapes: Nodes, *numbers: float) -> tuple[bytes | float, ...]:
    """All that a warm-up depends on."""
    arrays: Sequence[NDArray[np.generic]] = (*mix, *shapes)
    return (*(a.tobytes() for a in arrays), *(str(a.shape).encode() for a in arrays), *numbers)
