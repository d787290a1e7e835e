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
    meaning="nvidia-smi shows the card and not its figures, and CUDA fails: the sandbox (WSL2, gVisor) lets only part "
    "of "
    "the driver's calls through.",
    known_by="nvidia-smi says so in the place of its figures.",
    disproved_by="A CUDA program runs in the same place.",
    counter_check="run a CUDA sample in the same container : passes",
    fix=Fix(
        steps=(
            "gVisor: runsc with --nvproxy, a driver that `runsc nvproxy list-supported-drivers` lists, and the "
            "capabilities compute,utility",
            "WSL2: update the Windows driver and WSL; run the container as the user that owns the session",
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


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.wsl_no_adapter")).items():
        yield WSL_NO_GPU.finding("WSL2 was found and no adapter in it.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("runtime.os_blocks")).items():
        yield OS_BLOCKS.finding("nvidia-smi is not let through to the GPU.", POSSIBLE, said, node=node)
    for node, said in by_node(facts.said("runtime.gvisor")).items():
        yield GVISOR.finding("nvproxy does not know a call or the version of the driver.", LIKELY, said, node=node)


RULE = Rule((WSL_NO_GPU, OS_BLOCKS, GVISOR), find)
