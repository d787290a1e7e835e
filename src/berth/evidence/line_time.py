"""The time that a line of a log begins with, in the forms of the kernel, klog, journals and JSON."""

from __future__ import annotations

import re
from calendar import month_abbr
from datetime import UTC, datetime

_MONTHS = {name: number for number, name in enumerate(month_abbr) if name}

_ISO = re.compile(
    r"(?P<day>\d{4}[-/]\d\d[-/]\d\d)[T ](?P<clock>\d\d:\d\d:\d\d(?:[.,]\d+)?) ?(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
_BOOT = re.compile(r"^(?:<\d+>)?\[ *(?P<s>\d+\.\d+)\]")
_KMSG = re.compile(r"^\d+,\d+,(?P<us>\d+),[^;]*;")
_DMESG_T = re.compile(r"\[\w{3} (?P<month>\w{3}) +(?P<day>\d+) (?P<clock>\d\d:\d\d:\d\d) (?P<year>\d{4})\]")
_KLOG = re.compile(r"\b[IWEF](?P<month>\d\d)(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d\.\d+)")
_SYSLOG = re.compile(r"^(?P<month>[A-Z][a-z]{2}) +(?P<day>\d+) (?P<clock>\d\d:\d\d:\d\d)")


def line_time(line: str) -> tuple[str, float]:
    """As printed, and in seconds to order by: since 1970, since the year began where no year is printed, or since boot.
    ("", 0.0) where the line begins with none."""
    head = line[:120]
    if found := _BOOT.match(head):
        return found[0], float(found["s"])
    if found := _KMSG.match(head):
        return f"[{int(found['us']) / 1e6:.6f}]", int(found["us"]) / 1e6
    if found := _DMESG_T.search(head):
        return found[0], _seconds(int(found["year"]), found["month"], found["day"], found["clock"])
    if found := _ISO.search(head):
        return found[0].strip(), _iso(found["day"], found["clock"], found["zone"] or "")
    if found := _KLOG.search(head):
        return found[0], _seconds(1970, found["month"], found["day"], found["clock"])
    if found := _SYSLOG.match(head):
        return found[0], _seconds(1970, found["month"], found["day"], found["clock"])
    return "", 0.0


def _iso(day: str, clock: str, zone: str) -> float:
    clock = clock.replace(",", ".")
    whole, _, fraction = clock.partition(".")
    offset = "+00:00" if zone in ("", "Z") else zone
    try:
        moment = datetime.fromisoformat(f"{day.replace('/', '-')}T{whole}{offset}")
    except ValueError:
        return 0.0
    return moment.timestamp() + (float(f"0.{fraction}") if fraction else 0.0)


def _seconds(year: int, month: str, day: str, clock: str) -> float:
    number = _MONTHS.get(month) or (int(month) if month.isdigit() else 0)
    hours, minutes, seconds = clock.split(":")
    try:
        start = datetime(year, number, int(day), int(hours), int(minutes), tzinfo=UTC)
    except ValueError:
        return 0.0
    return start.timestamp() + float(seconds)
