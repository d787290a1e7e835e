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
    counter_check="on NODE: mkdir under the same parent : succeeds; cat /proc/cgroups | sort -k3 -n | tail -3 : far "
    "below thousands of groups",
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

NAME_RESERVED = Code(
    name="ContainerNameReserved",
    layer=Layer.L2,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="a former attempt to make the container still holds its name",
    meaning="Making the container takes longer than the kubelet waits: it tries again, and each new attempt is refused "
    "until the first is done. Large images on a slow disk, a hook that hangs on the driver, too little CPU.",
    known_by="The runtime says that the name is reserved, mostly after a deadline that was exceeded.",
    disproved_by="The container starts after a while by itself: then it was only slow.",
    counter_check="on NODE: iostat -x 5 2; ps -eo state,cmd | grep -e ^D -e nvidia-c : disk below 90 %, nothing hangs",
    fix=Fix(
        steps=(
            "see what is slow: disk of the runtime's directory, nvidia-container-cli in state D (then the driver), CPU",
            "a faster disk for images, a smaller image, fewer starts at once",
            "the name stays reserved for ever: restart the runtime on NODE, and bring it up to date",
        ),
        risk="a restart of the runtime interrupts container starts for seconds",
        rollback="nothing to undo",
    ),
    verify=("the pod starts",),
    sources=("containerd, internal/cri/store: names", "cri-o, server: reserved names"),
)


LIMITS = Code(
    name="ContainerLimitsUnfit",
    layer=Layer.L2,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="a limit of the engine or the kernel does not fit what the container is to have",
    meaning="A container may not get more than its engine has: open files, locked memory; or the kernel has no key "
    "left for another session. The reverse is a limit of open files near a billion: programs that make a table of that "
    "size take seconds for each call.",
    known_by="The low-level runtime may not set a limit or make a key; or a program reads a limit of open files of "
    "more than a hundred million.",
    disproved_by="The container starts, and is quick, with --ulimit nofile=1048576:1048576.",
    counter_check="on NODE: systemctl show containerd docker -p LimitNOFILE -p LimitMEMLOCK ; cat /proc/key-users : "
    "1048576, below its maximum",
    fix=Fix(
        steps=(
            "refused: raise the engine's own limit (LimitNOFILE, LimitMEMLOCK of its unit; limits.conf for rootless), "
            "or ask for less",
            "a billion files: LimitNOFILE=1048576 in the unit of containerd or Docker, or default-ulimits",
            "keys: sysctl kernel.keys.maxkeys and maxbytes, or old sessions ended",
        ),
        risk="a restart of the engine interrupts container starts for seconds",
        rollback="take the drop-in of the unit away",
    ),
    verify=("the container starts", "ulimit -n in it : 1048576"),
    sources=("opencontainers/runc and containers/crun: limits of a process", "containerd, containerd.service"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.limit_refused")).items():
        files = first(said, "files")
        yield LIMITS.finding(
            f"The limit of open files is {files}." if files else "A limit or a key is refused.",
            POSSIBLE if files else LIKELY,
            said,
            node=node,
        )
    for node, said in by_node(facts.said("runtime.store_full")).items():
        yield STORE_FULL.finding("A write of an image or container found no space.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("cgroup.exhausted")).items():
        yield GROUPS_EXHAUSTED.finding(f"{first(said, 'path')}: {first(said, 'why')}.", ESTABLISHED, said, node=node)
    for node, said in by_node(facts.said("cgroup.not_applied")).items():
        why = first(said, "why", "why2", "why3", "why4", "why5", "why6", "why7").strip()
        yield NOT_APPLIED.finding(f"The unit was not started{': ' + why if why else ''}.", POSSIBLE, said, node=node)
    for node, said in by_node(facts.said("runtime.name_reserved")).items():
        yield NAME_RESERVED.finding("An attempt before this one is not done.", POSSIBLE, said, node=node)


RULE = Rule((LIMITS, STORE_FULL, GROUPS_EXHAUSTED, NOT_APPLIED, NAME_RESERVED), find)
