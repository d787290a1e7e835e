"""L2. Containers that are more than containers: WSL2, gVisor."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

WSL_NO_GPU = Code(
    name="WslSeesNoGpu",
    layer=Layer.L2,
    cause_class="runtime-install",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="WSL2 hands no GPU to Linux, or its library is not found",
    meaning="Containers on this Windows machine get no GPU.",
    known_by="The toolkit finds WSL and no adapter, or does not find libdxcore.so.",
    disproved_by="/dev/dxg exists and nvidia-smi under /usr/lib/wsl/lib answers.",
    counter_check="in WSL: ls -l /dev/dxg /usr/lib/wsl/lib/libdxcore.so ; /usr/lib/wsl/lib/nvidia-smi : all answer",
    fix=Fix(
        steps=(
            "bring the Windows driver and WSL itself up to date (wsl --update); no Linux driver inside",
            "echo /usr/lib/wsl/lib > /etc/ld.so.conf.d/wsl.conf; ldconfig",
            "wsl --shutdown, start again",
        ),
        risk="wsl --shutdown ends everything in WSL",
        rollback="nothing to undo",
    ),
    verify=("docker run --rm --gpus all ubuntu nvidia-smi : answers",),
    sources=("NVIDIA, CUDA on WSL user guide", "NVIDIA/libnvidia-container, src/dxcore.c"),
)

OS_BLOCKS = Code(
    name="GpuAccessBlockedByOs",
    layer=Layer.L2,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.NoDeviceInContainer,
    title="the operating system blocks access to the GPU",
    meaning="NVML is there and may not open the device: in WSL2 the container's device rules leave /dev/dxg out "
    "(no-cgroups, or control groups of both versions mounted); a sandbox such as gVisor lets only part of the driver's "
    "calls through.",
    known_by="nvidia-smi says so in the place of its figures.",
    disproved_by="A CUDA program runs in the same place.",
    counter_check="run a CUDA sample in the same container : passes",
    fix=Fix(
        steps=(
            "gVisor: runsc with --nvproxy, a driver that `runsc nvproxy list-supported-drivers` lists, and the "
            "capabilities compute,utility",
            "WSL2: no-cgroups = false in /etc/nvidia-container-runtime/config.toml unless Docker is rootless; only "
            "cgroup v2: kernelCommandLine = cgroup_no_v1=all in .wslconfig, then wsl --shutdown",
            "WSL2 outside of containers: the card in WDDM or MCDM mode instead of TCC; newest Windows driver and WSL",
        ),
        risk="none",
        rollback="the former configuration",
    ),
    verify=("nvidia-smi shows figures; a CUDA sample passes",),
    sources=("gVisor documentation, GPU support", "NVIDIA, CUDA on WSL user guide"),
)

GVISOR = Code(
    name="GvisorDriverUnsupported",
    layer=Layer.L2,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.CudaFails,
    title="gVisor does not know the interface of this driver",
    meaning="CUDA fails in sandboxed pods, in calls that nvproxy does not know, while other pods are well.",
    known_by="nvproxy reports an unknown call or an unsupported driver version.",
    disproved_by="runsc nvproxy list-supported-drivers has the driver's version.",
    counter_check="on NODE: runsc nvproxy list-supported-drivers | grep -F DRIVER_VERSION : listed",
    fix=Fix(
        steps=(
            "take a runsc release that lists the driver, or a driver that it lists",
            "hand the GPU out by device plugin or envvar; DRA with gVisor needs a release that scopes it",
            "or run these pods without gVisor",
        ),
        risk="a new driver needs the node drained",
        rollback="the former release",
    ),
    verify=("a CUDA sample passes in a pod of that RuntimeClass",),
    sources=("gVisor documentation, GPU support", "gVisor, pkg/sentry/devices/nvproxy"),
)


VM_FAILS = Code(
    name="SandboxMachineFails",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the small machine around a sandboxed pod does not come up",
    meaning="Kata starts a virtual machine for each pod. It does not start, or the agent in it does not answer: the "
    "pod gets no sandbox, with or without a GPU.",
    known_by="The shim reports that the hypervisor or the agent does not answer.",
    disproved_by="A pod of the same RuntimeClass without a GPU starts: then it is the device that is handed over.",
    counter_check="start the same pod without its GPU; on NODE: journalctl -t kata | tail : starts, no error",
    fix=Fix(
        steps=(
            "a pod without a GPU fails as well: kernel, image and memory of the machine in Kata's configuration.toml; "
            "enable_debug = true there, and read the machine's console",
            "only with a GPU: hot_plug_vfio or cold_plug_vfio = root-port and pcie_root_port in configuration.toml, "
            "default_memory for large BARs, IOMMU on, the device bound to vfio-pci",
            "take the kernel and image that belong to the installed version of Kata",
        ),
        risk="none for what runs",
        rollback="the former configuration.toml",
    ),
    verify=("a pod of that RuntimeClass becomes Running; lspci in it shows the GPU",),
    sources=("Kata Containers documentation, NVIDIA GPU passthrough", "GPU Operator documentation, Kata Containers"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.wsl_no_adapter")).items():
        yield WSL_NO_GPU.finding("WSL2 was found and no adapter in it.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("runtime.os_blocks")).items():
        # A container that the host's own nvidia-smi does not need: then its device rules are the difference.
        inside = list(facts.said("runtime.in_engine_told"))
        yield OS_BLOCKS.finding(
            "The container's device rules do not let it through to the GPU (no-cgroups, or control groups of both "
            "versions)."
            if inside
            else "nvidia-smi is not let through to the GPU.",
            POSSIBLE,
            [*said, *inside],
            node=node,
            cause_class="cgroup" if inside else None,
        )
    for node, said in by_node(facts.said("runtime.gvisor")).items():
        sure = POSSIBLE if all(one.get("why") for one in said) else LIKELY
        yield GVISOR.finding("nvproxy does not know a call or the version of the driver.", sure, said, node=node)

    for node, said in by_node(facts.said("runtime.vm_fails")).items():
        vfio = any("vfio" in one.origin.text.lower() or "plug" in one.origin.text.lower() for one in said)
        yield VM_FAILS.finding(
            "The hypervisor or the agent does not answer.",
            POSSIBLE,
            said,
            node=node,
            cause_class="passthrough" if vfio else None,
        )


RULE = Rule((WSL_NO_GPU, OS_BLOCKS, GVISOR, VM_FAILS), find)
