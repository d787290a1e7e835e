"""L3. The kubelet asks the device plugin at admission, and the plugin's answer rejects the pod."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, CauseClass, Effect, Layer, Severity
from berth.evidence.facts import Facts

PREFERRED_FAILS = Code(
    name="PreferredAllocationFails",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="the device plugin cannot say which devices to prefer",
    meaning="It asks the links between all GPUs for that; one GPU that does not answer, or a plugin that has lost the "
    "driver, makes the kubelet reject every GPU pod of the node.",
    known_by="'GetPreferredAllocation rpc failed', 'unable to get device link information'.",
    disproved_by="A plugin started anew answers: then it had lost the driver, and no GPU is lost.",
    counter_check="on NODE: nvidia-smi -L and nvidia-smi topo -m: all GPUs, no error",
    fix=Fix(
        steps=("on NODE: nvidia-smi and dmesg | grep -i -e xid -e 'fallen off': a lost GPU is the usual cause; drain, "
               "reset or replace it",
               "all GPUs answer: delete the plugin's pod on NODE",
               "delete the rejected pods"),
        risk="no new allocations for some seconds",
        rollback="nothing to undo",
    ),
    verify=("a new pod with RESOURCE: 1 on NODE is admitted",),
    sources=("k8s-device-plugin internal/rm/allocate.go", "k8s-device-plugin issues 2038, 1223, 231"),
)  # fmt: skip

UNREACHABLE = Code(
    name="PluginGoneAtAllocate",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="the device plugin does not answer when a pod is admitted",
    meaning="The kubelet still counts its devices, sends it pods, and rejects each of them.",
    known_by="'Allocate failed due to rpc error' with a refused or broken connection or a time-out.",
    disproved_by="The plugin's pod runs and has registered after that.",
    counter_check="kubectl get pod -o wide of the plugin on NODE: Running, older than the rejected pod",
    fix=Fix(
        steps=("kubectl logs -p of the plugin on NODE: why it ended or hangs", "delete the plugin's pod on NODE",
               "delete the rejected pods"),
        risk="no new allocations for some seconds",
        rollback="nothing to undo",
    ),
    verify=("a new pod with RESOURCE: 1 on NODE is admitted",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/endpoint.go",),
)  # fmt: skip

UNKNOWN_DEVICE = Code(
    name="AllocatedDeviceUnknown",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="the kubelet asks the plugin for a device that it does not have",
    meaning="The kubelet's list is older than the plugin's: partitions or replicas were changed in between.",
    known_by="'invalid allocation request … unknown device'.",
    disproved_by="The plugin lists that device (its log at start).",
    counter_check="kubectl logs of the plugin: it registered after the last change of partitions or replicas",
    fix=Fix(
        steps=("delete the plugin's pod on NODE; it registers anew with what is there", "delete the rejected pods"),
        risk="no new allocations for some seconds",
        rollback="nothing to undo",
    ),
    verify=("a new pod with RESOURCE: 1 on NODE is admitted",),
    sources=("k8s-device-plugin internal/plugin/server.go: Allocate",),
)

INCONSISTENT = Code(
    name="AllocationInconsistent",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="kubelet and device plugin do not agree on an allocation",
    meaning="The pod is rejected; another try may succeed.",
    known_by="Fewer devices than asked for, a request that changed, or an answer without containers.",
    disproved_by="It comes with one plugin of another vendor only: then that plugin's answer is faulty.",
    counter_check="kubectl logs of the plugin at that time: an answer for that many devices",
    fix=Fix(
        steps=("delete the pod so that it is made anew", "again: restart the kubelet, then the plugin on NODE"),
        risk="running pods stay",
        rollback="nothing to undo",
    ),
    verify=("a new pod on NODE is admitted",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/manager.go",),
)

RACE = Code(
    name="AnnotationRace",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="the plugin found another pod's decision in the annotations",
    meaning="Plugins that read the scheduler's choice from annotations (HAMi, Volcano and kin) take the pod that they "
    "find waiting; two pods at once, or a kubelet that admits in another order, and the wrong one is served or none.",
    known_by="'device number not matched', 'no binding pod found', 'empty id from pod annotation', a node lock not "
    "set.",
    disproved_by="It comes for a single pod on an idle node: then scheduler and plugin have different versions.",
    counter_check="kubectl get node NODE -o yaml | grep -i lock: no lock that stays; versions of scheduler and plugin "
    "equal",
    fix=Fix(
        steps=("delete the pod so that it is scheduled anew", "bring scheduler and plugin to one newer release"),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("the new pod is admitted; ten more at once as well",),
    sources=("volcano-vgpu-device-plugin issue 93", "HAMi issues 653, 710, 1548"),
)

REFUSED = Code(
    name="PluginRefusesPod",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="the device plugin refuses to give its device to the pod",
    meaning="The kubelet asked, the plugin answered with an error, and the pod is rejected for good (or its container "
    "does not start).",
    known_by="'Allocate failed due to rpc error' or 'PreStartContainer rpc failed', with the plugin's own words.",
    disproved_by="Another pod with the same request is admitted on that node now.",
    counter_check="the same pod made anew: it is admitted; kubectl logs of the plugin at that time: no such words",
    fix=Fix(
        steps=(
            "read the words of the plugin: they name what it misses (an annotation, a device, a file, an interface)",
            "plugins that share GPUs: scheduler and plugin of one release, the pod placed by that scheduler",
            "delete the rejected pods once it is mended",
        ),
        risk="none by looking",
        rollback="nothing to undo",
    ),
    verify=("a new pod with RESOURCE: 1 on NODE is admitted",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/manager.go: allocateContainerResources",),
)

CONFLICT = Code(
    name="AllocationsConflict",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Warning,
    effect=Effect.DevicesNotInjected,
    title="two resources of one container overwrite each other's answer",
    meaning="A container asks for two resources whose plugins set the same variable or path (full GPUs and partitions, "
    "two plugins for one card): the first answer stays, the devices of the second are not visible.",
    known_by="The kubelet says that a variable, a device or a mount of an allocation is in conflict.",
    disproved_by="The container asks for one resource of that vendor.",
    counter_check="kubectl get pod POD -n NAMESPACE -o yaml | grep -A6 limits: one resource of the vendor a container",
    fix=Fix(
        steps=(
            "let a container ask for one kind of GPU resource only",
            "or pass devices by CDI (deviceListStrategy cdi-cri), where answers add up",
        ),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("nvidia-smi -L in the pod lists all that was asked for",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/pod_devices.go: deviceRunContainerOptions",),
)


def find(facts: Facts) -> Iterator[Answer]:
    lost = list(facts.said("plugin.preferred_lost_gpu"))
    unreached = {one.origin for one in facts.said("kubelet.allocate_unreachable")}  # nobody answered: no word of GPUs
    failed = [
        one for one in facts.said("plugin.preferred_fails", "reported.preferred_fails") if one.origin not in unreached
    ]
    for node, said in by_node(failed).items():
        here = [one for one in lost if one.node in ("", node)]
        yield PREFERRED_FAILS.finding(
            "The plugin cannot read the links between the node's GPUs"
            + ("; a GPU is lost." if here else ": a GPU does not answer, or the plugin has lost the driver."),
            LIKELY if here else POSSIBLE,
            [*said, *here],
            layer=Layer.L0 if here else None,
            cause_class="hw-fault" if here else None,
        )
    for said in by_node(facts.said("kubelet.allocate_unreachable", "reported.call_times_out")).values():
        yield UNREACHABLE.finding(
            "The kubelet's call to the plugin failed: no connection, or no answer in time.", LIKELY, said
        )
    for said in by_node(facts.said("plugin.unknown_device")).values():
        resource = said_of(one.get("resource") for one in said)
        yield UNKNOWN_DEVICE.finding(
            f"The plugin of {resource} does not know the device.", LIKELY, said, resource=resource
        )
    for said in by_node(facts.said("kubelet.allocate_inconsistent")).values():
        yield INCONSISTENT.finding("What was asked for and what was answered do not fit.", POSSIBLE, said)
    for said in by_node(facts.said("plugin.annotation_race", "reported.wrong_pod")).values():
        yield RACE.finding("The plugin did not find this pod's decision in the annotations.", LIKELY, said)
    yield from _refused(facts)
    for said in by_node(facts.said("kubelet.answers_conflict")).values():
        name = said_of(one.get("name") for one in said)
        yield CONFLICT.finding(f"Two answers set {name or 'the same thing'} differently.", LIKELY, said)


# Sentences that say more of why a plugin refused.
_SAID_MORE = (
    "kubelet.allocate_unreachable", "kubelet.allocate_inconsistent", "plugin.preferred_fails",
    "plugin.preferred_lost_gpu", "plugin.unknown_device", "plugin.annotation_race", "plugin.shared_request_too_large",
)  # fmt: skip


_REASONS: dict[CauseClass, re.Pattern[str]] = {
    "version-mismatch": re.compile("read from checkpoint file due to json"),  # the kubelet writes another form
    "cdi": re.compile("cdi", re.IGNORECASE),
    "path-mount": re.compile(r"no such file|not found in\b|in \$PATH|executable file"),
    # A request that this plugin, as it is set, does not serve.
    "plugin-config": re.compile(r"multiple of \d|mode is not enabled|not permitted in|request memory \d+ is larger"),
}


def _refused(facts: Facts) -> Iterator[Answer]:
    """A refusal in words that nobody else knows."""
    known = {one.origin for one in facts.said(*_SAID_MORE)}
    for said in by_node(one for one in facts.said("kubelet.plugin_refused") if one.origin not in known).values():
        why = said_of(one.get("why") or one.get("why2") for one in said)
        yield REFUSED.finding(
            f"The plugin's answer: {why[:200]}." if why else "The plugin answered with an error.",
            POSSIBLE,
            said,
            cause_class=next((name for name, sign in _REASONS.items() if sign.search(why)), None),
        )


RULE = Rule((PREFERRED_FAILS, UNREACHABLE, UNKNOWN_DEVICE, INCONSISTENT, RACE, REFUSED, CONFLICT), find)
