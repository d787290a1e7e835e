"""L5. ResourceQuota and LimitRange: what they refuse, and what they do not do although it is written there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, listed, value
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import ObjectSeen

_QUOTA = ("Kubernetes documentation: Resource quotas", "kubernetes, pkg/quota/v1/evaluator/core/pods.go")
_LIMITS = ("Kubernetes documentation: Limit ranges", "kubernetes, plugin/pkg/admission/limitranger")
_MADE = ("kubectl get events -n NAMESPACE: no FailedCreate", "kubectl get pods -n NAMESPACE: the pods exist")

EXCEEDED = Code(
    name="QuotaExceeded",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="the namespace's quota refuses the pod",
    meaning="No pod is made at all: a job or deployment tries again for ever and shows nothing but an event.",
    known_by="The API server refuses with `exceeded quota` and states asked, used and limit.",
    disproved_by="used plus requested is below hard for every key of the quota.",
    counter_check="kubectl describe quota -n NAMESPACE: there is room for the request",
    fix=Fix(
        steps=(
            "berth queue or kubectl get pods -n NAMESPACE: what holds the quota; end what is idle",
            "or raise the quota after review; ask for less",
        ),
        risk="a larger quota takes capacity from other teams",
        rollback="put the old limit back",
    ),
    verify=_MADE,
    sources=_QUOTA,
)
WANTS_VALUES = Code(
    name="QuotaWantsValues",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="a quota refuses pods that state no requests",
    meaning="A quota over CPU or memory makes requests and limits of them a duty for every container of the namespace.",
    known_by="The API server refuses with `failed quota: ... must specify`.",
    disproved_by="Every container, sidecars and init containers too, states the keys that are named.",
    counter_check="kubectl get quota -n NAMESPACE -o yaml: the keys are not in spec.hard",
    fix=Fix(
        steps=("state the named requests and limits in every container, or give defaults by a LimitRange",),
        risk="defaults apply to all new pods of the namespace",
        rollback="delete the LimitRange",
    ),
    verify=_MADE,
    sources=_QUOTA,
)
PRIORITY = Code(
    name="PriorityClassNeedsQuota",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="pods with a system priority are refused outside kube-system",
    meaning="GKE and clusters with limited priority classes admit system-node-critical only where a ResourceQuota "
    "with that "
    "scope permits it. DaemonSets of the operator stay at 0.",
    known_by="FailedCreate: insufficient quota to match these scopes, with a PriorityClass.",
    disproved_by="A ResourceQuota of the namespace with a scopeSelector for that class and room in it.",
    counter_check="kubectl get resourcequota -n NAMESPACE -o yaml | grep -A4 scopeSelector: the class is there",
    fix=Fix(
        steps=(
            "kubectl create a ResourceQuota in NAMESPACE with hard pods and scopeSelector PriorityClass In "
            "[system-node-critical, system-cluster-critical]",
        ),
        risk="pods of these classes displace others",
        rollback="kubectl delete the ResourceQuota",
    ),
    verify=("kubectl get ds -n NAMESPACE: DESIRED equals CURRENT",),
    sources=("GKE documentation: GPU Operator", "Kubernetes documentation: limit priority class consumption"),
)
CLASS_MISSING = Code(
    name="PriorityClassMissing",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="the pod names a priority class that does not exist",
    meaning="The pod is refused, so nothing of the workload is made.",
    known_by="The API server: no PriorityClass with that name was found.",
    disproved_by="kubectl get priorityclass lists the name.",
    counter_check="kubectl get priorityclass: the name is listed",
    fix=Fix(
        steps=("correct priorityClassName, or make the class",),
        risk="a class with a high value displaces others",
        rollback="delete the class",
    ),
    verify=_MADE,
    sources=("kubernetes, plugin/pkg/admission/priority",),
)
LIMIT_REFUSES = Code(
    name="LimitRangeRefuses",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="a LimitRange refuses the amount that the pod asks for",
    meaning="The namespace's bounds per container or pod are checked before any node is looked at.",
    known_by="The API server names the bound, what it allows and what was asked for.",
    disproved_by="No LimitRange of the namespace bounds that resource.",
    counter_check="kubectl describe limitrange -n NAMESPACE: the amount is inside",
    fix=Fix(
        steps=("ask for an amount inside the bounds, or change the LimitRange after review",),
        risk="wider bounds let one pod take more",
        rollback="put the old bound back",
    ),
    verify=_MADE,
    sources=_LIMITS,
)
AMOUNT = Code(
    name="DeviceAmountRefused",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="the way in which the pod asks for devices is not allowed",
    meaning="Extended resources are whole numbers, need a limit, and limit and request are the same. Parts of a GPU "
    "are asked "
    "for by other names: MIG profiles, shared resources, or a share scheduler's own.",
    known_by="The API server refuses the manifest and names the resource.",
    disproved_by="limits of the resource is a whole number, and requests is left out or equal.",
    counter_check="kubectl apply --dry-run=server -f the manifest: accepted",
    fix=Fix(
        steps=("write the resource under limits only, as a whole number",),
        risk="none: the pod does not run yet",
        rollback="nothing to undo",
    ),
    verify=_MADE,
    sources=("Kubernetes documentation: extended resources", "kubernetes, pkg/apis/core/validation"),
)
WITHOUT_EFFECT = Code(
    name="QuotaKeyWithoutEffect",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Warning,
    effect=Effect.HeldByPolicy,
    title="a quota key for GPUs limits nothing",
    meaning="Extended resources are counted by quota only as `requests.<resource>`. A key that begins with limits., "
    "or has no "
    "prefix, is accepted and never counted.",
    known_by="spec.hard of a ResourceQuota has such a key.",
    disproved_by="The API server's quota controller counts it in status.used.",
    counter_check="kubectl get quota -n NAMESPACE -o jsonpath='{.items[*].status.used}': the key counts up with pods",
    fix=Fix(
        steps=("write requests.RESOURCE in its place",),
        risk="the limit begins to hold: pods above it are refused",
        rollback="take the key out again",
    ),
    verify=("kubectl describe quota -n NAMESPACE: requests.RESOURCE with what is used",),
    sources=_QUOTA,
)
GIVES_GPU = Code(
    name="LimitRangeGivesGpu",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Warning,
    effect=Effect.PodsWait,
    title="a LimitRange gives a GPU to every container that asks for none",
    meaning="A default for a device applies to sidecars, init containers and pods that have nothing to do with GPUs.",
    known_by="A LimitRange of type Container has a default or defaultRequest for a device.",
    disproved_by="A new pod without requests in that namespace has no such limit after admission.",
    counter_check="kubectl run in NAMESPACE with --dry-run=server -o yaml: no device in resources",
    fix=Fix(
        steps=("take the device out of default and defaultRequest; keep max",),
        risk="pods that relied on the default get no GPU",
        rollback="put the default back",
    ),
    verify=("kubectl describe limitrange -n NAMESPACE: no default for a device",),
    sources=_LIMITS,
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("admission.quota_exceeded")):
        one = found[0]
        asked, used, limited = one.get("requested"), one.get("used"), one.get("limited")
        numbers = f": {asked} requested, {used} used, {limited} allowed" if asked else ""
        never = " More is asked for than the quota ever allows." if _is_beyond(asked, limited) else ""
        cause = f"Quota {one.get('quota', '')}{numbers}.{never}"
        yield EXCEEDED.finding(cause, ESTABLISHED, found, node=node, pod=pod)
    yield from heard(
        facts,
        WANTS_VALUES,
        ("admission.quota_wants_values",),
        "A quota demands requests that the pod does not state.",
        ESTABLISHED,
    )
    yield from heard(
        facts, PRIORITY, ("admission.priority_needs_quota",),
        "The priority class is admitted only in namespaces with a quota for it; this one has none.", ESTABLISHED,
    )  # fmt: skip
    yield from heard(
        facts, WITHOUT_EFFECT, ("admission.quota_unknown",),
        "The quota has no count: it names what nothing counts, or its controller has not been there yet.", LIKELY,
    )  # fmt: skip
    yield from heard(
        facts,
        CLASS_MISSING,
        ("admission.priority_class_missing",),
        "The priority class that the pod names does not exist.",
        ESTABLISHED,
    )
    for said in facts.said("admission.limit_range"):
        resource, asked = value(said, "resource"), value(said, "asked", "nothing")
        yield LIMIT_REFUSES.finding(
            f"{resource}: {value(said, 'bound')} per {value(said, 'per')} is {value(said, 'allowed')}, asked for is "
            f"{asked}.",
            ESTABLISHED, [said], resource=resource,
        )  # fmt: skip
    yield from heard(
        facts, LIMIT_REFUSES, ("kueue.resources_refused",),
        "Kueue checks the namespace's bounds before it admits: what is asked for is outside them.", LIKELY,
    )  # fmt: skip
    for said in facts.said("admission.device_amount"):
        resource = value(said, "resource", "the resource")
        yield AMOUNT.finding(
            f"{resource} is not asked for as a whole number with an equal limit.",
            ESTABLISHED,
            [said],
            resource=resource,
        )
    objects = {one.kind for one in facts.of(ObjectSeen)}
    if "ResourceQuota" not in objects:  # a table, or a piece of a manifest
        yield from heard(
            facts,
            WITHOUT_EFFECT,
            ("admission.quota_idle_key",),
            "A quota key for limits of a device counts nothing.",
            LIKELY,
        )
    if "LimitRange" not in objects:
        yield from heard(
            facts, GIVES_GPU, ("admission.default_device",), "A LimitRange has a default for a device.", LIKELY
        )
    for found_object in facts.of(ObjectSeen):
        yield from _of_object(found_object)


def _is_beyond(asked: str, limited: str) -> bool:
    """Is one of `key=8,...` above the same key's limit? Only whole numbers are compared, as devices have."""
    allowed = dict(pair.split("=", 1) for pair in limited.split(",") if "=" in pair)
    wanted = [pair.split("=", 1) for pair in asked.split(",") if "=" in pair]
    return any(
        amount.isdigit() and allowed.get(key, "").isdigit() and int(amount) > int(allowed[key])
        for key, amount in wanted
    )


def _of_object(one: ObjectSeen) -> Iterator[Answer]:
    spec = _mapping(one.body.get("spec"))
    name = f"{one.kind} {one.namespace}/{one.name}"
    if one.kind in ("ResourceQuota", "Profile"):
        of_profile = _mapping(spec.get("resourceQuotaSpec"))  # Kubeflow makes a quota of it
        keys = [str(key) for key in _mapping(spec.get("hard") or of_profile.get("hard"))]
        idle = [
            key
            for key in keys
            if key not in _OF_SHARES
            and ((is_device(key.removeprefix("limits.")) and not key.startswith("requests.")) or key in _NO_KEY)
        ]
        if idle:
            yield WITHOUT_EFFECT.finding(
                f"{name} has {listed(idle)}, which nothing counts.",
                ESTABLISHED,
                [one],
                subject=name,
                resource=idle[0].removeprefix("limits."),
                pod=f"{one.namespace}/",
            )
    elif one.kind == "LimitRange":
        limits = spec.get("limits")
        for limit in limits if isinstance(limits, (list, tuple)) else ():
            if given := _defaults(_mapping(limit)):
                cause = f"{name} gives {listed(given)} to each container that asks for none."
                yield GIVES_GPU.finding(cause, LIKELY, [one], subject=name, pod=f"{one.namespace}/")


_NO_KEY = (  # no resource has such a name
    "gpu", "gpus", "requests.gpu", "limits.gpu", "requests.nvidia.com/gpumemory", "requests.nvidia.com/gpucore",
)  # fmt: skip
_OF_SHARES = ("limits.nvidia.com/gpumem", "limits.nvidia.com/gpucores")  # HAMi's scheduler counts these itself


def _defaults(limit: Mapping[str, Any]) -> list[str]:
    found = [
        (key, amount) for field in ("default", "defaultRequest") for key, amount in _mapping(limit.get(field)).items()
    ]
    return list(dict.fromkeys(f"{key}={amount}" for key, amount in found if is_device(str(key)) and str(amount) != "0"))


def _mapping(value: Any) -> Mapping[str, Any]:
    """Objects come as they were found: a field may hold anything."""
    return value if isinstance(value, Mapping) else {}


def is_device(resource: str) -> bool:
    """Is this an extended resource? They have a domain; Kubernetes' own and storage classes do not count."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and "." in domain and not domain.endswith(("kubernetes.io", "storageclass.storage.k8s.io"))


RULE = Rule((EXCEEDED, WANTS_VALUES, PRIORITY, CLASS_MISSING, LIMIT_REFUSES, AMOUNT, WITHOUT_EFFECT, GIVES_GPU), find)
