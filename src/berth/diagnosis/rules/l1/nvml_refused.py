"""L1. NVML refuses a question for want of rights."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

RIGHTS = Code(
    name="NvmlNoPermission",
    layer=Layer.L1,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.NvmlFails,
    title="NVML is refused for want of rights",
    meaning="Who asks may not open a device file, or may not change or profile the device.",
    known_by="NVML says Insufficient Permissions, or SELinux or AppArmor denies a device file of the GPU.",
    disproved_by="The same is refused to root on the node, with the security module in permissive mode.",
    counter_check="on NODE, as root and with setenforce 0: it is refused all the same; ausearch -m avc -ts recent: "
    "nothing",
    fix=Fix(
        steps=(
            "device files: 0666, or the group that the process has (NVreg_DeviceFileMode, NVreg_DeviceFileGID)",
            "SELinux: setsebool -P container_use_devices on, or the policy of the runtime's vendor",
            "at container starts: user in /etc/nvidia-container-runtime/config.toml must be of the files' group",
            "profiling counters: NVreg_RestrictProfilingToAdminUsers=0, or CAP_SYS_ADMIN for that one pod",
        ),
        risk="wider access to the devices",
        rollback="setsebool -P container_use_devices off; the former module options",
    ),
    verify=("nvidia-smi as that user or in that container: a table",),
    sources=("NVML, NVML_ERROR_NO_PERMISSION", "driver README, device file options", "container_selinux(8)"),
)

_OF_PARTITIONS = re.compile(r"(?i)mig|visiting device|device map|device memory")


def find(facts: Facts) -> Iterator[Answer]:
    denied = [said for said in facts.said("selinux.device") if said.get("permissive") != "1"]
    armour = [said for said in facts.said("apparmor.denied") if "nvidia" in said.get("name")]
    # Of partitions it is the right to see MIG that a container lacks: not the driver's affair.
    refused = [said for said in facts.said("nvml.no_permission") if not _OF_PARTITIONS.search(said.origin.text)]
    if denied or armour:
        path = next((said.get("path") or said.get("name") for said in (*denied, *armour)), "")
        yield RIGHTS.finding(
            f"A security module of the kernel denies {path or 'a device file'} to a process.",
            LIKELY,
            [*denied, *armour, *refused],
            layer=Layer.L2,
            effect=Effect.NoDeviceInContainer,
        )
    elif opened := list(facts.said("security.device_denied")):
        path = next((said.get("path") or said.get("path2") for said in opened), "")
        is_node = all(said.origin.kind in ("host", "probe", "dmesg") for said in opened)
        yield RIGHTS.finding(
            f"{path} may not be opened by this user.",
            LIKELY,
            [*opened, *refused],
            layer=Layer.L1 if is_node else Layer.L2,
        )
    elif counters := list(facts.said("nvml.counters_refused")):
        yield RIGHTS.finding(
            "The driver gives performance counters to administrators only, and a profiler asks for them.",
            LIKELY,
            [*counters, *refused],
            effect=Effect.ProgramFails,
        )
    elif refused:
        # Who cannot even begin is mostly a container from which the device files are kept.
        begins = all("initialize NVML" in said.origin.text and said.origin.kind != "host" for said in refused)
        # The runtime's own tool gives its rights up before it asks: user in config.toml, mode of the device files.
        starts = all("nvidia-container-cli" in said.origin.text for said in refused)
        yield RIGHTS.finding(
            "NVML does not let this process do what it asks for.",
            POSSIBLE,
            refused,
            layer=Layer.L2 if begins or starts else None,
            effect=Effect.ContainersDoNotStart if starts else None,
        )


RULE = Rule((RIGHTS,), find)
