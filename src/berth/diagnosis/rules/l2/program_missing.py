"""L2. Programs of the NVIDIA runtime are not on the host, or not where its configuration says."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

MISSING = Code(
    name="NvidiaRuntimeProgramMissing",
    layer=Layer.L2,
    cause_class="runtime-install",
    severity=Severity.Critical,
    effect=Effect.ContainersDoNotStart,
    title="a program of the NVIDIA container runtime is missing",
    meaning="Containers of that runtime do not start; where it is the default, no container of the node does, the "
    "toolkit's own pod included.",
    known_by="The container runtime cannot execute it, or it ends before it says anything.",
    disproved_by="The file exists under that path, is executable and prints its version.",
    counter_check="on NODE: ls -l /usr/bin/nvidia-container-runtime /usr/local/nvidia/toolkit/ : the named file",
    fix=Fix(
        steps=(
            "after an uninstalled operator: take the nvidia runtimes and default_runtime_name out of the runtime's "
            "configuration, restart the runtime; then install anew",
            "else install the package nvidia-container-toolkit, or let the toolkit DaemonSet run, and set BinaryName "
            "to "
            "its path",
            "a hook of a CDI specification: name the program where it is (NVIDIA_CDI_HOOK_PATH of the plugin, "
            "nvidiaCDIHookPath of the DRA driver; Talos: /usr/local/bin), and let the specification be written again",
            "a moved toolkit.installDir: configuration and directory must name the same path",
            "libraries that are missing or of two versions: install libnvidia-container1 and -tools of one release; "
            "others (libelf, libseccomp, libcap, a newer glibc) by the host's packages, or another toolkit",
        ),
        risk="a restart of the runtime interrupts container starts for seconds",
        rollback="restore the saved configuration",
    ),
    verify=("nvidia-container-runtime --version on NODE : prints it", "a GPU pod starts"),
    sources=("NVIDIA container toolkit documentation, installation", "GPU Operator documentation, uninstalling"),
)

NO_DOCKER_DRIVER = Code(
    name="DockerHasNoGpuDriver",
    layer=Layer.L2,
    cause_class="runtime-install",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="Docker has no device driver for GPUs",
    meaning="--gpus does not work: the toolkit is not installed, or the daemon has not been restarted since.",
    known_by="Docker cannot select a device driver with the capability gpu.",
    disproved_by="docker info lists the runtime nvidia, and nvidia-container-runtime-hook is in the PATH of the "
    "daemon.",
    counter_check="docker info | grep -i runtimes ; which nvidia-container-runtime-hook : nvidia, a path",
    fix=Fix(
        steps=(
            "install nvidia-container-toolkit; nvidia-ctk runtime configure --runtime=docker",
            "systemctl restart docker",
            "rootless, snap, Docker Desktop: the toolkit must be in the same system as the daemon",
        ),
        risk="a restart of Docker stops containers without live-restore",
        rollback="remove the runtime from daemon.json",
    ),
    verify=("docker run --rm --gpus all ubuntu nvidia-smi -L : lists the GPUs",),
    sources=("moby, daemon device drivers", "NVIDIA container toolkit documentation, Docker"),
)

NOT_SET_UP = Code(
    name="DockerNotSetUpForGpus",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the toolkit is installed, and this Docker does not use it",
    meaning="Docker looks for the toolkit's hook when it starts, on the search path of its own service. One that was "
    "not restarted since, a rootless one, one from snap or Docker Desktop does not see it.",
    known_by="Docker finds no driver with the capability gpu although the toolkit is installed.",
    disproved_by="docker info lists the runtime nvidia, and which nvidia-container-runtime-hook finds nothing.",
    counter_check="docker context show: the Docker that was set up, not another; docker info | grep -i runtimes: "
    "nvidia",
    fix=Fix(
        steps=(
            "nvidia-ctk runtime configure --runtime=docker; systemctl restart docker",
            "rootless: the same with --config=$HOME/.config/docker/daemon.json, systemctl --user restart docker, and "
            "nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place",
            "Docker from snap or Docker Desktop: use the packages of Docker, or docker context use default",
        ),
        risk="a restart of dockerd ends its containers unless live-restore is on",
        rollback="restore daemon.json",
    ),
    verify=("docker run --rm --gpus all ubuntu nvidia-smi -L : lists the GPUs",),
    sources=("NVIDIA Container Toolkit documentation: rootless mode", "moby/moby, daemon/nvidia_linux.go"),
)
LOW_LEVEL = Code(
    name="LowLevelRuntimeMissing",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the NVIDIA runtime does not find the runtime that it wraps",
    meaning="Containers of the NVIDIA runtime do not start: neither runc nor crun is where it looks.",
    known_by="The NVIDIA runtime names the candidates that it looked for.",
    disproved_by="One of the candidates is in the PATH of the container runtime's service.",
    counter_check="on NODE: grep runtimes /etc/nvidia-container-runtime/config.toml ; which runc crun : one is found",
    fix=Fix(
        steps=(
            'set runtimes = ["/full/path/of/runc"] under [nvidia-container-runtime] (K3s, RKE2 and k0s carry their own '
            "runc under their data directory)",
            "or add that directory to the PATH of the service",
        ),
        risk="none for what runs",
        rollback="restore the file",
    ),
    verify=("a GPU pod starts",),
    sources=("NVIDIA/nvidia-container-toolkit, internal/oci: low-level runtime",),
)


# What the loader says where both files are there and one is older than the other.
_OTHER_RELEASE = re.compile(
    r"symbol lookup error|undefined symbol|relocation error|version \W{0,2}[\w.]+\W{0,2} not found", re.IGNORECASE
)


def _of_another_release(said: list[Said]) -> bool:
    return all(_OTHER_RELEASE.search(one.origin.text) for one in said)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.binary_missing", "runtime.library_missing")).items():
        program = (
            first(said, *(f"binary{n}" for n in ("", "2", "3", "4", "5", "6"))) or "a program or library of the toolkit"
        )
        library = first(said, "library", "library2")
        sure = POSSIBLE if all(one.get("absent") for one in said) else LIKELY  # or another place is meant
        why = f": {library} is missing or too old" if library else ""
        # A hook that a specification names: the path in the specification is what is wrong.
        by_cdi = any(
            "createContainer hook" in one.origin.text or "createRuntime hook" in one.origin.text for one in said
        )
        yield MISSING.finding(
            f"{program} cannot be run{why}{', which a CDI specification names as a hook' if by_cdi else ''}.",
            sure,
            said,
            node=node,
            cause_class="cdi" if by_cdi else "version-mismatch" if _of_another_release(said) else None,
        )
    for node, said in by_node(facts.said("runtime.told_program_gone")).items():
        yield MISSING.finding("Programs of the toolkit are said to be gone.", POSSIBLE, said, node=node)
    for node, said in by_node(facts.said("runtime.no_device_driver")).items():
        if first(said, "driver") == "cdi":
            continue
        if there := list(facts.said("runtime.toolkit_there")):
            yield NOT_SET_UP.finding(
                "The toolkit is installed, and the Docker that was asked does not know it.",
                LIKELY,
                [*said, *there],
                node=node,
            )
        else:
            yield NO_DOCKER_DRIVER.finding("Docker finds no driver with the capability gpu.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("runtime.low_level_missing")).items():
        yield LOW_LEVEL.finding("None of the candidates was found.", ESTABLISHED, said, node=node)


RULE = Rule((MISSING, NO_DOCKER_DRIVER, NOT_SET_UP, LOW_LEVEL), find)
