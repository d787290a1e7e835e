"""L3. What device plugins answer when they are asked, against what hardware, kubelet and node say.

Holds when:  the plugin gives no answer, or what it lists is not what the next boundary has (diagnosis/ledger.py).
Disproved by: a second look a minute later at which they agree: registration takes seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.ledger import accounts, is_gpu
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.boundary_facts import PluginAnswer, SocketsSeen
from berth.evidence.formats.cluster_facts import UNSAID, Advertised
from berth.model.ledger import Account

_RESTART_PLUGIN = Fix(
    steps=(
        "keep the plugin's log, its DaemonSet's revision and the kubelet's log first",
        "kubectl cordon NODE, so that no pod is given a device by a dead account",
        "delete the plugin's pod on NODE; it registers anew",
        "again and again: look at what it waits for (NVML, a lost GPU, its control group)",
    ),
    risk="no new allocations until it has registered; pods that run keep their devices",
    rollback="kubectl uncordon NODE",
)
_PROBE = "berth agent probe --plugin RESOURCE on NODE: answers, with the devices that the node offers"

SILENT = Code(
    name="PluginSilent",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="a device plugin stands still, and the kubelet keeps its last list",
    meaning="The node goes on to offer what the plugin once said, for ever. Pods are sent there and their allocation "
    "hangs or fails, a device that dies is not withdrawn, and nothing in Kubernetes shows it.",
    known_by="The plugin's socket accepts a call and does not answer it.",
    disproved_by="The plugin answers on its socket.",
    counter_check=_PROBE,
    fix=_RESTART_PLUGIN,
    verify=("berth agent probe --plugin RESOURCE: answers", "berth ledger NODE: equal"),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/endpoint.go", "measured with a plugin that was stopped"),
)
GONE = Code(
    name="PluginGone",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="no device plugin listens on the socket that it left behind",
    meaning="The plugin's process has ended: allocatable falls to 0 at once while capacity stays.",
    known_by="The socket is there and refuses every call.",
    disproved_by="The plugin's pod is running and has registered again.",
    counter_check=_PROBE,
    fix=Fix(
        steps=(
            "kubectl get pods -A -o wide --field-selector spec.nodeName=NODE: is the plugin's pod there, and why not?",
            "kubectl logs of it, with --previous: its last line says why it ended",
            "mend that, or delete the pod so that it starts anew",
        ),
        risk="no new allocations until it has registered",
        rollback="nothing to undo",
    ),
    verify=("berth agent probe --plugin RESOURCE: answers", "berth ledger NODE: equal"),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/manager.go: markResourceUnhealthy",),
)
UNREGISTERED = Code(
    name="PluginNotRegistered",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the node offers devices of a plugin whose socket is gone",
    meaning="The kubelet was started anew or its folder was cleared, and the plugin does not know: it has to register "
    "again before anything can be allocated.",
    known_by="The node has capacity of the resource, and no plugin of it has a socket in the kubelet's folder.",
    disproved_by="A socket of the plugin appears, and it answers.",
    counter_check="ls -l /var/lib/kubelet/device-plugins on NODE: the plugin's socket is there; " + _PROBE,
    fix=_RESTART_PLUGIN,
    verify=("berth agent probe --plugin RESOURCE: answers", "berth ledger NODE: equal"),
    sources=("kubernetes device plugins: handling of kubelet restarts",),
)
TWO_PLUGINS = Code(
    name="TwoPluginsOneResource",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.AccountStale,
    title="two device plugins serve one resource",
    meaning="The kubelet heeds the one that registered last. Its list replaces the other's; devices may be given "
    "twice.",
    known_by="Two sockets in the kubelet's folder answer for the same resource.",
    disproved_by="One of them is a left-over that nobody listens on.",
    counter_check="kubectl get ds -A | grep -i device-plugin; berth agent probe on NODE: one socket for each resource",
    fix=Fix(
        steps=(
            "find both DaemonSets (a manifest beside the operator, another vendor's fork) and keep one",
            "delete the other, then delete the pod of the one that stays, so that it registers last",
        ),
        risk="no new allocations for some seconds",
        rollback="apply the deleted DaemonSet again",
    ),
    verify=("berth agent probe on NODE: one socket for RESOURCE", "berth ledger NODE: equal"),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/manager.go: addEndpoint",),
)
FEWER = Code(
    name="PluginListsFewer",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="the device plugin offers fewer devices than the hardware has",
    meaning="Cards that were paid for are not offered; the node looks smaller than it is.",
    known_by="NVML lists more devices than the plugin offers as healthy.",
    disproved_by="The difference is by intent: a plugin that is told to leave devices out.",
    counter_check="nvidia-smi -L on NODE: as many as the plugin offers; or NVIDIA_VISIBLE_DEVICES of the plugin's "
    "DaemonSet: some of them, by intent",
    fix=_RESTART_PLUGIN,
    verify=("berth ledger NODE: host and plugin are equal",),
    sources=("k8s-device-plugin internal/rm",),
)
UNHEALTHY = Code(
    name="PluginCallsUnhealthy",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Error,
    effect=Effect.DevicesUnhealthy,
    title="the device plugin calls a device unhealthy",
    meaning="The device is withdrawn from what the node offers. The NVIDIA plugin never takes that back by itself.",
    known_by="The plugin's own list, asked on its socket, has the device as Unhealthy.",
    disproved_by="The list has it as Healthy now.",
    counter_check="berth agent probe --plugin RESOURCE on NODE: Healthy now; dmesg | grep -i xid on NODE: none but "
    "those of programs (13, 31, 43, 45)",
    fix=Fix(
        steps=(
            "look up the Xid in the kernel log of NODE",
            "an error of the hardware: drain NODE, reset or replace the GPU",
            "an error of a program: delete the plugin's pod on NODE; it starts with a clean verdict",
        ),
        risk="a card that is really ill gets work again",
        rollback="cordon NODE",
    ),
    verify=("berth ledger NODE: equal",),
    sources=("k8s-device-plugin internal/rm/health.go",),
)
KUBELET_DIFFERS = Code(
    name="KubeletOffersOther",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.AccountStale,
    title="the node offers another number of devices than the plugin",
    meaning="The kubelet has not taken in the plugin's last list: pods are sent to devices that are not there, or wait "
    "for devices that are.",
    known_by="The plugin's list, asked on its socket, and the node's allocatable differ.",
    disproved_by="They agree after the next status of the node (10 s).",
    counter_check=_PROBE,
    fix=Fix(
        steps=(
            "delete the plugin's pod on NODE; it registers anew and sends its list",
            "no change: kubectl cordon NODE and restart the kubelet in a window",
        ),
        risk="no new allocations meanwhile",
        rollback="kubectl uncordon NODE",
    ),
    verify=("berth ledger NODE: equal",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/manager.go",),
)


Where = tuple[str, str]  # node, resource
Offers = Mapping[Where, Sequence[Advertised]]
Plugins = Mapping[Where, Sequence[PluginAnswer]]


def find(facts: Facts) -> Iterator[Answer]:
    offers: dict[Where, list[Advertised]] = defaultdict(list)
    for advertised in facts.of(Advertised):
        offers[advertised.name, advertised.resource].append(advertised)
    plugins: dict[Where, list[PluginAnswer]] = defaultdict(list)
    for answer in facts.of(PluginAnswer):
        if is_gpu(answer.resource):
            plugins[answer.node, answer.resource].append(answer)
    for told in by_node(facts.said("plugin.reports_unhealthy")).values():
        device = said_of(one.get("device") or one.get("device2") for one in told)
        yield UNHEALTHY.finding(f"The plugin writes down {device} as not healthy.", LIKELY, told)
    yield from _answers(plugins, offers)
    yield from _sockets(facts, plugins, offers)
    for account in accounts(facts):
        yield from _lists(account, plugins, offers)


def _lists(account: Account, answers: Plugins, offers: Offers) -> Iterator[Answer]:
    """What a plugin that answers lists, beside what the hardware has and the node offers."""
    node, resource = account.node, account.resource
    plugins = answers.get((node, resource), ())
    if len(plugins) != 1 or not plugins[0].answered or account.plugin is None or not plugins[0].devices:
        return
    evidence = [plugins[0], *offers.get((node, resource), ())]
    bad = [device.id for device in plugins[0].devices if not device.is_healthy]
    if bad:
        cause = f"The plugin calls {len(bad)} of {len(plugins[0].devices)} unhealthy: {', '.join(bad[:4])}."
        yield UNHEALTHY.finding(cause, ESTABLISHED, evidence, node=node, resource=resource)
    elif account.host is not None and account.plugin < account.host:
        cause = f"The hardware has {account.host} of {resource}, the plugin offers {account.plugin}."
        yield FEWER.finding(cause, LIKELY, evidence, node=node, resource=resource)
    elif account.allocatable is not None and account.plugin != account.allocatable:
        cause = f"The plugin offers {account.plugin} of {resource}, the node {account.allocatable}."
        yield KUBELET_DIFFERS.finding(cause, LIKELY, evidence, node=node, resource=resource)


def _answers(plugins: Plugins, offers: Offers) -> Iterator[Answer]:
    """What the sockets answer, one by one."""
    for (node, resource), answers in plugins.items():
        offered = offers.get((node, resource), ())
        given = next((one.allocatable for one in offered if one.allocatable != UNSAID), None)
        still = f"; the node still offers {given}" if given else ""
        alive = [one for one in answers if one.answered]
        if len(alive) > 1:
            sockets = ", ".join(one.socket or "a socket" for one in alive)
            cause = f"{sockets} all answer for {resource}."
            yield TWO_PLUGINS.finding(cause, ESTABLISHED, alive, node=node, resource=resource)
        for one in answers if not alive else ():
            code = GONE if "refused" in one.problem or "nobody" in one.problem else SILENT
            cause = f"The plugin of {resource} gives no answer on {one.socket or 'its socket'} ({one.problem}){still}."
            yield code.finding(cause, ESTABLISHED, [one, *offered], node=node, resource=resource)


def _sockets(facts: Facts, plugins: Plugins, offers: Offers) -> Iterator[Answer]:
    """A node that has devices, or offers some, while no plugin has a socket; and nodes that nobody looked into."""
    looked = {one.node: one for one in facts.of(SocketsSeen)}
    with_socket = {node for node, seen in looked.items() if seen.sockets}
    for account in accounts(facts):
        node, resource = account.node, account.resource
        if node in looked and (node, resource) not in plugins:
            offered = max(account.allocatable or 0, account.capacity or 0)
            # A node without any plugin may be meant to have none; one with a socket that was not asked may serve it.
            if (offered and node not in with_socket) or (account.host and account.allocatable == 0):
                has = f"has {account.host} devices and " if account.host else ""
                cause = f"{node} {has}offers {account.allocatable or 0} of {resource}; no plugin of it has a socket."
                sure = LIKELY if account.host else POSSIBLE
                evidence = [looked[node], *offers.get((node, resource), ())]
                yield UNREGISTERED.finding(cause, sure, evidence, node=node, resource=resource)
        elif not looked and account.capacity and (account.allocatable or 0) < account.capacity:
            on = node or "the node"
            how = f"on {on}: berth agent probe --plugin {resource}"
            yield Unconfirmed(f"what the plugin of {resource} on {on} answers", how, SILENT.name, Layer.L3, node)


RULE = Rule((SILENT, GONE, UNREGISTERED, TWO_PLUGINS, FEWER, UNHEALTHY, KUBELET_DIFFERS), find)
