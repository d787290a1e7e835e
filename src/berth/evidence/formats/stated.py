"""What a node offers and how it is labelled, as people write it down or a jsonpath prints it: one line, any spelling.

`allocatable nvidia.com/gpu: 7 (capacity 8)`, `capacity: {"nvidia.com/gpu":"0"}`, `map[nvidia.com/gpu:8 pods:110]`,
`nvidia.com/mig.config=all-1g.10gb`, `nvidia.com/gpu.product: NVIDIA-L40S`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format, kubectl_describe
from berth.evidence.formats.cluster_facts import UNSAID, Advertised, NodeSeen
from berth.evidence.piece import Piece

_OFFER = re.compile(
    r"(?P<what>\b(?:capacity|allocatable)\b)"
    r"|(?P<resource>[a-z0-9][a-z0-9.-]*\.[a-z]{2,}/[\w.-]*\w)[\"']?\s*[:=]\s*[\"']?(?P<count>\d+)\b"
    r"|(?P<of>[a-z0-9][a-z0-9.-]*\.[a-z]{2,}/[\w.-]*\w)"
    r"|(?<![\w.])(?P<number>\d+)(?![\w.%])",
    re.IGNORECASE,
)
_LONGEST = 1_000  # characters of a line that somebody wrote
_NOT_AN_OFFER = ("requested:", "Insufficient", "insufficient", "Requested:", "nodes are available", "hugepages-1Gi=")

# Of a node somebody may quote the resource alone: what it offers.
_BARE = re.compile(
    r"^[\s\"'-]*(?P<resource>[a-z0-9][a-z0-9.-]*\.[a-z]{2,}/[\w.-]*\w)[\"']?\s*:\s*[\"']?(?P<count>\d+)[\"']?,?\s*$"
)
_SAYS_WHAT = re.compile(r"(?i)capacity|allocatable|requests|limits|labels|annotations")

_LOGGED = re.compile(
    r"^\s*(?:[IWEF]\d{4} \d\d:|\d{4}[-/]\d\d[-/]\d\d|[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d|\{\"|time=|ts=)"
)

_LABELLED = (
    r"(?:nvidia\.com|feature\.node\.kubernetes\.io|cloud\.google\.com|karpenter\.sh|karpenter\.k8s\.aws|"
    r"eks\.amazonaws\.com|kubernetes\.azure\.com|node\.kubernetes\.io|nvsentinel\.dgxc\.nvidia\.com)/[\w./-]+"
)
# A resource is written like a label; it is none.
_RESOURCE = re.compile(
    r"nvidia\.com/(?:gpu|gpu\.shared|mig-\d+g\.\d+gb(?:[.+-][a-z.]+)?|pgpu|vgpu|gpumem\S*|gpucores)$"
)
_LABEL = re.compile(rf"[\"']?(?P<key>{_LABELLED})[\"']?\s*[=:]\s*[\"']?(?P<value>[\w.+-]*)[\"']?")
_LABEL_LINE = re.compile(
    rf"^[\s>*-]*(?:(?:node\s+)?labels?:?\s+)?(?:{_LABEL.pattern.replace('?P<key>', '?:').replace('?P<value>', '?:')}"
    r"[\s,;]*)+(?:\s*\(.*\))?$",
    re.IGNORECASE,
)
_HEAD = re.compile(rb"(?i)\b(?:capacity|allocatable)\b|(?:nvidia\.com|node\.kubernetes\.io)/[\w.-]+\"?\s*[=:]")
_IS_OBJECT = re.compile(rb"(?m)^(?:apiVersion|kind): *\S|\A\s*[\[{]")


def looks_like(head: bytes) -> object:
    lower = head.lower()
    said = b"capacity" in lower or b"allocatable" in lower or b"nvidia.com/" in head
    return (said or b"node.kubernetes.io/" in head) and _HEAD.search(head) and not _IS_OBJECT.search(head)


def read(piece: Piece) -> Iterator[Fact]:
    labels: dict[str, str] = {}
    first = Origin()
    is_described = kubectl_describe.looks_like(piece.raw)
    is_bare = piece.kind == "node-json" and not _SAYS_WHAT.search(piece.text)
    for number, line in enumerate(piece.text.splitlines(), 1):
        if len(line) > _LONGEST:
            continue
        text = line.strip()[:LONGEST_TEXT]
        origin = Origin(piece.source, piece.kind or "kubectl", text, line=number, node=piece.node)
        yield from _offers(line, origin, piece.node)
        bare = _BARE.match(line) if is_bare else None
        if bare:
            yield Advertised(origin=origin, name=piece.node, resource=bare["resource"], capacity=int(bare["count"]))
        if not is_described and _LABEL_LINE.match(line):
            for label in _LABEL.finditer(line):
                if not _RESOURCE.match(label["key"]):
                    labels[label["key"]] = label["value"]
                    first = first if first.text else origin
    if labels:
        yield NodeSeen(origin=first, name=piece.node, labels=labels)


def _offers(line: str, origin: Origin, node: str) -> Iterator[Advertised]:
    if any(words in line for words in _NOT_AN_OFFER) or _LOGGED.match(line):
        return
    counts: dict[str, dict[str, int]] = {}
    what = resource = ""
    unsaid: dict[str, int] = {}  # pairs before the word that says what they are
    for found in _OFFER.finditer(line):
        if found["what"]:
            what = found["what"].lower()
            for one, count in unsaid.items():
                counts.setdefault(one, {})[what] = count
            unsaid.clear()
        elif found["resource"]:
            resource = found["resource"]
            if what:
                counts.setdefault(resource, {})[what] = int(found["count"])
            elif "request" not in line and "limit" not in line:
                unsaid[resource] = int(found["count"])
        elif found["of"]:
            resource = found["of"]
        elif what and resource and what not in counts.get(resource, {}):
            counts.setdefault(resource, {})[what] = int(found["number"])
    for resource, said in counts.items():
        if resource.startswith("kubernetes.io/"):
            continue
        yield Advertised(
            origin=origin, name=node, resource=resource, capacity=said.get("capacity", UNSAID),
            allocatable=said.get("allocatable", UNSAID),
        )  # fmt: skip


STATED = Format("what somebody says of a node", ("kubectl",), looks_like, read)
