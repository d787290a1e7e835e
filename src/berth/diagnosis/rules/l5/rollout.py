"""L5. A rollout that waits for devices which only its own old pods hold."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import heard
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

DEADLOCK = Code(
    name="RolloutHoldsDevices",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="an update starts new pods before the old ones give up their GPUs",
    meaning="RollingUpdate makes a pod of the new kind first and ends an old one once it is ready. Where all GPUs are "
    "held by old pods the new one never becomes ready, and the update never ends.",
    known_by="The new pod waits for GPUs, and the old pod of the same workload holds them.",
    disproved_by="Other GPUs that fit are free.",
    counter_check="kubectl get pod -n NAMESPACE -o wide: no Running pod of the former ReplicaSet beside the Pending "
    "one; berth free: GPUs that fit",
    fix=Fix(
        steps=(
            "strategy: Recreate, or rollingUpdate with maxSurge: 0 and maxUnavailable: 1",
            "operators that make the Deployment (serving, notebooks): their setting for it",
            "stopgap: scale the former ReplicaSet to 0",
        ),
        risk="the service is away while it changes",
        rollback="the former strategy",
    ),
    verify=("kubectl rollout status -n NAMESPACE: successfully rolled out",),
    sources=("Kubernetes documentation: Deployments, strategy", "Kubernetes apps/v1 defaults: maxSurge 25 %"),
)


def find(facts: Facts) -> Iterator[Answer]:
    cause = "The new pods wait for GPUs that the old ones of the same workload hold."
    yield from heard(facts, DEADLOCK, ("reported.rollout_holds",), cause, LIKELY)


RULE = Rule((DEADLOCK,), find)
