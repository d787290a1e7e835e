"""`0/N nodes are available: …` taken apart: each reason with how many nodes give it, and what preemption would do.

Shape since 1.14: counts and reasons, sorted, with commas between; then sentences of the plugins that run after the
filters. Texts of 1.20 to 1.37 are known, and what plugins out of tree add is kept as it is.

A node is given up at the first filter that refuses it, and the filters run in a fixed order: taints, names, selectors
and ports before the account of resources, volumes, spread, neighbours and claims after it. So a node that is counted
under one of the later reasons has the devices that the pod asks for.
"""

from __future__ import annotations

import re

from msgspec import Struct

_REASON = re.compile(r"(\d+)\s+(\S.*?)(?=,\s*\d+\s+\D|$)")
_AFTER = re.compile(r"\.\s+(?=\S)|\.?\s*\bpreemption:")
_TAINT = re.compile(r"\{?(?P<key>[\w./-]+):\s*(?P<value>[\w./-]*)\}")
_NOT_HELPFUL = re.compile(
    r"preemption is not helpful|not eligible due to|no preemption victims|no victims", re.IGNORECASE
)

# What a reason is about, by a word of it that no release changed. First match counts.
KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(words, re.IGNORECASE))
    for kind, words in (
        ("resource", r"^insufficient \S|^too many pods|didn.t have enough resource"),
        ("taint", r"\btaint"),
        ("cordoned", r"were unschedulable|unknown conditions|are not ready|not ready\b"),
        ("volume", r"volume|persistentvolume|\bpvc|free storage"),
        ("affinity", r"node affinity|node ?selector|requested node name|affinity terms conflict|required features"),
        ("spread", r"topology spread"),
        ("neighbours", r"pod (?:\(anti-\))?affinity|anti-affinity"),
        ("ports", r"free ports"),
        ("claims", r"claim|device class|resourceclaim|allocate devices|cannot fit resource"),
        ("gang", r"gang|pod group|minmember|rejection in (?:unreserve|postfilter)"),
        ("quota", r"quota"),
    )
)

_AFTER_RESOURCES = ("volume", "spread", "neighbours", "claims")
_GPU_TAINT = re.compile(r"nvidia|gpu|accelerator|cuda", re.IGNORECASE)


class Reason(Struct, frozen=True):
    """Why so many nodes do not take the pod."""

    nodes: int
    text: str
    kind: str = ""  # of KINDS, "" for what is not known
    resource: str = ""  # of "Insufficient <resource>"
    taint: str = ""  # key=value where it is named: up to 1.33


class Unplaced(Struct, frozen=True):
    """Why a pod has no node."""

    total: int
    reasons: tuple[Reason, ...]
    preemption: str = ""  # what was said after the reasons

    @property
    def is_preemption_useless(self) -> bool:
        return bool(_NOT_HELPFUL.search(self.preemption))

    def of(self, kind: str) -> tuple[Reason, ...]:
        return tuple(reason for reason in self.reasons if reason.kind == kind)

    @property
    def beside_shortage(self) -> tuple[Reason, ...]:
        """Where some nodes are short of devices: what keeps the pod off those that are not. Empty where nobody can say
        of the others whether they have devices at all."""
        short = [reason for reason in self.reasons if "/" in reason.resource]
        if not short:
            return ()
        found = [
            reason
            for reason in self.reasons
            if reason.kind in _AFTER_RESOURCES or (reason.kind == "taint" and _GPU_TAINT.search(reason.taint))
        ]
        # One node may be short of several resources; where the counts leave no room for that, others lack only these.
        if sum(reason.nodes for reason in self.reasons) <= self.total:
            found += [reason for reason in self.of("resource") if "/" not in reason.resource]
        return tuple(found)


def unplaced(total: str, reasons: str) -> Unplaced:
    """From the two parts of the sentence; nothing raises, what is not understood has no kind."""
    words = reasons.strip().strip("\"'")
    cut = _AFTER.search(words)
    body, tail = (words[: cut.start()], words[cut.start() :].lstrip(". ")) if cut else (words, "")
    found = tuple(_reason(int(nodes), text.rstrip(". \"'")) for nodes, text in _REASON.findall(body.rstrip(". ")))
    return Unplaced(int(total) if total.isdigit() else 0, found, tail)


def _reason(nodes: int, text: str) -> Reason:
    kind = next((kind for kind, pattern in KINDS if pattern.search(text)), "")
    resource = taint = ""
    if text.lower() == "insufficient gpu devices":  # of a scheduler that shares cards
        kind = ""
    elif kind == "resource" and text.lower().startswith("insufficient "):
        # In a ticket a resource may have become a link: [nvidia.com/gpu](http://nvidia.com/gpu)
        resource = text.split(None, 1)[1].split()[0].partition("](")[0].strip("[.,;")
    elif kind == "taint" and (named := _TAINT.search(text)):
        taint = named["key"] + (f"={named['value']}" if named["value"] else "")
    return Reason(nodes, text, kind, resource, taint)
