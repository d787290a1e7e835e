"""L3. The device plugin has called devices unhealthy, and takes that back only when it is started anew."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import UNSAID, Advertised
from berth.evidence.formats.plugin_config import PluginConfig

# Xids of the hardware itself, whatever the program did: double-bit errors, a remapping that failed, the bus, NVLink.
A_SIGN = 0.5  # that a figure is low says little of why
OF_HARDWARE = frozenset({48, 62, 64, 74, 79, 95, 110, 136, 140})

_MEND = Fix(
    steps=("look up the Xid first: kernel log of NODE, NVIDIA's Xid catalogue",
           "an error of the program (13, 31, 43, 45, 69 …): delete the plugin's pod on NODE, it starts with a clean "
           "verdict",
           "DP_DISABLE_HEALTHCHECKS=<xids> where such an error keeps taking devices away",
           "an error of the hardware: drain NODE and reset or replace the GPU before the plugin is started anew"),
    risk="a card that is really ill gets work again",
    rollback="cordon the node",
)  # fmt: skip

XID_MARKED = Code(
    name="XidMarkedUnhealthy",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Error,
    effect=Effect.DevicesUnhealthy,
    title="the device plugin marked a device unhealthy after an Xid",
    meaning="The device is taken from what the node offers and stays away for ever: the plugin never looks again.",
    known_by="The plugin's log: XidCriticalError, or 'device marked unhealthy'.",
    disproved_by="Allocatable equals capacity now, or the plugin was started anew after that.",
    counter_check="kubectl get node NODE -o jsonpath={.status.allocatable}: as many as capacity",
    fix=_MEND,
    verify=("kubectl get node NODE: RESOURCE allocatable equals capacity, and still does an hour later",),
    sources=("k8s-device-plugin internal/rm/health.go", "k8s-device-plugin issues 189, 234, 111"),
)

HEALTH_EVENTS_FAIL = Code(
    name="PluginHealthEventsFail",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Error,
    effect=Effect.DevicesUnhealthy,
    title="the device plugin cannot read health events, and gives up on the devices",
    meaning="All devices of the node may be withdrawn at once without one of them being ill, or health is not watched "
    "any more.",
    known_by="'Error waiting for event', a health check that does not start, or a device 'too old' for it.",
    disproved_by="nvidia-smi shows a lost GPU: then the events failed because of that one.",
    counter_check="on NODE: nvidia-smi -L and dmesg | grep -i xid: a GPU was lost at that time (then that is the "
    "cause)",
    fix=Fix(
        steps=("delete the plugin's pod on NODE so that it asks the driver anew",
               "an old card without such events: plugin 0.14 and later offers it all the same",
               "again and again: look for a GPU that comes and goes (dmesg, nvidia-smi)"),
        risk="no new allocations for some seconds",
        rollback="nothing to undo",
    ),
    verify=("kubectl get node NODE: RESOURCE allocatable equals capacity",),
    sources=("k8s-device-plugin internal/rm/health.go", "k8s-device-plugin issue 33"),
)  # fmt: skip

REPLICAS_SPLIT = Code(
    name="ReplicaHealthSplit",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Warning,
    effect=Effect.DevicesUnhealthy,
    title="only some of the replicas of one device are marked unhealthy",
    meaning="A shared device that had a fault is still handed out by its other replicas.",
    known_by="With N replicas a device, allocatable is no multiple of N.",
    disproved_by="Different resources or nodes have different numbers of replicas.",
    counter_check="kubectl get node NODE -o jsonpath={.metadata.labels}: nvidia.com/gpu.replicas is the configured "
    "number",
    fix=Fix(
        steps=("treat all replicas of that UUID as suspect: cordon NODE, look up the Xid in the kernel log",
               "a plugin later than 0.19, which marks them all; then delete the plugin's pod"),
        risk="no new allocations for some seconds",
        rollback="nothing to undo",
    ),
    verify=("kubectl get node NODE: RESOURCE allocatable is a multiple of the replicas",),
    sources=("k8s-device-plugin issue 1929",),
)  # fmt: skip

STILL_OFFERED = Code(
    name="LostDeviceStillOffered",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Error,
    effect=Effect.AccountStale,
    title="the plugin still offers a device that is lost",
    meaning="Its health check sees only Xid events: a device that goes without one stays healthy to it, and pods are "
    "sent to a card that does not answer.",
    known_by="A device is lost, hung or failed, and allocatable has not gone down.",
    disproved_by="nvidia-smi -L lists as many devices as the node offers.",
    counter_check="on NODE: nvidia-smi -L | wc -l: as many as allocatable",
    fix=Fix(
        steps=(
            "kubectl cordon NODE; look for the device in lspci, nvidia-smi, dmesg",
            "delete the plugin's pod: it starts with the devices that answer",
            "repair the device, then uncordon",
        ),
        risk="no new allocations for some seconds",
        rollback="kubectl uncordon NODE",
    ),
    verify=("kubectl get node NODE: RESOURCE allocatable is what nvidia-smi -L lists",),
    sources=("k8s-device-plugin internal/rm/health.go",),
)

WITHHELD = Code(
    name="DevicesWithheld",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="the node offers fewer devices than it has",
    meaning="What is missing cannot be used until the reason is gone and the plugin has been started anew.",
    known_by="Allocatable is smaller than capacity: the plugin calls the rest unhealthy, or it has gone.",
    disproved_by="The two are equal in a newer reading.",
    counter_check="kubectl get node NODE -o jsonpath='{.status.capacity}{.status.allocatable}': equal now",
    fix=_MEND,
    verify=("kubectl get node NODE: RESOURCE allocatable equals capacity",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/manager.go: GetCapacity",),
)


_NO_EVENTS = ("plugin.health_events_fail", "plugin.too_old_for_health", "reported.all_unhealthy")
_OFFERED_STILL = (
    "reported.lost_still_offered", "reported.vanished_still_offered", "reported.hung_still_offered",
    "reported.health_unwatched", "reported.gone_still_offered", "reported.offers_more_than_there",
)  # fmt: skip
_KEPT = ("reported.healthy_after_restart", "reported.no_recovery", "reported.never_looked_at_again")


def find(facts: Facts) -> Iterator[Answer]:
    yield from _marked(facts)
    marked = set(by_node(facts.said("plugin.xid")))
    for node, said in by_node(facts.said(*_NO_EVENTS)).items():
        if node not in marked:
            yield HEALTH_EVENTS_FAIL.finding("The plugin cannot read health events from the driver.", LIKELY, said)
    yield from _split(facts)
    yield from _withheld(facts)
    for said in by_node(facts.said("reported.fewer_offered", "reported.smi_has_more")).values():
        if any(_is_fewer(one) for one in said):
            yield WITHHELD.finding("The node offers fewer devices than somebody counts on it.", A_SIGN, said)
    for said in by_node(facts.said("reported.fewer_registered")).values():
        yield WITHHELD.finding("The node offers fewer devices than somebody counts on it.", A_SIGN, said)
    for said in by_node(facts.said(*_OFFERED_STILL)).values():
        yield STILL_OFFERED.finding("A device is lost, and the plugin still calls it healthy.", POSSIBLE, said)
    not_by_plugin = {one.origin for one in facts.said("reported.not_back_with_plugin")}
    for said in by_node(one for one in facts.said(*_KEPT) if one.origin not in not_by_plugin).values():
        yield XID_MARKED.finding(
            "The verdict is gone with a new start of the plugin: it was kept, not renewed.", POSSIBLE, said
        )
    for said in by_node(facts.said("reported.user_fault_is_illness")).values():
        yield XID_MARKED.finding("The plugin takes a program's fault for an ill device.", LIKELY, said)


_IN_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "eight": 8}


def _is_fewer(said: Said) -> bool:
    left, all_of_them = ("", "")
    for end in ("", "2", "3", "4", "5"):
        left, all_of_them = left or said.get(f"left{end}"), all_of_them or said.get(f"all{end}")
    return _number(left) < _number(all_of_them)


def _number(word: str) -> int:
    return _IN_WORDS.get(word.lower()) or int(word or 0)


def _marked(facts: Facts) -> Iterator[Answer]:
    of_mig = {one.origin for one in facts.said("plugin.mig_unplaced")}
    for said in by_node(facts.said("plugin.xid", "plugin.marked_unhealthy")).values():
        xids = sorted({int(one.get("xid")) for one in said if one.get("xid")})
        device = said_of(one.get("device") for one in said)
        if not xids and (not _is_plain(said) or any(one.origin in of_mig for one in said)):
            continue
        worst = [xid for xid in xids if xid in OF_HARDWARE]
        again = any(_is_later(start, said) for start in facts.said("plugin.registered"))
        named = f"Xid {', '.join(map(str, xids))}" if xids else "a reason that its log does not say here"
        yield XID_MARKED.finding(
            f"The plugin withdrew {device or 'a device'} after {named}, and does not look again."
            + (f" Xid {worst[0]} is an error of the hardware." if worst else ""),
            WEAK if again else ESTABLISHED if xids and not worst else LIKELY if xids else POSSIBLE,
            said,
            resource=said_of(one.get("resource") for one in said) or "nvidia.com/gpu",
            layer=Layer.L0 if worst else None,
            cause_class="hw-fault" if worst else None,
        )


def _is_later(start: Said, verdicts: list[Said]) -> bool:
    """A plugin that registered after its verdicts has forgotten them."""
    return all(one.origin.source == start.origin.source and one.origin.line < start.origin.line for one in verdicts)


def _is_plain(said: list[Said]) -> bool:
    """A verdict by itself: with a reason beside it, the rule of that reason answers."""
    reasons = ("placement", "too old", "waiting for event", "device handle")
    return not any(word in one.origin.text for one in said for word in reasons)


def _split(facts: Facts) -> Iterator[Answer]:
    for said in facts.said("reported.replicas_left"):
        replicas = int(said.get("replicas") or said.get("of") or 0)
        left = int(said.get("allocatable") or said.get("left") or 0)
        if replicas > 1 and left % replicas:
            yield _split_finding(said, replicas, left)
    told = [*facts.said("reported.replicas_split"), *filter(_is_one_less, facts.said("reported.replica_lost"))]
    for several in by_node(told).values():
        yield REPLICAS_SPLIT.finding("One replica of a device is marked, its others are not.", LIKELY, several)
    factors = {one.replicas for one in facts.of(PluginConfig) if one.replicas > 1}
    for offer in facts.of(Advertised):
        is_shared = offer.capacity > 0 and any(offer.capacity % factor == 0 for factor in factors)
        if is_shared and UNSAID < offer.allocatable < offer.capacity:
            factor = max(factor for factor in factors if offer.capacity % factor == 0)
            if offer.allocatable % factor:
                yield _split_finding(offer, factor, offer.allocatable)


def _is_one_less(said: Said) -> bool:
    had, left = (int(said.get(what) or said.get(f"{what}2") or 0) for what in ("of", "left"))
    return had - left == 1


def _split_finding(fact: Said | Advertised, replicas: int, left: int) -> Answer:
    return REPLICAS_SPLIT.finding(
        f"{left} allocatable with {replicas} replicas a device: some replicas of one device are marked, its others are "
        "not.",
        LIKELY,
        [fact],
        node=fact.name if isinstance(fact, Advertised) else "",
        resource=fact.resource if isinstance(fact, Advertised) else "nvidia.com/gpu",
    )


def _withheld(facts: Facts) -> Iterator[Answer]:
    for offer in facts.of(Advertised):
        if 0 <= offer.allocatable < offer.capacity:
            yield WITHHELD.finding(
                f"{offer.resource}: {offer.capacity} there, {offer.allocatable} allocatable.",
                A_SIGN,
                [offer],
                node=offer.name,
                resource=offer.resource,
            )


RULE = Rule((XID_MARKED, HEALTH_EVENTS_FAIL, REPLICAS_SPLIT, STILL_OFFERED, WITHHELD), find)
