"""A row of what somebody's own words mostly mean: the topics of a line, and the code that answers for them."""

from __future__ import annotations

from typing import NamedTuple

from berth.diagnosis.finding import Code
from berth.diagnosis.words import WEAK, CauseClass
from berth.evidence.formats.told import Told


class Row(NamedTuple):
    """What a line speaks of, and what it mostly means."""

    topics: str  # all of them, parted by commas
    code: Code
    cause: str
    confidence: float = WEAK
    cause_class: CauseClass | None = None
    unless: str = ""  # none of them

    def fits(self, told: Told) -> bool:
        return set(self.topics.split(", ")) <= told.topics and not told.topics & set(self.unless.split(", "))
