"""Who holds which device, as a map: a character a device where there is room, a character a node where there is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.text import Text

from berth.simulation.queueing.scene import ABSENT, DOWN, IDLE, Scene
from berth.views.live import Watch
from berth.views.live_paint import FAILED, QUIET, Paint

_NUMBER = re.compile(r"^(.*?)[-_.]?(\d+)$")
GAP = 2


@dataclass(frozen=True)
class Pool:
    """Nodes whose names differ by a number: `h100-01` to `h100-12`."""

    name: str
    nodes: tuple[int, ...]
    numbers: tuple[str, ...]
    devices: int  # of the largest


def pools_of(names: Sequence[str], devices: Sequence[int]) -> tuple[Pool, ...]:
    found: dict[str, list[tuple[int, str]]] = {}
    for n, name in enumerate(names):
        match = _NUMBER.match(name)
        prefix, number = (match[1], match[2]) if match else (name, "")
        found.setdefault(prefix, []).append((n, number))
    return tuple(
        Pool(name, tuple(n for n, _ in some), _shortest([k for _, k in some]), max(devices[n] for n, _ in some))
        for name, some in found.items()
    )


def _shortest(numbers: Sequence[str]) -> tuple[str, ...]:
    """As many digits as tell them apart."""
    width = len(str(max((int(k) for k in numbers if k), default=0)))
    return tuple(k[-max(width, 2) :] if k else "" for k in numbers)


@dataclass(frozen=True)
class _Sheet:
    """What a map is drawn of and on; `label` columns are for the names of pools, `at_s` is the watcher's clock."""

    watch: Watch
    scene: Scene
    paint: Paint
    at_s: float
    width: int
    label: int


def map_lines(watch: Watch, pools: Sequence[Pool], width: int, rows: int, paint: Paint, at_s: float) -> list[Text]:
    """`rows` lines at most, as fine as they allow. `at_s` is the watcher's clock."""
    if watch.scene is None:
        return []
    sheet = _Sheet(watch, watch.scene, paint, at_s, width, _label_width(pools))
    for draw in (_numbered, _side_by_side, _one_a_node):
        lines = [line for pool in pools for line in draw(sheet, pool)]
        if len(lines) <= rows:
            return lines
    return _folded(watch.scene, pools, width, rows, paint)


def rows_wanted(pools: Sequence[Pool], width: int) -> int:
    """Lines of the map with a character a device and the numbers of the nodes."""
    room = width - _label_width(pools)
    return sum(-(-len(pool.nodes) // _per_line(pool, room, True)) for pool in pools)


def _label_width(pools: Sequence[Pool]) -> int:
    return min(12, max((len(pool.name) for pool in pools), default=0)) + 1


def _per_line(pool: Pool, room: int, with_number: bool) -> int:
    cell = pool.devices + (len(pool.numbers[0]) + 1 + GAP if with_number else 1)
    return max(1, (room + GAP) // cell)


def _numbered(sheet: _Sheet, pool: Pool) -> list[Text]:
    return _devices(sheet, pool, True)


def _side_by_side(sheet: _Sheet, pool: Pool) -> list[Text]:
    return _devices(sheet, pool, False)


def _devices(sheet: _Sheet, pool: Pool, with_number: bool) -> list[Text]:
    per_line = _per_line(pool, sheet.width - sheet.label, with_number)
    lines = []
    for first in range(0, len(pool.nodes), per_line):
        line = _begin(sheet, pool, first)
        for n, number in zip(pool.nodes[first : first + per_line], pool.numbers[first : first + per_line], strict=True):
            if with_number:
                line.append(f"{number} ", style=FAILED if _is_down(sheet.scene, n) else QUIET)
            for g in range(pool.devices):
                line.append_text(_device(sheet, n, g))
            line.append(" " * (GAP if with_number else 1))
        line.rstrip()
        lines.append(line)
    return lines


def _begin(sheet: _Sheet, pool: Pool, first: int) -> Text:
    name = pool.name if len(pool.name) < sheet.label else f"{pool.name[: sheet.label - 2]}."
    return Text(f"{name if first == 0 else '':<{sheet.label}}", style="")


def _is_down(scene: Scene, n: int) -> bool:
    return bool((scene.queue[n] == DOWN).any())


def _device(sheet: _Sheet, n: int, g: int) -> Text:
    scene, paint = sheet.scene, sheet.paint
    queue, held = int(scene.queue[n, g]), float(scene.held[n, g])
    if queue == ABSENT:
        return Text(" ")
    if queue == DOWN:
        return Text(paint.sign("×", "x"), style=FAILED)
    if queue == IDLE:
        return Text(paint.sign("·", "."), style=QUIET)
    is_lit = sheet.watch.lit.get((n, g), 0.0) > sheet.at_s
    if paint.by_letter:
        letter = paint.letters[queue]
        style = f"{paint.colour(queue)}{' reverse' if is_lit else ''}"
        return Text(letter if held > 0.99 else letter.lower(), style=style)
    style = "bold white" if is_lit else paint.colour(queue)
    return Text("▊" if held > 0.99 else paint.rising(max(held, 0.125)), style=style)


def _one_a_node(sheet: _Sheet, pool: Pool) -> list[Text]:
    room = max(1, sheet.width - sheet.label)
    lines = []
    for first in range(0, len(pool.nodes), room):
        line = _begin(sheet, pool, first)
        for n in pool.nodes[first : first + room]:
            line.append_text(_node(sheet.scene, (n,), sheet.paint))
        lines.append(line)
    return lines


def _node(scene: Scene, nodes: Sequence[int], paint: Paint) -> Text:
    """As high as it is full, in the colour of the queue that holds most of it."""
    queue, held = scene.queue[list(nodes)], scene.held[list(nodes)]
    there = queue != ABSENT
    if not there.any():
        return Text(paint.sign("·", "."), style=QUIET)
    if (queue[there] == DOWN).all():
        return Text(paint.sign("×", "x"), style=FAILED)
    mine = queue >= 0
    if not mine.any():
        return Text(paint.sign("·", "."), style=QUIET)
    most = int(np.bincount(queue[mine], weights=held[mine]).argmax())
    part = float(held[mine].sum() / there.sum())
    if paint.by_letter:
        return Text(paint.letters[most] if part > 0.5 else paint.letters[most].lower(), style=paint.colour(most))
    return Text(paint.rising(max(part, 0.125)), style=paint.colour(most))


def _folded(scene: Scene, pools: Sequence[Pool], width: int, rows: int, paint: Paint) -> list[Text]:
    """Several nodes a character, all pools after one another."""
    nodes = [n for pool in pools for n in pool.nodes]
    fold = max(1, -(-len(nodes) // max(1, width * rows)))
    cells = [_node(scene, nodes[i : i + fold], paint) for i in range(0, len(nodes), fold)]
    return [Text.assemble(*cells[i : i + width]) for i in range(0, len(cells), width)][:rows]
