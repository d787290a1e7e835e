"""L3. The device plugin's image is of another kind of machine than the node."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

OTHER_MACHINE = Code(
    name="PluginImageOfOtherMachine",
    layer=Layer.L3,
    cause_class="image",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="there is no image of the device plugin for the node's processor",
    meaning="The plugin's container cannot be pulled or run on this machine (arm64, ppc64le); the node offers no "
    "devices.",
    known_by="'no matching manifest for …' or 'exec format error' for the plugin's container.",
    disproved_by="The same image runs on another node of that architecture.",
    counter_check="kubectl get node NODE -o jsonpath={.status.nodeInfo.architecture}; docker manifest inspect "
    "<image>: the same architecture is in it",
    fix=Fix(
        steps=(
            "a release of the plugin that is built for the architecture (NVIDIA: arm64 since 0.11)",
            "none is published: build it from source for that architecture, and name it in the manifest",
            "a mirror that carries one architecture only: mirror the whole list of manifests",
        ),
        risk="the plugin restarts",
        rollback="the former image",
    ),
    verify=("kubectl get pod of the plugin on NODE: Running",),
    sources=("k8s-device-plugin issue 155", "ROCm k8s-device-plugin issue 151"),
)


_NAMES = ("device-plugin", "device plugin", "plugin image", "plugin's image")


def find(facts: Facts) -> Iterator[Answer]:
    of_plugins = [one for one in facts.said("pod.wrong_architecture") if _is_plugins(one)]
    for said in by_node(of_plugins).values():
        platform = said_of(one.get("platform") for one in said)
        yield OTHER_MACHINE.finding(f"The plugin's image has no part for {platform or 'this processor'}.", LIKELY, said)
    for said in by_node(facts.said("reported.image_architecture")).values():
        yield OTHER_MACHINE.finding("The plugin's image has no part for this processor.", LIKELY, said)


def _is_plugins(one: Said) -> bool:
    where = f"{one.origin.pod} {one.origin.text}".lower()
    return any(name in where for name in _NAMES) and "core dumped" not in where


RULE = Rule((OTHER_MACHINE,), find)
