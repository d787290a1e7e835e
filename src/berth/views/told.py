"""What the scheduler has said of a workload, as people and programs read it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from berth.base.units import capital, counted, duration, from_milli
from berth.model.reasons import Answer
from berth.model.told import Told, ToldCause
from berth.views.tables import QUIET_STYLE, Signs, signs
from berth.views.words import INDENT, WORDS, nodes_words

OLD_S = 300.0  # what was said longer ago may be worth looking at again


def show(told: Sequence[Told], screen: Console, now_s: float) -> None:
    """One block for each workload, in the form of `berth why`."""
    draw = signs(screen)
    for i, one in enumerate(told):
        if i:
            screen.print()
        _head(one, screen, draw, now_s)
        for number, cause in enumerate(one.causes):
            _cause(cause, number, screen)
        if not any(cause.unlock for cause in one.causes):
            for unlock in one.unlock:
                _line(screen, f"would unlock it: {unlock}")
        if place := _place(one):
            _line(screen, place)
        if starts := _starts(one, now_s):
            _line(screen, starts)
        if one.evicted:
            _line(screen, f"lost its place before: {one.evicted}")
        for finding in one.findings:
            _line(screen, f"finding: {finding}")
        _line(screen, _when(one, now_s), style=QUIET_STYLE)


def record(one: Told) -> dict[str, Any]:
    """With the keys of an answer that `berth why` works out itself, and `told` beside them."""
    first = one.causes[0] if one.causes else ToldCause()
    p10, p50, p90 = (moment(at) for at in one.starts_s)
    return {
        "workload": one.key,
        "kind": one.kind,
        "verdict": one.verdict,
        "fits": one.verdict == Answer.Fits.value,
        "running": False,
        "reason": first.reason or None,
        "sentence": first.sentence or None,
        "need": first.need,
        "have": first.have,
        "unit": first.unit or None,
        "where": first.where or None,
        "nodes": dict(first.blocks),
        "codes": dict(first.codes),
        "nearest": [{"node": node, "lacks": lacks} for node, lacks in first.nearest],
        "unlock": list(first.unlock or one.unlock),
        "causes": [_cause_record(cause) for cause in one.causes],
        "pods": one.pods,
        "gpus": one.gpu_milli / 1000,
        "scope": "",
        "placement": [],
        "rules": "berth",
        "provenance": {},
        "remarks": [],
        "told": {
            "at": moment(one.at_s),
            "since": moment(one.since_s),
            "queue": one.queue or None,
            "position": one.position or None,
            "ahead": one.ahead,
            "aheadHere": list(one.ahead_here),
            "expectedStart": {"p10": p10, "p50": p50, "p90": p90} if p50 else None,
            "evicted": {"at": moment(one.evicted_s), "sentence": one.evicted} if one.evicted else None,
            "findings": list(one.findings),
        },
    }


def _cause_record(cause: ToldCause) -> dict[str, Any]:
    return {
        "reason": cause.reason,
        "sentence": cause.sentence,
        "need": cause.need,
        "have": cause.have,
        "unit": cause.unit,
        "where": cause.where,
        "unlock": list(cause.unlock),
        "blocks": dict(cause.blocks),
        "codes": dict(cause.codes),
        "nearest": [{"node": node, "lacks": lacks} for node, lacks in cause.nearest],
        "proven": cause.proven,
    }


def moment(at_s: float) -> str | None:
    """RFC 3339 in UTC; None where there is no moment."""
    if not at_s:
        return None
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def verdict_words(verdict: str) -> tuple[str, str]:
    """(words, style) of a verdict; one that we do not know is shown as it is."""
    try:
        return WORDS[Answer(verdict)]
    except ValueError:
        return verdict or "?", "bold"


def _head(one: Told, screen: Console, draw: Signs, now_s: float) -> None:
    word, style = verdict_words(one.verdict)
    head = Text()
    head.append(f"{word:<9}", style=style)
    if one.reason:
        head.append(f"{one.reason}  ", style="bold")
    head.append(one.key)
    facts = [one.kind]
    if one.pods:
        facts.append(counted(one.pods, "pod"))
    if one.gpu_milli:
        facts.append(f"{from_milli(one.gpu_milli)} GPU{'' if one.gpu_milli == 1000 else 's'}")
    if one.since_s:
        facts.append(f"for {duration(max(0.0, now_s - one.since_s))}")
    head.append("  " + f" {draw.dot} ".join(facts), style=QUIET_STYLE)
    screen.print(head, soft_wrap=True)


def _cause(cause: ToldCause, number: int, screen: Console) -> None:
    sentence = cause.sentence.rstrip(".")
    if sentence:
        lead = f"{cause.reason}: " if number and cause.reason else ""
        _line(screen, f"{lead}{capital(sentence)}.")
    if number:
        return
    if cause.blocks:
        _line(screen, f"nodes: {nodes_words(cause.blocks, cause.codes)}")
    if cause.nearest:
        _line(screen, "nearest: " + ", ".join(f"{node} ({lacks})" for node, lacks in cause.nearest))
    for unlock in cause.unlock:
        _line(screen, f"would unlock it: {unlock}")
    if not cause.proven:
        _line(screen, "not proven: the exact search ended at its bound")


def _place(one: Told) -> str:
    """`number 2 in queue vision; 5 workloads decided before it, in this namespace a, b`."""
    parts = []
    if one.queue:
        parts.append(f"number {one.position} in queue {one.queue}" if one.position else f"in queue {one.queue}")
    if one.ahead:
        among = f", in this namespace {', '.join(one.ahead_here)}" if one.ahead_here else ""
        parts.append(f"{counted(one.ahead, 'workload')} decided before it{among}")
    return "; ".join(parts)


def _starts(one: Told, now_s: float) -> str:
    p10, p50, p90 = one.starts_s
    if not p50:
        return ""
    between = f", between {clock(p10, now_s)} and {clock(p90, now_s)} in eight cases of ten" if p10 and p90 else ""
    return f"expected to start {clock(p50, now_s)}{between}"


def clock(at_s: float, now_s: float) -> str:
    """Hours and minutes, with the day where it is another than now's; local time."""
    at, now = (datetime.fromtimestamp(s, UTC).astimezone() for s in (at_s, now_s))
    return at.strftime("%H:%M" if at.date() == now.date() else "%Y-%m-%d %H:%M")


def _when(one: Told, now_s: float) -> str:
    if not one.at_s:
        return "said by the scheduler"
    old_s = max(0.0, now_s - one.at_s)
    # While nothing changes the scheduler says nothing new; whether it still runs nobody can tell from that.
    hint = "; --anew works it out now" if old_s > OLD_S else ""
    return f"said by the scheduler {duration(old_s)} ago{hint}"


def _line(screen: Console, text: str, style: str = "") -> None:
    screen.print(Text(" " * INDENT + text, style=style), soft_wrap=True)
