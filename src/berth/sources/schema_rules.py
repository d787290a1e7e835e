"""The rules of our schemas that are expressions or patterns: what each asks, as a function and in words.

Each key is the text that stands in deploy/crds, so a rule that changes there and not here is found by a test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from berth.base import quantity

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_DURATION = ("it is no duration", "Write 90s, 30m, 6h, 2d or 1h30m.")
_VERSION = ("it is no compute capability", 'Write "9.0".')
_TIME = "Write hours and minutes with two digits each, such as 08:00."

# pattern: (the rule in words, the remedy)
PATTERNS: dict[str, tuple[str, str]] = {
    r"^([0-9]+(\.[0-9]+)?(d|h|m|s))+$": _DURATION,
    r"^[0-9]{1,3}(\.[0-9]{1,3})?$": _VERSION,
    r"^[0-9]+(\.[0-9]+)?$": _VERSION,
    r"^([01][0-9]|2[0-3]):[0-5][0-9]$": ("it is no time of day", _TIME),
    r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$": ("it is no time of day", _TIME),
    r"^[A-Za-z][A-Za-z0-9_+/-]*$": ("it is no time zone", "Write Europe/Berlin or UTC."),
    r"^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$": (
        "it is no name of a class", "Write letters, digits, '.', '_', '/' and '-', such as H100-80GB.",
    ),
    r"^[a-z0-9]+$": ("small letters and digits are allowed", "Write fp8, bf16, …"),
    r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$": (
        "it is no word for a level", "Write letters, digits, '.', '_' and '-', such as rack.",
    ),
    r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$": (
        "it is no key of a label", "Write it as nodes carry it, such as example.com/rack.",
    ),
}  # fmt: skip


class Rule(Struct, frozen=True):
    """`holds` is asked of a value whose fields are each right by themselves. `field` is where it stands, from the top,
    if the schema does not say."""

    holds: Callable[[Any], bool]
    remedy: str = ""
    field: str = ""


def _short_name(thing: Mapping[str, Any]) -> bool:
    return len(str(thing["metadata"].get("name", ""))) <= 63


def _within_limit(spec: Mapping[str, Any]) -> bool:
    limit = spec.get("limit", {})
    return all(gpus <= limit[c] for c, gpus in spec.get("quota", {}).items() if c in limit)


def _within_all(spec: Mapping[str, Any]) -> bool:
    most = spec.get("limit", {}).get("*")
    return most is None or all(gpus <= most for gpus in spec.get("quota", {}).values())


def _agrees(spec: Mapping[str, Any]) -> bool:
    said, default = spec.get("preemptible"), spec.get("defaults", {}).get("preemptible")
    return said is None or default is None or str(said).lower() == default


def _is_amount(text: str) -> bool:
    try:
        return quantity.milli(text) > 0
    except quantity.QuantityError:
        return False


def _once(key: str) -> Callable[[list[Mapping[str, Any]]], bool]:
    return lambda levels: len({level[key] for level in levels}) == len(levels)


def moment(text: str) -> datetime | None:
    """RFC 3339, as the API server takes it; None for what is none."""
    try:
        return datetime.fromisoformat(text.upper()) if _MOMENT.fullmatch(text) else None
    except ValueError:
        return None


def _ends_after(spec: Mapping[str, Any]) -> bool:
    begins, until = moment(spec.get("from", "")), moment(spec.get("until", ""))
    return begins is None or until is None or begins < until


_SHORTER = Rule(_short_name, "Give it a shorter one.", "metadata.name")
_LOWER = Rule(_within_limit, "Raise the limit, or lower the quota.")

RULES: dict[str, Rule] = {
    "size(self.metadata.name) <= 63": _SHORTER,
    "!has(self.spec) || !has(self.spec.parent) || self.spec.parent != self.metadata.name": Rule(
        lambda thing: thing.get("spec", {}).get("parent") != thing["metadata"].get("name", ""),
        "Name another queue, or leave parent out.",
    ),
    "!has(self.quota) || !has(self.limit) || self.quota.all(c, !(c in self.limit) || self.quota[c] <= self.limit[c])":
        _LOWER,
    "!has(self.quota) || !has(self.limit) || !('*' in self.limit) "
    "|| self.quota.all(c, self.quota[c] <= self.limit['*'])": Rule(_within_all, _LOWER.remedy),
    "!has(self.borrowing) || self.borrowing || has(self.quota)": Rule(
        lambda spec: spec.get("borrowing", True) or "quota" in spec, "Write quota, or leave borrowing out."
    ),
    "!has(self.preemptible) || !has(self.defaults) || !has(self.defaults.preemptible) "
    "|| string(self.preemptible) == self.defaults.preemptible": Rule(_agrees),
    "has(self.queue) != has(self.workload)": Rule(
        lambda spec: ("queue" in spec) != ("workload" in spec), "Write queue: research, for example."
    ),
    "has(self.gpus) || has(self.nodes) || has(self.domain)": Rule(
        lambda spec: not spec.keys().isdisjoint(("gpus", "nodes", "domain")), "Write gpus: 8, for example."
    ),
    "!has(self.nodes) || !(has(self.gpus) || has(self.domain) || has(self.gpuClass))": Rule(
        lambda spec: "nodes" not in spec or spec.keys().isdisjoint(("gpus", "domain", "gpuClass")),
        "Leave nodes out, or those.",
    ),
    "!has(self.gpuClass) || has(self.gpus)": Rule(
        lambda spec: "gpuClass" not in spec or "gpus" in spec, "Write gpus: 8, for example, or leave gpuClass out."
    ),
    "!has(self.from) || !has(self.until) || timestamp(self.from) < timestamp(self.until)": Rule(
        _ends_after, "Write a later moment."
    ),
    "isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))": Rule(_is_amount),
    "self.all(a, self.exists_one(b, a.name == b.name))": Rule(_once("name"), "Give each its own name."),
    "self.all(a, self.exists_one(b, a.label == b.label))": Rule(_once("label"), "Leave one of them out."),
    "self.all(l, l.label != 'kubernetes.io/hostname')": Rule(
        lambda levels: all(level["label"] != "kubernetes.io/hostname" for level in levels), "Leave that level out."
    ),
}  # fmt: skip
