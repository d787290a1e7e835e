"""What `berth preflight` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from rich.console import Console
from rich.text import Text

from berth.base.units import counted
from berth.views.tables import QUIET_STYLE, say

WORDS = {
    "ok": ("ok", "green"),
    "note": ("note", "cyan"),
    "finding": ("finding", "bold yellow"),
    "unseen": ("not seen", "bold red"),
}


class Check(Protocol):
    """One thing that was looked at."""

    @property
    def area(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def said(self) -> str: ...
    @property
    def remedy(self) -> str: ...


def show(checks: Sequence[Check], screen: Console) -> None:
    """A line or two for each check, under its area; how many findings at the end."""
    area = ""
    for check in checks:
        if check.area != area:
            area = check.area
            screen.print(Text(area, style="bold"))
        words, style = WORDS[check.state]
        head = Text("  ")
        head.append(f"{words:<8}  ", style=style)
        head.append(check.said)
        screen.print(head, soft_wrap=True)
        if check.remedy:
            screen.print(Text(f"            {check.remedy}", style=QUIET_STYLE), soft_wrap=True)
    findings, unseen = (sum(c.state == state for c in checks) for state in ("finding", "unseen"))
    end = counted(findings, "finding") + (f", {unseen} not seen" if unseen else "")
    screen.print()
    say(screen, f"{end}, {counted(len(checks), 'check')}.", style=QUIET_STYLE)


def record(checks: Iterable[Check], server: str, version: str, asked_as: str) -> dict[str, Any]:
    """All of it as JSON."""
    return {
        "kind": "Preflight",
        "server": server,
        "version": version,
        "askedAs": asked_as,
        "checks": [
            {"area": c.area, "state": c.state, "said": c.said, "remedy": c.remedy or None} for c in checks
        ],
    }  # fmt: skip
