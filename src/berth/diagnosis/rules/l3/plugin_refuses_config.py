"""L3. The device plugin refuses its configuration, or a request that its configuration forbids."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.plugin_config import PluginConfig
from berth.evidence.formats.smi_facts import DeviceSeen

CONFIG_REFUSED = Code(
    name="PluginConfigRefused",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin refuses its configuration file",
    meaning="The plugin ends at once, and the node offers nothing until the file is mended.",
    known_by="'unable to load config', 'unable to validate flags', replicas below 2, no resources under sharing.",
    disproved_by="A later start with the same file succeeds.",
    counter_check="kubectl logs of the plugin: 'Running with config' after its last start",
    fix=Fix(
        steps=("mend the field that is named: version v1; sharing.timeSlicing.resources with name and replicas of 2 or "
               "more; known option values only",
               "the plugin reads the ConfigMap's new text by itself; else delete its pod"),
        risk="the plugin restarts; running pods keep their devices",
        rollback="the former configuration",
    ),
    verify=("kubectl logs of the plugin: 'Running with config' shows the file, then 'Registered device plugin'",),
    sources=("k8s-device-plugin api/config/v1",),
)  # fmt: skip

SHARED_REQUEST = Code(
    name="SharedRequestTooLarge",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="a pod asks for more than one share of a device",
    meaning="Two shares give no more memory or time, and may be the same GPU; with failRequestsGreaterThanOne (always "
    "with MPS) the plugin refuses, and the kubelet rejects the pod for good.",
    known_by="'maximum request size for shared resources is 1'.",
    disproved_by="The pod asks for one.",
    counter_check="kubectl get pod POD -n NAMESPACE -o yaml | grep -A2 limits: RESOURCE 1",
    fix=Fix(
        steps=("ask for one share; a pod that needs several GPUs belongs on a node without sharing",
               "or allow it: failRequestsGreaterThanOne: false (time-slicing), knowing that it gives nothing more",
               "delete the rejected pods"),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("the new pod runs",),
    sources=("k8s-device-plugin README: failRequestsGreaterThanOne", "gpu-operator issue 386"),
)  # fmt: skip


_WHY = (
    "reason", "why", "why2", "why3", "why4", "why5", "why6", "option", "option2", "option3", "option4",
    "option5", "option6", "why7", "why8", "why9", "why10", "why11",
)  # fmt: skip

_REFUSED = (
    "plugin.config_refused", "sharing.replicas_refused", "reported.config_makes_it_crash", "reported.replicas_too_few",
    "reported.config_key_unknown", "plugin.vendor_config_refused",
)  # fmt: skip

FOR_TEGRA = Code(
    name="PluginLooksForTegra",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="the device plugin is told to look for a Tegra on a machine with cards",
    meaning="deviceDiscoveryStrategy tegra offers one integrated GPU and asks NVML for nothing: of several cards one "
    "is offered.",
    known_by="deviceDiscoveryStrategy is tegra, and the machine has more processors or cards than any Jetson.",
    disproved_by="The node is a Jetson or another Tegra.",
    counter_check="on NODE: ls /etc/nv_tegra_release: there",
    fix=Fix(
        steps=("set deviceDiscoveryStrategy to auto or nvml (chart value, DEVICE_DISCOVERY_STRATEGY)",
               "with nvml the plugin has to find libnvidia-ml: runtimeClassName nvidia, or CDI"),
        risk="the plugin restarts; running pods keep their devices",
        rollback="the former value",
    ),
    verify=("kubectl get node NODE -o jsonpath={.status.allocatable}: RESOURCE as many as nvidia-smi -L lists",),
    sources=("k8s-device-plugin README: device discovery strategy", "k8s-device-plugin issue 995"),
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    tegra, large = list(facts.said("plugin.told_tegra")), list(facts.said("host.many_cpus"))
    discrete = [device for device in facts.of(DeviceSeen) if device.pci]
    if tegra and (large or len(discrete) > 1) and not any(facts.said("host.is_tegra")):
        yield FOR_TEGRA.finding(
            "The plugin is told to look for a Tegra's one integrated GPU, on a machine with cards of its own.",
            POSSIBLE,
            [*tegra, *large[:1], *discrete[:2]],
            resource="nvidia.com/gpu",
        )
    # The MIG manager reads another file in the same words.
    of_mig = {one.origin for one in facts.said("mig.")}
    refused = [
        one for one in facts.said(*_REFUSED) if one.origin not in of_mig and "mig-parted" not in one.origin.text.lower()
    ]
    for said in by_node(refused).values():
        why = said_of(next((one.get(name) for name in _WHY if one.get(name)), "") or _of_node(one) for one in said)
        if not any(facts.said("sharing.mps_refused")):
            yield CONFIG_REFUSED.finding(
                f"The plugin cannot use its configuration{f': {why}' if why else ''}.", LIKELY, said
            )
    for config in facts.of(PluginConfig):
        few = [one for one in config.resources if one.replicas == 1]
        if few and not config.is_in_effect:
            yield CONFIG_REFUSED.finding(
                f"{few[0].name or 'A resource'} is to have 1 replica; the plugin takes 2 and more.", LIKELY, [config]
            )
    for one in facts.said("plugin.shared_request_too_large"):
        asked = one.get("asked") or one.get("found")
        most = one.get("most") or one.get("most2") or "1"
        yield SHARED_REQUEST.finding(
            f"{asked or 'More than one'} share{'s' if asked != '1' else ''} asked for, {most} allowed.",
            ESTABLISHED,
            [one],
            resource=one.get("resource") or one.get("resource2"),
        )
    for said in by_node(facts.said("reported.shares_asked")).values():
        yield SHARED_REQUEST.finding("More than one share asked for, 1 allowed.", LIKELY, said)


def _of_node(said: Said) -> str:
    return "it does not know the name of its node (NODE_NAME)" if said.get("empty") else ""


RULE = Rule((CONFIG_REFUSED, SHARED_REQUEST, FOR_TEGRA), find)
