"""Xids in sentences: what they are, how often, what followed, what the driver asks for; and which words to quote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from berth.diagnosis.finding import Fix
from berth.diagnosis.words import ESTABLISHED, LIKELY
from berth.diagnosis.xid.catalogue import xid
from berth.diagnosis.xid.recovery import Recovery
from berth.diagnosis.xid.seen import Event
from berth.diagnosis.xid.story import Story
from berth.evidence.fact import NO_PCI, Origin, Pci


def account(story: Story, causes: Sequence[Event]) -> str:
    """`Xid 48 (…): …; 3 times. Xid 94 (…): … It was followed by Xid 45 on 2 GPUs. The driver asks for: …`"""
    counts = Counter[int]()
    for one in causes:
        counts[one.code] += one.times
    said = [f"{xid(code).sentence}{_times(times)}" for code, times in counts.items()]
    if followed := _followed(story, causes):
        said.append(followed)
    if causes and (verdict := story.verdict(causes[0].pci, causes[0].node)):
        said.append(f"The driver itself asks for (Xid 154): {verdict[0].value}.")
    return " ".join(said)


def quotations(story: Story, causes: Sequence[Event]) -> list[Origin]:
    """One line of each number: the causes, the verdict, then the followers."""
    verdict = story.verdict(causes[0].pci, causes[0].node) if causes else None
    ordered = [*causes, *((verdict[1],) if verdict else ()), *story.followers(causes)]
    first: dict[int, Origin] = {}
    for one in ordered:
        first.setdefault(one.code, one.origin)
    return list(first.values())


def verdict_fix(story: Story, pci: Pci, node: str) -> Fix | None:
    """How it is mended by the driver's own verdict; None where it gave none."""
    verdict = story.verdict(pci, node)
    return verdict[0].fix if verdict and verdict[0] != Recovery.Nothing else None


def surety(causes: Iterable[Event]) -> float:
    """What the driver printed itself is established; that somebody mentions a number is likely."""
    return LIKELY if all(one.is_named for one in causes) else ESTABLISHED


def devices(events: Iterable[Event]) -> str:
    """`GPU 0000:b3:00`, `8 GPUs`."""
    events = list(events)
    found = {(one.node, one.pci) for one in events if one.pci != NO_PCI}
    nodes = {node for node, _ in found}
    if len(nodes) > 1:
        return f"{len(found)} GPUs of {len(nodes)} nodes"
    return f"{len(found)} GPUs" if len(found) > 1 else next((one.where for one in events), "a GPU")


def _followed(story: Story, causes: Sequence[Event]) -> str:
    counts = Counter[int]()
    where: dict[int, set[Pci]] = {}
    for one in story.followers(causes):
        if one.code != 154:
            counts[one.code] += one.times
            where.setdefault(one.code, set()).add(one.pci)
    if not counts:
        return ""
    own = {one.pci for one in causes}
    words = [
        f"Xid {code}{_times(times)}{_elsewhere(where[code] - own - {NO_PCI})}" for code, times in sorted(counts.items())
    ]
    return f"What followed from it and is no cause: {', '.join(words)}."


def _times(times: int) -> str:
    return f" ({times} times)" if times > 1 else ""


def _elsewhere(others: set[Pci]) -> str:
    return f" on {len(others)} other GPU{'s' if len(others) > 1 else ''}" if others else ""
