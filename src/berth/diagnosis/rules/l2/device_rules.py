"""L2. Device rules of control groups: refused when a container starts, or lost while it runs."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.container_facts import ToolkitConfig

FILTER_REJECTED = Code(
    name="DeviceFilterRejected",
    layer=Layer.L2,
    cause_class="cgroup",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the kernel refuses the device filter of a container",
    meaning="On control groups v2 the toolkit extends the filter that the runtime attached; the kernel does not take "
    "the result, so no GPU container starts.",
    known_by="nvidia-container-cli reports an error of the BPF device program.",
    disproved_by="A GPU container starts with CDI on the same node: the toolkit's own filter is not used then.",
    counter_check="on NODE: nvidia-container-cli -V ; stat -fc %T /sys/fs/cgroup : a current release, cgroup2fs",
    fix=Fix(
        steps=(
            "bring libnvidia-container and the toolkit up to date (1.8 is the first for v2; runc, crun and kernel "
            "change "
            "the program that it has to extend)",
            "or use CDI, where the runtime itself makes the rules",
            "not permitted (LXC, rootless, nested Docker): no-cgroups = true in config.toml, and the outer container "
            "lets the devices through",
        ),
        risk="no-cgroups leaves access to the devices to the outer container's rules",
        rollback="set no-cgroups = false",
    ),
    verify=("a GPU pod starts on NODE",),
    sources=("NVIDIA/libnvidia-container, src/nvcgo/internal/cgroup", "Linux, BPF_PROG_TYPE_CGROUP_DEVICE"),
)

RULES_NOT_WRITABLE = Code(
    name="DeviceRulesNotWritable",
    layer=Layer.L2,
    cause_class="cgroup",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the runtime may not write the device rules of a container, or looks for those of the other version",
    meaning="GPU containers do not start. Either the runtime is itself inside a container (LXC, rootless), or an old "
    "libnvidia-container looks for control groups v1 on a host with v2.",
    known_by="devices.allow cannot be written, or there is no devices controller.",
    disproved_by="The host uses control groups v1 and the runtime runs as root on it.",
    counter_check="on NODE: stat -fc %T /sys/fs/cgroup ; systemd-detect-virt -c : tmpfs for v1, none",
    fix=Fix(
        steps=(
            "cgroup subsystem devices not found: libnvidia-container 1.8 or newer",
            "not permitted inside LXC or rootless: no-cgroups = true under [nvidia-container-cli], with the devices "
            "let "
            "through outside (lxc.cgroup2.devices.allow: c 195:* rwm, and nvidia-uvm's major)",
            "or CDI",
        ),
        risk="no-cgroups on a host where the runtime does make rules leaves containers without access",
        rollback="set no-cgroups = false",
    ),
    verify=("a GPU container starts; nvidia-smi in it answers",),
    sources=("NVIDIA/libnvidia-container, src/cgroup_legacy.c", "NVIDIA container toolkit documentation, rootless"),
)

REVOKED = Code(
    name="DevicesRevokedFromContainer",
    layer=Layer.L2,
    cause_class="cgroup",
    severity=Severity.Critical,
    effect=Effect.DevicesRevoked,
    title="a running container has lost access to its GPUs",
    meaning="systemd applied the device rules of the container's unit again (daemon-reload, a package update, a CPU "
    "policy update) and dropped what the toolkit had added behind its back. The program goes on until it opens a "
    "device; it does not come back by itself.",
    known_by="NVML answers Unknown Error in a container while the host's nvidia-smi is well.",
    disproved_by="nvidia-smi fails on the host too, or the container never had a GPU that worked.",
    counter_check="on NODE: nvidia-smi -L : fails, too; or in the container: nvidia-smi -L : works",
    fix=Fix(
        steps=(
            "delete the pod: a new container gets its rules again",
            "so that it stays: CDI for the injection of devices, or links for the devices under /dev/char "
            "(nvidia-ctk system create-dev-char-symlinks --create-all, with a udev rule), or "
            "the plugin with PASS_DEVICE_SPECS=true",
            "no-cgroups = true on a host that runs as root has the same effect from the start: set it to false",
        ),
        risk="the pod's work since its last checkpoint is lost",
        rollback="nothing to undo",
    ),
    verify=("systemctl daemon-reload on NODE, then nvidia-smi in a GPU pod : still answers",),
    sources=("NVIDIA/nvidia-docker notice of 2023: containers lose access to GPUs", "opencontainers/runc, device rules",
             "systemd, device controller of a unit"),
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("cgroup.filter_rejected")).items():
        why = first(said, "why", "why2")
        yield FILTER_REJECTED.finding(
            f"The device program was refused{': ' + why if why else ''}.", ESTABLISHED, said, node=node
        )
    for node, said in by_node(facts.said("cgroup.allow_denied")).items():
        yield RULES_NOT_WRITABLE.finding(
            "The rules of the container's control group could not be written.", ESTABLISHED, said, node=node
        )
    dropped = list(facts.said("cgroup.rules_dropped"))
    off = [*(one for one in facts.of(ToolkitConfig) if one.no_cgroups), *facts.said("runtime.no_cgroups")]
    unknown = list(facts.said("cgroup.nvml_unknown", "cgroup.open_refused"))
    if dropped and not unknown and not any(facts.said("kernel.xid")):
        # Units were read again, and the plugin, which lives in a container as others do, lost its devices.
        for node, said in by_node(facts.said("plugin.marked_unhealthy")).items():
            yield REVOKED.finding(
                "systemd read its units again, and the plugin lost its devices with that.", LIKELY, [*said, *dropped],
                node=node,
            )  # fmt: skip
    for node, said in (
        ()
        if unknown
        else by_node(
            facts.said(
                "cgroup.list_after_reload",
                "cgroup.said_revoked",
                "cgroup.told_no_links",
                "cgroup.told_no_cgroups",
                "cgroup.said_lost_later",
            )
        ).items()
    ):
        yield REVOKED.finding(
            "Device rules are said to be dropped when systemd reads its units again.", POSSIBLE, said, node=node
        )
    for node, said in by_node(unknown).items():
        how = "no-cgroups is set, so nobody makes the rules" if off else "its device rules were dropped"
        yield REVOKED.finding(
            f"A container may not open its devices (NVML says Unknown Error): {how}.",
            ESTABLISHED if dropped or off else LIKELY,
            [*said, *dropped, *off],
            node=node,
        )


RULE = Rule((FILTER_REJECTED, RULES_NOT_WRITABLE, REVOKED), find)
