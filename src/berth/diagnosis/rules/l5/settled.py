"""L5. A pod that could not be placed, and was: events stay for an hour after that."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.rules.l5 import unplaced_affinity, unplaced_resource, unplaced_taint
from berth.diagnosis.trap import noted, trap
from berth.diagnosis.words import LIKELY, Effect, Layer
from berth.evidence.facts import Facts

_POD = re.compile(r"\bpod/([\w.-]+)")
_WAITS = (unplaced_resource.RULE, unplaced_taint.RULE, unplaced_affinity.RULE)

ADMITTED = trap(
    "AdmittedAfterWaiting",
    Layer.L5,
    Effect.HeldByPolicy,
    "the workload waited for quota and was admitted: its old condition is still told",
    meaning="A queue holds work until quota is free; that is what it is for. The event of the wait stays after the "
    "workload has its quota.",
    known_by="Quota was short, and after it the workload is admitted.",
    disproved_by="The workload is not admitted now.",
    counter_check="kubectl get workloads -n NAMESPACE: Admitted True",
    sources=("Kueue documentation: workload conditions",),
    instead_of=("KueueQuotaShort",),
)
SETTLED = trap(
    "PlacedAfterWaiting",
    Layer.L5,
    Effect.PodsWait,
    "the pod waited and was placed: its old event is still there",
    meaning="Events stay for an hour. FailedScheduling before the line that assigns the pod tells of a wait that is "
    "over: a node came, or a device was freed.",
    known_by="FailedScheduling, and after it Successfully assigned.",
    disproved_by="The pod is Pending now.",
    counter_check="kubectl get pod POD -n NAMESPACE: a node, and not Pending",
    sources=("Kubernetes, scheduler events",),
    instead_of=tuple(code.name for rule in _WAITS for code in rule.codes),
)
CLAIM = trap(
    "ClaimWaitsForPod",
    Layer.L5,
    Effect.PodsWait,
    "a claim is pending because no pod uses it yet",
    meaning="Devices of a ResourceClaim are chosen when the first pod that uses it is scheduled, as volumes are with "
    "WaitForFirstConsumer. Until then it is pending, and nothing is wrong.",
    known_by="A pending claim that no pod uses.",
    disproved_by="A pod that uses the claim is Pending.",
    counter_check="kubectl get pods -A: none names the claim",
    sources=("Kubernetes documentation: dynamic resource allocation",),
)
NOT_ENFORCED = trap(
    "KaiSharesAreNotEnforced",
    Layer.L5,
    Effect.HeldByPolicy,
    "the scheduler shares a card by account alone: a pod sees all of its memory",
    meaning="KAI books gpu-memory and gpu-fraction when it places pods. It does not bound what a pod uses of the card: "
    "that is left to the program, or to what enforces it (HAMi's core, MPS, MIG).",
    known_by="A pod with KAI's gpu-memory or gpu-fraction is said to see and use the whole card.",
    disproved_by="A library or MPS is installed that is to bound memory.",
    counter_check="kubectl get pod POD -o jsonpath='{.metadata.annotations}': the share, and what bounds it",
    sources=("KAI-Scheduler, docs/gpu-sharing",),
    steps=("let the program bound its memory, or share by MIG or by what enforces it",),
    instead_of=("ShareLibraryFails",),
)


def find(facts: Facts) -> Iterator[Answer]:
    """Of one pod alone: in a list of many the one that was placed says nothing of the others."""
    yield from noted(facts, CLAIM, ("harmless.claim_waits",), "No pod uses it yet.")
    yield from noted(facts, NOT_ENFORCED, ("harmless.kai_not_enforced",), "KAI books shares and enforces none.")
    short = list(facts.said("kueue.quota_short"))
    admitted = [
        said
        for said in facts.said("harmless.admitted")
        if any(one.origin.source == said.origin.source and one.origin.line < said.origin.line for one in short)
    ]
    if admitted and len(short) == 1:
        yield ADMITTED.finding("The workload was admitted after it had waited.", LIKELY, [*short, *admitted[:2]])
    failed = list(facts.said("scheduler.unplaced", "scheduler.insufficient"))
    placed = list(facts.said("harmless.pod_scheduled"))
    if not failed or len({value(said, "pod") for said in placed}) != 1:
        return
    pod = value(placed[0], "pod")
    last = max(said.origin.line for said in placed)
    is_over = all(one.origin.source == placed[0].origin.source and one.origin.line <= last for one in failed)
    named = {found[1] for one in failed if (found := _POD.search(one.origin.text))}
    if is_over and named <= {pod.rpartition("/")[2]}:
        yield SETTLED.finding("The pod was placed after it had waited.", LIKELY, [*failed[:2], *placed[:2]])


RULE = Rule((SETTLED, ADMITTED, CLAIM, NOT_ENFORCED), find)
