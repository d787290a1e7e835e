"""L3. A device plugin serves, and its configuration selects no device; or what it was given is not what it reads."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

POOL_EMPTY = Code(
    name="PluginSelectsNothing",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="the device plugin's selectors match no device of the node",
    meaning="The plugin runs and registers, and its list is empty: the resource stays at 0 or never appears.",
    known_by="The plugin says that a device pool is empty, or sends an empty list.",
    disproved_by="The list is filled with a later update: the devices came after the plugin.",
    counter_check="on NODE: lspci -nn -d <vendor>: and ls /sys/class/infiniband: what the selectors ask for is there",
    fix=Fix(
        steps=(
            "compare vendors, device ids, drivers, interface names and link types of the plugin's ConfigMap with the "
            "node: lspci -nnk, ip link, ibdev2netdev",
            "virtual functions: are they made, and bound to the driver that the selector names?",
            "the device lies in the network namespace of a pod, or its module is not loaded: mend that first",
            "delete the plugin's pod on NODE, so that it looks again",
        ),
        risk="no new allocations of that plugin for some seconds",
        rollback="the former ConfigMap",
    ),
    verify=("kubectl get node NODE -o jsonpath={.status.allocatable}: RESOURCE is there",),
    sources=("sriov-network-device-plugin pkg/resources", "k8s-rdma-shared-dev-plugin pkg/resources"),
)

NOT_HANDED_ON = Code(
    name="PluginConfigNotHandedOn",
    layer=Layer.L4,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="the device plugin is not told of its new configuration",
    meaning="The manager beside the plugin wrote the file and could not signal the plugin: it goes on with the old "
    "configuration, or with none.",
    known_by="The config manager finds no process, or may not send it a signal.",
    disproved_by="The plugin's log shows the new configuration under 'Running with config'.",
    counter_check="kubectl get pod of the plugin -o yaml | grep shareProcessNamespace: true",
    fix=Fix(
        steps=(
            "shareProcessNamespace: true for the plugin's pod, and the same user for both containers (the chart does "
            "so where a ConfigMap is set)",
            "the plugin's container was not up yet: delete its pod, so that it starts with the file in place",
        ),
        risk="no new allocations for some seconds",
        rollback="nothing to undo",
    ),
    verify=("kubectl logs of the plugin: 'Running with config' shows what the label names",),
    sources=("k8s-device-plugin cmd/config-manager", "k8s-device-plugin issue 1645"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("plugin.pool_empty", "reported.selects_nothing")).values():
        resource = said_of(one.get("resource") or one.get("resource2") or one.get("resource3") for one in said)
        yield POOL_EMPTY.finding(
            f"The plugin has no device for {resource or 'its resource'}.", LIKELY, said, resource=resource
        )
    for said in by_node(facts.said("plugin.config_unsignalled")).values():
        is_denied = any("not permitted" in one.get("denied") for one in said)
        yield NOT_HANDED_ON.finding(
            "The config manager may not signal the plugin."
            if is_denied
            else "The config manager cannot put the new configuration into the place of the old one."
            if any(one.get("exists") or one.get("why2") or one.get("why3") for one in said)
            else "The config manager refuses what it was given."
            if any(one.get("why4") or one.get("why5") or one.get("why6") for one in said)
            else "The config manager finds no plugin to signal.",
            POSSIBLE,
            said,
            cause_class="permission" if is_denied else None,
        )


RULE = Rule((POOL_EMPTY, NOT_HANDED_ON), find)
