"""L6. The image and the driver or the device do not fit: CUDA too new, code for another architecture, libraries "
"missing."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, listed, value, values
from berth.diagnosis.rules.l1 import version_skew
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.told import Told

_COMPATIBILITY = ("NVIDIA documentation: CUDA compatibility",)
_RUNS = ("python -c \"import torch; torch.ones(1, device='cuda')\": no error", "deviceQuery passes in the image")
_IMAGE = "the old image"

TOO_OLD = Code(
    name="DriverTooOldForImage",
    layer=Layer.L6,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.CudaFails,
    title="the image needs a newer driver than the node has",
    meaning="The CUDA version that nvidia-smi prints is the highest that the driver serves; the image brings a newer "
    "one.",
    known_by="CUDA names the driver version that it found and says it is too old, or refuses the PTX of a newer "
    "toolchain.",
    disproved_by="nvidia-smi's CUDA version is at least that of the image.",
    counter_check="nvidia-smi | grep 'CUDA Version' against nvcc or torch.version.cuda in the image: not older",
    fix=Fix(
        steps=(
            "an image with an older CUDA, or a newer driver on the node",
            "data-centre GPUs: the package cuda-compat of that version in the image",
        ),
        risk="a driver upgrade empties the node",
        rollback=_IMAGE,
    ),
    verify=_RUNS,
    sources=_COMPATIBILITY,
)
FORWARD = Code(
    name="ForwardCompatibilityRefused",
    layer=Layer.L6,
    cause_class="image",
    severity=Severity.Error,
    effect=Effect.CudaFails,
    title="the compatibility library in the image does not work with this card or driver",
    meaning="cuda-compat is for data-centre GPUs and certain driver branches only. On others CUDA fails with 803 or "
    "804, although "
    "the image might run without it.",
    known_by="CUDA error 804 or 803.",
    disproved_by="A data-centre GPU with a driver branch in the compatibility table.",
    counter_check="ldconfig -p | grep libcuda in the container: the driver's library, not /usr/local/cuda/compat",
    fix=Fix(
        steps=(
            "a newer driver, or an image with an older CUDA",
            "take /usr/local/cuda/compat out of the library path of the image",
            "803: user libraries of the image are of another driver: never put a driver into an image",
        ),
        risk="a driver upgrade empties the node",
        rollback=_IMAGE,
    ),
    verify=_RUNS,
    sources=(*_COMPATIBILITY, "CUDA runtime API: 803, 804"),
)
NO_KERNEL = Code(
    name="NoKernelForDevice",
    layer=Layer.L6,
    cause_class="image",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the program has no code for this generation of GPU",
    meaning="The framework was built for other architectures than the card's; CUDA begins, and the first kernel fails.",
    known_by="no kernel image is available, or the framework says that the capability is not among its own.",
    disproved_by="torch.cuda.get_arch_list() has the card's sm_ number.",
    counter_check="python: torch.cuda.get_arch_list() and get_device_capability(): the card is in the list",
    fix=Fix(
        steps=(
            "a build of the framework for that card (Blackwell: CUDA 12.8 or later)",
            "own extensions: build them anew with TORCH_CUDA_ARCH_LIST for the card",
        ),
        risk="a newer framework may change results",
        rollback=_IMAGE,
    ),
    verify=_RUNS,
    sources=("CUDA runtime API: cudaErrorNoKernelImageForDevice (209)", "PyTorch: supported architectures"),
)
COMPILED = Code(
    name="KernelsCompiledAtStart",
    layer=Layer.L6,
    cause_class="image",
    severity=Severity.Warning,
    effect=Effect.ProgramFails,
    title="the program's code is compiled for the card at each start",
    meaning="The image has PTX and no binary code for this generation: the driver compiles it at the first use, which "
    "takes minutes. A container loses the result with its file system.",
    known_by="A start of minutes, and somebody speaks of JIT compilation or PTX.",
    disproved_by="cuobjdump --list-elf of the library lists the card's sm_ number.",
    counter_check="cuobjdump --list-elf LIBRARY in the image: the card's sm_ number; or a second start with the "
    "cache: as slow",
    fix=Fix(
        steps=(
            "build the image for the card's architecture (TORCH_CUDA_ARCH_LIST, CMAKE_CUDA_ARCHITECTURES)",
            "or keep the cache: CUDA_CACHE_PATH on a volume, CUDA_CACHE_MAXSIZE=4294967296",
        ),
        risk="a bigger image",
        rollback=_IMAGE,
    ),
    verify=("the second start takes seconds",),
    sources=("CUDA C++ programming guide: just-in-time compilation",),
)
LIBRARY = Code(
    name="ImageLibraryMissing",
    layer=Layer.L6,
    cause_class="image",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="a library is missing in the image or does not fit its neighbours",
    meaning="CUDA's math libraries, cuDNN, NCCL and RDMA libraries are part of the image; only the driver's come "
    "from the node.",
    known_by="The loader does not find a library, a symbol or a version, or cuDNN refuses its own.",
    disproved_by="ldconfig -p in the image lists the library in that version.",
    counter_check="ldd of the program in the image: nothing not found",
    fix=Fix(
        steps=(
            "install the missing library in the version that the framework was built with, or take a base image that "
            "has it (cudnn, runtime, devel)",
            "two copies of a library: take the second out of LD_LIBRARY_PATH",
        ),
        risk="other programs of the image may need the old one",
        rollback=_IMAGE,
    ),
    verify=("the program starts",),
    sources=("CUDA images: base, runtime, devel", "cuDNN support matrix"),
)
ARCHITECTURE = Code(
    name="ImageArchitectureWrong",
    layer=Layer.L6,
    cause_class="image",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the image is for another processor",
    meaning="An image for amd64 does not run on Grace (arm64), and the reverse.",
    known_by="exec format error, or no matching manifest for the platform.",
    disproved_by="The image's manifest has the node's architecture.",
    counter_check="kubectl get node NODE -o jsonpath='{.status.nodeInfo.architecture}': one of the image's platforms",
    fix=Fix(
        steps=("an image for the node's architecture, or kubernetes.io/arch in the node selector",),
        risk="none",
        rollback=_IMAGE,
    ),
    verify=("the container starts",),
    sources=("OCI image index",),
)

_BANNER = "container was built for NVIDIA Driver Release"


def has_driver(facts: Facts) -> bool:
    """Whether the container has a driver for sure: somebody counts GPUs through NVML, or tells what nvidia-smi shows.

    CUDA's error 35 then means what it says. Without a driver it is what CUDA answers too.
    """
    return any(facts.said("app.nvml_counts_gpus")) or any(
        {"smi", "in container"} <= told.topics and not told.topics & {"no gpu inside", "gpus none", "trouble"}
        for told in facts.of(Told)
    )


def find(facts: Facts) -> Iterator[Answer]:
    found_version = [said for said in facts.said("cuda.driver_insufficient") if value(said, "found")]
    if has_driver(facts):
        found_version = list(facts.said("cuda.driver_insufficient"))
    refused = list(facts.said("cuda.forward_compatibility"))
    # An image of the maker compares versions at its start; that CUDA itself then answers 803 or 804 is more exact.
    newer = [said for said in facts.said("cuda.ptx_too_new") if not (refused and _BANNER in said.origin.text)]
    for node, pod, found in by_place([*found_version, *newer]):
        version = value(found[0], "found")
        has = (
            f" The driver serves CUDA {int(version) // 1000}.{int(version) % 1000 // 10}." if version.isdigit() else ""
        )
        yield TOO_OLD.finding(
            f"The image was built with a newer CUDA than the node's driver serves.{has}",
            ESTABLISHED,
            found,
            node=node,
            pod=pod,
        )
    for node, pod, found in by_place(refused):
        yield FORWARD.finding(
            "The image's compatibility library does not work with this card or driver.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    for node, pod, found in by_place(facts.said("cuda.no_kernel_image")):
        capability = listed([*values(found, "capability"), *values(found, "arch"), *values(found, "value")])
        yield NO_KERNEL.finding(
            f"The program has no code for the card{': ' + capability if capability else ''}.",
            ESTABLISHED,
            found,
            node=node,
            pod=pod,
        )
    yield from _other_driver(facts)
    refused_by = "A library of the image, or its code, is for other cards."
    yield from heard(facts, NO_KERNEL, ("image.arch_refused_by_library", "image.hip_code_missing"), refused_by, LIKELY)
    needs_newer = "The library needs a newer driver than the node has."
    yield from heard(facts, TOO_OLD, ("cuda.driver_too_old_for_call",), needs_newer, LIKELY)
    older = "The image is older than the card."
    if not any(facts.said("cuda.no_kernel_image")):
        yield from heard(facts, NO_KERNEL, ("image.card_newer",), older, POSSIBLE)
    yield from heard(
        facts, COMPILED, ("image.compiled_at_start",), "The program has no code for this card, only PTX.", POSSIBLE
    )
    uncompiled = "The driver cannot compile the program's code for the card."
    yield from heard(facts, NO_KERNEL, ("cuda.ptx_refused",), uncompiled, POSSIBLE)
    for node, pod, found in by_place(
        facts.said(
            "image.library_missing",
            "image.symbol_missing",
            "image.cudnn",
            "image.toolkit_differs",
            "image.verbs_missing",
            "image.library_not_opened",
            "image.built_for_other",
            "image.part_missing",
            "image.extension_not_built",
            "image.transport_library_missing",
            "image.hip_library_missing",
        )
    ):
        yield LIBRARY.finding(_library(found), LIKELY, found, node=node, pod=pod)
    if not any(facts.said("image.library_missing", "image.library_not_opened")):
        two = "The NCCL that is found is not the one that the framework was built with."
        yield from heard(facts, LIBRARY, ("image.collectives_told",), two, POSSIBLE)
        yield from heard(
            facts, LIBRARY, ("image.base_told",), "The base image lacks libraries that the program needs.", POSSIBLE
        )
    for node, pod, found in by_place(facts.said("pod.wrong_architecture")):
        yield ARCHITECTURE.finding(
            "The image has nothing for the processor of the node.", ESTABLISHED, found, node=node, pod=pod
        )


def _other_driver(facts: Facts) -> Iterator[Answer]:
    """Libraries of a driver in the image, by their version: the runtime mounts those of the node's driver only."""
    for node, pod, found in by_place(facts.said("driver.dso_differs")):
        if value(found[0], "kernel") != value(found[0], "library"):
            kernel, library = value(found[0], "kernel"), value(found[0], "library")
            cause = f"The module is of {kernel}, the library of {library}: a new driver without a restart, or an image "
            cause += "that brings its own."
            yield version_skew.SKEW.finding(cause, LIKELY, found, node=node, pod=pod, layer=Layer.L6)
    driver = {said.get("version") for said in facts.said("context.driver_version")}
    others = [said for said in facts.said("image.driver_library") if driver and said.get("version") not in driver]
    if others and not any(facts.said("nvml.version_mismatch", "driver.api_mismatch")):
        versions = listed(values(others, "version"))
        cause = f"A library of driver {versions} is there, and the driver is {listed(sorted(driver))}."
        yield FORWARD.finding(cause, POSSIBLE, others)


def _library(found: list[Said]) -> str:
    if any(said.message == "image.verbs_missing" for said in found):
        if any("kernel ABI" in said.origin.text for said in found):
            return "The RDMA libraries of the image do not fit the kernel of the host."
        return "The image lacks libibverbs, so NCCL finds no RDMA device and uses sockets."
    differs = next((said for said in found if said.message == "image.toolkit_differs"), None)
    if differs:
        return f"Extensions are built with CUDA {differs.get('found')}, the framework is of {differs.get('wanted')}."
    if any(said.message == "image.built_for_other" for said in found):
        return "Parts of the image were built for different releases of CUDA or of each other."
    libraries, symbols = values(found, "library"), [*values(found, "symbol"), *values(found, "version")]
    if libraries:
        return f"The image lacks {listed(libraries)}."
    return f"A library does not have {listed(symbols)}." if symbols else "cuDNN and what was built with it do not fit."


RULE = Rule((TOO_OLD, FORWARD, NO_KERNEL, COMPILED, LIBRARY, ARCHITECTURE), find)
