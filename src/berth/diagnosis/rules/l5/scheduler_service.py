"""L5. A scheduler, a queue's controller or an autoscaler does not work itself: rights, configuration."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, value
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

RIGHTS = Code(
    name="SchedulerRightsMissing",
    layer=Layer.L5,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="a scheduler, a controller or a user may not do what it needs at the API server",
    meaning="A role that is too narrow, of another release or in another namespace. Without its lease no instance "
    "becomes the leader; without the lists it places nothing, and pods wait with no event.",
    known_by="The API server: User system:serviceaccount:... cannot get, list, watch, create or patch a resource.",
    disproved_by="kubectl auth can-i says yes for that account, verb, resource and namespace.",
    counter_check="kubectl auth can-i VERB RESOURCE -n NAMESPACE --as=system:serviceaccount:NAMESPACE:ACCOUNT: yes",
    fix=Fix(
        steps=(
            "apply the role of the release that runs: helm upgrade with its own chart, and rbac.create not off",
            "leases, endpoints and configmaps stand in the namespace that --leader-elect-resource-namespace names: a "
            "Role and RoleBinding there",
            "claims, slices and pod groups are cluster-wide lists: a ClusterRole",
        ),
        risk="wider rights for that account",
        rollback="the former role",
    ),
    verify=("its log: became leader, no forbidden; kubectl get pod POD -n NAMESPACE -o wide: it has a node",),
    sources=("Kubernetes documentation: RBAC authorization", "client-go: leaderelection, reflector"),
)
CONFIG = Code(
    name="SchedulerConfigRefused",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="a scheduler does not start with its configuration, or leaves a plugin out",
    meaning="Plugins are compiled in: a profile that names one of another scheduler or release ends the start. What a "
    "scheduler skips over it does not do.",
    known_by="The scheduler: initializing profiles or plugin, a plugin that does not exist, a file that it cannot "
    "decode.",
    disproved_by="The scheduler runs with that file and lists the plugin.",
    counter_check="kubectl logs of the scheduler: it starts, and the plugin is among those that it lists",
    fix=Fix(
        steps=(
            "plugins out of tree need an image that has them (scheduler-plugins, Volcano's own): not kube-scheduler's",
            "write the file for the release that runs: apiVersion, names of plugins and of their arguments",
            "definitions that a plugin watches (PodGroup, NodeResourceTopology) are installed before it starts",
        ),
        risk="none: nothing is placed meanwhile",
        rollback="the former file",
    ),
    verify=("the scheduler's pod is Ready, and a waiting pod gets a node",),
    sources=("Kubernetes documentation: scheduler configuration", "kubernetes, pkg/scheduler/profile"),
)
_OTHERS_RIGHTS = (
    "scheduler.rights_missing", "operator.rights_missing", "plugin.rights_missing", "dra.slices_forbidden",
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("scheduler.rights_missing")):
        one = found[0]
        who, verb, what = value(one, "account", "its account"), value(one, "verb"), value(one, "what", "a resource")
        yield RIGHTS.finding(f"{who} may not {verb} {what}.", LIKELY, found, node=node, pod=pod)
    known = {said.origin.text for said in facts.said(*_OTHERS_RIGHTS)}
    others = [said for said in facts.said("scheduler.rights_missing_for_pods") if said.origin.text not in known]
    for node, pod, found in by_place(others):
        one = found[0]
        account = one.get("account")
        yield RIGHTS.finding(
            f"{account} may not {one.get('verb')} {one.get('what')}.",
            POSSIBLE,
            found,
            node=node,
            pod=pod,
            layer=Layer.L4 if "gpu-operator" in account or "nvidia" in account else None,
        )
    # An API that is not served has a rule of its own.
    absent = {said.origin.text for said in facts.said("scheduler.api_absent", "dra.api_absent")}
    config = [said for said in facts.said("scheduler.config_refused") if said.origin.text not in absent]
    for node, pod, found in by_place(config):
        plugin, why = value(found[0], "plugin"), value(found[0], "why").strip(" :")
        cause = f"Plugin {plugin} cannot be used" if plugin else "The scheduler refuses its configuration"
        yield CONFIG.finding(f"{cause}{': ' + why[:160] if why else ''}.", LIKELY, found, node=node, pod=pod)


RULE = Rule((RIGHTS, CONFIG), find)
