"""L5. The pod was placed, and the node refuses it; or nobody places it at all."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, value
from berth.diagnosis.rules.l3.admission_before_plugin import of_its_own_account
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import EventSeen, PodSeen

DEFAULT = "default-scheduler"

TOPOLOGY = Code(
    name="TopologyAlignmentRefused",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="the kubelet cannot align CPUs and GPUs of the pod on one NUMA node",
    meaning="The scheduler knows nothing of NUMA: it sends replacement pods to the same node, and failed pods pile up.",
    known_by="The pod fails with TopologyAffinityError.",
    disproved_by="The kubelet's topology manager policy is none or best-effort.",
    counter_check="kubelet configuration of NODE: topologyManagerPolicy none or best-effort",
    fix=Fix(
        steps=(
            "topologyManagerPolicy best-effort, or restricted in place of single-numa-node for pods with many GPUs",
            "ask for CPUs and GPUs that one NUMA node has; or a NUMA-aware scheduler with node resource topology",
        ),
        risk="a change of the policy needs a kubelet restart and an emptied node",
        rollback="put the old policy back and restart the kubelet",
    ),
    verify=("kubectl get pods -n NAMESPACE: no new pods with TopologyAffinityError",),
    sources=("Kubernetes documentation: topology management policies", "kubernetes, pkg/kubelet/cm/topologymanager"),
)
OUT_OF = Code(
    name="NodeOutOfResource",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="a pod was put on a node that has no room for it",
    meaning="Whoever placed it did not ask the scheduler's account: nodeName in the manifest, two schedulers for the "
    "same nodes, "
    "or devices that went away after the placement.",
    known_by="The kubelet refuses with OutOf<resource> and states requested, used and capacity.",
    disproved_by="One scheduler serves the node, and its account shows room at that time.",
    counter_check="kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.schedulerName} {.spec.nodeName}': one "
    "scheduler for all pods of the node",
    fix=Fix(
        steps=(
            "leave out spec.nodeName: use a node selector",
            "let one scheduler place all GPU pods of a node pool",
            "delete the refused pods; their controller makes new ones",
        ),
        risk="none for running pods",
        rollback="nothing to undo",
    ),
    verify=("kubectl get pods -A --field-selector status.phase=Failed: no new OutOf pods",),
    sources=("kubernetes, pkg/kubelet/lifecycle/predicate.go",),
)
NOBODY = Code(
    name="SchedulerNotServing",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="nobody schedules the pod",
    meaning="The pod names a scheduler that does not run or has another name. It stays Pending without a single event.",
    known_by="Pending, no node, no PodScheduled condition and no event, with a scheduler name other than the default.",
    disproved_by="An event or a PodScheduled condition on the pod from that scheduler.",
    counter_check="kubectl get pods -A | grep the scheduler's name: Running, and its configuration has that "
    "schedulerName",
    fix=Fix(
        steps=("start the scheduler, or correct spec.schedulerName in the template",),
        risk="the default scheduler ignores gangs and shares",
        rollback="put the old name back",
    ),
    verify=("kubectl get pod POD -n NAMESPACE -o wide: it has a node, or an event says why not",),
    sources=("Kubernetes documentation: configure multiple schedulers",),
)
BIND = Code(
    name="BindingFails",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="a node was chosen, and the binding fails",
    meaning="A plugin or extender refuses at the last step; the pod goes back to the queue and may do so for ever.",
    known_by="The scheduler says which bind plugin failed.",
    disproved_by="The pod is bound at the next try.",
    counter_check="kubectl get events -n NAMESPACE: the failure does not come again",
    fix=Fix(
        steps=("read the plugin's error: a volume, a lock, a claim, or a right that the scheduler lacks",),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("kubectl get pod POD -n NAMESPACE -o wide: it has a node",),
    sources=("kubernetes, scheduling framework: PreBind and Bind",),
)

DISPLACED = Code(
    name="PodDisplaced",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Warning,
    effect=Effect.PodsWait,
    title="the pod was displaced: by a higher priority, or by a taint of its node",
    meaning="Preemption and NoExecute taints end running pods. Work since the last checkpoint is lost, and a job "
    "whose other pods "
    "go on hangs.",
    known_by="An event says that the pod was preempted, or the taint manager deleted it.",
    disproved_by="The pod ended for another reason before.",
    counter_check="kubectl get events -A --field-selector involvedObject.name=POD: no Preempted, no "
    "TaintManagerEviction",
    fix=Fix(
        steps=(
            "preempted: give the job a priority class that fits, or preemptionPolicy Never to the other; checkpoint "
            "on SIGTERM",
            "taken back by a queue: nominal quota of its own for what must go on; the rest is a loan (borrowing, "
            "over-quota)",
            "taint: mend the node's condition; tolerationSeconds bounds how long the pod may stay",
        ),
        risk="a higher priority displaces others",
        rollback="put the old class back",
    ),
    verify=("kubectl get pod POD -n NAMESPACE: Running for longer than before",),
    sources=("Kubernetes documentation: pod priority and preemption, taint based evictions",),
)
EXTENDER = Code(
    name="SchedulerExtenderFails",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="an extender of the scheduler does not answer",
    meaning="Where the extender is not ignorable, no pod with its resources is placed until it answers.",
    known_by="The scheduler's event or log names the extender with a connection error.",
    disproved_by="The extender's address answers from the scheduler's pod.",
    counter_check="kubectl get pods -A | grep the extender: Running; its service has endpoints",
    fix=Fix(
        steps=(
            "start the extender, mend its service or certificate; ignorable: true where placement may go on without it",
        ),
        risk="without the extender its resources are not counted",
        rollback="set ignorable to false",
    ),
    verify=("kubectl get pod POD -n NAMESPACE -o wide: it has a node",),
    sources=("Kubernetes documentation: scheduler extenders",),
)

VALIDATOR = Code(
    name="ValidatorFindsNoFreeGpu",
    layer=Layer.L5,
    cause_class="capacity",
    severity=Severity.Warning,
    effect=Effect.PodsRejected,
    title="the operator's validator wants a GPU, and all of the node are in use",
    meaning="The validator of the device plugin starts a pod with a GPU of its own on the node, past the scheduler. "
    "Where users' pods came first the kubelet refuses it, the validator starts again and again, and the policy is "
    "called not ready; GPUs and users' pods are well.",
    known_by="nvidia-device-plugin-validator fails with UnexpectedAdmissionError, Available: 0.",
    disproved_by="The node has free GPUs: requests of its pods are below allocatable.",
    counter_check="kubectl describe node NODE | grep -A12 'Allocated resources': nvidia.com/gpu requested below "
    "allocatable",
    fix=Fix(
        steps=(
            "ClusterPolicy: validator.plugin.env WITH_WORKLOAD=false (default in newer releases)",
            "or let it be: it passes when a GPU becomes free",
        ),
        risk="none for pods that run",
        rollback="WITH_WORKLOAD=true",
    ),
    verify=("kubectl get pod -n gpu-operator: nvidia-operator-validator Running",),
    sources=("gpu-operator cmd/nvidia-validator", "gpu-operator issues 233, 480, 481"),
)


def find(facts: Facts) -> Iterator[Answer]:
    yield from heard(
        facts,
        TOPOLOGY,
        ("kubelet.topology_refused",),
        "The topology manager of the node cannot align what the pod asks for.",
        LIKELY,  # kubelets have refused what they could have aligned
    )
    if any(facts.said("kubelet.devices_unavailable")):
        yield from heard(
            facts,
            VALIDATOR,
            ("operator.validator_refused",),
            "The validator's pod finds no free GPU: users' pods have them all.",
            LIKELY,
        )
    for node, pod, found in by_place(one for one in facts.said("kubelet.out_of") if not of_its_own_account(facts, one)):
        one = found[-1]
        resource = value(one, "resource")
        numbers = (
            f": {one.get('requested')} asked for, {one.get('used')} of {one.get('capacity')} used"
            if one.get("capacity")
            else ""
        )
        yield OUT_OF.finding(
            f"The node has no room for {resource}{numbers}.", POSSIBLE, found, node=node, pod=pod, resource=resource,
            cause_class="capacity" if _is_full(one) else None,
        )  # fmt: skip
    yield from heard(
        facts, NOBODY, ("scheduler.not_responsible",), "No scheduler of the name that the pod gives is there.", LIKELY
    )
    of_claims = {said.origin for said in facts.said("dra.scheduling_fails")}
    failed = [said for said in facts.said("scheduler.bind_failed") if said.origin not in of_claims]
    for node, pod, found in by_place(failed):
        yield BIND.finding("The last step of the placement fails.", POSSIBLE, found, node=node, pod=pod)
    yield from heard(
        facts,
        DISPLACED,
        ("scheduler.displaced",),
        "The pod was ended in favour of another, or by a taint of its node.",
        LIKELY,
    )
    yield from heard(
        facts,
        DISPLACED,
        ("gang.displaced",),
        "The queue took back what the pod held: for a higher priority, or as a loan.",
        LIKELY,
        cause_class="quota-gang",
    )
    yield from heard(facts, EXTENDER, ("scheduler.extender",), "The scheduler does not reach its extender.", LIKELY)
    yield from _unserved(facts)


def _is_full(said: Said) -> bool:
    """The numbers themselves leave no room: whoever placed it, there is none."""
    asked, used, capacity = (int(said.get(name) or 0) for name in ("requested", "used", "capacity"))
    return 0 < capacity < used + asked and used > 0


def _unserved(facts: Facts) -> Iterator[Answer]:
    told = {f"{event.namespace}/{event.name}" for event in facts.of(EventSeen)}
    for pod in facts.of(PodSeen):
        waits = pod.phase == "Pending" and not pod.on and not pod.gates
        knows = any(condition.type == "PodScheduled" for condition in pod.conditions)
        if waits and pod.scheduler not in ("", DEFAULT) and not knows and pod.key not in told and pod.made:
            yield NOBODY.finding(
                f"Pod {pod.key} names scheduler {pod.scheduler}, which has not said a word about it.",
                LIKELY,
                [pod],
                pod=pod.key,
            )


RULE = Rule((TOPOLOGY, OUT_OF, NOBODY, BIND, DISPLACED, EXTENDER, VALIDATOR), find)
