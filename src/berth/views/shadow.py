"""The report of a shadow: what Berth would have placed and said, against what happened."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from berth.base.units import counted


class Comparison(Struct, frozen=True):
    """The report. Pods are counted; `examples` are sentences, a few of each kind.

    `earlier_s`: how much earlier Berth had decided, of pods that both placed (negative: later), ascending.
    """

    pods: int
    same_node: int
    other_node: int
    only_they: int
    only_berth: int
    both_wait: int
    gone: int
    evictions: int
    partial_gangs: int
    earlier_s: tuple[float, ...]
    reasons: tuple[tuple[str, int], ...]
    examples: tuple[str, ...]
    blind: tuple[str, ...] = ()  # kinds without which nothing is decided, and that may not be read
    unread: tuple[str, ...] = ()  # other kinds that may not be read


def lines(found: Comparison) -> Sequence[str]:
    """The report, a line each, for a terminal or a file."""
    if found.blind:
        blind = ", ".join(found.blind)
        return [f"Nothing could be seen: {blind} may not be read. A shadow needs get, list and watch on {blind}."]
    told = [f"Shadow of {counted(found.pods, 'pod')} that asked to be placed; nothing was written."]
    rows = (
        (found.same_node, "placed by both on the same node"),
        (found.other_node, "placed by both on different nodes"),
        (found.only_they, "placed by the other scheduler, while Berth would have had it wait"),
        (found.only_berth, "waiting, while Berth would have placed it"),
        (found.both_wait, "waiting by both"),
        (found.gone, "gone before anybody placed it"),
    )
    told += [f"  {number:>8,}  {what}" for number, what in rows if number]
    if found.unread:
        unread = ", ".join(found.unread)
        told.append(f"What these say does not count, since they may not be read: {unread}.")
    if found.earlier_s:
        middle = found.earlier_s[len(found.earlier_s) // 2]
        when = "before" if middle >= 0 else "after"
        told.append(f"Berth had decided {abs(middle):.2f} s {when} the bind was seen: median of pods placed by both.")
    if found.partial_gangs:
        gangs = counted(found.partial_gangs, "gang was", "gangs were")
        told.append(f"{gangs} partly bound for more than 5 s. Berth binds a gang whole or not at all.")
    if found.evictions:
        told.append(f"Berth would have asked {counted(found.evictions, 'pod')} of lower priority to leave.")
    if found.reasons:
        told.append("Why Berth would have had pods wait:")
        told += [f"  {number:>8,}  {reason or 'not decided yet'}" for reason, number in found.reasons]
    if found.examples:
        told.append("Examples:")
        told += [f"  {sentence}" for sentence in found.examples]
    return told
