"""L4. The operator does not come to the cluster: its catalogue, its release, its chart."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

UNRESOLVED = Code(
    name="OperatorNotResolved",
    layer=Layer.L4,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="OpenShift's lifecycle manager cannot install the operator",
    meaning="Subscription, catalogue and cluster do not go together: the channel is not in this catalogue, the version "
    "is not for the one that runs, or something that it requires is missing. Nothing of the operator is installed or "
    "upgraded.",
    known_by="ResolutionFailed, ConstraintsNotSatisfiable, RequirementsNotMet, or an install strategy that fails.",
    disproved_by="oc get csv shows the version as Succeeded.",
    counter_check="oc get sub,ip,csv -n nvidia-gpu-operator; oc get packagemanifest gpu-operator-certified -o yaml: "
    "the channel is listed",
    fix=Fix(
        steps=(
            "take a channel that the cluster's catalogue has; one OperatorGroup in the namespace",
            "catalogue not reached: pods of openshift-marketplace, its image, the pull secret, a mirror's index",
            "a former subscription or version in the way: delete subscription and csv, subscribe anew",
        ),
        risk="deleting the csv removes the operator, not the driver that runs",
        rollback="subscribe to the former channel",
    ),
    verify=("oc get csv -n nvidia-gpu-operator: Succeeded",),
    sources=("OpenShift documentation: Operator Lifecycle Manager", "GPU Operator documentation: OpenShift"),
)
RELEASE_HELD = Code(
    name="HelmReleaseHeld",
    layer=Layer.L4,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="a former run of Helm left the release half way",
    meaning="Helm keeps the state of a release in a secret. After a run that was broken off, or a hook that failed, it "
    "refuses the next one; what was installed stays as it is.",
    known_by="A name that is still in use, another operation in progress, or a hook that failed.",
    disproved_by="helm list -a shows the release as deployed.",
    counter_check="helm list -a -n NAMESPACE: deployed; kubectl get job,pod -n NAMESPACE: the hook's pod and its log",
    fix=Fix(
        steps=(
            "helm history, then helm rollback to the last that was deployed; or helm uninstall, and delete its secret "
            "sh.helm.release.v1.* if it stays",
            "a hook: the log of its pod (upgrade-crd, cleanup-crd): image, rights, taints of all nodes",
        ),
        risk="an uninstall takes the operands away: GPU pods lose plugin and driver",
        rollback="install the former version",
    ),
    verify=("helm status: deployed", "kubectl get clusterpolicy: ready"),
    sources=("Helm documentation: releases, hooks",),
)


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("olm.unresolved")).values():
        yield UNRESOLVED.finding(f"The lifecycle manager says: {value(said[0], 'why')}.", LIKELY, said)
    for said in by_node(facts.said("helm.release_held")).values():
        yield RELEASE_HELD.finding(f"Helm says: {value(said[0], 'why')[:160]}.", POSSIBLE, said)


RULE = Rule((UNRESOLVED, RELEASE_HELD), find)
