"""One answer of preflight: what was looked at, how it is, and what mends it."""

from __future__ import annotations

from dataclasses import dataclass

OK, NOTE, FINDING, UNSEEN = "ok", "note", "finding", "unseen"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. `remedy` is empty where nothing is to be done."""

    area: str
    state: str
    said: str
    remedy: str = ""


def unseen(area: str, said: str) -> Check:
    """What could not be looked at, with the API server's words."""
    return Check(area, UNSEEN, f"not looked at: {said or 'it may not be seen'}", "Ask as somebody who may list them.")
