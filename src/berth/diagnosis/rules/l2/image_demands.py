"""L2. The image asks the runtime for what it cannot give, or brings what it would give."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

NEWER_CUDA = Code(
    name="ImageNeedsNewerDriver",
    layer=Layer.L2,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the image requires a newer CUDA than the node's driver offers",
    meaning="The container is refused at its start, on this node only: nodes with a newer driver take it.",
    known_by="The runtime compares NVIDIA_REQUIRE_* of the image with the driver and names the condition.",
    disproved_by="nvidia-smi on the node shows a CUDA version that meets the condition.",
    counter_check="on NODE: nvidia-smi | grep 'CUDA Version' : at least that of the image",
    fix=Fix(
        steps=(
            "take an image for this driver's CUDA version, or bring the driver of the node up to date",
            "keep such pods off older nodes: nodeSelector nvidia.com/cuda.driver-version.major, or "
            "nvidia.com/cuda.driver.major in older releases",
            "NVIDIA_DISABLE_REQUIRE=1 only where the image carries compatibility libraries and the card supports them",
        ),
        risk="a new driver needs the node drained",
        rollback="the former image or driver",
    ),
    verify=("the container starts; nvidia-smi in it shows CUDA Version >= that of the image",),
    sources=("NVIDIA/libnvidia-container, src/cli/dsl.c", "NVIDIA CUDA compatibility documentation"),
)

BRINGS_DRIVER = Code(
    name="ImageBringsDriverFiles",
    layer=Layer.L2,
    cause_class="image",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the image has driver files where the runtime puts the host's",
    meaning="The container does not start, or would run with a library of another driver. Images committed from a "
    "running GPU container have them.",
    known_by="The runtime cannot create a file or link because it exists already.",
    disproved_by="The image has no libcuda.so.1 or libnvidia-ml.so.1 of its own.",
    counter_check="docker run --rm --entrypoint ls IMAGE -l /usr/lib/x86_64-linux-gnu | grep -e libcuda -e "
    "libnvidia : none",
    fix=Fix(
        steps=(
            "build the image from a Dockerfile, not by committing a container; remove libcuda* and libnvidia-* of the "
            "driver from it",
            "a program (usr/bin/nvidia-smi): libnvidia-container of another release than the toolkit, or hook and CDI "
            "both "
            "inject; install one release, use one of the two",
            "only a link differs (libGLX_indirect, unexpected link target): a toolkit newer than 1.17.1 replaces it",
        ),
        risk="none",
        rollback="the former image",
    ),
    verify=("the container starts; nvidia-smi in it shows the host's driver version",),
    sources=("NVIDIA/libnvidia-container, src/nvc_mount.c", "NVIDIA/nvidia-container-toolkit, create-symlinks hook"),
)

CAPABILITY = Code(
    name="DriverCapabilitiesRefused",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the container asks for driver capabilities that the toolkit does not allow",
    meaning="The container is refused at its start.",
    known_by="The hook names the capabilities and those that are allowed.",
    disproved_by="NVIDIA_DRIVER_CAPABILITIES of the pod is a subset of supported-driver-capabilities.",
    counter_check="on NODE: grep supported-driver-capabilities /etc/nvidia-container-runtime/config.toml : a superset",
    fix=Fix(
        steps=(
            "correct NVIDIA_DRIVER_CAPABILITIES in pod or image: compute,utility is enough for CUDA",
            "or allow them in the toolkit's config.toml",
        ),
        risk="none",
        rollback="the former value",
    ),
    verify=("the container starts",),
    sources=("NVIDIA/nvidia-container-toolkit, cmd/nvidia-container-runtime-hook",),
)

UNASKED = Code(
    name="ComputeNotAskedFor",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.DevicesNotInjected,
    title="the container was given the driver's tools and not its compute libraries",
    meaning="The runtime puts in only what was asked for: with utility alone nvidia-smi works and libcuda is not "
    "there, so that no CUDA program finds a device.",
    known_by="The capabilities of the container name utility, and neither compute nor all.",
    disproved_by="ldconfig -p in the container lists libcuda.so.1.",
    counter_check="docker inspect CONTAINER | grep -A4 -i capabilities ; env of the container : compute is there",
    fix=Fix(
        steps=(
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility (or all) in image or pod",
            "Docker and Compose: capabilities [gpu, compute, utility], or only [gpu], which leaves it to the image",
        ),
        risk="none",
        rollback="the former value",
    ),
    verify=("ldconfig -p | grep libcuda in the container : libcuda.so.1",),
    sources=("NVIDIA container toolkit documentation, driver capabilities",),
)

NO_LOADER = Code(
    name="ImageWithoutGlibc",
    layer=Layer.L2,
    cause_class="image",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the image cannot run the driver's programs",
    meaning="The runtime has put nvidia-smi and the libraries into the container; they are built for glibc, and the "
    "image (Alpine, distroless, scratch) has another C library or none.",
    known_by="nvidia-smi is in the container and the kernel says no such file on its execution: its loader is missing.",
    disproved_by="ls /lib64/ld-linux-x86-64.so.2 in the container: it is there.",
    counter_check="in the container: ls -l /usr/bin/nvidia-smi /lib64/ld-linux-x86-64.so.2 : both are there",
    fix=Fix(
        steps=("build on an image with glibc: ubuntu, debian, ubi, or nvidia/cuda base",),
        risk="a larger image",
        rollback="the former image",
    ),
    verify=("nvidia-smi in the container answers",),
    sources=("execve(2): ENOENT for a missing interpreter", "NVIDIA container toolkit: requirements of images"),
)

HOST_NEWER = Code(
    name="HostLibraryTooNewForImage",
    layer=Layer.L6,
    cause_class="image",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the host's driver files want a newer C library than the image has",
    meaning="Files of the host are put into the container and were built against a newer glibc than the image's: they, "
    "or every program that loads them, fail there. Seen with Apptainer --nv, NixOS and Talos.",
    known_by="The loader names a version of the C library and the driver's file that requires it.",
    disproved_by="ldd --version in the container is as new as that version.",
    counter_check="in the container: ldd --version : at least the version that is named",
    fix=Fix(
        steps=(
            "take an image of a distribution as new as the host's",
            "or hand in only what the program needs: Apptainer without graphics libraries (nvliblist.conf), "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        ),
        risk="none",
        rollback="the former image",
    ),
    verify=("nvidia-smi in the container answers",),
    sources=("Apptainer documentation, GPU support", "ld.so(8): symbol versions"),
)

NOT_IN_IMAGE = Code(
    name="ProgramNotInImage",
    layer=Layer.L6,
    cause_class="image",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the image does not have the program that the container is to run",
    meaning="The container ends before it begins. Another image or tag than the manifest was written for, or a command "
    "line that was put into one word.",
    known_by="The low-level runtime finds no such program in the image's PATH.",
    disproved_by="The program is in the image, and a volume or an environment hides it.",
    counter_check="docker run --rm --entrypoint which IMAGE PROGRAM : a path",
    fix=Fix(
        steps=(
            "see whether image and tag are those that the manifest or chart was written for",
            "command as a list of words: [sleep, infinity] and not one word with blanks",
        ),
        risk="none",
        rollback="the former manifest",
    ),
    verify=("the container starts",),
    sources=("opencontainers/runc and containers/crun: start of the container's process",),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.cli_requirement")).items():
        condition = first(said, "condition") or first(said, "why", "why2")
        yield NEWER_CUDA.finding(f"The image requires {condition}.", ESTABLISHED, said, node=node)
    for node, said in by_node(facts.said("runtime.cli_exists")).items():
        path = first(said, "path", "path2")
        is_program = "/bin/nvidia-" in path
        by_hook = all(one.get("link") for one in said)
        yield BRINGS_DRIVER.finding(
            f"{path or 'A link'} is there already: "
            + (
                "it is injected twice, by a faulty release of the toolkit, or the image has it from a commit."
                if is_program
                else "of the image."
            ),
            POSSIBLE if is_program else LIKELY,
            said,
            node=node,
            # The hook of CDI that makes links gave up at one that was there, and replaces it since 1.17.1.
            cause_class="runtime-install" if is_program else "cdi" if by_hook else None,
        )
    for node, said in by_node(facts.said("runtime.no_loader")).items():
        yield NO_LOADER.finding("nvidia-smi is there and its loader is not.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("runtime.capability_refused")).items():
        asked, allowed = first(said, "asked"), first(said, "allowed")
        yield CAPABILITY.finding(
            f"Asked for {asked}{'; allowed are ' + allowed if allowed else ''}.", ESTABLISHED, said, node=node
        )
    # Who only looks after devices asks for no more than that.
    missed = list(facts.said("cuda.no_device", "cuda.none_for_framework", "cuda.tool_missing"))
    for node, said in by_node(facts.said("runtime.compute_unasked")).items() if missed else ():
        yield UNASKED.finding("Its capabilities name utility and not compute.", LIKELY, [*said, *missed], node=node)
    for node, said in by_node(facts.said("runtime.newer_glibc")).items():
        yield HOST_NEWER.finding(f"{first(said, 'file')} wants {first(said, 'version')}.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("runtime.program_not_in_image")).items():
        program = first(said, "program", "program2", "program3")
        # A word that begins with a dash is an argument: the manifest counts on an entry point that the image lacks.
        is_plugin = any("device-plugin" in one.origin.text for one in said)
        yield NOT_IN_IMAGE.finding(
            f"{program} is not in the image.",
            LIKELY,
            said,
            node=node,
            layer=Layer.L3 if is_plugin else None,
            cause_class="plugin-config" if is_plugin else None,
        )


RULE = Rule((NEWER_CUDA, BRINGS_DRIVER, CAPABILITY, UNASKED, NO_LOADER, HOST_NEWER, NOT_IN_IMAGE), find)
