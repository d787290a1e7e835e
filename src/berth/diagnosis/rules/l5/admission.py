"""L5. Admission refuses a pod, or lets it through without what a webhook should have added."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, value
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

_WEBHOOKS = (
    "Kubernetes documentation: dynamic admission control, failurePolicy",
    "kubernetes, apiserver admission webhook",
)

OPEN = Code(
    name="WebhookFailsOpen",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.HeldByPolicy,
    title="a webhook was not reached, and pods pass without its change",
    meaning="With failurePolicy Ignore nothing is refused: the pod lacks its scheduler name, resources or "
    "environment, and fails "
    "later in a way that does not point here.",
    known_by="The API server logs that it fails open for the webhook.",
    disproved_by="A new pod carries what the webhook adds.",
    counter_check="kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.schedulerName}': the one that the webhook sets",
    fix=Fix(
        steps=(
            "kubectl get endpoints of the webhook's service: not empty; its pod Running",
            "network path from the API server to it (CNI, security group, port), and its certificate",
            "delete and make anew the pods that passed; failurePolicy Fail with a narrow namespaceSelector where the "
            "change matters",
        ),
        risk="failurePolicy Fail refuses pods while the webhook is down",
        rollback="set failurePolicy Ignore again",
    ),
    verify=("kubectl get pod POD -n NAMESPACE -o yaml: the webhook's change is there",),
    sources=_WEBHOOKS,
)
CLOSED = Code(
    name="WebhookUnreachable",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="a webhook is not reached, and the API server refuses pods",
    meaning="With failurePolicy Fail nothing that it selects is made until it answers, pods of the component that "
    "serves it too.",
    known_by="The API server says that it failed calling the webhook: time-out, refused connection, no endpoints, "
    "certificate.",
    disproved_by="The webhook's service answers from the control plane.",
    counter_check="kubectl get endpoints of its service, and its certificate's dates: fine",
    fix=Fix(
        steps=(
            "make its pod run: a webhook that selects its own namespace locks itself out, so exclude that namespace",
            "x509: let the certificate be issued anew, and the caBundle with it",
            "time-out: open the port from the control plane to the nodes",
        ),
        risk="removing the webhook's configuration lets pods through unchanged",
        rollback="apply the configuration again",
    ),
    verify=("kubectl apply --dry-run=server of the pod: accepted",),
    sources=_WEBHOOKS,
)
PRIVILEGED = Code(
    name="PrivilegeForbidden",
    layer=Layer.L5,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="a policy forbids the rights that the pod needs",
    meaning="Drivers, toolkit and plugins need privileged containers and paths of the host. A namespace or cluster "
    "policy that "
    "forbids these keeps them from being made; DaemonSets stay at 0.",
    known_by="The API server refuses privileged, hostPath or host namespaces and names the policy.",
    disproved_by="The namespace's policy allows the level that is needed.",
    counter_check="kubectl get ns NAMESPACE --show-labels: pod-security.kubernetes.io/enforce=privileged, or no "
    "enforcement",
    fix=Fix(
        steps=(
            "kubectl label ns NAMESPACE pod-security.kubernetes.io/enforce=privileged --overwrite for the operator's "
            "namespace",
            "API server and kubelet with --allow-privileged=true; OpenShift: a security context constraint for the "
            "service account",
            "a workload (not an operand) should do without: devices come from the plugin",
        ),
        risk="privileged pods own the node: only in namespaces that nobody else writes to",
        rollback="put the old label back",
    ),
    verify=("kubectl get ds -n NAMESPACE: DESIRED equals READY",),
    sources=("Kubernetes documentation: Pod security admission", "GPU Operator documentation: prerequisites"),
)
DENIED = Code(
    name="PolicyDeniesPod",
    layer=Layer.L5,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="an admission policy denies the object",
    meaning="A policy engine or an operator's own webhook refuses it; the sentence after the name says why.",
    known_by="admission webhook denied the request.",
    disproved_by="The same object passes a server-side dry run.",
    counter_check="kubectl apply --dry-run=server -f the manifest: accepted",
    fix=Fix(
        steps=(
            "read the reason behind the webhook's name and change the object",
            "or an exception in the policy, after review",
        ),
        risk="an exception weakens the policy",
        rollback="remove the exception",
    ),
    verify=("kubectl apply --dry-run=server -f the manifest: accepted",),
    sources=_WEBHOOKS,
)
ACCOUNT = Code(
    name="ServiceAccountMissing",
    layer=Layer.L5,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="the service account of the pods does not exist",
    meaning="No pod of the workload is made.",
    known_by="FailedCreate: error looking up service account.",
    disproved_by="kubectl get sa lists it in the namespace.",
    counter_check="kubectl get sa -n NAMESPACE: the name is listed",
    fix=Fix(
        steps=("install the component whole, or make the service account with its roles",),
        risk="rights of the account apply at once",
        rollback="delete it",
    ),
    verify=("kubectl get pods -n NAMESPACE: the pods exist",),
    sources=("kubernetes, plugin/pkg/admission/serviceaccount",),
)


_OF_OPERATOR = ("gpu-operator", "nvidia", "dcgm", "device-plugin")
_OF_QUEUES = re.compile(
    r"\.volcano\.sh$|\.hami\.io$|\.kb\.io$|kai|run\.ai|kueue|yunikorn|\.kubeflow\.org$|knative\.dev$|resource-claim"
)
# What the reason behind the webhook's name says to another rule.
_KNOWN_BETTER = ("gang.queue_short", "gang.queue_unusable", "gang.waits_for_members", "admission.device_amount",
                 "dra.config_invalid", "vfio.not_permitted", "group.not_made")  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    opened = {value(said, "webhook") for said in facts.said("admission.webhook_open")}
    lines = {said.origin.text for said in facts.said("admission.webhook_open")}
    for node, pod, found in by_place(facts.said("admission.webhook_open", "admission.not_mutated")):
        name = value(found[0], "webhook", "a webhook")
        yield OPEN.finding(
            f"The API server could not reach {name} and let pods through unchanged.", LIKELY, found, node=node, pod=pod
        )
    for node, pod, found in by_place(facts.said("admission.webhook_closed")):
        # Each call that fails is logged, also where it is let pass.
        alone = [said for said in found if said.origin.text not in lines and value(said, "webhook") not in opened]
        if alone:
            name, why = value(alone[0], "webhook", "a webhook"), value(alone[0], "why")
            yield CLOSED.finding(
                f"The API server cannot call {name}. {why[:160]}".rstrip(), LIKELY, alone, node=node, pod=pod
            )
    refused = {said.origin.text for said in facts.said("admission.privileged")}
    selecting = [said for said in facts.said("admission.privileged") if value(said, "selects")]
    privileged = [] if selecting else list(facts.said("admission.privileged"))
    for node, pod, found in by_place(selecting):
        yield DENIED.finding(
            "The cluster wants the kind of GPU to be chosen by a node selector.", LIKELY, found, node=node, pod=pod,
            cause_class="scheduling-policy",
        )  # fmt: skip
    for node, pod, found in by_place(privileged):
        is_operators = any(word in one.origin.text.lower() for one in found for word in _OF_OPERATOR)
        only_warned = all("would violate PodSecurity" in one.origin.text for one in found)  # enforced or not: unsaid
        yield PRIVILEGED.finding(
            "A policy of the namespace or cluster forbids what "
            + ("pods of the GPU components need" if is_operators else "the pod needs")
            + " of the host.",
            POSSIBLE if only_warned else ESTABLISHED,
            found,
            node=node,
            pod=pod,
            effect=Effect.OperandsHeldBack if is_operators else None,
        )
    better = {said.origin.text for said in facts.said(*_KNOWN_BETTER)}
    for node, pod, found in by_place(facts.said("admission.policy_denied")):
        if alone := [said for said in found if said.origin.text not in refused and said.origin.text not in better]:
            name, why = value(alone[0], "webhook", "a webhook"), value(alone[0], "why")
            # What the webhook of a scheduler or of a job's controller refuses is written wrongly: no right is missing.
            # The scheduler that shares GPUs cannot place what names its node already.
            is_placed = "node assigned" in why or (_OF_QUEUES.search(name) and "rivileged" not in why)
            yield DENIED.finding(
                f"{name} denied it. {why[:160]}".rstrip(),
                POSSIBLE,
                alone,
                node=node,
                pod=pod,
                cause_class="scheduling-policy" if is_placed else None,
            )
    yield from heard(
        facts, ACCOUNT, ("admission.account_missing",), "The service account of the pods is not there.", ESTABLISHED
    )


RULE = Rule((OPEN, CLOSED, PRIVILEGED, DENIED, ACCOUNT), find)
