"""How a dump is refused: file, object, field, what was expected, what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from berth.base.errors import UNREADABLE, USAGE, BadInput

RETRY = "Dump again, and look whether the command that wrote the file was interrupted."
_TYPE_REMEDY = "Write it with the type that Kubernetes gives it; text that reads like a number needs quotes."

# "Expected `int | null`, got `str` - at `$.spec.priority`"
_MESSAGE = re.compile(r"(?P<problem>.*?)(?: - at `(?P<key>key in )?\$(?P<path>[^`]*)`)?", re.DOTALL)
_WORDS = {"array": "a list", "object": "a mapping", "str": "text", "int": "a whole number", "bool": "true or false",
          "float": "a number", "null": "nothing"}  # fmt: skip


def wrong_type(
    error: msgspec.ValidationError, where: str, kind: str = "", metadata: Any = None, path: str = "",
    exit_code: int = UNREADABLE,
) -> BadInput:  # fmt: skip
    """A refusal for a field of the wrong type, from the decoder's message."""
    shape = _MESSAGE.fullmatch(str(error))
    problem = shape["problem"] if shape else str(error)
    field = ((shape["path"] if shape else "") or "").removeprefix(".")
    field = ".".join(part for part in (path, field) if part)
    parts = (where, object_name(kind, metadata), field)
    return BadInput(": ".join(p for p in parts if p), f"{_in_words(problem)}.", _TYPE_REMEDY, exit_code)


def _in_words(problem: str) -> str:
    """`Expected `int | null`, got `str`` is "expected a whole number, got text"."""

    def spoken(match: re.Match[str]) -> str:
        kinds = [word for word in match[1].split(" | ") if word != "null" or match[1] == "null"]
        return " or ".join(_WORDS.get(kind, kind) for kind in kinds)

    return re.sub(r"`([^`]*)`", spoken, problem).replace("Expected", "expected", 1)


def object_name(kind: str, metadata: Any) -> str:
    """`pod train/worker-0`, as far as kind and metadata (a Struct, a mapping or nothing) tell."""
    if isinstance(metadata, Mapping):
        name, namespace = metadata.get("name"), metadata.get("namespace")
    else:
        name, namespace = getattr(metadata, "name", None), getattr(metadata, "namespace", None)
    full = "/".join(str(part) for part in (namespace, name) if part)
    return f"{kind.lower()} {full}".strip()


def not_an_object(value: Any, where: str) -> BadInput:
    what = {type(None): "nothing", list: "a list", str: "text"}.get(type(value), f"a {type(value).__name__}")
    problem = f"expected a Kubernetes object, found {what}."
    return BadInput(where, problem, "An object starts with apiVersion and kind.", UNREADABLE)


def unreadable_manifest(error: msgspec.ValidationError, where: str, path: str) -> BadInput:
    """The same for what a user wrote: a usage error."""
    return wrong_type(error, where, path=path, exit_code=USAGE)
