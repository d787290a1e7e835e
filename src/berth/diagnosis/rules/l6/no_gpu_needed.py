"""L6. Programs that look for a GPU, or for the driver's library, in a place that has none and needs none."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Rule
from berth.diagnosis.trap import noted, trap
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer
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


def find(facts: Facts) -> Iterator[Answer]:
    refused = [said.origin.text for said in facts.said("nvml.version_mismatch")]
    # Between the kernel module and any library it is a fault, wherever the library lies.
    if refused and all("between nvidia-smi and NVML" in text for text in refused):
        cause = "Another library of that name is found before the driver's."
        yield from noted(facts, OTHER_NVML, ("harmless.nvml_replaced",), cause, unless=("driver.api_mismatch",))
    yield from noted(facts, BUILDING, ("harmless.build_without_gpu",), "A build has no GPU.")
    without = list(facts.said("harmless.monitoring_off"))
    missing = list(facts.said("runtime.no_smi", "runtime.no_nvml"))
    told = list(facts.said("context.no_nvidia_here"))
    if (without or (missing and told)) and not facts.of(DeviceSeen):
        certain = LIKELY if told else POSSIBLE
        yield NOTHING_TO_WATCH.finding("There is no GPU to watch.", certain, [*without, *missing, *told[:1]])


RULE = Rule((OTHER_NVML, BUILDING, NOTHING_TO_WATCH), find)
