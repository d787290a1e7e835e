"""L2. The container runtime was restarted while the kubelet was starting containers."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

LEFT_CREATED = Code(
    name="ContainerLostInRestart",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="a container was left created when the runtime restarted",
    meaning="The toolkit restarts the runtime to make its configuration count. A container that was created and not "
    "yet "
    "started at that moment stays so: its pod waits for ever, and what waits for the pod too.",
    known_by="An init container stays in the state Created and the runtime has been restarted since.",
    disproved_by="The container runs after a while, or its image is still being pulled.",
    counter_check="on NODE: crictl ps -a --state Created : none that is older than a minute",
    fix=Fix(
        steps=(
            "kubectl delete pod POD -n NAMESPACE: its controller makes a new one",
            "so that it stays away: containerd 1.7.21 or newer; toolkit.env with RESTART_MODE=none on nodes whose "
            "configuration is prepared",
        ),
        risk="none beyond that pod",
        rollback="nothing to undo",
    ),
    verify=("the pod becomes Running",),
    sources=("NVIDIA/gpu-operator and containerd reports of containers left in Created",),
)


def find(facts: Facts) -> Iterator[Answer]:
    signals = list(facts.said("toolkit.sends_signal"))
    for node, said in by_node(facts.said("runtime.left_created")).items():
        nvidia = any("nvidia" in one.origin.text or "gpu" in one.origin.text for one in said)
        yield LEFT_CREATED.finding(
            "A container stays in Created: the runtime was restarted before it was started.",
            LIKELY if signals or nvidia else POSSIBLE,
            [*said, *signals],
            node=node,
        )
    for node, said in by_node(facts.said("runtime.told_left_terminating")).items():
        yield LEFT_CREATED.finding(
            "Pods stay in Terminating since the runtime was restarted under them.", POSSIBLE, said, node=node
        )


RULE = Rule((LEFT_CREATED,), find)
