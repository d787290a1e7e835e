"""A configuration put together: a flag before an environment variable before the file before the default.

Each server has an object of its own (a Part); the order, the addresses in sentences and the sources of values are here.
Unknown keys are errors.
"""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from berth.app.scheduler.configuration_file import check_shape, read_object
from berth.app.scheduler.settings import LevelOf, Part
from berth.base.errors import BadInput

FLAG, DEFAULT = "flag", "default"
# Variables of the commands, and what Kubernetes sets in pods for a Service whose name begins with berth.
_OF_OTHERS = re.compile(r"BERTH_(CONFIG|TRACEBACK|NOW|DATA|DEVCLUSTER\w*|\w*SERVICE_(HOST|PORT)\w*|\w*PORT_\d\w*)")
_OF_SERVICES = re.compile(r"(tcp|udp|sctp)://")
_OF_AGENT = "BERTH_AGENT_"

Shape = TypeVar("Shape", bound=Part)


class Layers(Struct, Generic[Shape], frozen=True):
    """The object, and where each value came from: ("batch.windowMs", "5.0", "default").

    Values as they are written in the file: text as it is, all else as JSON, which YAML reads, too. `unknown` are
    sentences about variables that look like ours and set nothing.
    """

    value: Shape
    sources: tuple[tuple[str, str, str], ...]
    unknown: tuple[str, ...] = ()

    def where(self, path: str) -> str:
        """The address of a value for a sentence: "--set server.port", "berth.yaml: server.port"."""
        return address(path, next((source for found, _, source in self.sources if found == path), DEFAULT))


def layered(
    shape: type[Shape],
    kind: tuple[str, str],
    prefix: str,
    file: str | None = None,
    flags: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    check: Callable[[Shape, Callable[[str], str]], None] | None = None,
) -> Layers[Shape]:
    """Put the parts together. `kind` is apiVersion and kind; `flags` are by path ("batch.windowMs"), variables by name:
    BERTH_BATCH_WINDOW_MS where `prefix` is BERTH_.

    Raises BadInput with the file, flag or variable, the field, its value and the remedy.
    """
    written: dict[str, Any] = {}
    if file:
        written = read_object(file, *kind)
        check_shape(written, shape, file)
    tree: dict[str, Any] = dict(written)
    sources = {path: f"file {file}" for path, _ in _leaves(written)}
    paths = paths_of(shape)
    for path, type_of in paths:
        variable = variable_of(path, prefix)
        given = (((environ or {}).get(variable), f"variable {variable}"), ((flags or {}).get(path), FLAG))
        for text, source in given:
            if text is not None:
                _put(tree, path, _value(text, type_of, address(path, source)))
                sources[path] = source
    try:
        value = msgspec.convert(tree, shape)
    except msgspec.ValidationError as error:  # nothing that the shape lets pass; told all the same
        raise BadInput(file or "configuration", f"cannot be read: {error}.") from None
    if check is not None:
        check(value, lambda path: address(path, sources.get(path, DEFAULT)))
    builtin = msgspec.to_builtins(value)
    told = tuple((path, _written(_get(builtin, path)), sources.get(path, DEFAULT)) for path, _ in paths)
    return Layers(value, told, tuple(_unknown(environ or {}, [path for path, _ in paths], prefix)))


def address(path: str, source: str) -> str:
    if source == FLAG:
        return f"--set {path}"
    if source.startswith("variable "):
        return source.removeprefix("variable ")
    return f"{source.removeprefix('file ')}: {path}" if source.startswith("file ") else path


def _unknown(environ: Mapping[str, str], paths: list[str], prefix: str) -> list[str]:
    """Variables that nobody reads: told, and no fault, since a cluster sets some of its own."""
    known = [variable_of(path, prefix) for path in paths]
    found = []
    for name in sorted(environ):
        of_agent = name.startswith(_OF_AGENT) and prefix != _OF_AGENT
        of_others = of_agent or _OF_OTHERS.fullmatch(name) or _OF_SERVICES.match(environ[name])
        if name.startswith(prefix) and name not in known and not of_others:
            close = get_close_matches(name, known, 1, 0.7)
            found.append(f"{name} sets nothing." + (f" Perhaps {close[0]}." if close else ""))
    return found


# ---- paths of values


def paths_of(part: type[Struct], before: str = "") -> list[tuple[str, Any]]:
    """(path, type) of every value: "batch.windowMs"."""
    found: list[tuple[str, Any]] = []
    hints = typing.get_type_hints(part)
    for field in msgspec.structs.fields(part):
        kind = hints[field.name]
        path = f"{before}{field.encode_name}"
        if isinstance(kind, type) and issubclass(kind, Part):
            found += paths_of(kind, path + ".")
        else:
            found.append((path, kind))
    return found


def _leaves(tree: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in tree.items():
        path = f"{before}{key}"
        found += _leaves(value, path + ".") if isinstance(value, Mapping) else [(path, value)]
    return found


def variable_of(path: str, prefix: str) -> str:
    """The variable that sets it: batch.windowMs by BERTH_BATCH_WINDOW_MS."""
    return prefix + "".join("_" + c if c.isupper() else c for c in path).replace(".", "_").upper()


def _value(text: str, kind: Any, where: str) -> Any:
    """What a flag or a variable says, as the file would have it."""
    if kind is bool:
        if text.lower() not in ("true", "false", "1", "0"):
            raise BadInput(where, f"is {text!r}.", "Write true or false.")
        return text.lower() in ("true", "1")
    if kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise BadInput(where, f"is {text!r}.", f"Write a {'whole ' if kind is int else ''}number.")
        return number
    if typing.get_origin(kind) in (tuple, types.GenericAlias):
        parts = [part.strip() for part in text.split(",")] if text.strip() else []
        if typing.get_args(kind)[0] is LevelOf:
            return [dict(zip(("name", "label"), (part.partition("=")[::2]), strict=True)) for part in parts]
        return parts
    return text


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *above, last = path.split(".")
    for key in above:
        tree[key] = dict(tree.get(key) or {})
        tree = tree[key]
    tree[last] = value


def _written(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _get(tree: Any, path: str) -> Any:
    for key in path.split("."):
        tree = tree[key]
    return tree
