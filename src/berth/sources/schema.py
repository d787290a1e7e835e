"""Objects of Berth's own kinds against the schema of their custom resource: what the API server would refuse.

The schemas are those of deploy/crds, packed by deploy/manifests.py into schemas.json; their rules that are expressions
have a twin in schema_rules.py. Only what these schemas use is known here, and a test says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from berth.base.units import counted
from berth.sources.schema_rules import PATTERNS, RULES, moment

Schema = Mapping[str, Any]

_FILE = Path(__file__).with_name("schemas.json")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TYPES: dict[str, tuple[tuple[type, ...], str, str]] = {
    # type: (Python types, what is needed, remedy)
    "object": ((dict,), "a mapping is needed.", "Write key: value pairs below it."),
    "array": ((list,), "a list is needed.", "Begin each entry with a dash."),
    "string": ((str,), "text is needed.", "Put it in quotes where YAML takes it for another."),
    "integer": ((int,), "a whole number is needed.", "Write digits alone, without quotes."),
    "number": ((int, float), "a number is needed.", "Write it without quotes."),
    "boolean": ((bool,), "true or false is needed.", "Write it without quotes."),
}


class Fault(Struct, frozen=True):
    """A rule that does not hold: `path` is that of the field, `spec.quota["*"]`."""

    path: str
    problem: str
    remedy: str = ""


class Checked(Struct, frozen=True):
    """The object without what its schema does not have; `unknown` are sentences about that, by path."""

    value: dict[str, Any]
    faults: tuple[Fault, ...] = ()
    unknown: tuple[str, ...] = ()


@cache
def schemas() -> dict[str, Schema]:
    """By kind."""
    found: dict[str, Schema] = json.loads(_FILE.read_text(encoding="utf-8"))
    return found


def checked(kind: str, thing: Mapping[str, Any]) -> Checked:
    """An object of one of the kinds of `schemas`. What is null counts as not written."""
    schema = schemas()[kind]
    unknown: list[str] = []
    value = _pruned(thing, schema, "", unknown, kind, schema)
    return Checked(value, tuple(_faults(value, schema, "")), tuple(unknown))


# ---- what there is no field for


def _pruned(value: Any, schema: Schema, path: str, unknown: list[str], kind: str, top: Schema) -> Any:
    if isinstance(value, list) and (items := schema.get("items")):
        return [_pruned(one, items, f"{path}[{i}]", unknown, kind, top) for i, one in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    known, others = schema.get("properties"), schema.get("additionalProperties")
    kept = {}
    for key, inside in value.items():
        below = _below(path, str(key))
        if inside is None:
            continue
        if known is not None and str(key) in known:
            kept[str(key)] = _pruned(inside, known[str(key)], below, unknown, kind, top)
        elif known is None:
            kept[str(key)] = _pruned(inside, others or {}, below, unknown, kind, top)
        else:
            unknown.append(f"{below} is no field of a {kind} and was passed over{_meant(str(key), path, known, top)}")
    return kept


def _meant(key: str, path: str, known: Mapping[str, Any], top: Schema) -> str:
    inner = top["properties"]["spec"]["properties"]
    if not path and key in inner:
        return f"; write it under spec: spec.{key}"
    close = get_close_matches(key.lower(), {name.lower(): name for name in known}, 1, 0.6)
    names = {name.lower(): name for name in known}
    return f"; close to it: {names[close[0]]}" if close else f"; there are {', '.join(known)}"


# ---- rules


def _faults(value: Any, schema: Schema, path: str) -> Iterator[Fault]:
    kind = schema.get("type")
    if kind is not None and not _is_of(value, kind):
        _, needed, remedy = _TYPES[kind]
        yield Fault(path, f"is {_shown(value)}: {needed}", remedy)
        return
    if isinstance(value, str):
        yield from _of_text(value, schema, path)
    elif isinstance(value, list):
        yield from _of_list(value, schema, path)
    elif isinstance(value, dict):
        yield from _of_mapping(value, schema, path)
    elif not isinstance(value, bool):
        yield from _of_number(value, schema, path)


def _is_of(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind][0]) and (kind == "boolean" or not isinstance(value, bool))


def _of_text(value: str, schema: Schema, path: str) -> Iterator[Fault]:
    if choices := schema.get("enum"):
        if value not in choices:
            lower = {choice.lower(): choice for choice in choices}
            close = get_close_matches(value.lower(), lower, 1, 0.6)
            remedy = f"Did you mean {lower[close[0]]}?" if close else "Write one of them."
            yield Fault(path, f"is {_shown(value)}, and there are {', '.join(choices)}.", remedy)
        return
    if len(value) < schema.get("minLength", 0):
        yield Fault(path, "is empty.", "Write it, or leave the field out.")
        return
    if len(value) > schema.get("maxLength", len(value)):
        most = schema["maxLength"]
        yield Fault(path, f"has {counted(len(value), 'character')}: {most} at most are allowed.", "Shorten it.")
    elif (pattern := schema.get("pattern")) and not re.search(pattern, value, re.ASCII):
        rule, remedy = PATTERNS[pattern]
        yield Fault(path, f"is {_shown(value)}: {rule}.", remedy)
    elif schema.get("format") == "date-time" and moment(value) is None:
        yield Fault(path, f"is {_shown(value)}: it is no moment.", "Write it like 2026-12-01T08:00:00Z.")
    else:
        yield from _expressions(value, schema, path)


def _of_number(value: float, schema: Schema, path: str) -> Iterator[Fault]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and (value <= least if schema.get("exclusiveMinimum") else not value >= least):
        words = f"more than {least:,}" if schema.get("exclusiveMinimum") else f"{least:,} or more"
        yield Fault(path, f"is {_shown(value)}: it has to be {words}.", "Mend the value.")
    elif most is not None and (value >= most if schema.get("exclusiveMaximum") else not value <= most):
        words = f"less than {most:,}" if schema.get("exclusiveMaximum") else f"{most:,} or less"
        yield Fault(path, f"is {_shown(value)}: it has to be {words}.", "Mend the value.")


def _of_list(value: list[Any], schema: Schema, path: str) -> Iterator[Fault]:
    if len(value) < schema.get("minItems", 0):
        yield Fault(path, "is an empty list.", "Write an entry, or leave the field out.")
    if len(value) > schema.get("maxItems", len(value)):
        yield Fault(path, f"has {counted(len(value), 'entry', 'entries')}: {schema['maxItems']:,} at most are allowed.")
    if schema.get("x-kubernetes-list-type") == "set":
        for i, one in enumerate(value):
            if one in value[:i]:
                yield Fault(f"{path}[{i}]", f"is {_shown(one)}, which is in the list already.", "Leave one out.")
    faults = [fault for i, one in enumerate(value) for fault in _faults(one, schema.get("items", {}), f"{path}[{i}]")]
    yield from faults
    if not faults:
        yield from _expressions(value, schema, path)


def _of_mapping(value: dict[str, Any], schema: Schema, path: str) -> Iterator[Fault]:
    faults = []
    for key in schema.get("required", ()):
        if key not in value:
            faults.append(Fault(_below(path, key), "is missing.", f"Write {key}."))
    if len(value) < schema.get("minProperties", 0):
        faults.append(Fault(path, "is empty.", "Write an entry, or leave the field out."))
    if len(value) > schema.get("maxProperties", len(value)):
        most = schema["maxProperties"]
        faults.append(Fault(path, f"has {counted(len(value), 'entry', 'entries')}: {most:,} at most are allowed."))
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    for key, inside in value.items():
        faults.extend(_faults(inside, known.get(key, others or {}), _below(path, key)))
    yield from faults
    if not faults:
        yield from _expressions(value, schema, path)


def _expressions(value: Any, schema: Schema, path: str) -> Iterator[Fault]:
    """Rules about several fields, where each by itself is right."""
    for said in schema.get("x-kubernetes-validations", ()):
        rule = RULES[" ".join(said["rule"].split())]
        if not rule.holds(value):
            at = f"{path}{said.get('fieldPath', '')}".removeprefix(".") or rule.field
            yield Fault(at, f"{said['message']}.", rule.remedy)


# ---- words


def _below(path: str, key: str) -> str:
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


def _shown(value: Any) -> str:
    """The value as it stands in the file, cut where it is long."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
