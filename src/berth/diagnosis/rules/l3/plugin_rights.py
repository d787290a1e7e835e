"""L3. A device plugin may not ask the API server what it has to know of its node and pods."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

RIGHTS_MISSING = Code(
    name="DevicePluginRightsMissing",
    layer=Layer.L3,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin may not use the API as it has to",
    meaning="Plugins that share or describe devices read their node and pods and write annotations. This one runs "
    "under an account without these rights and ends, or offers nothing.",
    known_by="The plugin's log repeats the API server's 'is forbidden' for its service account.",
    disproved_by="kubectl auth can-i answers yes for that account, verb and resource: the rights came later.",
    counter_check="kubectl auth can-i <verb> <resource> --as=system:serviceaccount:<namespace>:<account>: yes",
    fix=Fix(
        steps=(
            "account 'default': set serviceAccountName of the DaemonSet to the account of the plugin's manifest",
            "apply ServiceAccount, ClusterRole and ClusterRoleBinding of the same release; the binding's subject has "
            "to name the namespace that the plugin runs in",
            "delete the plugin's pods, so that they start anew",
        ),
        risk="the account gets these rights",
        rollback="remove the binding",
    ),
    verify=("the plugin's log has no further 'forbidden'", "kubectl get node NODE -o jsonpath={.status.allocatable}"),
    sources=("Kubernetes documentation, RBAC", "nokia/CPU-Pooler issue 19"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("plugin.rights_missing")).values():
        account, what = said_of(one.get("account") for one in said), said_of(one.get("what") for one in said)
        yield RIGHTS_MISSING.finding(f"{account} may not {said[0].get('verb')} {what}.", LIKELY, said)
    for said in by_node(facts.said("reported.rights_missing", "reported.account_may_not")).values():
        yield RIGHTS_MISSING.finding("The plugin's account lacks rights.", LIKELY, said)


RULE = Rule((RIGHTS_MISSING,), find)
