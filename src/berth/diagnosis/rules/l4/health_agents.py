"""L4. Agents that judge nodes: what their conditions name, and agents that stand still themselves."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, value
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, CauseClass, Effect, Layer, Severity
from berth.evidence.facts import Facts

VERDICT = Code(
    name="NodeAgentFindsFault",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceUnfit,
    title="an agent on the node names a fault of its GPUs",
    meaning="The cloud's or the operator's agent watches the kernel log and DCGM and sets a condition. Node repair "
    "acts upon it: a reboot or another machine, some minutes later.",
    known_by="A condition or event with the agent's reason for GPUs: AcceleratedHardwareReady=False and its like.",
    disproved_by="The condition is healthy again and the kernel log has no Xid since.",
    counter_check="kubectl describe node NODE: the condition is healthy again; on NODE: dmesg | grep -e Xid -e NVRM: "
    "no error; dcgmi diag -r 1: pass",
    fix=Fix(
        steps=(
            "read the message beside the reason: device, Xid, DCGM's code; give the kernel log to the doctor",
            "hardware: drain NODE, reset or reboot, then replace the machine if it comes back",
            "Fabric Manager: same version as the driver, started on machines with NVSwitches",
            "DCGM: the hostengine runs and the agent reaches it",
        ),
        risk="a reboot or replacement ends the node's pods",
        rollback="nothing to undo",
    ),
    verify=("the condition is healthy for an hour under load",),
    sources=("eks-node-monitoring-agent, node health issues", "AKS documentation: GPU health conditions", "NVSentinel"),
)
STREAM_LOST = Code(
    name="HealthAgentStandsStill",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Error,
    effect=Effect.BlindMonitoring,
    title="a health agent does not get its events any more",
    meaning="Its parts pass events through a store, and each remembers how far it has read. When the store forgot that "
    "place, or cannot be reached, faults are neither cordoned nor repaired, and nothing says so on the node.",
    known_by="A change stream that cannot be resumed, or a store or connector that does not answer.",
    disproved_by="The agent's log goes on with new events after it.",
    counter_check="kubectl logs of the agent's modules: events younger than an hour",
    fix=Fix(
        steps=(
            "resume token lost: delete the stored token of that module and restart it; look for faults in the gap",
            "keep the store's log longer (oplog size) than the longest outage",
            "store unreachable: its pods, service name, certificate; the connector's socket mounted from the host",
        ),
        risk="events of the gap are not handled: look at the nodes by hand",
        rollback="nothing to undo",
    ),
    verify=("an injected fault (dcgmi test --inject) reaches the node's conditions",),
    sources=("NVSentinel issue 955", "MongoDB manual: change streams, resume tokens"),
)
OPEN_FILES = Code(
    name="OpenFilesTooFew",
    layer=Layer.L4,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.BlindMonitoring,
    title="a daemon of the cluster may open too few files",
    meaning="Each client is a file. With hundreds of nodes the limit that a container inherits from the runtime's "
    "service is spent, and the daemon refuses clients or ends.",
    known_by="Too many open files from such a daemon, or a limit of 1024 beside a daemon that crashes.",
    disproved_by="The count of open files is far below the limit: ls /proc/PID/fd | wc -l.",
    counter_check="on the daemon's node: ls /proc/PID/fd | wc -l: far below 'Max open files' in /proc/PID/limits",
    fix=Fix(
        steps=(
            "systemctl edit containerd (or crio): LimitNOFILE=1048576, restart it, then the pod",
            "fewer clients: raise the interval, share connections",
        ),
        risk="a restart of the runtime leaves pods running; the daemon's pod starts anew",
        rollback="remove the drop-in",
    ),
    verify=("grep 'open files' /proc/PID/limits: the new limit; no restarts within a day",),
    sources=("systemd.exec(5): LimitNOFILE", "NVSentinel issue 1555"),
)


class _Verdict(Struct, frozen=True):
    layer: Layer
    cause_class: CauseClass
    effect: Effect
    what: str


_OF_HARDWARE = _Verdict(Layer.L0, "hw-fault", Effect.DeviceUnfit, "the hardware of a GPU is at fault")
_OF_LINKS = _Verdict(Layer.L0, "fabric", Effect.FabricDown, "NVLinks are down or have errors")
_OF_MONITOR = _Verdict(Layer.L4, "monitoring", Effect.BlindMonitoring, "the agent does not reach DCGM")
_VERDICTS = {
    "DCGMError": _OF_MONITOR,
    "GpuDcgmConnectivity": _OF_MONITOR,
    "UnhealthyNvidiaDCGMServices": _OF_MONITOR,
    "FabricManagerNotRunning": _Verdict(Layer.L1, "fabric", Effect.FabricDown, "Fabric Manager does not run"),
    "NvidiaFabricError": _OF_LINKS,
    "NvidiaNVLinkError": _OF_LINKS,
    "GpuNvlink": _OF_LINKS,
    "NVLinkStatusInactive": _OF_LINKS,
    "UnhealthyNvidiaDevicePlugin": _Verdict(Layer.L3, "plugin-health", Effect.PluginDown, "the device plugin is ill"),
    "GpuInforom": _Verdict(Layer.L0, "hw-firmware", Effect.DeviceUnfit, "an InfoROM is corrupt"),
}


def _verdict(reason: str) -> _Verdict:
    return next((one for name, one in _VERDICTS.items() if reason.startswith(name)), _OF_HARDWARE)


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("agents.verdict", "agents.condition")):
        for reason in dict.fromkeys(value(one, "reason") for one in found):
            # An IMEX daemon that is idle is told under the name of the links.
            if reason.startswith("GpuNvlink") and any(facts.said("harmless.imex_idle")):
                continue
            verdict = _verdict(reason)
            yield VERDICT.finding(
                f"{reason}: {verdict.what}.",
                POSSIBLE,
                [one for one in found if value(one, "reason") == reason],
                node=node,
                pod=pod,
                layer=verdict.layer,
                cause_class=verdict.cause_class,
                effect=verdict.effect,
            )
    for said in by_node(facts.said("agents.stream_lost", "agents.store_unreached")).values():
        yield STREAM_LOST.finding("A module does not get events from its store or connector.", LIKELY, said)
    for said in by_node(facts.said("agents.breaker")).values():
        yield STREAM_LOST.finding("Its guard against too many cordons has tripped: it cordons no more.", POSSIBLE, said)
    spent = list(facts.said("host.open_files_spent"))
    if not spent and (crashes := list(facts.said("agents.daemon_crashes"))):
        small = list(facts.said("host.open_files_small"))
        spent = [*small, *crashes] if small else []
    if spent:
        yield OPEN_FILES.finding("The daemon has more clients than it may open files.", LIKELY, spent)


RULE = Rule((VERDICT, STREAM_LOST, OPEN_FILES), find)
