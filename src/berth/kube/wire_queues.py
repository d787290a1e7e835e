"""Berth's own kinds, and the foreign ones that only name topology levels."""

from __future__ import annotations

from typing import Any

from berth.kube.wire import ObjectMeta, Text, Texts, Wire


class QueueSpec(Wire, frozen=True, gc=False):
    parent: Text = None
    weight: int | None = None
    quota: dict[str, int] | None = None
    limit: dict[str, int] | None = None
    namespaces: Texts = None
    borrowing: bool | None = None
    lending: bool | None = None
    reclaim: Text = None
    defaults: dict[str, str | None] | None = None
    max_time_limit: Text = None
    preemptible: bool | None = None
    allowed_classes: Texts = None
    sharing: Texts = None
    checkpoint_required: bool | None = None


class QueueUsage(Wire, frozen=True, gc=False):
    """Of a queue's status what decides: what it has used, as it was at a moment."""

    past_usage: float | None = None
    past_usage_at: Text = None


class GPUQueue(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    spec: QueueSpec | None = None
    status: QueueUsage | None = None


class GPUClass(Wire, frozen=True, gc=False):
    """`spec` is a rule of a mapping file, word for word; it is read by berth.model.gpu_mapping."""

    metadata: ObjectMeta | None = None
    spec: dict[str, Any] | None = None


class TopologyLevel(Wire, frozen=True, gc=False):
    """A level: `label` in Berth's kind, `nodeLabel` in Kueue's and KAI's; `name` or KAI's `alias`."""

    name: Text = None
    alias: Text = None
    label: Text = None
    node_label: Text = None


class TopologySpec(Wire, frozen=True, gc=False):
    levels: tuple[TopologyLevel, ...] | None = None


class Topology(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    spec: TopologySpec | None = None
