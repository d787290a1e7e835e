"""Figures of dcgm-exporter in the text format of Prometheus, and the list of counters that it is told to collect.

Versions known: exporter 1.x (`dcgm_gpu_temp`) to 4.8 (names of DCGM 4.6, labels `Hostname` and `hostname`). What was
left out of the labels (`...`) is read over.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from berth.evidence.fact import LONGEST_TEXT, NO_PCI, NOTHING, Fact, Origin, Pci, pci_of
from berth.evidence.formats import Format
from berth.evidence.piece import Piece

_HEAD = re.compile(rb"(?m)^\s*(?:DCGM_(?:FI|EXP)_\w+|dcgm_\w+)(?:\{[^\n]*\})?[ \t]+-?[\dN]")
_SAMPLE = re.compile(
    r"^\s*(?P<field>DCGM_(?:FI|EXP)_\w+|dcgm_\w+)(?:\{(?P<labels>.*)\})?\s+(?P<value>-?\d[\d.eE+-]*|NaN)(?:\s+\d+)?\s*$"
)
_LABEL = re.compile(r'(?P<key>\w+)="(?P<value>(?:[^"\\]|\\.)*)"')
_COUNTER_HEAD = re.compile(rb"(?m)^\s*#? *DCGM_(?:FI|EXP)_\w+ *, *(?:gauge|counter|label|histogram) *,")
_COUNTER = re.compile(
    r"^\s*(?P<off>#)? *(?P<field>DCGM_(?:FI|EXP)_\w+) *, *(?P<type>gauge|counter|label|histogram) *,"
    r"\s*(?P<help>.*?)\s*$"
)
BLANK = 9.2e18  # DCGM writes numbers above this where it has no value


class Sample(Fact, frozen=True, kw_only=True):
    """One figure. What the exporter has no value for is left out."""

    field: str  # "DCGM_FI_DEV_GPU_TEMP"
    value: float
    gpu: str = ""  # index
    uuid: str = ""
    pci: Pci = NO_PCI
    host: str = ""
    labels: Mapping[str, str] = NOTHING

    @property
    def pod(self) -> str:
        """Namespace and name of the pod that holds the device; "" where none is said."""
        name = _first(self.labels, "exported_pod", "pod", "pod_name")
        space = _first(self.labels, "exported_namespace", "namespace", "pod_namespace")
        return f"{space}/{name}" if name else ""


def _first(labels: Mapping[str, str], *names: str) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")


class CounterListed(Fact, frozen=True, kw_only=True):
    """A line of the list of counters. One that is commented out is not collected."""

    field: str
    type: str
    is_on: bool
    help: str = ""


def read(piece: Piece) -> Iterator[Fact]:
    for number, line in enumerate(piece.text.splitlines(), 1):
        found = _SAMPLE.match(line)
        if not found:
            continue
        value = float(found["value"]) if _is_number(found["value"]) else math.nan
        if math.isnan(value) or abs(value) > BLANK:
            continue
        labels = {one["key"]: one["value"] for one in _LABEL.finditer(found["labels"] or "")}
        host = labels.get("hostname") or labels.get("Hostname", "")
        yield Sample(
            origin=Origin(
                piece.source, piece.kind or "dcgm-metrics", line.strip()[:LONGEST_TEXT], line=number,
                node=piece.node or host,
            ),
            field=found["field"],
            value=value,
            gpu=labels.get("gpu", ""),
            uuid=labels.get("UUID") or labels.get("uuid") or labels.get("gpu_uuid", ""),
            pci=pci_of(labels.get("pci_bus_id", "")) if labels.get("pci_bus_id") else NO_PCI,
            host=host,
            labels=labels,
        )  # fmt: skip


def _is_number(words: str) -> bool:
    try:
        float(words)
    except ValueError:
        return False
    return True


def read_counters(piece: Piece) -> Iterator[Fact]:
    for number, line in enumerate(piece.text.splitlines(), 1):
        if found := _COUNTER.match(line):
            yield CounterListed(
                origin=Origin(piece.source, piece.kind or "dcgm", line.strip()[:LONGEST_TEXT], line=number),
                field=found["field"], type=found["type"], is_on=not found["off"], help=found["help"],
            )  # fmt: skip


def _holds_figures(head: bytes) -> object:
    return (b"DCGM_" in head or b"dcgm_" in head) and _HEAD.search(head)


def _holds_counters(head: bytes) -> object:
    return b"DCGM_" in head and _COUNTER_HEAD.search(head)


DCGM_METRICS = Format("figures of dcgm-exporter", ("dcgm-metrics",), _holds_figures, read)
DCGM_COUNTERS = Format("counters of dcgm-exporter", ("dcgm",), _holds_counters, read_counters)
