"""L3. The kubelet refuses its own settings for CPU, memory or topology, and does not start."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

REFUSED = Code(
    name="KubeletPoliciesRefused",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Critical,
    effect=Effect.AccountStale,
    title="the kubelet refuses its settings for CPU, memory or topology",
    meaning="It ends while it starts: the node is NotReady soon, no plugin registers, no pod is admitted.",
    known_by="A manager names a policy or an option that it does not know, or reserved amounts that do not fit.",
    disproved_by="systemctl is-active kubelet says active with the same configuration.",
    counter_check="on NODE: journalctl -u kubelet -n 50: no such line since the last change",
    fix=Fix(
        steps=(
            "static CPU policy: reserve some CPU (reservedSystemCPUs, or kubeReserved and systemReserved)",
            "static memory policy: reservedMemory over all NUMA nodes is kubeReserved + systemReserved + the hard "
            "eviction threshold, exactly",
            "names as the documentation has them: none, best-effort, restricted, single-numa-node; options of alpha or "
            "beta need their feature gate; more than 8 NUMA nodes need max-allowable-numa-nodes",
            "systemctl restart kubelet",
        ),
        risk="none for what runs",
        rollback="the former configuration",
    ),
    verify=("kubectl get node NODE: Ready",),
    sources=("kubernetes pkg/kubelet/cm/cpumanager, memorymanager, topologymanager",),
)


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("kubelet.policies_refused", "reported.reserved_missing")).values():
        why = said_of(one.get("why") for one in said)
        yield REFUSED.finding(
            f"A manager of the kubelet refuses what it is to do{f': {why[:160]}' if why else ''}.", LIKELY, said
        )


RULE = Rule((REFUSED,), find)
