"""L3. A device plugin sends a list that the kubelet cannot take: more devices than fit into one message."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import ESTABLISHED, Effect, Layer, Severity
from berth.evidence.facts import Facts

TOO_LARGE = Code(
    name="PluginListTooLarge",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="the device plugin's list is larger than the kubelet takes",
    meaning="A plugin that counts memory or cores as devices sends one entry for each unit. Beyond 4 MiB gRPC refuses "
    "the list: the kubelet ends the stream, and the resource is at 0 or keeps its old number.",
    known_by="ListAndWatch ends with 'received message larger than max'.",
    disproved_by="The resource is there with all its units after that.",
    counter_check="kubectl get node NODE -o jsonpath={.status.allocatable}: RESOURCE, as many as configured",
    fix=Fix(
        steps=(
            "count in larger units (Volcano: --gpu-memory-factor; GiB in the place of MiB)",
            "or leave the memory to annotations of the scheduler, so that it is no resource of the kubelet",
        ),
        risk="requests have to be written in the new unit",
        rollback="the former unit",
    ),
    verify=("kubectl get node NODE -o jsonpath={.status.allocatable}: RESOURCE is there and stays",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/plugin/v1beta1/client.go", "kubernetes issue 127049"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("kubelet.list_too_large")).values():
        size, most = said[0].get("size"), said[0].get("most")
        yield TOO_LARGE.finding(
            f"The list has {size} bytes, the kubelet takes {most}.",
            ESTABLISHED,
            said,
            resource=said_of(one.get("resource") for one in said),
        )


RULE = Rule((TOO_LARGE,), find)
