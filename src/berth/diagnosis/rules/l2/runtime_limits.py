"""L2. What a container runtime needs of its host is used up: disk for images, control groups, systemd."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

STORE_FULL = Code(
    name="ImageStoreFull",
    layer=Layer.L2,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the disk for images and containers is full",
    meaning="Images of CUDA and frameworks take 10 to 30 GB unpacked: the pull fails, pods wait, and the kubelet may "
    "evict others.",
    known_by="A write below the runtime's directory fails for want of space.",
    disproved_by="df shows free space and inodes on that file system.",
    counter_check="on NODE: df -h /var/lib/containerd ; df -i /var/lib/containerd : below 85 %",
    fix=Fix(
        steps=(
            "crictl rmi --prune on NODE",
            "a larger disk, or the runtime's root on another one; imageGCHighThresholdPercent of the kubelet at 85",
        ),
        risk="pruned images are pulled again when they are needed",
        rollback="nothing to undo",
    ),
    verify=("the pod's image is pulled", "df -h on NODE : below 85 %"),
    sources=("Kubernetes documentation, garbage collection of images",),
)

GROUPS_EXHAUSTED = Code(
    name="ControlGroupsExhausted",
    layer=Layer.L2,
    cause_class="cgroup",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the kernel makes no more control groups",
    meaning="No container starts on the node although disk and memory are free: control groups of ended containers "
    "have not been released.",
    known_by="Making a directory under /sys/fs/cgroup fails for want of space or memory.",
    disproved_by="mkdir under the same parent succeeds.",
    counter_check="on NODE: cat /proc/cgroups | sort -k3 -n | tail -3 : thousands of memory groups",
    fix=Fix(
        steps=("drain and restart the machine", "bring kernel and runc up to date; move to control groups v2"),
        risk="a restart ends everything on the node",
        rollback="kubectl uncordon NODE",
    ),
    verify=("pods start on NODE",),
    sources=("Linux, control groups v1: dying memory groups",),
)

NOT_APPLIED = Code(
    name="ControlGroupNotApplied",
    layer=Layer.L2,
    cause_class="cgroup",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="systemd does not make the control group of a container",
    meaning="The container does not start: systemd did not answer, was restarting, or has a unit of that name left.",
    known_by="runc reports that it cannot start the unit or apply the configuration.",
    disproved_by="The next attempt succeeds.",
    counter_check="on NODE: systemctl is-system-running ; systemctl list-units --failed : running, none",
    fix=Fix(
        steps=(
            "journalctl -u dbus -u systemd -n 50 on NODE; systemctl reset-failed",
            "delete the pod; restart the node where systemd does not answer",
            "rootless or in a container: the cgroup driver cgroupfs, or delegation by systemd",
        ),
        risk="a restart ends everything on the node",
        rollback="nothing to undo",
    ),
    verify=("the pod starts",),
    sources=("opencontainers/runc, systemd cgroup driver",),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.store_full")).items():
        yield STORE_FULL.finding("A write of an image or container found no space.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("cgroup.exhausted")).items():
        yield GROUPS_EXHAUSTED.finding(f"{first(said, 'path')}: {first(said, 'why')}.", ESTABLISHED, said, node=node)
    for node, said in by_node(facts.said("cgroup.not_applied")).items():
        why = first(said, "why").strip()
        yield NOT_APPLIED.finding(f"The unit was not started{': ' + why if why else ''}.", POSSIBLE, said, node=node)


RULE = Rule((STORE_FULL, GROUPS_EXHAUSTED, NOT_APPLIED), find)
