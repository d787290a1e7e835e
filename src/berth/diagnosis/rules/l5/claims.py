"""L5. Dynamic resource allocation: a claim is not allocated."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, listed, value
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import ObjectSeen
from berth.evidence.formats.failed_scheduling import unplaced
from berth.evidence.formats.resource_slices import KIND, devices_of

_DRA = ("Kubernetes documentation: Dynamic resource allocation", "kubernetes, plugin dynamicresources")
_PREPARED = ("kubectl get resourceclaim -n NAMESPACE: allocated,reserved", "kubectl get pod POD -n NAMESPACE: Running")

UNALLOCATED = Code(
    name="ClaimNotAllocatable",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="no node has devices that satisfy the pod's claims",
    meaning="Devices are taken by other claims, none satisfies the selectors, or the node's driver publishes none.",
    known_by="FailedScheduling: cannot allocate all claims, or the claim is in use or not available on the node.",
    disproved_by="A ResourceSlice with a free device of the class whose attributes satisfy every selector.",
    counter_check="kubectl get resourceslices -o yaml: devices of the class on the node, more than allocated claims",
    fix=Fix(
        steps=(
            "kubectl get resourceslices: does the driver publish devices of each GPU node? If not, see the driver's "
            "pods",
            "compare the claim's CEL selectors with the attributes in the slices, spelling and type",
            "kubectl get resourceclaims -A: claims that nobody uses hold devices; delete them",
        ),
        risk="deleting a claim that a pod uses ends the pod",
        rollback="make the claim again",
    ),
    verify=_PREPARED,
    sources=_DRA,
)
NO_CLASS = Code(
    name="DeviceClassMissing",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="the claim names a device class that does not exist",
    meaning="The driver's chart makes the classes; without it, or with another name, no claim of the class is "
    "allocated.",
    known_by="The scheduler: device class does not exist.",
    disproved_by="kubectl get deviceclass lists the name.",
    counter_check="kubectl get deviceclass: gpu.nvidia.com, mig.nvidia.com and the one that is named",
    fix=Fix(
        steps=("install the driver's chart with that kind of devices enabled, or correct deviceClassName",),
        risk="a second owner of GPUs beside the device plugin counts them twice",
        rollback="uninstall the chart",
    ),
    verify=("kubectl get deviceclass: the name is there", *_PREPARED),
    sources=_DRA,
)
NO_CLAIM = Code(
    name="ClaimMissing",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="the pod's resource claim does not exist",
    meaning="The claim or its template is not in the namespace, or the controller that makes claims from templates "
    "is off.",
    known_by="Scheduler or kubelet: resourceclaim not found, or not created yet.",
    disproved_by="The claim is listed in the pod's namespace.",
    counter_check="kubectl get resourceclaims,resourceclaimtemplates -n NAMESPACE: the name is there",
    fix=Fix(
        steps=(
            "make the claim or the template in the pod's namespace",
            "ComputeDomain: its template is made by the driver's controller, see its log",
        ),
        risk="none: the pod does not run yet",
        rollback="delete it",
    ),
    verify=_PREPARED,
    sources=_DRA,
)
SELECTOR = Code(
    name="ClaimSelectorFails",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="the selector of a claim cannot be evaluated",
    meaning="An attribute that a device does not have ends the evaluation with an error, for all devices of the node.",
    known_by="The scheduler quotes the selector's number and a CEL error.",
    disproved_by="The expression is true or false for each device.",
    counter_check="kubectl get resourceslices -o yaml: every device has the attribute under that domain",
    fix=Fix(
        steps=("name the attribute with its domain as the slices have it, and guard it: has(...)",),
        risk="none: the pod does not run yet",
        rollback="nothing to undo",
    ),
    verify=_PREPARED,
    sources=_DRA,
)
ADMIN = Code(
    name="ClaimAdminAccessRefused",
    layer=Layer.L5,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="a claim with admin access is refused in this namespace",
    meaning="Admin access gives devices that others use, for monitoring; only namespaces with a label may ask for it.",
    known_by="The API server or the driver says that admin access needs the label.",
    disproved_by="The namespace carries resource.kubernetes.io/admin-access: true.",
    counter_check="kubectl get ns NAMESPACE --show-labels: the label is there",
    fix=Fix(
        steps=("kubectl label ns NAMESPACE resource.kubernetes.io/admin-access=true, for monitoring only",),
        risk="its pods reach devices of others",
        rollback="remove the label",
    ),
    verify=_PREPARED,
    sources=_DRA,
)
STOPS = Code(
    name="ClaimPluginFails",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="the scheduler's plugin for claims ends with an error of its own",
    meaning="DynamicResources allocates claims inside the scheduler. An error at one of its steps is none of the pod's "
    "or the node's: a case that its version does not handle, or a claim that cannot be written. The pod is tried "
    "again and fails each time.",
    known_by="The scheduler: running Score, Reserve or PreBind plugin DynamicResources failed, with what it met.",
    disproved_by="The next try places the pod: the object had been modified meanwhile.",
    counter_check="kubectl get events -n NAMESPACE --field-selector involvedObject.name=POD: the failure does not come "
    "again",
    fix=Fix(
        steps=(
            "read the error: rights of the scheduler on resourceclaims and their status, a webhook, an API that is off",
            "one of numbers or nil pointers: a later patch release of the scheduler; until then claims of one kind in "
            "a pod (own or shared, not both)",
        ),
        risk="none: the pod does not run yet",
        rollback="the former manifest",
    ),
    verify=_PREPARED,
    sources=("kubernetes, pkg/scheduler/framework: Score, Reserve, PreBind", *_DRA),
)
_SAYS_MORE = ("dra.selector_fails", "dra.class_missing", "dra.claim_missing", "dra.admin_access")


def find(facts: Facts) -> Iterator[Answer]:
    for said in facts.said("scheduler.unplaced"):
        why = unplaced(said.get("total"), said.get("reasons"))
        for reason in why.of("claims"):
            if "does not exist" not in reason.text:
                cause = f"{reason.nodes} of {why.total} nodes: {reason.text}.{_published(facts)}"
                yield UNALLOCATED.finding(cause, LIKELY, [said])
    for node, pod, found in by_place(facts.said("dra.not_allocatable")):
        cause = f"No device that is free satisfies the claim.{_published(facts)}"
        yield UNALLOCATED.finding(cause, LIKELY, found, node=node, pod=pod)
    yield from heard(facts, UNALLOCATED, ("dra.no_slices",), "The driver publishes no devices.", POSSIBLE)
    for node, pod, found in by_place(facts.said("dra.class_missing")):
        yield NO_CLASS.finding(
            f"Device class {value(found[0], 'name', 'of the claim')} is not there.",
            ESTABLISHED,
            found,
            node=node,
            pod=pod,
        )
    off, classes = list(facts.said("dra.gpus_off")), list(facts.said("dra.domain_classes"))
    if off and classes and not any(facts.said("dra.gpus_served")):
        yield NO_CLASS.finding(
            "The driver was installed for ComputeDomains alone (resources.gpus.enabled: false): it makes no class and "
            "publishes no GPU.",
            POSSIBLE,
            [*off, *classes],
            resource="gpu.nvidia.com",
        )
    yield from heard(facts, NO_CLAIM, ("dra.claim_missing",), "The claim or its template is not there.", LIKELY)
    yield from heard(
        facts, ADMIN, ("dra.admin_access",), "Admin access is not allowed in the claim's namespace.", LIKELY
    )
    if not any(facts.said(*_SAYS_MORE)):
        for node, pod, found in by_place(facts.said("dra.scheduling_fails")):
            error = value(found[0], "why")
            cause = f"DynamicResources fails in the scheduler{': ' + error if error else ''}."
            yield STOPS.finding(cause, LIKELY, found, node=node, pod=pod)
    yield from heard(facts, SELECTOR, ("dra.selector_fails",), "A selector of the claim ends with an error.", LIKELY)


def _published(facts: Facts) -> str:
    """How many devices drivers publish, where slices were looked at."""
    slices = [one for one in facts.of(ObjectSeen) if one.kind == KIND]
    if not slices:
        return ""
    counts: dict[str, int] = {}
    for device in (device for one in slices for device in devices_of(one)):
        name = f"{device.driver} on {device.on or 'a node'}"
        counts[name] = counts.get(name, 0) + 1
    if not counts:
        return " The slices hold no device."
    return f" Published are: {listed(f'{count} of {name}' for name, count in sorted(counts.items()))}."


RULE = Rule((UNALLOCATED, NO_CLASS, NO_CLAIM, SELECTOR, ADMIN, STOPS), find)
