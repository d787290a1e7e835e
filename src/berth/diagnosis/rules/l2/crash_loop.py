"""L2. The device plugin crashes and nobody has its log: a hint at the usual cause, and what would decide."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.rules.l2.not_injected import WITHOUT_LIBRARY
from berth.diagnosis.rules.l2.places import by_node
from berth.diagnosis.words import WEAK, Effect, Layer, Severity
from berth.evidence.facts import Facts

PLUGIN_CRASHES = Code(
    name="PluginCrashesAtStart",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin crashes again and again",
    meaning="The node advertises no GPU as long as it lasts. Where nothing else is known, it mostly was not started by "
    "the NVIDIA runtime.",
    known_by="The kubelet backs off from restarting the plugin's container. This alone is a hint and no proof.",
    disproved_by="Its log names another reason.",
    counter_check="kubectl logs -n NAMESPACE POD --previous : another reason than the driver's library",
    fix=Fix(
        steps=("kubectl logs -n NAMESPACE POD --previous : read the reason first", *WITHOUT_LIBRARY.fix.steps),
        risk=WITHOUT_LIBRARY.fix.risk,
        rollback=WITHOUT_LIBRARY.fix.rollback,
    ),
    verify=WITHOUT_LIBRARY.verify,
    sources=WITHOUT_LIBRARY.sources,
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.plugin_crashes")).items():
        yield PLUGIN_CRASHES.finding("The plugin's container ends soon after each start.", WEAK, said, node=node)
        if not any(facts.said("runtime.no_nvml", "plugin.not_nvml_platform")):
            yield Unconfirmed(
                what="the log of the device plugin's last run",
                how="kubectl logs -n NAMESPACE POD --previous",
                wanted_for=WITHOUT_LIBRARY.name,
                layer=Layer.L2,
                node=node,
            )


RULE = Rule((PLUGIN_CRASHES,), find)
