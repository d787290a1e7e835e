"""Kubernetes objects as they travel, reduced to the fields that decide.

Every field has a default and may be null where a server or a person may write null; unknown fields pass.
Quantities stay as written (text or number) until `berth.sources` turns them into amounts. Nothing here is
kept: these objects live between decoding and conversion. Source: k8s.io/api, core/v1, scheduling.k8s.io/v1.
"""

from __future__ import annotations

from msgspec import Struct, field

Text = str | None
Texts = tuple[str, ...] | None
Labels = dict[str, str | None] | None
Quantity = str | int | float | None
Quantities = dict[str, Quantity] | None


class Wire(Struct, frozen=True, gc=False, rename="camel"):
    """Base of all: camelCase on the wire, snake_case here."""


class OwnerReference(Wire, frozen=True, gc=False):
    api_version: Text = None
    kind: Text = None
    name: Text = None
    uid: Text = None
    controller: bool | None = None


class ObjectMeta(Wire, frozen=True, gc=False):
    name: Text = None
    generate_name: Text = None
    namespace: Text = None
    uid: Text = None
    labels: Labels = None
    annotations: Labels = None
    owner_references: tuple[OwnerReference, ...] | None = None
    creation_timestamp: Text = None
    deletion_timestamp: Text = None
    resource_version: Text = None
    generation: int | None = None


NO_META = ObjectMeta()


class Condition(Wire, frozen=True, gc=False):
    type: Text = None
    status: Text = None
    reason: Text = None
    message: Text = None


# ---- selectors and affinity


class Expression(Wire, frozen=True, gc=False):
    """A NodeSelectorRequirement or a LabelSelectorRequirement."""

    key: Text = None
    operator: Text = None
    values: Texts = None


class LabelSelector(Wire, frozen=True, gc=False):
    match_labels: Labels = None
    match_expressions: tuple[Expression, ...] | None = None


class NodeSelectorTerm(Wire, frozen=True, gc=False):
    match_expressions: tuple[Expression, ...] | None = None
    match_fields: tuple[Expression, ...] | None = None


class NodeSelector(Wire, frozen=True, gc=False):
    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class PreferredNode(Wire, frozen=True, gc=False):
    weight: int | None = None
    preference: NodeSelectorTerm | None = None


class NodeAffinity(Wire, frozen=True, gc=False):
    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredNode, ...] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Wire, frozen=True, gc=False):
    label_selector: LabelSelector | None = None
    namespaces: Texts = None
    namespace_selector: LabelSelector | None = None
    topology_key: Text = None
    match_label_keys: Texts = None
    mismatch_label_keys: Texts = None


class PodAffinity(Wire, frozen=True, gc=False):
    """Affinity or anti-affinity between pods; what is only preferred does not decide and is not read."""

    required: tuple[PodAffinityTerm, ...] | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire, frozen=True, gc=False):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Wire, frozen=True, gc=False):
    max_skew: int | None = None
    topology_key: Text = None
    when_unsatisfiable: Text = None
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: Text = None
    node_taints_policy: Text = None
    match_label_keys: Texts = None


class Toleration(Wire, frozen=True, gc=False):
    key: Text = None
    operator: Text = None
    value: Text = None
    effect: Text = None


# ---- pods


class ResourceRequirements(Wire, frozen=True, gc=False):
    requests: Quantities = None
    limits: Quantities = None


class ContainerPort(Wire, frozen=True, gc=False):
    host_port: int | None = None
    container_port: int | None = None
    host_ip: Text = field(default=None, name="hostIP")
    protocol: Text = None


class Container(Wire, frozen=True, gc=False):
    """`restart_policy` Always makes an init container a sidecar."""

    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: Text = None


class VolumeClaimSource(Wire, frozen=True, gc=False):
    claim_name: Text = None


class EphemeralSource(Wire, frozen=True, gc=False):
    """A claim made for this pod alone, named after it."""


class Volume(Wire, frozen=True, gc=False):
    """Only volumes that tie a pod to a place: a claim by name, or one made for the pod."""

    name: Text = None
    persistent_volume_claim: VolumeClaimSource | None = None
    ephemeral: EphemeralSource | None = None


class PodResourceClaim(Wire, frozen=True, gc=False):
    name: Text = None
    resource_claim_name: Text = None
    resource_claim_template_name: Text = None


class Gate(Wire, frozen=True, gc=False):
    name: Text = None


class SchedulingGroup(Wire, frozen=True, gc=False):
    pod_group_name: Text = None


class PodSpec(Wire, frozen=True, gc=False):
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    resources: ResourceRequirements | None = None
    overhead: Quantities = None
    node_selector: Labels = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    host_network: bool | None = None
    volumes: tuple[Volume, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    node_name: Text = None
    scheduler_name: Text = None
    priority: int | None = None
    priority_class_name: Text = None
    preemption_policy: Text = None
    termination_grace_period_seconds: int | None = None
    scheduling_gates: tuple[Gate, ...] | None = None
    scheduling_group: SchedulingGroup | None = None


class ContainerEnd(Wire, frozen=True, gc=False):
    finished_at: Text = None


class ContainerState(Wire, frozen=True, gc=False):
    terminated: ContainerEnd | None = None


class ContainerStatus(Wire, frozen=True, gc=False):
    state: ContainerState | None = None


class PodStatus(Wire, frozen=True, gc=False):
    """`reason` is the kubelet's, of a pod that it did not admit: `UnexpectedAdmissionError`."""

    phase: Text = None
    reason: Text = None
    message: Text = None
    nominated_node_name: Text = None
    start_time: Text = None
    container_statuses: tuple[ContainerStatus, ...] | None = None


class Pod(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    spec: PodSpec | None = None
    status: PodStatus | None = None


class PodTemplate(Wire, frozen=True, gc=False):
    """The `template` of an owner: a pod without a name."""

    metadata: ObjectMeta | None = None
    spec: PodSpec | None = None


# ---- nodes


class Taint(Wire, frozen=True, gc=False):
    key: Text = None
    value: Text = None
    effect: Text = None


class NodeSpec(Wire, frozen=True, gc=False):
    taints: tuple[Taint, ...] | None = None
    unschedulable: bool | None = None


class NodeStatus(Wire, frozen=True, gc=False):
    allocatable: Quantities = None
    capacity: Quantities = None
    conditions: tuple[Condition, ...] | None = None


class Node(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


# ---- priorities, namespaces


class PriorityClass(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    value: int | None = None
    global_default: bool | None = None
    preemption_policy: Text = None


class Namespace(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
