"""Whether evidence is a second look at a fault: of the same kind as what it rested on, and it says something of what
the fault was about. A text that says nothing of it is silence, however long it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from berth.diagnosis.evidence_kinds import WORDS_ALONE, kind_of
from berth.evidence.fact import NO_PCI, Fact, Pci, Said, pci_of
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import EventSeen, NodeSeen, ObjectSeen, PodSeen

_TOLD = frozenset(("reported", "told", "context", "harmless"))  # families of sentences that are no component's
# The API server's account of an object: whoever has the object has looked, whether events are still kept or not.
_API = frozenset(("objects", "pod-events", "node-json", "kubectl", "describe"))
_SPEAKER = re.compile(r"^(?:.*?\bkernel: )?(?:<\d+>)?(?:\[[^\]]*\]\s*)*([A-Za-z][\w-]*)")
_DRIVER = re.compile(r"\bNVRM\b|\bnvidia|\bnvlink|\bnvswitch", re.IGNORECASE)
_PCI = re.compile(r"\bGPU ([0-9a-fA-F:.]+)")
_POD = re.compile(r"\bpod (\S+)")


class Subject(Struct, frozen=True):
    """What a fault was about, and what its evidence was."""

    kinds: frozenset[str]
    node: str  # "" where nobody says
    pod: str  # namespace/name
    pci: Pci
    speakers: frozenset[str]  # in a kernel's log, where every driver speaks


def subject_of(kinds: Iterable[str], target: str, node: str, output: str) -> Subject:
    """Of an entry of a record. `target` is as findings say it: `GPU 0000:43:00 of node gpu-7`, `pod ml/train-0`."""
    of = frozenset(kinds) - {"told"}
    pod, device = _POD.search(target), _PCI.search(target)
    return Subject(
        kinds=of | _API if of & _API else of,
        node=node,
        pod=pod[1] if pod else "",
        pci=pci_of(device[1]) if device else NO_PCI,
        speakers=frozenset(map(_speaker, output.splitlines())),
    )


def says_of(subject: Subject, facts: Facts) -> bool:
    """Is there a fact of that kind of evidence about the node, the pod or the device, from its own component?"""
    return any(_is_of(subject, fact) for fact in facts)


def was_seen(subject: Subject, facts: Facts) -> bool:
    """Was anything of that kind of evidence read, of the node or of one that nobody names?"""
    return facts.looked_at(*subject.kinds, node=subject.node) or any(
        kind_of(fact) in subject.kinds and _node(fact) in (subject.node, "") for fact in facts
    )


def _is_of(subject: Subject, fact: Fact) -> bool:
    if isinstance(fact, WORDS_ALONE) or (kind := kind_of(fact)) not in subject.kinds:
        return False
    if isinstance(fact, Said) and fact.message.partition(".")[0] in _TOLD:
        return False
    if kind == "dmesg" and (who := _speaker(fact.origin.text)) != "nvidia" and who not in subject.speakers:
        return False
    if subject.pod:
        return _is_of_pod(subject.pod, fact)
    if subject.node and _node(fact) not in (subject.node, ""):
        return False
    if isinstance(fact, (PodSeen, ObjectSeen, EventSeen)):
        return not subject.node or _node(fact) == subject.node
    # Of a device: a count of devices, or the list of others, does not say that it is there.
    return subject.pci == NO_PCI or isinstance(fact, Said) or getattr(fact, "pci", NO_PCI) == subject.pci


def _node(fact: Fact) -> str:
    if isinstance(fact, NodeSeen):
        return fact.name
    return fact.on if isinstance(fact, PodSeen) else fact.node


def _is_of_pod(pod: str, fact: Fact) -> bool:
    """Of the pod, or of another that its owner made in its place: all but the last part of their names is the same."""
    if isinstance(fact, PodSeen):
        of = fact.key
    elif isinstance(fact, EventSeen):
        of = f"{fact.namespace}/{fact.name}"
    else:
        of = fact.origin.pod
        if not of and not isinstance(fact, (NodeSeen, ObjectSeen)):
            return not fact.node  # a text of which nobody says whose it is
    return of == pod or ("-" in pod and of.rpartition("-")[0] == pod.rpartition("-")[0])


def _speaker(line: str) -> str:
    """Who says a line of a kernel's log: `nvidia` for all parts of the driver, else the first word."""
    if _DRIVER.search(line):
        return "nvidia"
    found = _SPEAKER.match(line.strip())
    return found[1].lower() if found else ""
