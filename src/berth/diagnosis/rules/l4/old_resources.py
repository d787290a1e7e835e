"""L4. A trap: a resource at 0 that the node had once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import Advertised
from berth.evidence.formats.plugin_config import PluginConfig

OLD_AT_ZERO = Code(
    name="OldResourceAtZero",
    layer=Layer.L4,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.CapacityMissing,
    title="a resource at 0 beside one that is offered is no fault",
    meaning="The kubelet never removes a resource that was registered once; after a change of partitions, sharing or "
    "name the former name stays at 0.",
    known_by="One resource of a vendor has capacity 0, another of the same vendor on that node has devices.",
    disproved_by="Pods ask for the name at 0, and nobody changed partitions or names.",
    counter_check="kubectl get node NODE -o jsonpath={.metadata.labels}: mig.config, mig.strategy or sharing-strategy "
    "explain the new name",
    fix=Fix(
        steps=(
            "nothing to mend; pods must ask for the name that has devices",
            "to clear it: restart the kubelet after its checkpoint was removed, with no GPU pod on NODE",
        ),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("kubectl get node NODE -o jsonpath={.status.allocatable}: devices under the new name",),
    sources=("kubernetes issue 92396", "k8s-device-plugin issues 240, 214"),
    is_trap=True,
    instead_of=("ResourceAtZero",),
)


def find(facts: Facts) -> Iterator[Answer]:
    if any(config.renames for config in facts.of(PluginConfig)):
        return  # a configuration that renames is a finding of its own (sharing_config.py)
    if told := list(facts.said("harmless.old_resource", "harmless.old_resource_lines")):
        yield OLD_AT_ZERO.finding("It is the name of partitions that are no more.", LIKELY, told)
    by_place: dict[tuple[str, str], list[Advertised]] = defaultdict(list)
    for offer in facts.of(Advertised):
        by_place[(offer.name, offer.resource.partition("/")[0])].append(offer)
    for (node, vendor), offers in by_place.items():
        gone = [one for one in offers if max(one.capacity, one.allocatable) == 0]
        there = [one for one in offers if max(one.capacity, one.allocatable) > 0]
        if vendor and gone and there:
            yield OLD_AT_ZERO.finding(
                f"{', '.join(one.resource for one in gone)} at 0, and {_counts(there)}: the first is a former name.",
                LIKELY,
                [*gone, *there],
                node=node,
                resource=there[0].resource,
            )


def _counts(offers: list[Advertised]) -> str:
    return ", ".join(f"{one.resource} {max(one.capacity, one.allocatable)}" for one in offers)


RULE = Rule((OLD_AT_ZERO,), find)
