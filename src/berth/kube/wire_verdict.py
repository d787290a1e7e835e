"""berth.dev/v1alpha1 Verdict as it travels, both ways. Lists are replaced whole."""

from __future__ import annotations

from msgspec import Struct

GROUP, VERSION, RESOURCE, KIND = "berth.dev", "v1alpha1", "verdicts", "Verdict"


class Sent(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all: what is not set is not sent."""


class OwnerReference(Sent, frozen=True, gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class VerdictMeta(Sent, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str | None = None
    resource_version: str | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class WorkloadReference(Sent, frozen=True, gc=False):
    kind: str = ""
    name: str = ""
    api_version: str | None = None
    uid: str | None = None


class NearestNode(Sent, frozen=True, gc=False):
    node: str = ""
    lacks: str | None = None


class CauseSaid(Sent, frozen=True, gc=False):
    reason: str = ""
    sentence: str = ""
    need: int | None = None
    have: int | None = None
    unit: str | None = None
    where: str | None = None
    unlock: tuple[str, ...] | None = None
    blocks: dict[str, int] | None = None
    codes: dict[str, int] | None = None
    nearest: tuple[NearestNode, ...] | None = None
    proven: bool | None = None


class Estimate(Sent, frozen=True, gc=False):
    p50: str = ""
    p10: str | None = None
    p90: str | None = None


class Eviction(Sent, frozen=True, gc=False):
    at: str = ""
    reason: str = ""
    sentence: str = ""
    pods: int | None = None
    lost_gpu_seconds: int | None = None


class VerdictSaid(Sent, frozen=True, gc=False):
    """All that a Verdict says, without what makes it an object. Times are RFC 3339."""

    workload: WorkloadReference | None = None
    verdict: str = ""
    since: str = ""
    at: str = ""
    queue: str | None = None
    pods: int | None = None
    gpus: str | int | None = None
    reason: str | None = None
    sentence: str | None = None
    causes: tuple[CauseSaid, ...] | None = None
    unlock: tuple[str, ...] | None = None
    position: int | None = None
    ahead: int | None = None
    ahead_here: tuple[str, ...] | None = None
    expected_start: Estimate | None = None
    last_eviction: Eviction | None = None
    findings: tuple[str, ...] | None = None


class VerdictObject(VerdictSaid, frozen=True, gc=False):
    """The object, as it is read."""

    api_version: str = ""
    kind: str = ""
    metadata: VerdictMeta | None = None


def path(namespace: str = "", name: str = "") -> str:
    """Of one Verdict, of all in a namespace, or of all."""
    inside = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{GROUP}/{VERSION}{inside}/{RESOURCE}{f'/{name}' if name else ''}"
