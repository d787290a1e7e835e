"""L2. The toolkit's packages do not install, its programs crash, or an engine is older than what it is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

_PACKAGES = (
    "nvidia-container-toolkit, nvidia-container-toolkit-base, libnvidia-container-tools and libnvidia-container1"
)

NOT_INSTALLABLE = Code(
    name="ToolkitPackageNotInstallable",
    layer=Layer.L2,
    cause_class="runtime-install",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="the package manager does not get or does not accept a package of the NVIDIA toolkit",
    meaning="The node has no NVIDIA runtime, or an old one, until the repository and the versions are right.",
    known_by="apt, dnf, zypper or pacman name a package of the toolkit or its repository in their error.",
    disproved_by="nvidia-ctk --version answers with the version that was wanted.",
    counter_check="on NODE: apt-cache policy nvidia-container-toolkit (dnf list --showduplicates) : a candidate",
    fix=Fix(
        steps=(
            "no such package, no Release file, a list full of HTML: the lists by distribution are gone; take the one "
            "for all, https://nvidia.github.io/libnvidia-container/stable/deb (rpm), and remove older lists of "
            "nvidia-docker and nvidia-container-runtime",
            "key: write it anew to /usr/share/keyrings and name it in signed-by; two lists must not name two keys",
            f"versions that differ: name one version for {_PACKAGES} together",
            "FIPS, no digest: a release whose packages carry a digest, from the rpm list for all",
        ),
        risk="none for what runs",
        rollback="restore the former list",
    ),
    verify=("nvidia-ctk --version : prints it", "nvidia-container-cli info : driver and devices"),
    sources=("NVIDIA container toolkit documentation, installation", "apt, dnf: their own errors"),
)

CRASHES = Code(
    name="ToolkitProgramCrashes",
    layer=Layer.L2,
    cause_class="runtime-install",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="a program of the NVIDIA toolkit crashes",
    meaning="GPU containers do not start, or stay in Created: the program ends by a signal before its part is done.",
    known_by="The kernel, the runtime or a shell reports the signal, for a program or library of the toolkit.",
    disproved_by="nvidia-container-cli info and nvidia-ctk cdi generate run through on the same host.",
    counter_check="on NODE: nvidia-container-cli -k -d /dev/tty info : runs through; coredumpctl list : no entry of it",
    fix=Fix(
        steps=(
            f"install the last release that worked, or a newer one: one version of {_PACKAGES}",
            "crash inside libnvidia-ml or libcuda: the driver's libraries are of two versions; install it again",
            "until then: CDI in the place of the legacy hook, which needs no libnvidia-container",
        ),
        risk="none for what runs",
        rollback="the former packages",
    ),
    verify=("nvidia-container-cli info on NODE : no crash", "a GPU container starts"),
    sources=("NVIDIA/libnvidia-container releases", "Linux, messages of a segmentation fault"),
)

DOCKER_TOO_OLD = Code(
    name="EngineWithoutGpuRequests",
    layer=Layer.L2,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the container engine, or compose, is older than the way in which GPUs are asked for",
    meaning="The installed version does not know it. --gpus needs Docker 19.03, devices in a compose file need "
    "docker-compose 1.28 or the plugin, --runtime needs Docker 1.12.",
    known_by="The engine or compose refuses the option or key.",
    disproved_by="docker version and docker compose version are newer than that, and it is them that are called.",
    counter_check="docker version --format '{{.Server.Version}}'; docker compose version : 19.03, 1.28 or newer",
    fix=Fix(
        steps=(
            "update Docker and compose from Docker's own repository",
            "until then: --runtime=nvidia with NVIDIA_VISIBLE_DEVICES, or default-runtime nvidia in daemon.json",
        ),
        risk="an update restarts the daemon: its containers end unless live-restore is on",
        rollback="the former packages",
    ),
    verify=("docker run --rm --gpus all ubuntu nvidia-smi -L : lists the GPUs",),
    sources=("Docker release notes 19.03", "Compose specification: devices"),
)

IMEX_MISREAD = Code(
    name="ImexChannelsMisread",
    layer=Layer.L2,
    cause_class="runtime-install",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the toolkit stumbles over the IMEX channels that an image asks for",
    meaning="Release 1.17.0 takes the value all of older images (with CUDA_VERSION, without NVIDIA_REQUIRE_CUDA) for "
    "a channel: these do not start, others do.",
    known_by="nvidia-container-cli cannot parse its information on IMEX.",
    disproved_by="NVIDIA_IMEX_CHANNELS of the pod names something that is no number.",
    counter_check="on NODE: nvidia-container-cli -V : 1.17.1 or newer",
    fix=Fix(
        steps=(
            f"bring {_PACKAGES} to 1.17.1 or newer, all of one version",
            "until then: NVIDIA_IMEX_CHANNELS= (empty) in the container's environment",
        ),
        risk="none for what runs",
        rollback="the former packages",
    ),
    verify=("the container starts",),
    sources=("NVIDIA/nvidia-container-toolkit report 797 and release notes 1.17.1",),
)


def find(facts: Facts) -> Iterator[Answer]:
    mounted = {(one.origin.source, one.origin.node) for one in facts.said("runtime.file_is_mount")}
    refused = [
        one
        for one in facts.said("runtime.package_unavailable")
        if (one.origin.source, one.origin.node) not in mounted  # what is mounted cannot be replaced, whatever the list
    ]
    for node, said in by_node(refused).items():
        yield NOT_INSTALLABLE.finding("The package manager refuses a package of the toolkit.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("runtime.program_crashed")).items():
        what = first(said, "program", "program2", "program3", "library").strip() or "A hook of the toolkit"
        by_cdi = any(re.search(r"cdi-hook|createContainer", one.origin.text) for one in said)
        yield CRASHES.finding(
            f"{what} ended by a signal.", LIKELY, said, node=node, cause_class="cdi" if by_cdi else None
        )
    for node, said in by_node(facts.said("runtime.docker_too_old")).items():
        what = first(said, "flag", "flag2", "key", "key2") or "devices"
        yield DOCKER_TOO_OLD.finding(f"It does not know {what}.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("runtime.imex_misread")).items():
        why = first(said, "why")
        yield IMEX_MISREAD.finding(
            f"The channels are not understood{': ' + why if why else ''}.", ESTABLISHED, said, node=node
        )


RULE = Rule((NOT_INSTALLABLE, CRASHES, DOCKER_TOO_OLD, IMEX_MISREAD), find)
