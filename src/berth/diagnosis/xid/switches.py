"""NVSwitch lines beside Xids: a switch that failed explains what the GPUs behind it print."""

from __future__ import annotations

from collections.abc import Sequence

from berth.diagnosis.heard import value
from berth.diagnosis.xid.seen import Event
from berth.diagnosis.xid.story import PEERS_S
from berth.diagnosis.xid.sxid import sxid
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

# What a switch makes GPUs print: NVLink of the fourth generation and older, and programs that are torn down.
_MADE = frozenset((74, 43, 45))
_CORRECTED = frozenset((20001, 20009, 22013))


def switch_lines(facts: Facts) -> list[Said]:
    """Of the driver and of Fabric Manager; what people mention only where there are none."""
    return list(facts.said("kernel.sxid", "kernel.nvswitch_error")) or list(facts.said("kernel.sxid_named"))


def is_fatal(said: Said) -> bool:
    """What the line itself says counts before the guide."""
    if said_so := value(said, "fatality"):
        return not said_so.lower().startswith("non")
    return sxid(int(said.get("code"))).severity == "always-fatal"


def is_corrected(said: Said) -> bool:
    known = sxid(int(said.get("code")))
    return known.code in _CORRECTED or "Single bit" in known.name


def made_by(lines: Sequence[Said], events: Sequence[Event]) -> list[Event]:
    """Events that come within a minute of one of these lines, on the same machine."""
    return [
        one
        for one in events
        if one.code in _MADE and any(said.node == one.node and _is_near(said, one) for said in lines)
    ]


def _is_near(said: Said, one: Event) -> bool:
    if not said.origin.at_s or not one.origin.at_s:
        return True
    return abs(one.origin.at_s - said.origin.at_s) <= PEERS_S
