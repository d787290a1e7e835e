"""L4. The MIG manager stands still: labels that nobody restores, a state that is not true any more."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen

WEDGED = Code(
    name="MigManagerWedged",
    layer=Layer.L4,
    cause_class="mig-state",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="the MIG manager gave up half way and left the node's components paused",
    meaning="Plugin, discovery and exporter stay away from the node, which offers nothing; no further change of the "
    "label comes that would wake the manager.",
    known_by="nvidia.com/gpu.deploy.* is paused-for-mig-change, and mig.config.state is pending or failed.",
    disproved_by="The manager is at work: its log goes on, and the labels were set some minutes ago.",
    counter_check="kubectl logs of nvidia-mig-manager on NODE: new lines within the last five minutes",
    fix=Fix(
        steps=("find the pod that did not leave (its log: 'Unable to shut down GPU clients') and end it",
               "kubectl label node NODE --overwrite nvidia.com/gpu.deploy.device-plugin=true "
               "nvidia.com/gpu.deploy.gpu-feature-discovery=true nvidia.com/gpu.deploy.dcgm=true "
               "nvidia.com/gpu.deploy.dcgm-exporter=true nvidia.com/gpu.deploy.nvsm=true",
               "toggle nvidia.com/mig.config through another value and back"),
        risk="repartitioning ends what runs on the GPUs; drain NODE first",
        rollback="the former labels",
    ),
    verify=("label nvidia.com/mig.config.state: success", "kubectl get node NODE: allocatable shows the devices"),
    sources=("mig-parted pkg/mig/reconfigure", "gpu-operator issue 2833, mig-parted issue 485"),
)  # fmt: skip

STATE_FAILED = Code(
    name="MigStateFailed",
    layer=Layer.L4,
    cause_class="mig-state",
    severity=Severity.Error,
    effect=Effect.MigNotApplied,
    title="the node's MIG layout is not the one that its label asks for",
    meaning="Pods that ask for the new partitions wait; the node may offer the old ones or none.",
    known_by="nvidia.com/mig.config.state is failed, or stays pending or rebooting.",
    disproved_by="The state is success now, and was set after the last change of the label.",
    counter_check="kubectl get node NODE -L nvidia.com/mig.config,nvidia.com/mig.config.state: success",
    fix=Fix(
        steps=(
            "kubectl logs of nvidia-mig-manager on NODE: the line before the failure",
            "GPUs in use: drain NODE; mode change pending: reboot",
            "toggle nvidia.com/mig.config through another value and back",
        ),
        risk="repartitioning ends what runs on the GPUs",
        rollback="the former label",
    ),
    verify=("label nvidia.com/mig.config.state: success", "nvidia-smi -L: the partitions"),
    sources=("mig-parted pkg/mig/reconfigure",),
)

UNHANDLED = Code(
    name="MigLabelWithoutManager",
    layer=Layer.L4,
    cause_class="mig-state",
    severity=Severity.Warning,
    effect=Effect.MigNotApplied,
    title="a MIG layout is asked for where no MIG manager works",
    meaning="The label has no effect: the operator deploys the manager only on nodes that discovery calls MIG-capable.",
    known_by="nvidia.com/mig.config is set, mig.config.state is not, and mig.capable is not true or the manager's "
    "deploy label is missing.",
    disproved_by="The MIG manager runs on the node.",
    counter_check="kubectl get pod -A -o wide | grep nvidia-mig-manager: Running on NODE",
    fix=Fix(
        steps=("discovery first: nvidia.com/mig.capable=true comes from GPU Feature Discovery",
               "kubectl label node NODE nvidia.com/gpu.deploy.mig-manager=true --overwrite",
               "a board without MIG (T4, V100, L4, L40S, GeForce): take the label away, share by time-slicing or MPS"),
        risk="repartitioning ends what runs on the GPUs",
        rollback="remove the label",
    ),
    verify=("label nvidia.com/mig.config.state: success",),
    sources=("gpu-operator controllers/state_manager.go", "gpu-operator issues 873, 287"),
)  # fmt: skip

_PAUSED = "paused-for-mig-change"


# What says why it failed: other rules answer with them.
_REASONS = (
    "mig.in_use", "mig.orderings_failed", "mig.profile_unsupported", "mig.config_unknown", "mig.mode_pending",
    "mig.mode_disabled", "mig.apply_failed", "mig.toggle_unsupported",
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    stuck = list(facts.said("mig.clients_would_not_leave"))
    for node in facts.of(NodeSeen):
        labels = node.labels
        state = labels.get("nvidia.com/mig.config.state", "")
        paused = [key for key, value in labels.items() if value == _PAUSED]
        if paused:
            yield WEDGED.finding(
                f"{len(paused)} components of {node.name or 'the node'} are paused for a change of MIG, state "
                f"{state or 'unknown'}.",
                LIKELY if state in ("pending", "failed") else POSSIBLE,
                [node, *stuck],
                node=node.name,
            )
        elif state in ("failed", "pending", "rebooting") and next(facts.said(*_REASONS), None) is None:
            yield STATE_FAILED.finding(
                f"{labels.get('nvidia.com/mig.config', 'The layout')} is {state}.",
                LIKELY if state == "failed" else POSSIBLE,
                [node],
                node=node.name,
            )
        elif labels.get("nvidia.com/mig.config") and not state and _is_no_manager(node):
            yield UNHANDLED.finding(
                f"{labels['nvidia.com/mig.config']} is asked for, and no MIG manager is meant to run there.",
                POSSIBLE,
                [node],
                node=node.name,
            )
    if not any(_PAUSED in node.labels.values() for node in facts.of(NodeSeen)):
        for said in by_node(stuck).values():
            yield WEDGED.finding("The components that use the GPU did not leave within the time.", LIKELY, said)
    if not facts.of(NodeSeen):
        for said in by_node(facts.said("mig.manager_absent")).values():
            yield UNHANDLED.finding("The MIG manager does not run on the node.", LIKELY, said)
    labelled = any("nvidia.com/mig.config.state" in node.labels for node in facts.of(NodeSeen))
    if labelled:
        return
    for said in by_node(facts.said("mig.paused")).values():
        yield WEDGED.finding("Components are paused for a change of MIG.", POSSIBLE, said)
    failed = [one for one in facts.said("mig.state_set", "mig.state_label") if one.get("state") != "success"]
    for said in by_node(one for one in failed if one.get("state") in ("failed", "pending", "rebooting")).values():
        if said[-1].message == "mig.state_label" or said[-1].get("state") == "failed":
            yield STATE_FAILED.finding(f"The state of the layout is {said[-1].get('state')}.", POSSIBLE, said)


def _is_no_manager(node: NodeSeen) -> bool:
    """Only where enough labels were printed to know that one is missing."""
    if "nvidia.com/gpu.deploy.mig-manager" in node.labels:
        return node.labels["nvidia.com/gpu.deploy.mig-manager"] == "false"
    return len(node.labels) > 10


RULE = Rule((WEDGED, STATE_FAILED, UNHANDLED), find)
