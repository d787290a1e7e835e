"""What the kernel log would decide, where nobody has collected it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Code, Unconfirmed
from berth.diagnosis.words import Layer
from berth.evidence.facts import Facts


def wanted(facts: Facts, code: Code, node: str = "") -> Iterator[Unconfirmed]:
    """The kernel log of a node, if none was read."""
    if facts.looked_at("dmesg") or any(True for _ in facts.said("kernel.")):
        return
    where = f" of node {node}" if node else ""
    yield Unconfirmed(
        what=f"the kernel log{where}",
        how="journalctl -k -o short-iso | grep -i -e NVRM -e Xid -e AER -e pcie (on the node)",
        wanted_for=code.name,
        layer=Layer.L0,
        node=node,
    )
