"""L2. The toolkit cannot read its own settings, or adds devices through an interface that is off."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.container_facts import RuntimeConfig

SETTINGS_BROKEN = Code(
    name="ToolkitSettingsUnreadable",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the NVIDIA runtime cannot read its own configuration",
    meaning="Containers of that runtime do not start.",
    known_by="The runtime or its hook reports that it cannot load config.toml, or does not know the mode in it.",
    disproved_by="nvidia-ctk config prints the configuration without an error.",
    counter_check="on NODE: nvidia-ctk --config=/etc/nvidia-container-runtime/config.toml config > /dev/null; echo $? "
    ": 0",
    fix=Fix(
        steps=(
            "ldconfig is not host-relative: put an @ before its path (@/sbin/ldconfig, @/sbin/ldconfig.real)",
            "mend the line that it names; modes are auto, legacy, cdi, jit-cdi and csv, as far as the release knows "
            "them",
            "or write it anew: nvidia-ctk config default --output=/etc/nvidia-container-runtime/config.toml",
        ),
        risk="own settings in the file are lost when it is written anew",
        rollback="restore the saved file",
    ),
    verify=("a GPU container starts",),
    sources=("NVIDIA/nvidia-container-toolkit, internal/config",),
)

DOCKER_REFUSED = Code(
    name="DockerConfigRefused",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Critical,
    effect=Effect.ContainersDoNotStart,
    title="dockerd does not start with its configuration",
    meaning="No container starts on the node, GPU or not.",
    known_by="dockerd says that it cannot be configured with daemon.json: no JSON, or a key that a flag sets too.",
    disproved_by="dockerd runs with that file.",
    counter_check="on NODE: dockerd --validate --config-file=/etc/docker/daemon.json : configuration OK",
    fix=Fix(
        steps=(
            "mend daemon.json; a key that the unit's ExecStart sets as well has to be in one place only",
            "nvidia-ctk runtime configure --runtime=docker writes the runtime's part",
            "systemctl restart docker on NODE",
        ),
        risk="a restart of dockerd ends its containers unless live-restore is on",
        rollback="restore the saved file",
    ),
    verify=("docker info answers, and lists the nvidia runtime",),
    sources=("moby/moby, cmd/dockerd: loadDaemonCliConfig",),
)

NRI_ABSENT = Code(
    name="NriUnavailable",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.DevicesNotInjected,
    title="the toolkit is to add devices by NRI and the runtime has it off",
    meaning="The toolkit's NRI plugin does not register: operands get no driver files and devices.",
    known_by="The plugin cannot reach NRI's socket, or NRI is said to be disabled.",
    disproved_by="The runtime lists the plugin as registered.",
    counter_check="on NODE: ls -l /var/run/nri/nri.sock ; containerd config dump | grep -A3 io.containerd.nri : "
    "exists, "
    "disable = false",
    fix=Fix(
        steps=(
            'containerd 1.7: [plugins."io.containerd.nri.v1.nri"] disable = false, and restart it; from 2.0 NRI is on',
            "CRI-O: enable_nri = true",
            "or cdi.nriPluginEnabled=false in the ClusterPolicy",
        ),
        risk="container starts pause for seconds",
        rollback="restore the saved configuration",
    ),
    verify=("the toolkit's log: the plugin is registered", "the validator is Completed"),
    sources=("containerd, docs/NRI.md", "GPU Operator documentation, NRI plugin"),
)


_DOCKER = ("docker", "docker2", "docker3", "docker4")


def find(facts: Facts) -> Iterator[Answer]:
    refused = {one.node for one in facts.said("runtime.settings_broken") if first([one], *_DOCKER)}
    for config in facts.of(RuntimeConfig):
        if config.engine == "docker" and config.problem and config.node not in refused:
            yield DOCKER_REFUSED.finding(
                f"dockerd cannot read {config.path or 'daemon.json'}: {config.problem}.",
                LIKELY,
                [config],
                node=config.node,
            )
    for node, said in by_node(facts.said("runtime.settings_broken")).items():
        mode = first(said, "mode")
        if docker := first(said, *_DOCKER):
            why = first(said, "why", "why2", "why3", "why4").strip()
            yield DOCKER_REFUSED.finding(f"dockerd refuses {docker}: {why}", ESTABLISHED, said, node=node)
            continue
        if ldconfig := first(said, "ldconfig"):
            cause = f"It takes {ldconfig} only as a program of the host: @{ldconfig}."
            yield SETTINGS_BROKEN.finding(cause, ESTABLISHED, said, node=node)
            continue
        cause = f"It does not know the mode {mode!r}." if mode else "Its config.toml cannot be loaded."
        yield SETTINGS_BROKEN.finding(cause, ESTABLISHED, said, node=node)
    for node, said in by_node(facts.said("runtime.nri_absent")).items():
        yield NRI_ABSENT.finding("NRI does not answer.", LIKELY, said, node=node)


RULE = Rule((SETTINGS_BROKEN, DOCKER_REFUSED, NRI_ABSENT), find)
