"""What was asked of `berth simulate jobs` and would do nothing, or not what it seems to: told before anything runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

import click

from berth.base.errors import UNREADABLE, BadInput


def idle_settings(settings: Collection[str], policies: Sequence[str], heeded: Mapping[str, Sequence[str]]) -> list[str]:
    """A note for each setting that some of Berth's own policies do not heed. Raises UsageError for one that none of the
    chosen policies does. `heeded` are the policies that heed a setting."""
    notes = []
    for name in settings:
        if not set(heeded[name]) & set(policies):
            raise click.UsageError(
                f"--set {name}: {', '.join(policies)} {'does' if len(policies) == 1 else 'do'} not go by it. It is of "
                f"{', '.join(heeded[name])}: add one to --policy, or leave it out."
            )
        idle = [p for p in policies if p.startswith("berth") and p not in heeded[name]]
        if idle:
            notes.append(f"{', '.join(idle)}: --set {name} changes nothing there")
    return notes


def no_such_file(option: str, text: str, instead: str) -> BadInput | None:
    """The complaint about what reads like the path of a file that is not there; None where it does not."""
    if "/" not in text and not Path(text).suffix[1:2].isalpha():
        return None
    path = Path(text)
    try:
        there = sorted(one.name for one in path.parent.iterdir())
    except OSError:
        there = []
    close = get_close_matches(path.name, there, 1, 0.6)
    remedy = f"Close to it: {path.parent / close[0]}. " if close else ""
    return BadInput(f"{option} {text}", "there is no such file or folder.", f"{remedy}{instead}", UNREADABLE)
