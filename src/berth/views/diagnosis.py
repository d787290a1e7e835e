"""What `berth doctor` prints: the verdict in a line, then each cause with its evidence, its mending and its proof."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import TextWrapper
from typing import Any

from rich.console import Console
from rich.text import Text

from berth.base.units import capital, counted
from berth.diagnosis.diagnose import Consequence, Diagnosis
from berth.diagnosis.finding import Finding, Unconfirmed
from berth.diagnosis.focus import Step
from berth.diagnosis.probe import Probe
from berth.diagnosis.words import Severity
from berth.evidence.fact import Origin
from berth.views.tables import QUIET_STYLE

INDENT = 4
LABEL = 9  # columns of "verify" and its like
MOST_CONSEQUENCES = 8
MOST_UNCONFIRMED = 8
LONGEST_QUOTE = 300

_STYLES = {
    Severity.Critical: "bold red",
    Severity.Error: "bold red",
    Severity.Warning: "bold yellow",
    Severity.Info: "bold",
}


def docs_of(one: Finding) -> str:
    return f"docs/findings/{one.layer.name}.md#{one.code.lower()}"


# ---- for programs


def record(
    diagnosis: Diagnosis, notes: Sequence[str] = (), steps: Sequence[Step] = (), probe: Probe | None = None
) -> dict[str, Any]:
    """The stable record."""
    gate = diagnosis.gate
    return {
        "findings": [finding_record(one) for one in diagnosis.findings],
        "consequences": [
            {**finding_record(one.finding), "explained_by": one.explained_by.code} for one in diagnosis.consequences
        ],
        "unconfirmed": [unconfirmed_record(one) for one in diagnosis.unconfirmed],
        "traps": [finding_record(one) for one in diagnosis.traps],
        "gate": {
            "go": gate.go,
            "stage": gate.stage,
            "sentence": gate.sentence,
            "missing": [unconfirmed_record(one) for one in gate.missing],
        },
        "walk": [
            {"layer": one.layer.name, "question": one.question, "holds": one.holds, "answer": one.answer}
            for one in steps
        ],
        "probe": None if probe is None else {"command": probe.command, "passes": probe.passes, "fails": probe.fails},
        "notes": list(notes),
    }


def finding_record(one: Finding) -> dict[str, Any]:
    return {
        "code": one.code,
        "layer": one.layer.name,
        "cause_class": one.cause_class,
        "severity": one.severity.name.lower(),
        "subject": one.subject,
        "title": one.title,
        "cause": one.cause,
        "confidence": one.confidence,
        "evidence": [
            {"source": source_of(origin), "time": origin.time or None, "text": origin.text} for origin in one.evidence
        ],
        "counter_check": one.counter_check,
        "fix": {"steps": list(one.fix.steps), "risk": one.fix.risk, "rollback": one.fix.rollback},
        "verify": list(one.verify),
        "docs": docs_of(one),
    }


def unconfirmed_record(one: Unconfirmed) -> dict[str, Any]:
    return {
        "what": one.what,
        "how": one.how,
        "wanted_for": one.wanted_for,
        "layer": one.layer.name,
        "node": one.node or None,
    }


def source_of(origin: Origin) -> str:
    """Where somebody finds the words again: file or object, and the line."""
    return f"{origin.source}:{origin.line}" if origin.line > 1 else origin.source


# ---- for people


def show(
    diagnosis: Diagnosis, screen: Console, wide: bool = False, steps: Sequence[Step] = (), probe: Probe | None = None,
    *, is_kept: bool = False, is_recorded: bool = False,
) -> None:  # fmt: skip
    """Top-down: what is wrong, how that is known, what to do, how it is proven; then what follows from it.

    `is_kept`: the evidence was written to a folder; `is_recorded`: there is a work record of it.
    """
    _headline(diagnosis, screen)
    if steps:
        screen.print()
        for step in steps:
            _step(step, screen)
    for number, one in enumerate(diagnosis.findings, 1):
        screen.print()
        _finding(number, one, screen)
        _consequences([each for each in diagnosis.consequences if each.explained_by == one], screen)
    if diagnosis.traps:
        screen.print()
        screen.print(Text("looks like a fault and is none", style="bold"))
        for one in diagnosis.traps:
            screen.print()
            _trap(one, screen)
    if diagnosis.unconfirmed:
        screen.print()
        screen.print(Text("not confirmed: nobody collected it", style="bold"))
        shown = diagnosis.unconfirmed if wide else diagnosis.unconfirmed[:MOST_UNCONFIRMED]
        for missing in shown:
            wrapped(screen, f"{missing.layer.name}  ", missing.what)
            _command(screen, missing.how)
        if len(shown) < len(diagnosis.unconfirmed):
            rest = len(diagnosis.unconfirmed) - len(shown)
            screen.print(Text(" " * INDENT + f"and {rest} more (-o wide)", style=QUIET_STYLE))
    if probe is not None:
        screen.print()
        screen.print(Text("a probe that splits it, offered and not run", style="bold"))
        _command(screen, probe.command)
        wrapped(screen, "passes:", probe.passes)
        wrapped(screen, "fails:", probe.fails)
    screen.print()
    _gate(diagnosis, screen)
    if any(one.severity >= Severity.Error for one in diagnosis.findings):
        advice = [
            *([] if is_kept else ["before anything is mended, --preserve DIR keeps what a repair erases"]),
            "after it, berth verify FILE" if is_recorded else "--record FILE, then berth verify",
        ]
        for quiet in _lines("; ".join(advice), screen):
            screen.print(Text(quiet, style=QUIET_STYLE), soft_wrap=True)


def _headline(diagnosis: Diagnosis, screen: Console) -> None:
    if not diagnosis.findings:
        words = "no fault found" if diagnosis.gate.go else "no fault found in what was read"
        screen.print(Text(words, style="bold green" if diagnosis.gate.go else "bold"))
        return
    first = diagnosis.findings[0]
    line = Text()
    line.append(f"{first.layer.name}  ", style=_STYLES[first.severity])
    line.append(first.title, style=_STYLES[first.severity])
    if first.subject:
        line.append(f": {first.subject}")
    more = len(diagnosis.findings) - 1
    rest = [f"and {counted(more, 'other fault')}"] if more else []
    if diagnosis.consequences:
        rest.append(counted(len(diagnosis.consequences), "consequence"))
    if rest:
        line.append("  " + ", ".join(rest), style=QUIET_STYLE)
    screen.print(line)


def _step(step: Step, screen: Console) -> None:
    word, style = {True: ("yes", "green"), False: ("no", "bold red"), None: ("?", "yellow")}[step.holds]
    start = f"{step.layer.name}  {word:<4}"
    words = f"{start}{step.question}: {safe(step.answer)}"
    for number, each in enumerate(_lines(words, screen, hang=" " * len(start))):
        line = Text(each)
        if number == 0:
            line.stylize(style, len(step.layer.name), len(start))
        screen.print(line, soft_wrap=True)


def _finding(number: int, one: Finding, screen: Console) -> None:
    head = Text()
    head.append(f"{number:<{INDENT}}")
    head.append(one.code, style=_STYLES[one.severity])
    facts = (one.layer.name, one.cause_class, one.severity.name.lower(), f"{one.confidence:.0%} sure")
    head.append("  " + ", ".join(facts), style=QUIET_STYLE)
    screen.print(head)
    wrapped(screen, None, capital(one.cause))
    for origin in one.evidence:
        _quote(screen, origin)
    wrapped(screen, "if not:", one.counter_check, style=QUIET_STYLE)
    for step, words in enumerate(one.fix.steps, 1):
        wrapped(screen, "mend:" if step == 1 else "", f"{step}. {words}")
    wrapped(screen, "risk:", one.fix.risk, style=QUIET_STYLE)
    wrapped(screen, "undo:", one.fix.rollback, style=QUIET_STYLE)
    for step, words in enumerate(one.verify):
        wrapped(screen, "" if step else "verify:", words)


def _consequences(under: Sequence[Consequence], screen: Console) -> None:
    for number, each in enumerate(under[:MOST_CONSEQUENCES]):
        one = each.finding
        about = f" ({one.subject})" if one.subject else ""
        wrapped(screen, "" if number else "explains:", f"{one.layer.name} {one.code}: {one.title}{about}")
    if len(under) > MOST_CONSEQUENCES:
        wrapped(screen, "", f"and {len(under) - MOST_CONSEQUENCES} more")


def _trap(one: Finding, screen: Console) -> None:
    head = Text(" " * INDENT)
    head.append(one.code, style="bold")
    head.append(f"  {one.layer.words}, {one.cause_class}", style=QUIET_STYLE)
    screen.print(head)
    wrapped(screen, None, capital(one.cause))
    for origin in one.evidence:
        _quote(screen, origin)
    wrapped(screen, "check:", one.counter_check, style=QUIET_STYLE)


def _gate(diagnosis: Diagnosis, screen: Console) -> None:
    gate = diagnosis.gate
    word = "go on" if gate.go else "stop"
    words = f"{word} at {gate.stage}: {gate.sentence.partition(': ')[2] or gate.sentence}"
    for number, line in enumerate(_lines(words, screen)):
        text = Text(line)
        if number == 0:
            text.stylize("bold green" if gate.go else "bold red", 0, len(word))
        screen.print(text, soft_wrap=True)


def _quote(screen: Console, origin: Origin) -> None:
    """The exact words, one line of the source each, and where they stand."""
    words = [line.strip() for line in origin.text.splitlines() if line.strip()] or ["(no words)"]
    for number, line in enumerate(words):
        shown = line if len(line) <= LONGEST_QUOTE else line[:LONGEST_QUOTE] + " ..."
        wrapped(screen, "" if number else "seen:", safe(shown), style="cyan")
    wrapped(screen, "", f"in {source_of(origin)}", style=QUIET_STYLE)


def safe(words: str) -> str:
    """What a log holds of control characters does not reach the terminal."""
    return "".join(c if c.isprintable() else " " if c == "\t" else repr(c)[1:-1] for c in words)


def _command(screen: Console, words: str) -> None:
    """A command is not broken: it is to be copied."""
    screen.print(Text(" " * (INDENT + LABEL) + safe(words)), soft_wrap=True)


def _lines(words: str, screen: Console, start: str = "", hang: str = "") -> list[str]:
    """Broken at blanks alone: a command that is broken at a hyphen cannot be copied."""
    wrapper = TextWrapper(
        max(20, screen.width), initial_indent=start, subsequent_indent=hang, break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip
    return wrapper.wrap(words)


def wrapped(screen: Console, label: str | None, words: str, style: str = "") -> None:
    """Words beside their label; "" is under the label above, None has the whole width."""
    start = " " * INDENT if label is None else " " * INDENT + f"{label:<{LABEL}} "
    hang = " " * len(start)
    for number, line in enumerate(_lines(words, screen, start, hang)):
        text = Text(line, style=style)
        if number == 0 and label:
            text = Text.assemble((line[: len(start)], QUIET_STYLE), (line[len(start) :], style))
        screen.print(text, soft_wrap=True)
