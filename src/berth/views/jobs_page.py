"""Jobs over time as one page to show: policies side by side, then what each made of the cluster. Nothing is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby
from math import isnan
from typing import TYPE_CHECKING

from berth.base.units import counted
from berth.views import charts
from berth.views.jobs import TIMES, all_hours, duration, durations, hours
from berth.views.jobs_style import STYLE

if TYPE_CHECKING:
    from berth.simulation.queueing.figures import Figures, OfQueue, OfSize

MOST_QUEUES = charts.COLOURS - 1  # the others are shown together
MOST_CAUSES = charts.COLOURS - 1
# First among those that are shown, and unfolded.
OWN = ("berth", "berth-blind", "berth-live", "berth-live-least-left", "berth-live-set-aside")
ABOUT = {
    "berth": "The scheduling cycle, told how long each job still takes; who runs may be set aside for who should run.",
    "berth-blind": "The same cycle, not told how long jobs take: it goes by what those like each took before.",
    "berth-live": "The same cycle as it schedules clusters: by shares, priority and age, with backfill by limits.",
    "berth-live-least-left": "The same, within a queue by what is left to do, as far as limits and the past tell.",
    "berth-live-set-aside": "The same, and who saves its work is set aside for shorter work of its queue.",
    "fifo": "First come, first served; nobody passes.",
    "sjf": "The shortest of those that fit; nobody is set aside.",
    "srtf": "The least time left goes first; who runs may be set aside.",
    "srsf": "The least time left times GPUs goes first; who runs may be set aside.",
    "srsf-sticky": "As srsf, and who runs on stays where it is.",
    "tiresias-l": "Who has had least GPU time goes first; durations are not known, places are not looked at.",
}


def page(runs: Sequence[Figures]) -> str:
    """`runs` are those of one command, traces together."""
    traces = [list(group) for _, group in groupby(runs, key=lambda run: run.trace)]
    names = ", ".join(group[0].trace for group in traces)
    body = "".join(_trace(group) for group in traces)
    return document(f"Jobs over time: {names}", "Berth · simulation of jobs over time", names, body)


def document(title: str, kicker: str, heading: str, body: str) -> str:
    """The whole page, with what the words of figures mean at its end."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<header><p class=kicker>{escape(kicker)}</p>"
        f"<h1>{escape(heading)}</h1></header>\n<main>{body}</main>\n<footer>{_WORDS}</footer>\n</body>\n</html>\n"
    )


def _trace(runs: Sequence[Figures]) -> str:
    first = runs[0]
    best = min(range(len(runs)), key=lambda i: (not runs[i].is_whole, not runs[i].finished, runs[i].avg_jct_s))
    shown = sorted(runs, key=lambda run: (run.policy not in OWN, run is not runs[best]))
    waited = (
        "<h3>How long jobs wait for their first start</h3>"
        "<p class=about>Part of the jobs that has started within a time, by GPUs of a job. The further to the upper "
        f"left, the better.</p>{waits(runs)}"
        if any(run.sizes for run in runs)
        else ""
    )
    notes = "".join(f"<li>{escape(note)}.</li>" for note in dict.fromkeys(n for run in runs for n in run.notes))
    return (
        f"<section><h2>{escape(first.trace)}</h2>"
        f"<p class=about>{counted(first.jobs, 'job')} on {counted(first.gpus, 'GPU')} over "
        f"{charts.moment(_length_s(runs))}; "
        f"{escape(first.overhead.partition(': ')[2] or first.overhead)}.</p>"
        f"{_tiles(runs, best)}"
        f"<h3>Policies side by side</h3>{_table(runs, best)}"
        f"{waited}"
        f"<h3>What each policy made of the cluster</h3>{''.join(_policies(shown))}"
        f"{f'<h3>Notes</h3><ul class=notes>{notes}</ul>' if notes else ''}</section>"
    )


def _length_s(runs: Sequence[Figures]) -> float:
    return max(run.makespan_s if run.finished else run.part_s * len(run.waiting) for run in runs)


def _tiles(runs: Sequence[Figures], best: int) -> str:
    """What the policy that is looked at first comes to, and how far it is from the plainest."""
    own = next((run for run in runs if run.policy in OWN), runs[best])
    other = next((run for run in runs if run.policy == "fifo" and run is not own), None)
    if other is None:
        other = max((run for run in runs if run is not own), key=_bar_s, default=None)
    at = next(i for i, run in enumerate(runs) if run is own)
    average, wait = (durations([of(run) for run in runs])[at] for of in (TIMES[0], TIMES[-1]))
    rows: list[tuple[str, str, Callable[[Figures], float], bool]] = [
        ("Average time to completion", average, lambda run: run.avg_jct_s, False),
        ("Average wait for the first start", wait, lambda run: run.avg_wait_s, False),
        ("GPUs in use", f"{100 * own.gpu_utilisation:.1f} %", lambda run: run.gpu_utilisation, True),
        ("Idle while wanted", hours(own.stranded_gpu_hours), lambda run: run.stranded_gpu_hours, False),
    ]
    tiles = "".join(
        f"<div class=tile><p class=label>{name}</p><p class=value>{value}</p>"
        f"<p class=label>{_against(of(own), of(other), other.policy, more_is_better) if other else ''}</p></div>"
        for name, value, of, more_is_better in rows
    )
    return f"<p class=about>With <strong>{escape(own.policy)}</strong>:</p><div class=tiles>{tiles}</div>"


def _bar_s(run: Figures) -> float:
    return run.avg_jct_s if run.finished else 0.0


def _against(value: float, other: float, policy: str, more_is_better: bool) -> str:
    if not other or isnan(value) or isnan(other):
        return ""
    change = 100 * (value / other - 1)
    if abs(change) < 0.5:
        return f"as with {escape(policy)}"
    digits = int(-100 < change < -98.5)  # 99.6 % less is not all of it
    words = f"{abs(change):.{digits}f} % {'more' if change > 0 else 'less'} than"
    kind = " class=good" if (change > 0) is more_is_better else " class=bad"
    return f"<span{kind}>{words}</span> with {escape(policy)}"


def _table(runs: Sequence[Figures], best: int) -> str:
    has_deadlines = any(run.deadlines_met or run.deadlines_missed for run in runs)
    heads = (
        "", "average", "p50", "p95", "p99", "makespan", "average wait", "in use", "idle while wanted", "set aside",
        "lost", *(("deadlines met",) if has_deadlines else ()),
    )  # fmt: skip
    longest = max(map(_bar_s, runs)) or 1.0
    times = [durations([of(run) for run in runs]) for of in TIMES]
    idle, lost = (all_hours([of(run) for run in runs]) for of in (
        lambda run: run.stranded_gpu_hours, lambda run: run.lost_gpu_hours,
    ))  # fmt: skip
    rows = []
    for i, run in enumerate(runs):
        average, *others = (column[i] for column in times)
        cells = [*others, f"{100 * run.gpu_utilisation:.1f} %", idle[i], f"{run.preemptions:,}", lost[i]]
        if has_deadlines:
            cells.append(f"{run.deadlines_met} of {run.deadlines_met + run.deadlines_missed}")
        bar = f'<td class=bar style="--part:{100 * _bar_s(run) / longest:.1f}%"><b>{average}</b></td>'
        is_best = i == best and run.is_whole and len(runs) > 1
        rows.append(
            f"<tr{' class=best' if is_best else ''}><th scope=row>{escape(run.policy)}</th>{bar}"
            f"{''.join(f'<td>{words}</td>' for words in cells)}</tr>"
        )
    head = "".join(f"<th scope=col>{name}</th>" for name in heads)
    about = "Times from submission to end; the lowest average is marked."
    table = f'<table class=wide aria-label="Policies side by side"><tr>{head}</tr>{"".join(rows)}</table>'
    return f"<p class=about>{about}</p><div class=scroll>{table}</div>"


def waits(runs: Sequence[Figures]) -> str:
    """Distributions by GPUs of a job, a line for each policy; and the figures."""
    names = list(dict.fromkeys(size.gpus for run in runs for size in run.sizes))
    colours = list(range(len(runs)))
    most = max((size.waits_s[-1] for run in runs for size in run.sizes if size.waits_s), default=1.0)
    least, most = 10.0, max(most, 3600.0)
    ticks = [
        (charts.log_place(at, least, most), words)
        for at, words in ((10, "10 s"), (600, "10 min"), (36_000, "10 h"), (864_000, "10 d"))
        if at <= most
    ]
    plots = []
    for name in names:
        of = [(run, next((size for size in run.sizes if size.gpus == name), None)) for run in runs]
        series = [(run.policy, size.waits_s) for run, size in of if size is not None]
        told = f"Waits of jobs of {_gpus(name)}: " + "; ".join(
            f"{run.policy} half within {duration(size.p50_wait_s)}, 95 % within {duration(size.p95_wait_s)}"
            for run, size in of
            if size is not None
        )
        count = max(size.jobs for _, size in of if size is not None)
        used = [colour for colour, (_, size) in zip(colours, of, strict=True) if size is not None]
        chart = charts.distributions(series, least, most, told, ticks, used, OWN)
        plots.append(
            f"<figure><figcaption>{_gpus(name)} <small>{counted(count, 'job')}</small></figcaption>{chart}</figure>"
        )
    legend = charts.legend([run.policy for run in runs], colours, lines=True)
    return f"{legend}<div class=small-grid>{''.join(plots)}</div>{_sizes(runs, names)}"


def _gpus(name: str) -> str:
    return f"{name} GPU{'' if name == '1' else 's'}"


def _sizes(runs: Sequence[Figures], names: Sequence[str]) -> str:
    """Waits by GPUs of a job; a cell is darker the longer the wait is in its column."""
    waits = [{size.gpus: size for size in run.sizes} for run in runs]
    longest = {name: max(of[name].avg_wait_s for of in waits if name in of) or 1.0 for name in names}
    told = {name: iter(durations([s for of in waits if name in of for s in _both(of[name])])) for name in names}
    rows = "".join(
        f"<tr><th scope=row>{escape(run.policy)}</th>"
        + "".join(
            f'<td class=heat style="--heat:{of[name].avg_wait_s / longest[name]:.2f}">{next(told[name])}'
            f"<small>p95 {next(told[name])}</small></td>"
            if name in of
            else "<td></td>"
            for name in names
        )
        + "</tr>"
        for run, of in zip(runs, waits, strict=True)
    )
    heads = "".join(f"<th scope=col>{_gpus(name)}</th>" for name in names)
    about = "Average wait for the first start, and the 95th percentile."
    table = f'<table aria-label="Waits by size"><tr><th></th>{heads}</tr>{rows}</table>'
    return (
        f"<details class=data open><summary>Figures</summary><p class=note>{about}</p><div class=scroll>{table}</div>"
        "</details>"
    )


def _both(size: OfSize) -> tuple[float, float]:
    return size.avg_wait_s, size.p95_wait_s


def _policies(shown: Sequence[Figures]) -> list[str]:
    averages = durations([run.avg_jct_s for run in shown])
    return [_policy(run, i == 0, average) for i, (run, average) in enumerate(zip(shown, averages, strict=True))]


def _policy(run: Figures, is_first: bool, average: str) -> str:
    in_use = f"{100 * run.gpu_utilisation:.0f} % in use"
    told = f"{average} on average · {in_use} · {run.preemptions:,} set aside"
    is_open = " open" if is_first or run.policy in OWN else ""
    return (
        f"<details class=policy{is_open}><summary><span class=name>{escape(run.policy)}</span> <small>{told}</small>"
        f"</summary><p class=about>{ABOUT.get(run.policy, '')}</p>{over_time(run)}</details>"
    )


def over_time(run: Figures) -> str:
    """Charts of one policy: what was in use, who waited and why, what was idle, and shares."""
    length = run.part_s * len(run.waiting)
    x, rows = charts.time_ticks(length), [charts.moment(length * i / charts.ROWS) for i in range(charts.ROWS)]
    parts = [_in_use(run, x, rows), _waiting(run, x, rows), _stranded(run, x, rows), _shares(run, x, rows)]
    return f"<div class=grid>{''.join(parts)}</div>"


def _in_use(run: Figures, x: charts.Ticks, rows: Sequence[str]) -> str:
    gpus: list[charts.Series] = [(name, [part * run.gpus for part in share]) for name, share, _ in _largest(run.queues)]
    told = f"GPUs in use over time, {100 * run.gpu_utilisation:.0f} % of {run.gpus:,} on average"
    ticks = ((0.5, charts.number(run.gpus / 2)), (1.0, f"{run.gpus:,}"))
    above: list[charts.Series] = []
    if min(run.up, default=run.gpus) < run.gpus:
        above.append(("GPUs of nodes that are up", run.up))
    chart = charts.areas(gpus, run.gpus, told, x, ticks, above)
    legend = charts.legend([name for name, _ in gpus]) if len(gpus) > 1 else ""
    return _figure(
        "GPUs in use, by queue" if len(gpus) > 1 else "GPUs in use", chart, legend, gpus + above, rows, "GPUs"
    )


def _waiting(run: Figures, x: charts.Ticks, rows: Sequence[str]) -> str:
    """By cause where the policy gives one, else by size."""
    series: list[charts.Series]
    if run.causes:
        series = [(_sentence(cause.words), cause.waiting) for cause in run.causes[:MOST_CAUSES]]
        if rest := run.causes[MOST_CAUSES:]:
            series.append(("Other causes", [sum(one) for one in zip(*(c.waiting for c in rest), strict=True)]))
        title = "Jobs that wait, and why"
    else:
        series = [(_gpus(size.gpus), size.waiting) for size in run.sizes if max(size.waiting, default=0.0) > 0]
        title = "Jobs that wait for their first start, by size"
    if not series:
        return _nothing("Jobs that wait", "Nobody had to wait.")
    most, ticks = charts.round_ticks(max(sum(one) for one in zip(*(values for _, values in series), strict=True)))
    chart = charts.areas(series, most, title, x, ticks)
    return _figure(title, chart, charts.legend([name for name, _ in series]), series, rows, "Jobs")


def _stranded(run: Figures, x: charts.Ticks, rows: Sequence[str]) -> str:
    title = "GPUs that are idle while those who wait want them"
    if max(run.stranded, default=0.0) < 0.005:
        return _nothing(title, "None, at any time.")
    most, ticks = charts.round_ticks(max(run.stranded))
    chart = charts.shaded(
        ("idle and wanted", run.stranded), most, f"{title}: {hours(run.stranded_gpu_hours)}", x, ticks
    )
    words = (
        f"<p class=note>{hours(run.stranded_gpu_hours)} in all: scattered over nodes, kept for who comes first, or "
        "behind a limit.</p>"
    )
    return _figure(title, chart, words, [("idle and wanted", run.stranded)], rows, "GPUs")


def _shares(run: Figures, x: charts.Ticks, rows: Sequence[str]) -> str:
    shown = _largest(run.queues)
    if len(shown) < 2:
        return ""
    highest = 100 * max(max(max(share, default=0.0), max(due, default=0.0)) for _, share, due in shown)
    most, ticks = charts.round_ticks(highest or 1.0)
    ticks = tuple((at, f"{words} %") for at, words in ticks)
    plots = []
    for colour, (name, share, due) in enumerate(shown):
        own, owed = [100 * part for part in share], [100 * part for part in due]
        told = f"Share of {name}: {sum(own) / len(own):.0f} % on average, {sum(owed) / len(owed):.0f} % due"
        chart = charts.against(
            (f"{name}: used", own), ("due", owed), colour, most, told, x[:: max(len(x) // 3, 1)], ticks
        )
        plots.append(f"<figure><figcaption>{escape(name)}</figcaption>{chart}</figure>")
    both: list[charts.Series] = [one for name, share, due in shown for one in (
        (name, [100 * part for part in share]), (f"due to {name}", [100 * part for part in due])
    )]  # fmt: skip
    return (
        "<figure class=whole><figcaption>Share of each queue, and what is due to it (dashed)</figcaption>"
        f"<div class=small-grid>{''.join(plots)}</div>{charts.figures(both, rows, 'Per cent of all GPUs')}</figure>"
    )


def _figure(title: str, chart: str, below: str, series: Sequence[charts.Series], rows: Sequence[str], unit: str) -> str:
    table = charts.figures(series, rows, unit)
    return f"<figure><figcaption>{escape(title)}</figcaption>{chart}{below}{table}</figure>"


def _nothing(title: str, words: str) -> str:
    return f"<figure><figcaption>{escape(title)}</figcaption><p class=nothing>{words}</p></figure>"


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _largest(queues: Sequence[OfQueue]) -> list[tuple[str, Sequence[float], Sequence[float]]]:
    """Queues with their share and due share, by GPU time; those beyond the most are one."""
    ranked = sorted(queues, key=lambda queue: -queue.gpu_hours)
    shown: list[tuple[str, Sequence[float], Sequence[float]]] = [
        (queue.queue, queue.share, queue.due_share) for queue in ranked[:MOST_QUEUES]
    ]
    if rest := ranked[MOST_QUEUES:]:
        share = [sum(values) for values in zip(*(queue.share for queue in rest), strict=True)]
        due = [sum(values) for values in zip(*(queue.due_share for queue in rest), strict=True)]
        shown.append((f"{len(rest)} others", share, due))
    return shown


_WORDS = (
    "<h3>Words</h3><dl>"
    "<dt>time to completion</dt><dd>from submission to end; p95: 95 % of the jobs took no longer</dd>"
    "<dt>makespan</dt><dd>from the first submission to the last end</dd>"
    "<dt>in use</dt><dd>GPU time held by jobs, of all GPU time until the last end</dd>"
    "<dt>idle while wanted</dt><dd>idle GPUs, up to as many as those who wait ask for</dd>"
    "<dt>set aside</dt><dd>how often a running job made room for another, or lost its node</dd>"
    "<dt>lost</dt><dd>GPU time of starts, and of work that has to be done again</dd>"
    "<dt>due</dt><dd>what a queue is owed by its weight: capacity rises for all alike until one has what it wants</dd>"
    "</dl>"
)
