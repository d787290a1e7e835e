"""L2. What the restart of a container runtime does to those that asked for it, and to the network of pods."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

ENDED_AT_ONCE = Code(
    name="ToolkitEndedByItsRestart",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="the toolkit's pod is ended by the restart of the runtime that it makes",
    meaning="It writes the configuration, restarts containerd, is ended with it, takes its change back, begins anew: "
    "a loop in which other pods of the node restart as well.",
    known_by="The toolkit reports that it waits, and within the same minute that it cleans up and shuts down.",
    disproved_by="Somebody deleted the pod at that time, once.",
    counter_check="kubectl get pods -n NAMESPACE -o wide | grep toolkit : Running, no further restarts",
    fix=Fix(
        steps=(
            "containerd's file must keep what the runtime had: SystemdCgroup = true for runc and for nvidia, the "
            "sandbox image, the version; compare it with containerd config dump before and after",
            "a distribution that renders its file (K3s, RKE2, MicroK8s, k0s): give the toolkit the template or drop-in "
            "of that distribution, with its socket",
            "or prepare the node's runtime by hand and set toolkit.enabled=false, or RESTART_MODE=none",
        ),
        risk="a restart of the runtime interrupts container starts for seconds",
        rollback="restore the saved configuration and restart the runtime",
    ),
    verify=("the toolkit's pod has no restart for ten minutes", "crictl info | grep nvidia : the handler stays"),
    sources=("NVIDIA/gpu-operator report 456", "NVIDIA/nvidia-container-toolkit report 39"),
)

CNI_MISSING = Code(
    name="CniPluginNotFound",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the container runtime looks for network plugins in another directory than they are in",
    meaning="No new pod of the node gets a network, GPU or not. Seen after a toolkit has written containerd's file "
    "and put the default directory in the place of the distribution's (GKE, K3s, RKE2).",
    known_by="The runtime names the plugin and the directory in which it does not find it.",
    disproved_by="The network's own installer has not run on this node yet: its pod is not ready.",
    counter_check="on NODE: containerd config dump | grep -e bin_dir -e conf_dir; ls /opt/cni/bin "
    "/home/kubernetes/bin : the plugin lies where bin_dir points",
    fix=Fix(
        steps=(
            "set bin_dir and conf_dir of the CRI plugin's cni table to where the distribution has them, and restart "
            "containerd",
            "toolkit 1.18.1 and newer write a drop-in and leave these keys; older: RUNTIME_CONFIG_SOURCE=file",
            "the plugin is nowhere: let the network's DaemonSet install it",
        ),
        risk="a restart of containerd interrupts container starts for seconds",
        rollback="restore the saved file and restart containerd",
    ),
    verify=("new pods on NODE become Running",),
    sources=("NVIDIA/nvidia-container-toolkit report 1222", "containerd, docs/cri/config.md: cni"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("toolkit.ended_at_once")).items():
        yield ENDED_AT_ONCE.finding(
            "The toolkit shuts down within a minute of its restart of the runtime.", POSSIBLE, said, node=node
        )
    for node, said in by_node(facts.said("runtime.cni_plugin_missing")).items():
        yield CNI_MISSING.finding(
            f"{first(said, 'plugin')} is not in {first(said, 'path')}.", POSSIBLE, said, node=node
        )


RULE = Rule((ENDED_AT_ONCE, CNI_MISSING), find)
