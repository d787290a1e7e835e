"""Is a device, and is the node, fit for work? Pure: faults of before and what a look found → faults and states of now.

What a fault makes of its target, and how long, is in policy.py. A fault that lasts until a reset or a start of the
machine is remembered when nothing shows it any more; others end when they have not been seen for their time to
settle, longer each time that they come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from berth.node.policy import Ruling, State, Until

NODE = "node"  # a target that is no device
NOT_SEEN, NO_GPU = "NotSeen", "NoGpu"  # codes of states that no fault makes
RELAPSE_S = 3600.0  # a fault that comes back sooner has relapsed
LONGEST_SETTLE_S = 6 * 3600.0
MOST_FAULTS = 64


class Signal(Struct, frozen=True):
    """A fault as one look shows it."""

    target: str  # a PCI address as the kernel spells it, or NODE
    code: str
    ruling: Ruling
    text: str = ""
    source: str = ""
    said_s: float = 0.0  # when its last evidence is from, Unix time; 0.0 where it is of this look


class Fault(Struct, frozen=True):
    """A fault that is remembered."""

    target: str
    code: str
    ruling: Ruling
    first_s: float
    last_s: float
    text: str = ""
    source: str = ""
    relapses: int = 0
    cleared_s: float = 0.0  # 0.0 while it lasts

    @property
    def key(self) -> tuple[str, str]:
        return self.target, self.code

    @property
    def settle_s(self) -> float:
        return min(self.ruling.settle_s * float(1 << min(self.relapses, 16)), LONGEST_SETTLE_S)

    def state(self, now_s: float) -> State:
        """What it makes of its target now."""
        if self.cleared_s:
            return State.Fit
        lasted = max(self.last_s, now_s) - self.first_s
        if lasted < self.ruling.grace_s:
            return State.Fit
        if self.ruling.state is State.Unfit and lasted < self.ruling.confirm_s:
            return State.Suspect
        return self.ruling.state


class Standing(Struct, frozen=True):
    """The state of a device or of the node, since when, and the words that it rests on."""

    state: State = State.Unknown
    code: str = ""
    since_s: float = 0.0
    text: str = ""
    source: str = ""


class Sighted(Enum):
    """A device at this look."""

    Answers = "NVML describes it"
    Listed = "something lists it, and NVML was not asked or did not answer"
    Missing = "it was there since the machine was started, and is not now"


class Memory(Struct, frozen=True):
    """What is carried from look to look."""

    boot_id: str = ""
    faults: tuple[Fault, ...] = ()
    standings: Mapping[str, Standing] = {}  # by target


def judge(
    before: Memory,
    signals: Iterable[Signal],
    devices: Mapping[str, Sighted],
    now_s: float,
    boot_id: str = "",
    resets: Mapping[str, float] | None = None,
    *,
    is_blind: bool = False,
) -> Memory:
    """`devices` by PCI address; `resets` are the times at which devices were set back (counters.py). `is_blind`:
    neither the bus nor NVML could be asked, so that no device is not none.
    """
    is_new_boot = bool(boot_id and before.boot_id and boot_id != before.boot_id)
    known = {} if is_new_boot else {one.key: one for one in before.faults}
    faults = _cleared(_taken_in(known, signals, now_s, resets or {}), now_s, resets or {})
    standings: dict[str, Standing] = {}
    for target, sighted in devices.items():
        found = _worst(faults, target, now_s)
        if found is None and sighted is not Sighted.Answers:
            found = Standing(State.Unknown, NOT_SEEN, text=f"{target}: {sighted.value}")
        standings[target] = _since(before.standings.get(target), found or Standing(State.Fit), now_s)
    node = _node(faults, standings, now_s)
    if is_blind and node.state is State.Fit:
        node = Standing(State.Unknown, NOT_SEEN, text="neither the PCI bus nor NVML could be asked")
    standings[NODE] = _since(before.standings.get(NODE), node, now_s)
    return Memory(boot_id or before.boot_id, faults, standings)


def _taken_in(
    known: dict[tuple[str, str], Fault], signals: Iterable[Signal], now_s: float, resets: Mapping[str, float]
) -> list[Fault]:
    for signal in signals:
        said_s = min(signal.said_s, now_s) if signal.said_s else now_s
        if signal.said_s and signal.said_s < resets.get(signal.target, 0.0) and signal.ruling.until is not Until.Reboot:
            continue  # of before the device was set back
        old = known.get((signal.target, signal.code))
        if old is not None and old.cleared_s:
            if signal.said_s and said_s <= old.last_s:
                continue  # nothing new
            relapsed = said_s - old.cleared_s < RELAPSE_S
            old = replace(
                old, ruling=signal.ruling, first_s=said_s, cleared_s=0.0, relapses=old.relapses + 1 if relapsed else 0
            )  # fmt: skip
        if old is None:
            if signal.ruling.until is Until.Gone and now_s - said_s > signal.ruling.settle_s:
                continue  # long ago, and not again
            old = Fault(signal.target, signal.code, signal.ruling, said_s, said_s)
        # What was said of it at its worst holds as long as it lasts, though a log does not repeat it.
        ruling = old.ruling if signal.ruling.is_milder_than(old.ruling) else signal.ruling
        known[signal.target, signal.code] = replace(
            old, ruling=ruling, last_s=max(old.last_s, said_s), text=signal.text or old.text,
            source=signal.source or old.source,
        )  # fmt: skip
    return list(known.values())


def _cleared(faults: list[Fault], now_s: float, resets: Mapping[str, float]) -> tuple[Fault, ...]:
    """Those that still count, and those of which a relapse would have to be known."""
    kept = []
    for fault in faults:
        if fault.cleared_s:
            if now_s - fault.cleared_s < RELAPSE_S:
                kept.append(fault)
            continue
        over = {
            Until.Gone: now_s - fault.last_s >= fault.settle_s,
            Until.Reset: resets.get(fault.target, 0.0) > fault.last_s,
            Until.Reboot: False,
        }[fault.ruling.until]
        kept.append(replace(fault, cleared_s=now_s) if over else fault)
    kept.sort(key=lambda one: (one.cleared_s > 0, -one.ruling.state.rank, -one.last_s, one.key))
    return tuple(kept[:MOST_FAULTS])


def _worst(faults: Iterable[Fault], target: str, now_s: float) -> Standing | None:
    """The first in order of the worst state; of like ones the first that was there."""
    best: tuple[int, float, str] | None = None
    standing = None
    for fault in faults:
        state = fault.state(now_s)
        if fault.target != target or state is State.Fit:
            continue
        key = (-state.rank, fault.first_s, fault.code)
        if best is None or key < best:
            best, standing = key, Standing(state, fault.code, 0.0, fault.text, fault.source)
    return standing


def _node(faults: tuple[Fault, ...], devices: Mapping[str, Standing], now_s: float) -> Standing:
    """Its own faults; a node of which a device is unfit is suspect, and unfit when none is left."""
    own = _worst(faults, NODE, now_s)
    if own is not None and own.state is State.Unfit:
        return own
    states = [one.state for one in devices.values()]
    unfit = [one for one in devices.values() if one.state is State.Unfit]
    if unfit and len(unfit) == len(states):
        return Standing(State.Unfit, unfit[0].code, 0.0, unfit[0].text, unfit[0].source)
    if own is not None:
        return own
    doubtful = unfit or [one for one in devices.values() if one.state is State.Suspect]
    if doubtful:
        return Standing(State.Suspect, doubtful[0].code, 0.0, doubtful[0].text, doubtful[0].source)
    if states and all(state is State.Unknown for state in states):
        return Standing(State.Unknown, NOT_SEEN, text="no device could be asked")
    return Standing(State.Fit, "" if states else NO_GPU)


def _since(before: Standing | None, now: Standing, now_s: float) -> Standing:
    """A state lasts since it began, whatever its words are by now."""
    is_same = before is not None and (before.state, before.code) == (now.state, now.code)
    return replace(now, since_s=before.since_s if before is not None and is_same else now_s)
