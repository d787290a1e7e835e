"""L2. Programs of the NVIDIA runtime are not on the host, or not where its configuration says."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
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


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.binary_missing", "runtime.library_missing")).items():
        program = first(said, "binary", "binary2", "binary3", "binary4") or "a program or library of the toolkit"
        library = first(said, "library", "library2")
        sure = POSSIBLE if all(one.get("absent") for one in said) else ESTABLISHED
        why = f": {library} is missing or too old" if library else ""
        yield MISSING.finding(f"{program} cannot be run{why}.", sure, said, node=node)
    for node, said in by_node(facts.said("runtime.no_device_driver")).items():
        if first(said, "driver") != "cdi":
            yield NO_DOCKER_DRIVER.finding("Docker finds no driver with the capability gpu.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("runtime.low_level_missing")).items():
        yield LOW_LEVEL.finding("None of the candidates was found.", ESTABLISHED, said, node=node)


RULE = Rule((MISSING, NO_DOCKER_DRIVER, LOW_LEVEL), find)
