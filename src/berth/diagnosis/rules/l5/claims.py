"""L5. Dynamic resource allocation: a claim is not allocated or not prepared."""

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
_DRIVER = ("kubernetes-sigs/dra-driver-nvidia-gpu, kubelet plugins",)
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
UNREGISTERED = Code(
    name="DraDriverNotRegistered",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="the kubelet knows no DRA driver of that name on the node",
    meaning="The driver's kubelet plugin does not run there, or its registration socket is not where the kubelet "
    "looks.",
    known_by="FailedPrepareDynamicResources: DRA driver is not registered.",
    disproved_by="The plugin's pod runs on the node and its socket is in plugins_registry.",
    counter_check="ls /var/lib/kubelet/plugins_registry on NODE: the driver's socket is there",
    fix=Fix(
        steps=(
            "kubectl get pods -A -o wide | grep kubelet-plugin: Running on NODE",
            "after a node restart pods may start before the plugin: they are tried again",
            "kubelet with another --root-dir: set the path in the chart",
        ),
        risk="a restart of the plugin does not touch running pods",
        rollback="nothing to undo",
    ),
    verify=_PREPARED,
    sources=("kubernetes, pkg/kubelet/cm/dra", *_DRIVER),
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
DOMAIN = Code(
    name="ComputeDomainNotReady",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="the node is not ready in its compute domain",
    meaning="The IMEX daemon of the domain does not see its peers or is not up. Pods of the domain wait at the "
    "preparation of their channel.",
    known_by="FailedPrepareDynamicResources: current node not ready in ComputeDomain, or the daemon's pod is not "
    "ready.",
    disproved_by="The ComputeDomain's status lists the node as Ready.",
    counter_check="kubectl get computedomain -n NAMESPACE -o yaml: every node Ready; nvidia-imex-ctl -N in the "
    "daemon's pod: UP",
    fix=Fix(
        steps=(
            "log of the IMEX daemon's pod on NODE: peers that are not reached, version mismatch",
            "all nodes of one clique (label nvidia.com/gpu.clique); port 50000 and 50005 open between them; the "
            "host's own nvidia-imex off",
        ),
        risk="a restart of the daemon ends the domain's jobs",
        rollback="nothing to undo",
    ),
    verify=("kubectl get computedomain -n NAMESPACE: Ready", *_PREPARED),
    sources=_DRIVER,
)
MIG = Code(
    name="ClaimMigRefused",
    layer=Layer.L5,
    cause_class="mig-state",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="the driver cannot make the MIG device of a claim",
    meaning="Instances that the driver does not know of hold the slices, or the placement is taken.",
    known_by="error creating MIG device: Insufficient Resources or In use.",
    disproved_by="nvidia-smi mig -lgi lists only instances of allocated claims, and the placement is free.",
    counter_check="nvidia-smi mig -lgi and -lgipp on NODE: free slices for the profile",
    fix=Fix(
        steps=(
            "nvidia-smi mig -lgi, -lci: destroy instances that no claim owns (-dci, then -dgi)",
            "leave MIG to one owner: no MIG manager beside the driver",
        ),
        risk="destroying an instance ends what runs on it",
        rollback="make the instance again",
    ),
    verify=_PREPARED,
    sources=_DRIVER,
)
PREPARE = Code(
    name="ClaimPreparationFails",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="a claim is allocated, and the node cannot prepare it",
    meaning="The pod stays in ContainerCreating and the kubelet tries again; the driver's own error stands behind "
    "the event.",
    known_by="FailedPrepareDynamicResources.",
    disproved_by="The next try succeeds.",
    counter_check="kubectl logs of the driver's kubelet plugin on NODE: no error for the claim",
    fix=Fix(
        steps=(
            "read the driver's error in its kubelet plugin's log on NODE",
            "restart the plugin's pod where it holds an old picture of devices or CDI files",
        ),
        risk="running pods are not touched",
        rollback="nothing to undo",
    ),
    verify=_PREPARED,
    sources=_DRIVER,
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
DENIED = Code(
    name="DraDriverFileDenied",
    layer=Layer.L5,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="a part of the DRA driver may not write its file",
    meaning="The IMEX daemon's container writes its list of nodes, the kubelet plugins their checkpoint and socket. "
    "Where the security context does not let them, they end, and claims of the node are not prepared.",
    known_by="Permission denied, or a read-only file system, for nodes_config.cfg or a file of the driver's plugin.",
    disproved_by="The same pod runs with the security context of the chart and can write.",
    counter_check="kubectl get pod POD -n NAMESPACE -o jsonpath='{.metadata.annotations.openshift\\.io/scc}': "
    "privileged; on NODE: ausearch -m avc -ts recent: nothing of nvidia",
    fix=Fix(
        steps=(
            "OpenShift: give the driver's service accounts the privileged SCC (oc adm policy add-scc-to-user "
            "privileged -z ACCOUNT -n NAMESPACE), those of the ComputeDomain daemons too",
            "a namespace with a Pod Security level: label pod-security.kubernetes.io/enforce=privileged",
            "the daemon's container runs as root in the driver's chart: no runAsUser from a policy engine",
        ),
        risk="privileged pods own the node: for the driver's namespace only",
        rollback="oc adm policy remove-scc-from-user",
    ),
    verify=("the pod of the daemon is Ready", *_PREPARED),
    sources=("dra-driver-nvidia-gpu, cmd/compute-domain-daemon", "OpenShift: security context constraints"),
)

SHORT = 100  # characters of a line that says this and nothing else
_OF_CLAIMS = ("resource.k8s.io", "resourceclaim", "resourceslice", "deviceclass", "resource claim")

_SHARP = ("dra.driver_unregistered", "dra.domain_not_ready", "dra.mig_refused", "dra.api_absent", "dra.claim_missing")
_KNOWN_ELSEWHERE = ("cdi", "empty device edits", "checkpoint")  # layers below name these


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
    for node, pod, found in by_place(facts.said("dra.class_missing")):
        yield NO_CLASS.finding(
            f"Device class {value(found[0], 'name', 'of the claim')} is not there.",
            ESTABLISHED,
            found,
            node=node,
            pod=pod,
        )
    yield from heard(facts, NO_CLAIM, ("dra.claim_missing",), "The claim or its template is not there.", LIKELY)
    for node, pod, found in by_place(facts.said("dra.driver_unregistered")):
        yield UNREGISTERED.finding(
            f"DRA driver {value(found[0], 'driver')} is not registered with the kubelet.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    yield from heard(facts, UNALLOCATED, ("dra.no_slices",), "The driver publishes no devices.", POSSIBLE)
    yield from heard(
        facts, ADMIN, ("dra.admin_access",), "Admin access is not allowed in the claim's namespace.", LIKELY
    )
    yield from heard(facts, SELECTOR, ("dra.selector_fails",), "A selector of the claim ends with an error.", LIKELY)
    for node, pod, found in by_place(facts.said("dra.api_absent")):
        if alone := [said for said in found if _is_about_claims(said.origin.text.lower())]:
            yield API_SKEW.finding(
                "A component asks for a version of the resource API that is not served.",
                POSSIBLE,
                alone,
                node=node,
                pod=pod,
            )
    yield from heard(
        facts,
        DOMAIN,
        ("dra.domain_not_ready",),
        "The IMEX daemon of the domain is not ready on the node: peers, clique, names or ports.",
        LIKELY,
    )
    for node, pod, found in by_place(facts.said("dra.file_denied")):
        yield DENIED.finding(
            f"The driver may not write {value(found[0], 'path', 'its file')}.", LIKELY, found, node=node, pod=pod
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
    yield from heard(
        facts,
        MIG,
        ("dra.mig_refused",),
        "The slices for the profile are held by instances that the driver does not own.",
        LIKELY,
    )
    if not any(True for _ in facts.said(*_SHARP)):
        for node, pod, found in by_place(facts.said("dra.prepare_failed")):
            text = " ".join(said.origin.text for said in found).lower()
            sure = POSSIBLE if not any(word in text for word in _KNOWN_ELSEWHERE) else POSSIBLE - 0.1
            yield PREPARE.finding(
                f"The node cannot prepare the claim. {value(found[0], 'why')[:160]}".rstrip(),
                sure,
                found,
                node=node,
                pod=pod,
            )


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


def _is_about_claims(line: str) -> bool:
    """The API server says the same of every API that it does not serve. What the operator cannot apply is its own
    affair, one layer below; a right that is missing is no version."""
    if any(word in line for word in ("clusterpolicy", "forbidden")):
        return False
    return len(line) < SHORT or any(word in line for word in _OF_CLAIMS)


RULE = Rule(
    (
        UNALLOCATED,
        NO_CLASS,
        NO_CLAIM,
        UNREGISTERED,
        SELECTOR,
        API_SKEW,
        DOMAIN,
        CLASSIC,
        DENIED,
        MIG,
        PREPARE,
        ADMIN,
    ),
    find,
)
