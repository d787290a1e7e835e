"""Reading one field of a manifest, with an error that says where it stands and what to write instead."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from berth.base.errors import BadInput

LARGEST_INT32 = 2**31 - 1
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|w|d|h|m|s)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


class Field:
    """A value in a manifest and its place. What is absent or null is None, and so is all below it.

    `where` is the file (and document) it was read from, `path` the place in it: `spec.tasks[0].replicas`.
    """

    __slots__ = ("path", "value", "where")

    def __init__(self, value: Any, where: str = "", path: str = "") -> None:
        self.value = value
        self.where = where
        self.path = path

    def __getitem__(self, dotted: str) -> Field:
        """The field below, by one key or several joined by dots. Keys with dots: use `at`."""
        field = self
        for key in dotted.split("."):
            field = field.at(key)
        return field

    def at(self, key: str) -> Field:
        """The field below with exactly this key."""
        path = _join(self.path, key)
        return Field(self.mapping().get(key), self.where, path)

    @property
    def is_given(self) -> bool:
        return self.value is not None

    def mapping(self) -> Mapping[str, Any]:
        if self.value is None:
            return {}
        if not isinstance(self.value, Mapping):
            raise self.bad("a mapping is needed", "Write key: value pairs below it.")
        return self.value

    def entries(self) -> Iterator[tuple[str, Field]]:
        """Keys of a mapping with their fields, in the order written."""
        for key, value in self.mapping().items():
            yield str(key), Field(value, self.where, _join(self.path, str(key)))

    def items(self) -> list[Field]:
        """Elements of a list."""
        if self.value is None:
            return []
        if not isinstance(self.value, list | tuple):
            raise self.bad("a list is needed", "Begin each entry with a dash.")
        return [Field(value, self.where, f"{self.path}[{i}]") for i, value in enumerate(self.value)]

    def text(self, default: str = "") -> str:
        if self.value is None:
            return default
        if not isinstance(self.value, str):
            is_one = not isinstance(self.value, Mapping | list | tuple)
            raise self.bad("text is needed", f'Write "{_shown(self.value)}" in quotes.' if is_one else "Write a word.")
        return self.value

    def flag(self, default: bool = False) -> bool:
        if self.value is None:
            return default
        if not isinstance(self.value, bool):
            raise self.bad("true or false is needed", "Write it without quotes.")
        return self.value

    def number(self, default: int = 0, least: int = 0) -> int:
        """A whole number, as Kubernetes' int32 fields take it: not in quotes, not negative."""
        value = self.value
        if value is None:
            return default
        if isinstance(value, str) and value.strip().lstrip("+-").isdigit():
            raise self.bad("a number is needed, not text", f"Write {value.strip()} without quotes.")
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.bad("a whole number is needed", f"Write {max(least, 1)}, for example.")
        return self._within(value, least)

    def number_in_text(self, default: int = 0, least: int = 0) -> int:
        """A whole number in an annotation or label, whose values are always text."""
        if self.value is None:
            return default
        text = str(self.value).strip()
        if isinstance(self.value, bool | float) or not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            raise self.bad("a whole number is needed", f'Write "{max(least, 1)}", for example.')
        return self._within(int(text), least)

    def flag_in_text(self, default: bool = False) -> bool:
        """true or false in an annotation or label."""
        if self.value is None:
            return default
        text = str(self.value).strip().lower()
        if text not in ("true", "false"):
            raise self.bad("it is true or false", 'Write "true" or "false".')
        return text == "true"

    def seconds(self, default: float = 0.0) -> float:
        """A duration such as `6h`, `2d`, `1h30m`, in seconds."""
        if self.value is None:
            return default
        text = str(self.value).strip().lower()
        parts = _DURATION.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            raise self.bad("it is not a duration", "Write 90s, 30m, 6h, 2d or 1h30m.")
        return sum(float(number) * _SECONDS[unit] for number, unit in parts)

    def bad(self, rule: str, remedy: str = "") -> BadInput:
        """The error for this field: file, path, value, rule, remedy."""
        place = ": ".join(part for part in (self.where, self.path) if part)
        return BadInput(place, f"{_shown(self.value)}: {rule}.", remedy)

    def _within(self, value: int, least: int) -> int:
        if value < least:
            rule = "it cannot be negative" if least == 0 else f"it must be {least} or more"
            raise self.bad(rule, f"Write {least} or more.")
        if value > LARGEST_INT32:
            raise self.bad(f"the largest number that Kubernetes takes here is {LARGEST_INT32}")
        return value


def _join(path: str, key: str) -> str:
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key


def _shown(value: Any) -> str:
    """The value as it stands in the manifest, cut where it is long."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = str(value)  # a YAML date
    return text if len(text) <= 60 else text[:57] + "..."
