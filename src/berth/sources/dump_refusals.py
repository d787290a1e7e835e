"""How a dump is refused: file, object, field, value, what was expected, what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from berth.base.errors import UNREADABLE, USAGE, BadInput

_TYPE_REMEDY = "Write it with the type that Kubernetes gives it; text that reads like a number needs quotes."

# "Expected `int | null`, got `str` - at `$.spec.priority`"
_MESSAGE = re.compile(r"(?P<problem>.*?)(?: - at `(?P<key>key in )?\$(?P<path>[^`]*)`)?", re.DOTALL)
_WORDS = {"array": "a list", "object": "a mapping", "str": "text", "int": "a whole number", "bool": "true or false",
          "float": "a number", "null": "nothing"}  # fmt: skip
_NAMES = {dict: "object", list: "array", str: "str", int: "int", bool: "bool", float: "float", type(None): "null"}
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<place>\d+)\]|(?P<any>\[\.\.\.\])")
_GOT = re.compile(r"got `(\w+)`\Z")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOT_THERE = object()


def wrong_type(
    error: msgspec.ValidationError, where: str, kind: str = "", tree: Any = None, path: str = "",
    exit_code: int = UNREADABLE,
) -> BadInput:  # fmt: skip
    """A refusal for a field of the wrong type, from the decoder's message.

    `tree` is the object as plain values, as far as it is known: the decoder names neither keys of free choice
    (labels, resources) nor the value.
    """
    shape = _MESSAGE.fullmatch(str(error))
    problem = shape["problem"] if shape else str(error)
    said = ((shape["path"] if shape else "") or "").removeprefix(".")
    got = _GOT.search(problem)
    field, value = said, _NOT_THERE
    if got and not (shape and shape["key"]):
        field, value = next(_places(tree, f".{said}", got[1]), (said, _NOT_THERE))
    problem = _in_words(problem)
    if got and isinstance(value, str | int | float):
        problem = problem[: problem.rindex(" got ")] + f" got {_shown(value)}"
    field = ".".join(part for part in (path, field) if part)
    metadata = tree.get("metadata") if isinstance(tree, Mapping) else None
    parts = (where, object_name(kind, metadata) if kind else "", field)
    return BadInput(": ".join(p for p in parts if p), f"{problem}.", _TYPE_REMEDY, exit_code)


def _places(tree: Any, path: str, got: str) -> Iterator[tuple[str, Any]]:
    """Fields (name and value) that a decoder's path may mean and that hold a value of the type `got`."""
    step = _STEP.match(path)
    if step is None:
        if path.strip(".") == "" and _NAMES.get(type(tree)) == got:
            yield "", tree
        return
    inside: list[tuple[str, Any]] = []
    if step["any"] and isinstance(tree, Mapping):
        inside = [(_step(str(key)), value) for key, value in tree.items()]
    elif step["any"] and isinstance(tree, list):
        inside = [(f"[{i}]", value) for i, value in enumerate(tree)]
    elif step["place"] and isinstance(tree, list) and int(step["place"]) < len(tree):
        inside = [(step[0], tree[int(step["place"])])]
    elif step["name"] and isinstance(tree, Mapping) and step["name"] in tree:
        inside = [(step[0], tree[step["name"]])]
    for name, value in inside:
        for deeper, found in _places(value, path[step.end() :], got):
            yield f"{name}{'.' if deeper[:1] not in ('', '[', '.') else ''}{deeper}".removeprefix("."), found


def _step(key: str) -> str:
    return f".{key}" if _PLAIN_KEY.fullmatch(key) else f"[{json.dumps(key, ensure_ascii=False)}]"


def _shown(value: str | int | float) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _in_words(problem: str) -> str:
    """`Expected `int | null`, got `str`` is "expected a whole number, got text"."""

    def spoken(match: re.Match[str]) -> str:
        kinds = [word for word in match[1].split(" | ") if word != "null" or match[1] == "null"]
        if "float" in kinds and "int" in kinds:
            kinds.remove("int")
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


def unreadable_manifest(error: msgspec.ValidationError, where: str, path: str, tree: Any) -> BadInput:
    """The same for what a user wrote: a usage error."""
    return wrong_type(error, where, tree=tree, path=path, exit_code=USAGE)
