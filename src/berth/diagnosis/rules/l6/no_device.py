"""L6. The program sees no GPU. Mostly none was given to its container, although texts speak of drivers and versions."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.heard import by_place, heard, listed, value
from berth.diagnosis.rules.l6 import image
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import PodSeen

_CUDA = ("CUDA runtime API: cudaErrorNoDevice (100), cudaErrorInsufficientDriver (35)",)
_SEES = ("nvidia-smi -L in the container: the device that the pod was given",)

NOT_GIVEN = Code(
    name="NoGpuInContainer",
    layer=Layer.L6,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.NoDeviceInContainer,
    title="the program's container has no GPU",
    meaning="Device files and libcuda come from the container runtime. Where it does not add them, programs say that "
    "there is no "
    "device, no driver, or a driver too old: version 0 is older than any.",
    known_by="CUDA or a framework finds no device or no driver.",
    disproved_by="nvidia-smi -L in the same container lists a GPU; then look at compute mode, MIG and visible devices.",
    counter_check="ls /dev/nvidia*; ldconfig -p | grep libcuda; env | grep NVIDIA_VISIBLE_DEVICES in the container: "
    "present",
    fix=Fix(
        steps=(
            "the pod must ask for a GPU in limits: one that asks for none gets none",
            "runtimeClassName nvidia, or nvidia as the default runtime, or CDI: kubectl get runtimeclass and the "
            "runtime's effective configuration",
            "devices are there: nvidia-smi -q for compute mode Prohibited, MIG mode without instances, "
            "CUDA_VISIBLE_DEVICES set to something else",
        ),
        risk="the pod has to be made anew",
        rollback="nothing to undo",
    ),
    verify=_SEES,
    sources=(*_CUDA, "NVIDIA Container Toolkit: user guide"),
)
NOT_ASKED = Code(
    name="PodAsksForNoGpu",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.NoDeviceInContainer,
    title="the pod asks for no GPU and gets none",
    meaning="Without a device in its limits or a claim, a container has no GPU, also on a node full of them.",
    known_by="The program finds no device, and the pod's containers ask for none.",
    disproved_by="A limit or claim for a device in the container that runs the program.",
    counter_check="kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.containers[*].resources}': a device is there",
    fix=Fix(
        steps=("add the device to limits of the container that computes, not of a sidecar",),
        risk="the pod waits until a GPU is free",
        rollback="take it out again",
    ),
    verify=_SEES,
    sources=("Kubernetes documentation: schedule GPUs",),
)
STUB = Code(
    name="CudaStubLibrary",
    layer=Layer.L6,
    cause_class="image",
    severity=Severity.Error,
    effect=Effect.CudaFails,
    title="the program loads the stub of libcuda in the image",
    meaning="Stubs are for linking only. A path to stubs in LD_LIBRARY_PATH hides the driver's library that the "
    "runtime mounts.",
    known_by="CUDA says that the driver is a stub library.",
    disproved_by="ldd or LD_DEBUG=libs shows the driver's libcuda.so.1.",
    counter_check="ldconfig -p | grep libcuda; echo $LD_LIBRARY_PATH in the container: no stubs",
    fix=Fix(
        steps=("take .../stubs out of LD_LIBRARY_PATH and of the image's ld.so.conf",),
        risk="builds in that image need the stubs at link time",
        rollback="put the path back",
    ),
    verify=_SEES,
    sources=("CUDA runtime API: cudaErrorStubLibrary (34)",),
)
CPU_BUILD = Code(
    name="FrameworkWithoutCuda",
    layer=Layer.L6,
    cause_class="image",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the framework in the image was built without CUDA",
    meaning="It never looks for a GPU. A later pip install may have replaced the CUDA build by the plain one.",
    known_by="The framework says that it is not compiled with CUDA, or that it is a CPU build.",
    disproved_by="The framework prints a CUDA version: torch.version.cuda is not None.",
    counter_check='python -c "import torch; print(torch.__version__, torch.version.cuda)": a CUDA version',
    fix=Fix(
        steps=("install the build for CUDA from the framework's own index, and pin it in the image",),
        risk="a larger image",
        rollback="the old image",
    ),
    verify=('python -c "import torch; print(torch.cuda.is_available())": True',),
    sources=("PyTorch, TensorFlow, JAX: installation for CUDA",),
)
VISIBLE = Code(
    name="VisibleDevicesUnreadable",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the program cannot read the device names that it was given",
    meaning="It expects numbers in CUDA_VISIBLE_DEVICES and finds a UUID of a GPU or MIG device.",
    known_by="A conversion error with a GPU- or MIG- name.",
    disproved_by="The program runs with the same value.",
    counter_check="echo $CUDA_VISIBLE_DEVICES in the container: numbers",
    fix=Fix(
        steps=(
            "a newer release of the program; or set CUDA_VISIBLE_DEVICES=0,1,... inside the container, where only "
            "its own devices are seen",
        ),
        risk="none",
        rollback="unset it",
    ),
    verify=("the program starts",),
    sources=("CUDA programming guide: environment variables",),
)
BUSY = Code(
    name="DevicesBusyOrUnavailable",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.CudaFails,
    title="all devices are busy or unavailable",
    meaning="Compute mode is exclusive and another process holds the device, or the device waits for a reset.",
    known_by="CUDA error 46.",
    disproved_by="Compute mode Default and no other process on the device.",
    counter_check="nvidia-smi -q -d COMPUTE; nvidia-smi: Default, no process",
    fix=Fix(
        steps=(
            "end the process that holds the device (fuser -v /dev/nvidia*)",
            "nvidia-smi -c DEFAULT where nothing needs exclusive mode",
            "a kernel log with Xid: mend that first",
        ),
        risk="ending a process loses its work",
        rollback="nvidia-smi -c EXCLUSIVE_PROCESS",
    ),
    verify=_SEES,
    sources=("CUDA runtime API: cudaErrorDevicesUnavailable (46)",),
)
ORDINAL = Code(
    name="DeviceOrdinalInvalid",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the program asks for a device number that its container does not have",
    meaning="In a container devices are counted from 0. More processes than GPUs, or a fixed number, name one that "
    "is not there.",
    known_by="CUDA error 101, invalid device ordinal.",
    disproved_by="nvidia-smi -L in the container lists as many devices as the program starts processes.",
    counter_check="nvidia-smi -L | wc -l in the container: at least the processes per node",
    fix=Fix(
        steps=("make processes per node equal to the GPUs in limits; use LOCAL_RANK for the device",),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("every process prints another device UUID",),
    sources=("CUDA runtime API: cudaErrorInvalidDevice (101)",),
)
PARALLEL = Code(
    name="MoreProcessesThanGpus",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the program is set up for more GPUs than the pod has",
    meaning="Tensor or pipeline parallel size, or the number of processes, is above the devices in the container.",
    known_by="The framework compares both numbers and stops.",
    disproved_by="Parallel size equals the devices that the container sees.",
    counter_check="nvidia-smi -L | wc -l in the container: the parallel size",
    fix=Fix(
        steps=("ask for that many GPUs in one pod, or lower the parallel size",),
        risk="fewer GPUs need a smaller model or batch",
        rollback="put the old number back",
    ),
    verify=("the program starts with that size",),
    sources=("vLLM, Ray, torchrun: parallel sizes",),
)
CAPABILITY = Code(
    name="ComputeCapabilityTooLow",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the GPU is of a generation that the program does not support",
    meaning="A data type or kernel needs newer hardware; the pod was placed on an older model.",
    known_by="The program names the compute capability that it needs.",
    disproved_by="nvidia-smi --query-gpu=compute_cap is at least that.",
    counter_check="nvidia-smi --query-gpu=name,compute_cap --format=csv: at least what is asked for",
    fix=Fix(
        steps=(
            "select nodes by nvidia.com/gpu.compute.major or product",
            "or another data type (half in place of bfloat16)",
        ),
        risk="the pod may wait longer for that model",
        rollback="remove the selector",
    ),
    verify=("the program starts",),
    sources=("GPU feature discovery: nvidia.com/gpu.compute.major",),
)

TASK = Code(
    name="RayTaskWithoutGpu",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.NoDeviceInContainer,
    title="a Ray task or actor sees no GPU, for it asked for none",
    meaning="Ray sets CUDA_VISIBLE_DEVICES in each task and actor to the GPUs that it was given: nothing without "
    "num_gpus. The driver process is given none, and what somebody exported before is overwritten.",
    known_by="The program speaks of num_gpus, or CUDA is missing inside a Ray worker only.",
    disproved_by="The task has num_gpus, and nvidia-smi -L fails in its container.",
    counter_check="ray.get_gpu_ids() in the task: as many as it needs; or nvidia-smi -L in the same pod: fails",
    fix=Fix(
        steps=(
            "num_gpus in @ray.remote or .options() of each task that computes; work of the driver process goes "
            "into such a task",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO=0 keeps what was set, for tasks that ask for none",
        ),
        risk="tasks wait until a GPU is free",
        rollback="take num_gpus out again",
    ),
    verify=("torch.cuda.is_available() in the task: True",),
    sources=("Ray documentation: accelerator support",),
)
HIDDEN = Code(
    name="DevicesHiddenByProgram",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.NoDeviceInContainer,
    title="the program itself hides the GPUs",
    meaning="CUDA_VISIBLE_DEVICES=-1, or an empty value, tells CUDA to show none. A line of that kind stays from a "
    "test on the CPU, or comes with an example.",
    known_by="The program or its start script sets the variable to none, and CUDA finds no device.",
    disproved_by="The same program finds none when that line is taken out.",
    counter_check="the same program without that line: it finds none either; nvidia-smi -L in the same container: no "
    "GPU",
    fix=Fix(
        steps=("take the line out, or set the numbers that the program is to use",),
        risk="none",
        rollback="put the line back",
    ),
    verify=("the program lists the GPU",),
    sources=("CUDA C++ programming guide: CUDA_VISIBLE_DEVICES",),
)
DENIED = Code(
    name="DriverFilesDenied",
    layer=Layer.L6,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the program's user may not read /proc/driver/nvidia",
    meaning="Some programs count GPUs by that directory in place of NVML. On a hardened machine, or where the module "
    "was loaded with its own rights for device files, only root reads it; CUDA itself does not need it.",
    known_by="Permission denied at a path below /proc/driver/nvidia.",
    disproved_by="The same user lists the directory in the container.",
    counter_check="id; ls -ld /proc/driver/nvidia /proc/driver/nvidia/gpus in the container: r and x for the user",
    fix=Fix(
        steps=(
            "a release of the program that asks NVML; for Ray: num_gpus given at the start of the node",
            "or the user in the group that may read, or the directory's mode as the driver makes it (0555)",
        ),
        risk="none",
        rollback="take the user out of the group",
    ),
    verify=("ls /proc/driver/nvidia/gpus as the program's user: one entry a GPU",),
    sources=("Ray, ray/_private/accelerators/nvidia_gpu.py", "NVIDIA driver README: /proc interface"),
)

_NONE = (
    "cuda.no_device", "cuda.no_hip_device", "cuda.none_for_framework", "app.device_unassigned", "cuda.tool_missing",
    "app.first_gpu_refused",
)  # fmt: skip
# What says better why there is none.
_KNOWN_BETTER = ("image.cpu_build_named", "ray.asked_for_none")


def find(facts: Facts) -> Iterator[Answer]:
    served = image.has_driver(facts)
    old = [said for said in facts.said("cuda.driver_insufficient") if not served and not value(said, "found")]
    for node, pod, found in by_place([*facts.said(*_NONE), *old]):
        if any(facts.said(*_KNOWN_BETTER)):
            break
        asks = [one for one in facts.of(PodSeen) if one.limits and pod in ("", one.key)]
        if asks and not any(limit.devices or limit.claims for one in asks for limit in one.limits):
            yield NOT_ASKED.finding(
                f"Containers of {listed(one.key for one in asks)} ask for no device.",
                LIKELY,
                [*found, *asks[:1]],
                node=node,
                pod=pod or asks[0].key,
            )
            continue
        if counted := list(facts.said("ray.counts_gpus")):
            cause = "Ray has GPUs to give, and the program sees none: it was given none."
            yield TASK.finding(cause, POSSIBLE, [*counted, *found], node=node, pod=pod)
            continue
        if hidden := list(facts.said("cuda.hidden_by_program")):
            cause = "The program hides all devices from itself: CUDA_VISIBLE_DEVICES is set to none."
            yield HIDDEN.finding(cause, LIKELY, [*hidden, *found], node=node, pod=pod)
            continue
        only_old = all(said.message == "cuda.driver_insufficient" for said in found)
        if only_old:
            cause = "The program finds no driver at all: most likely the runtime added no device to its container."
        else:
            cause = "The program finds no GPU in its container."
        yield NOT_GIVEN.finding(cause, POSSIBLE if only_old else LIKELY, found, node=node, pod=pod)
        yield Unconfirmed(
            "what the container sees",
            "kubectl exec: ls -l /dev/nvidia*; nvidia-smi -L; env | grep -i nvidia",
            NOT_GIVEN.name,
            Layer.L2,
            node,
        )
    yield from _plain(facts)


def _plain(facts: Facts) -> Iterator[Answer]:
    for code, message, cause, sure in (
        (STUB, "cuda.stub_library", "The stub of libcuda is loaded in place of the driver's library.", ESTABLISHED),
        (CPU_BUILD, "image.cpu_build", "The framework in the image has no CUDA in it.", ESTABLISHED),
        (
            VISIBLE,
            "cuda.visible_devices_unreadable",
            "The program expects numbers and was given names of devices.",
            LIKELY,
        ),
        (
            VISIBLE,
            "cuda.partition_not_counted",
            "The program counts devices by a way that knows no partitions.",
            POSSIBLE,
        ),
        (BUSY, "cuda.busy", "Another process holds the device exclusively, or it waits for a reset.", POSSIBLE),
        (BUSY, "cuda.busy_by_number", "Another process holds the device exclusively.", POSSIBLE),
        (BUSY, "cuda.in_use_exclusively", "Another thread or process holds the device exclusively.", LIKELY),
        (PARALLEL, "app.parallel_size", "The program wants more devices than its container has.", LIKELY),
        (PARALLEL, "app.too_few_devices", "The program wants more devices than its container has.", LIKELY),
        (CAPABILITY, "app.capability_too_low", "The device's generation is below what the program needs.", LIKELY),
        (CAPABILITY, "app.needs_newer_card", "The device's generation is below what the program needs.", LIKELY),
    ):
        for node, pod, found in by_place(facts.said(message)):
            yield code.finding(cause, sure, found, node=node, pod=pod)
    closed = "A directory of the driver that the program reads is closed to its user."
    yield from heard(facts, DENIED, ("app.driver_files_denied",), closed, LIKELY)
    yield from heard(
        facts, CPU_BUILD, ("image.cpu_build_named",), "The framework in the image was installed without CUDA.", LIKELY
    )
    yield from heard(
        facts, TASK, ("ray.asked_for_none",), "Ray shows a task the GPUs that it asked for: here none.", POSSIBLE
    )
    for node, pod, found in by_place(facts.said("cuda.invalid_ordinal")):
        # NCCL's 101 is of memory that another node exports (fabric.py).
        if alone := [said for said in found if "NCCL" not in said.origin.text or " 101" not in said.origin.text]:
            yield ORDINAL.finding(
                "The program names a device that its container does not have.", POSSIBLE, alone, node=node, pod=pod
            )


RULE = Rule(
    (NOT_GIVEN, NOT_ASKED, STUB, CPU_BUILD, VISIBLE, BUSY, ORDINAL, PARALLEL, CAPABILITY, TASK, HIDDEN, DENIED), find
)
