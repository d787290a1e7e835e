"""Kubernetes objects as JSON or YAML: one, a List, several in a row; as kubectl prints or the API server sends them.

Each kind that rules know becomes facts of cluster_facts.py, any other an ObjectSeen. What their messages say (events,
statuses, configuration) is evidence of its own: those texts in which a known sentence may be come as pieces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from berth.base import yaml_tree
from berth.evidence import damage
from berth.evidence.damage import Damage
from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format, node_ledger
from berth.evidence.formats import object_facts as facts_of
from berth.evidence.formats import object_wire as wire
from berth.evidence.formats.cluster_facts import NodeSeen, ObjectSeen
from berth.evidence.piece import Piece
from berth.evidence.scan import scanner

_JSON = re.compile(rb'^\s*(?:\[\s*)?\{[\s\S]*?"(?:apiVersion|kind|items|metadata|status|capacity)"\s*:')
_YAML = re.compile(rb"(?m)^(?:- )?(?:apiVersion|kind): *[\"']?[A-Za-z]")
# A CDI specification has a kind, too, of another sort, and is read by cdi_spec.py.
_CDI = re.compile(rb"(?:\s*(?:---|#[^\n]*)\n)*\s*\{?\s*(?:[\"']?kind[\"']?: *[^\n,]*,?\s*)?[\"']?cdiVersion\b")
# Files of the same form that no API server has: kubelet_files.py and gpu_labels.py read them.
_FILE = re.compile(rb"(?m)^kind: *\"?(?:KubeletConfiguration|\w*NodeProfile)\b")
_LOG = re.compile(rb'\s*\{\s*"(?:level|ts|time|timestamp|severity|msg|message|logger|log|caller|stream)"\s*:')
_OF_NODES = ("nvidia.com/", "feature.node.kubernetes.io/", "kubernetes.io/hostname")
_STARTS = re.compile(r'\{\s*"(?:apiVersion|kind|metadata)"\s*:')
_OF_OBJECTS = {"metadata", "items", "status"}
_SETS = ("DaemonSet", "Deployment", "StatefulSet")
_JUDGED = ("Node", "Pod", *_SETS)  # by a status, which stands at their end
CUT_OUT = "objects"  # kind of a piece that is known to be objects: cut out of a list, or sent by the API server
_DOCUMENTS = re.compile(rb"(?m)^---(?:\s.*)?$")
# A document that is an object from its first word on; elsewhere YAML that cannot be read is somebody's prose.
_DOCUMENT = re.compile(rb"(?:\s*(?:#[^\n]*)?\n)*(?:apiVersion: *[\w./\"'-]+|kind: *[A-Z]\w+|items:) *\n")
_LISTED = re.compile(rb"(?m)^items: *\n(?= *- )")
_BEHIND = re.compile(rb"(?m)^[A-Za-z]")
_TEMPLATE = re.compile(rb"\{\{")

Part = TypeVar("Part")

_item = msgspec.json.Decoder(wire.Item).decode
_array = msgspec.json.Decoder(list[Raw]).decode
_plain = msgspec.json.Decoder().decode
_common_list = msgspec.json.Decoder(wire.CommonList, strict=False).decode


class Found(msgspec.Struct, frozen=True):
    """One object: its head, and its bytes as JSON."""

    item: wire.Item
    raw: bytes | Raw


def objects(raw: bytes) -> Iterator[Found | bytes | Damage]:
    """All objects of a text, those of Lists one by one; what stands between them and is none, as bytes; and what is
    missing from it."""
    text = raw.strip()
    if text[:1] in (b"{", b"["):
        yield from _of_json(text, "", "")
        return
    begin = 0
    for mark in (*_DOCUMENTS.finditer(raw), None):
        yield from _of_yaml(raw[begin : mark.start() if mark else len(raw)], raw.count(b"\n", 0, begin))
        begin = mark.end() if mark else 0


def _of_yaml(document: bytes, above: int) -> Iterator[Found | bytes | Damage]:
    """The objects of one document; `above` are the lines of the text before it."""
    try:
        tree = yaml_tree.parse(document)
    except (yaml_tree.YAMLError, RecursionError, ValueError) as error:
        if _DOCUMENT.match(document) and not _TEMPLATE.search(document):
            yield from _of_items(document)
            yield Damage(problem=_not_yaml(error, above))
        return
    if isinstance(tree, dict) and "kind" not in tree and isinstance(tree.get("items"), list) and tree.get("apiVersion"):
        # kubectl writes the kind of a list behind its items. The last of them may lack what would make it healthy.
        *whole, last = tree["items"] or [None]
        has_all = isinstance(last, dict) and last.get("kind") not in _JUDGED
        tree = {"items": [*whole, last] if has_all else whole}
        yield Damage(problem=damage.NO_KIND)
    if isinstance(tree, (dict, list)):
        yield from _of_json(msgspec.json.encode(tree), "", "")


def _of_items(document: bytes) -> Iterator[Found | bytes | Damage]:
    """The items of a list that cannot be read whole, but those that are damaged, and the last where nothing is behind
    it."""
    begins = _LISTED.search(document)
    if begins is None:
        return
    behind = _BEHIND.search(document, begins.end())
    items = document[begins.end() : behind.start() if behind else len(document)]
    indent = len(items) - len(items.lstrip(b" "))
    places = [found.start() for found in re.finditer(rb"(?m)^ {%d}-(?= )" % indent, items)]
    for start, end in pairwise((*places, len(items)) if behind else places):
        try:
            tree = yaml_tree.parse(b" " * (indent + 1) + items[start + indent + 1 : end])
        except (yaml_tree.YAMLError, RecursionError, ValueError):
            continue
        if isinstance(tree, dict):
            yield from _of_json(msgspec.json.encode(tree), "", "")


def _not_yaml(error: Exception, above: int) -> str:
    mark = getattr(error, "problem_mark", None)
    return f"line {above + mark.line + 1} is no YAML" if mark is not None else "a part of it is no YAML"


def _of_json(text: bytes | Raw, kind: str, version: str) -> Iterator[Found | bytes | Damage]:
    try:
        many = _array(text) if bytes(text[:1] if isinstance(text, bytes) else b"{") == b"[" else [text]
        for one in many:
            item = _item(one)
            if item.items is None:
                yield _named(item, one, kind, version)
                continue
            of = (item.kind or "").removesuffix("List")
            for inner in item.items:
                yield from _of_json(inner, of, item.api_version or "")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        if isinstance(text, bytes):
            yield from _of_broken(text.decode("utf-8", "replace"))


def _of_broken(text: str) -> Iterator[Found | bytes | Damage]:
    """The whole objects of a text that is cut off, or has something in between; and that."""
    decoder = json.JSONDecoder()
    position = ended = 0
    between: list[str] = []
    while (start := _STARTS.search(text, position)) is not None:
        try:
            value, position = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            position = start.end()
            continue
        if not isinstance(value, dict) or not _OF_OBJECTS & value.keys():
            continue  # a reference to an object, inside one that is cut off
        between.append(text[ended : start.start()])
        ended = position
        raw = _as_bytes(value)
        try:
            item = _item(raw)
        except msgspec.MsgspecError:
            continue
        if item.items is None:
            yield _named(item, raw, "", "")
        else:
            yield from _of_json(raw, "", "")
    left = "\n".join((*between, text[ended:]))
    if left.strip(" \t\r\n,[]{}"):
        yield left.encode("utf-8", "replace")
    if problem := damage.of_json(text):
        yield Damage(problem=problem)


def _as_bytes(value: object) -> bytes:
    """As JSON; half a character, which JSON may escape, is a question mark."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _named(item: wire.Item, raw: bytes | Raw, kind: str, version: str) -> Found:
    if item.kind or not kind:
        return Found(item, raw)
    return Found(replace(item, kind=kind, api_version=item.api_version or version), raw)


def _as(shape: type[Part], raw: bytes | Raw) -> Part | None:
    """A part of an object; None where it is absent or not of that shape."""
    if not bytes(raw[:1] if isinstance(raw, bytes) else memoryview(raw)[:1]):
        return None
    try:
        return msgspec.json.decode(raw, type=shape, strict=False)
    except (msgspec.MsgspecError, RecursionError):
        return None


def read(piece: Piece) -> Iterator[Fact | Piece]:
    """Facts of each object; then the texts in which something may be said: of events with their reason, of statuses, of
    configuration."""
    texts: list[tuple[str, Origin]] = []
    common = _common(piece.raw) if piece.kind == CUT_OUT else None
    for item in common or ():
        meta = item.metadata or wire.Meta()
        if isinstance(item, wire.NodeItem):
            yield from _node(item.spec, item.status, meta, origin_of(piece, "Node", meta), piece, texts)
        elif isinstance(item, wire.PodItem):
            yield from _pod(item.spec, item.status, meta, origin_of(piece, "Pod", meta), texts)
        else:
            yield from _event(item, origin_of(piece, "Event", meta), texts)
    for found in objects(piece.raw) if common is None else ():
        if isinstance(found, Damage):
            yield replace(found, origin=Origin(source=piece.source, kind=piece.kind, node=piece.node))
            continue
        if isinstance(found, bytes):
            yield Piece(found, piece.source, "", piece.node, piece.pod, piece.taken_s)
            continue
        meta = found.item.metadata or wire.Meta()
        kind = found.item.kind or _guessed(found)
        if "/" in kind:  # of no Kubernetes object: a CDI specification's
            continue
        origin = origin_of(piece, kind, meta)
        if kind == "Event":
            yield from _event(_as(wire.EventWire, found.raw), origin, texts)
        elif kind == "Pod":
            spec, status = _as(wire.PodSpec, found.item.spec), _as(wire.PodStatus, found.item.status)
            yield from _pod(spec, status, meta, origin, texts)
        elif kind == "Node":
            of_node, state = _as(wire.NodeSpec, found.item.spec), _as(wire.NodeStatus, found.item.status)
            yield from _node(of_node, state, meta, origin, piece, texts)
        elif kind == node_ledger.KIND:
            yield from node_ledger.facts_of(found.raw, meta.name or "", origin, piece.taken_s)
        elif kind in _SETS:
            wanted, ready = _as(wire.SetSpec, found.item.spec), _as(wire.SetStatus, found.item.status)
            yield facts_of.operand(kind, meta, wanted, ready, origin)
        elif kind:
            yield from _other(found, kind, meta, origin, piece, texts)
        elif labels := _labels(found):
            yield NodeSeen(origin=origin, name=piece.node, labels=labels)
    for index in scanner().mentioned([text.encode() for text, _ in texts]):
        text, origin = texts[index]
        yield Piece(text.encode(), origin.source, origin.kind, origin.node, origin.pod)


def _common(raw: bytes) -> list[wire.NodeItem | wire.PodItem | wire.EventItem] | None:
    """A list of nodes, pods and events in one pass; None where it holds anything else."""
    try:
        return _common_list(raw).items
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _node(
    spec: wire.NodeSpec | None, status: wire.NodeStatus | None, meta: wire.Meta, origin: Origin, piece: Piece,
    texts: list[tuple[str, Origin]],
) -> Iterator[Fact]:  # fmt: skip
    yield from facts_of.node(meta, spec, status, origin, piece.node)
    texts.extend((text, origin) for text in _of_conditions(status.conditions if status else None))


def _pod(
    spec: wire.PodSpec | None, status: wire.PodStatus | None, meta: wire.Meta, origin: Origin,
    texts: list[tuple[str, Origin]],
) -> Iterator[Fact]:  # fmt: skip
    seen = facts_of.pod(meta, spec, status, origin)
    yield seen
    if said := list(facts_of.pod_texts(seen)):
        of_status = replace(origin, kind="pod-events")
        texts.extend((text, of_status) for text in said)


def _event(event: wire.EventWire | None, origin: Origin, texts: list[tuple[str, Origin]]) -> Iterator[Fact]:
    if event is None:
        return
    fact = facts_of.event(event, origin)
    yield fact
    texts.append((f"{fact.type}  {fact.reason}  {fact.message}", replace(fact.origin, kind="pod-events")))


def _other(
    found: Found, kind: str, meta: wire.Meta, origin: Origin, piece: Piece, texts: list[tuple[str, Origin]]
) -> Iterator[Fact | Piece]:
    body = _plain(found.raw)
    if not isinstance(body, dict):
        return
    namespace, name = meta.namespace or "", meta.name or ""
    version = found.item.api_version or ""
    yield ObjectSeen(origin=origin, api_version=version, kind=kind, namespace=namespace, name=name, body=body)
    if kind == "ConfigMap":
        data = body.get("data")
        for key, value in data.items() if isinstance(data, dict) else ():
            if isinstance(value, str):
                yield Piece(value.encode(), f"{origin.source} {key}", "configmap", piece.node)
        return
    status = _as(wire.NodeStatus, found.item.status)
    texts.extend((text, origin) for text in _of_conditions(status.conditions if status else None))


def _of_conditions(conditions: Iterable[wire.ConditionWire] | None) -> Iterator[str]:
    for condition in conditions or ():
        words = (condition.type, f"={condition.status}", condition.reason, condition.message)
        yield " ".join(word for word in words if word)[:LONGEST_TEXT]


def _guessed(found: Found) -> str:
    """Of an object without its kind: a node is known by what it offers, labels by themselves are a node's."""
    status = _as(wire.NodeStatus, found.item.status)
    if status is not None and (status.capacity or status.allocatable):
        return "Node"
    pod = _as(wire.PodSpec, found.item.spec)
    return "Pod" if pod is not None and pod.containers else ""


def _labels(found: Found) -> dict[str, str]:
    """Labels by themselves, as `kubectl get node -o jsonpath={.metadata.labels}` prints them."""
    labels = _as(dict[str, str], found.raw)
    return labels if labels and any(name.startswith(_OF_NODES) for name in labels) else {}


def origin_of(piece: Piece, kind: str, meta: wire.Meta) -> Origin:
    where = "/".join(part for part in (meta.namespace, meta.name) if part)
    node = meta.name or "" if kind == "Node" else ""
    pod = f"{meta.namespace}/{meta.name}" if kind == "Pod" else ""
    source = f"{piece.source}: {kind} {where}" if piece.source else f"{kind} {where}"
    return Origin(source=source, kind=piece.kind or "objects", node=node, pod=pod)


def _looks_like(head: bytes) -> object:
    has_kind = b"kind" in head
    if not has_kind and b"apiVersion" not in head:
        # Without either only JSON may be an object, a part of one.
        return (b'"metadata"' in head or b'"items"' in head or b'"status"' in head or b'"capacity"' in head) and (
            not _LOG.match(head) and not _CDI.match(head) and _JSON.match(head)
        )
    others = _CDI.match(head) or _LOG.match(head) or (has_kind and _FILE.search(head))
    return not others and (_JSON.match(head) or _YAML.search(head))


OBJECTS = Format("Kubernetes objects", ("objects", "node-json"), _looks_like, read, is_opaque=True)
