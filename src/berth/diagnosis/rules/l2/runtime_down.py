"""L2. The container runtime does not answer the kubelet."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

DOWN = Code(
    name="ContainerRuntimeDown",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Critical,
    effect=Effect.ContainersDoNotStart,
    title="the container runtime does not answer on its socket",
    meaning="Nothing starts on the node until it does. After a change of its configuration (the toolkit makes one) "
    "this "
    "lasts seconds, or for ever where it does not start with what was written.",
    known_by="A connection to its socket is refused.",
    disproved_by="systemctl says that it is active and crictl info answers: it was only being restarted.",
    counter_check="on NODE: systemctl status containerd crio ; crictl info : active, answers",
    fix=Fix(
        steps=(
            "journalctl -u containerd (crio, k3s, rke2-agent) -n 100 on NODE: why it does not start",
            "restore the configuration that was saved before the toolkit's change, restart, then mend what it names",
            "the kubelet asks another socket than there is: --container-runtime-endpoint",
        ),
        risk="containers go on running; nothing new starts",
        rollback="nothing to undo",
    ),
    verify=("crictl info on NODE : RuntimeReady", "kubectl get node NODE : Ready"),
    sources=("Kubernetes documentation, container runtimes",),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.down")).items():
        unit = first(said, "unit", "unit2", "unit3", "unit4", "unit5")
        cause = (
            f"{unit}{'.service' if ' ' not in unit else ''} does not run."
            if unit
            else f"{first(said, 'socket') or 'The engine'}: {first(said, 'why', 'why2', 'why3', 'why4').strip()}."
        )
        if "dockershim" in first(said, "socket"):
            cause = "The socket of dockershim is asked for, which Kubernetes 1.24 took away."
            layer = Layer.L3 if all(one.origin.kind == "plugin-log" for one in said) else None
            yield DOWN.finding(cause, LIKELY, said, node=node, layer=layer, cause_class="version-mismatch")
            continue
        yield DOWN.finding(cause, POSSIBLE, said, node=node)


RULE = Rule((DOWN,), find)
