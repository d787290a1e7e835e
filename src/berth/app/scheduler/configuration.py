"""What the scheduler runs by: one versioned object, each value with the place that it came from.

Order: a flag before an environment variable before the file before the default. Unknown keys are errors.
"""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import Struct

from berth.app.scheduler.configuration_file import check_shape, read_object
from berth.app.scheduler.configuration_rules import check
from berth.app.scheduler.settings import API_VERSION, KIND, Configuration, LevelOf, Part
from berth.base.errors import BadInput
from berth.model.gpus import GpuMapping, read_mapping

PREFIX = "BERTH_"
FLAG, DEFAULT = "flag", "default"
# Variables of the commands, and what Kubernetes sets in pods for a Service whose name begins with berth.
_OF_OTHERS = re.compile(r"BERTH_(CONFIG|TRACEBACK|NOW|DATA|DEVCLUSTER\w*|\w*SERVICE_(HOST|PORT)\w*|\w*PORT_\d\w*)")
_OF_SERVICES = re.compile(r"(tcp|udp|sctp)://")


class Configured(Struct, frozen=True):
    """The configuration, and where each value came from: ("batch.windowMs", "5.0", "default").

    Values as they are written in the file: text as it is, all else as JSON, which YAML reads, too. `unknown` are
    sentences about variables that look like ours and set nothing. `mapping` is what `gpuClasses` says.
    """

    value: Configuration
    sources: tuple[tuple[str, str, str], ...]
    unknown: tuple[str, ...] = ()
    mapping: GpuMapping | None = None

    def where(self, path: str) -> str:
        """The address of a value for a sentence: "--set server.port", "berth.yaml: server.port"."""
        return _address(path, next((source for found, _, source in self.sources if found == path), DEFAULT))


def configure(
    file: str | None = None, flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
) -> Configured:
    """Put the parts together. `flags` by path ("batch.windowMs"); variables are BERTH_BATCH_WINDOW_MS.

    Raises BadInput with the file, flag or variable, the field, its value and the remedy.
    """
    written: dict[str, Any] = {}
    if file:
        written = read_object(file, API_VERSION, KIND)
        check_shape(written, Configuration, file)
    tree: dict[str, Any] = dict(written)
    sources = {path: f"file {file}" for path, _ in _leaves(written)}
    for path, kind in _paths(Configuration):
        variable = variable_of(path)
        given = (((environ or {}).get(variable), f"variable {variable}"), ((flags or {}).get(path), FLAG))
        for text, source in given:
            if text is not None:
                _put(tree, path, _value(text, kind, _address(path, source)))
                sources[path] = source
    try:
        value = msgspec.convert(tree, Configuration)
    except msgspec.ValidationError as error:  # nothing that the shape lets pass; told all the same
        raise BadInput(file or "configuration", f"cannot be read: {error}.") from None

    def where(path: str) -> str:
        return _address(path, sources.get(path, DEFAULT))

    check(value, where)
    mapping = read_mapping(value.gpu_classes, where("gpuClasses")) if value.gpu_classes else None
    builtin = msgspec.to_builtins(value)
    told = tuple((path, _written(_get(builtin, path)), sources.get(path, DEFAULT)) for path, _ in _paths(Configuration))
    return Configured(value, told, tuple(_unknown(environ or {})), mapping)


def _address(path: str, source: str) -> str:
    if source == FLAG:
        return f"--set {path}"
    if source.startswith("variable "):
        return source.removeprefix("variable ")
    return f"{source.removeprefix('file ')}: {path}" if source.startswith("file ") else path


def _unknown(environ: Mapping[str, str]) -> list[str]:
    """Variables that nobody reads: told, and no fault, since a cluster sets some of its own."""
    known = [variable_of(path) for path, _ in _paths(Configuration)]
    found = []
    for name in sorted(environ):
        of_others = _OF_OTHERS.fullmatch(name) or _OF_SERVICES.match(environ[name])
        if name.startswith(PREFIX) and name not in known and not of_others:
            close = get_close_matches(name, known, 1, 0.7)
            found.append(f"{name} sets nothing." + (f" Perhaps {close[0]}." if close else ""))
    return found


# ---- paths of values


def _paths(part: type[Struct], before: str = "") -> list[tuple[str, Any]]:
    """(path, type) of every value: "batch.windowMs"."""
    found: list[tuple[str, Any]] = []
    hints = typing.get_type_hints(part)
    for field in msgspec.structs.fields(part):
        kind = hints[field.name]
        path = f"{before}{field.encode_name}"
        if isinstance(kind, type) and issubclass(kind, Part):
            found += _paths(kind, path + ".")
        else:
            found.append((path, kind))
    return found


def _leaves(tree: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in tree.items():
        path = f"{before}{key}"
        found += _leaves(value, path + ".") if isinstance(value, Mapping) else [(path, value)]
    return found


def variable_of(path: str) -> str:
    """The variable that sets it: batch.windowMs by BERTH_BATCH_WINDOW_MS."""
    return PREFIX + "".join("_" + c if c.isupper() else c for c in path).replace(".", "_").upper()


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
