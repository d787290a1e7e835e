"""L3. A device plugin without devices on a node without GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Rule
from berth.diagnosis.trap import noted, trap
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

_PLUGIN = (
    "plugin.no_nvml",
    "plugin.asks_for_runtime",
    "plugin.not_nvml_platform",
    "plugin.no_devices",
    "runtime.cli_library",
    "runtime.cli_nvml",
)

WITHOUT_GPU = trap(
    "PluginOnNodeWithoutGpu",
    Layer.L3,
    Effect.CapacityMissing,
    "the device plugin finds no device on a node that has no GPU",
    meaning="Its DaemonSet runs on every node unless labels or taints say otherwise. Where there is no GPU it finds no "
    "driver, says what one would do on a GPU node, and waits.",
    known_by="The plugin finds nothing, and the node is said to have no GPU.",
    disproved_by="lspci -d 10de: on the node lists a GPU.",
    counter_check="lspci -d 10de: on the node: nothing",
    sources=("k8s-device-plugin, README and issues 9 and 50",),
    steps=("nothing to mend; a nodeSelector (nvidia.com/gpu.present=true) keeps it to nodes with GPUs",),
    instead_of=(
        "PluginSeesNoDriver",
        "PluginFindsNoPlatform",
        "PluginFindsNoDevices",
        "NoGpuLabels",
        "DriverNotLoaded",
        "DriverLibraryNotFound",
        "PluginCrashesAtStart",
        "NoGpuInContainer",
        "GpuAccessBlockedByOs",
    ),
)
RESTARTED = trap(
    "PluginStreamEndedAtRestart",
    Layer.L3,
    Effect.CapacityMissing,
    "the kubelet lost the plugin's stream and the plugin registered again",
    meaning="Each restart or upgrade of the plugin ends its stream: the kubelet says ListAndWatch ended unexpectedly, "
    "and takes the new registration a moment later.",
    known_by="ListAndWatch ended unexpectedly, and after it a registration for the same kubelet.",
    disproved_by="The two lines come again and again, or capacity stays 0.",
    counter_check="kubectl get node NODE -o jsonpath='{.status.allocatable}': the devices",
    sources=("Kubernetes, pkg/kubelet/cm/devicemanager",),
    instead_of=("PluginEndedUnderKubelet", "PluginStreamBroken"),
)

SHARES_UNLISTED = trap(
    "SharesNotAmongAllocatable",
    Layer.L3,
    Effect.CapacityMissing,
    "memory and cores of a shared GPU are not among what the node offers",
    meaning="HAMi and its kin keep memory and cores of a share in annotations of the node; only the number of shares "
    "is a resource of the kubelet.",
    known_by="gpumem, gpucores or their kin are looked for under Allocatable.",
    disproved_by="The node's annotation of registered devices is empty as well.",
    counter_check="kubectl get node NODE -o jsonpath={.metadata.annotations} : node-nvidia-register lists the GPUs "
    "with their memory",
    sources=("HAMi documentation and issue 612", "volcano devices issue 42"),
)
FORGOTTEN = trap(
    "KubeletStartupNoise",
    Layer.L3,
    Effect.BlindMonitoring,
    "lines of the kubelet's watch over containers that stop nothing",
    meaning="The part of the kubelet that measures containers meets some that have just ended, or a machine whose "
    "firmware tells less than it asks for. It says so at level error and goes on.",
    known_by="These lines alone.",
    disproved_by="The node is not Ready, or pods do not start.",
    counter_check="kubectl get node NODE: Ready",
    sources=("cAdvisor, manager; Kubernetes issues 53969 and 76823",),
)
FOLLOWS = trap(
    "PluginFollowsKubelet",
    Layer.L3,
    Effect.CapacityMissing,
    "the device plugin starts anew because the kubelet did",
    meaning="A kubelet that starts makes its socket anew and knows no plugin. Plugins watch the socket, stop their "
    "server and register again; the line of the end is logged as an error without one (<nil>).",
    known_by="kubelet.sock was made anew, and the plugin serves again.",
    disproved_by="It comes again and again, or no registration follows.",
    counter_check="kubectl get node NODE -o jsonpath='{.status.allocatable}': the devices",
    sources=("container-engine-accelerators, pkg/gpu/nvidia/manager.go", "k8s-device-plugin, cmd/nvidia-device-plugin"),
    instead_of=("KubeletSocketRefuses",),
)
MPS = trap(
    "MpsLogOfClients",
    Layer.L3,
    Effect.BlindMonitoring,
    "the log of MPS tells of clients that come and go",
    meaning="The control daemon asks each client for its credentials twice, keeps the first one waiting until a server "
    "has started, and notes when a client has ended. None of it is a fault.",
    known_by="These lines alone, with a server that became ready.",
    disproved_by="Programs fail with an error of MPS (805 to 809).",
    counter_check="echo get_server_list | nvidia-cuda-mps-control: a server; the programs end well",
    sources=("NVIDIA MPS documentation: logs",),
)


def find(facts: Facts) -> Iterator[Answer]:
    yield from noted(
        facts, FORGOTTEN, ("harmless.container_forgotten", "harmless.kubelet_starts"), "The kubelet goes on."
    )
    yield from noted(
        facts,
        FOLLOWS,
        ("harmless.plugin_follows_kubelet",),
        "The kubelet made its socket anew.",
        POSSIBLE,
        unless=("kubelet.registry_fails", "plugin.socket_absent"),
    )
    refused = [
        one for one in facts.said("kubelet.registry_fails", "plugin.socket_absent") if "refused" in one.origin.text
    ]
    taken = [
        said
        for said in facts.said("kubelet.registration_request")
        if any(said.origin.source == one.origin.source and said.origin.line > one.origin.line for one in refused)
    ]
    if taken:
        yield FOLLOWS.finding(
            "The socket refused for a moment, and then took the registration.", LIKELY, [*refused, *taken]
        )
    yield from noted(
        facts, MPS, ("harmless.mps_log", "harmless.mps_server_listed"), "Clients came and went.", POSSIBLE,
        unless=("reported.busy_mps_client", "reported.mps_daemon_missing"),
    )  # fmt: skip
    yield from noted(
        facts, SHARES_UNLISTED, ("plugin.share_not_offered",), "Memory or cores of shares are no resource of the node."
    )
    ended = list(facts.said("kubelet.stream_eof", "kubelet.stream_broken", "harmless.endpoint_ended"))
    again = [
        said
        for said in facts.said("kubelet.registration_request")
        if any(one.origin.source == said.origin.source and one.origin.line < said.origin.line for one in ended)
    ]
    if again and sum(one.times for one in ended) == len(ended) == 1 and not any(facts.said("plugin.terminated")):
        yield RESTARTED.finding("The stream ended once, and the plugin registered anew.", LIKELY, [*ended, *again])
    if not facts.of(DeviceSeen):
        yield from noted(
            facts, WITHOUT_GPU, ("harmless.plugin_on_plain_node",), "The node has no GPU for it.", POSSIBLE
        )
    told = list(facts.said("harmless.node_without_gpu"))
    if not told or facts.of(DeviceSeen):
        return
    if silent := list(facts.said(*_PLUGIN, "harmless.plugin_everywhere")):
        yield WITHOUT_GPU.finding("The plugin finds no device, and the node has none.", LIKELY, [*told, *silent])


RULE = Rule((WITHOUT_GPU, RESTARTED, SHARES_UNLISTED, FORGOTTEN, FOLLOWS, MPS), find)
