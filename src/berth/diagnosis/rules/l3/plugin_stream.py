"""L3. The stream over which a device plugin tells the kubelet its devices has ended, or is open and dead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import Advertised, NodeSeen, PodSeen
from berth.evidence.formats.told import Told

A_SIGN = 0.5  # one end says little of why
SOON_S = 300  # seconds

PLUGIN_ENDED = Code(
    name="PluginEndedUnderKubelet",
    layer=Layer.L3,
    cause_class="cgroup",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin's process ends while the kubelet listens to it",
    meaning="The plugin registers, its process is ended, and the node offers no devices again. Mostly the runtime "
    "kills it: the nvidia handler runs containers in another cgroup than the kubelet looks for them.",
    known_by="The kubelet reads EOF from ListAndWatch, and no new registration follows.",
    disproved_by="The plugin registers again and stays (an ordinary restart or roll-out), or its last line names "
    "another reason.",
    counter_check="kubectl logs -p of the plugin pod: a last line other than a received signal; restart count stays 0",
    fix=Fix(
        steps=(
            "kubectl -n gpu-operator logs -p <device plugin pod>: read the last line",
            "containerd config dump | grep -A6 'runtimes.nvidia.options': SystemdCgroup must be what runc has and what "
            "the kubelet's cgroupDriver says",
            "set SystemdCgroup = true for the nvidia handler (K3s, RKE2: in their own template), restart containerd",
        ),
        risk="a restart of containerd on a busy node; cordon it first",
        rollback="put the former configuration back and restart containerd",
    ),
    verify=(
        "kubectl get pod -n gpu-operator -l app=nvidia-device-plugin-daemonset: restarts 0 after ten minutes",
        "kubectl get node NODE -o jsonpath={.status.allocatable}: RESOURCE is there",
    ),
    sources=(
        "kubernetes pkg/kubelet/cm/devicemanager/plugin/v1beta1/client.go",
        "k3s issue 7130, k8s-device-plugin 368",
    ),
)

STREAM_BROKEN = Code(
    name="PluginStreamBroken",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.AccountStale,
    title="the stream between the kubelet and the device plugin is dead",
    meaning="The kubelet keeps the last list of devices or counts none, whatever the hardware does; new pods are "
    "refused or wait although devices are idle.",
    known_by="ListAndWatch ended with a broken transport, or capacity is there and allocatable 0 while the plugin "
    "runs.",
    disproved_by="The plugin registered again after that, and allocatable equals capacity.",
    counter_check="kubectl logs of the plugin: 'Registered device plugin' after the kubelet's last start",
    fix=Fix(
        steps=("kubectl rollout restart daemonset/nvidia-device-plugin-daemonset -n gpu-operator",
               "put the restart of the plugin into the script that restarts the kubelet; alert on capacity > "
               "allocatable"),
        risk="no new allocations for some seconds; running pods keep their devices",
        rollback="nothing to undo",
    ),
    verify=("kubectl get node NODE -o jsonpath={.status.allocatable}: RESOURCE as many as capacity",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager", "kubernetes issues 62773, 114422"),
)  # fmt: skip


AT_ZERO = Code(
    name="ResourceAtZero",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="the node's GPU resource is at 0",
    meaning="A plugin registered it once; now none serves it, or it serves an empty list. What ended or emptied it is "
    "the cause.",
    known_by="Capacity and allocatable of the resource are 0, and no other resource of that vendor has devices.",
    disproved_by="The devices are offered under another name (partitions, shares), or as resource claims.",
    counter_check="kubectl get node NODE -o jsonpath={.status.allocatable}: partitions or shares under another name; "
    "or kubectl get resourceslices: devices of NODE",
    fix=Fix(
        steps=("no plugin there: labels, taints and the DaemonSet's selector",
               "it does not run: its last line (kubectl logs -p) names the reason",
               "it runs: kubectl delete pod of it, so that it registers anew"),
        risk="no new allocations for some seconds",
        rollback="nothing to undo",
    ),
    verify=("kubectl get node NODE -o jsonpath={.status.allocatable}: RESOURCE is there",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/manager.go: GetCapacity", "k8s-device-plugin issue 1228"),
)  # fmt: skip

# A count that is told of as past.
_CAME_AGAIN = re.compile(
    r"\b(?:then|now|afterwards?|later|since)\b.*\b(?:capacity|allocatable|GPUs?)\W{1,3}[1-9]", re.I
)

_NOT_ANEW = (
    "reported.plugin_not_restarted", "reported.unregistered_after_restart", "reported.never_registers_again",
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    yield from _ended(facts)
    yield from _gone(facts)
    yield from _killed(facts)
    yield from _broken(facts)


def _ended(facts: Facts) -> Iterator[Answer]:
    """An end that a registration of the same source follows was a restart."""
    again = list(facts.said("kubelet.registration_request"))
    starts = sum(one.times for one in again)
    for node, ends in by_node(facts.said("kubelet.stream_eof")).items():
        if starts > sum(end.times for end in ends):  # each end stands between two registrations
            continue
        last = [end for end in ends if not _came_back(end, again)]
        anew = list(facts.said("plugin.sees_new_kubelet"))
        if last and anew:
            yield STREAM_BROKEN.finding(
                "The kubelet made its socket anew, the plugin started anew for it, and did not register again.",
                POSSIBLE,
                [*last, *anew],
                resource=said_of(one.get("resource") for one in last),
            )
        elif last:
            killed = [one for one in facts.said("plugin.terminated") if not node or one.node in ("", node)]
            resource = said_of(one.get("resource") for one in last)
            refused = [] if killed else list(facts.said("kubelet.plugin_socket_refused"))
            yield PLUGIN_ENDED.finding(
                f"The kubelet lost the plugin{f' of {resource}' if resource else ''} (EOF): its process ended"
                + (", ended by a signal from outside." if killed else ", and it did not register again."),
                LIKELY if killed else POSSIBLE,
                [*last, *killed, *refused[:1]],
                resource=resource,
                # Nobody listens any more, and nothing shows who ended it.
                cause_class="plugin-health" if refused else None,
            )


def _gone(facts: Facts) -> Iterator[Answer]:
    """The kubelet's word that a plugin's socket has closed, and none that it came again."""
    if any(facts.said("kubelet.registration_request", "kubelet.stream_eof")):
        return
    for said in by_node(facts.said("kubelet.endpoint_gone")).values():
        resource = said_of(one.get("resource") for one in said)
        yield AT_ZERO.finding(
            f"The plugin{f' of {resource}' if resource else ''} has gone from the kubelet's list, and nothing shows "
            "that it registered again.",
            A_SIGN,
            said,
            resource=resource,
        )


def _killed(facts: Facts) -> Iterator[Answer]:
    """The plugin's own side: it registered, and a signal from outside ended it, again and again."""
    registered = {one.origin.source for one in facts.said("plugin.registered")}
    killed = [one for one in facts.said("plugin.terminated") if one.origin.source in registered]
    backing_off = list(facts.said("runtime.plugin_crashes"))
    looping = [
        pod for pod in facts.of(PodSeen) if _is_plugin(pod) and any("CrashLoop" in state.reason for state in pod.states)
    ]
    for said in by_node(facts.said("reported.drivers_differ_plugin_ends")).values():
        yield PLUGIN_ENDED.finding(
            "Kubelet and runtime have different cgroup drivers, and the plugin ends.", LIKELY, said
        )
    for said in by_node(facts.said("reported.stream_ends_again")).values():
        yield PLUGIN_ENDED.finding("The kubelet loses the plugin (EOF), again and again.", POSSIBLE, said)
    for said in by_node(facts.said("reported.ended_again_and_again")).values():
        yield PLUGIN_ENDED.finding("The plugin is ended by a signal from outside, again and again.", POSSIBLE, said)
    if next(facts.said("kubelet.stream_eof", "plugin.xid"), None) is not None or not killed:
        return
    if looping or backing_off:
        yield PLUGIN_ENDED.finding(
            "The plugin registers, and is ended by a signal from outside, again and again.",
            LIKELY,
            [*killed, *backing_off, *looping],
            node=looping[0].on if looping else "",
            pod=looping[0].key if looping else "",
        )
    elif soon := _soon(facts, killed):
        yield PLUGIN_ENDED.finding("A signal from outside ended the plugin soon after it had registered.", A_SIGN, soon)


def _soon(facts: Facts, killed: list[Said]) -> list[Said]:
    """A start and its end in one log, shortly after each other: nobody rolls out that often."""
    for end in killed:
        for start in facts.said("plugin.registered"):
            one_log = start.origin.source == end.origin.source and start.origin.line < end.origin.line
            if one_log and start.origin.at_s and end.origin.at_s and 0 <= end.origin.at_s - start.origin.at_s < SOON_S:
                return [start, end]
    return []


def _came_back(end: Said, again: list[Said]) -> bool:
    return any(one.origin.source == end.origin.source and one.origin.line > end.origin.line for one in again)


def _broken(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("reported.socket_removed", "reported.never_listed")).values():
        yield STREAM_BROKEN.finding(
            "The kubelet does not reach the plugin's socket any more: it was removed, or is not asked.", POSSIBLE, said
        )
    for said in by_node(facts.said("kubelet.stream_plugin_error")).values():
        why = said_of(one.get("why") for one in said)
        yield STREAM_BROKEN.finding(
            f"The plugin ended its own stream{f': {why[:160]}' if why else ''}.",
            LIKELY,
            said,
            resource=said_of(one.get("resource") for one in said),
            cause_class="plugin-health",
        )
    for said in by_node(facts.said("kubelet.stream_broken", "reported.stream_dead")).values():
        yield STREAM_BROKEN.finding(
            "ListAndWatch of the device plugin broke off and was not set up anew; the kubelet works with its last "
            "list.",
            LIKELY,
            said,
        )
    for said in by_node(facts.said("reported.runs_without_resource")).values():
        yield STREAM_BROKEN.finding(
            "The plugin's pod runs, and the node has no such resource: the kubelet does not hear it.", WEAK, said
        )
    for said in by_node(facts.said("reported.stays_without_plugin")).values():
        yield AT_ZERO.finding(
            "The kubelet keeps the resource of a plugin that was taken away.",
            POSSIBLE,
            said,
            cause_class="kubelet-state",
        )
    for said in by_node(facts.said("reported.not_back_with_plugin")).values():
        yield AT_ZERO.finding(
            "The plugin was started anew, and the kubelet keeps its former account of the resource.",
            POSSIBLE,
            said,
            cause_class="kubelet-state",
        )
    for said in by_node(facts.said("reported.count_drops")).values():
        if all(_CAME_AGAIN.search(one.get("rest")) for one in said):
            continue
        told = " ".join(one.origin.text for one in said).lower()
        # Told on other lines of the same text as well: it took a restart of the kubelet.
        others = " ".join(one.origin.text for one in facts.of(Told) if "restart" in one.topics).lower()
        if "kubelet" in told or "kubelet" in others:
            yield STREAM_BROKEN.finding("The count drops to 0 until the kubelet is restarted.", POSSIBLE, said)
        else:
            yield AT_ZERO.finding("The count drops to 0 on a node that had devices.", A_SIGN, said)
    for said in by_node(facts.said(*_NOT_ANEW)).values():
        yield STREAM_BROKEN.finding("The plugin has not registered anew with the kubelet that runs now.", LIKELY, said)
    for said in by_node(facts.said("kubelet.count_lost_by_restart")).values():
        resource = said_of(one.get("resource") for one in said)
        yield STREAM_BROKEN.finding(
            f"{resource} is at 0 after a restart of the kubelet: the plugin has not registered anew.",
            POSSIBLE,
            said,
            resource=resource,
        )
    running = {pod.on for pod in facts.of(PodSeen) if _is_plugin(pod) and pod.phase == "Running"}
    for offer in facts.of(Advertised):
        if offer.capacity > 0 and offer.allocatable == 0 and (offer.name in running or "" in running):
            yield STREAM_BROKEN.finding(
                f"{offer.resource}: {offer.capacity} there, 0 allocatable, and the plugin's pod runs: what it says "
                "does not reach the kubelet.",
                POSSIBLE,
                [offer],
                node=offer.name,
                resource=offer.resource,
            )
    yield from _at_zero(facts, running)


def _at_zero(facts: Facts, running: set[str]) -> Iterator[Answer]:
    """The kubelet keeps a resource that was registered once: at 0 where nobody serves it any more."""
    held_back = {node.name for node in facts.of(NodeSeen) if _keeps_plugin_away(node.labels)}
    there = {(one.name, _vendor(one)) for one in facts.of(Advertised) if max(one.capacity, one.allocatable) > 0}
    for offer in facts.of(Advertised):
        gone = max(offer.capacity, offer.allocatable) == 0 and _vendor(offer) == "nvidia.com"
        if not gone or (offer.name, _vendor(offer)) in there or held_back & {offer.name, ""}:
            continue
        if offer.name in running or "" in running:
            yield STREAM_BROKEN.finding(
                f"{offer.resource} is at 0, and the plugin's pod runs: the kubelet knew it once and lost it.",
                POSSIBLE,
                [offer],
                node=offer.name,
                resource=offer.resource,
            )
        else:
            yield AT_ZERO.finding(
                f"{offer.resource} is at 0: it was registered once, and nobody serves it now.",
                WEAK,
                [offer],
                node=offer.name,
                resource=offer.resource,
            )


def _keeps_plugin_away(labels: Mapping[str, str]) -> bool:
    """Then the plugin is not meant to run there, and why is another rule's."""
    deploy = [labels.get(f"nvidia.com/gpu.deploy.{part}", "true") for part in ("operands", "device-plugin")]
    return any(value != "true" for value in deploy) or labels.get("nvidia.com/gpu.workload.config", "").startswith(
        "vm-"
    )


def _vendor(offer: Advertised) -> str:
    return offer.resource.partition("/")[0]


def _is_plugin(pod: PodSeen) -> bool:
    return "device-plugin" in pod.name and not any(word in pod.name for word in ("validator", "mps-control", "sandbox"))


RULE = Rule((PLUGIN_ENDED, STREAM_BROKEN, AT_ZERO), find)
