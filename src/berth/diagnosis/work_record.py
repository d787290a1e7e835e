"""Work records: what was seen and decided, and whether the same look finds it again. A case is closed by a second look
at the same evidence with the same criteria, never by silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from berth.diagnosis.checks import Shown
from berth.diagnosis.diagnose import Diagnosis
from berth.diagnosis.evidence_kinds import kind_of
from berth.diagnosis.finding import Finding
from berth.diagnosis.second_look import says_of, subject_of, was_seen
from berth.diagnosis.words import Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.told import KIND as TOLD

VERSION = "berth.dev/v1alpha1"
KIND = "WorkRecord"

# measured: read from a machine, a cluster or its files; example: from a text that somebody gave as one
Standing = Literal["measured", "example"]
Verdict = Literal["open", "closed", "unconfirmed"]


_WITHOUT_KIND = (
    "it rests on words of which nobody knows what wrote them, so that no other evidence is of their kind. Its checks, "
    'each as it must be, close it, or a record that is made of JSON lines: {"kind": "dmesg", "text": "…"}'
)


class Entry(Struct, frozen=True, rename="camel", kw_only=True):
    """One finding as it was worked on."""

    time: str  # RFC 3339
    target: str  # node, device, pod
    code: str
    node: str = ""  # where its evidence is from
    command: str  # with which the evidence was got
    output: str  # the words that it rests on
    verdict: Verdict
    next_action: str
    evidence_kinds: tuple[str, ...] = ()  # a second look has to see evidence of one of these
    verify: tuple[str, ...] = ()


class WorkRecord(Struct, frozen=True, rename="camel", kw_only=True):
    """What one run of the doctor found. `standing` tells measured values from examples."""

    api_version: str = VERSION
    kind: str = KIND
    run_id: str
    time: str
    standing: Standing
    source: str  # "live cluster (context)", a path
    target: str = ""
    entries: tuple[Entry, ...] = ()
    unconfirmed: tuple[str, ...] = ()


class Compared(Struct, frozen=True):
    """What became of one entry."""

    entry: Entry
    verdict: Verdict
    sentence: str
    output: str = ""


def record_of(
    diagnosis: Diagnosis,
    facts: Facts,
    *,
    run_id: str,
    time: str,
    standing: Standing,
    source: str,
    target: str,
    command: str,
) -> WorkRecord:  # fmt: skip
    """The record of a diagnosis: an entry for each cause, open until a second look closes it. The facts tell what
    evidence was of which nobody said it."""
    kinds = {fact.origin: kind_of(fact) for fact in facts}
    return WorkRecord(
        run_id=run_id,
        time=time,
        standing=standing,
        source=source,
        target=target,
        entries=tuple(
            Entry(
                time=time,
                target=one.subject,
                code=one.code,
                node=one.node,
                command=command,
                output="\n".join(origin.text for origin in one.evidence),
                verdict="open",
                next_action=one.fix.steps[0] if one.fix.steps else "",
                evidence_kinds=tuple(sorted({kinds.get(origin, origin.kind) for origin in one.evidence} - {"", TOLD})),
                verify=one.verify,
            )
            for one in diagnosis.findings
        ),
        unconfirmed=tuple(f"{one.what}: {one.how}" for one in diagnosis.unconfirmed),
    )


def compared(
    record: WorkRecord, diagnosis: Diagnosis, facts: Facts, shown: Mapping[Entry, Iterable[tuple[str, Shown | None]]]
) -> tuple[Compared, ...]:
    """Each entry against a second diagnosis, and against what its checks showed: (command, shown) each.

    Still found, or a check that does not show what it must: open. Not found, and each of its checks answered as it
    must, or evidence of the same kind says something of what it is about (second_look.py): closed. Else unconfirmed.
    """
    faults = (*diagnosis.findings, *(one.finding for one in diagnosis.consequences))
    return tuple(_compared(entry, faults, facts, tuple(shown.get(entry, ()))) for entry in record.entries)


def _compared(
    entry: Entry, faults: Iterable[Finding], facts: Facts, shown: tuple[tuple[str, Shown | None], ...]
) -> Compared:
    again = next((one for one in faults if one.code == entry.code and _same(one.subject, entry.target)), None)
    if again is not None:
        words = "\n".join(origin.text for origin in again.evidence)
        return Compared(entry, "open", "it is found again", words)
    if wrong := [command for command, answer in shown if answer == "no"]:
        return Compared(entry, "open", f"not as it must be: {'; '.join(wrong)}")
    answers = [answer for _, answer in shown]
    if "yes" in answers and all(answer in ("yes", "read it") for answer in answers):
        return Compared(entry, "closed", "its checks show what they must, and it is not found any more")
    subject = subject_of(entry.evidence_kinds, entry.target, entry.node, entry.output)
    if not subject.kinds:
        return Compared(entry, "unconfirmed", _WITHOUT_KIND)
    worse = next((one for one in faults if one.subject == entry.target != "" and one.severity >= Severity.Error), None)
    if worse is not None:
        return Compared(entry, "unconfirmed", f"it is not found, but {worse.title} ({worse.code}) there: not well yet")
    if facts.damage:
        return Compared(entry, "unconfirmed", f"it is not found, but not all was read: {'; '.join(facts.notes())}")
    if says_of(subject, facts):
        return Compared(entry, "closed", "the same look does not find it any more")
    kinds = " or ".join(kind for kind in entry.evidence_kinds if kind in subject.kinds)
    speaks = "has lines of the driver" if kinds == "dmesg" else "speaks of it"
    about = entry.target or (f"node {entry.node}" if entry.node else "what it was about")
    if was_seen(subject, facts):
        why = f"{kinds} was read, and says nothing of {about}: silence closes nothing"
    else:
        why = f"nobody looked at {kinds} this time, so that nothing is proven"
    closes = f"{kinds} from after the repair that {speaks} and not the fault"
    also = ", or its checks, each as it must be" if entry.verify else ""
    return Compared(entry, "unconfirmed", f"{why}. It is closed by {closes}{also}")


def _same(subject: str, target: str) -> bool:
    return subject == target or not subject or not target
