"""L2. The host's security keeps a container, or the runtime itself, away from devices and files."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

SELINUX = Code(
    name="SelinuxDeniesDevices",
    layer=Layer.L2,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.NoDeviceInContainer,
    title="SELinux keeps a container away from the GPU's device files",
    meaning="The files are in the container and opening them is denied: nvidia-smi and CUDA fail there while the host "
    "is well.",
    known_by="An AVC denial for an NVIDIA device file or its type.",
    disproved_by="The denials stop and the failure stays with setenforce 0.",
    counter_check="on NODE: setenforce 0, run nvidia-smi in a new container, setenforce 1 : fails in between, too",
    fix=Fix(
        steps=(
            "setsebool -P container_use_devices=1 on NODE (container-selinux 2.213 or newer lets devices be mapped as "
            "well)",
            "or load NVIDIA's policy for containers and start with the type nvidia_container_t "
            "(seLinuxOptions.type of the pod)",
            "restorecon -v /dev/nvidia* where the files have the type device_t",
        ),
        risk="the boolean lets all containers use devices that are given to them",
        rollback="setsebool -P container_use_devices=0",
    ),
    verify=("ausearch -m avc -ts recent | grep nvidia : nothing new", "nvidia-smi in a container answers"),
    sources=("container-selinux, container_use_devices", "NVIDIA/dgx-selinux, nvidia-container policy"),
)

RUNTIME_DENIED = Code(
    name="RuntimeDeniedByHost",
    layer=Layer.L2,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the host denies the container runtime what it needs",
    meaning="nvidia-container-cli may not read a file or change a mount: GPU containers do not start.",
    known_by="It reports permission denied or operation not permitted.",
    disproved_by="It works when the same runtime is run as root outside of any container.",
    counter_check="on NODE: sudo nvidia-container-cli info ; getenforce ; systemd-detect-virt -c : works, known",
    fix=Fix(
        steps=(
            "SELinux or AppArmor: ausearch -m avc -ts recent; restorecon on the named file",
            "rootless, LXC or nested: no-cgroups = true, and for the mounts allow nesting (security.nesting, "
            "security.syscalls.intercept) or use CDI",
            "a mount with noexec or nosuid under the toolkit: move it",
        ),
        risk="depends on what is allowed",
        rollback="take the permission back",
    ),
    verify=("a GPU container starts",),
    sources=("NVIDIA/libnvidia-container, src/nvc.c and src/nvc_mount.c",),
)


TEGRA = Code(
    name="TegraDevicesDenied",
    layer=Layer.L2,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.NoDeviceInContainer,
    title="the user of a container may not open the devices of a Jetson",
    meaning="On Jetson the GPU is reached through /dev/nvmap and /dev/nvhost-*, which belong to the group video: a "
    "process of another user sees no GPU, or ends.",
    known_by="The memory manager or a device file is refused with 'permission denied'.",
    disproved_by="The same container works as root: then only the group is missing; if not, look at the runtime.",
    counter_check="on NODE: ls -l /dev/nvmap /dev/nvhost-gpu ; in the container: id : the group of the files is there",
    fix=Fix(
        steps=(
            "pod: securityContext.supplementalGroups with the number of the group video (getent group video on NODE)",
            "docker: --group-add video; on the host: usermod -aG video USER",
        ),
        risk="none for what runs",
        rollback="take the group away again",
    ),
    verify=("deviceQuery in the container : Result = PASS",),
    sources=("NVIDIA Jetson Linux documentation, device permissions",),
)


def find(facts: Facts) -> Iterator[Answer]:
    # Denials that name the file are answered for with the rest of what is denied to NVML.
    named = {(one.origin.source, one.origin.line) for one in facts.said("selinux.device")}
    by_type = [one for one in facts.said("runtime.selinux_device") if (one.origin.source, one.origin.line) not in named]
    for node, said in by_node(by_type).items():
        yield SELINUX.finding(
            f"{sum(one.times for one in said)} denials for device files of GPUs.", ESTABLISHED, said, node=node
        )
    for node, said in by_node(facts.said("runtime.cli_denied")).items():
        what = first(said, "what", *(f"what{number}" for number in range(2, 34))).strip()
        yield RUNTIME_DENIED.finding(f"Denied: {what}.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("runtime.apptainer_nvccli")).items():
        setuid = first(said, "setuid")
        yield RUNTIME_DENIED.finding(
            "Apptainer that was installed with setuid does not run nvidia-container-cli (--nvccli)."
            if setuid
            else "Apptainer cannot run nvidia-container-cli.",
            LIKELY if setuid or first(said, "owner") else POSSIBLE,
            said,
            node=node,
            cause_class="permission" if first(said, "owner") else "runtime-config",
        )
    for node, said in by_node(facts.said("runtime.build_denied")).items():
        yield RUNTIME_DENIED.finding(
            "BuildKit does not grant devices to this build: neither the daemon (--allow-insecure-entitlement device) "
            "nor the build (--allow device) lets it have them.",
            LIKELY,
            said,
            node=node,
        )
    for node, said in by_node(facts.said("runtime.told_selinux")).items():
        yield SELINUX.finding("The device files have another type than containers may use.", POSSIBLE, said, node=node)
    for node, said in by_node(facts.said("runtime.tegra_denied")).items():
        yield TEGRA.finding(f"{first(said, 'path') or '/dev/nvmap'} may not be opened.", LIKELY, said, node=node)


RULE = Rule((SELINUX, RUNTIME_DENIED, TEGRA), find)
