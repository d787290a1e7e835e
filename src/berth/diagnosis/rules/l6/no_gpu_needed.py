"""L6. Programs that look for a GPU, or for the driver's library, in a place that has none and needs none."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Rule
from berth.diagnosis.trap import noted, trap
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

OTHER_NVML = trap(
    "NvmlOfAnotherPlace",
    Layer.L6,
    Effect.BlindMonitoring,
    "nvidia-smi was started with a library that is not the driver's",
    meaning="A library of the same name lies in the directory or on the search path: a hook that counts calls, or the "
    "stub of the CUDA toolkit. nvidia-smi compares versions with it and complains; the driver is in order.",
    known_by="A directory of stubs or of a hooking library beside the complaint.",
    disproved_by="It says the same with an empty LD_LIBRARY_PATH and LD_PRELOAD, in another directory.",
    counter_check="env -u LD_LIBRARY_PATH -u LD_PRELOAD nvidia-smi, in /: prints its table",
    sources=("CUDA installation guide: stub libraries", "ld.so(8)"),
    steps=("take the directory out of the search path for the tools of the driver",),
    instead_of=("DriverVersionsDiffer",),
)

BUILDING = trap(
    "NoGpuWhileBuilding",
    Layer.L6,
    Effect.NoDeviceInContainer,
    "there is no GPU while an image is built, and there need be none",
    meaning="A build runs without devices and without the driver's libraries. What looks for them then says that they "
    "are missing; the container that is started later has them.",
    known_by="libcuda or the GPU is missed during a build, and the image works when it runs.",
    disproved_by="It is missed in the container that runs, too.",
    counter_check="docker run --gpus all IMAGE nvidia-smi: a table",
    sources=("Docker documentation: builds", "julia-ngc issue 26"),
    steps=("nothing to mend; what must compile for a card names it (TORCH_CUDA_ARCH_LIST and the like)",),
    instead_of=("NoGpuInContainer", "ImageLibraryMissing"),
)

NOTHING_TO_WATCH = trap(
    "MonitorFindsNoGpu",
    Layer.L6,
    Effect.BlindMonitoring,
    "a program that can watch GPUs finds no NVIDIA driver and goes on without",
    meaning="Monitors, launchers and loggers look for NVML or nvidia-smi wherever they run. On a machine or in a pod "
    "that is not to use a GPU there is neither, and the warning means no more than that.",
    known_by="The program says that it goes on without GPU figures, or who asks has no NVIDIA card.",
    disproved_by="The pod asks for nvidia.com/gpu, or lspci -d 10de: lists a card.",
    counter_check="lspci -d 10de: on NODE: nothing; or the pod asks for no GPU",
    sources=("prmon issue 309", "OpenLinkHub issue 459"),
    steps=("nothing to mend; most such programs have an option that leaves GPUs out",),
    instead_of=("StartedWithoutNvidiaRuntime", "NoGpuInContainer"),
)
WITHOUT = trap(
    "ComputesWithoutGpu",
    Layer.L6,
    Effect.NoDeviceInContainer,
    "a program that could use a GPU says that there is none, where none is wanted",
    meaning="Frameworks look for a driver at their start and say what they leave out without one: mixed precision, "
    "pinned memory, CUDA as a whole. On a machine or in a pod that is to have no GPU that is as it should be.",
    known_by="CUDA is not available, and who tells of it has a machine without a GPU or asked for none.",
    disproved_by="The pod asks for nvidia.com/gpu, or lspci -d 10de: lists a card on its node.",
    counter_check="kubectl get pod POD -n NAMESPACE -o jsonpath='{..limits}': no GPU is asked for",
    sources=("PyTorch, torch/amp and torch/cuda", "TensorFlow, cudart_stub.cc"),
    steps=("nothing to mend; ask for a GPU where one is wanted",),
    instead_of=("NoGpuInContainer", "StartedWithoutNvidiaRuntime", "ImageLibraryMissing"),
)
CAPABILITY = trap(
    "CapabilityWithinMajor",
    Layer.L6,
    Effect.CudaFails,
    "PyTorch warns of a card whose capability it does serve",
    meaning="Code for one compute capability runs on all later ones of the same major number: what was built for 12.0 "
    "runs on 12.1. The warning of PyTorch compares with a list of its own, which knows neither this nor what was built "
    "from source.",
    known_by="The card's capability has the same major number as the highest of the list, or lies within it.",
    disproved_by="A kernel fails with 'no kernel image is available'.",
    counter_check="python -c \"import torch; print(torch.ones(1, device='cuda') + 1)\": tensor([2.])",
    sources=("CUDA C++ programming guide: binary compatibility", "PyTorch issues 164596 and 164708"),
    verify=("a tensor is computed on the card",),
    instead_of=("NoKernelForDevice",),
)
_RANGE = "cuda capability supported by this version of pytorch"


def find(facts: Facts) -> Iterator[Answer]:
    refused = [said.origin.text for said in facts.said("nvml.version_mismatch")]
    # Between the kernel module and any library it is a fault, wherever the library lies.
    if refused and all("between nvidia-smi and NVML" in text for text in refused):
        cause = "Another library of that name is found before the driver's."
        yield from noted(facts, OTHER_NVML, ("harmless.nvml_replaced",), cause, unless=("driver.api_mismatch",))
    yield from noted(facts, BUILDING, ("harmless.build_without_gpu",), "A build has no GPU.")
    yield from _within(facts)
    off = list(facts.said("harmless.computes_without"))
    wanted = list(facts.said("context.wants_no_gpu", "harmless.node_without_gpu"))
    if off and wanted and not facts.of(DeviceSeen):
        yield WITHOUT.finding("No GPU is wanted there.", LIKELY, [*off, *wanted[:1]])
    elif not facts.of(DeviceSeen):
        yield from noted(facts, WITHOUT, ("harmless.builtin_disabled",), "It goes on without CUDA.", WEAK)
    without = list(facts.said("harmless.monitoring_off"))
    missing = list(facts.said("runtime.no_smi", "runtime.no_nvml"))
    told = list(facts.said("context.no_nvidia_here"))
    if (without or (missing and told)) and not facts.of(DeviceSeen):
        certain = LIKELY if told else POSSIBLE
        yield NOTHING_TO_WATCH.finding("There is no GPU to watch.", certain, [*without, *missing, *told[:1]])


def _within(facts: Facts) -> Iterator[Answer]:
    ranges = [said for said in facts.said("harmless.capability_range") if _serves(said)]
    refused = [said for said in facts.said("cuda.no_kernel_image") if _RANGE not in said.origin.text.lower()]
    if ranges and not refused:
        yield CAPABILITY.finding("The card's capability is of a major number that is served.", LIKELY, ranges)


def _serves(said: Said) -> bool:
    card, least, most = (
        tuple(int(number) for number in said.get(name, "0.0").split(".")) for name in ("card", "least", "most")
    )
    return card >= least and card[0] <= most[0]


RULE = Rule((OTHER_NVML, BUILDING, NOTHING_TO_WATCH, WITHOUT, CAPABILITY), find)
