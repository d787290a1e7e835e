"""L5. Groups and queues hold a pod back: Volcano, KAI, coscheduling, the gang API of Kubernetes, YuniKorn, gates."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, value
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import PodSeen
from berth.evidence.formats.failed_scheduling import unplaced

_QUEUE_GATES = ("kueue.x-k8s.io/", "scheduling.run.ai", "volcano.sh")

INCOMPLETE = Code(
    name="GangNotPlaceable",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Error,
    effect=Effect.HeldByPolicy,
    title="a group of pods does not fit as a whole, so none of it starts",
    meaning="All members start together or none. One member that does not fit, is not made yet, or is in another "
    "group keeps "
    "the others waiting, however many GPUs are free.",
    known_by="The gang scheduler says how many members it needs and how many it could place.",
    disproved_by="Free capacity for minAvailable members on nodes that they may use, and the members still wait.",
    counter_check="kubectl get podgroup -n NAMESPACE -o yaml: minMember is not above the number of pods that exist",
    fix=Fix(
        steps=(
            "compare minMember (minAvailable) with the pods that exist and with free GPUs: berth free",
            "finished or abandoned pod groups of the queue hold its share: delete them",
            "let smaller groups end first, lower minMember, or add nodes",
        ),
        risk="deleting a pod group of a running job lets its pods go",
        rollback="submit the job again",
    ),
    verify=("kubectl get podgroup -n NAMESPACE: Running, with all members",),
    sources=(
        "volcano, pkg/scheduler/plugins/gang",
        "KAI-Scheduler, PodGroup conditions",
        "scheduler-plugins, coscheduling",
        "Kubernetes workload API",
    ),
)
QUEUE_FULL = Code(
    name="QueueRefuses",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Error,
    effect=Effect.HeldByPolicy,
    title="the queue of the job has no share left, or counts wrongly",
    meaning="A queue admits by its own account: what it may use, what finished groups still hold, and resources in its "
    "capability that no node has. No pod may be made at all.",
    known_by="The scheduler says that the queue is overused, its quota insufficient, or the job over quota.",
    disproved_by="The queue's allocated plus the job's request is below its capability for every resource.",
    counter_check="kubectl get queue -o yaml: capability lists only resources that nodes have; allocated is what runs",
    fix=Fix(
        steps=(
            "kubectl get queue and podgroups: delete finished groups that still count",
            "leave resources that no node offers out of the queue's capability",
            "raise the queue's share or let it reclaim; newer releases count finished groups no more",
        ),
        risk="a larger share takes capacity from other queues",
        rollback="put the old share back",
    ),
    verify=("kubectl get podgroup -n NAMESPACE: Inqueue or Running",),
    sources=("volcano, plugins proportion and capacity", "KAI-Scheduler, queue quota", "Apache YuniKorn, queue quotas"),
)
QUEUE_UNUSABLE = Code(
    name="QueueUnusable",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Error,
    effect=Effect.HeldByPolicy,
    title="the job names a queue that does not exist or takes no jobs",
    meaning="The job is refused or waits for ever: the queue is closed, is not a leaf, or the name is wrong.",
    known_by="The scheduler or its webhook says so.",
    disproved_by="The queue exists, is open, and has no children.",
    counter_check="kubectl get queue: the name is there with state Open",
    fix=Fix(
        steps=("correct the queue's name in the job's labels, or make and open the queue",),
        risk="none for running jobs",
        rollback="close the queue again",
    ),
    verify=("kubectl get podgroup -n NAMESPACE: Inqueue or Running",),
    sources=("volcano, queue states", "KAI-Scheduler, queues", "Apache YuniKorn, placement rules"),
)
GROUP_MISSING = Code(
    name="PodGroupMissing",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Error,
    effect=Effect.HeldByPolicy,
    title="a pod names a pod group that does not exist",
    meaning="The gang scheduler knows no group of that name in the namespace and leaves the pod alone.",
    known_by="The scheduler says that the pod group is not found.",
    disproved_by="A PodGroup with the name in the pod's label or annotation, in the same namespace and API group.",
    counter_check="kubectl get podgroups -A: the name is there in the pod's namespace",
    fix=Fix(
        steps=("make the PodGroup, or correct the label; mind which of the schedulers' PodGroup kinds is meant",),
        risk="none: nothing runs yet",
        rollback="delete the PodGroup",
    ),
    verify=("kubectl get pod POD -n NAMESPACE -o wide: it has a node",),
    sources=("scheduler-plugins, coscheduling", "volcano, podgroup", "KAI-Scheduler, pod-grouper"),
)
GATED = Code(
    name="HeldBySchedulingGate",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Warning,
    effect=Effect.HeldByPolicy,
    title="a scheduling gate holds the pod back",
    meaning="The scheduler does not look at the pod until the controller that set the gate removes it.",
    known_by="The pod's condition has the reason SchedulingGated, or its spec lists gates.",
    disproved_by="spec.schedulingGates is empty.",
    counter_check="kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.schedulingGates}': empty",
    fix=Fix(
        steps=(
            "find the gate's owner by its name; for kueue.x-k8s.io/admission see the Workload's conditions",
            "a gate whose controller is gone is removed by hand",
        ),
        risk="a pod that is freed by hand runs outside the queue's account",
        rollback="delete the pod; its controller makes it with the gate again",
    ),
    verify=("kubectl get pod POD -n NAMESPACE: not SchedulingGated",),
    sources=("Kubernetes documentation: Pod scheduling readiness",),
)


def find(facts: Facts) -> Iterator[Answer]:
    queue = list(facts.said("gang.queue_overused", "gang.queue_short", "kai.over_quota", "yunikorn.queue_short"))
    for node, pod, found in by_place(queue):
        yield QUEUE_FULL.finding(
            "The queue's own account has no room for the job: used by others, by finished groups, or by a capability "
            "that no node has.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    for said in facts.said("scheduler.unplaced"):
        why = unplaced(said.get("total"), said.get("reasons"))
        if reasons := why.of("quota"):
            cause = f"{reasons[0].nodes} of {why.total} nodes: {reasons[0].text}."
            yield QUEUE_FULL.finding(cause, LIKELY, [said])
    if not queue:
        for node, pod, found in by_place(facts.said("gang.not_ready", "gang.waits_for_members")):
            one = found[0]
            minimum, pending = value(one, "minimum"), value(one, "pending") or value(one, "found")
            numbers = (
                f" {minimum} are needed at once"
                + (f", {pending} {'could be placed' if one.get('found') else 'wait'}." if pending else ".")
                if minimum
                else ""
            )
            yield INCOMPLETE.finding(
                f"The group of pods does not fit as a whole.{numbers}", LIKELY, found, node=node, pod=pod
            )
    yield from heard(
        facts,
        QUEUE_UNUSABLE,
        ("gang.queue_unusable",),
        "The queue that the job names is missing, closed or not a leaf.",
        LIKELY,
    )
    yield from heard(
        facts, GROUP_MISSING, ("gang.group_missing",), "The pod group that the pod names is not there.", LIKELY
    )
    yield from _gated(facts)


def _gated(facts: Facts) -> Iterator[Answer]:
    for pod in facts.of(PodSeen):
        if pod.gates and not pod.on and pod.phase in ("", "Pending"):
            own = all(gate.startswith(_QUEUE_GATES) for gate in pod.gates)
            yield GATED.finding(
                f"Pod {pod.key} waits for {', '.join(pod.gates)}.",
                LIKELY,
                [pod],
                pod=pod.key,
                cause_class=None if own else "scheduling-policy",
            )
    if not any(pod.gates for pod in facts.of(PodSeen)):
        admitted = any(facts.said("harmless.admitted")) and not any(facts.said("kueue.quota_short"))
        for said in facts.said("scheduler.gates"):
            gates = said.get("gates")
            # Kueue takes away the gate that it set, and no other.
            own = any(gate in gates for gate in _QUEUE_GATES) if gates else not admitted
            yield GATED.finding(
                f"The pod waits for {gates or 'a gate'}.",
                POSSIBLE,
                [said],
                cause_class=None if own else "scheduling-policy",
            )


RULE = Rule((INCOMPLETE, QUEUE_FULL, QUEUE_UNUSABLE, GROUP_MISSING, GATED), find)
