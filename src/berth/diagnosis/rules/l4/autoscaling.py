"""L4. Nodes that an autoscaler made, and that do not become what it expects of them."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

NOT_REGISTERED = Code(
    name="RequestedResourceNotRegistered",
    layer=Layer.L4,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="a new node never offers the resource that it was made for",
    meaning="The autoscaler waits for the node to initialise, makes no other, and the pod waits. Either no device "
    "plugin runs there, or it offers the devices under another name.",
    known_by="Karpenter: 'Resource … was requested but not registered'.",
    disproved_by="The node offers the resource by now: drivers and plugin only took their time.",
    counter_check="kubectl get node NODE -o jsonpath={.status.allocatable}: RESOURCE, not RESOURCE.shared or nothing",
    fix=Fix(
        steps=("offered as RESOURCE.shared (time-slicing that renames): let pods ask for that name, or rename no more",
               "offered not at all: does the plugin's DaemonSet tolerate the node's taints and select it? is the image "
               "one with the GPU driver?",
               "delete the NodeClaim once it is mended"),
        risk="a new node costs until it is used",
        rollback="nothing to undo",
    ),
    verify=("kubectl get nodeclaim: Initialized True", "the pod runs"),
    sources=("karpenter pkg/controllers/nodeclaim/lifecycle/initialization.go", "bottlerocket issue 4250"),
)  # fmt: skip

STARTUP_TAINT = Code(
    name="StartupTaintStays",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="a startup taint is never taken off a new node",
    meaning="The autoscaler counts the node as not ready, and pods keep away from it.",
    known_by="Karpenter: StartupTaintsExist, 'still exists'.",
    disproved_by="The taint is gone by now.",
    counter_check="kubectl get node NODE -o jsonpath={.spec.taints}: without that taint",
    fix=Fix(
        steps=(
            "find who should take it off (CNI, driver installer, the agent that waits for GPUs) and why it does not",
            "does its pod tolerate the node's other taints?",
            "kubectl taint node NODE <taint>- once the node is fit",
        ),
        risk="pods come before the node is ready",
        rollback="put the taint back",
    ),
    verify=("kubectl get nodeclaim: Initialized True",),
    sources=("karpenter documentation: startup taints",),
)

SCALES_TOO_FAR = Code(
    name="AutoscalerMakesTooMany",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Warning,
    effect=Effect.CapacityMissing,
    title="the autoscaler makes several GPU nodes for one pod",
    meaning="A new node is Ready before its devices are offered; without the cloud's accelerator label the autoscaler "
    "takes it for one without GPUs and makes the next.",
    known_by="Several scale-ups for one pod; nodes that are removed again unused.",
    disproved_by="As many pods waited as nodes were made.",
    counter_check="kubectl get node NODE --show-labels | tr , '\\n' | grep -e accelerator -e gke-accelerator: is there "
    "from the node's first second",
    fix=Fix(
        steps=(
            "the node group's template gives the label: k8s.amazonaws.com/accelerator, "
            "cloud.google.com/gke-accelerator, kubernetes.azure.com/accelerator",
            "or a startup taint that is lifted when the devices are there (Karpenter: startupTaints)",
            "driver and plugin in the node's image make the gap shorter",
        ),
        risk="new nodes are made with the label; those that run stay",
        rollback="the former template",
    ),
    verify=("one scale-up for one pod",),
    sources=("Cluster Autoscaler FAQ: GPU nodes", "autoscaler issue 3164, gpu-operator issue 708"),
)

GKE_DRIVER = Code(
    name="ManagedDriverNotInstalled",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.DriverAbsent,
    title="the cloud's driver installation is switched off for this node",
    meaning="The managed device plugin waits in its init container for driver libraries that nobody installs.",
    known_by="'GPU driver auto installation is disabled', 'Waiting for GPU driver libraries to be available'.",
    disproved_by="A driver installer runs on the node and is not done yet.",
    counter_check="kubectl get pod -n kube-system -o wide | grep nvidia-driver-installer: one Running on NODE",
    fix=Fix(
        steps=("node pool with gpu-driver-version=default (or latest), auto-provisioning of a version that does so",
               "or apply the cloud's driver installer DaemonSet"),
        risk="new nodes are made",
        rollback="the former node pool",
    ),
    verify=("kubectl get node NODE -o jsonpath={.status.allocatable}: nvidia.com/gpu is there",),
    sources=("container-engine-accelerators issues 402, 407", "GKE documentation: GPU driver installation"),
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("clouds.resource_not_registered")).values():
        named = (one.get("resource") or one.get("other") or one.get("expected") for one in said)
        resource = said_of(named) or "the resource"
        yield NOT_REGISTERED.finding(
            f"The node was made for {resource}, and offers none under that name.", LIKELY, said, resource=resource
        )
    for said in by_node(facts.said("clouds.autoscaler_waits_for_gpu")).values():
        yield NOT_REGISTERED.finding(
            "The autoscaler counts the node as one whose GPUs are not ready yet.",
            POSSIBLE,
            said,
            resource="nvidia.com/gpu",
        )
    if not any(facts.said("clouds.resource_not_registered", "clouds.startup_taint_stays")):
        for said in by_node(facts.said("clouds.not_initialized")).values():
            yield NOT_REGISTERED.finding(
                "The autoscaler does not take the node for initialised: a resource that was asked for is not offered, "
                "or a startup taint stays.",
                POSSIBLE,
                said,
                resource="nvidia.com/gpu",
            )
    for said in by_node(facts.said("clouds.scales_too_far")).values():
        yield SCALES_TOO_FAR.finding("Nodes were made for a pod that needs one.", POSSIBLE, said)
    for said in by_node(facts.said("clouds.startup_taint_stays")).values():
        taint = said_of(one.get("taint") or one.get("other") for one in said)
        yield STARTUP_TAINT.finding(f"The startup taint {taint} is still there.".replace("  ", " "), POSSIBLE, said)
    for said in by_node(facts.said("operator.gke_driver_not_installed")).values():
        yield GKE_DRIVER.finding("The plugin waits for a driver that the node pool does not install.", LIKELY, said)


RULE = Rule((NOT_REGISTERED, STARTUP_TAINT, SCALES_TOO_FAR, GKE_DRIVER), find)
