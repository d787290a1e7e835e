"""L5. The controller of a job does not make its pods, or makes some of them before it can make the others."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, value
from berth.diagnosis.rules.l5.gang import INCOMPLETE
from berth.diagnosis.trap import noted, trap
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

NOT_MADE = Code(
    name="GroupMembersNotMade",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="the job's controller cannot make its pods or what they need",
    meaning="Before the first pod a controller makes services, volumes, pod groups and the names of all members from "
    "the job's name. One that the API server refuses stops it: the job stays Pending with an empty queue and no pod.",
    known_by="An event of the job itself: PluginError, PVCError, a name that is too long, a runtime that is not there.",
    disproved_by="The pods of the job exist.",
    counter_check="kubectl describe of the job (vcjob, jobset, lws, pytorchjob, trainjob, raycluster): no such event; "
    "kubectl get pods: its pods are there",
    fix=Fix(
        steps=(
            "names: those of pods and services are made of the job's, its task's and an index, and may have 63 "
            "characters: a shorter name of the job",
            "a template that the job names (TrainingRuntime, PersistentVolumeClaim, service account) is made first",
            "what the API server forbids: quota, role or policy, by the words behind the error",
        ),
        risk="none: nothing runs yet",
        rollback="submit the former job",
    ),
    verify=("kubectl get pods -n NAMESPACE: all pods of the job exist",),
    sources=(
        "volcano, pkg/controllers/job: job_controller_actions.go",
        "jobset and lws: webhooks",
        "kubeflow/trainer: runtimes; kuberay: raycluster controller",
    ),
)
FOLLOWERS = trap(
    "FollowersWaitForLeader",
    Layer.L5,
    Effect.PodsNotMade,
    "followers are made when their leader has a node: until then their webhook refuses them",
    meaning="With exclusive placement the followers go where their leader is. As long as the leader has no node each "
    "try to make a follower is refused, and the controller tries again.",
    known_by="leader pod not yet scheduled, not creating follower pod.",
    disproved_by="The leader has a node, and followers are still refused.",
    counter_check="kubectl get pods -o wide: the leader has a node, and its followers follow within a minute",
    sources=("jobset, pkg/webhooks/pod_admission_webhook.go",),
    steps=("if the leader stays Pending: its own event says why",),
    instead_of=("PolicyDeniesPod",),
)


def find(facts: Facts) -> Iterator[Answer]:
    # Refused for its quota or its rights: a rule of these says more.
    told = {said.origin.text for said in facts.said("admission.quota_exceeded", "scheduler.rights_missing")}
    made = [said for said in facts.said("group.not_made") if said.origin.text not in told]
    for node, pod, found in by_place(made):
        why = value(found[0], "why")
        cause = f"The controller of the job cannot make its members{': ' + why[:160] if why else ''}."
        yield NOT_MADE.finding(cause, LIKELY, found, node=node, pod=pod)
    yield from heard(
        facts,
        INCOMPLETE,
        ("group.half_started",),
        "The first members of several groups hold the devices that the others wait for: nothing starts them together.",
        POSSIBLE,
    )
    yield from noted(facts, FOLLOWERS, ("group.follower_waits",), "The leader has no node yet.")


RULE = Rule((NOT_MADE, FOLLOWERS), find)
