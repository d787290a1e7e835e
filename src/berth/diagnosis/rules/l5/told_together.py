"""L3 to L5. A story whose lines say nothing alone, and together what usually has one cause.

A title names the component, the next line the state; or the state is told beside the document that it is about. Where
not even that is understood, what the complaint is about is the answer. It is the weakest of hints, and only asked for
where no line alone is understood.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from berth.diagnosis.finding import Answer, Rule
from berth.diagnosis.rules.l5 import told_rows
from berth.diagnosis.rules.l5.told import ROWS
from berth.diagnosis.rules.l6 import told_rows as program_rows
from berth.diagnosis.told_row import Row
from berth.diagnosis.words import WEAK
from berth.evidence.facts import Facts
from berth.evidence.formats.dcgm_metrics import Sample
from berth.evidence.formats.plugin_config import PluginConfig
from berth.evidence.formats.told import Told

# Without one of them a story tells how things are.
STATES = frozenset((
    "trouble", "missing", "unplaced", "crashes", "pending", "rejected", "in spite", "gpus none", "no scaling",
    "evicted", "not begun", "off", "removed", "waits",
))  # fmt: skip
LAST = (*told_rows.LAST, *program_rows.LAST)
MOST_LINES = 6  # of one thought: a longer story has several


def find(facts: Facts) -> Iterator[Answer]:
    pieces = defaultdict[str, list[Told]](list)
    for told in facts.of(Told):
        pieces[told.origin.source].append(told)
    beside = frozenset(_beside(facts)) if len(pieces) == 1 else frozenset()
    elsewhere = {one.origin.source for one in facts.said("reported.")}
    for source, lines in pieces.items():
        if source in elsewhere or any(len(told.topics) > 1 and _fitting(ROWS, told) for told in lines):
            continue
        if row := _together(lines, beside) if len(lines) <= MOST_LINES else _mostly(lines):
            yield row.code.finding(row.cause, WEAK, lines, cause_class=row.cause_class)


def _together(lines: Sequence[Told], beside: frozenset[str]) -> Row | None:
    topics = frozenset(chain(*(told.topics for told in lines), beside))
    if not topics & STATES:
        return None
    whole = replace(lines[0], topics=topics)
    return _fitting(ROWS, whole) or _fitting(LAST, whole)


def _mostly(lines: Sequence[Told]) -> Row | None:
    """What most lines of a long story complain of; of two the one that is asked first."""
    found = Counter(row for told in lines if (row := _fitting(LAST, told)))
    return max(LAST, key=lambda row: found[row]) if found else None


def _fitting(rows: Sequence[Row], told: Told) -> Row | None:
    return next((row for row in rows if row.fits(told)), None)


def _beside(facts: Facts) -> Iterator[str]:
    """What the documents are about that lie beside a single story."""
    configs = list(facts.of(PluginConfig))
    if configs:
        yield "configuration"
    if any(one.resources for one in configs):
        yield "sharing"
    if any(facts.of(Sample)):
        yield "figures"


RULE = Rule((), find)
