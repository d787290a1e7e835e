"""L1 and L2. GPUs of other makers: their kernel driver is not there, or a container may not open their files."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

FILE_DENIED = Code(
    name="RenderDeviceDenied",
    layer=Layer.L2,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.NoDeviceInContainer,
    title="the user of a container may not open the GPU's device files",
    meaning="/dev/kfd and /dev/dri belong to the groups render and video of the host. Their numbers differ between "
    "host and image, and a rootless engine maps them to nobody: programs see no GPU though the files are there.",
    known_by="Opening the file is refused, or the tool says which group is missing.",
    disproved_by="The same container works as root with the groups added: then only the groups were missing; if not, "
    "look at SELinux and at the device rules.",
    counter_check="on NODE: ls -ln /dev/kfd /dev/dri/render* ; in the container: id -G : the number of the group "
    "is there",
    fix=Fix(
        steps=(
            "the group by its number: docker run --group-add $(getent group render | cut -d: -f3); pod: "
            "securityContext.supplementalGroups",
            "rootless Podman: --group-add keep-groups, and the user in render and video on the host",
            "Docker Desktop and rootless Docker: another daemon than the host's; docker context use default",
            "SELinux: setsebool -P container_use_devices on",
        ),
        risk="none for what runs",
        rollback="take the group away again",
    ),
    verify=("rocminfo or clinfo in the container : lists the GPU",),
    sources=("ROCm documentation, running containers", "Podman documentation, --group-add keep-groups"),
)

FILE_ABSENT = Code(
    name="RenderDeviceNotInContainer",
    layer=Layer.L2,
    cause_class="path-mount",
    severity=Severity.Error,
    effect=Effect.NoDeviceInContainer,
    title="the GPU's device files are not in the container",
    meaning="The kernel's driver is loaded and the container was not given its files.",
    known_by="A program in a container does not find /dev/kfd or /dev/dri.",
    disproved_by="The files are missing on the host as well: then it is the driver.",
    counter_check="on NODE: ls -l /dev/kfd /dev/dri : missing there, too (then it is the driver)",
    fix=Fix(
        steps=(
            "docker run --device /dev/kfd --device /dev/dri; Apptainer: --rocm, or --bind /dev/kfd,/dev/dri with "
            "--containall",
            "Kubernetes: ask for the resource of the device plugin instead of mounting by hand",
        ),
        risk="none for what runs",
        rollback="the former command",
    ),
    verify=("rocminfo in the container : lists the GPU",),
    sources=("ROCm documentation, running containers",),
)

NO_DRIVER = Code(
    name="OtherMakersDriverAbsent",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.DriverAbsent,
    title="the kernel has no driver for the GPU that a plugin or engine looks for",
    meaning="Device plugins of AMD, Intel and others walk through /sys/class and find nothing: they wait without a "
    "word, and the node offers none of their devices.",
    known_by="/sys/class/kfd, /sys/class/drm or the device files are not there; or the plugin starts and never "
    "announces a device.",
    disproved_by="lspci -nnk shows amdgpu, i915 or xe in use for the card.",
    counter_check="on NODE: lspci -nnk | grep -A3 -e VGA -e Display ; ls /sys/class/drm : a driver, files",
    fix=Fix(
        steps=(
            "load the module: modprobe amdgpu (i915, xe, neuron); dmesg | grep -i -e amdgpu -e i915 says why it does "
            "not come",
            "immutable systems (Talos, Bottlerocket): the extension with module and firmware; other kernels: "
            "linux-modules-extra, linux-firmware",
            "a card newer than the kernel: i915.force_probe or a newer kernel; WSL2 has no such files at all",
            "delete the plugin's pod on NODE afterwards",
        ),
        risk="none for what runs",
        rollback="modprobe -r",
    ),
    verify=("kubectl get node NODE -o jsonpath={.status.allocatable}: the plugin's resource is there",),
    sources=("ROCm/k8s-device-plugin, cmd/k8s-device-plugin", "intel-device-plugins-for-kubernetes, cmd/gpu_plugin"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("makers.file_denied")).items():
        path = first(said, "path", "path2", "path3") or "The device file"
        yield FILE_DENIED.finding(f"{path} may not be opened.", LIKELY, said, node=node)
    absent = list(facts.said("makers.file_absent"))
    on_host = [one for one in absent if one.get("host")]
    for node, said in by_node([one for one in absent if not one.get("host")]).items():
        yield FILE_ABSENT.finding(f"{first(said, 'path')} is not where the program runs.", POSSIBLE, said, node=node)
    serving = {one.origin.source for one in facts.said("makers.amd_plugin_serves")}
    silent = [one for one in facts.said("makers.amd_plugin_starts") if one.origin.source not in serving]
    for node, said in by_node([*facts.said("makers.no_driver"), *on_host, *silent]).items():
        yield NO_DRIVER.finding(
            "The plugin finds no device in /sys/class and waits."
            if said[0] in silent
            else "The kernel shows no such device.",
            POSSIBLE if said[0] in silent else LIKELY,
            said,
            node=node,
        )


RULE = Rule((FILE_DENIED, FILE_ABSENT, NO_DRIVER), find)
