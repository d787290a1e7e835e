"""L5. The resource API in the versions of API server, kubelet and driver; classic allocation before it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, value
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.facts import Facts

_DRIVER = ("kubernetes-sigs/dra-driver-nvidia-gpu, kubelet plugins",)
_PREPARED = ("kubectl get resourceclaim -n NAMESPACE: allocated,reserved", "kubectl get pod POD -n NAMESPACE: Running")

API_SKEW = Code(
    name="ResourceApiSkew",
    layer=Layer.L5,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="API server, kubelet and driver do not agree about the version of the resource API",
    meaning="resource.k8s.io is v1 from 1.34, v1beta1 and v1beta2 before, each served only where it is switched on. "
    "A driver "
    "or kubelet that asks for another version gets nothing.",
    known_by="The server could not find the requested resource, or no matches for a kind of resource.k8s.io.",
    disproved_by="kubectl api-resources lists the version that the component asks for.",
    counter_check="kubectl api-versions | grep resource.k8s.io; kubectl get nodes: kubelet of the same minor as the "
    "API server",
    fix=Fix(
        steps=(
            "bring kubelets to the API server's minor",
            "before 1.34: feature gate DynamicResourceAllocation and --runtime-config=resource.k8s.io/v1beta1=true",
            "a driver release that speaks the version that is served",
        ),
        risk="runtime-config needs a restart of the API server",
        rollback="take the setting out again",
    ),
    verify=("kubectl get resourceslices: lists devices of each GPU node",),
    sources=("Kubernetes documentation: set up DRA in a cluster", *_DRIVER),
)
CLASSIC = Code(
    name="ClassicAllocationFails",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="the controller of a classic DRA driver cannot allocate the claim",
    meaning="Up to Kubernetes 1.31 a driver's controller allocated claims and wrote that into NodeAllocationState "
    "objects. A claim that it does not understand, or a definition of these objects from another release, ends it.",
    known_by="An event of `resource driver`: allocate, immediate allocation or NodeAllocationState, with an error.",
    disproved_by="The claim's status is allocated.",
    counter_check="kubectl get resourceclaim -n NAMESPACE; kubectl get crd | grep nas.gpu: of the driver's release",
    fix=Fix(
        steps=(
            "allocationMode WaitForFirstConsumer in the claim, where it says Immediate",
            "custom resource definitions of the driver's own release: a chart's upgrade leaves the old ones",
            "from Kubernetes 1.32 on: a driver that publishes ResourceSlices (structured parameters)",
        ),
        risk="changing definitions under running claims loses their allocation",
        rollback="the former chart and its definitions",
    ),
    verify=_PREPARED,
    sources=("Kubernetes 1.26 to 1.31: classic DRA, dynamic-resource-allocation controller", *_DRIVER),
)

SCHEDULING = Code(
    name="SchedulingApiMissing",
    layer=Layer.L5,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="a scheduler's API is not served in the version that is asked for",
    meaning="Kueue, Volcano, KAI, YuniKorn and the scheduler's own configuration change their versions between "
    "releases. An object or configuration of another one is refused whole.",
    known_by="No matches for a kind, or no kind registered for a version, of one of these groups.",
    disproved_by="kubectl api-resources lists that version.",
    counter_check="kubectl api-versions | grep -e kueue -e volcano -e scheduling -e kai: the version that the object "
    "names",
    fix=Fix(
        steps=(
            "install the scheduler's custom resource definitions (a chart's upgrade does not renew them)",
            "write the object in the version that is served: Kueue v1beta1 until 0.15, v1beta2 from 0.14 on; "
            "KubeSchedulerConfiguration v1 from 1.25 on, v1beta3 gone in 1.29, v1beta2 in 1.28",
        ),
        risk="new definitions are read by all objects of their kind",
        rollback="the former definitions",
    ),
    verify=("kubectl apply --dry-run=server of the object: accepted",),
    sources=("Kueue and Volcano: release notes", "Kubernetes documentation: deprecated API migration guide"),
)

SHORT = 100  # characters of a line that says this and nothing else
_OF_CLAIMS = ("resource.k8s.io", "resourceclaim", "resourceslice", "deviceclass", "resource claim")


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("dra.api_absent")):
        if alone := [said for said in found if _is_about_claims(said.origin.text.lower())]:
            yield API_SKEW.finding(
                "A component asks for a version of the resource API that is not served.",
                POSSIBLE,
                alone,
                node=node,
                pod=pod,
            )
    for node, pod, found in by_place(facts.said("scheduler.api_absent")):
        kind, version = value(found[0], "kind"), value(found[0], "version")
        what = f"{kind} in {version}" if version else f"--{kind}"
        yield SCHEDULING.finding(f"{what} is not known here.", LIKELY, found, node=node, pod=pod)
    for node, pod, found in by_place(facts.said("dra.classic_pending")):
        yield CLASSIC.finding(
            "The claim waits for the driver's controller to allocate it.", WEAK, found, node=node, pod=pod
        )
    for node, pod, found in by_place(facts.said("dra.classic")):
        words = value(found[0], "why")
        yield CLASSIC.finding(
            f"The driver's controller cannot allocate the claim{': ' + words[:160] if words else ''}.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )


def _is_about_claims(line: str) -> bool:
    """The API server says the same of every API that it does not serve. What the operator cannot apply is its own
    affair, one layer below; a right that is missing is no version."""
    if "feature gate dra" in line:
        return True
    if any(word in line for word in ("clusterpolicy", "forbidden")):
        return False
    return len(line) < SHORT or any(word in line for word in _OF_CLAIMS)


RULE = Rule((API_SKEW, CLASSIC, SCHEDULING), find)
