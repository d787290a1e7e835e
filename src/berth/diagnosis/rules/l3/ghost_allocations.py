"""L3. The kubelet counts devices as given away that nobody holds, or gives one away twice."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.kubelet_files import Checkpoint

A_SIGN = 0.5  # a device may also be seen by a pod that was not given it

GHOSTS = Code(
    name="GhostAllocation",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="the kubelet has fewer free devices than the scheduler sees",
    meaning="Entries of pods that are gone still hold devices in the kubelet's memory (a failed pod with an init "
    "container that was deleted by force, a failed allocation): each new pod is rejected until the kubelet restarts.",
    known_by="'requested number of devices unavailable … Requested: n, Available: m'.",
    disproved_by="Running pods on NODE really hold that many devices, or devices are marked unhealthy.",
    counter_check="kubectl describe node NODE: RESOURCE under Allocated resources is below allocatable",
    fix=Fix(
        steps=("compare who holds devices: the PodResources API (dcgm-exporter, `berth agent probe`) against the pods "
               "of NODE",
               "systemctl restart kubelet on NODE; running pods stay",
               "do not delete GPU pods by force; take a Kubernetes with the fix of 130172"),
        risk="pods with init containers that hold devices may be rejected by the restart (kubernetes 138446)",
        rollback="nothing to undo",
    ),
    verify=("a new pod on NODE is admitted", "PodResources lists no pod that does not exist"),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/manager.go", "kubernetes issues 130145, 137317"),
)  # fmt: skip

HELD_TWICE = Code(
    name="DeviceHeldTwice",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Critical,
    effect=Effect.AccountStale,
    title="one device is given to two pods",
    meaning="Two pods use the same device without knowing: memory runs out, and one ends the other's work.",
    known_by="The kubelet's checkpoint has one device id under two pods.",
    disproved_by="One of the two pods has ended, and the kubelet has not cleaned up yet.",
    counter_check="kubectl get pod -A -o custom-columns=UID:.metadata.uid: only one of the two UIDs exists",
    fix=Fix(
        steps=("delete the younger of the two pods", "restart the kubelet on NODE, compare the checkpoint anew"),
        risk="the deleted pod's work is lost",
        rollback="nothing to undo",
    ),
    verify=("the checkpoint lists each device once",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/checkpoint",),
)


def find(facts: Facts) -> Iterator[Answer]:
    # The operator's validator goes past the scheduler: what it is refused is ordinary use, told elsewhere.
    past = any(facts.said("operator.validator_refused"))
    refused = facts.said("kubelet.devices_unavailable")
    others = [
        one for one in refused if not (past and (not one.origin.pod or "device-plugin-validator" in one.origin.pod))
    ]
    for said in by_node(others).values():
        first = said[0]
        resource = said_of(one.get("resource") for one in said)
        asked, free = (first.get(what) or first.get(f"{what}2") or "?" for what in ("requested", "available"))
        yield GHOSTS.finding(
            f"{asked} of {resource or 'the GPUs'} asked for, {free} free in the kubelet's account, although the "
            "scheduler sent the pod here.",
            LIKELY if free == "0" else POSSIBLE,
            said,
            resource=resource,
        )
    for said in by_node(
        facts.said("reported.account_of_gone_pods", "reported.account_of_pods_gone", "reported.not_freed")
    ).values():
        yield GHOSTS.finding("The kubelet's account names pods that are gone.", POSSIBLE, said)
    for said in by_node(facts.said("reported.account_differs")).values():
        yield GHOSTS.finding("The kubelet's account is not of what runs on the node.", POSSIBLE, said)
    for said in by_node(facts.said("reported.held_twice", "reported.one_device_seen_twice")).values():
        # Who sets the variable by himself takes what the kubelet never gave him.
        is_taken = any(re.search(r"NVIDIA_VISIBLE_DEVICES\W{1,3}\w", one.origin.text) for one in said)
        yield HELD_TWICE.finding("Two pods were given one device.", WEAK if is_taken else A_SIGN, said)
    for checkpoint in facts.of(Checkpoint):
        for resource, device in checkpoint.twice():
            if "::" not in device:  # a replica is a share, and has an id of its own
                yield HELD_TWICE.finding(
                    f"{device} is held by two pods in the kubelet's account.", LIKELY, [checkpoint], resource=resource
                )


RULE = Rule((GHOSTS, HELD_TWICE), find)
