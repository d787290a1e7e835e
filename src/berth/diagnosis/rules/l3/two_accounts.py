"""L3. The same devices are offered twice: by two plugins, or by a plugin and as resource claims."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import Advertised, ObjectSeen, Operand, PodSeen

TWO_PLUGINS = Code(
    name="PluginsSideBySide",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.AccountStale,
    title="two device plugins serve the same GPUs of a node",
    meaning="They take the registration from each other in turns; counts jump, and pods are rejected.",
    known_by="Pods or DaemonSets of two plugins for NVIDIA GPUs, or an endpoint that replaces another again and again.",
    disproved_by="They run on different nodes, or serve different resources.",
    counter_check="kubectl get pod -A -o wide --field-selector spec.nodeName=NODE | grep device-plugin: one",
    fix=Fix(
        steps=("keep one: the operator's, or the manifest's, or that of HAMi or Volcano; delete the other's DaemonSet",
               "with the GPU Operator beside another plugin: devicePlugin.enabled=false",
               "delete the remaining plugin's pods so that they register anew"),
        risk="no new allocations for some seconds",
        rollback="apply the deleted DaemonSet again",
    ),
    verify=("kubelet log: no further registration of RESOURCE within ten minutes",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager: the newest registration wins",),
)  # fmt: skip

BESIDE_CLAIMS = Code(
    name="PluginBesideClaims",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Critical,
    effect=Effect.AccountStale,
    title="a node offers its GPUs as a resource and as claims at the same time",
    meaning="Plugin and resource claims know nothing of each other: one GPU is given to two pods.",
    known_by="A ResourceSlice of gpu.nvidia.com for the node, and nvidia.com/gpu among what it offers.",
    disproved_by="The slice holds only ComputeDomain channels, or the resource is at 0.",
    counter_check="kubectl get resourceslice -o jsonpath='{.items[*].spec.driver}': no gpu.nvidia.com for NODE",
    fix=Fix(
        steps=("choose one for each node: keep the plugin away from nodes with claims (devicePlugin.enabled=false, or "
               "the label nvidia.com/gpu.deploy.device-plugin=false)",
               "or switch off the GPU part of the claims' driver (resources.gpus.enabled=false)"),
        risk="pods of the removed kind wait",
        rollback="switch it on again",
    ),
    verify=("each GPU of NODE is in one account only",),
    sources=("DRA driver for NVIDIA GPUs: documentation", "Kubernetes documentation: dynamic resource allocation"),
)  # fmt: skip

_SET = re.compile(r"^(?P<set>.*?device-plugin(?:-daemonset|-ds)?)(?:-[a-z0-9]{5})?$")
_NOT_A_PLUGIN = ("validator", "mps-control", "sandbox", "kubevirt", "rdma", "sriov", "ascend", "amd", "intel", "habana")
AGAIN = 3  # endpoints that replace each other that often do not come from a roll-out


def find(facts: Facts) -> Iterator[Answer]:
    yield from _two_plugins(facts)
    yield from _claims(facts)
    for said in by_node(
        facts.said(
            "reported.two_plugins", "reported.plugins_on_one_node", "reported.pair_serves_one", "reported.both_serve"
        )
    ).values():
        yield TWO_PLUGINS.finding("Two plugins register one resource.", POSSIBLE, said)
    for said in by_node(facts.said("reported.beside_claims")).values():
        yield BESIDE_CLAIMS.finding("The plugin and the driver of claims serve the same GPUs.", POSSIBLE, said)


def _two_plugins(facts: Facts) -> Iterator[Answer]:
    here: dict[str, dict[str, PodSeen]] = defaultdict(dict)
    for pod in facts.of(PodSeen):
        found = _SET.match(pod.name)
        if found and pod.on and pod.phase == "Running" and _is_plugin(pod.name):
            here[pod.on].setdefault(f"{pod.namespace}/{found['set']}".lstrip("/"), pod)
    for node, sets in here.items():
        if len(sets) > 1 and not _one_of_many(sets):
            yield TWO_PLUGINS.finding(
                f"{' and '.join(sorted(sets))} run on {node}.", LIKELY, list(sets.values()), node=node,
                resource="nvidia.com/gpu",
            )  # fmt: skip
    sets_seen = {one.name: one for one in facts.of(Operand) if one.kind == "DaemonSet" and one.ready > 0}
    plugins = {name: one for name, one in sets_seen.items() if _is_plugin(name)}
    if len(plugins) > 1 and not here and not _one_of_many(plugins):
        yield TWO_PLUGINS.finding(
            f"DaemonSets of {len(plugins)} plugins are ready: {', '.join(sorted(plugins))}.",
            POSSIBLE,
            list(plugins.values()),
            resource="nvidia.com/gpu",
        )
    replaced = list(facts.said("kubelet.endpoint_replaced"))
    if sum(one.times for one in replaced) >= AGAIN:
        yield TWO_PLUGINS.finding("Registrations of one resource replace each other.", POSSIBLE, replaced)


def _is_plugin(name: str) -> bool:
    return _SET.match(name) is not None and not any(word in name for word in _NOT_A_PLUGIN)


def _one_of_many(sets: dict[str, PodSeen] | dict[str, Operand]) -> bool:
    """A managed cloud has one DaemonSet for each size and image of node: nvidia-gpu-device-plugin-small-cos."""
    return all("nvidia-gpu-device-plugin" in name for name in sets)


def _claims(facts: Facts) -> Iterator[Answer]:
    slices: dict[str, ObjectSeen] = {}
    for one in facts.of(ObjectSeen):
        spec = one.body.get("spec") if one.kind == "ResourceSlice" else None
        if isinstance(spec, dict) and spec.get("driver") == "gpu.nvidia.com" and spec.get("devices"):
            slices.setdefault(str(spec.get("nodeName", "")), one)
    for offer in facts.of(Advertised):
        beside = slices.get(offer.name)
        if beside and offer.name and offer.resource == "nvidia.com/gpu" and offer.allocatable > 0:
            yield BESIDE_CLAIMS.finding(
                f"{offer.name} offers {offer.allocatable} {offer.resource} and a ResourceSlice of the same GPUs.",
                LIKELY,
                [offer, beside],
                node=offer.name,
                resource=offer.resource,
            )


RULE = Rule((TWO_PLUGINS, BESIDE_CLAIMS), find)
