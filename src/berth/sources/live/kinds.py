"""Which kinds of a cluster are followed: what decides by itself, and what says which pods are one workload."""

from __future__ import annotations

from msgspec import Struct

from berth.dialects.owners import ABOVE_ANOTHER, INDEPENDENT
from berth.kube import wire, wire_budgets, wire_devices, wire_ledger, wire_queues, wire_reservations, wire_volumes


class Kind(Struct, frozen=True):
    """A resource of the API. `type` None: read as a plain mapping, as the dialects want it."""

    group: str
    resource: str
    kind: str
    type: type[Struct] | None = None

    @property
    def called(self) -> str:
        """As kubectl names it: `podgroups.scheduling.k8s.io`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


# Without these nothing can be decided.
NEEDED = (
    Kind("", "nodes", "Node", wire.Node),
    Kind("", "pods", "Pod", wire.Pod),
    Kind("scheduling.k8s.io", "priorityclasses", "PriorityClass", wire.PriorityClass),
)

TYPED = (
    Kind("", "persistentvolumeclaims", "PersistentVolumeClaim", wire_volumes.PersistentVolumeClaim),
    Kind("", "persistentvolumes", "PersistentVolume", wire_volumes.PersistentVolume),
    Kind("storage.k8s.io", "storageclasses", "StorageClass", wire_volumes.StorageClass),
    Kind("storage.k8s.io", "csinodes", "CSINode", wire_volumes.CsiNode),
    Kind("storage.k8s.io", "csidrivers", "CSIDriver", wire_volumes.CsiDriver),
    Kind("storage.k8s.io", "csistoragecapacities", "CSIStorageCapacity", wire_volumes.CsiStorageCapacity),
    Kind("resource.k8s.io", "deviceclasses", "DeviceClass", wire_devices.DeviceClass),
    Kind("resource.k8s.io", "resourceslices", "ResourceSlice", wire_devices.ResourceSlice),
    Kind("policy", "poddisruptionbudgets", "PodDisruptionBudget", wire_budgets.PodDisruptionBudget),
    Kind("berth.dev", "gpuqueues", "GPUQueue", wire_queues.GPUQueue),
    Kind("berth.dev", "gpureservations", "GPUReservation", wire_reservations.GPUReservation),
    Kind("berth.dev", "gpuclasses", "GPUClass", wire_queues.GPUClass),
    Kind("berth.dev", "gputopologies", "GPUTopology", wire_queues.Topology),
    Kind("berth.dev", "nodeledgers", "NodeLedger", wire_ledger.NodeLedger),
    Kind("kueue.x-k8s.io", "topologies", "Topology", wire_queues.Topology),
    Kind("kai.scheduler", "topologies", "Topology", wire_queues.Topology),
)

# Groups, then owners.
PLAIN = (
    Kind("scheduling.k8s.io", "podgroups", "PodGroup"),
    Kind("scheduling.k8s.io", "workloads", "Workload"),
    Kind("scheduling.run.ai", "podgroups", "PodGroup"),
    Kind("scheduling.volcano.sh", "podgroups", "PodGroup"),
    Kind("scheduling.x-k8s.io", "podgroups", "PodGroup"),
    Kind("topology.volcano.sh", "hypernodes", "HyperNode"),
    Kind("kueue.x-k8s.io", "workloads", "Workload"),
    Kind("batch", "jobs", "Job"),
    Kind("batch", "cronjobs", "CronJob"),
    Kind("batch.volcano.sh", "jobs", "Job"),
    Kind("jobset.x-k8s.io", "jobsets", "JobSet"),
    Kind("kubeflow.org", "pytorchjobs", "PyTorchJob"),
    Kind("kubeflow.org", "tfjobs", "TFJob"),
    Kind("kubeflow.org", "mpijobs", "MPIJob"),
    Kind("kubeflow.org", "xgboostjobs", "XGBoostJob"),
    Kind("kubeflow.org", "paddlejobs", "PaddleJob"),
    Kind("kubeflow.org", "jaxjobs", "JAXJob"),
    Kind("trainer.kubeflow.org", "trainjobs", "TrainJob"),
    Kind("trainer.kubeflow.org", "trainingruntimes", "TrainingRuntime"),
    Kind("trainer.kubeflow.org", "clustertrainingruntimes", "ClusterTrainingRuntime"),
    Kind("ray.io", "rayclusters", "RayCluster"),
    Kind("ray.io", "rayjobs", "RayJob"),
    Kind("ray.io", "rayservices", "RayService"),
    Kind("leaderworkerset.x-k8s.io", "leaderworkersets", "LeaderWorkerSet"),
    Kind("apps", "deployments", "Deployment"),
    Kind("apps", "replicasets", "ReplicaSet"),
    Kind("apps", "statefulsets", "StatefulSet"),
)

FOLLOWED = (*NEEDED, *TYPED, *PLAIN)


def makes_gangs(group: str, kind: str) -> bool:
    """Whether pods that belong to an object of the kind may have to start together, by what only it says.

    What makes another owner leaves that to it; of Jobs an annotation, or their numbers, may say so.
    """
    key = (group, kind)
    return key == ("batch", "Job") or key not in (INDEPENDENT | ABOVE_ANOTHER)
