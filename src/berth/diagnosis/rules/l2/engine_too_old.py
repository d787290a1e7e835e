"""L2. An engine or a low-level runtime is older than the way in which it is asked for devices."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

WITHOUT_CDI = Code(
    name="EngineWithoutCdi",
    layer=Layer.L2,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the container engine takes a CDI name for a file",
    meaning="It is from before the Container Device Interface: whatever the specification says, it looks for a device "
    "file of that name. Podman knows the names since 4.1 (not in builds), Docker since 25, nerdctl since 2.",
    known_by="The engine says that a file with a name like nvidia.com/gpu=0 does not exist.",
    disproved_by="podman --version or docker version on the node shows a release with CDI, and it is the one that was "
    "called.",
    counter_check="on NODE: podman --version ; docker version --format '{{.Server.Version}}' : 4.1, 25 or newer",
    fix=Fix(
        steps=(
            "update the engine; a distribution's own packages may be years old (Ubuntu 22.04 has Podman 3.4)",
            "until then: Docker with --gpus, Podman with the NVIDIA runtime (--runtime) in the mode cdi",
            "podman build: start the build in a container that was run with the device, or update",
        ),
        risk="an update of the engine restarts its service",
        rollback="install the former packages",
    ),
    verify=("podman run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi -L : lists the GPUs",),
    sources=("NVIDIA container toolkit documentation, CDI support", "Podman and Docker release notes"),
)

RUNTIME_TOO_OLD = Code(
    name="LowLevelRuntimeTooOld",
    layer=Layer.L2,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the low-level runtime does not know the version of the container's specification",
    meaning="The engine, or an edit for devices, writes a newer specification than crun or runc reads: containers with "
    "devices do not start, others may.",
    known_by="crun or runc refuses the version.",
    disproved_by="The same program starts a container with the same device from the command line.",
    counter_check="on NODE: crun --version ; runc --version : the release that the engine's documentation asks for",
    fix=Fix(
        steps=(
            "update crun or runc on NODE; look that no old copy comes first in the engine's PATH",
            "until then name another one: podman --runtime runc, or runtimes in the NVIDIA toolkit's config.toml",
        ),
        risk="none for what runs",
        rollback="install the former package",
    ),
    verify=("a container with the device starts",),
    sources=("containers/crun, libcrun: supported versions", "OCI runtime specification, releases"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("cdi.name_as_path")).items():
        device = first(said, "device", "device2", "device3", "device4")
        yield WITHOUT_CDI.finding(
            f"The engine looks for a file named {device}: it does not know CDI names.", ESTABLISHED, said, node=node
        )
    for node, said in by_node(facts.said("runtime.low_level_too_old")).items():
        program = first(said, "program", "program2") or "It"
        yield RUNTIME_TOO_OLD.finding(f"{program} refuses the version.", LIKELY, said, node=node)


RULE = Rule((WITHOUT_CDI, RUNTIME_TOO_OLD), find)
