"""Curves of the packing experiment as a picture: unallocated GPUs against GPUs offered, a line for each
policy.

Matplotlib is imported when a picture is drawn and not before: who wants none need not have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from berth.base.errors import BadInput

if TYPE_CHECKING:
    from berth.simulation.packing import Summary

FORMATS = ("svg", "png")

# Hues that colour-blind readers tell apart (Okabe and Ito, "Color Universal Design", 2008), the pale ones
# darkened for lines on white. A policy keeps its hue and its dashes in every picture.
LOOKS: dict[str, tuple[str, str]] = {
    "berth": ("#0072B2", "-"),
    "fgd": ("#009E73", "--"),
    "bestfit": ("#CC79A7", "-."),
    "packing": ("#56B4E9", "-"),
    "clustering": ("#555555", "--"),
    "dotprod": ("#8C6D00", ":"),
    "random": ("#D55E00", "-"),
}
OTHER = ("#000000", "-.")
SHOWN_FROM = 80  # below this load nearly everything is placed, and all lines are one
INK, QUIET = "#222222", "#777777"


def check_plot(path: Path) -> None:
    """Refuse before any work what could not be drawn or written at the end. Raises BadInput."""
    if path.suffix.lower().lstrip(".") not in FORMATS:
        raise BadInput(f"--plot {path}", "ends in neither .svg nor .png.", "Name for example curves.svg.")
    if not path.parent.is_dir():
        raise BadInput(f"--plot {path}", f"the folder {path.parent} does not exist.", "Create it first.")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        remedy = "Install it with: pip install 'berth[plot]'."
        raise BadInput(f"--plot {path}", "needs matplotlib, which is not installed.", remedy) from None


def draw(summaries: Sequence[Summary], path: Path) -> None:
    """Write the picture. One panel a trace, three abreast. Raises BadInput where it cannot be written."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    traces = list(dict.fromkeys(s.trace for s in summaries))
    top = 1.08 * max((y for s in summaries for _, y in _points(s)), default=1.0)
    across = 2 if len(traces) == 4 else min(3, len(traces))
    down = -(-len(traces) // across)
    settings = {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "berth", "font.family": "sans-serif"}
    with plt.rc_context(settings):
        figure, axes = plt.subplots(
            down, across, figsize=(2.2 + 4.6 * across, 0.9 + 3.4 * down), squeeze=False, sharey=True
        )
        for panel, trace in zip(axes.flat, traces, strict=False):
            _panel(panel, trace, [s for s in summaries if s.trace == trace], top)
        for panel in list(axes.flat)[len(traces) :]:
            panel.set_visible(False)
        for panel in axes[:, 0]:
            panel.set_ylabel("unallocated GPUs, % of the cluster", color=QUIET)
        figure.tight_layout()
        try:
            figure.savefig(path, dpi=160, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
        except OSError as error:
            raise BadInput(f"--plot {path}", f"cannot be written: {error.strerror}.") from None
        finally:
            plt.close(figure)


def _points(summary: Summary) -> list[tuple[int, float]]:
    by_load = summary.mean["unallocated_gpu_pct"]
    return [(int(x), y) for x, y in by_load.items() if y is not None and int(x) >= SHOWN_FROM]


def _panel(panel, trace: str, summaries: Sequence[Summary], top: float) -> None:
    ends: list[tuple[float, str, str]] = []
    for summary in summaries:
        points = _points(summary)
        if not points:
            continue
        colour, dashes = LOOKS.get(summary.policy, OTHER)
        ours = summary.policy == "berth"
        x, y = zip(*points, strict=True)
        panel.plot(x, y, dashes, color=colour, linewidth=2.4 if ours else 1.4, zorder=3 if ours else 2)
        ends.append((y[-1], summary.policy, colour))
    panel.set_ylim(0, top)
    panel.set_xlim(SHOWN_FROM, 130)
    ends.sort()
    for y, (value, policy, colour) in zip(_apart([e[0] for e in ends], top * 0.055), ends, strict=True):
        panel.annotate(
            f"{policy} {value:.1f}", (130, y), xytext=(6, 0), textcoords="offset points",
            color=colour, va="center", annotation_clip=False, fontweight="bold" if policy == "berth" else None,
        )  # fmt: skip
    panel.set_title(trace, loc="left", fontweight="bold", color=INK)
    panel.set_xlabel("GPUs asked by the pods that have arrived, % of the cluster", color=QUIET)
    panel.grid(axis="y", color="#E5E5E5", linewidth=0.8)
    panel.set_axisbelow(True)
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)
    panel.tick_params(length=0, colors=QUIET)


def _apart(values: Sequence[float], gap: float) -> list[float]:
    """The ascending values, moved until labels are `gap` apart: those too close spread about their mean."""
    groups: list[list[float]] = []
    for value in values:
        groups.append([value])
        while len(groups) > 1 and _low(groups[-1], gap) < _low(groups[-2], gap) + gap * len(groups[-2]):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_low(group, gap) + gap * i for group in groups for i in range(len(group))]


def _low(group: Sequence[float], gap: float) -> float:
    return sum(group) / len(group) - gap * (len(group) - 1) / 2
