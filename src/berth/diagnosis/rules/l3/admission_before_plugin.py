"""L3. The kubelet judged a pod while its device plugin was not there, and that verdict is final."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import Advertised, PodSeen
from berth.evidence.formats.told import Told

MANY = 5  # rejected pods that nobody has cleared away

_CLEAR = "kubectl delete pod -A --field-selector status.phase=Failed (those with reason UnexpectedAdmissionError)"

BEFORE_PLUGIN = Code(
    name="AdmittedBeforePlugin",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="pods were judged before the device plugin was back",
    meaning="After a restart of node or kubelet all pods are admitted anew, in any order; those that come before the "
    "plugin has registered are rejected for good. Controllers make new pods, pods of their own stay Failed.",
    known_by="'no healthy devices present' or 'unregistered device' at admission.",
    disproved_by="The node offers no healthy device now either: then the devices or the plugin are ill.",
    counter_check="kubectl get node NODE -o jsonpath={.status.allocatable}: RESOURCE is still 0 (then the devices or "
    "the plugin are ill)",
    fix=Fix(
        steps=("if the node offers devices now: delete the rejected pods, their owners make new ones",
               "if not: the plugin or its devices are the cause; look at the plugin's log first",
               "keep pods away until the plugin is ready: a startup taint that is lifted then"),
        risk="none: rejected pods do not run",
        rollback="nothing to undo",
    ),
    verify=("a new pod on NODE is admitted", "kubectl get pod -A --field-selector status.phase=Failed: no leftovers"),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/manager.go", "kubernetes issues 125579, 128043, 109595"),
)  # fmt: skip

PILE_UP = Code(
    name="RejectedPodsPileUp",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Warning,
    effect=Effect.PodsRejected,
    title="rejected pods pile up",
    meaning="ReplicaSets do not delete pods that the kubelet rejected; each new try leaves one more, until thousands "
    "load the API server.",
    known_by=f"{MANY} and more Failed pods with reason UnexpectedAdmissionError.",
    disproved_by="Their number does not grow any more.",
    counter_check="kubectl get pod -A --field-selector status.phase=Failed | wc -l: the same a minute later",
    fix=Fix(
        steps=("mend what makes the kubelet reject (the other findings)", _CLEAR,
               "lower --terminated-pod-gc-threshold where this comes again"),
        risk="their events and statuses are lost",
        rollback="nothing to undo",
    ),
    verify=("kubectl get pod -A --field-selector status.phase=Failed: none",),
    sources=("kubernetes pod garbage collector", "k8s-device-plugin issue 231"),
)  # fmt: skip

NO_LONGER_HEALTHY = Code(
    name="AllocatedDevicesGone",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="devices that a running pod held are not healthy any more",
    meaning="The kubelet admits its pods anew and finds that the devices which it had given away are gone: it died, "
    "was partitioned anew, or its plugin has not registered yet.",
    known_by="'previously allocated devices are no longer healthy'.",
    disproved_by="The same devices are offered now and the pod runs.",
    counter_check="on NODE: nvidia-smi -L: lists the UUID that the kubelet's checkpoint has for that pod",
    fix=Fix(
        steps=("plugin back and devices there: delete the rejected pods",
               "device gone: kernel log for its Xid; partitions changed: apply the former layout or let pods ask for "
               "the new profile"),
        risk="none: rejected pods do not run",
        rollback="nothing to undo",
    ),
    verify=("a new pod on NODE is admitted",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/manager.go: devicesToAllocate", "kubernetes issue 116376"),
)  # fmt: skip


_NOT_THERE = (
    "kubelet.no_healthy_devices",
    "kubelet.unregistered",
    "reported.rejected_after_restart",
    "reported.admitted_before_plugin",
)


def find(facts: Facts) -> Iterator[Answer]:
    none_now = {one.resource for one in facts.of(Advertised) if one.allocatable == 0 < one.capacity}
    latched = next(facts.said("reported.healthy_after_restart"), None) is not None
    answered = next(facts.said("plugin.preferred_fails", "plugin.preferred_lost_gpu"), None)
    for said in by_node(facts.said(*_NOT_THERE)).values():
        if answered and all(one.message.startswith("reported.") for one in said):
            continue  # the plugin was there, and says itself what is wrong
        resource = said_of(one.get("resource") or one.get("resource2") or one.get("plugin") for one in said)
        yield BEFORE_PLUGIN.finding(
            f"At admission no healthy device of {resource or 'the resource'} was registered on the node.",
            WEAK if latched or (resource or next(iter(none_now), "")) in none_now else LIKELY,
            said,
            resource=resource,
        )
    unoffered = [
        one for one in facts.said("kubelet.out_of") if "capacity: 0" in one.origin.text and "/" in _resource(one)
    ]
    for said in by_node(unoffered).values():
        resource = said_of(map(_resource, said))
        yield BEFORE_PLUGIN.finding(
            f"At admission the capacity of {resource} was 0: its plugin had not registered.",
            LIKELY,
            said,
            resource=resource,
        )
    for said in by_node(one for one in facts.said("kubelet.out_of") if of_its_own_account(facts, one)).values():
        resource = said_of(map(_resource, said))
        yield BEFORE_PLUGIN.finding(
            f"The kubelet refuses {resource} to a pod that the scheduler found room for: by its account the devices "
            "are not there (yet), as after its own restart.",
            POSSIBLE,
            said,
            resource=resource,
        )
    for said in by_node(facts.said("kubelet.no_longer_healthy")).values():
        resource = said_of(one.get("resource") for one in said)
        yield NO_LONGER_HEALTHY.finding(
            f"Devices of {resource or 'a resource'} that the pod held before are not among the healthy ones.",
            POSSIBLE,
            said,
            resource=resource,
        )
    yield from _plainly(facts)
    rejected = {pod.key: pod for pod in facts.of(PodSeen) if pod.reason == "UnexpectedAdmissionError"}
    if len(rejected) >= MANY:
        yield PILE_UP.finding(f"{len(rejected)} pods were rejected and are still there.", LIKELY, rejected.values())


# Whatever says more of a rejection than its name.
_SAID_MORE = (
    *_NOT_THERE, "kubelet.out_of", "kubelet.no_longer_healthy", "kubelet.devices_unavailable", "kubelet.plugin_refused",
    "kubelet.allocate_unreachable", "kubelet.allocate_inconsistent", "kubelet.topology_refused",
    "kubelet.init_container_reallocated", "plugin.", "sharing.", "reported.shares_asked",
)  # fmt: skip


def _plainly(facts: Facts) -> Iterator[Answer]:
    """Rejected, and nobody says why: mostly after a restart of kubelet or node."""
    if next(facts.said(*_SAID_MORE), None) is None:
        for said in by_node(facts.said("kubelet.rejected_plainly")).values():
            yield BEFORE_PLUGIN.finding(
                "The kubelet rejected pods; why is not among what was given. Mostly the plugin had not registered.",
                WEAK,
                said,
            )


def of_its_own_account(facts: Facts, said: Said) -> bool:
    """A refusal of devices by the kubelet without numbers: those would say whether all are taken. A mere name of the
    refusal counts where somebody tells of a restart."""
    text, kind = said.origin.text, said.origin.kind
    if "OutOf" in text and "/" in _resource(said) and "capacity:" not in text and _restarted(facts):
        return True
    by_kubelet = "OutOf" in text or kind == "kubelet-log"
    return by_kubelet and "/" in _resource(said) and "capacity:" not in text and "have enough resource: " in text


def _restarted(facts: Facts) -> bool:
    return any("reboot" in told.topics or {"kubelet", "restart"} <= told.topics for told in facts.of(Told))


def _resource(said: Said) -> str:
    return said.get("resource") or said.get("resource2")


RULE = Rule((BEFORE_PLUGIN, PILE_UP, NO_LONGER_HEALTHY), find)
