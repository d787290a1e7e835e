"""L2. containerd runs and does not serve the kubelet: its CRI plugin is off."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen
from berth.evidence.formats.container_facts import RuntimeConfig

CRI_DISABLED = Code(
    name="CriPluginDisabled",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Critical,
    effect=Effect.ContainersDoNotStart,
    title="containerd's CRI plugin is disabled",
    meaning="The kubelet cannot start pods with this containerd. Packages for Docker ship containerd so, and a toolkit "
    "that starts from that file carries it on.",
    known_by="The runtime service is unknown to the socket, or disabled_plugins names cri in the file that is used.",
    disproved_by="`crictl info` answers.",
    counter_check="on NODE: crictl info : answers with RuntimeReady",
    fix=Fix(
        steps=(
            'take "cri" out of disabled_plugins in the file that this containerd reads (/etc/containerd/config.toml, '
            "or the distribution's own)",
            "where the toolkit copied the system's file into the distribution's: give it "
            "RUNTIME_CONFIG_SOURCE=file, and "
            "delete `disabled_plugins` and `imports` that do not belong there",
            "systemctl restart containerd and the kubelet on NODE",
        ),
        risk="a restart of containerd interrupts container starts for seconds",
        rollback="restore the saved file and restart containerd",
    ),
    verify=("crictl info : RuntimeReady true", "kubectl get node NODE : Ready"),
    sources=("containerd, docs/getting-started.md", "NVIDIA/nvidia-container-toolkit, containerd config source"),
)

CRI_UNLOADABLE = Code(
    name="CriPluginDoesNotLoad",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Critical,
    effect=Effect.ContainersDoNotStart,
    title="containerd runs without its CRI plugin, which refuses its configuration",
    meaning="containerd is active and the kubelet finds no runtime: the node becomes NotReady after the restart that "
    "the toolkit made.",
    known_by="containerd logs that it failed to load the CRI plugin, mostly for an invalid configuration: a default "
    "runtime without its table, or tables that were written for another version.",
    disproved_by="`crictl info` answers.",
    counter_check="on NODE: journalctl -u containerd | grep -i 'failed to load plugin' : nothing of cri since the last "
    "start",
    fix=Fix(
        steps=(
            "`containerd config dump` on NODE: default_runtime_name must name a table under runtimes",
            "mend the file that sets it, or a drop-in that replaces the whole runtimes table; nvidia-ctk runtime "
            "configure --config-source=command starts from what is in effect",
            "systemctl restart containerd and the kubelet on NODE",
        ),
        risk="a restart of containerd interrupts container starts for seconds",
        rollback="restore the saved file and restart containerd",
    ),
    verify=("crictl info : RuntimeReady true", "kubectl get node NODE : Ready"),
    sources=("containerd, pkg/cri/config: ValidatePluginConfig", "NVIDIA/nvidia-container-toolkit pull request 686"),
)


def find(facts: Facts) -> Iterator[Answer]:
    said = list(facts.said("runtime.cri_off"))
    unloadable = list(facts.said("runtime.cri_unloadable"))
    for node, of_node in by_node(unloadable).items():
        why = first(of_node, "why", "why2").strip().rstrip('"\\')
        cause = f"The CRI plugin is not loaded{': ' + why if why else ''}."
        yield CRI_UNLOADABLE.finding(cause, ESTABLISHED, of_node, node=node)
    said = [] if unloadable else said
    for node, of_node in by_node(said).items():
        yield CRI_DISABLED.finding("The socket does not serve the runtime API.", ESTABLISHED, of_node, node=node)
    for config in facts.of(RuntimeConfig):
        off = [name for name in config.disabled_plugins if name == "cri" or name.endswith((".cri", ".cri.v1.runtime"))]
        # Docker's containerd is shipped so, and K3s and its kin bring another.
        serves_another = any(
            config.node in ("", one.name) and (one.runtime.startswith("docker") or one.kubelet.partition("+")[2])
            for one in facts.of(NodeSeen)
        )
        if not off or (serves_another and config.path.startswith("/etc/containerd") and not said):
            continue
        sure = ESTABLISHED if said else LIKELY if config.nvidia_handlers or config.is_in_effect else POSSIBLE
        yield CRI_DISABLED.finding(
            f"disabled_plugins holds {off[0]!r}{' in ' + config.path if config.path else ''}"
            f"{', in a file that also configures the NVIDIA runtime' if config.nvidia_handlers else ''}.",
            sure,
            [config, *said],
            node=config.node,
        )


RULE = Rule((CRI_DISABLED, CRI_UNLOADABLE), find)
