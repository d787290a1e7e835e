"""L2. Kubelet and runtime do not manage control groups in the same way, at least for one handler."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.container_facts import RuntimeConfig

SUSPECTED = 0.5  # a restart of the runtime at that moment does the same

DRIVER_MISMATCH = Code(
    name="CgroupDriverMismatch",
    layer=Layer.L2,
    cause_class="cgroup",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="the NVIDIA runtime uses another cgroup driver than the kubelet",
    meaning="Pods of that runtime do not start, or are ended from outside after some seconds: the kubelet takes their "
    "control group for an orphan. The device plugin registers, is killed, and its resource comes and goes.",
    known_by="runc refuses the cgroup path; or the handler lacks SystemdCgroup = true that runc's has; or the kubelet "
    "and Docker name different drivers.",
    disproved_by="`containerd config dump` has SystemdCgroup = true under the handler and the kubelet uses systemd.",
    counter_check="on NODE: containerd config dump | grep -e 'runtimes\\.' -e SystemdCgroup : the same for each "
    "handler",
    fix=Fix(
        steps=(
            'set SystemdCgroup = true in the options table of the nvidia handler: plugins."io.containerd.grpc.v1.cri"'
            '.containerd.runtimes.nvidia.options, in version 3 plugins."io.containerd.cri.v1.runtime"...',
            "the kubelet's cgroupDriver must be systemd as well",
            "systemctl restart containerd and the kubelet on NODE; delete the pods that were started before",
        ),
        risk="changing the driver under running pods needs a drain of the node",
        rollback="restore the saved file and restart containerd",
    ),
    verify=(
        "the device plugin's pod has no restarts after 10 minutes",
        "a pod with runtimeClassName nvidia stays Running",
    ),
    sources=(
        "opencontainers/runc, cgroup paths for systemd", "Kubernetes documentation, Configuring a cgroup driver",
        "k3s-io/k3s, containerd template",
    ),
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("cgroup.driver_mismatch")).items():
        yield DRIVER_MISMATCH.finding(
            "A container was handed a cgroup path of the other driver.", ESTABLISHED, said, node=node
        )
    ended = list(facts.said("plugin.terminated"))
    for node, said in by_node(facts.said("cgroup.pods_killed")).items():
        yield DRIVER_MISMATCH.finding(
            "Pods of the NVIDIA runtime are ended from outside after some seconds, as where its control groups are not "
            "those that the kubelet manages.",
            POSSIBLE,
            [*said, *ended],
            node=node,
        )
    for node, said in by_node(facts.said("cgroup.told_not_systemd")).items():
        yield DRIVER_MISMATCH.finding(
            "SystemdCgroup is said to be lost or false, where the kubelet mostly uses systemd.",
            POSSIBLE,
            said,
            node=node,
        )
    for node, said in by_node(facts.said("cgroup.sandbox_ended")).items():
        yield DRIVER_MISMATCH.finding(
            "The process that holds a pod's namespaces was ended before its containers were made, as where the control "
            "groups of the NVIDIA runtime are not those that the kubelet manages.",
            SUSPECTED,
            [*said, *ended],
            node=node,
        )
    for config in facts.of(RuntimeConfig):
        by_systemd = [one for one in config.handlers if one.systemd_cgroup and not one.is_nvidia]
        without = [one for one in config.nvidia_handlers if not one.systemd_cgroup]
        if config.engine == "containerd" and without and (by_systemd or (ended and config.tables)):
            named = f", {by_systemd[0].name!r} sets it to true" if by_systemd else ""
            yield DRIVER_MISMATCH.finding(
                f"Handler {without[0].name!r} does not set SystemdCgroup{named}.",
                LIKELY if by_systemd else POSSIBLE,
                [config, *ended],
                node=config.node,
            )


RULE = Rule((DRIVER_MISMATCH,), find)
