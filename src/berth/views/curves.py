"""Curves of the packing experiment as a picture: unallocated GPUs against GPUs offered, a line for each
policy.

Matplotlib is imported when a picture is drawn and not before: who wants none need not have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from berth.base.errors import BadInput
from berth.simulation.packing import Summary

FORMATS = ("svg", "png")

# Eight hues that colour-blind readers tell apart (Okabe and Ito, "Color Universal Design", 2008), dark enough
# for lines on white; Berth's own policy gets the strongest one.
OURS = "#0072B2"
PALETTE = ("#D55E00", "#009E73", "#CC79A7", "#8C6D00", "#56B4E9", "#555555", "#000000")
DASHES = ("-", "--", "-.", ":")
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
    policies = list(dict.fromkeys(s.policy for s in summaries))
    across = min(3, len(traces))
    down = -(-len(traces) // across)
    settings = {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "berth", "font.family": "sans-serif"}
    with plt.rc_context(settings):
        figure, axes = plt.subplots(
            down, across, figsize=(2.2 + 4.6 * across, 0.9 + 3.4 * down), squeeze=False, sharey=True
        )
        for panel, trace in zip(axes.flat, traces, strict=False):
            _panel(panel, trace, [s for s in summaries if s.trace == trace], policies)
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


def _panel(panel, trace: str, summaries: Sequence[Summary], policies: Sequence[str]) -> None:
    ends: list[tuple[float, str, str]] = []
    for summary in summaries:
        by_load = summary.mean["unallocated_gpu_pct"]
        points = [(int(load), value) for load, value in by_load.items() if value is not None]
        if not points:
            continue
        place = policies.index(summary.policy)
        colour = _colour(summary.policy, policies)
        x, y = zip(*points, strict=True)
        ours = summary.policy.startswith("berth")
        panel.plot(
            x, y, color=colour, linewidth=2.4 if ours else 1.4, linestyle=DASHES[place % 4], zorder=3 if ours else 2
        )
        ends.append((y[-1], summary.policy, colour))
    if not ends:
        return
    shown = [
        v for s in summaries for load, v in s.mean["unallocated_gpu_pct"].items() if v is not None and int(load) >= 80
    ]
    top = max(shown) * 1.08
    panel.set_ylim(0, top)
    panel.set_xlim(80, 130)
    for y, (value, policy, colour) in zip(_apart([e[0] for e in sorted(ends)], top * 0.055), sorted(ends), strict=True):
        panel.annotate(
            f"{policy} {value:.1f}", (130, y), xytext=(6, 0), textcoords="offset points",
            color=colour, va="center", annotation_clip=False, fontweight="bold" if policy.startswith("berth") else None,
        )  # fmt: skip
    panel.set_title(trace, loc="left", fontweight="bold", color=INK)
    panel.set_xlabel("GPUs asked by the pods that have arrived, % of the cluster", color=QUIET)
    panel.grid(axis="y", color="#E5E5E5", linewidth=0.8)
    panel.set_axisbelow(True)
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)
    panel.tick_params(length=0, colors=QUIET)


def _colour(policy: str, policies: Sequence[str]) -> str:
    if policy.startswith("berth"):
        return OURS
    others = [p for p in policies if not p.startswith("berth")]
    return PALETTE[others.index(policy) % len(PALETTE)]


def _apart(values: Sequence[float], gap: float) -> list[float]:
    """The ascending values moved as little upwards as keeps labels `gap` apart."""
    placed: list[float] = []
    for value in values:
        placed.append(max(value, placed[-1] + gap) if placed else value)
    return placed
