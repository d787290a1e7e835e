"""What `kubectl describe node` and `kubectl describe pod` print, whole or a part of it, and the same lines of a status
that somebody cut out of YAML or JSON.

Versions known: kubectl 1.8 to 1.35: indents of one or of two spaces, taints on one line or on many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.cluster_facts import (
    UNSAID,
    Advertised,
    Condition,
    ContainerState,
    EventSeen,
    Limit,
    NodeSeen,
    PodSeen,
)
from berth.evidence.piece import Piece

_LOOKS = re.compile(
    rb"(?mi)^\s*\"?(?:capacity|allocatable)\"?:\s*\{?\s*$|^(?:Name|Priority):\s+\S.*\n(?:.*\n){0,6}?"
    rb"(?:Labels|Roles|Annotations|Namespace|Node|Status):|^\s*(?:Normal|Warning)\s{2,}\S+\s{2,}\S+.*\s{2,}\S+\s{2,}\S"
)
_IS_OBJECT = re.compile(rb"(?m)^(?:apiVersion|kind): *\S")
_BEGINS = re.compile(r"(?m)^(?=Name:\s+\S)")
_TOP = re.compile(r"^(?P<key>[A-Z][A-Za-z -]*?):(?:\s+(?P<value>.*\S))?\s*$")
_OFFER = re.compile(r"^\s*\"?(?P<what>capacity|allocatable)\"?:\s*\{?\s*$", re.IGNORECASE)
_QUANTITY = re.compile(r"^\s*\"?(?P<resource>[\w.-]+(?:/[\w.-]+)?)\"?:\s*\"?(?P<count>[\w.]+)\"?,?\s*$")
_EVENT = re.compile(
    r"^\s*(?P<type>Normal|Warning)\s{2,}(?P<reason>\S+)\s{2,}(?P<age>\S.*?)\s{2,}(?P<from>\S+(?:, \S+)?)\s{2,}"
    r"(?P<message>\S.*)$"
)
_TAINT = re.compile(r"(?P<key>[\w./-]+)(?:=(?P<value>[\w./-]*))?:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute)")
_PAIR = re.compile(r"^(?P<key>[\w./-]+)(?P<by>=|: ?)(?P<value>.*)$")
_KEY = re.compile(r"^(?P<indent>\s*)(?P<key>[A-Za-z][\w ./-]*?):(?:\s+(?P<value>.*\S))?\s*$")
_OF_NODES = {"Roles", "Taints", "System Info", "Capacity", "Allocatable"}
_SYSTEM = {"Kernel Version": "kernel", "OS Image": "os_image", "Container Runtime Version": "runtime",
           "Kubelet Version": "kubelet"}  # fmt: skip


_SAYS = (b"capacity", b"allocatable", b"name:", b"priority:", b"normal ", b"warning ")


def looks_like(head: bytes) -> object:
    lower = head.lower()
    return any(words in lower for words in _SAYS) and _LOOKS.search(head) and not _IS_OBJECT.search(head)


def read(piece: Piece) -> Iterator[Fact]:
    line = 1
    for part in _BEGINS.split(piece.text):
        lines = part.splitlines()
        yield from _described(lines, piece, line)
        line += part.count("\n")


class _Sections:
    """The lines of one description by the heading that they stand under."""

    def __init__(self, lines: list[str]) -> None:
        self.of: dict[str, list[str]] = {}
        here: list[str] = []
        for line in lines:
            if top := _TOP.match(line):
                here = self.of.setdefault(top["key"], [])
                if top["value"]:
                    here.append(top["value"])
            elif not line.strip().startswith("```"):
                here.append(line)

    def one(self, key: str) -> str:
        found = self.of.get(key, ())
        return found[0].strip() if found else ""

    def stripped(self, key: str) -> list[str]:
        return [line.strip() for line in self.of.get(key, ()) if line.strip() and line.strip() != "<none>"]


def _described(lines: list[str], piece: Piece, first: int) -> Iterator[Fact]:
    sections = _Sections(lines)
    is_pod = "Namespace" in sections.of or "Containers" in sections.of
    name = sections.one("Name") or ("" if is_pod else piece.node)
    node = "" if is_pod else name
    origin = Origin(piece.source, piece.kind or "describe", line=first, node=node or piece.node)
    if is_pod and name:
        yield _pod(name, sections, origin)
    elif name and sections.of.keys() & _OF_NODES:
        yield _node(name, sections, origin)
    yield from _offers(lines, name if not is_pod else piece.node, origin, first)
    about = ("Pod", sections.one("Namespace"), name) if is_pod else ("Node" if name else "", "", name)
    for number, line in enumerate(lines, first):
        if event := _EVENT.match(line):
            yield EventSeen(
                origin=Origin(
                    piece.source, "pod-events", line.strip()[:LONGEST_TEXT], line=number, node=node or piece.node,
                    pod=f"{about[1]}/{about[2]}" if is_pod else piece.pod,
                ),
                reason=event["reason"], message=event["message"], kind=about[0], namespace=about[1], name=about[2],
                component=event["from"].partition(",")[0], type=event["type"], last=event["age"],
            )  # fmt: skip


def _node(name: str, sections: _Sections, origin: Origin) -> NodeSeen:
    system = dict(_pairs(sections.stripped("System Info")))
    return NodeSeen(
        origin=origin,
        name=name,
        labels=dict(_pairs(sections.stripped("Labels"))),
        annotations=dict(_pairs(sections.stripped("Annotations"))),
        taints=tuple(_taints(sections.stripped("Taints"))),
        is_cordoned=sections.one("Unschedulable") == "true",
        conditions=tuple(_conditions(sections.of.get("Conditions", []))),
        is_counted=any("pods:" in line for line in sections.of.get("Allocatable", [])),
        **{field: system.get(key, "") for key, field in _SYSTEM.items()},
    )


def _pairs(lines: list[str]) -> Iterator[tuple[str, str]]:
    """`key=value` of labels, `key: value` of annotations and of the system."""
    for line in lines:
        separator = ":" if re.match(r"^[A-Z][\w -]*:", line) else None
        if separator:
            key, _, value = line.partition(":")
            yield key.strip(), value.strip()
        elif pair := _PAIR.match(line):
            yield pair["key"], pair["value"].strip()


def _taints(lines: list[str]) -> Iterator[tuple[str, str, str]]:
    for line in lines:
        for taint in _TAINT.finditer(line):
            yield taint["key"], taint["value"] or "", taint["effect"]


def _conditions(lines: list[str]) -> Iterator[Condition]:
    for line in lines:
        cells = re.split(r"\s{2,}", line.strip())
        if len(cells) >= 2 and cells[1] in ("True", "False", "Unknown"):
            more = len(cells) >= 6
            yield Condition(
                cells[0], cells[1], cells[4] if more else "", cells[5] if more else "", cells[3] if more else ""
            )


def _offers(lines: list[str], name: str, origin: Origin, first: int) -> Iterator[Advertised]:
    """Extended resources under Capacity and Allocatable."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    what = ""
    for number, line in enumerate(lines, first):
        if offer := _OFFER.match(line):
            what = offer["what"].lower()
        elif what and (quantity := _QUANTITY.match(line)):
            if "/" in quantity["resource"] and quantity["count"].isdigit():
                found.setdefault(quantity["resource"], {})[what] = (int(quantity["count"]), number)
        elif line.strip() not in ("", "},", "}", "{"):
            what = ""
    for resource, counts in found.items():
        capacity, line_number = counts.get("capacity", (UNSAID, 0))
        allocatable, other = counts.get("allocatable", (UNSAID, 0))
        said = [f"{key} {count}" for key, (count, _) in counts.items()]
        yield Advertised(
            origin=Origin(
                origin.source, origin.kind, f"{resource}: {', '.join(said)}", line=line_number or other,
                node=name or origin.node,
            ),
            name=name, resource=resource, capacity=capacity, allocatable=allocatable,
        )  # fmt: skip


def _pod(name: str, sections: _Sections, origin: Origin) -> PodSeen:
    namespace = sections.one("Namespace") or "default"
    on = sections.one("Node").partition("/")[0]
    init_states, init_limits = _containers(sections.of.get("Init Containers", []), is_init=True)
    states, limits = _containers(sections.of.get("Containers", []), is_init=False)
    words = " ".join(part for part in map(sections.one, ("Status", "Reason", "Message")) if part)
    return PodSeen(
        origin=Origin(
            origin.source, origin.kind, words[:LONGEST_TEXT], line=origin.line, node=on or origin.node,
            pod=f"{namespace}/{name}",
        ),
        namespace=namespace,
        name=name,
        on="" if on == "<none>" else on,
        phase=sections.one("Status").split(" ")[0],
        reason=sections.one("Reason"),
        message=sections.one("Message"),
        priority_class=sections.one("Priority Class Name"),
        runtime_class=sections.one("Runtime Class Name"),
        owner=sections.one("Controlled By"),
        labels=dict(_pairs(sections.stripped("Labels"))),
        annotations=dict(_pairs(sections.stripped("Annotations"))),
        node_selector=dict(_pairs(sections.stripped("Node-Selectors"))),
        tolerations=tuple(_tolerations(sections.stripped("Tolerations"))),
        limits=(*init_limits, *limits),
        states=(*init_states, *states),
    )  # fmt: skip


def _tolerations(lines: list[str]) -> Iterator[tuple[str, str, str, str]]:
    for line in lines:
        key, _, rest = line.partition(":")
        key, _, value = key.partition("=")
        effect = rest.split(" ")[0]
        operator = "Exists" if "op=Exists" in line or not value else "Equal"
        yield key.split(" ")[0], operator, value, effect if effect.startswith(("No", "Pref")) else ""


def _containers(lines: list[str], *, is_init: bool) -> tuple[list[ContainerState], list[Limit]]:
    """Containers are named at the least indent; State, Last State and Limits have lines of their own under them."""
    states: list[ContainerState] = []
    limits: list[Limit] = []
    base = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    name, part = "", ""
    of: dict[str, str] = {}
    devices: dict[str, int] = {}

    def close() -> None:
        if name:
            states.append(
                ContainerState(
                    container=name,
                    state=of.get("State", "").lower(),
                    reason=of.get("State.Reason", ""),
                    message=of.get("State.Message", ""),
                    exit_code=int(code) if (code := of.get("State.Exit Code", "")).lstrip("-").isdigit() else 0,
                    restarts=int(count) if (count := of.get("Restart Count", "")).isdigit() else 0,
                    last_reason=of.get("Last State.Reason", ""),
                    last_message=of.get("Last State.Message", ""),
                )
            )
            limits.append(Limit(container=name, image=of.get("Image", ""), devices=dict(devices), is_init=is_init))

    for line in lines:
        found = _KEY.match(line)
        if not found:
            continue
        indent, key, value = len(found["indent"]), found["key"], found["value"] or ""
        if indent == base and not value:
            close()
            name, part, of, devices = key, "", {}, {}
        elif indent <= base + 2:
            of[key], part = value, key
        elif part == "Limits" and "/" in key and value.isdigit():
            devices[key] = int(value)
        else:
            of[f"{part}.{key}"] = value
    close()
    return states, limits


KUBECTL_DESCRIBE = Format("descriptions of kubectl", ("describe", "kubectl"), looks_like, read)
