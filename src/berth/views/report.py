"""The report of a simulated day: how full the cluster was, who waited, and why the rest still waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from berth.base.units import counted, duration
from berth.model.reasons import Answer, Reason
from berth.simulation.outcome import LeftWaiting, Outcome
from berth.views.tables import (
    BLOCKS,
    HEADER_STYLE,
    QUIET_STYLE,
    Column,
    Signs,
    bar,
    curve,
    pct,
    say,
    show_whole,
    signs,
    table,
)

MOST_VERDICTS = 10
FINAL_PLACES = 4  # of them, kept for what will never start
BAR = 30
INDENT = 2
UNDER_VERDICT = INDENT + 9
ANSWER_WORDS = {
    Answer.Never: ("never", "bold red"),
    Answer.NotYet: ("not yet", "yellow"),
    Answer.Fits: ("fits", "green"),
}


def show(outcome: Outcome, screen: Console) -> None:
    """Print the report. It is made for 100 columns; wider terminals give its sentences more room."""
    draw = signs(screen)
    _head(outcome, screen, draw)
    _classes(outcome, screen, draw)
    _waits(outcome, screen)
    _verdicts(outcome, screen, draw)
    _speed(outcome, screen)


def _title(screen: Console, words: str, note: str = "") -> None:
    line = Text(words, style=HEADER_STYLE)
    if note:
        line.append(f"  {note}", style="not bold dim")
    screen.print(line)


def _say(screen: Console, *sentences: str, style: str = "", indent: int = INDENT) -> None:
    say(screen, " ".join(sentences), indent, style)


def _head(outcome: Outcome, screen: Console, draw: Signs) -> None:
    facts = (
        counted(outcome.nodes, "node"),
        counted(outcome.gpus, "GPU"),
        counted(len(outcome.classes), "GPU class", "GPU classes"),
        f"seed {outcome.seed}",
    )
    _title(screen, "A simulated day", f" {draw.dot} ".join(facts))
    screen.print()
    gangs = f", {outcome.gangs_started} of {counted(outcome.gangs_arrived, 'gang')} among them"
    gangs = gangs if outcome.gangs_arrived else ""
    everyone = outcome.carried_over + outcome.arrived
    _say(
        screen,
        f"{pct(outcome.mean_pct)} of all GPUs were allocated on average, {pct(outcome.peak_pct)} at the peak,",
        f"{pct(outcome.end_pct)} at the end.",
    )
    _say(
        screen,
        f"{outcome.started:,} of {counted(everyone, 'workload')} started{gangs}.",
        f"{counted(outcome.waiting, 'workload')} still wait{'s' if outcome.waiting == 1 else ''}.",
    )
    lowest = min(outcome.hourly_pct) // 10 * 10
    _say(
        screen,
        f"Hour by hour: {curve(outcome.hourly_pct, lowest, 100, draw)}",
        f" (lowest step {lowest:.0f} %, highest 100 % of all GPUs)",
    )
    screen.print()


def _classes(outcome: Outcome, screen: Console, draw: Signs) -> None:
    times = "×" if draw is BLOCKS else "x"
    rows = [
        (
            c.name,
            f"{c.gpus:,}",
            bar(c.mean_pct / 100, c.held_back / (c.gpus or 1), BAR, draw),
            pct(c.mean_pct),
            pct(c.end_pct),
            f"{c.held_back:,}" if c.held_back else draw.dash,
            *(f"{n:,}" if n else draw.dash for n in c.room),
        )
        for c in outcome.classes
    ]
    columns = (
        Column("GPU class"),
        Column("GPUs", number=True),
        Column("allocated"),
        Column("mean", number=True),
        Column("at end", number=True),
        Column("held back", number=True),
        *(Column(f"{times}{n}", number=True) for n in (1, 2, 4, 8)),
    )
    show_whole(screen, table(columns, rows, INDENT))
    _say(
        screen,
        f"{draw.full} allocated, {draw.empty} idle (mean of the day), {draw.held} held back: cordoned, not ready or",
        f"unfit. {times}1 {times}2 {times}4 {times}8: pods of so many GPUs that still fit at the end.",
        style=QUIET_STYLE,
    )
    screen.print()
    _say(
        screen,
        f"Fragmentation: {pct(outcome.stranded_end_pct)} of the GPUs that were idle at the end",
        f"({pct(outcome.stranded_mean_pct)} over the day) were out of reach for a typical request: scattered over",
        "nodes, too small a share of one GPU, or next to too little CPU or memory.",
    )
    screen.print()


def _waits(outcome: Outcome, screen: Console) -> None:
    _title(screen, "From arrival to start", "of what arrived within the day; one cycle a minute")
    rows = [
        (
            w.kind,
            f"{w.arrived:,}",
            f"{w.started:,}",
            *((duration(s) if w.started else "") for s in (w.p50_s, w.p90_s, w.longest_s)),
            f"{w.waiting:,}",
        )
        for w in outcome.waits
        if w.arrived
    ]
    columns = (
        Column("kind"),
        Column("arrived", number=True),
        Column("started", number=True),
        Column("half within", number=True),
        Column("9 of 10 within", number=True),
        Column("longest", number=True),
        Column("still waiting", number=True),
    )
    show_whole(screen, table(columns, rows, INDENT))
    screen.print()


def _verdicts(outcome: Outcome, screen: Console, draw: Signs) -> None:
    chosen = most_telling(outcome.left)
    if not chosen:
        return
    alike = Counter(_reason(one) for one in outcome.left)
    _title(
        screen,
        "Why the rest waits",
        f"one workload for each reason; {len(chosen)} of {counted(len(alike), 'reason')}",
    )
    for one in chosen:
        _verdict(one, alike[_reason(one)] - 1, screen, draw)
    screen.print()


def _verdict(one: LeftWaiting, others: int, screen: Console, draw: Signs) -> None:
    verdict = one.verdict
    assert verdict is not None
    word, style = ANSWER_WORDS[verdict.answer]
    facts = [one.workload, f"{one.gpus:g} GPU{'' if one.gpus == 1 else 's'}"]
    if one.pods > 1:
        facts[1] += f" in {one.pods} pods"
    facts.append(f"waits {duration(one.waited_s)}")
    if others:
        facts.append(f"{others:,} more like it")
    head = Text(" " * INDENT)
    head.append(f"{word:<{UNDER_VERDICT - INDENT}}", style=style)
    head.append(_name_of(one), style="bold")
    told = f" {draw.dot} ".join(facts)
    if head.cell_len + 2 + len(told) <= screen.width:
        head.append("  " + told, style=QUIET_STYLE)
        told = ""
    screen.print(head, soft_wrap=True)
    say(screen, told, UNDER_VERDICT, QUIET_STYLE)
    if verdict.causes:
        cause = verdict.causes[0]
        _say(screen, _sentence(cause.sentence), indent=UNDER_VERDICT)
        if cause.unlock:
            _say(screen, "Would help: " + _sentence(cause.unlock[0], capital=False), indent=UNDER_VERDICT)


def _sentence(words: str, capital: bool = True) -> str:
    first = words[:1].upper() if capital else words[:1]
    return first + words[1:] + ("" if words.endswith((".", "!", "?")) else ".")


def _speed(outcome: Outcome, screen: Console) -> None:
    _title(screen, "Speed")
    _say(
        screen,
        f"{outcome.decisions_per_second:,.0f} decisions a second: {outcome.decisions:,} decisions on workloads in",
        f"{counted(outcome.cycles, 'cycle')} of {outcome.cycle_s:.1f} s together, half of them within",
        f"{outcome.cycle_p50_ms:.1f} ms and 99 of 100 within {outcome.cycle_p99_ms:.0f} ms.",
        f"{counted(outcome.binds, 'pod')} were bound, each checked against books that the scheduler does not keep.",
    )


def most_telling(left: Sequence[LeftWaiting], most: int = MOST_VERDICTS) -> list[LeftWaiting]:
    """One workload for each reason, the one that asks for most; reasons that hold up most GPUs come first.

    What can start one day comes before what never will, which has FINAL_PLACES places of the `most` at least.
    Workloads without a verdict are left out. Ties go to who waits longest, then by name.
    """
    by_reason: dict[Reason | None, list[LeftWaiting]] = {}
    for one in left:
        if one.verdict is not None:
            by_reason.setdefault(_reason(one), []).append(one)
    groups = sorted(
        by_reason.values(),
        key=lambda group: (-sum(one.gpus for one in group), _name_of(group[0])),
    )
    final = [group for group in groups if _is_final(group[0])]
    other = [group for group in groups if not _is_final(group[0])]
    other = other[: most - min(len(final), FINAL_PLACES)] if most > FINAL_PLACES else other
    chosen = (other + final)[:most]
    return [min(group, key=lambda one: (-one.gpus, -one.waited_s, one.workload)) for group in chosen]


def _is_final(one: LeftWaiting) -> bool:
    return one.verdict is not None and one.verdict.answer is Answer.Never


def _reason(one: LeftWaiting) -> Reason | None:
    return one.verdict.reason if one.verdict else None


def _name_of(one: LeftWaiting) -> str:
    reason = _reason(one)
    return reason.name if reason else "no reason given"
