"""Xids as they were read: one event for each line, with what its details say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum

from msgspec import Struct

from berth.diagnosis.xid.catalogue import Xid, xid
from berth.diagnosis.xid.nvlink5 import CODES as NVLINK5
from berth.evidence.fact import NO_PCI, Origin, Pci, Said, pci_of, pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.dcgm_metrics import Sample

_PROCESS = re.compile(r"pid='?(?P<pid>\d+|<unknown>)'?(?:, name=(?P<name>[^,\s]+))?", re.IGNORECASE)
_CAUSED = re.compile(r"caused by (?:previous )?Xid (\d+)", re.IGNORECASE)
_MONITOR = re.compile(r"exporter|\bdcgm\b|metric|monitor|\bagent\b|condition|Ready\b|alert|detector", re.IGNORECASE)
_MISSED = re.compile(
    r"\b(?:not|never|although|though|despite|in spite|stays?|still|miss(?:es|ed)?|unseen|no event)\b|n't\b",
    re.IGNORECASE,
)
# Somebody complains of the verdict, and names the code that it was given for.
_LATCHED = re.compile(
    r"\b(?:mistakenly|wrongly|falsely|incorrectly|needlessly)\b[^\n]{0,30}\bunhealthy\b"
    r"|\b(?:not|never|n't)\b[^\n]{0,12}\brecover\w*\b[^\n]{0,60}\bXid\b[^\n]{0,30}\b(?:resolved|gone|cleared|over|past)\b",
    re.IGNORECASE,
)
_UNIT = re.compile(r"\(?GPC (\d+), TPC (\d+)(?:, SM (\d+))?", re.IGNORECASE)


class Family(Enum):
    """What a code is about: which rule answers for it."""

    Lost = "the GPU is gone"
    Memory = "memory"
    NvLink = "NVLink"
    Firmware = "the GPU's firmware (GSP)"
    Engine = "an engine or micro-controller of the GPU"
    Pcie = "PCI Express"
    Power = "power"
    Program = "a program"
    Follower = "follows others"
    Verdict = "the driver's verdict"
    Note = "information"
    Unlisted = "not raised by current drivers"


_FAMILIES: dict[Family, Iterable[int]] = {
    Family.Lost: (79,),
    Family.Memory: (48, 63, 64, 92, 94, 95, 140, 156, 157, 160, 161, 168, 171, 172),
    Family.NvLink: (74, 108, 136, 137, *NVLINK5, 155, 166, 170),
    Family.Firmware: (119, 120),
    Family.Engine: (38, 44, 46, 62, 109, 110, 142, 143, 151, 158, 159, 169, 173, 175),
    Family.Pcie: (32, 80, 167, 176),
    Family.Power: (54, 163, 164, 165),
    Family.Follower: (43, 45, 174),
    Family.Verdict: (154,),
}
_FAMILY = {code: family for family, codes in _FAMILIES.items() for code in codes}


class Event(Struct, frozen=True, gc=False):
    """One line, or like ones of a source folded."""

    code: int
    order: int  # as read
    pci: Pci
    detail: str
    origin: Origin
    times: int = 1
    pid: str = ""
    process: str = ""
    caused_by: int = 0  # the Xid that the driver names as its cause
    unit: tuple[str, ...] = ()  # GPC, TPC and SM of a fault in a program
    is_named: bool = False  # somebody mentions the number; it is not the driver's own line
    uuid: str = ""

    @property
    def node(self) -> str:
        return self.origin.node

    @property
    def meaning(self) -> Xid:
        return xid(self.code)

    @property
    def family(self) -> Family:
        known = Family.NvLink if "nvlink: fatal error" in self.detail.lower() else _FAMILY.get(self.code)
        if known:
            return known
        standing = self.meaning.standing
        if standing in ("app", "app-or-follower", "software"):
            return Family.Program
        return Family.Unlisted if standing == "unused" else Family.Note

    @property
    def where(self) -> str:
        return f"GPU {pci_words(self.pci)}" if self.pci != NO_PCI else self.uuid or "a GPU"


def events(facts: Facts) -> list[Event]:
    """All Xids, in the order of time as far as it is comparable, else as read."""
    printed = list(facts.said("kernel.xid", "kernel.xid_programs", "kernel.xid_firmware", "kernel.xid_nvlink"))
    lines = {(said.origin.source, said.origin.line, said.origin.text) for said in printed}
    by_uuid = {said.get("uuid"): pci_of(said.get("pci")) for said in facts.said("kernel.gpu_uuid")}
    own = [_event(said, by_uuid, is_named=False) for said in printed]
    named = [
        _event(said, by_uuid, is_named=True)
        for said in facts.said("kernel.xid_named")
        if (said.origin.source, said.origin.line, said.origin.text) not in lines
        and not _CAUSED.search(said.origin.text)
    ]
    named = [one for one in named if not (_is_the_plugins_alone(one) or _is_of_a_monitor(one))]
    known = {one.code for one in own}
    found = own + [one for one in (*named, *_counted(facts)) if one.code not in known]
    found = [one for one in (*found, *_implied(found)) if 0 < one.code <= 255]
    found.sort(key=lambda one: (one.origin.source, one.origin.at_s, one.origin.line, bool(one.caused_by)))
    return [_numbered(one, number) for number, one in enumerate(found)]


def _implied(found: Sequence[Event]) -> list[Event]:
    """Causes that the driver names and whose own line is not in the text: told with the line that names them."""
    seen = {(one.node, one.code) for one in found}
    causes: dict[tuple[str, int, Pci], Event] = {}
    for one in found:
        if one.caused_by and (one.node, one.caused_by) not in seen:
            key = (one.node, one.caused_by, one.pci)
            causes.setdefault(key, Event(one.caused_by, 0, one.pci, "", one.origin, is_named=True))
    return list(causes.values())


def _is_the_plugins_alone(one: Event) -> bool:
    """A device plugin takes a device out for good for codes that ask for no more than a restart of the program; where
    nothing but its log tells of one, what has to be mended is the plugin's verdict."""
    if one.is_named and _LATCHED.search(one.origin.text):
        return True
    is_light = one.meaning.standing in ("app", "info") and one.family in (Family.Memory, Family.Pcie)
    return is_light and "XidCriticalError" in one.origin.text


def _is_of_a_monitor(one: Event) -> bool:
    """`the condition stays True although Xid 79 is in the log`: the sentence is about who does not see it."""
    return bool(_MONITOR.search(one.origin.text) and _MISSED.search(one.origin.text))


def _counted(facts: Facts) -> list[Event]:
    """The exporter's count by code. Its older gauge keeps the last code for ever and tells nothing of today."""
    return [
        Event(int(one.labels["xid"]), 0, one.pci, "", one.origin, int(one.value), is_named=True, uuid=one.uuid)
        for one in facts.of(Sample)
        if one.field == "DCGM_EXP_XID_ERRORS_COUNT" and one.value > 0 and one.labels.get("xid", "").isdigit()
    ]


def _event(said: Said, by_uuid: dict[str, Pci], *, is_named: bool) -> Event:
    detail = said.get("detail")
    process = _PROCESS.search(detail)
    caused = _CAUSED.search(detail)
    unit = _UNIT.search(detail)
    uuid = said.get("uuid")
    pci = pci_of(said.get("pci"))
    return Event(
        code=int(said.get("code", "0")),
        order=0,
        pci=pci if pci != NO_PCI else by_uuid.get(uuid, NO_PCI),
        detail=detail,
        origin=said.origin,
        times=said.times,
        pid=process["pid"] if process else "",
        process=(process["name"] or "").strip("'") if process else "",
        caused_by=int(caused[1]) if caused else 0,
        unit=tuple(part for part in unit.groups() if part) if unit else (),
        is_named=is_named,
        uuid=uuid,
    )


def _numbered(event: Event, order: int) -> Event:
    return Event(**{name: getattr(event, name) for name in event.__struct_fields__} | {"order": order})
