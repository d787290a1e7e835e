"""Storage as it travels: claims, volumes, classes, what drivers say of nodes and of what they have left.

Source: k8s.io/api, core/v1 and storage.k8s.io/v1. In-tree volumes are read as far as their CSI drivers have taken them
over (k8s.io/csi-translation-lib).
"""

from __future__ import annotations

from msgspec import field

from berth.kube.wire import LabelSelector, NodeSelector, ObjectMeta, Quantities, Quantity, Text, Texts, Wire

# ---- annotations and names with a meaning

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
CLASS_BEFORE_IT_WAS_A_FIELD = "volume.beta.kubernetes.io/storage-class"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAITS = "WaitForFirstConsumer"
ONCE = "ReadWriteOncePod"


# ---- claims


class VolumeResources(Wire, frozen=True, gc=False):
    requests: Quantities = None


class PersistentVolumeClaimSpec(Wire, frozen=True, gc=False):
    volume_name: Text = None
    storage_class_name: Text = None
    access_modes: Texts = None
    volume_mode: Text = None
    resources: VolumeResources | None = None
    selector: LabelSelector | None = None
    volume_attributes_class_name: Text = None


class PersistentVolumeClaimStatus(Wire, frozen=True, gc=False):
    phase: Text = None


class PersistentVolumeClaim(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    spec: PersistentVolumeClaimSpec | None = None
    status: PersistentVolumeClaimStatus | None = None


# ---- volumes


class VolumeNodeAffinity(Wire, frozen=True, gc=False):
    required: NodeSelector | None = None


class ClaimReference(Wire, frozen=True, gc=False):
    namespace: Text = None
    name: Text = None
    uid: Text = None


class CsiSource(Wire, frozen=True, gc=False):
    driver: Text = None
    volume_handle: Text = None


class InTreeSource(Wire, frozen=True, gc=False):
    """A volume of a plugin that is a CSI driver today: one of these names it."""

    volume_id: Text = field(default=None, name="volumeID")
    pd_name: Text = None
    disk_name: Text = None
    volume_path: Text = None

    @property
    def handle(self) -> str:
        return self.volume_id or self.pd_name or self.disk_name or self.volume_path or ""


class PersistentVolumeSpec(Wire, frozen=True, gc=False):
    capacity: Quantities = None
    access_modes: Texts = None
    volume_mode: Text = None
    storage_class_name: Text = None
    volume_attributes_class_name: Text = None
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None
    aws_elastic_block_store: InTreeSource | None = None
    gce_persistent_disk: InTreeSource | None = None
    azure_disk: InTreeSource | None = None
    cinder: InTreeSource | None = None
    vsphere_volume: InTreeSource | None = None
    portworx_volume: InTreeSource | None = None


class PersistentVolumeStatus(Wire, frozen=True, gc=False):
    phase: Text = None


class PersistentVolume(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    spec: PersistentVolumeSpec | None = None
    status: PersistentVolumeStatus | None = None


# By the field of a volume's spec, and by the provisioner of a class: the CSI driver that serves it.
DRIVERS_OF_FIELDS = {
    "aws_elastic_block_store": "ebs.csi.aws.com",
    "gce_persistent_disk": "pd.csi.storage.gke.io",
    "azure_disk": "disk.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "vsphere_volume": "csi.vsphere.vmware.com",
    "portworx_volume": "pxd.portworx.com",
}
DRIVERS_OF_PROVISIONERS = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}


# ---- classes


class TopologyExpression(Wire, frozen=True, gc=False):
    key: Text = None
    values: Texts = None


class TopologyTerm(Wire, frozen=True, gc=False):
    match_label_expressions: tuple[TopologyExpression, ...] | None = None


class StorageClass(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    provisioner: Text = None
    volume_binding_mode: Text = None
    allowed_topologies: tuple[TopologyTerm, ...] | None = None


# ---- what drivers say


class VolumeNodeResources(Wire, frozen=True, gc=False):
    count: int | None = None


class CsiNodeDriver(Wire, frozen=True, gc=False):
    name: Text = None
    allocatable: VolumeNodeResources | None = None


class CsiNodeSpec(Wire, frozen=True, gc=False):
    drivers: tuple[CsiNodeDriver, ...] | None = None


class CsiNode(Wire, frozen=True, gc=False):
    """Named after its node."""

    metadata: ObjectMeta | None = None
    spec: CsiNodeSpec | None = None


class CsiDriverSpec(Wire, frozen=True, gc=False):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CsiDriver(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    spec: CsiDriverSpec | None = None


class CsiStorageCapacity(Wire, frozen=True, gc=False):
    """What a driver has left for a class, on the nodes that the selector matches; without one on none."""

    metadata: ObjectMeta | None = None
    storage_class_name: Text = None
    capacity: Quantity = None
    maximum_volume_size: Quantity = None
    node_topology: LabelSelector | None = None
