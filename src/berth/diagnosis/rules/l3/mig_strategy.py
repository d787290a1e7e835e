"""L3. The device plugin and the partitions that it finds do not fit."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen
from berth.evidence.formats.plugin_config import PluginConfig
from berth.evidence.formats.smi_facts import DeviceSeen

PROFILES_DIFFER = Code(
    name="MigProfilesDifferUnderSingle",
    layer=Layer.L3,
    cause_class="mig-state",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="strategy single, and the node's partitions are not all alike",
    meaning="With strategy single every GPU of the node must be partitioned, into one and the same profile; else the "
    "plugin refuses and the node offers nothing.",
    known_by="The plugin says that it finds more than one kind of partition, or that GPUs differ in their MIG mode; "
    "GPU Feature Discovery writes a product that ends in -MIG-INVALID.",
    disproved_by="nvidia-smi -L lists one profile only, on all GPUs: then the plugin read an older state.",
    counter_check="on NODE: nvidia-smi -L | grep MIG | awk '{print $2}' | sort | uniq -c: one line",
    fix=Fix(
        steps=("kubectl label node NODE nvidia.com/mig.config=all-<profile> --overwrite (a layout that is the same for "
               "all)",
               "or strategy mixed: mig.strategy=mixed, and pods ask for nvidia.com/mig-<profile>"),
        risk="repartitioning ends what runs on the GPUs; drain NODE first",
        rollback="the former label",
    ),
    verify=("kubectl get node NODE: nvidia.com/gpu.count is the number of partitions, allocatable the same",),
    sources=("k8s-device-plugin internal/rm, internal/lm/mig-strategy.go", "gpu-operator issue 460"),
)  # fmt: skip

EMPTY = Code(
    name="MigEnabledButEmpty",
    layer=Layer.L3,
    cause_class="mig-state",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="MIG is on, and a GPU has no partition",
    meaning="The plugin refuses such a GPU (single) or passes over it (mixed): the node offers nothing or less.",
    known_by="The plugin finds a GPU with MIG enabled and no MIG devices on it.",
    disproved_by="nvidia-smi -L lists partitions on each GPU: they came after the plugin had started.",
    counter_check="on NODE: nvidia-smi -L: MIG lines under every GPU whose MIG mode is Enabled",
    fix=Fix(
        steps=("kubectl label node NODE nvidia.com/mig.config=<layout> --overwrite, and wait for "
               "mig.config.state=success",
               "partitions are lost on a reboot (and on Hopper the mode as well): let the MIG manager apply them again",
               "or switch MIG off: nvidia.com/mig.config=all-disabled",
               "then delete the plugin's pod if it started before that"),
        risk="repartitioning ends what runs on the GPUs; drain NODE first",
        rollback="the former label",
    ),
    verify=("nvidia-smi -L: partitions on all GPUs", "kubectl get node NODE: allocatable as many"),
    sources=("k8s-device-plugin internal/rm/device_map.go", "gpu-operator issue 2670, k8s-device-plugin issue 253"),
)  # fmt: skip

UNPLACED = Code(
    name="MigPlacementUnknown",
    layer=Layer.L3,
    cause_class="mig-state",
    severity=Severity.Error,
    effect=Effect.DevicesUnhealthy,
    title="the device plugin cannot place a partition on its GPU, and calls it unhealthy",
    meaning="The partition is there and is not offered.",
    known_by="'Could not determine device placement', or a MIG UUID that cannot be parsed: NVML did not know the UUID, "
    "and the fallback knows only the old form MIG-GPU-<uuid>/gi/ci.",
    disproved_by="nvidia-smi -L lists that UUID, and a plugin started now reports it healthy.",
    counter_check="on NODE: nvidia-smi -L | grep <the UUID of the message>: listed, and a plugin started now calls it "
    "healthy",
    fix=Fix(
        steps=("partitions were changed while the plugin ran: delete its pod on NODE",
               "give the plugin NVIDIA_MIG_MONITOR_DEVICES=all and SYS_ADMIN, so that NVML knows all partitions"),
        risk="no new allocations for some seconds",
        rollback="nothing to undo",
    ),
    verify=("kubectl logs of the plugin: no further placement message; RESOURCE allocatable equals capacity",),
    sources=("k8s-device-plugin internal/rm/health.go: getMigDeviceParts", "HAMi issue 1950"),
)  # fmt: skip

DENIED = Code(
    name="MigRightsMissing",
    layer=Layer.L3,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin may not read the partitions",
    meaning="Reading partitions needs the monitor capability in the container; without it the plugin ends.",
    known_by="NVML answers 'Insufficient Permissions' while MIG devices or their memory are read.",
    disproved_by="NVIDIA_MIG_MONITOR_DEVICES=all is set in the pod, and the message is still there.",
    counter_check="kubectl get pod of the plugin -o yaml | grep -A1 NVIDIA_MIG_MONITOR_DEVICES: all",
    fix=Fix(
        steps=("set NVIDIA_MIG_MONITOR_DEVICES=all and the capability SYS_ADMIN (or privileged) on the plugin; the "
               "chart does so when migStrategy is not none",),
        risk="the plugin's pod gets more rights on the node",
        rollback="take the rights away again",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin for nvidia.com/mig-…'",),
    sources=("NVIDIA container toolkit: NVIDIA_MIG_MONITOR_DEVICES", "k8s-device-plugin issues 399, 229"),
)  # fmt: skip

UNNAMED = Code(
    name="MigProfileUnnamed",
    layer=Layer.L3,
    cause_class="mig-state",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin has no resource name for a partition",
    meaning="The plugin names only partitions whose compute instance spans its GPU instance; others make it end.",
    known_by="A profile that does not match any resource pattern.",
    disproved_by="nvidia-smi -L lists only profiles of the form Ng.Mgb.",
    counter_check="on NODE: nvidia-smi mig -lci: no compute instance smaller than its GPU instance",
    fix=Fix(
        steps=("create each compute instance over its whole GPU instance (nvidia-smi mig -cgi <id> -C)",
               "attributes such as +me, +gfx: a plugin that knows them"),
        risk="repartitioning ends what runs on that GPU",
        rollback="create the former instances",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin'",),
    sources=("k8s-device-plugin internal/rm/rm.go: AddDefaultResourcesToConfig",),
)  # fmt: skip


STRATEGY_NONE = Code(
    name="MigIgnoredByPlugin",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.NoDeviceInContainer,
    title="MIG is on, and the device plugin is told to ignore it",
    meaning="With strategy none the plugin offers whole GPUs. A GPU in MIG mode cannot be used as a whole: the pod "
    "gets it, and CUDA finds no device.",
    known_by="The plugin's migStrategy is none while nvidia-smi shows MIG enabled.",
    disproved_by="MIG is off on all GPUs of the node.",
    counter_check="on NODE: nvidia-smi --query-gpu=mig.mode.current --format=csv: Disabled on each",
    fix=Fix(
        steps=("offer the partitions: migStrategy single (all alike) or mixed in the plugin and GPU Feature Discovery "
               "(operator: mig.strategy)",
               "or switch MIG off: nvidia.com/mig.config=all-disabled, after a drain of NODE"),
        risk="the plugin restarts; repartitioning ends what runs on the GPUs",
        rollback="the former strategy",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin for nvidia.com/…' with as many as nvidia-smi -L",),
    sources=("k8s-device-plugin README: migStrategy",),
)  # fmt: skip

FILES_UNSEEN = Code(
    name="MigFilesUnseen",
    layer=Layer.L3,
    cause_class="mig-state",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin does not see the files of a partition",
    meaning="Each partition has files under /proc/driver/nvidia/capabilities and numbers in mig-minors. The plugin "
    "finds a partition without them and ends, or passes over it.",
    known_by="The plugin cannot open mig-minors, or misses the capability path of an instance.",
    disproved_by="The path is there on the node and in the plugin's container.",
    counter_check="on NODE: ls /proc/driver/nvidia-caps/mig-minors /proc/driver/nvidia/capabilities/gpu*/mig: there, "
    "and in the plugin's pod as well",
    fix=Fix(
        steps=("partitions were changed under the plugin: delete its pod on NODE",
               "on the host and not in the pod: start it with the NVIDIA runtime and NVIDIA_MIG_MONITOR_DEVICES=all",
               "not on the host: nvidia-modprobe -f, or a driver that knows MIG; driver and its /proc are of one "
               "version"),
        risk="no new allocations for some seconds",
        rollback="nothing to undo",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin'",),
    sources=("k8s-device-plugin internal/mig/mig-dp.go, internal/rm/nvml_devices.go",),
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    told: set[str] = set()
    for node, said in by_node(facts.said("plugin.mig_profiles_differ")).items():
        told.add(node)
        yield PROFILES_DIFFER.finding(
            "Strategy single, and the GPUs of the node are not all partitioned into one profile.", ESTABLISHED, said
        )
    for seen in facts.of(NodeSeen):
        product = seen.labels.get("nvidia.com/gpu.product", "")
        if product.endswith("-MIG-INVALID"):
            yield PROFILES_DIFFER.finding(
                f"GPU Feature Discovery calls the layout invalid for strategy single: {product}.",
                LIKELY,
                [seen],
                node=seen.name,
            )
    for node, said in by_node(facts.said("plugin.mig_empty")).items():
        if node not in told:
            yield EMPTY.finding("A GPU has MIG enabled and no partition on it.", LIKELY, said)
            told.add(node)
    for node, said in by_node(facts.said("mig.none_found")).items():
        if node not in told and not any(device.mig for device in facts.of(DeviceSeen)):
            yield EMPTY.finding("MIG is enabled, and nvidia-smi finds no partition.", POSSIBLE, said)
    for said in by_node(facts.said("reported.profiles_differ")).values():
        yield PROFILES_DIFFER.finding("Strategy single, and GPUs with different profiles.", LIKELY, said)
    for said in by_node(facts.said("reported.mig_without_instances", "reported.empty_mig")).values():
        yield EMPTY.finding("A GPU has MIG enabled and no partition on it.", LIKELY, said)
    for said in by_node(facts.said("reported.partitions_unoffered", "reported.partitions_stale")).values():
        yield EMPTY.finding("Partitions were made after the plugin had started: it does not look again.", LIKELY, said)
    for said in by_node(facts.said("plugin.mig_unplaced")).values():
        device = said_of(one.get("device") for one in said)
        yield UNPLACED.finding(
            f"NVML does not know {device or 'a MIG UUID'} that the plugin serves: partitions were changed, or its view "
            "of them is too narrow.",
            LIKELY,
            said,
            cause_class=None if any("mig" in one.origin.text.lower() for one in said) else "plugin-health",
        )
    yield from _strategy_none(facts)
    for said in by_node(facts.said("plugin.mig_files_unseen")).values():
        yield FILES_UNSEEN.finding("The plugin misses the files of a partition.", LIKELY, said)
    for said in by_node(facts.said("plugin.mig_denied")).values():
        yield DENIED.finding("NVML refuses to show the partitions to the plugin.", LIKELY, said)
    for said in by_node(facts.said("plugin.mig_name_unknown")).values():
        profile = said_of(one.get("profile") for one in said)
        yield UNNAMED.finding(f"The plugin has no name for {profile or 'a partition'}.", LIKELY, said)


def _strategy_none(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("reported.strategy_none_with_mig")).values():
        yield STRATEGY_NONE.finding("Strategy none, and MIG is on.", LIKELY, said)
    configs = [one for one in facts.of(PluginConfig) if one.is_in_effect and one.mig_strategy == "none"]
    on = [one for one in facts.of(DeviceSeen) if one.mig_mode == "Enabled"]
    if configs and on:
        yield STRATEGY_NONE.finding(
            f"The plugin runs with strategy none, and {len(on)} GPU{'s have' if len(on) > 1 else ' has'} MIG enabled.",
            LIKELY,
            [*configs[:1], *on],
        )


RULE = Rule((PROFILES_DIFFER, EMPTY, UNPLACED, DENIED, UNNAMED, FILES_UNSEEN, STRATEGY_NONE), find)
