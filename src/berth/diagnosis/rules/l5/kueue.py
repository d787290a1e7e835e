"""L5. Kueue does not admit a workload: its queue is not there or not active, or there is no quota for it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, value
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

GUESS = 0.5  # of what somebody tells
_SOURCES = ("Kueue documentation: ClusterQueue, Workload conditions", "kueue, pkg/scheduler/flavorassigner")
_VERIFY = ("kubectl get workloads -n NAMESPACE: ADMITTED True",)

NO_QUOTA = Code(
    name="KueueQuotaShort",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Error,
    effect=Effect.HeldByPolicy,
    title="Kueue has no quota left for the workload",
    meaning="The job stays suspended: there is no pod and no FailedScheduling, whatever the nodes have free.",
    known_by="The Workload's QuotaReserved condition says which resource and flavour lack how much.",
    disproved_by="The ClusterQueue's nominal quota less its usage covers the request in one flavour.",
    counter_check="kubectl get clusterqueue -o yaml: flavorsUsage below nominalQuota by the request",
    fix=Fix(
        steps=(
            "kubectl get workloads -A: what holds the quota; end it or wait",
            "a request above the queue's maximum never fits: shrink the job, raise the quota, or put the queue in a "
            "cohort to borrow",
        ),
        risk="more quota than devices moves the wait from the queue to the scheduler",
        rollback="put the old quota back",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
INACTIVE = Code(
    name="KueueQueueInactive",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Error,
    effect=Effect.HeldByPolicy,
    title="a ClusterQueue is not active and admits nothing",
    meaning="A flavour, topology or admission check that it names does not exist, or it was stopped. Every job of "
    "its local queues waits.",
    known_by="The Active condition is False with a reason such as FlavorNotFound, or a local queue reports its "
    "ClusterQueue inactive, or MultiKueue has missing or inactive clusters.",
    disproved_by="Active is True.",
    counter_check="kubectl get clusterqueue -o jsonpath='{.items[*].status.conditions}': Active True",
    fix=Fix(
        steps=(
            "make the ResourceFlavor, Topology or AdmissionCheck that is named, or take it out of the ClusterQueue",
            "spec.stopPolicy: None where it was stopped",
            "MultiKueue: the secret with the worker's kubeconfig, and the way to its API server",
        ),
        risk="waiting jobs begin at once",
        rollback="delete what was made",
    ),
    verify=("kubectl get clusterqueue: Active True", *_VERIFY),
    sources=_SOURCES,
)
MISSING = Code(
    name="KueueQueueMissing",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Error,
    effect=Effect.HeldByPolicy,
    title="the job names a Kueue queue that does not exist",
    meaning="The workload waits as inadmissible until the local queue, or the ClusterQueue behind it, is made.",
    known_by="The Workload's condition says that the queue does not exist.",
    disproved_by="The local queue of that name is in the job's namespace and its ClusterQueue exists.",
    counter_check="kubectl get localqueue -n NAMESPACE: the name is there",
    fix=Fix(
        steps=("correct the label kueue.x-k8s.io/queue-name, or make the LocalQueue in the job's namespace",),
        risk="none: nothing runs yet",
        rollback="delete the LocalQueue",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
NO_PLACE = Code(
    name="KueueTopologyUnfit",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Error,
    effect=Effect.HeldByPolicy,
    title="quota is there, but no domain of the topology holds the whole workload",
    meaning="With topology-aware scheduling a podset must fit inside one rack, block or host. Fragmented nodes do "
    "not add up.",
    known_by="The condition says that the topology does not allow to fit, or the second pass failed.",
    disproved_by="One domain of the required level with room for all pods.",
    counter_check="kubectl get nodes -L the topology's labels: every node has them, and one domain has room",
    fix=Fix(
        steps=(
            "prefer instead of require the level, or a wider level",
            "drain one domain of small pods; check that all nodes carry the topology's labels",
        ),
        risk="pods farther apart communicate slower",
        rollback="require the level again",
    ),
    verify=_VERIFY,
    sources=("Kueue documentation: topology-aware scheduling",),
)
NAMESPACE = Code(
    name="KueueNamespaceExcluded",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Error,
    effect=Effect.HeldByPolicy,
    title="the ClusterQueue does not take workloads of this namespace",
    meaning="Its namespaceSelector leaves the namespace out; an empty selector takes all, a missing one none.",
    known_by="The Workload's condition says so.",
    disproved_by="The namespace's labels satisfy spec.namespaceSelector.",
    counter_check="kubectl get ns NAMESPACE --show-labels against the selector: it matches",
    fix=Fix(
        steps=("label the namespace, or widen spec.namespaceSelector",),
        risk="the namespace may then use the queue's quota",
        rollback="remove the label",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
NOT_READY = Code(
    name="KueuePodsReadyTimeout",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Warning,
    effect=Effect.HeldByPolicy,
    title="Kueue evicts the workload because its pods are not ready in time",
    meaning="waitForPodsReady gives the quota back when pods do not become ready: images that pull long, or pods "
    "that the "
    "scheduler cannot place. The job starts over and over.",
    known_by="The workload is evicted with PodsReadyTimeout.",
    disproved_by="All pods became ready within the time-out.",
    counter_check="kubectl get events -n NAMESPACE: no slow pull and no FailedScheduling before the eviction",
    fix=Fix(
        steps=(
            "see why the pods are not ready: events of the pods",
            "raise waitForPodsReady.timeout above pull and start time",
        ),
        risk="a longer time-out holds quota for jobs that cannot start",
        rollback="put the old time-out back",
    ),
    verify=_VERIFY,
    sources=("Kueue documentation: all-or-nothing with ready pods",),
)
CHECK = Code(
    name="KueueCheckRefuses",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Error,
    effect=Effect.HeldByPolicy,
    title="an admission check of the ClusterQueue refuses the workload",
    meaning="Quota is reserved, and then each check of the queue must say yes: a provisioning request of the "
    "autoscaler, another cluster, a controller of one's own. One that says no gives the quota back.",
    known_by="The workload is evicted or deactivated because of its admission checks.",
    disproved_by="All checks in the Workload's status are Ready.",
    counter_check="kubectl get workload -n NAMESPACE -o yaml: every state in status.admissionChecks is Ready",
    fix=Fix(
        steps=(
            "read the message of the check that is Rejected or Retry",
            "provisioning: kubectl get provisioningrequests: machines that the cloud does not have",
            "a check that this workload does not need: admissionChecksStrategy by flavour",
        ),
        risk="without the check nodes may be missing after admission",
        rollback="the former ClusterQueue",
    ),
    verify=_VERIFY,
    sources=("Kueue documentation: AdmissionCheck", *_SOURCES),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("kueue.quota_short")):
        resource, flavor = value(found[0], "resource"), value(found[0], "flavor")
        what = f" for {resource}" + (f" in flavour {flavor}" if flavor else "") if resource else ""
        yield NO_QUOTA.finding(
            f"Kueue cannot assign quota{what}. {value(found[0], 'why')}".rstrip(),
            LIKELY,
            found,
            node=node,
            pod=pod,
            resource=resource,
        )
    if not any(facts.said("kueue.")):
        yield from heard(
            facts, NO_QUOTA, ("reported.kueue_unadmitted",), "Kueue is said not to admit the workload.", GUESS
        )  # fmt: skip
    for node, pod, found in by_place(facts.said("kueue.queue_inactive")):
        missing = value(found[0], "what")
        is_remote = any(word in missing.lower() for word in ("cluster", "client", "remote"))
        if is_remote and not missing.startswith("ClusterQueue"):
            yield INACTIVE.finding(f"A cluster behind it is not reached: {missing}.", LIKELY, found, node=node, pod=pod)
            continue
        yield INACTIVE.finding(
            f"The ClusterQueue is not active{': a ' + missing + ' is missing' if missing else ''}.",
            ESTABLISHED,
            found,
            node=node,
            pod=pod,
        )
    yield from heard(
        facts, CHECK, ("kueue.check_refuses",), "An admission check of the queue says no.", LIKELY
    )  # fmt: skip
    yield from heard(facts, MISSING, ("kueue.queue_missing",), "The queue that the job names is not there.", LIKELY)
    for node, pod, found in by_place(facts.said("kueue.topology")):
        # Every level has to be on a node before it counts for any of them.
        unlabelled = all("no topology domains at level" in one.origin.text for one in found)
        yield NO_PLACE.finding(
            "No node has the labels of all levels of the topology."
            if unlabelled
            else "No domain of the required topology level holds the workload.",
            LIKELY,
            found,
            node=node,
            pod=pod,
            layer=Layer.L4 if unlabelled else None,
            cause_class="node-labels" if unlabelled else None,
        )
    yield from heard(
        facts, NAMESPACE, ("kueue.namespace",), "The namespace is not selected by the ClusterQueue.", ESTABLISHED
    )
    yield from heard(
        facts, NOT_READY, ("kueue.pods_not_ready",), "The pods were admitted and did not become ready in time.", LIKELY
    )


RULE = Rule((NO_QUOTA, INACTIVE, CHECK, MISSING, NO_PLACE, NAMESPACE, NOT_READY), find)
