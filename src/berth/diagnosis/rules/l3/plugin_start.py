"""The device plugin does not find the driver, or ends for another reason of which nobody knows more."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import PodSeen
from berth.evidence.formats.plugin_config import PluginConfig

NO_DRIVER_IN_PLUGIN = Code(
    name="PluginSeesNoDriver",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin runs without the driver's libraries",
    meaning="Its container was started by a runtime that adds no NVIDIA libraries; the node offers no devices.",
    known_by="The plugin cannot load NVML (libnvidia-ml), whatever nvidia-smi says on the host.",
    disproved_by="nvidia-smi fails on the host as well: then the driver is missing and not the runtime.",
    counter_check="on NODE: nvidia-smi -L: fails, too (then it is the driver); containerd config dump | grep "
    "default_runtime_name: nvidia, or the plugin's pod names that class",
    fix=Fix(
        steps=("nvidia-ctk runtime configure --runtime=containerd --set-as-default, then restart containerd (K3s, "
               "RKE2, k0s, MicroK8s: their own configuration)",
               "or give the plugin runtimeClassName: nvidia, with that RuntimeClass and handler present",
               "a node without GPUs: keep the plugin away by a node selector"),
        risk="a restart of containerd on a busy node; cordon it first",
        rollback="the former configuration",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin for RESOURCE with Kubelet'",),
    sources=("k8s-device-plugin internal/rm/nvml_manager.go, internal/resource/factory.go", "k8s-device-plugin README"),
)  # fmt: skip

NO_PLATFORM = Code(
    name="PluginFindsNoPlatform",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin finds no platform that it knows",
    meaning="It found neither NVML nor Tegra nor WSL in its container and ends; the node offers no devices.",
    known_by="'Incompatible strategy detected', 'invalid device discovery strategy', 'Detected non-NVML platform'.",
    disproved_by="The plugin's container sees libnvidia-ml.so.1 (nvidia-smi works in it).",
    counter_check="kubectl exec in a pod of the same runtime class: nvidia-smi -L works",
    fix=Fix(
        steps=("start the plugin with the NVIDIA runtime: runtimeClassName nvidia, or nvidia as the default handler",
               "plugin 0.16 and later: give it the driver root and the rights that its chart sets (privileged or "
               "SYS_ADMIN with MIG), not an old manifest",
               "a node without GPUs: keep the plugin away by a node selector"),
        risk="the plugin restarts; a restart of containerd where the default handler changes",
        rollback="the former manifest",
    ),
    verify=("kubectl logs of the plugin: 'Detected NVML platform', then 'Registered device plugin'",),
    sources=("k8s-device-plugin internal/rm/rm.go, cmd/nvidia-device-plugin/plugin-manager.go",
             "k8s-device-plugin issues 1220, 1470, 1574"),
)  # fmt: skip

MEMORY_UNSUPPORTED = Code(
    name="DeviceMemoryUnsupported",
    layer=Layer.L3,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin is too old for a device that shares its memory with the CPU",
    meaning="The plugin asks each device for its memory; a device with unified memory (GB10, Thor) answers 'not "
    "supported', and the plugin ends.",
    known_by="'error getting device memory: Not Supported' while the device map is built.",
    disproved_by="nvidia-smi shows a memory size for that device.",
    counter_check="nvidia-smi --query-gpu=name,memory.total --format=csv: a size and not [N/A]",
    fix=Fix(
        steps=("take a plugin that knows the device (release notes: unified memory, integrated GPUs)",),
        risk="the plugin restarts",
        rollback="the former image",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin'",),
    sources=("k8s-device-plugin internal/rm/nvml_devices.go",),
)

NO_MINOR = Code(
    name="DeviceHasNoMinorNumber",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin treats an integrated or virtual GPU like a card of its own",
    meaning="On Jetson and WSL NVML knows the device and no /dev/nvidia<N> of it: where the plugin takes the way for "
    "cards, it ends, and the node offers no devices.",
    known_by="'error getting GPU device minor number: Not Supported' while the device map is built.",
    disproved_by="ls /dev/nvidia0 shows a file on the node.",
    counter_check="on NODE: ls /dev/nvidia0: there",
    fix=Fix(
        steps=("Jetson: --device-discovery-strategy=tegra (DEVICE_DISCOVERY_STRATEGY), and no MPS or MIG, which are "
               "for NVML only; the toolkit in mode csv or cdi",
               "WSL: a plugin from 0.14 on, with the NVIDIA runtime",
               "a newer plugin: which systems each release knows is in its release notes"),
        risk="the plugin restarts",
        rollback="the former settings",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin'",),
    sources=("k8s-device-plugin internal/rm/nvml_devices.go, tegra_devices.go", "k8s-device-plugin issues 332, 1412"),
)  # fmt: skip

PLUGIN_CRASHES = Code(
    name="DevicePluginCrashes",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin ends again and again",
    meaning="As long as it does not run, the node offers no devices.",
    known_by="Its pod is in CrashLoopBackOff or Error, and its last line is not among what was given.",
    disproved_by="Its last line names another reason.",
    counter_check="kubectl logs -p of the plugin's pod: a last line that names a reason of its own",
    fix=Fix(
        steps=("kubectl -n gpu-operator logs -p <plugin pod>: the last line decides",
               "mostly the NVIDIA runtime is not the one that starts it: see default_runtime_name in `containerd "
               "config dump`, and the plugin's runtimeClassName"),
        risk="none by looking",
        rollback="nothing to undo",
    ),
    verify=("kubectl get pod of the plugin: Running, no new restarts in ten minutes",),
    sources=("k8s-device-plugin README: prerequisites",),
)  # fmt: skip

NO_DEVICES = Code(
    name="PluginFindsNoDevices",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="the device plugin found no device when it started, and does not look again",
    meaning="It waits for ever and registers nothing; devices that come later are not offered.",
    known_by="'No devices found. Waiting indefinitely' on a node that has GPUs.",
    disproved_by="lspci -d 10de: shows no GPU: the plugin has nothing to do there.",
    counter_check="on NODE: lspci -d 10de:: no GPU; or the plugin's log: it has registered devices since",
    fix=Fix(
        steps=(
            "devices are there now (driver came later, reboot): delete the plugin's pod on NODE",
            "on the host and not in the pod: NVIDIA_VISIBLE_DEVICES=all, runtime and cgroup of the plugin's container",
            "on the host neither: the driver is the cause",
        ),
        risk="none: it serves nothing",
        rollback="nothing to undo",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin for RESOURCE'",),
    sources=("k8s-device-plugin cmd/nvidia-device-plugin/main.go", "k8s-device-plugin issue 414"),
)

MAP_FAILS = Code(
    name="PluginDeviceMapFails",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="one device that does not answer ends the device plugin",
    meaning="The plugin asks each device at its start; an error of one ends it, and the node offers none.",
    known_by="'error building device map' or 'error visiting device', with NVML's answer at its end.",
    disproved_by="The answer names missing rights, partitions or memory that is not supported: those have causes of "
    "their own.",
    counter_check="on NODE: nvidia-smi -q | grep -i -e 'gpu is lost' -e 'unknown error' -e ERR!: nothing",
    fix=Fix(
        steps=(
            "which device does not answer? nvidia-smi -L, then each with -i; dmesg for its Xid",
            "repair or remove it (bind it to no driver), then delete the plugin's pod",
            "the others at once: a plugin that leaves the device out (DISABLE_HEALTHCHECKS does not), or a drain and "
            "reboot",
        ),
        risk="none by looking",
        rollback="nothing to undo",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin'",),
    sources=("k8s-device-plugin internal/rm/device_map.go",),
)

BUSY_LOOP = Code(
    name="PluginBusyLoop",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Warning,
    effect=Effect.BlindMonitoring,
    title="the device plugin uses a whole CPU",
    meaning="Its loop over health events returns at once with an error: it warms the node and sees no fault any more.",
    known_by="A CPU load of the plugin's process that lasts.",
    disproved_by="The load is gone after some seconds, or comes from another process of the pod.",
    counter_check="kubectl top pod of the plugin --containers: far below one CPU after some seconds",
    fix=Fix(
        steps=("delete the plugin's pod; take a newer plugin",
               "again: dmesg for a GPU that does not answer"),
        risk="no new allocations for some seconds",
        rollback="the former image",
    ),
    verify=("kubectl top pod of the plugin: below 10m CPU",),
    sources=("k8s-device-plugin issue 301",),
)  # fmt: skip

# Sentences that say why a plugin ends: other rules answer with them.
_REASONS = (
    "plugin.xid", "plugin.watcher_limit", "plugin.watcher_no_directory", "plugin.socket_denied", "plugin.socket_absent",
    "plugin.api_not_served", "plugin.mig_profiles_differ", "plugin.mig_empty", "plugin.mig_denied",
    "plugin.config_refused", "plugin.memory_not_supported", "plugin.cannot_register", "sharing.mps_daemon_absent",
    "sharing.mps_refused", "plugin.mig_files_unseen", "plugin.mig_name_unknown",
)  # fmt: skip
_WHY = ("why", *(f"why{number}" for number in range(2, 11)))
_OF_CDI = re.compile("creat(?:e|ing) cdi (?:spec|handler)", re.IGNORECASE)
_OF_MIG = re.compile(r"MIG (?:profile|device map)|mig.?strategy|Instance ID|\bmig (?:dev|uuid)", re.IGNORECASE)
_ENDS = ("CrashLoopBackOff", "Error", "RunContainerError", "OOMKilled")


def find(facts: Facts) -> Iterator[Answer]:
    told: set[str] = set()
    for node, said in by_node(facts.said("plugin.memory_not_supported")).items():
        told.add(node)
        yield MEMORY_UNSUPPORTED.finding("A device does not say how much memory it has.", LIKELY, said)
    for node, said in by_node(facts.said("plugin.no_minor_number")).items():
        told.add(node)
        yield NO_MINOR.finding("A device has no file of its own under /dev.", LIKELY, said)
    for node, said in by_node(facts.said("plugin.not_nvml_platform")).items():
        if node not in told:
            told.add(node)
            # Since 0.16 the plugin names the platform before it gives up: its own rights and roots come into question.
            texts = [one.origin.text.lower() for one in said]
            only_platform = all("platform" in text and "could not load" not in text for text in texts)
            hints = list(facts.said("plugin.asks_for_runtime"))
            yield NO_PLATFORM.finding(
                "The plugin finds no NVML in its container.",
                POSSIBLE if only_platform and not hints else LIKELY,
                [*said, *hints],
                cause_class="plugin-config" if only_platform and not hints else None,
            )
    for node, said in by_node(_of_plugins(facts)).items():
        if node not in told:
            told.add(node)
            yield NO_DRIVER_IN_PLUGIN.finding("The plugin cannot load NVML in its container.", LIKELY, said)
    crashed = [
        one for one in facts.said("plugin.grpc_crashes", "plugin.panic", "plugin.segfault") if "dcgm" not in _whose(one)
    ]
    for said in by_node(crashed).values():
        yield PLUGIN_CRASHES.finding(
            "The plugin's own code fails.", POSSIBLE, said, layer=Layer.L3, cause_class="plugin-health"
        )
    yield from _by_device(facts, told)
    yield from _crashes(facts, told)
    for one in facts.said("reported.plugin_busy"):
        if int(one.get("percent") or one.get("load") or 0) >= 50:
            yield BUSY_LOOP.finding("The plugin's process keeps a CPU busy.", LIKELY, [one])


def _whose(one: Said) -> str:
    return f"{one.origin.kind} {one.origin.source} {one.origin.pod} {one.origin.text}".lower()


def _of_plugins(facts: Facts) -> Iterator[Said]:
    """Sentences about NVML that the plugin wrote: GPU Feature Discovery and DCGM say the same, with other effects."""
    others = {(one.origin.source, one.origin.text) for one in facts.said("gfd.no_labels", "gfd.cannot_write")}
    for one in facts.said("plugin.no_nvml", "plugin.asks_for_runtime"):
        text = one.origin.text.lower()
        by_other = any(word in text for word in ("dcgm", "hostengine", "feature-discovery", "labels"))
        if (one.origin.source, one.origin.text) not in others and not by_other:
            yield one


def _by_device(facts: Facts, told: set[str]) -> Iterator[Answer]:
    reasons = by_node(facts.said(*_REASONS))
    failed = list(facts.said("plugin.device_map_fails"))
    for_cdi = [one for one in failed if _OF_CDI.search(one.origin.text)]
    for said in by_node(for_cdi).values():
        is_denied = "permission denied" in said[-1].origin.text.lower()
        yield PLUGIN_CRASHES.finding(
            "The plugin cannot make its CDI specification.",
            LIKELY,
            said,
            layer=Layer.L3,
            cause_class="permission" if is_denied else "cdi",
        )
    for node, said in by_node(one for one in failed if one not in for_cdi).items():
        if node not in told and node not in reasons:
            told.add(node)
            why = next((said[-1].get(name) for name in _WHY if said[-1].get(name)), "").rpartition(": ")[2]
            config = [one for one in facts.of(PluginConfig) if one.mig_strategy == "single"]
            single = [*config, *facts.said("plugin.told_single")]
            yield MAP_FAILS.finding(
                f"A device does not answer the plugin{f': {why}' if why else ''}.",
                POSSIBLE,
                [*said, *single],
                cause_class="mig-state" if single or any(_OF_MIG.search(one.origin.text) for one in said) else None,
            )
    for node, said in by_node(facts.said("plugin.no_devices")).items():
        later = any(_is_after(one, said) for one in facts.said("plugin.registered"))
        if node not in told and node not in reasons and not later:
            yield NO_DEVICES.finding("The plugin finds no device on its node.", POSSIBLE, said)


def _is_after(one: Said, said: list[Said]) -> bool:
    return all(one.origin.source == other.origin.source and one.origin.line > other.origin.line for other in said)


def _crashes(facts: Facts, told: set[str]) -> Iterator[Answer]:
    """Only where nothing of layer 3 says why."""
    if told or next(facts.said(*_REASONS), None) is not None:
        return
    for pod in facts.of(PodSeen):
        if "device-plugin" in pod.name and "validator" not in pod.name and "mps-control" not in pod.name:
            reasons = [state.reason for state in pod.states if state.reason in _ENDS]
            if reasons:
                yield PLUGIN_CRASHES.finding(
                    f"The plugin's pod {pod.name} is in {reasons[0]}; why is not among what was given.",
                    WEAK,
                    [pod],
                    node=pod.on,
                    pod=pod.key,
                )


RULE = Rule(
    (
        NO_DRIVER_IN_PLUGIN, NO_PLATFORM, MEMORY_UNSUPPORTED, NO_MINOR, NO_DEVICES, MAP_FAILS, PLUGIN_CRASHES,
        BUSY_LOOP,
    ),
    find,
)  # fmt: skip
