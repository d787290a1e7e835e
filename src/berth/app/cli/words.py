"""The scheduler's own word on what waits, beside what is worked out here."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace as changed

from berth.app.cli.frames import Frame
from berth.app.cli.options import now_s
from berth.app.cli.worked_out import frame_of
from berth.model.reasons import Answer
from berth.model.told import Told
from berth.scheduling.answer import Answered
from berth.scheduling.quota import milli_of


def mixed(
    answers: list[Answered], notes: tuple[str, ...], words: Mapping[str, Told], notes_of_all: tuple[str, ...] = ()
) -> Frame:
    """Answers worked out here, but for those on which the scheduler has its own word (by identity).

    `notes` are of what is worked out here, `notes_of_all` of its word, too.
    """
    of_its_own: list[Told] = []
    rest: list[Answered] = []
    for answer in answers:
        word = words.get(answer.workload.identity)
        if word is None or answer.is_running or (word.uid and answer.workload.uid and word.uid != answer.workload.uid):
            rest.append(answer)
        else:
            pods, milli = answer.workload.pod_count, milli_of(answer.workload)
            of_its_own.append(changed(word, pods=word.pods or pods, gpu_milli=word.gpu_milli or milli))
    if not rest and of_its_own:
        return said(of_its_own, notes_of_all)
    notes = (*notes_of_all, *notes)
    if not of_its_own:
        return frame_of(rest, notes)
    theirs, ours = said(of_its_own), frame_of(rest, notes)

    def draw(screen: object, wide: bool) -> None:
        theirs.draw(screen, wide)  # type: ignore[arg-type]
        screen.print()  # type: ignore[attr-defined]
        ours.draw(screen, wide)  # type: ignore[arg-type]

    record = {**ours.record, "answers": [*theirs.record["answers"], *ours.record["answers"]]}
    return Frame(record, draw, notes, max(theirs.code, ours.code))


def said(told: list[Told], notes: tuple[str, ...] = ()) -> Frame:
    """The scheduler's word alone."""
    from berth.views import told as view

    moment = now_s()
    records = [view.record(one) for one in told]
    return Frame(
        {"kind": "Why", "answers": records, "notes": list(notes)},
        lambda screen, wide: view.show(told, screen, moment),
        notes,
        code=0 if all(one.verdict == Answer.Fits.value for one in told) else 1,
        key=[{**r, "told": {**r["told"], "at": None}} for r in records],
    )
