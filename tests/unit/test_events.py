"""What an event of a workload that waits says."""

from __future__ import annotations

from berth.actions.events import waiting
from berth.actions.subjects import Reference
from berth.model.reasons import Answer, Cause, Reason, Verdict

ON = Reference("v1", "Pod", "ml", "train", "uid")


def test_what_would_help_reads_as_a_sentence_whatever_it_is() -> None:
    unlock = ("whoever set example.com/data-staged removes it",)
    gate = Cause(Reason.Gated, "the scheduling gate example.com/data-staged is closed", unlock=unlock)
    event = waiting(ON, Verdict("ml/train", Answer.NotYet, (gate,)))
    assert event.note == (
        "the scheduling gate example.com/data-staged is closed. "
        "What would help: whoever set example.com/data-staged removes it"
    )
    assert not event.is_warning
