"""L3. Faults of the device plugin that its own log does not tell: its memory, and devices named by their index."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

OUT_OF_MEMORY = Code(
    name="PluginOutOfMemory",
    layer=Layer.L3,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin is ended for its memory",
    meaning="While it is down the node offers no devices, and a verdict on ill ones is forgotten.",
    known_by="The plugin's container is OOMKilled, or its memory grows without end.",
    disproved_by="Another container of that pod was ended, or the whole node ran out.",
    counter_check="kubectl describe pod of the plugin: Last State of its container is not OOMKilled; kubectl top pod "
    "--containers: far below its limit",
    fix=Fix(
        steps=(
            "raise the memory limit of the plugin's container (chart: resources.limits.memory), or take it away",
            "it grows again: a newer plugin; a stream that is opened again and again (kubelet log) or health events "
            "that storm (dmesg)",
        ),
        risk="no new allocations for some seconds",
        rollback="the former limit",
    ),
    verify=("kubectl get pod of the plugin: no restarts in a day",),
    sources=("Kubernetes documentation: resources of containers",),
)

INDEX_CHANGED = Code(
    name="DevicesNamedByIndex",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.AccountStale,
    title="devices are named by their index, and the order has changed",
    meaning="After a reboot or a lost GPU the same number is another card: pods get a device that the kubelet's "
    "account does not mean, or two pods one.",
    known_by="deviceIDStrategy is index, and a pod got another GPU than before.",
    disproved_by="deviceIDStrategy is uuid.",
    counter_check="kubectl logs of the plugin | grep deviceIDStrategy: uuid",
    fix=Fix(
        steps=("deviceIDStrategy: uuid in the plugin's configuration", "delete pods that hold a wrong device"),
        risk="the plugin restarts",
        rollback="the former strategy",
    ),
    verify=("NVIDIA_VISIBLE_DEVICES in a new pod is a UUID that nvidia-smi -L lists",),
    sources=("k8s-device-plugin README: deviceIDStrategy",),
)


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("reported.out_of_memory")).values():
        leaks = any(one.get("leak") or one.get("leak2") or one.get("leak3") for one in said)
        yield OUT_OF_MEMORY.finding(
            "The plugin's memory grows without end." if leaks else "The plugin's container was ended for its memory.",
            LIKELY,
            said,
            cause_class="plugin-health" if leaks else None,
        )
    for said in by_node(facts.said("reported.named_by_index")).values():
        yield INDEX_CHANGED.finding("The plugin names devices by their index.", LIKELY, said)


RULE = Rule((OUT_OF_MEMORY, INDEX_CHANGED), find)
