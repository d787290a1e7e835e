"""L4. The operator and the cluster do not know the same kinds of objects."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import ObjectSeen

API_ABSENT = Code(
    name="OperatorWantsAbsentApi",
    layer=Layer.L4,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="the operator wants a kind of object that the cluster does not serve",
    meaning="Its policy stays notReady, and what comes after that step is not deployed.",
    known_by="'no matches for kind … in version …' from the operator or for one of its objects.",
    disproved_by="kubectl api-resources lists that kind in that version.",
    counter_check="kubectl api-resources | grep -i <the kind>: in the version of the message",
    fix=Fix(
        steps=("resource.k8s.io: Kubernetes 1.34, or the feature gate and runtime-config of an older one; or an "
               "operator that does not ask for it",
               "PodSecurityPolicy, policy/v1beta1, node.k8s.io/v1beta1: a newer operator for this Kubernetes",
               "ServiceMonitor, PrometheusRule: install the Prometheus operator's CRDs or switch serviceMonitor off",
               "NVIDIADriver, ClusterPolicy: apply the operator's CRDs first"),
        risk="an upgrade of the operator may restart drivers: one node at a time",
        rollback="helm rollback",
    ),
    verify=("kubectl get clusterpolicy: ready",),
    sources=("gpu-operator pull request 1541", "Kubernetes deprecation guide"),
)  # fmt: skip

CRD_OLD = Code(
    name="OperatorCrdOld",
    layer=Layer.L4,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="the operator's CRDs are of another version than its chart",
    meaning="Helm does not upgrade CRDs: the new chart's policy is refused, or loses fields.",
    known_by="An unknown or invalid field of ClusterPolicy at install or upgrade.",
    disproved_by="The field does not exist in any version: then the values are wrong.",
    counter_check="kubectl get crd clusterpolicies.nvidia.com -o yaml | grep <the field>: is there",
    fix=Fix(
        steps=("kubectl apply --server-side -f the CRDs of that chart version (deployments/gpu-operator/crds)",
               "or operator.upgradeCRD=true with --disable-openapi-validation",
               "left over from an uninstall: delete the CRD (saves nothing of its policy), install anew"),
        risk="deleting the CRD deletes the policy and all that it deployed",
        rollback="apply the former CRDs",
    ),
    verify=("helm upgrade succeeds", "kubectl get clusterpolicy: ready"),
    sources=("GPU Operator documentation: upgrade", "gpu-operator issues 139, 342, 431"),
)  # fmt: skip

IGNORED = Code(
    name="ClusterPolicyIgnored",
    layer=Layer.L4,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="there is more than one ClusterPolicy, and this one is ignored",
    meaning="The operator follows the first only; changes of the other have no effect.",
    known_by="status.state is ignored, or the operator says that there are several.",
    disproved_by="There is one.",
    counter_check="kubectl get clusterpolicy: one",
    fix=Fix(
        steps=("delete the one that is ignored, after its settings were taken over",),
        risk="deleting the one in use removes all operands",
        rollback="apply it again",
    ),
    verify=("kubectl get clusterpolicy: one, ready",),
    sources=("gpu-operator controllers/clusterpolicy_controller.go",),
)

RIGHTS_MISSING = Code(
    name="OperatorRightsMissing",
    layer=Layer.L4,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="a component of the operator may not use the API as it has to",
    meaning="What it reads or writes there stays undone: labels, daemons, states.",
    known_by="'is forbidden: User \"system:serviceaccount:…\" cannot …' for an account of the operator, of Node "
    "Feature Discovery or of the plugin.",
    disproved_by="kubectl auth can-i answers yes for that account, verb and resource: the rights came later.",
    counter_check="kubectl auth can-i <verb> <resource> --as=system:serviceaccount:<namespace>:<account>: yes",
    fix=Fix(
        steps=(
            "apply the roles of the same chart version (helm upgrade, or the manifests of that release)",
            "an account in another namespace than its binding names: mend the subject of the binding",
        ),
        risk="the account gets these rights",
        rollback="the former roles",
    ),
    verify=("the component's log has no further 'forbidden'",),
    sources=("gpu-operator deployments/gpu-operator/templates/clusterrole.yaml", "gpu-feature-discovery issue 47"),
)

# Kinds that the operator makes or reads; the same message about others is another component's.
_OF_OPERATOR = (
    "DeviceClass",
    "PodSecurityPolicy",
    "ServiceMonitor",
    "PrometheusRule",
    "RuntimeClass",
    "ClusterPolicy",
    "NVIDIADriver",
    "NodeFeatureRule",
    "NodeFeature",
    "GPUCluster",
    "SecurityContextConstraints",
)


OS_UNREAD = Code(
    name="OperatorCannotReadSystem",
    layer=Layer.L4,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="the operator does not understand which system the nodes run",
    meaning="The operator cannot parse the system's version among the node's labels: it reconciles "
    "nothing, on no node.",
    known_by="The operator cannot make the tag of the driver image from the system's name and version.",
    disproved_by="A later reconciliation succeeds with the same nodes.",
    counter_check="kubectl get node NODE --show-labels | tr , '\\n' | grep system-os_release: a name and version "
    "that the operator's release notes list",
    fix=Fix(
        steps=("take an operator release that knows the system, or go back to the one that did",
               "a system that brings its own driver (Talos, Bottlerocket): driver.enabled=false"),
        risk="the operands restart",
        rollback="the former chart version",
    ),
    verify=("kubectl get clusterpolicy: ready",),
    sources=("gpu-operator issue 2239", "GPU Operator documentation: supported systems"),
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    absent = [one for one in facts.said("operator.api_absent") if _is_operators(one)]
    for said in by_node(absent).values():
        kind, version = said_of(one.get("kind") for one in said), said_of(one.get("version") for one in said)
        yield API_ABSENT.finding(
            f"{kind} in {version} is not served by this cluster.",
            LIKELY,
            said,
            cause_class="monitoring" if version.startswith("monitoring.") else None,
        )
    for said in by_node(facts.said("operator.kinds_absent")).values():
        kind = said_of(one.get("kind") or one.get("controller") for one in said)
        yield API_ABSENT.finding(f"What {kind} watches is not served by this cluster.", LIKELY, said)
    for said in by_node(facts.said("operator.group_absent")).values():
        version = said_of(one.get("version") for one in said)
        yield API_ABSENT.finding(f"The API {version} is not served by this cluster.", LIKELY, said)
    for said in by_node(facts.said("operator.cluster_old")).values():
        wanted, has = said_of(one.get("wanted") for one in said), said_of(one.get("has") for one in said)
        yield API_ABSENT.finding(f"The chart wants Kubernetes {wanted}, this is {has}.", LIKELY, said)
    for said in by_node(facts.said("operator.rights_missing")).values():
        account, what = said_of(one.get("account") for one in said), said_of(one.get("what") for one in said)
        yield RIGHTS_MISSING.finding(
            f"{account} may not {said[0].get('verb')} {what}."
            if what
            else "The account may not delete what it sets as owner, or update its finalizers.",
            LIKELY,
            said,
        )
    refused = [one for one in facts.said("operator.crd_old") if "immutable" not in one.origin.text]
    for said in by_node(refused).values():
        field = said_of(one.get("field") or one.get("field2") or value(one, "why") for one in said)
        yield CRD_OLD.finding(f"The CRD does not take {field or 'the new policy'}.", LIKELY, said)
    for said in by_node(facts.said("operator.os_unread")).values():
        version = said_of(one.get("version") for one in said)
        yield OS_UNREAD.finding(
            f"The operator cannot read the system's version{f' {version}' if version else ''}.", LIKELY, said
        )
    policies = [one for one in facts.of(ObjectSeen) if one.kind == "ClusterPolicy"]
    ignored = [one for one in policies if _state(one) == "ignored"]
    said_so = list(facts.said("operator.policy_ignored"))
    if ignored or said_so:
        yield IGNORED.finding(
            "The operator follows one ClusterPolicy and ignores the other.", LIKELY, [*ignored, *said_so]
        )


def _is_operators(one: Said) -> bool:
    text = one.origin.text.lower()
    return one.get("kind") in _OF_OPERATOR or "clusterpolic" in text or "gpu-operator" in text


def _state(policy: ObjectSeen) -> str:
    status = policy.body.get("status")
    return str(status.get("state", "")) if isinstance(status, dict) else ""


RULE = Rule((API_ABSENT, CRD_OLD, OS_UNREAD, IGNORED, RIGHTS_MISSING), find)
