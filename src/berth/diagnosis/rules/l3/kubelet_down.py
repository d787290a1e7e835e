"""L3. The kubelet itself does not start."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

DOWN = Code(
    name="KubeletDoesNotStart",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Critical,
    effect=Effect.AccountStale,
    title="the kubelet ends while it starts",
    meaning="The node is NotReady soon, plugins cannot register, and no pod is admitted; containers that run go on.",
    known_by="The kubelet says that it failed to run, or to start its container manager, and why.",
    disproved_by="systemctl is-active kubelet says active, and the node is Ready.",
    counter_check="on NODE: systemctl is-active kubelet; journalctl -u kubelet -n 50: no such line since",
    fix=Fix(
        steps=(
            "on NODE: journalctl -u kubelet -n 50: the reason at the line's end decides",
            "swap: swapoff -a, or failSwapOn: false; reserved resources: less than the node has",
            "policies of CPU, memory or topology: both files in /var/lib/kubelet and the configuration must agree",
            "systemctl restart kubelet",
        ),
        risk="none for what runs",
        rollback="the former configuration",
    ),
    verify=("kubectl get node NODE: Ready",),
    sources=("kubernetes cmd/kubelet/app/server.go, pkg/kubelet/kubelet.go",),
)
# Reasons that other rules tell.
_TOLD = (
    "kubelet.checkpoint_corrupt", "kubelet.state_file_must_go", "cgroup.driver_mismatch", "runtime.cri_off",
    "runtime.down", "plugin.watcher_limit", "kubelet.policies_refused",
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    if any(facts.said(*_TOLD)):
        return
    for said in by_node(facts.said("kubelet.start_fails")).values():
        why = said_of(one.get("why") or one.get("why2") for one in said).strip(' "\\')
        yield DOWN.finding(f"The kubelet did not start{f': {why[:160]}' if why else ''}.", LIKELY, said)


RULE = Rule((DOWN,), find)
