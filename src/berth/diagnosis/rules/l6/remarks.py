"""All layers. Nothing was found but a line whose writer says that it goes on, or that all works."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Rule
from berth.diagnosis.trap import trap
from berth.diagnosis.words import WEAK, Effect, Layer
from berth.evidence.facts import Facts
from berth.evidence.formats.remarks import Remark, Spoke

GOES_ON = trap(
    "GoesOnByItself",
    Layer.L6,
    Effect.BlindMonitoring,
    "a component warns of something and says that it goes on without",
    meaning="What is ignored, skipped, retried or replaced by a default stops nothing by itself. It is worth a look "
    "where that very thing was wanted.",
    known_by="The line itself says how it goes on, and nothing else was found.",
    disproved_by="An error follows, or what was left out is needed.",
    counter_check="the lines after it: the component works on",
    sources=("the component's own words",),
)
WORKS = trap(
    "WorksAllTheSame",
    Layer.L6,
    Effect.BlindMonitoring,
    "somebody asks about a line or figure, and all works",
    meaning="Nothing that is known to be a fault stands in what was given, and who gives it says that all works.",
    known_by="Who asks says that it works or asks whether it is normal, and nothing else was found.",
    disproved_by="Something does not work after all: say what.",
    counter_check="what is asked about comes on a healthy machine of the same kind as well",
    sources=("the words of who asks",),
)
WARNS = trap(
    "WarningAlone",
    Layer.L6,
    Effect.BlindMonitoring,
    "a component warns, and no error is there",
    meaning="The line is not known, its writer calls it a warning, and nothing in what was given says that anything "
    "failed.",
    known_by="A line at level warning, no error beside it, and nothing else was found.",
    disproved_by="Something does not work: give the text of that, too.",
    counter_check="the lines after it: the component works on",
    sources=("the component's own words",),
)


def find(facts: Facts) -> Iterator[Answer]:
    remarks = facts.of(Remark)
    spoke = [one.layer for one in facts.of(Spoke)]
    told = [one for one in remarks if one.is_told]
    if told:
        layer = next(iter(spoke), told[0].layer)
        yield WORKS.finding("It is said to work all the same.", WEAK, told, layer=Layer(layer))
        return
    for one in sorted(remarks, key=lambda one: one.is_warning):
        if one.is_warning:
            yield WARNS.finding("It is a warning, and nothing known.", WEAK, [one], layer=Layer(one.layer))
            return
        if not one.is_told:
            yield GOES_ON.finding("It says itself how it goes on.", WEAK, [one], layer=Layer(one.layer))
            return


RULE = Rule((GOES_ON, WORKS, WARNS), find)
