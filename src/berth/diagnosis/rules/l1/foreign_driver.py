"""L1. Another driver has the GPUs: nouveau, vfio-pci, or a second NVIDIA driver."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

NOUVEAU = Code(
    name="NouveauHoldsGpu",
    layer=Layer.L1,
    cause_class="driver-conflict",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="nouveau has the GPUs",
    meaning="The open driver of the kernel bound the devices first. The NVIDIA driver cannot have them, and taking "
    "nouveau away in a running system can crash the kernel.",
    known_by="The NVIDIA module says that its probe was not called, names nouveau as the owner, or nouveau is listed "
    "by lsmod or lspci as the driver in use.",
    disproved_by="`lspci -k` names nvidia as the driver in use for every GPU.",
    counter_check="lspci -nnk -d 10de:; lsmod | grep nouveau: no nouveau",
    fix=Fix(
        steps=(
            "on NODE: printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' > /etc/modprobe.d/nouveau.conf",
            "rebuild the initramfs (update-initramfs -u, or dracut -f) and reboot; do not unload it while it runs",
            "put the blacklist into the node image, so that new nodes have it",
        ),
        risk="the reboot ends everything on the node",
        rollback="remove the file, rebuild the initramfs, reboot",
    ),
    verify=(
        "lspci -k -d 10de: | grep 'in use': nvidia, once a GPU",
        "lsmod | grep -c nouveau: 0",
    ),
    sources=("open-gpu-kernel-modules, kernel-open/nvidia/nv.c and nv-pci.c", "GPU Operator troubleshooting, nouveau"),
)
NOVA = Code(
    name="NovaHoldsGpu",
    layer=Layer.L1,
    cause_class="driver-conflict",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="the kernel's nova driver has the GPUs",
    meaning="Newer kernels bring nova-core, a driver in the making for GPUs from Turing on. It binds them before the "
    "NVIDIA driver is there, and computes nothing.",
    known_by="The NVIDIA module says that the GPU is bound to NovaCore, the kernel logs its probe, or lspci names it "
    "as the driver in use.",
    disproved_by="`lspci -k` names nvidia as the driver in use for every GPU.",
    counter_check="lspci -nnk -d 10de:; lsmod | grep nova: no nova_core",
    fix=Fix(
        steps=(
            "on NODE: printf 'blacklist nova_core\\nblacklist nova_drm\\n' > /etc/modprobe.d/nova.conf",
            "rebuild the initramfs (update-initramfs -u, or dracut -f) and reboot",
            "built into the kernel: initcall_blacklist or a kernel without CONFIG_NOVA_CORE; keep it in the node image",
        ),
        risk="the reboot ends everything on the node",
        rollback="remove the file, rebuild the initramfs, reboot",
    ),
    verify=("lspci -k -d 10de: | grep 'in use': nvidia, once a GPU",),
    sources=("kernel documentation, gpu/nova", "open-gpu-kernel-modules, kernel-open/nvidia/nv-pci.c"),
)
VFIO = Code(
    name="VfioHoldsGpu",
    layer=Layer.L1,
    cause_class="driver-conflict",
    severity=Severity.Error,
    effect=Effect.DriverAbsent,
    title="vfio-pci has a GPU that the NVIDIA driver should have",
    meaning="The device is reserved for virtual machines. Containers on this node cannot use it.",
    known_by="The NVIDIA module or the driver manager says that vfio-pci is bound to the device.",
    disproved_by="The node is meant for virtual machines: then nothing is wrong.",
    counter_check="kubectl get node NODE -L nvidia.com/gpu.workload.config: vm-passthrough or vm-vgpu; lspci -nnk -d "
    "10de:: nvidia is in use",
    fix=Fix(
        steps=(
            "decide what the node is for: kubectl label node NODE nvidia.com/gpu.workload.config=container --overwrite",
            "remove vfio-pci.ids=10de:… from the kernel's command line and /etc/modprobe.d, reboot",
        ),
        risk="virtual machines on the node lose the device",
        rollback="label the node vm-passthrough again",
    ),
    verify=("lspci -k -d 10de: | grep 'in use': nvidia",),
    sources=("open-gpu-kernel-modules, kernel-open/nvidia/nv-pci.c", "k8s-driver-manager, vfio-manage"),
)
TWO_DRIVERS = Code(
    name="SecondNvidiaDriver",
    layer=Layer.L1,
    cause_class="driver-conflict",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="two NVIDIA drivers want the same node",
    meaning="A driver of the host and one of a container, or two driver containers, exclude each other; the second "
    "does not start, or takes devices away from what the first should do.",
    known_by="The driver container finds another instance, or the driver manager finds a driver of the host where a "
    "device should have gone to vfio-pci.",
    disproved_by="Only one of them is installed.",
    counter_check="on NODE: dpkg -l 'nvidia-driver*' or rpm -qa 'nvidia-driver*': none; or kubectl get clusterpolicy "
    "-o jsonpath='{..driver.enabled}': false",
    fix=Fix(
        steps=(
            "keep one: either remove the packages of the host and reboot, or set driver.enabled=false",
            "an old driver pod that does not end: delete it and wait until /run/nvidia/nvidia-driver.pid is gone",
        ),
        risk="GPU pods of the node have to leave before a driver is removed",
        rollback="install the packages again, or set driver.enabled=true",
    ),
    verify=("kubectl get pods -n gpu-operator -o wide: one driver pod a node, Running, or none",),
    sources=("gpu-driver-container, nvidia-driver script", "k8s-driver-manager, cmd/driver-manager"),
)


def find(facts: Facts) -> Iterator[Answer]:
    nova = list(facts.said("driver.nova"))
    if nova:
        yield NOVA.finding("nova-core bound the devices first.", LIKELY, nova)
    else:
        yield from _nouveau(facts)
    held = list(facts.said("driver.vfio_held"))
    bound = [said for said in facts.said("driver.owned") if said.get("owner").lower() == "vfio-pci"]
    if not held and not bound and (missed := [*facts.said("nvml.no_devices"), *facts.said("nvml.no_driver")]):
        # On a node for virtual machines vfio-pci is right; where somebody misses the GPUs it is not.
        held = [*facts.said("driver.vfio_in_use")]
        held = [*held, *missed] if held else []
    if held or bound:
        yield VFIO.finding(
            "vfio-pci is bound to a device that the NVIDIA driver was to serve.",
            ESTABLISHED if bound else LIKELY,
            [*bound, *held],
        )
    running = [said for said in facts.said("driver.two_installed") if said.get("running") or said.get("taken")]
    unbound = list(facts.said("driver.not_on_vfio"))
    host = [said for said in facts.said("driver.two_installed") if said not in running]
    told = list(facts.said("driver.installed_twice", "driver.duplicate_symbol"))
    # A container that begins to install one where the host has its own.
    begins, has_one = list(facts.said("driver.container_begins")), list(facts.said("driver.host_has_one"))
    twice = [*has_one, *begins[:1]] if begins and has_one else []
    if running or told or twice or (unbound and host):
        yield TWO_DRIVERS.finding(
            "Another instance of the NVIDIA driver runs on the node."
            if running
            else "The node has a driver of its own besides the one that the operator manages.",
            LIKELY if running or unbound or twice else POSSIBLE,
            [*running, *unbound, *host, *told, *twice],
        )


def _nouveau(facts: Facts) -> Iterator[Answer]:
    named = list(facts.said("driver.nouveau"))
    refused = list(facts.said("driver.owned"))
    others = [said for said in refused if said.get("owner").lower() not in ("", "nouveau")]
    if named:
        count = next((said.get("count") for said in refused if said.get("count")), "")
        yield NOUVEAU.finding(
            f"nouveau bound the devices first{f'; the NVIDIA driver did not get {count} of them' if count else ''}.",
            ESTABLISHED if refused and not others else LIKELY,
            [*refused, *named],
        )
    elif refused and not others:
        yield NOUVEAU.finding(
            "The NVIDIA driver was not asked for the devices: another driver, mostly nouveau, owns them.",
            LIKELY,
            refused,
        )


RULE = Rule((NOUVEAU, NOVA, VFIO, TWO_DRIVERS), find)
