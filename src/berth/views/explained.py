"""What `berth doctor --explain` prints: what a code of a finding means, or what an Xid is and what it leads to."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from berth.base.units import capital
from berth.diagnosis.finding import Code
from berth.diagnosis.xid.catalogue import ACTIONS, STANDINGS, Xid
from berth.views.diagnosis import wrapped
from berth.views.tables import QUIET_STYLE


def code_record(one: Code) -> dict[str, Any]:
    """The stable record of a code; fields are named as those of findings."""
    return {
        "code": one.name,
        "layer": one.layer.name,
        "cause_class": one.cause_class,
        "severity": one.severity.name.lower(),
        "title": one.title,
        "is_trap": one.is_trap,
        "meaning": one.meaning,
        "known_by": one.known_by,
        "disproved_by": one.disproved_by,
        "counter_check": one.counter_check,
        "fix": {"steps": list(one.fix.steps), "risk": one.fix.risk, "rollback": one.fix.rollback},
        "verify": list(one.verify),
        "sources": list(one.sources),
        "docs": f"docs/findings/{one.layer.name}.md#{one.name.lower()}",
    }


def xid_record(one: Xid, leads_to: Code | None) -> dict[str, Any]:
    """The stable record of an Xid; `finding` is what one line of it alone makes, null where that is nothing."""
    return {
        "xid": one.code,
        "name": one.name,
        "meaning": one.meaning,
        "severity": one.severity.name.lower(),
        "standing": STANDINGS[one.standing],
        "action": one.action or None,
        "action_meaning": ACTIONS[one.action],
        "then": one.then or None,
        "other_views": list(one.other_views),
        "generations": list(one.generations),
        "finding": None if leads_to is None else code_record(leads_to),
    }


def show_code(one: Code, screen: Console) -> None:
    """All that is known of a code."""
    screen.print(Text(f"{one.name}: {one.title}", style="bold"))
    facts = (one.layer.name, one.layer.words, one.cause_class, one.severity.name.lower())
    screen.print(Text(", ".join(facts), style=QUIET_STYLE))
    for label, words in (
        ("means:", one.meaning), ("known by:", one.known_by), ("if not:", one.disproved_by),
        ("check:", one.counter_check),
    ):  # fmt: skip
        wrapped(screen, label, words)
    for step, words in enumerate(one.fix.steps, 1):
        wrapped(screen, "mend:" if step == 1 else "", f"{step}. {words}")
    wrapped(screen, "risk:", one.fix.risk)
    wrapped(screen, "undo:", one.fix.rollback)
    for step, words in enumerate(one.verify):
        wrapped(screen, "" if step else "verify:", words)
    for step, words in enumerate(one.sources):
        wrapped(screen, "" if step else "sources:", words)


def show_xid(one: Xid, leads_to: Code | None, screen: Console) -> None:
    """The row of the catalogue, then the finding that it makes."""
    screen.print(Text(one.short, style="bold"))
    screen.print(Text(f"{one.severity.name.lower()}, {STANDINGS[one.standing]}", style=QUIET_STYLE))
    wrapped(screen, "means:", f"{capital(one.meaning)}.")
    action = f"{one.action}: {ACTIONS[one.action]}" if one.action else ACTIONS[""]
    wrapped(screen, "action:", f"{action}{f'; then {one.then}' if one.then else ''}")
    for number, view in enumerate(one.other_views):
        wrapped(screen, "" if number else "others:", view)
    if leads_to is None:
        wrapped(screen, "finding:", "none by itself: it follows another")
        return
    wrapped(screen, "finding:", leads_to.name)
    screen.print()
    show_code(leads_to, screen)
