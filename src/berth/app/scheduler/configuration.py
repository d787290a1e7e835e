"""What the scheduler runs by: one versioned object, each value with the place that it came from.

Order: a flag before an environment variable before the file before the default. Unknown keys are errors.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from berth.base.errors import BadInput

API_VERSION, KIND = "berth.dev/v1alpha1", "SchedulerConfiguration"
PREFIX = "BERTH_"


class Part(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base of all parts: camelCase in the file."""


class Election(Part, frozen=True, forbid_unknown_fields=True):
    enabled: bool = True
    namespace: str = ""  # "" is the namespace that the scheduler runs in
    name: str = "berth-scheduler"
    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0


class Clients(Part, frozen=True, forbid_unknown_fields=True):
    in_flight: int = 64


class Server(Part, frozen=True, forbid_unknown_fields=True):
    address: str = "0.0.0.0"
    port: int = 8090


class Preemption(Part, frozen=True, forbid_unknown_fields=True):
    enabled: bool = True
    beyond_budgets: bool = False


class LevelOf(Part, frozen=True, forbid_unknown_fields=True):
    name: str
    label: str


class TopologyOf(Part, frozen=True, forbid_unknown_fields=True):
    levels: tuple[LevelOf, ...] = ()


class Batch(Part, frozen=True, forbid_unknown_fields=True):
    window_ms: float = 5.0
    most_ms: float = 50.0


class Configuration(Part, frozen=True, forbid_unknown_fields=True):
    """Times in the unit of their name. `gpu_classes` is a mapping as `--gpu-classes` takes it, in line."""

    api_version: str = API_VERSION
    kind: str = KIND
    scheduler_names: tuple[str, ...] = ("berth",)
    leader_election: Election = Election()
    clients: Clients = Clients()
    server: Server = Server()
    preemption: Preemption = Preemption()
    topology: TopologyOf = TopologyOf()
    gpu_classes: str = ""
    batch: Batch = Batch()
    log_level: str = "info"
    log_format: str = "json"


class Configured(Struct, frozen=True):
    """The configuration, and where each value came from: ("batch.windowMs", "5.0", "default").

    Values as they are written in the file: text as it is, all else as JSON, which YAML reads, too.
    """

    value: Configuration
    sources: tuple[tuple[str, str, str], ...]


def configure(
    file: str | None = None, flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
) -> Configured:
    """Put the parts together. `flags` by path ("batch.windowMs"); variables are BERTH_BATCH_WINDOW_MS.

    Raises BadInput with the file or variable, the field, its value and the remedy.
    """
    written = _read(file) if file else {}
    tree: dict[str, Any] = dict(written)
    sources = {path: f"file {file}" for path, _ in _leaves(written)}
    for path, kind in _paths(Configuration):
        variable = PREFIX + _shouted(path)
        given = (((environ or {}).get(variable), f"variable {variable}"), ((flags or {}).get(path), "flag"))
        for text, source in given:
            if text is not None:
                _put(tree, path, _value(text, kind, path, source))
                sources[path] = source
    try:
        value = msgspec.convert(tree, Configuration)
    except msgspec.ValidationError as error:
        raise _unreadable(error, file or "configuration") from None
    _check(value, file or "configuration")
    shown = msgspec.to_builtins(value)
    told = tuple(
        (path, _written(_get(shown, path)), next((s for p, s in sources.items() if _within(path, p)), "default"))
        for path, _ in _paths(Configuration)
    )
    return Configured(value, told)


def _read(file: str) -> dict[str, Any]:
    try:
        thing = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(file, f"cannot be read: {error.strerror}.", "Name a configuration file.") from None
    except (yaml.YAMLError, ValueError) as error:
        raise BadInput(file, f"is no YAML: {' '.join(str(error).split())}.", "Mend it.") from None
    if not isinstance(thing, dict):
        raise BadInput(file, "holds no object.", f"Begin with apiVersion: {API_VERSION} and kind: {KIND}.")
    for key, right in (("apiVersion", API_VERSION), ("kind", KIND)):
        if thing.get(key) != right:
            raise BadInput(f"{file}: {key}", f"is {thing.get(key)!r}.", f"Write {key}: {right}.")
    return thing


def _check(value: Configuration, where: str) -> None:
    election, batch = value.leader_election, value.batch
    rules = (
        (bool(value.scheduler_names), "schedulerNames", "is empty.", "Name one scheduler at least: [berth]."),
        (election.retry_seconds < election.renew_seconds < election.lease_seconds, "leaderElection",
         f"has retrySeconds {election.retry_seconds:g}, renewSeconds {election.renew_seconds:g}, leaseSeconds "
         f"{election.lease_seconds:g}.", "They must rise in this order: 2, 10, 15."),
        (election.retry_seconds > 0, "leaderElection.retrySeconds", "is not above 0.", "Write 2."),
        (1 <= value.clients.in_flight <= 1024, "clients.inFlight", f"is {value.clients.in_flight}.",
         "Write 1 to 1024."),
        (0 <= value.server.port <= 65535, "server.port", f"is {value.server.port}.", "Write 0 to 65535."),
        (0 <= batch.window_ms <= batch.most_ms, "batch", f"has windowMs {batch.window_ms:g} and mostMs "
         f"{batch.most_ms:g}.", "windowMs is at most mostMs."),
        (value.log_level in ("debug", "info", "warning", "error"), "logLevel", f"is {value.log_level!r}.",
         "Write debug, info, warning or error."),
        (value.log_format in ("json", "text"), "logFormat", f"is {value.log_format!r}.", "Write json or text."),
    )  # fmt: skip
    for holds, path, problem, remedy in rules:
        if not holds:
            raise BadInput(f"{where}: {path}", problem, remedy)


def _unreadable(error: msgspec.ValidationError, where: str) -> BadInput:
    said, _, at = str(error).partition(" - at `$")
    path = at.rstrip("`").lstrip(".")
    known = ", ".join(path for path, _ in _paths(Configuration))
    return BadInput(f"{where}: {path}" if path else where, f"{said}.", f"Known are {known}.")


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


def _within(path: str, other: str) -> bool:
    return path == other or other.startswith(path + ".") or path.startswith(other + ".")


def _shouted(path: str) -> str:
    """"batch.windowMs" as BATCH_WINDOW_MS."""
    return "".join("_" + c if c.isupper() else c for c in path).replace(".", "_").upper()


def _value(text: str, kind: Any, path: str, source: str) -> Any:
    if kind is bool and text.lower() not in ("true", "false", "1", "0"):
        raise BadInput(f"{source}: {path}", f"is {text!r}.", "Write true or false.")
    if kind is bool:
        return text.lower() in ("true", "1")
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            raise BadInput(f"{source}: {path}", f"is {text!r}.", "Write a number.") from None
    if typing.get_origin(kind) in (tuple, types.GenericAlias):
        parts = [part.strip() for part in text.split(",") if part.strip()]
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
