"""A diagnosis of one namespace: what is wrong with its pods, and with the nodes that all pods share."""

from __future__ import annotations

from msgspec.structs import replace

from berth.diagnosis.diagnose import Diagnosis
from berth.diagnosis.finding import Finding
from berth.diagnosis.gate import gate_of
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import EventSeen, ObjectSeen, Operand, PodSeen


def namespaces(facts: Facts) -> frozenset[str]:
    """Of which anything was read."""
    objects: tuple[PodSeen | EventSeen | ObjectSeen | Operand, ...] = (
        *facts.of(PodSeen), *facts.of(EventSeen), *facts.of(ObjectSeen), *facts.of(Operand)
    )  # fmt: skip
    named = {one.name for one in facts.of(ObjectSeen) if one.kind == "Namespace"}
    told = {one.origin.pod.partition("/")[0] for one in facts if "/" in one.origin.pod}
    return frozenset({one.namespace for one in objects} | named | told) - {""}


def within(diagnosis: Diagnosis, facts: Facts, namespace: str) -> Diagnosis:
    """Without what is about pods of other namespaces, but where it explains what is wrong in this one."""

    def is_of(one: Finding) -> bool:
        return "/" not in one.pod or one.pod.partition("/")[0] == namespace

    causes = [one.explained_by for one in diagnosis.consequences if is_of(one.finding)]
    findings = tuple(one for one in diagnosis.findings if is_of(one) or one in causes)
    kept = [one for one in diagnosis.consequences if one.explained_by in findings and is_of(one.finding)]
    return replace(
        diagnosis,
        findings=findings,
        consequences=tuple(kept),
        traps=tuple(one for one in diagnosis.traps if is_of(one)),
        gate=gate_of(findings, diagnosis.unconfirmed, facts),
    )
