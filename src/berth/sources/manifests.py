"""Jobs as people write them, from files or standard input, to workloads that can be checked before submit.

A file may hold several documents, `kind: List`, and objects that ask for no pods (a Service, a ConfigMap):
those are passed over, except for the groups and runtimes that workloads refer to.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from berth.base import yaml_tree
from berth.base.errors import BadInput
from berth.base.units import counted
from berth.dialects.grouping import grouped
from berth.dialects.known_keys import refuse_unknown
from berth.dialects.objects import group_of, index
from berth.dialects.owners import API_GROUPS, READERS, is_read, shapes_of
from berth.dialects.shape import SetShape, Shape
from berth.model.workload import PodClass, PodSet, Workload
from berth.sources.dump_files import packed_as
from berth.sources.known_fields import refuse_misspelt, refuse_misspelt_in_pod
from berth.sources.pod_class import read_template

ToPodClass = Callable[[Mapping[str, Any], str, str], PodClass]

MOST_COPIES = 100_000
# Kinds that workloads refer to; they are read with those and deserve no note.
_REFERRED_TO = {"PodGroup", "Workload", "TrainingRuntime", "ClusterTrainingRuntime", "HyperNode"}


def read_jobs(paths: Sequence[str], namespace: str = "") -> list[Shape]:
    """The workloads of YAML or JSON files, "-" for standard input, read as if they were one file: pods and the groups
    that they name may be in different ones. `namespace` is that of objects that name none.

    Raises BadInput (exit code 2) naming file, field, value, rule and remedy.
    """
    if len(paths) > 1 and (repeated := next((path for path in paths if paths.count(path) > 1), "")):
        called = "standard input" if repeated == "-" else repeated
        raise BadInput(called, "it was given twice.", "Name each file once.")
    return _shapes([thing for path in paths for thing in _written_in(*_content(path), namespace)])


def shapes_in(content: bytes, where: str, namespace: str = "") -> list[Shape]:
    """The workloads in the text of a manifest. `where` is how errors call the file, `namespace` as for `read_jobs`."""
    return _shapes(_written_in(content, where, namespace))


def _content(path: str) -> tuple[bytes, str]:
    """What a file holds, and how errors call it."""
    if path == "-":
        if sys.stdin is None:
            raise BadInput("standard input", "it is closed.", "Pipe the manifest into it, or name a file.")
        return sys.stdin.buffer.read(), "standard input"
    try:
        return Path(path).read_bytes(), path
    except IsADirectoryError:
        raise BadInput(path, "it is a folder.", "Name files, each with -f; or pipe them in, as -f -.") from None
    except OSError as error:
        raise BadInput(path, f"it cannot be read: {error.strerror}.", "Check the path.") from None


class _Written(Struct, frozen=True):
    """One object of a file."""

    thing: Mapping[str, Any]
    where: str  # the file


def _written_in(content: bytes, where: str, namespace: str) -> list[_Written]:
    if what := _packed_as(content):
        raise BadInput(where, f"it is {what}.", "Unpack it and name the manifest.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(where, f"byte {error.start} is not UTF-8.", "Save the file as UTF-8.") from None
    found = [
        _Written(_placed_in(thing, namespace), where)
        for document in _documents(text, where)
        for thing in _objects(document, where)
    ]
    if not found:
        raise _no_workload(found, where)
    return found


def _packed_as(content: bytes) -> str | None:
    if content.startswith(b"\x1f\x8b"):
        return "compressed with gzip"
    return "a tar archive" if content[257:262] == b"ustar" else packed_as(content)


def _shapes(written: Sequence[_Written]) -> list[Shape]:
    workloads = [one for one in written if _asks_for_pods(one.thing, one.where)]
    if not workloads:
        raise _no_workload(written, ", ".join(dict.fromkeys(one.where for one in written)))
    _refuse_repeated(workloads)
    manifests = [one.thing for one in written]
    objects = index(manifests)
    in_file = Counter(one.where for one in workloads)
    shapes: list[Shape] = []
    for one in workloads:
        # Of one workload alone the field says enough; among several the object is named too.
        name = one.where if in_file[one.where] == 1 else f"{one.where}: {_name(one.thing)}"
        refuse_unknown(one.thing, name)
        refuse_misspelt(one.thing, name)
        made = shapes_of(one.thing, name, objects)
        for shape in made:
            for part in shape.sets:
                refuse_misspelt_in_pod(part.template, shape.where, part.path)
        shapes.extend(made)
    joined = grouped(shapes, objects)
    notes = _about([thing for thing in manifests if not is_read(thing)])
    if notes and joined:
        joined[0] = replace(joined[0], notes=(*joined[0].notes, *notes))
    return joined


def _no_workload(written: Sequence[_Written], where: str) -> BadInput:
    things = [one.thing for one in written]
    held = ", ".join(sorted({str(thing.get("kind")) for thing in things})) or "nothing"
    kinds = ", ".join(sorted({kind for _, kind in READERS}))
    return BadInput(where, f"it holds no workload ({held}).", _meant(things) or f"Berth reads {kinds}.")


def workloads_of(
    shapes: Sequence[Shape],
    to_pod_class: ToPodClass | None = None,
    priorities: Mapping[str, int] | None = None,
    never_preempt: Collection[str] = (),
) -> list[Workload]:
    """Workloads as the scheduling core takes them; copies become `name-0`, `name-1`, …

    `to_pod_class` takes a pod template, its file and its place there. `priorities` are the values of priority
    classes by name, "" for the default, `never_preempt` those for whose pods nobody is asked to leave. Sets without
    pods are left out, and workloads without sets.
    """
    convert = to_pod_class or _pod_class
    values = priorities or {}
    made: list[Workload] = []
    for shape in shapes:
        if shape.copies > MOST_COPIES:
            raise BadInput(
                f"{shape.where}: {shape.kind} {shape.name}",
                f"it asks for {counted(shape.copies, 'independent pod')}, and {MOST_COPIES:,} at most are looked at.",
                "Check fewer: pods that are alike get the same answer.",
            )
        sets = tuple(_pod_set(one, shape, convert) for one in shape.sets if one.count)
        if not sets:
            continue
        priority = shape.priority
        if priority is None:
            priority = values.get(shape.priority_class, values.get("", 0) if not shape.priority_class else 0)
        for copy in range(shape.copies):
            made.append(
                Workload(
                    name=f"{shape.name}-{copy}" if shape.copies > 1 else shape.name,
                    pod_sets=sets,
                    namespace=shape.namespace,
                    kind=shape.kind,
                    queue=shape.queue,
                    priority=priority,
                    topology=shape.topology,
                    scheduler=shape.scheduler,
                    gates=shape.gates,
                    provenance=shape.provenance,
                    preempts=shape.priority_class not in never_preempt,
                    preemptible=shape.preemptible,
                    min_runtime_s=shape.min_runtime_s,
                    time_limit_s=shape.time_limit_s,
                    checkpoint_every_s=shape.checkpoint_every_s,
                )
            )
    return made


def _pod_set(one: SetShape, shape: Shape, convert: ToPodClass) -> PodSet:
    return PodSet(
        name=one.name,
        pod_class=convert(one.template, shape.where, one.path),
        count=one.count,
        min_count=one.min_count,
        topology=one.topology,
        labels=tuple(sorted(one.labels.items())),
    )


def _pod_class(template: Mapping[str, Any], where: str, path: str) -> PodClass:
    return read_template(template, where, path).pod_class


# ---- text to objects


def _documents(text: str, where: str) -> Iterator[Any]:
    """Values of a JSON stream or of YAML documents."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            values = list(_json_values(text))
        except ValueError as json_error:
            # Flow-style YAML begins like JSON.
            try:
                yield from _yaml_documents(text, where)
            except BadInput:
                raise BadInput(where, f"it is not JSON: {json_error}.", "Mend it there.") from None
            return
        yield from values
        return
    yield from _yaml_documents(text, where)


def _json_values(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        while at < len(text) and text[at].isspace():
            at += 1
        if at < len(text):
            value, at = decoder.raw_decode(text, at)
            yield value


def _yaml_documents(text: str, where: str) -> Iterator[Any]:
    first_line = 0
    lines: list[str] = []
    for number, line in enumerate([*text.splitlines(keepends=True), "---"]):
        if not line.startswith("---") or line[3:4] not in ("", " ", "\t", "\n", "\r"):
            lines.append(line)
            continue
        yield _yaml("".join(lines), where, first_line)
        # What stands on the marker's line belongs to the document that it begins.
        lines, first_line = [line[3:]], number


def _yaml(text: str, where: str, first_line: int) -> Any:
    try:
        return yaml_tree.parse(text)
    except RecursionError:
        raise BadInput(where, "it is nested too deeply.", "Flatten it.") from None
    except yaml_tree.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {first_line + mark.line + 1}: " if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise BadInput(f"{where}: {line}".rstrip(": "), f"not YAML: {problem}.", "Mend it there.") from None


def _objects(value: Any, where: str) -> Iterator[Mapping[str, Any]]:
    """One object, or the items of a List, of any kind of list, or of a plain sequence."""
    if value is None:
        return
    if isinstance(value, list):
        for item in value:
            yield from _objects(item, where)
        return
    if not isinstance(value, Mapping):
        raise BadInput(
            where, f"{str(value)[:60]!r} is not a Kubernetes object.", "Write apiVersion, kind and metadata."
        )
    kind = value.get("kind")
    items = value.get("items")
    if isinstance(items, list) and (kind is None or (isinstance(kind, str) and kind.endswith("List"))):
        yield from _objects(items, where)
        return
    if not isinstance(kind, str) or not kind:
        raise BadInput(f"{where}: kind", "it is missing.", "Write the kind, such as Job or Pod.")
    yield value


def _placed_in(thing: Mapping[str, Any], namespace: str) -> Mapping[str, Any]:
    """The object with this namespace where it names none. What is no metadata is told of by who reads it."""
    meta = thing.get("metadata")
    if not namespace or not isinstance(meta, Mapping) or meta.get("namespace"):
        return thing
    return {**thing, "metadata": {**meta, "namespace": namespace}}


def _asks_for_pods(thing: Mapping[str, Any], where: str) -> bool:
    if is_read(thing):
        return True
    kind = str(thing.get("kind"))
    if kind in API_GROUPS and not thing.get("apiVersion"):
        group = API_GROUPS[kind]
        raise BadInput(f"{where}: apiVersion", "it is missing.", f"Write that of {kind}: {group or 'v1'}.")
    return False


def _refuse_repeated(workloads: Sequence[_Written]) -> None:
    """Of two objects of one name the later would replace the first: both together is nothing that can be had."""
    seen: dict[tuple[str, ...], str] = {}
    for thing, where in ((one.thing, one.where) for one in workloads):
        meta = thing.get("metadata")
        if not isinstance(meta, Mapping) or not isinstance(name := meta.get("name"), str) or not name:
            continue
        key = (group_of(str(thing.get("apiVersion"))), str(thing["kind"]), str(meta.get("namespace") or ""), name)
        if key in seen:
            there = "in this file" if seen[key] == where else f"in {seen[key]}"
            problem = f'"{name}" is the name of another {thing["kind"]} of the same namespace {there}.'
            raise BadInput(f"{where}: {_name(thing)}: metadata.name", problem, "Give each its own name.")
        seen[key] = where


# ---- words


def _name(thing: Mapping[str, Any]) -> str:
    meta = thing.get("metadata")
    name = meta.get("name") if isinstance(meta, Mapping) else None
    return f"{thing.get('kind')} {name or '(no name)'}"


def _about(skipped: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """One note for all that was passed over."""
    names = [_name(thing) for thing in skipped if thing.get("kind") not in _REFERRED_TO]
    if not names:
        return ()
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    hint = _meant(skipped)
    return (f"Passed over, as no pods are asked for by a kind that Berth reads: {shown}.{' ' + hint if hint else ''}",)


def _meant(skipped: Sequence[Mapping[str, Any]]) -> str:
    """`Did you mean PyTorchJob?` for a kind that is nearly one."""
    kinds = {kind.lower(): kind for _, kind in READERS}
    for thing in skipped:
        close = difflib.get_close_matches(str(thing.get("kind")).lower(), kinds, 1, 0.85)
        if close and str(thing.get("kind")) != kinds[close[0]]:
            return f"Did you mean {kinds[close[0]]}?"
        if close and (group := API_GROUPS.get(kinds[close[0]])) is not None:
            return f"The {kinds[close[0]]} that Berth reads is of {group or 'the core group, apiVersion v1'}."
    return ""
