"""Label selectors as kubectl takes them with -l."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple


class Term(NamedTuple):
    """One condition: `key` In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator in ("Exists", "DoesNotExist"):
            return self.key if self.operator == "Exists" else f"!{self.key}"
        if len(self.values) == 1:
            return f"{self.key}{'=' if self.operator == 'In' else '!='}{self.values[0]}"
        return f"{self.key} {'in' if self.operator == 'In' else 'notin'} ({','.join(self.values)})"

    def holds(self, labels: Mapping[str, str]) -> bool:
        if self.operator == "In":
            return self.key in labels and labels[self.key] in self.values
        if self.operator == "NotIn":
            return labels.get(self.key) not in self.values
        return (self.key in labels) is (self.operator == "Exists")


Selector = tuple[Term, ...]

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_SET = re.compile(rf"(?P<key>{_NAME})\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL = re.compile(rf"(?P<key>{_NAME})\s*(?P<sign>!=|==|=)\s*(?P<value>(?:{_NAME})?)")
_THERE = re.compile(rf"(?P<no>!?)\s*(?P<key>{_NAME})")
_COMMA = re.compile(r",(?![^(]*\))")


def parse(text: str) -> Selector:
    """The terms, which must all hold. Raises ValueError that says what cannot be read."""
    return tuple(_term(part.strip()) for part in _COMMA.split(text)) if text.strip() else ()


def fits(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Every term holds."""
    return all(term.holds(labels) for term in selector)


def written(selector: Selector) -> str:
    """The selector as one would type it."""
    return ",".join(map(str, selector))


def _term(part: str) -> Term:
    if found := _SET.fullmatch(part):
        values = tuple(value.strip() for value in found["values"].split(","))
        return Term(found["key"], "In" if found["word"] == "in" else "NotIn", values)
    if found := _EQUAL.fullmatch(part):
        return Term(found["key"], "NotIn" if found["sign"] == "!=" else "In", (found["value"],))
    if found := _THERE.fullmatch(part):
        return Term(found["key"], "DoesNotExist" if found["no"] else "Exists")
    raise ValueError(f"{part!r} is no condition on labels. Write key=value, key!=value, key in (a,b), key or !key.")
