"""L4. One partition has two names: the memory in its profile's name was rounded in two ways."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import Advertised, NodeSeen
from berth.evidence.formats.mig_names import MigNamed, Profile, profiles_in, rounded_otherwise

DIFFER = Code(
    name="MigProfileNamesDiffer",
    layer=Layer.L4,
    cause_class="mig-state",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="one partition has two names that differ by a rounded gigabyte",
    meaning="A component computes the profile's name from the card's memory, another takes it from NVML or a table, "
    "and they round otherwise. Pods that ask by one name wait for ever where the node offers the other.",
    known_by="Names of partitions with the same number of slices whose memory differs by one GiB.",
    disproved_by="The two names are of two kinds of card (nvidia-smi mig -lgip on each node).",
    counter_check="on NODE: nvidia-smi mig -lgip: one of the two names is listed, the other is not",
    fix=Fix(
        steps=(
            "ask for the name that the node offers: kubectl get node NODE -o jsonpath='{.status.allocatable}'",
            "bring device plugin, feature discovery and whoever partitions to releases that name it the same way",
        ),
        risk="a change of the plugin's release may rename resources of other cards",
        rollback="the former releases",
    ),
    verify=("kubectl get node NODE -o jsonpath='{.status.allocatable}': the name that pods ask for, above 0",),
    sources=("k8s-device-plugin, internal/resource and internal/mig", "mig-parted, pkg/types"),
)


MOST_TEXTS = 3  # of more, nobody knows whether they are of one kind of card


def find(facts: Facts) -> Iterator[Answer]:
    texts = facts.of(MigNamed)
    pair = rounded_otherwise(one for text in texts for one in text.profiles)
    if pair and len(texts) <= MOST_TEXTS:
        one, other = map(_name, pair)
        in_labels = {profile for text in texts for profile in text.in_labels}
        yield DIFFER.finding(
            f"{one} and {other} are one partition.",
            LIKELY,
            texts,
            resource=f"nvidia.com/{other}",
            cause_class="node-labels" if in_labels & {*pair} else None,
        )
    offers: dict[str, list[Advertised]] = defaultdict(list)
    for offer in facts.of(Advertised):
        # Names at 0 are of partitions that are no more.
        if offer.resource.startswith("nvidia.com/mig-") and max(offer.capacity, offer.allocatable) > 0:
            offers[offer.name].append(offer)
    for node in facts.of(NodeSeen) if offers else ():
        mine = offers.get(node.name, ())
        labels = [name for name in node.labels if "/mig-" in name]
        named = " ".join((*(offer.resource for offer in mine), *labels))
        if node.name and (pair := rounded_otherwise(profiles_in(named))):
            one, other = map(_name, pair)
            cause = f"Labels and resources of the node name one partition {one} and {other}."
            yield DIFFER.finding(
                cause, LIKELY, [node, *mine], node=node.name, resource=f"nvidia.com/{other}", cause_class="node-labels"
            )


def _name(profile: Profile) -> str:
    return f"mig-{profile[0]}g.{profile[1]}gb"


RULE = Rule((DIFFER,), find)
