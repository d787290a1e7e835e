"""The configuration's file: its YAML, and whether it has the shape of the object, each key with its address."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Hashable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from berth.base.errors import BadInput


def read_object(file: str, api_version: str, kind: str) -> dict[str, Any]:
    """The one object in the file. Raises BadInput with file, line and remedy."""
    try:
        thing = yaml.load(Path(file).read_text(encoding="utf-8"), Loader=_Once)
    except OSError as error:
        raise BadInput(file, f"cannot be read: {error.strerror}.", "Name a configuration file.") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}, line {mark.line + 1}, column {mark.column + 1}" if mark is not None else file
        said = " ".join((error.problem or error.context or "it cannot be read").split())
        said = said.replace("'<stream end>'", "the end of the file")
        remedy = "See whether quotes and brackets are closed, and lines indented alike."
        raise BadInput(where, f"is no YAML: {said}.", remedy) from None
    except (yaml.YAMLError, ValueError):
        raise BadInput(file, "is no YAML: it is not text in UTF-8.", "Save it as UTF-8.") from None
    if not isinstance(thing, dict):
        raise BadInput(file, "holds no object.", f"Begin with apiVersion: {api_version} and kind: {kind}.")
    for key, right in (("apiVersion", api_version), ("kind", kind)):
        if key not in thing:
            raise BadInput(f"{file}: {key}", "is missing.", f"Write {key}: {right}.")
        if thing[key] != right:
            raise BadInput(f"{file}: {key}", f"is {shown(thing[key])}.", f"Write {key}: {right}.")
    return thing


def check_shape(tree: Mapping[Any, Any], part: type[Struct], file: str, above: str = "") -> None:
    """Raises BadInput for the first key that there is not, and for the first value of another type."""
    hints = typing.get_type_hints(part)
    kinds = {field.encode_name: hints[field.name] for field in msgspec.structs.fields(part)}
    for key, value in tree.items():
        path = f"{above}{key}"
        if key not in kinds:
            close = get_close_matches(str(key), kinds, 3, 0.6)
            known = f"Perhaps {' or '.join(above + name for name in close)}." if close else (
                f"Known are {', '.join(above + name for name in kinds)}.")  # fmt: skip
            raise BadInput(f"{file}: {path}", "is no key of the configuration.", known)
        _check_value(value, kinds[key], file, path)


def _check_value(value: Any, kind: Any, file: str, path: str) -> None:
    where = f"{file}: {path}"
    if isinstance(kind, type) and issubclass(kind, Struct):
        names = [field.encode_name for field in msgspec.structs.fields(kind)]
        if not isinstance(value, Mapping):
            remedy = f"Write an object with {', '.join(names)}, or leave it out."
            raise BadInput(where, f"is {shown(value)}.", remedy)
        check_shape(value, kind, file, path + ".")
        for field in msgspec.structs.fields(kind):
            if field.required and field.encode_name not in value:
                raise BadInput(f"{where}.{field.encode_name}", "is missing.", f"Write {' and '.join(names)}.")
        return
    if typing.get_origin(kind) in (tuple, types.GenericAlias):
        if not isinstance(value, list):
            raise BadInput(where, f"is {shown(value)}.", "Write a list: […].")
        for number, one in enumerate(value):
            _check_value(one, typing.get_args(kind)[0], file, f"{path}[{number}]")
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is bool and not isinstance(value, bool):
        raise BadInput(where, f"is {shown(value)}.", "Write true or false.")
    if kind is int and not (is_number and isinstance(value, int)):
        raise BadInput(where, f"is {shown(value)}.", "Write a whole number.")
    if kind is float and not (is_number and math.isfinite(value)):
        raise BadInput(where, f"is {shown(value)}.", "Write a number.")
    if kind is str and not isinstance(value, str):
        raise BadInput(where, f"is {shown(value)}.", "Write text; put it in quotes where YAML takes it for another.")


def shown(value: Any) -> str:
    """A value as a sentence has it: short, and what YAML took it for."""
    if value is None:
        return "empty"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


class _Once(yaml.SafeLoader):
    """YAML in which no key of a mapping is there twice: the second would silently take the place of the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key!r} is there twice", problem_mark=key_node.start_mark
                )  # fmt: skip
            if isinstance(key, Hashable):
                seen.add(key)
        return super().construct_mapping(node, deep)
