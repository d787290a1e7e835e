"""What a manifest asks for, whoever's manifest it is: the one form into which every dialect is read.

A `Shape` still holds pod templates as plain mappings (`{"metadata": …, "spec": …}`); turning a template into
a pod class, a priority class into a number and a queue name into a queue is left to `berth.sources`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from berth.model.workload import Disruption, TopologyWish, identity_of

__all__ = ["Disruption", "Manifest", "SetShape", "Shape"]

Manifest = Mapping[str, Any]  # one Kubernetes object as JSON or YAML gives it


class SetShape(Struct, frozen=True):
    """Identical pods: so many of one template. It starts with `min_count` of them at least."""

    name: str
    template: Manifest = {}  # PodTemplateSpec; {} where only a controller knows it (TrainJob's runtime)
    count: int = 1
    min_count: int = 1
    later: int = 0  # pods that come only when earlier ones have ended (a Job's completions): never in the gang
    follows: bool = False  # created only once the sets before it run: no part of the start, then a gang itself
    topology: tuple[TopologyWish, ...] = ()
    labels: Mapping[str, str] = {}  # of the pods
    path: str = ""  # where the template stands in its manifest: "spec.template"


class Shape(Struct, frozen=True):
    """One workload, or `copies` of it that start independently (a Deployment's pods, an LWS's groups).

    `sets` are admitted together: all minimum counts, or nothing. Durations are seconds, 0.0 where none is
    given. `priority` and `preemptible` are None where the manifest leaves them to its priority class.
    `provenance` says where a value came from: ("queue", "label kueue.x-k8s.io/queue-name of Job train").
    `notes` are sentences for people: what was not read, what only a controller knows.
    `contradictions` are findings: two dialects that disagree, one sentence each; the first of the order of
    precedence was taken.
    """

    kind: str
    name: str
    namespace: str = "default"
    sets: tuple[SetShape, ...] = ()
    copies: int = 1
    topology: tuple[TopologyWish, ...] = ()  # of the whole workload, beside those of its sets
    queue: str = ""
    priority_class: str = ""
    priority: int | None = None
    preemptible: bool | None = None
    min_runtime_s: float = 0.0
    time_limit_s: float = 0.0
    checkpoint_every_s: float = 0.0
    scheduler: str = ""
    gates: tuple[str, ...] = ()
    suspended: bool = False
    where: str = ""  # file of the manifest, for errors
    provenance: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def identity(self) -> str:
        return identity_of(self.kind, self.key)

    @property
    def pod_count(self) -> int:
        """Pods of one copy."""
        return sum(s.count for s in self.sets)

    @property
    def minimum(self) -> int:
        """Pods with which one copy starts at the least."""
        return sum(s.min_count for s in self.sets if not s.follows)

    @property
    def is_gang(self) -> bool:
        return self.minimum > 1
