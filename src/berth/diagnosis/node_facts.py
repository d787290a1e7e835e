"""The facts of a node that its account is made of, by what they are about."""

from __future__ import annotations

from collections import defaultdict

from berth.evidence.fact import pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.boundary_facts import (
    Filling,
    Given,
    Holder,
    HostCount,
    KubeletOffers,
    Parted,
    PluginAnswer,
    Visible,
)
from berth.evidence.formats.cluster_facts import Advertised, NodeSeen, PodSeen
from berth.evidence.formats.smi_facts import DeviceSeen

DONE = ("Succeeded", "Failed")
MIG = "nvidia.com/mig-"


class NodeFacts:
    """All facts of one node, as far as its account needs them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: NodeSeen | None = None
        self.devices: dict[str, DeviceSeen] = {}  # by UUID or PCI address
        self.counts: dict[str, int] = {}
        self.advertised: dict[str, Advertised] = {}
        self.plugins: dict[str, list[PluginAnswer]] = defaultdict(list)
        self.offers: dict[str, KubeletOffers] = {}
        self.given: list[Given] = []
        self.visible: list[Visible] = []
        self.holders: list[Holder] = []
        self.pods: list[PodSeen] = []
        self.filling: dict[str, float] = {}  # UUID → seconds until it is full
        self.parted: dict[str, str] = {}  # resource → since when


def plain(profile: str) -> str:
    """As resources spell it: `1g.10gb+me` → `1g.10gb.me`."""
    return profile.replace("+", ".")


def nodes_of(facts: Facts) -> list[NodeFacts]:
    """Nodes that anything is known of, by name."""
    nodes: dict[str, NodeFacts] = {}

    def of(name: str) -> NodeFacts:
        if name not in nodes:
            nodes[name] = NodeFacts(name)
        return nodes[name]

    for seen in facts.of(NodeSeen):
        of(seen.name).seen = seen
    for advertised in facts.of(Advertised):
        of(advertised.name or advertised.node).advertised[advertised.resource] = advertised
    for device in facts.of(DeviceSeen):
        key = device.uuid or pci_words(device.pci) or f"#{device.index}"
        before = of(device.node).devices.get(key)
        if before is None or len(device.quotes) >= len(before.quotes):
            of(device.node).devices[key] = device
    for count in facts.of(HostCount):
        of(count.node).counts[count.by] = count.count
    for answer in facts.of(PluginAnswer):
        of(answer.node).plugins[answer.resource].append(answer)
    for offer in facts.of(KubeletOffers):
        of(offer.node).offers[offer.resource] = offer
    for given in facts.of(Given):
        of(given.node).given.append(given)
    for visible in facts.of(Visible):
        of(visible.node).visible.append(visible)
    for holder in facts.of(Holder):
        of(holder.node).holders.append(holder)
    for filling in facts.of(Filling):
        of(filling.node).filling[filling.device] = filling.full_in_s
    for parted in facts.of(Parted):
        of(parted.node).parted[parted.resource] = parted.since
    for pod in facts.of(PodSeen):
        if pod.on and pod.phase not in DONE:
            of(pod.on).pods.append(pod)
    return [nodes[name] for name in sorted(nodes)]
