"""Xids 144 to 150, NVLink of the fifth generation: which unit, which event, what to do.

A line names a unit, whether it is fatal, the link, and in parentheses seven words: the first (information) holds the
unit and for link events the reason, the second is the error status. Up to driver R570 the unit is in the low ten bits
of the first word, from R575 on in the low seven; where the version is not known both are tried.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from berth.diagnosis.xid.catalogue import rows_of

CODES = range(144, 151)
V2_SINCE = 575  # driver branch
_REASON = 0x03F00000

_LINE = re.compile(
    r"(?P<unit>[A-Za-z][A-Za-z0-9_]*(?: Degraded)?),? (?P<fatality>Non-?fatal|Fatal|Link Fatal)\b"
    r"(?: XC(?P<contained>\d))?(?: i(?P<injected>\d))?(?: Link (?P<link>-?\d+))?(?: \((?P<words>0x[0-9a-f][^)]*)\))?",
    re.IGNORECASE,
)
_WORD = re.compile(r"0x[0-9a-f]+", re.IGNORECASE)


class Nvlink5Line(Struct, frozen=True, gc=False):
    """What such a line says."""

    unit: str
    is_fatal: bool
    link: int = -1  # -1: the whole device
    information: int | None = None
    status: int | None = None
    is_injected: bool = False


class Resolution(Struct, frozen=True, gc=False):
    """One rule of the table."""

    code: int
    units: tuple[str, str]  # before R575, from R575 on
    masks: tuple[str, str]
    status: tuple[int, ...]  # none where any fits
    action: str
    masks_that_change_it: tuple[str, str]
    action_then: str
    investigate: str
    severity: str
    side: str  # HW, SW, FW
    local: str  # what else the GPU itself shows
    remote: str  # and its peers

    def unit(self, version: int) -> str:
        return self.units[version - 1]

    def action_for(self, information: int | None, version: int) -> str:
        mask = self.masks_that_change_it[version - 1]
        if mask and information is not None and _fits(mask, information):
            return self.action_then
        return self.action


class Decoded(Struct, frozen=True, gc=False):
    """A line by the table of one version of the driver."""

    version: int  # 1: before R575, 2: from R575 on
    rule: Resolution
    action: str


def read_line(detail: str) -> Nvlink5Line | None:
    """What follows the number; None where it has no sub-code."""
    found = _LINE.search(detail)
    if not found:
        return None
    words = [int(word, 16) for word in _WORD.findall(found["words"] or "")]
    return Nvlink5Line(
        unit=found["unit"].upper(),
        is_fatal="non" not in found["fatality"].lower(),
        link=int(found["link"]) if found["link"] else -1,
        information=words[0] if words else None,
        status=words[1] if len(words) > 1 else None,
        is_injected=found["injected"] == "1",
    )


def decode(code: int, line: Nvlink5Line, driver: int = 0) -> tuple[Decoded, ...]:
    """What to do by the table. `driver` is the branch (575), 0 where it is not known: then both versions answer, once
    where they agree. Where the version that it should be has no such line the other is taken: the branch from which on
    the second holds is not the same for every unit. Nothing where the table has no such line at all."""
    by_version = {version: one for version in (1, 2) if (one := _by_version(code, line, version))}
    wanted = 2 if driver >= V2_SINCE else 1
    found = [by_version[wanted]] if driver and wanted in by_version else list(by_version.values())
    if len(found) == 2 and found[0].rule == found[1].rule and found[0].action == found[1].action:
        return (found[0],)
    return tuple(found)


def _by_version(code: int, line: Nvlink5Line, version: int) -> Decoded | None:
    """By mask and status; where words are missing or the mask is of another version, by the unit's name and status."""
    rules = [rule for rule in table() if rule.code == code and _status_fits(rule, line)]
    named = [rule for rule in rules if line.unit in (unit.upper() for unit in rule.units)]
    masked = [rule for rule in named or rules if line.information is not None and _takes(rule, line, version)]
    if not masked and not named:
        return None
    best = masked or [rule for rule in named if line.unit == rule.unit(version).upper()]
    if not best:
        return None
    if not masked and line.information is not None:
        word = line.information
        best = sorted(best, key=lambda rule: not _reason_fits(rule.masks[version - 1], word))
    return Decoded(version, best[0], best[0].action_for(line.information, version))


def _takes(rule: Resolution, line: Nvlink5Line, version: int) -> bool:
    assert line.information is not None
    then = rule.masks_that_change_it[version - 1]
    return _fits(rule.masks[version - 1], line.information) or bool(then and _fits(then, line.information))


def _status_fits(rule: Resolution, line: Nvlink5Line) -> bool:
    return not rule.status or line.status is None or line.status in rule.status


def _fits(mask: str, word: int) -> bool:
    care, value = _bits(mask)
    return word & care == value


def _reason_fits(mask: str, word: int) -> bool:
    """Of a link event: why the link went down, bits 20 to 25, the same in both versions."""
    care, value = _bits(mask)
    return word & care & _REASON == value & _REASON


@cache
def _bits(mask: str) -> tuple[int, int]:
    care = int("".join("0" if bit == "-" else "1" for bit in mask), 2)
    return care, int(mask.replace("-", "0"), 2)


@cache
def table() -> tuple[Resolution, ...]:
    """All 95 rules."""
    return tuple(map(_of_row, rows_of("nvlink5.tsv")))


def _of_row(cells: list[str]) -> Resolution:
    statuses = tuple(int(word, 16) for word in cells[5].split("/") if word)
    units, masks, masks_that_change_it = (cells[1], cells[2]), (cells[3], cells[4]), (cells[7], cells[8])
    return Resolution(int(cells[0]), units, masks, statuses, cells[6], masks_that_change_it, *cells[9:15])
