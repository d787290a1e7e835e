"""L4. Sharing as it was written down against what the node offers."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import Advertised, NodeSeen
from berth.evidence.formats.plugin_config import PluginConfig

RENAMED = Code(
    name="ReplicasRenamed",
    layer=Layer.L4,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="shared devices are offered under another name than pods ask for",
    meaning="renameByDefault moves the shares to <resource>.shared; the old name has none any more, and pods that ask "
    "for it wait.",
    known_by="renameByDefault is true, and <resource>.shared has devices where <resource> has none.",
    disproved_by="The waiting pods ask for the .shared name.",
    counter_check="kubectl get pod POD -n NAMESPACE -o yaml | grep nvidia.com: the name that NODE offers",
    fix=Fix(
        steps=(
            "ask for nvidia.com/gpu.shared in the pods",
            "or renameByDefault: false, and the plugin restarted",
        ),
        risk="a change of the name lets all pods that wait for the other name wait",
        rollback="the former option",
    ),
    verify=("kubectl get node NODE -o jsonpath={.status.allocatable}: the name that pods ask for has devices",),
    sources=("k8s-device-plugin README: renameByDefault", "k8s-device-plugin issue 321"),
)

MISPLACED = Code(
    name="SharingOptionMisplaced",
    layer=Layer.L4,
    cause_class="plugin-config",
    severity=Severity.Warning,
    effect=Effect.CapacityMissing,
    title="an option of sharing is ignored by the plugin",
    meaning="The plugin drops keys that it does not know at that place, without a word, and some fields that it does "
    "not support yet, with a warning: names and limits are not what was meant.",
    known_by="renameByDefault, failRequestsGreaterThanOne or resources stand under flags or directly under sharing.",
    disproved_by="The plugin's log shows the option in effect.",
    counter_check="kubectl logs of the plugin, 'Running with config': the option under sharing.timeSlicing",
    fix=Fix(
        steps=("move it under sharing.timeSlicing (or sharing.mps)", "the plugin reads the new ConfigMap by itself; "
               "else delete its pod"),
        risk="the resource may get another name: pods must ask for it",
        rollback="the former place",
    ),
    verify=("kubectl logs of the plugin, 'Running with config': the option is there",),
    sources=("k8s-device-plugin api/config/v1/sharing.go", "k8s-device-plugin issue 1433"),
)  # fmt: skip

NOT_IN_EFFECT = Code(
    name="ReplicasNotInEffect",
    layer=Layer.L4,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="replicas are configured, and the node offers whole devices",
    meaning="The plugin on that node does not use this configuration.",
    known_by="A configuration with N replicas, and a capacity that is no multiple of N.",
    disproved_by="The plugin's log shows the replicas, and the node's status is older than its start.",
    counter_check="kubectl logs of the plugin, 'Running with config': replicas; kubectl get node NODE --show-labels | "
    "tr , '\\n' | grep device-plugin.config",
    fix=Fix(
        steps=("name the ConfigMap and a default: devicePlugin.config.name=<ConfigMap>, "
               "devicePlugin.config.default=<key>",
               "or label NODE: kubectl label node NODE nvidia.com/device-plugin.config=<key>, exactly a key of the "
               "ConfigMap",
               "the ConfigMap must be in the plugin's namespace; a static manifest reads none: use the chart or "
               "--config-file"),
        risk="running pods stay; new ones share devices",
        rollback="the former configuration",
    ),
    verify=("kubectl get node NODE -o jsonpath={.status.capacity}: replicas times the number of GPUs",
            "label nvidia.com/gpu.replicas: the configured number"),
    sources=("k8s-device-plugin cmd/config-manager", "GPU Operator documentation: time-slicing",
             "k8s-device-plugin issues 990, 615"),
)  # fmt: skip

NAME_UNKNOWN = Code(
    name="PluginConfigNameUnknown",
    layer=Layer.L4,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="a node asks for a plugin configuration that does not exist",
    meaning="The config-manager does not find the key, and the plugin on that node does not start or keeps its former "
    "configuration.",
    known_by="'specified config … does not exist', no fallback left, or a label that is no key of the ConfigMap.",
    disproved_by="The ConfigMap has that key by now.",
    counter_check="kubectl get cm -n gpu-operator <ConfigMap> -o jsonpath={.data}: has the key of the label",
    fix=Fix(
        steps=("correct the label nvidia.com/device-plugin.config of NODE, or add the key to the ConfigMap",
               "set a default: devicePlugin.config.default=<key>"),
        risk="the plugin takes the configuration at once; running pods stay",
        rollback="the former label",
    ),
    verify=("kubectl logs of config-manager: 'Successfully updated to config: <key>'",),
    sources=("k8s-device-plugin cmd/config-manager/main.go",),
)  # fmt: skip

OF_OTHER_RELEASE = Code(
    name="PluginConfigOfOtherRelease",
    layer=Layer.L4,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="a component cannot read the shared configuration: a field has another type in its release",
    meaning="Plugin, feature discovery and MPS daemon read one file. Where their releases differ, or a value has the "
    "wrong form, the one that cannot decode it ends.",
    known_by="cannot unmarshal … into Go struct field … of the plugin's configuration.",
    disproved_by="All components are of one release and the file validates: then the value has the wrong form.",
    counter_check="images of the DaemonSets: one version of k8s-device-plugin; the field in that release's README",
    fix=Fix(
        steps=("one release of device plugin, feature discovery and config-manager",
               "or write the field as both read it (a single value in place of a list)"),
        risk="the plugin starts anew; running pods stay",
        rollback="the former ConfigMap",
    ),
    verify=("kubectl logs of both: Running with config, without an error",),
    sources=("k8s-device-plugin api/config/v1", "k8s-device-plugin issue 410"),
)  # fmt: skip

_LABEL = "nvidia.com/device-plugin.config"


def find(facts: Facts) -> Iterator[Answer]:
    configs = facts.of(PluginConfig)
    offers = facts.of(Advertised)
    yield from _renamed(configs, offers)
    for config in configs:
        if config.misplaced:
            yield MISPLACED.finding(
                f"{', '.join(config.misplaced)} is not read there: it belongs under sharing.timeSlicing.",
                ESTABLISHED,
                [config],
            )
    for said in by_node(facts.said("plugin.config_ignored")).values():
        option = said_of(one.get("option") or one.get("name") for one in said)
        yield MISPLACED.finding(f"The plugin says that it ignores {option!r}.", LIKELY, said)
    yield from _not_in_effect(configs, offers, facts)
    for said in by_node(facts.said("reported.config_awaits_restart")).values():
        yield NOT_IN_EFFECT.finding(
            "The configuration was changed, and the plugin works with the one it started with.", LIKELY, said
        )
    for said in by_node(facts.said("plugin.config_name_unknown")).values():
        name = said_of(one.get("name") for one in said)
        yield NAME_UNKNOWN.finding(f"There is no configuration {name or 'for this node'}.", LIKELY, said)
    for said in by_node(facts.said("plugin.config_map_absent")).values():
        name = said_of(one.get("name") or one.get("other") for one in said)
        yield NAME_UNKNOWN.finding(f"There is no ConfigMap {name} in the plugin's namespace.", LIKELY, said)
    for said in by_node(facts.said("plugin.config_of_other_release")).values():
        yield OF_OTHER_RELEASE.finding(
            f"{said[0].get('field')} is written as {said[0].get('has')}, and the component wants another type.",
            POSSIBLE,
            said,
        )
    keys = {config.key for config in configs if config.key}
    for node in facts.of(NodeSeen):
        wanted = node.labels.get(_LABEL, "")
        if wanted and len(keys) > 1 and wanted not in keys:
            yield NAME_UNKNOWN.finding(
                f"{node.name} asks for {wanted!r}; the ConfigMap has {', '.join(sorted(keys))}.",
                POSSIBLE,
                [node],
                node=node.name,
            )


def _renamed(configs: list[PluginConfig], offers: list[Advertised]) -> Iterator[Answer]:
    renames = [config for config in configs if config.renames]
    for shared in offers:
        if not shared.resource.endswith(".shared") or max(shared.capacity, shared.allocatable) <= 0:
            continue
        plain = shared.resource.removesuffix(".shared")
        old = [one for one in offers if one.resource == plain and one.name == shared.name]
        if renames and all(max(one.capacity, one.allocatable) == 0 for one in old):
            yield RENAMED.finding(
                f"The shares are offered as {shared.resource} ({max(shared.capacity, shared.allocatable)}), {plain} "
                "has none.",
                LIKELY if old else POSSIBLE,
                [*renames, *old, shared],
                node=shared.name,
                resource=plain,
            )


def _not_in_effect(configs: list[PluginConfig], offers: list[Advertised], facts: Facts) -> Iterator[Answer]:
    written = [one for one in configs if not one.is_in_effect and one.replicas > 1]
    if not written or any(one.is_in_effect and one.replicas > 1 for one in configs):
        return
    running = [one for one in configs if one.is_in_effect]
    wanted = {node.name: node.labels.get(_LABEL, "") for node in facts.of(NodeSeen)}
    counts = {node.name: _count(node) for node in facts.of(NodeSeen)}
    for offer in offers:
        for config in written:
            names = [one for one in config.resources if one.replicas > 1 and one.name in (offer.resource, "")]
            factor = max((one.replicas for one in names), default=0)
            label = wanted.get(offer.name, "")
            is_for_others = label and config.key and label != config.key
            if not factor or offer.capacity <= 0 or is_for_others:
                continue
            physical = counts.get(offer.name, 0)
            if offer.capacity % factor or (physical and offer.capacity != factor * physical):
                because = (
                    f" The node's label asks for {label!r}." if label else
                    " The plugin says that it runs without replicas." if running else ""
                )  # fmt: skip
                where = f" under {config.key!r}" if config.key else ""
                yield NOT_IN_EFFECT.finding(
                    f"{factor} replicas configured{where}, {offer.resource} is {offer.capacity}.{because}",
                    LIKELY,
                    [config, *running, offer],
                    node=offer.name,
                    resource=offer.resource,
                )
                break


def _count(node: NodeSeen) -> int:
    """Physical GPUs by the label; 0 where partitions make another count of it."""
    words = node.labels.get("nvidia.com/gpu.count", "")
    return int(words) if words.isdigit() and not node.labels.get("nvidia.com/mig.strategy") else 0


RULE = Rule((RENAMED, MISPLACED, NOT_IN_EFFECT, NAME_UNKNOWN, OF_OTHER_RELEASE), find)
