"""One frame of a live view: its parts, laid out for a terminal of any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from berth.base.units import counted
from berth.simulation.queueing.scene import Scene
from berth.views.live import Watch
from berth.views.live_map import Pool, map_lines, rows_wanted
from berth.views.live_paint import FAILED, QUIET, Paint, heading
from berth.views.live_parts import (
    curve_lines,
    cut,
    queue_lines,
    running_lines,
    story_lines,
    waiting_lines,
)

WIDE = 104  # columns from which queues and map stand side by side
BESIDE = 3  # columns between them


@dataclass(frozen=True)
class Moment:
    """Now: of the simulation and of the watcher's clock; how fast (simulated seconds a second, inf: as fast as it is
    decided), whether it stands still, and what the last line says."""

    now_s: float
    seen_s: float
    speed: float
    is_paused: bool = False
    keys: str = "q quit"


def frame(watch: Watch, pools: Sequence[Pool], moment: Moment, width: int, height: int, paint: Paint) -> list[Text]:
    """Exactly `height` lines of at most `width` columns."""
    scene = watch.scene
    if scene is None:
        return cut([Text("the first decision ...", style=QUIET)], height)
    lines = [*_head(watch, scene, moment, width, paint)]
    lines += _top(watch, scene, pools, moment, width, height - len(lines), paint)
    lines += _below(watch, scene, moment, width, height - len(lines), paint)
    for line in lines:
        line.truncate(width)
    return cut(lines, height)


def _head(watch: Watch, scene: Scene, moment: Moment, width: int, paint: Paint) -> list[Text]:
    speed = "as fast as it decides" if moment.speed == float("inf") else f"{paint.sign('×', 'x')}{moment.speed:,.0f}"
    right = Text.assemble((watch.clock(moment.now_s), "bold"), (f"  {speed}", QUIET))
    if moment.is_paused:
        right = Text.assemble(("paused  ", "yellow"), right)
    left = Text.assemble((" BERTH ", "bold reverse"), f" {watch.name}  ")
    left.append(f"{counted(len(watch.nodes), 'node')} {paint.sign('·', '-')} {counted(watch.gpus, 'GPU')}", style=QUIET)
    left.truncate(max(0, width - right.cell_len - 2))
    first = Text.assemble(left, " " * max(1, width - left.cell_len - right.cell_len), right)
    used = float(scene.used.sum())
    facts = Text.assemble((f"{100 * used / max(1, watch.gpus):.0f} %", "bold"), (" in use", QUIET))
    for number, words in (
        (scene.running, "running"), (scene.still, "waiting"), (scene.ended, "ended"), (watch.set_aside, "set aside"),
    ):  # fmt: skip
        facts.append(f"   {number:,}").append(f" {words}", style=QUIET)
    keys = Text(moment.keys, style=QUIET)
    room = width - facts.cell_len - keys.cell_len - 4
    if room >= 10:
        full = round(room * watch.done(moment.now_s))
        bar = Text.assemble((paint.sign("━", "=") * full, "cyan"), (paint.sign("─", "-") * (room - full), QUIET))
        facts = Text.assemble(facts, "  ", bar, "  ", keys)
    return [first, facts]


def _top(
    watch: Watch, scene: Scene, pools: Sequence[Pool], moment: Moment, width: int, rows: int, paint: Paint
) -> list[Text]:
    """Queues and map: side by side, or one below the other."""
    queues = len(watch.jobs.queues) + 1
    if width < WIDE:
        some = min(queues, max(0, rows // 3))
        left = queue_lines(watch, scene, width, some, paint) if some > 1 else []
        room = min(rows_wanted(pools, width), max(0, rows - len(left) - 5))
        return [*left, *map_lines(watch, pools, width, room, paint, moment.seen_s)]
    right_width = min(width // 2 + 8, _widest(pools))
    left_width = width - right_width - BESIDE
    tall = min(max(queues + 2, rows_wanted(pools, right_width)), max(3, rows // 2))
    left = queue_lines(watch, scene, left_width, min(tall, queues), paint)
    if tall - len(left) >= 2:
        left += [*cut([], tall - len(left) - 1), _legend(paint)]
    right = map_lines(watch, pools, right_width, tall, paint, moment.seen_s)
    both = zip(cut(left, tall), cut(right, tall), strict=True)
    return [Text(""), *(_joined(one, other, left_width) for one, other in both)]


def _legend(paint: Paint) -> Text:
    """What the characters of the map and of the bars mean."""
    if paint.by_letter:
        device, share = paint.letters[0], paint.letters[0].lower()
    else:
        device, share = "▊", "▄"
    signs = ((device, "a GPU"), (share, "part of one"), (paint.sign("·", "."), "idle"), (paint.sign("×", "x"), "down"))
    line = Text.assemble((paint.sign("│", "|"), "bold"), (" due  ", QUIET))
    for sign, words in signs:
        line.append(sign, style=FAILED if words == "down" else "").append(f" {words}  ", style=QUIET)
    return line


def _widest(pools: Sequence[Pool]) -> int:
    """Columns in which the largest pool stands in lines of four nodes."""
    return max((len(pool.name) + 2 + 4 * (pool.devices + 5) for pool in pools), default=60)


def _joined(left: Text, right: Text, width: int) -> Text:
    line = left.copy()
    line.truncate(width)
    return Text.assemble(line, " " * (width - line.cell_len + BESIDE), right)


def _below(watch: Watch, scene: Scene, moment: Moment, width: int, rows: int, paint: Paint) -> list[Text]:
    """Who waits, what happened, and where there is room the day and who runs."""
    if rows < 4:
        return story_lines(watch, width, rows, paint)
    lines: list[Text] = []
    if rows >= 20:
        tall = min(8, 5 + (rows - 20) // 5)
        lines += [Text(""), *curve_lines(watch, width, tall, paint, moment.now_s)]
    rest = rows - len(lines)
    runs = min(9, rest // 4) if rest >= 24 else 0
    waits = max(2, min(scene.still + 1, (rest - runs) * 2 // 5)) if rest >= 8 else 3
    waits = max(waits, (rest - runs) // 3) if rest >= 8 else waits
    lines += cut(waiting_lines(watch, scene, width, waits, paint, moment.now_s), waits)
    if runs:
        lines += cut(running_lines(watch, scene, width, runs, paint, moment.now_s), runs)
    left = rows - len(lines)
    lines.append(heading("WHAT HAPPENS", width, paint))
    lines += story_lines(watch, width, left - 1, paint)
    return lines
