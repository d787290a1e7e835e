"""When something is expected to start, and who is ahead of it, as people read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from berth.base.units import duration, from_milli
from berth.views.told import clock

SOON_S = 60.0


@dataclass(frozen=True)
class Ahead:
    """Workloads of one owner that are decided before another one; owner "": of others, whose names are not told."""

    owner: str
    workloads: int
    gpu_milli: int


def expected(starts_s: Sequence[float], now_s: float) -> str:
    """`in 2 h to 5 h, probably 14:20`; "" where it is not known. `starts_s` are p10, p50, p90 since the epoch, 0.0 for
    one that is not known."""
    p10, p50, p90 = starts_s
    if not p50:
        return ""
    probably = clock(p50, now_s)
    if not p10 or not p90:
        return f"probably {probably}"
    if p10 == float("inf") or p90 == float("inf"):
        return f"in {_rough(p10 - now_s)} or more, probably {probably}"
    low, high = p10 - now_s, p90 - now_s
    if high < SOON_S:
        return "within a minute"
    if low < SOON_S:
        return f"within {_rough(high)}, probably {probably}"
    if _rough(low) == _rough(high):
        return f"in {_rough(low)}, {probably}"
    return f"in {_rough(low)} to {_rough(high)}, probably {probably}"


def ahead_words(some: Sequence[Ahead], most: int = 3) -> str:
    """`research 5 for 40 GPUs, vision 1 for 8 GPUs, 4 others for 32 GPUs`: who asks for most first."""
    ranked = sorted((one for one in some if one.owner), key=lambda one: (-one.gpu_milli, one.owner))
    shown, rest = ranked[:most], [*ranked[most:], *(one for one in some if not one.owner)]
    parts = [f"{one.owner} {one.workloads} for {_gpus(one.gpu_milli)}" for one in shown]
    if rest:
        number, milli = sum(one.workloads for one in rest), sum(one.gpu_milli for one in rest)
        others = f"{number} other{'' if number == 1 else 's'}" if shown else str(number)
        parts.append(f"{others} for {_gpus(milli)}" if milli else others)
    return ", ".join(parts)


def _gpus(milli: int) -> str:
    return f"{from_milli(milli)} GPU{'' if milli == 1000 else 's'}"


def _rough(seconds: float) -> str:
    """One unit, and a second one below three hours or days: nobody knows better."""
    seconds = max(seconds, 0.0)
    if seconds < 5400:
        return f"{max(round(seconds / 60), 1)} min"
    if seconds < 3 * 3600:
        return duration(round(seconds / 1800) * 1800)
    if seconds < 2 * 86_400:
        return f"{round(seconds / 3600)} h"
    return f"{round(seconds / 86_400)} d"
