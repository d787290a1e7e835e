"""Which of many Xids is the cause: those that follow from another, on the same GPU or on its peers, are put under it.

One fault makes a GPU print many numbers, and its NVLink peers some more. What came first and can make the others is the
cause. A GPU that is gone is the exception: it explains what was printed in the seconds before it was noticed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from weakref import WeakKeyDictionary

from msgspec import Struct

from berth.diagnosis.xid import nvlink4, nvlink5
from berth.diagnosis.xid.nvlink_telling import judged
from berth.diagnosis.xid.recovery import Recovery, read_recovery
from berth.diagnosis.xid.seen import Event, Family, events
from berth.evidence.fact import NO_PCI, NOTHING, Pci
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

WINDOW_S = 600.0  # on one GPU: how long after a cause its followers come
PEERS_S = 60.0  # on the GPUs that it is linked with
TOGETHER_S = 2.0  # that long before the loss of a GPU is noticed, its other parts may complain
_CALENDAR = 1e8  # seconds; smaller times count from boot or from the year, and are compared within one source only

# What may make which other family follow, on the same GPU.
_ENTAILS: dict[Family, frozenset[Family]] = {
    Family.Lost: frozenset(Family) - {Family.Lost},
    Family.Power: frozenset((Family.Engine, Family.Firmware, Family.Pcie, Family.Program, Family.Follower)),
    Family.Pcie: frozenset((Family.Engine, Family.Firmware, Family.Program, Family.Follower)),
    Family.Memory: frozenset((Family.Engine, Family.Firmware, Family.NvLink, Family.Program, Family.Follower)),
    Family.NvLink: frozenset((Family.Engine, Family.NvLink, Family.Program, Family.Follower)),
    Family.Firmware: frozenset((Family.Engine, Family.NvLink, Family.Program, Family.Follower)),
    Family.Engine: frozenset((Family.Engine, Family.Firmware, Family.Program, Family.Follower)),
    Family.Program: frozenset((Family.Program, Family.Follower)),
}
_DEPTH = (
    Family.Lost, Family.Power, Family.Pcie, Family.Memory, Family.NvLink, Family.Firmware, Family.Engine,
    Family.Program, Family.Unlisted, Family.Note, Family.Follower, Family.Verdict,
)  # fmt: skip
# Informational codes of a family make nothing follow.
_QUIET = frozenset((32, 38, 44, 63, 80, 92, 108, 121, 137, 141, 156, 157, 160, 161, 163, 164, 165, 176))


class Story(Struct, frozen=True):
    """Events, and for each follower the event that it follows."""

    events: tuple[Event, ...]
    follows: dict[int, int]  # order → order of the cause
    under: dict[int, list[Event]]  # order of a cause that follows nothing → all that follows from it
    verdicts: dict[str, list[Event]]  # node → lines of Xid 154
    driver: int = 0  # its branch, 575; 0 where nobody says
    domains: Mapping[str, str] = NOTHING  # node → NVLink domain that spans machines, where nvidia-smi says it

    def domain(self, node: str) -> str:
        """Of a node; a machine of its own where nothing is known."""
        return self.domains.get(node, node)

    def roots(self, *families: Family) -> list[Event]:
        """Causes of these families."""
        return [one for one in self.events if one.order not in self.follows and one.family in families]

    def by_device(self, *families: Family) -> dict[tuple[str, Pci], list[Event]]:
        """Causes of these families by node and device."""
        found: dict[tuple[str, Pci], list[Event]] = defaultdict(list)
        for one in self.roots(*families):
            found[one.node, one.pci].append(one)
        return dict(found)

    def followers(self, causes: Sequence[Event]) -> list[Event]:
        """All that follows from one of these, over any number of steps."""
        found = [one for cause in causes for one in self.under.get(cause.order, ())]
        return sorted(found, key=lambda one: one.order)

    def verdict(self, pci: Pci, node: str = "") -> tuple[Recovery, Event] | None:
        """The last that the driver said of what this device needs."""
        found = None
        for one in self.verdicts.get(node, ()):
            if one.pci == pci or NO_PCI in (one.pci, pci):
                recovery = read_recovery(one.detail or one.origin.text)
                found = (recovery, one) if recovery else found
        return found


_Way = Callable[[Event, Sequence[Event]], Event | None]
_TOLD: WeakKeyDictionary[Facts, tuple[int, Story]] = WeakKeyDictionary()


def story_of(facts: Facts) -> Story:
    """Told once for the rules that all ask for it."""
    told = _TOLD.get(facts)
    if told is None or told[0] != len(facts):
        told = (len(facts), tell(events(facts), _branch(facts), _domains(facts)))
        _TOLD[facts] = told
    return told[1]


def tell(found: Sequence[Event], driver: int = 0, domains: Mapping[str, str] = NOTHING) -> Story:
    """Who follows whom."""
    follows: dict[int, int] = {}
    able = _thinned(
        one for one in found if one.family not in (Family.Follower, Family.Verdict, Family.Note, Family.Unlisted)
    )
    grave = [one for one in able if one.family != Family.NvLink or not judged(one, driver).is_harmless]
    peers = _Peers(grave, domains)
    able_of, grave_of = _by_node(able), _by_node(grave)
    for one in found:
        ways: tuple[tuple[_Way, Sequence[Event]], ...] = (
            (_named, able_of.get(one.node, ())),
            (_on_the_same, grave_of.get(one.node, ())),
            (_on_a_peer, peers.near(one)),
        )
        for way, causes in ways:
            cause = way(one, causes)
            if cause is not None and not _follows(cause.order, one.order, follows):
                follows[one.order] = cause.order
                break
    under: dict[int, list[Event]] = defaultdict(list)
    for one in found:
        if one.order in follows:
            under[_root(one.order, follows)].append(one)
    verdicts = _by_node(one for one in found if one.code == 154)
    return Story(tuple(found), follows, dict(under), verdicts, driver, domains)


class _Peers:
    """Events that may reach other GPUs: of the same machine, and of other machines within a minute."""

    def __init__(self, causes: Sequence[Event], domains: Mapping[str, str]) -> None:
        self._domains = domains
        linked = [one for one in causes if one.family in (Family.NvLink, Family.Lost) and one.code not in _QUIET]
        self._of_node = _by_node(linked)
        self._timed = sorted(
            (one for one in linked if one.family == Family.NvLink and one.origin.at_s > _CALENDAR),
            key=lambda one: one.origin.at_s,
        )
        self._times = [one.origin.at_s for one in self._timed]

    def near(self, one: Event) -> list[Event]:
        if one.family not in (Family.Follower, Family.NvLink):
            return []
        own = self._of_node.get(one.node, [])
        at_s = one.origin.at_s
        if at_s <= _CALENDAR:
            return own
        first, last = bisect_left(self._times, at_s - PEERS_S), bisect_right(self._times, at_s + TOGETHER_S)
        others = (other for other in self._timed[first:last] if other.node != one.node)
        return [*own, *(other for other in others if self._may_be_linked(one.node, other.node))]

    def _may_be_linked(self, node: str, other: str) -> bool:
        """Two nodes that are known to be of different domains are not; of others nothing is known."""
        mine, its = self._domains.get(node), self._domains.get(other)
        return mine is None or its is None or mine == its


def _root(order: int, follows: dict[int, int]) -> int:
    while order in follows:
        order = follows[order]
    return order


def _by_node(events: Iterable[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = defaultdict(list)
    for one in events:
        found[one.node].append(one)
    return dict(found)


def _follows(order: int, other: int, follows: dict[int, int]) -> bool:
    """Does the first follow the second, over any number of steps? Then it cannot be its cause."""
    for _ in range(len(follows) + 1):
        if order == other:
            return True
        if order not in follows:
            return False
        order = follows[order]
    return True


def _thinned(candidates: Iterable[Event]) -> list[Event]:
    """The first of each number on a device, and the next one a minute later: a storm is one cause, not thousands."""
    last: dict[tuple[str, Pci, int], float] = {}
    kept = []
    for one in candidates:
        key = (one.node, one.pci, one.code)
        if key not in last or (one.origin.at_s and abs(one.origin.at_s - last[key]) >= PEERS_S):
            last[key] = one.origin.at_s
            kept.append(one)
    return kept


def _named(one: Event, causes: Sequence[Event]) -> Event | None:
    """The driver itself names the cause: the last of that number before it, of the same device if there is one."""
    if not one.caused_by:
        return None
    fitting = [other for other in causes if other.code == one.caused_by and other.node == one.node]
    return next((other for other in reversed(fitting) if other.pci == one.pci), fitting[-1] if fitting else None)


def _on_the_same(one: Event, causes: Sequence[Event]) -> Event | None:
    """The deepest cause on the same device that may entail it and was not after it."""
    found = [
        other
        for other in causes
        if other.order != one.order and _same_device(other, one) and _entails(other, one) and _in_time(other, one)
    ]
    return min(found, key=_depth) if found else None


def _on_a_peer(one: Event, causes: Sequence[Event]) -> Event | None:
    """Torn down channels and NVLink errors after a fatal event elsewhere in the machine or its NVLink domain."""
    found = [
        other
        for other in causes
        if NO_PCI not in (other.pci, one.pci)
        and (other.node, other.pci) != (one.node, one.pci)
        and (other.family == Family.NvLink or other.node == one.node)
        and (one.family == Family.Follower or _nvlink_depth(other) < _nvlink_depth(one))
        and (other.node == one.node or min(other.origin.at_s, one.origin.at_s) > _CALENDAR)
        and -TOGETHER_S <= _after(other, one) <= PEERS_S
    ]
    return min(found, key=lambda other: (*_nvlink_depth(other), other.order)) if found else None


def _entails(cause: Event, one: Event) -> bool:
    if one.family in (Family.Verdict, Family.Follower):
        return True
    if cause.code in _QUIET or one.family not in _ENTAILS.get(cause.family, ()):
        return False
    return cause.family != one.family or (cause.order < one.order and cause.code != one.code)


def _same_device(cause: Event, one: Event) -> bool:
    return cause.node == one.node and (cause.pci == one.pci or NO_PCI in (cause.pci, one.pci))


def _in_time(cause: Event, one: Event) -> bool:
    after = _after(cause, one)
    if not after:
        return cause.order < one.order or cause.family == Family.Lost
    return (-TOGETHER_S if cause.family == Family.Lost else 0.0) <= after <= WINDOW_S


def _after(cause: Event, one: Event) -> float:
    """Seconds from one to the other; by the order of reading where times cannot be compared, taken as at once."""
    mine, its = one.origin.at_s, cause.origin.at_s
    same = one.origin.source == cause.origin.source
    if mine and its and (same or min(mine, its) > _CALENDAR):
        return mine - its
    if same and not mine and not its:
        return 0.0 if cause.order < one.order else -1.0
    return 0.0


def _depth(one: Event) -> tuple[int, int]:
    return _DEPTH.index(one.family), one.order


def _nvlink_depth(one: Event) -> tuple[int, float]:
    """The origin in a fabric: a GPU that is gone, then a link that went down, a fatal error, others; then the first."""
    if one.family == Family.Lost:
        grade = 0
    elif one.code == 74:
        registers = nvlink4.read_registers(one.detail)
        grade = 1 if not registers or registers.verdict > nvlink4.Verdict.FollowerWithReset else 3
    else:
        line = nvlink5.read_line(one.detail) if one.code in nvlink5.CODES else None
        grade = 1 if one.code in (149, 150, 136) and (not line or line.is_fatal) else 2 if line and line.is_fatal else 3
    return grade, one.origin.at_s


def _domains(facts: Facts) -> dict[str, str]:
    """Node → cluster of its fabric, where it has one: zeros stand for a machine with switches of its own."""
    return {
        device.node: device.fabric_cluster
        for device in facts.of(DeviceSeen)
        if device.node and device.fabric_cluster.strip("0-") not in ("", "N/A")
    }


def _branch(facts: Facts) -> int:
    """Of the kernel driver: 575, by what the kernel says at its load."""
    versions = [said.get("version") for said in facts.said("kernel.driver_version")]
    return int(versions[-1].split(".")[0]) if versions else 0
