"""What is said of a name where no scheduler has said it: worked out from a snapshot."""

from __future__ import annotations

from difflib import get_close_matches

from berth.app.cli.frames import Frame
from berth.base.errors import BadInput
from berth.base.units import counted
from berth.model.reasons import Answer
from berth.model.snapshot import Snapshot
from berth.scheduling.answer import Answered, names_of, why
from berth.views import verdicts

MOST_OF_AN_OWNER = 3  # workloads that one owner's name is answered with


def answers_of(snapshot: Snapshot, name: str, namespace: str | None) -> tuple[list[Answered], tuple[str, ...]]:
    """Everything of that name, else the first workloads whose pods something of that name owns; with notes."""
    answers = why(snapshot, name, namespace)
    if answers:
        return answers, snapshot.notes
    keys = _owned(snapshot, name, namespace)
    answers = [answer for key in keys[:MOST_OF_AN_OWNER] for answer in why(snapshot, key, None)]
    notes = snapshot.notes
    if len(keys) > MOST_OF_AN_OWNER:
        notes = (f"{name} owns {len(keys):,} workloads; the first {MOST_OF_AN_OWNER} are answered", *notes)
    return answers, notes


def frame_of(answers: list[Answered], notes: tuple[str, ...]) -> Frame:
    """Answers that were worked out here."""
    return Frame(
        {"kind": "Why", "answers": [{**verdicts.record(a), "told": None} for a in answers], "notes": list(notes)},
        lambda screen, wide: verdicts.show(answers, screen),
        notes,
        0 if all(a.verdict.answer is Answer.Fits for a in answers) else 1,
    )


def _owned(snapshot: Snapshot, name: str, namespace: str | None) -> list[str]:
    """Keys of the workloads whose pods an object of this name owns, those that wait first."""
    first, slash, rest = name.partition("/")
    keys: dict[str, None] = {}
    for owner in snapshot.owners:
        is_meant = name == owner.name or (
            bool(slash)
            and rest == owner.name
            and (first == owner.namespace or first.lower() in (owner.kind.lower(), owner.kind.lower() + "s"))
        )
        if is_meant and namespace in (None, owner.namespace):
            keys.update(dict.fromkeys(owner.workloads))
    return list(keys)


def not_there(snapshot: Snapshot, where: str, name: str, namespace: str | None) -> BadInput:
    """Nothing bears that name; what comes close to it."""
    names = [*names_of(snapshot), *(f"{o.namespace}/{o.name}" for o in snapshot.owners)]
    place = f" in namespace {namespace}" if namespace else ""
    problem = f"no workload or pod {name!r}{place}."
    close = get_close_matches(name, dict.fromkeys([n.rpartition("/")[2] for n in names] + names), 3, 0.6)
    if close:
        return BadInput(where, problem, f"Close to it: {', '.join(close)}.")
    return BadInput(where, problem, f"It holds {counted(len(names_of(snapshot)), 'workload')}.")
