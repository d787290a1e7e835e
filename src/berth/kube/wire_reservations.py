"""GPUReservation: capacity that people keep, and where Berth has it."""

from __future__ import annotations

from msgspec import field

from berth.kube.wire import ObjectMeta, Text, Texts, Wire


class WorkloadNamed(Wire, frozen=True, gc=False):
    namespace: Text = None
    name: Text = None
    kind: Text = None


class DomainNamed(Wire, frozen=True, gc=False):
    level: Text = None
    name: Text = None


class Repeated(Wire, frozen=True, gc=False):
    days: Texts = None
    start: Text = None
    end: Text = None
    time_zone: Text = None


class ReservationSpec(Wire, frozen=True, gc=False):
    queue: Text = None
    workload: WorkloadNamed | None = None
    gpus: int | None = None
    gpu_class: Text = None
    nodes: Texts = None
    domain: DomainNamed | None = None
    begins: Text = field(default=None, name="from")
    until: Text = None
    repeat: Repeated | None = None


class SharedNode(Wire, frozen=True, gc=False):
    name: Text = None
    gpus: int | None = None


class ReservationStatus(Wire, frozen=True, gc=False):
    nodes: tuple[SharedNode, ...] | None = None


class GPUReservation(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    spec: ReservationSpec | None = None
    status: ReservationStatus | None = None
