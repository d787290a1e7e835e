"""L5. Schedulers of GPU shares (HAMi and its kin) find no card; a scheduler's cache and the cluster disagree."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, listed, value, values
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.failed_scheduling import unplaced

_HAMI = ("HAMi, pkg/device/common/common.go: reasons of the filter", "HAMi documentation: scheduler events")
_VERIFY = ("kubectl get pod POD -n NAMESPACE -o wide: it has a node",)

NO_CARD = Code(
    name="NoCardFitsShare",
    layer=Layer.L5,
    cause_class="capacity",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="no card has enough memory, cores or slots free for the share",
    meaning="The share scheduler looks at each card. The event is short; the reason per card is in its own log.",
    known_by="The filter rejects all nodes: no available node, or a Card... reason.",
    disproved_by="A card with free memory, cores and slots above the request, of a type that the pod takes.",
    counter_check="kubectl logs of the share scheduler with -v=5: a card of the wanted type with enough memory, cores "
    "and slots free",
    fix=Fix(
        steps=(
            "read the reason per card in the scheduler's log; ask for no more memory (MiB) or cores (%) than one "
            "card has free",
            "end idle shares, or allow more slots per card",
        ),
        risk="more slots per card mean more contention",
        rollback="put the old number back",
    ),
    verify=_VERIFY,
    sources=_HAMI,
)
UNREGISTERED = Code(
    name="ShareNodeUnregistered",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="no node has told the share scheduler about its cards",
    meaning="HAMi's device plugin writes the cards of its node into an annotation and renews it; a node without it is "
    "none to the scheduler, however free its GPUs are.",
    known_by="The share scheduler counts every node as unregistered.",
    disproved_by="The node has the annotation hami.io/node-nvidia-register, and hami.io/node-handshake is recent.",
    counter_check="kubectl get node NODE -o yaml | grep -e node-nvidia-register -e node-handshake: both, and recent",
    fix=Fix(
        steps=(
            "label the GPU nodes for the plugin (gpu=on) and see that its pod runs there: kubectl get pods -A -o wide "
            "| grep hami-device-plugin",
            "its log: NVML must load (runtime class nvidia, driver); another device plugin on the node must go",
            "after a restart of the node: restart the plugin, then delete and make the pods anew",
        ),
        risk="a restart of the plugin does not touch running pods",
        rollback="remove the label",
    ),
    verify=_VERIFY,
    sources=("HAMi, pkg/scheduler/scheduler.go: node registration", "HAMi issues 815, 29, 812"),
)
EXCLUDED = Code(
    name="CardsExcludedByPod",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="the pod's own filter excludes every card",
    meaning="Annotations for the type or UUID of cards, or a demand for one NUMA node, leave none.",
    known_by="The filter's reason is a mismatch of type, UUID, rule or NUMA.",
    disproved_by="A free card of that type and UUID.",
    counter_check="kubectl get node -o yaml | grep node-nvidia-register: a card of the wanted type is there",
    fix=Fix(
        steps=("correct the annotations for type or UUID (use-gputype, use-gpuuuid), or drop the NUMA demand",),
        risk="the pod may land on another model",
        rollback="put the annotation back",
    ),
    verify=_VERIFY,
    sources=_HAMI,
)
MORE_THAN_NODE = Code(
    name="MoreDevicesThanNode",
    layer=Layer.L5,
    cause_class="capacity",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="the pod asks for more devices than a node has",
    meaning="A pod is on one node, and no node is that large, empty or not. Shares of one card do not count as devices "
    "either: each unit has to be another card.",
    known_by="The scheduler states both numbers, or the pod's request is above what the largest node offers.",
    disproved_by="A node with at least that many cards.",
    counter_check="nvidia-smi -L | wc -l on the largest node: at least what is asked for",
    fix=Fix(
        steps=("ask for as many devices as the largest node has at most; spread over several pods",),
        risk="none: the pod does not run yet",
        rollback="nothing to undo",
    ),
    verify=_VERIFY,
    sources=_HAMI,
)
LOCKED = Code(
    name="ShareNodeLocked",
    layer=Layer.L5,
    cause_class="kubelet-state",
    severity=Severity.Warning,
    effect=Effect.PodsWait,
    title="a node is locked by a binding that did not end",
    meaning="One binding at a time holds the node's lock. A pod that was deleted in between leaves it until a "
    "time-out.",
    known_by="The scheduler says that the node has been locked, or cannot take or release the lock.",
    disproved_by="The node carries no lock annotation.",
    counter_check="kubectl get node NODE -o yaml | grep mutex.lock: empty",
    fix=Fix(
        steps=("wait for the time-out (5 minutes), or remove the annotation hami.io/mutex.lock when no binding runs",),
        risk="removing it during a binding may give one card twice",
        rollback="nothing to undo",
    ),
    verify=_VERIFY,
    sources=("HAMi, pkg/util/nodelock",),
)
STALE = Code(
    name="SchedulerCacheStale",
    layer=Layer.L5,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.AccountStale,
    title="the scheduler's picture of a node differs from what the node reports",
    meaning="It places onto devices that are gone, or leaves devices idle that are there. Pods are refused by the "
    "kubelet or wait.",
    known_by="The scheduler's log says that its cache is out of step, or idle differs from allocatable.",
    disproved_by="The cache dump equals the node's allocatable less its pods' requests.",
    counter_check="dump the scheduler's cache (kill -USR2 for kube-scheduler and Volcano), against kubectl get node "
    "NODE -o yaml: equal",
    fix=Fix(
        steps=("restart the scheduler; pods are not touched", "bring it to a release that handles shrinking devices"),
        risk="no placement for some seconds",
        rollback="nothing to undo",
    ),
    verify=("the cache dump equals the node's allocatable; waiting pods get nodes",),
    sources=("volcano, pkg/scheduler/api/node_info.go: out of sync", "kubernetes, scheduler cache comparer"),
)


def find(facts: Facts) -> Iterator[Answer]:
    excluded = list(facts.said("hami.card_excluded"))
    for node, pod, found in by_place(excluded):
        yield EXCLUDED.finding(
            f"Reasons of the filter: {listed(values(found, 'why'))}.", LIKELY, found, node=node, pod=pod
        )
    above = list(facts.said("hami.more_than_node"))
    for node, pod, found in by_place(above):
        asked, has = value(found[0], "asked"), value(found[0], "has")
        numbers = f" {asked} are asked for, {has} are there." if asked else ""
        yield MORE_THAN_NODE.finding(
            f"The pod asks for more devices than the node has.{numbers}", LIKELY, found, node=node, pod=pod
        )
    unregistered = [said for said in facts.said("scheduler.unplaced") if _is_unregistered(said)]
    for node, pod, found in by_place(unregistered):
        yield UNREGISTERED.finding(
            f"Nodes of {found[0].get('total')} are unregistered, and no other reason is given.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    if not excluded and not above and not unregistered:
        found_none = list(facts.said("hami.no_card"))
        for node, pod, found in by_place(found_none):
            whys = values(found, "why")
            is_sick = bool(whys) and all(why.lower() == "cardnothealth" for why in whys)
            yield NO_CARD.finding(
                "The plugin calls every card of the node unhealthy."
                if is_sick
                else f"No card takes the share{': ' + listed(whys) if whys else ''}.",
                LIKELY,
                found,
                node=node,
                pod=pod,
                layer=Layer.L3 if is_sick else None,
                cause_class="plugin-health" if is_sick else None,
            )
        if not found_none:
            yield from heard(
                facts, UNREGISTERED, ("hami.unregistered",), "The scheduler has no cards of the node.", LIKELY
            )
    yield from heard(facts, LOCKED, ("hami.node_locked",), "A binding holds the node's lock.", POSSIBLE)
    yield from heard(
        facts,
        STALE,
        ("scheduler.cache_stale",),
        "What the scheduler believes and what the node reports differ.",
        LIKELY,
    )


def _is_unregistered(said: Said) -> bool:
    why = unplaced(said.get("total"), said.get("reasons"))
    texts = [one.text.lower() for one in why.reasons if "resource fit failed" not in one.text]
    return bool(texts) and all(
        text.startswith(("node unregister", "node not initialized with device")) for text in texts
    )


RULE = Rule((NO_CARD, UNREGISTERED, EXCLUDED, MORE_THAN_NODE, LOCKED, STALE), find)
