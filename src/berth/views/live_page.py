"""What a day came to, as a page that stays: figures, charts, what happened in order, who waits and why."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from berth.base.units import counted, duration
from berth.model.reasons import Answer
from berth.simulation.queueing.stories import Kind
from berth.views.jobs_page import document, over_time, waits
from berth.views.live import Watch, expected, gpus_words
from berth.views.live_plain import gave_up, held_hours
from berth.views.live_words import pieces, short

if TYPE_CHECKING:
    from berth.simulation.queueing.figures import Figures

COLOURS = 7  # of the page; the rest of the queues share the last
_MARKS = {
    Kind.NodeFails: "bad", Kind.StopsWithNode: "bad", Kind.CanNeverStart: "bad", Kind.NodeIsBack: "good",
    Kind.GangStarts: "good",
}  # fmt: skip
_STYLE = """<style>
ol.day { list-style: none; margin: 0.6rem 0 0; padding: 0; columns: 26rem auto; column-gap: 2rem; font-size: 0.92rem; }
ol.day li { break-inside: avoid; padding: 0.22rem 0 0.22rem 3.6rem; text-indent: -3.6rem; }
ol.day time { display: inline-block; width: 3.6rem; text-indent: 0; color: var(--quiet);
  font-variant-numeric: tabular-nums; }
ol.day.long li { padding-left: 7.6rem; text-indent: -7.6rem; } ol.day.long time { width: 7.6rem; }
ol.day b { font-weight: 600; } ol.day .bad b, ol.day .good b { color: inherit; }
ol.day .bad, ol.day .good { font-weight: 400; }
td.words { white-space: normal; text-align: left; min-width: 16rem; }
td.left, th.left { text-align: left; }
tr.never td.left { color: var(--bad); }
</style>"""


def page_of(watch: Watch, figures: Figures, notes: Sequence[str], until_s: float) -> str:
    """One file that needs nothing from elsewhere."""
    about = (
        f"{watch.clock(0.0)} to {watch.clock(until_s)} on {counted(len(watch.nodes), 'node')} with "
        f"{counted(watch.gpus, 'GPU')}. Nodes and jobs are simulated, in compressed time; the decisions are those of "
        "the scheduler."
    )
    told = "".join(f"<li>{escape(note)}.</li>" for note in (*notes, *figures.notes))
    body = (
        f"{_STYLE}<p class=about>{escape(about)}</p>{_tiles(watch, figures)}"
        f"<h3>Over time</h3><p class=about>Hours count from {watch.clock(0.0)}.</p>{over_time(figures)}"
        f"<h3>What happened</h3>{_stories(watch)}"
        f"<h3>Who waits, and why</h3>{_waiting(watch, until_s)}"
        f"<h3>Queues</h3>{_queues(figures)}"
        "<h3>How long jobs waited for their first start</h3>"
        f"<p class=about>Part of the jobs that has started within a time, by GPUs of a job.</p>{waits([figures])}"
        f"{f'<h3>Notes</h3><ul class=notes>{told}</ul>' if told else ''}"
    )
    return document(f"Berth: {watch.name}", "Berth · a cluster, alive", watch.name, body)


def _tiles(watch: Watch, figures: Figures) -> str:
    scene = watch.scene
    assert scene is not None
    wait = duration(figures.avg_wait_s) if figures.finished else "-"
    rows = (
        ("GPUs in use, on average", f"{100 * figures.gpu_utilisation:.1f} %", f"of {figures.gpus:,}"),
        (
            "Jobs that ended", f"{figures.finished:,}",
            f"of {figures.jobs:,} that came; {scene.running:,} run{gave_up(figures)}",
        ),
        ("Average wait for the first start", wait, f"{scene.still:,} still wait"),
        ("Set aside for others", f"{watch.set_aside:,}", "for who had priority, or was owed it"),
    )
    tiles = "".join(
        f"<div class=tile><p class=label>{name}</p><p class=value>{value}</p><p class=label>{more}</p></div>"
        for name, value, more in rows
    )
    return f"<div class=tiles>{tiles}</div>"


def _stories(watch: Watch) -> str:
    if not watch.told:
        return "<p class=nothing>Nothing out of the ordinary.</p>"
    rows = []
    for story in watch.told:
        words = "".join(f"<b>{escape(part)}</b>" if job >= 0 else escape(part) for part, job in pieces(story, watch))
        mark = _MARKS.get(story.kind, "")
        rows.append(f"<li><time>{watch.clock(story.at_s)}</time><span class='{mark}'>{words}</span></li>")
    is_long = len(watch.clock(0.0)) > 5
    return f"<ol class='day{' long' if is_long else ''}'>{''.join(rows)}</ol>"


def _waiting(watch: Watch, until_s: float) -> str:
    scene = watch.scene
    assert scene is not None
    if not scene.waits:
        return "<p class=nothing>Nobody.</p>"
    rows = []
    for one in scene.waits:
        verdict = one.verdict
        cause = verdict.causes[0] if verdict is not None and verdict.causes else None
        starts = expected(watch, one) or "–"
        words = short(watch.sentence(cause.sentence)) if cause else ""
        is_never = verdict is not None and verdict.answer is Answer.Never
        rows.append(
            f"<tr{' class=never' if is_never else ''}><th scope=row>{escape(watch.keys[one.job])}</th>"
            f"<td>{gpus_words(float(watch.jobs.width[one.job]))}</td>"
            f"<td>{duration(max(0.0, until_s - one.since_s))}</td><td>{starts}</td>"
            f"<td class=left>{cause.reason.name if cause else ''}</td><td class=words>{escape(words)}</td></tr>"
        )
    heads = "".join(f"<th scope=col>{name}</th>" for name in ("", "asks for", "has waited", "expected start"))
    heads += "<th scope=col class=left>reason</th><th scope=col class=left>in words</th>"
    more = f"<p class=note>{scene.still - len(scene.waits):,} more.</p>" if scene.still > len(scene.waits) else ""
    table = f'<table class=wide aria-label="Who waits, and why"><tr>{heads}</tr>{"".join(rows)}</table>'
    return f"<div class=scroll>{table}</div>{more}"


def _queues(figures: Figures) -> str:
    rows = "".join(
        f"<tr><th scope=row>{escape(q.queue)}</th><td>{q.jobs:,}</td>"
        f"<td>{duration(q.avg_wait_s) if q.jobs else '-'}</td>"
        f"<td>{held_hours(figures, q)}</td><td>{_mean(q.share)}</td><td>{_mean(q.due_share)}</td></tr>"
        for q in figures.queues
    )
    names = ("", "jobs that ended", "average wait", "GPU hours", "share of all GPUs", "due")
    heads = "".join(f"<th scope=col>{name}</th>" for name in names)
    return f'<div class=scroll><table aria-label="Queues"><tr>{heads}</tr>{rows}</table></div>'


def _mean(values: Sequence[float]) -> str:
    return f"{100 * sum(values) / max(1, len(values)):.1f} %"
