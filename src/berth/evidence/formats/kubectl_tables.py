"""Tables that `kubectl get` prints: pods, nodes, sets, events, policies, columns of one's own; alone or among prose.

Versions known: kubectl 1.10 to 1.35, wide or not, with or without a namespace. Rows are split at two spaces or more, as
kubectl pads them; where somebody has shortened a value, so that columns do not line up any more, that still holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.cluster_facts import (
    UNSAID,
    Advertised,
    ContainerState,
    EventSeen,
    NodeSeen,
    ObjectSeen,
    Operand,
    PodSeen,
)
from berth.evidence.piece import Piece

_HEADER = re.compile(rb"(?m)^[ \t|>]*(?:NAMESPACE +)?(?:NAME|NODE|LAST SEEN) +[A-Z][A-Z0-9 ().:_/-]+\s*$")
_HEADER_LINE = re.compile(r"^[ \t]*(?:NAMESPACE +)?(?:NAME|NODE|LAST SEEN) +[A-Z][A-Z0-9 ().:_/-]+$")
_GAP = re.compile(r"\s{2,}|\t+")
_IN_NAMESPACE = re.compile(r"kubectl .*?(?:-n|--namespace)[ =](\S+)")
_RESTARTS = re.compile(r"^(\d+)")
_PHASES = {"Running": "Running", "Pending": "Pending", "Completed": "Succeeded", "Failed": "Failed", "Error": "Failed",
           "Succeeded": "Succeeded", "Unknown": "Unknown"}  # fmt: skip
_NO_VALUE = ("<none>", "<unset>", "<no value>", "")

# `kubectl get nodes -L key` heads a column with the last part of the key, in capitals.
_LABEL_COLUMNS = {
    "MIG.CONFIG": "nvidia.com/mig.config", "MIG.CONFIG.STATE": "nvidia.com/mig.config.state",
    "MIG.STRATEGY": "nvidia.com/mig.strategy", "MIG.CAPABLE": "nvidia.com/mig.capable",
    "GPU.PRODUCT": "nvidia.com/gpu.product", "GPU.COUNT": "nvidia.com/gpu.count",
    "GPU.MEMORY": "nvidia.com/gpu.memory", "GPU.PRESENT": "nvidia.com/gpu.present",
    "GPU.REPLICAS": "nvidia.com/gpu.replicas", "GPU.SHARING-STRATEGY": "nvidia.com/gpu.sharing-strategy",
    "GPU.WORKLOAD.CONFIG": "nvidia.com/gpu.workload.config", "DEVICE-PLUGIN.CONFIG": "nvidia.com/device-plugin.config",
    "GPU.DEPLOY.DEVICE-PLUGIN": "nvidia.com/gpu.deploy.device-plugin",
    "GPU.DEPLOY.OPERANDS": "nvidia.com/gpu.deploy.operands", "GPU.DEPLOY.DRIVER": "nvidia.com/gpu.deploy.driver",
    "GPU-DRIVER-UPGRADE-STATE": "nvidia.com/gpu-driver-upgrade-state",
    "PCI-10DE.PRESENT": "feature.node.kubernetes.io/pci-10de.present", "INITIALIZED": "karpenter.sh/initialized",
}  # fmt: skip
_CAPACITY = ("CAP", "CAPACITY", "GPU_CAP", "GPU-CAPACITY", "GPU CAPACITY", "GPUS", "GPU", "TOTAL")
_ALLOCATABLE = ("ALLOC", "ALLOCATABLE", "GPU_ALLOC", "GPU-ALLOCATABLE", "GPU ALLOCATABLE")

Row = Mapping[str, str]


def rows(text: str) -> Iterator[tuple[Row, str, int, str]]:
    """Each row by its column names; the line, its number, and the namespace that the command before it asked for."""
    header: list[str] = []
    namespace = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip("|> \t") if line.lstrip().startswith(("|", ">")) else line.rstrip()
        if command := _IN_NAMESPACE.search(line):
            namespace, header = command[1].strip("\"'"), []
        elif _HEADER_LINE.match(line):
            header = _GAP.split(line.strip())
            if len(header) == 1:  # columns that only one space separates
                header = line.split()
        elif header:
            cells = _cells(line, header)
            if cells is None:
                header = []
            else:
                yield dict(zip(header, cells, strict=False)), line.strip(), number, namespace


def _cells(line: str, header: list[str]) -> list[str] | None:
    """The values of a row; None where this is none: a blank line, the end of a fence, prose."""
    if not line.strip() or line.lstrip().startswith(("```", "$ ", "# ", "---", "...")):
        return None
    cells = _GAP.split(line.strip())
    if len(cells) < min(len(header), 3):
        words = line.split()
        if len(words) != len(header):
            return None
        cells = words
    if len(cells) > len(header):  # the last column is free text
        cells = [*cells[: len(header) - 1], "  ".join(cells[len(header) - 1 :])]
    return cells


def read(piece: Piece) -> Iterator[Fact]:
    command = _IN_NAMESPACE.search(piece.source)  # a part of a document is named after the command that printed it
    asked = command[1] if command else ""
    for row, line, number, namespace in rows(piece.text):
        origin = Origin(piece.source, piece.kind or "kubectl", line[:LONGEST_TEXT], line=number, node=piece.node)
        namespace = row.get("NAMESPACE", namespace or asked)
        if "MESSAGE" in row and "REASON" in row:
            yield _event(row, origin, namespace)
        elif "STATUS" in row and "RESTARTS" in row:
            yield _pod(row, origin, namespace)
        elif "DESIRED" in row and "CURRENT" in row:
            yield _set(row, origin, namespace)
        elif "UP-TO-DATE" in row and "READY" in row:
            ready, _, wanted = row["READY"].partition("/")
            yield Operand(
                origin=origin, kind="Deployment", namespace=namespace, name=row.get("NAME", ""),
                wanted=_count(wanted), ready=_count(ready),
            )  # fmt: skip
        elif "ROLES" in row or ("STATUS" in row and "VERSION" in row):
            yield _node(row, origin)
        elif row.get("STATUS", "") in ("ready", "notReady", "ignored", "disabled"):
            body = {"status": {"state": row["STATUS"]}}
            yield ObjectSeen(
                origin=origin, api_version="nvidia.com/v1", kind="ClusterPolicy", namespace="",
                name=row.get("NAME", ""), body=body,
            )  # fmt: skip
        else:
            yield from _columns(row, origin)


def _count(words: str) -> int:
    return int(words) if words.isdigit() else UNSAID


def _value(words: str) -> str:
    return "" if words in _NO_VALUE else words


def _event(row: Row, origin: Origin, namespace: str) -> EventSeen:
    kind, _, name = row.get("OBJECT", "").partition("/")
    return EventSeen(
        origin=origin, reason=row["REASON"], message=row["MESSAGE"], kind=kind.capitalize(), namespace=namespace,
        name=name, type=row.get("TYPE", ""), last=row.get("LAST SEEN", ""),
    )  # fmt: skip


def _pod(row: Row, origin: Origin, namespace: str) -> PodSeen:
    status = row["STATUS"]
    restarts = _RESTARTS.match(row.get("RESTARTS", ""))
    ready, _, wanted = row.get("READY", "").partition("/")
    phase = _PHASES.get(status, "")
    is_well = ready == wanted and phase == "Running"
    state = ContainerState(
        container="",
        state="running" if is_well else "terminated" if phase in ("Succeeded", "Failed") else "waiting",
        reason="" if status in ("Running", "Pending") else status,
        restarts=int(restarts[1]) if restarts else 0,
    )
    return PodSeen(
        origin=origin,
        namespace=namespace or "default",
        name=row.get("NAME", ""),
        on=_value(row.get("NODE", "")),
        phase=phase,
        reason=status if status not in _PHASES and not status.startswith("Init:") else "",
        states=(state,),
    )


def _set(row: Row, origin: Origin, namespace: str) -> Operand:
    words = _value(row.get("NODE SELECTOR", ""))
    pairs = (pair.partition("=") for pair in words.split(",") if "=" in pair)
    return Operand(
        origin=origin, kind="DaemonSet", namespace=namespace, name=row.get("NAME", ""),
        wanted=_count(row["DESIRED"]), ready=_count(row.get("READY", "")),
        node_selector={key: value for key, _, value in pairs},
    )  # fmt: skip


def _node(row: Row, origin: Origin) -> NodeSeen:
    return NodeSeen(
        origin=origin,
        name=row.get("NAME", ""),
        labels=_labels(row),
        is_cordoned="SchedulingDisabled" in row.get("STATUS", ""),
        kubelet=row.get("VERSION", ""),
        runtime=row.get("CONTAINER-RUNTIME", ""),
        kernel=row.get("KERNEL-VERSION", ""),
        os_image=row.get("OS-IMAGE", ""),
    )


def _labels(row: Row) -> dict[str, str]:
    found = {name: row[column] for column, name in _LABEL_COLUMNS.items() if column in row}
    return {name: value for name, value in found.items() if _value(value)}


def _columns(row: Row, origin: Origin) -> Iterator[Fact]:
    """`-o custom-columns`: what a node has and what it offers, under the names that people give such columns."""
    name = row.get("NAME") or row.get("NODE", "")
    capacity = next((row[column] for column in _CAPACITY if column in row), None)
    allocatable = next((row[column] for column in _ALLOCATABLE if column in row), None)
    said = [words for words in (capacity, allocatable) if words is not None]
    if name and said and all(words.isdigit() or words in _NO_VALUE for words in said):
        yield Advertised(
            origin=origin, name=name, resource="nvidia.com/gpu",
            capacity=_offered(capacity), allocatable=_offered(allocatable),
        )  # fmt: skip
    if name and (labels := _labels(row)):
        yield NodeSeen(origin=origin, name=name, labels=labels)


def _offered(words: str | None) -> int:
    """`<none>` in such a column is a resource that the node does not have."""
    if words is None:
        return UNSAID
    return int(words) if words.isdigit() else 0 if words in _NO_VALUE else UNSAID


def looks_like(head: bytes) -> object:
    return (b"NAME " in head or b"NODE " in head or b"LAST SEEN " in head) and _HEADER.search(head)


KUBECTL_TABLES = Format("tables of kubectl", ("kubectl",), looks_like, read)
