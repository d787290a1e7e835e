"""L2. nvidia-container-cli reaches the driver and gets no good answer: every container of the node pays for it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

_DRAIN = Fix(
    steps=(
        "nvidia-smi and dmesg | grep -e NVRM -e Xid on NODE: which GPU does not answer",
        "kubectl cordon NODE and drain it; reset that GPU (nvidia-smi -r -i GPU) or restart the machine",
        "until then the others can be used where pods name them: NVIDIA_VISIBLE_DEVICES without it, or the GPU hidden "
        "from the driver (nvidia-smi drain -p PCI -m 1)",
    ),
    risk="a restart ends everything on the node",
    rollback="kubectl uncordon NODE",
)

UNHEALTHY_GPU = Code(
    name="UnhealthyGpuStopsContainers",
    layer=Layer.L2,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.ContainersDoNotStart,
    title="one GPU that does not answer keeps every GPU container from starting",
    meaning="libnvidia-container looks at all GPUs of the node before it starts a container: one that fails makes all "
    "starts fail, those of healthy GPUs included.",
    known_by="nvidia-container-cli reports an NVML error while it looks for devices.",
    disproved_by="nvidia-smi -L and nvidia-container-cli info answer for every GPU.",
    counter_check="on NODE: nvidia-container-cli -k -d /dev/tty info : answers for every GPU",
    fix=_DRAIN,
    verify=("on NODE: nvidia-container-cli info : all devices", "a GPU pod starts on NODE"),
    sources=("NVIDIA/libnvidia-container, src/nvc_info.c: all devices are asked", "NVML documentation, return values"),
)

NEWER = Code(
    name="ToolkitNewerThanDriver",
    layer=Layer.L2,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the container toolkit asks the driver for what this driver does not have",
    meaning="libnvidia-container calls functions of NVML that came with a later driver: after an update of the "
    "packages no GPU container starts, although nvidia-smi works.",
    known_by="nvidia-container-cli reports that a function of NVML, or its version, is not found.",
    disproved_by="nvidia-container-cli info answers on the host: then it is the library in the container.",
    counter_check="nvidia-container-cli -V ; nvidia-smi --query-gpu=driver_version --format=csv : the release notes of "
    "the first name the second",
    fix=Fix(
        steps=(
            "a driver of a branch that is still supported, at least that of the toolkit's release notes",
            "until then the former packages: nvidia-container-toolkit and libnvidia-container of one release",
        ),
        risk="another driver needs the GPU pods of the node to leave",
        rollback="the former packages",
    ),
    verify=("nvidia-container-cli info on NODE : driver and devices", "a GPU container starts"),
    sources=("NVIDIA/libnvidia-container, src/driver.c", "NVML, NVML_ERROR_FUNCTION_NOT_FOUND"),
)

TIMED_OUT = Code(
    name="DriverAnswersTooLate",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the driver does not answer the container runtime in time",
    meaning="Container starts fail or hang: a GPU is stuck, or each start has to initialise all GPUs anew because "
    "persistence is off.",
    known_by="nvidia-container-cli gives its request to the driver up.",
    disproved_by="time nvidia-smi is below two seconds on the node.",
    counter_check="on NODE: time nvidia-smi -L ; nvidia-smi -q | grep -i persistence : quick, Enabled",
    fix=Fix(
        steps=(
            "nvidia-smi -pm 1 or nvidia-persistenced on NODE, then try again",
            "still late: " + _DRAIN.steps[0],
            *_DRAIN.steps[1:2],
        ),
        risk=_DRAIN.risk,
        rollback=_DRAIN.rollback,
    ),
    verify=("time nvidia-smi on NODE : below two seconds", "a GPU pod starts"),
    sources=("NVIDIA/libnvidia-container, src/rpc.c", "NVIDIA driver persistence documentation"),
)

GIVES_UP = Code(
    name="DriverRefusesLibraryCall",
    layer=Layer.L1,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the Windows driver's libraries do not answer the container runtime",
    meaning="libnvidia-container asks the driver in a process of its own, and that process fails inside NVML or "
    "libcuda. In WSL2 both come from the Windows driver: it is too old, or the Windows build has no GPU support for "
    "Linux.",
    known_by="nvidia-container-cli says in WSL2 that the driver failed to process a request.",
    disproved_by="nvidia-smi and a CUDA program run outside of containers.",
    counter_check="on NODE: nvidia-smi ; nvidia-container-cli -k -d /dev/tty info : both print every GPU",
    fix=Fix(
        steps=(
            "WSL2: newest Windows build and NVIDIA driver of Windows, no Linux driver inside; wsl --update, "
            "wsl --shutdown",
        ),
        risk="another driver needs the GPU pods of the node to leave",
        rollback="the former driver version",
    ),
    verify=("nvidia-container-cli info on NODE : all devices", "a GPU container starts"),
    sources=("NVIDIA/libnvidia-container, src/rpc.c and src/driver.c", "NVIDIA, CUDA on WSL user guide"),
)

UVM_MISSING = Code(
    name="CudaFailsAtContainerStart",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.CudaFails,
    title="CUDA does not begin when the container runtime asks for it",
    meaning="The driver is loaded and CUDA is not usable on the host, mostly because nvidia-uvm is not loaded.",
    known_by="nvidia-container-cli reports a CUDA error of the host.",
    disproved_by="A CUDA program runs on the host.",
    counter_check="on NODE: lsmod | grep nvidia_uvm ; ls -l /dev/nvidia-uvm : both there",
    fix=Fix(
        steps=(
            "modprobe nvidia-uvm on NODE; nvidia-modprobe -u -c=0 makes the device file",
            "fails: the module does not belong to this kernel or driver; install the driver again",
        ),
        risk="none for what runs",
        rollback="modprobe -r nvidia-uvm",
    ),
    verify=("nvidia-container-cli info on NODE : CUDA version", "a CUDA pod runs"),
    sources=("NVIDIA/libnvidia-container, src/driver.c", "NVIDIA CUDA driver API, result codes"),
)

# Answers of NVML that other rules read, in whoever's words.
_ELSEWHERE = (
    "driver/library version mismatch", "insufficient permissions", "driver not loaded",
    "gpu access blocked by the operating system",
)  # fmt: skip
_NEWER = ("function not found", "argument version mismatch")


def find(facts: Facts) -> Iterator[Answer]:
    nvml: dict[str, list[Said]] = by_node(facts.said("runtime.cli_nvml"))
    for node, said in nvml.items():
        newer = [one for one in said if one.get("error").lower() in _NEWER]
        if newer:
            yield NEWER.finding(f"NVML answers {first(newer, 'error').lower()!r}.", LIKELY, newer, node=node)
        other = [one for one in said if one.get("error").lower() not in (*_ELSEWHERE, *_NEWER)]
        if other:
            error = first(other, "error").lower()
            yield UNHEALTHY_GPU.finding(
                f"NVML answers {error!r} when all GPUs of the node are looked at: one of them is not well.",
                LIKELY,
                other,
                node=node,
            )
    for node, said in by_node(facts.said("runtime.cli_timeout")).items():
        yield TIMED_OUT.finding(f"The driver: {first(said, 'why')}.", POSSIBLE, said, node=node)
    # Outside of WSL it is mostly a driver that is initialised anew at each start.
    wsl = list(facts.said("runtime.wsl", "runtime.wsl_told"))
    for node, said in by_node(facts.said("runtime.cli_driver_gives_up")).items():
        if wsl:
            cause = "The libraries of the Windows driver fail when they are asked."
            yield GIVES_UP.finding(cause, LIKELY, [*said, *wsl], node=node)
        else:
            yield TIMED_OUT.finding("The driver: failed to process request.", POSSIBLE, said, node=node)
    for node, said in by_node(facts.said("runtime.cli_cuda")).items():
        error = first(said, "error").strip()
        none = "no cuda-capable device" in error.lower()
        yield UVM_MISSING.finding(f"CUDA on the host: {error}.", LIKELY if none else POSSIBLE, said, node=node)


RULE = Rule((UNHEALTHY_GPU, NEWER, TIMED_OUT, GIVES_UP, UVM_MISSING), find)
