"""L2. The device plugin hands out devices in a way that the runtime does not take."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Fact
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen
from berth.evidence.formats.container_facts import RuntimeConfig, ToolkitConfig

FIRST_WITH_CDI = (1, 7)  # of containerd, where it has to be switched on; from 2.0 it is on
ALWAYS_WITH_CDI = (2, 4)  # where enable_cdi is ignored. Source: containerd, RELEASES.md, removed properties

CDI_OFF = Code(
    name="CdiSwitchedOff",
    layer=Layer.L2,
    cause_class="cdi",
    severity=Severity.Error,
    effect=Effect.DevicesNotInjected,
    title="devices are handed out by CDI and the runtime does not do CDI",
    meaning="Containers start without their GPUs, and nothing reports it: the runtime ignores the names.",
    known_by="The device list strategy is cdi-cri or cdi-annotations, and containerd is older than 1.7 or has "
    "enable_cdi = false; or Docker knows no driver named cdi.",
    disproved_by="The pods are started by the NVIDIA runtime in CDI mode, which reads the annotations itself.",
    counter_check="on NODE: containerd --version ; containerd config dump | grep enable_cdi : 1.7 or newer, true",
    fix=Fix(
        steps=(
            "containerd 1.7: enable_cdi = true under the CRI plugin; containerd 1.6 and older: update it, or use the "
            "strategy envvar with the nvidia runtime class",
            'Docker: "features": {"cdi": true} in daemon.json (on by default from 28.2)',
            "restart the runtime on NODE",
        ),
        risk="container starts pause for seconds",
        rollback="restore the saved configuration",
    ),
    verify=("nvidia-smi -L in a new GPU pod lists its GPU",),
    sources=("containerd release notes 1.7 and 2.0: CDI", "NVIDIA/k8s-device-plugin, device list strategies"),
)

MOUNTS_REFUSED = Code(
    name="DeviceListRefused",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.DevicesNotInjected,
    title="the toolkit does not accept the way in which the devices are asked for",
    meaning="Containers start without GPUs or not at all, although the plugin has assigned some.",
    known_by="The hook ignores NVIDIA_VISIBLE_DEVICES of an unprivileged container; or the plugin uses volume-mounts "
    "and the toolkit's setting for it is off.",
    disproved_by="The container's environment or mounts match what config.toml accepts.",
    counter_check="on NODE: grep accept-nvidia /etc/nvidia-container-runtime/config.toml : as the plugin's strategy "
    "needs",
    fix=Fix(
        steps=(
            "strategy volume-mounts: accept-nvidia-visible-devices-as-volume-mounts = true, and "
            "accept-nvidia-visible-devices-envvar-when-unprivileged = false only together with it",
            "strategy envvar: leave accept-nvidia-visible-devices-envvar-when-unprivileged = true",
            "operator: toolkit.env ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS and devicePlugin.env "
            "DEVICE_LIST_STRATEGY, changed together",
        ),
        risk="containers that were started before keep what they have",
        rollback="set the values back",
    ),
    verify=("nvidia-smi -L in a new GPU pod lists its GPU",),
    sources=("NVIDIA/nvidia-container-toolkit, cmd/nvidia-container-runtime-hook", "NVIDIA/k8s-device-plugin, README"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.no_device_driver")).items():
        if first(said, "driver") == "cdi":
            yield CDI_OFF.finding("Docker has no device driver cdi: the feature is off.", ESTABLISHED, said, node=node)
    for node, said in by_node(facts.said("cdi.said_off", "cdi.told_old_containerd")).items():
        yield CDI_OFF.finding("The runtime here is said not to do CDI.", POSSIBLE, said, node=node)
    strategy = list(facts.said("runtime.cdi_strategy"))
    # The NVIDIA runtime reads annotations itself; the field of the CRI only the container runtime does.
    by_field = any(one.get("strategy") == "cdi-cri" for one in strategy)
    by_runtime = any(one.nvidia_handlers for one in facts.of(RuntimeConfig)) and not by_field
    if strategy and not by_runtime:
        name = first(strategy, "strategy")
        sure = LIKELY if by_field else POSSIBLE
        for version, fact in _containerd(facts):
            if version < FIRST_WITH_CDI:
                yield CDI_OFF.finding(
                    f"The strategy is {name}; containerd {version[0]}.{version[1]} does not know CDI.",
                    sure,
                    [*strategy, fact],
                    node=fact.node,
                )
        always = {fact.node for version, fact in _containerd(facts) if version >= ALWAYS_WITH_CDI}
        for config in facts.of(RuntimeConfig):
            if config.engine == "containerd" and config.enable_cdi is False and config.node not in always:
                yield CDI_OFF.finding(
                    f"The strategy is {name} and enable_cdi is false.", sure, [*strategy, config], node=config.node
                )
    for node, said in by_node(facts.said("runtime.envvar_refused")).items():
        yield MOUNTS_REFUSED.finding(
            "The hook does not read the device list of an unprivileged container.", ESTABLISHED, said, node=node
        )
    for node, said in by_node(facts.said("runtime.told_envvar_refused")).items():
        yield MOUNTS_REFUSED.finding(
            "The plugin names devices in the environment and the toolkit does not read it there.",
            LIKELY if first(said, "both") else POSSIBLE,
            said,
            node=node,
        )
    mounts = list(facts.said("runtime.volume_strategy"))
    off = list(facts.said("runtime.mounts_off"))
    if mounts and off and not strategy and not any(True for _ in facts.of(ToolkitConfig)):
        yield MOUNTS_REFUSED.finding(
            "The plugin hands devices out as volume mounts and the toolkit does not accept them.",
            LIKELY,
            [*mounts, *off],
        )
    for toolkit in facts.of(ToolkitConfig):
        if mounts and not strategy and toolkit.accepts_volume_mounts is False:
            yield MOUNTS_REFUSED.finding(
                "The plugin hands devices out as volume mounts and accept-nvidia-visible-devices-as-volume-mounts is "
                "false.",
                LIKELY,
                [*mounts, toolkit],
                node=toolkit.node,
            )


def _containerd(facts: Facts) -> Iterator[tuple[tuple[int, int], Fact]]:
    said: list[tuple[str, Fact]] = [(one.runtime, one) for one in facts.of(NodeSeen) if "containerd" in one.runtime]
    said += [(first([one], "version", "version2", "version3"), one) for one in facts.said("runtime.containerd_version")]
    for words, fact in said:
        if found := re.search(r"(\d+)\.(\d+)", words):
            yield (int(found[1]), int(found[2])), fact


RULE = Rule((CDI_OFF, MOUNTS_REFUSED), find)
