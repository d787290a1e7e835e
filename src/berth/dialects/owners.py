"""Every kind of owner that Berth reads, in one table: from a manifest to shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from berth.dialects import batch, core, jobset, kubeflow, leaderworkerset, ray, volcano
from berth.dialects.assembly import namespace_of
from berth.dialects.carriers import Carrier
from berth.dialects.fields import Field
from berth.dialects.objects import Index, Objects, find, group_of
from berth.dialects.shape import Manifest, Shape
from berth.dialects.topology import tier_names

Reader = Callable[[Field], tuple[Shape, ...]]
BelowAnother = Callable[[Field, Sequence[Carrier]], tuple[Shape, ...]]
TRAINER, VOLCANO = "trainer.kubeflow.org", "batch.volcano.sh"

READERS: dict[tuple[str, str], Reader] = {
    ("", "Pod"): core.pod,
    ("", "ReplicationController"): core.replicated,
    ("apps", "Deployment"): core.replicated,
    ("apps", "ReplicaSet"): core.replicated,
    ("apps", "StatefulSet"): core.replicated,
    ("apps", "DaemonSet"): core.daemon_set,
    ("batch", "Job"): batch.job,
    ("batch", "CronJob"): batch.cron_job,
    **{("kubeflow.org", kind): kubeflow.training_job for kind in kubeflow.REPLICA_SPECS},
    ("jobset.x-k8s.io", "JobSet"): jobset.job_set,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): leaderworkerset.leader_worker_set,
    ("ray.io", "RayCluster"): ray.ray,
    ("ray.io", "RayJob"): ray.ray,
    ("ray.io", "RayService"): ray.ray,
    (TRAINER, "TrainJob"): kubeflow.train_job,
    (VOLCANO, "Job"): volcano.volcano_job,
}

# Owners that make another owner, which says more than they do: the lower one is read, with both's keys.
ABOVE_ANOTHER = {
    ("apps", "Deployment"),
    ("batch", "CronJob"),
    (TRAINER, "TrainJob"),
    ("ray.io", "RayJob"),
    ("ray.io", "RayService"),
}
# What those make, read with the keys of whoever made it.
BELOW_ANOTHER: dict[tuple[str, str], BelowAnother] = {
    ("apps", "ReplicaSet"): core.replicated,
    ("batch", "Job"): lambda field, above: batch.job(field, above=above),
    ("jobset.x-k8s.io", "JobSet"): jobset.job_set,
    ("ray.io", "RayCluster"): ray.ray,
}
# Owners whose pods stand alone unless an annotation says otherwise.
INDEPENDENT = {
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("", "ReplicationController"),
    ("batch", "Job"),
    ("batch", "CronJob"),
}
API_GROUPS = {kind: group for group, kind in READERS if (group, kind) != (VOLCANO, "Job")}


def is_read(manifest: Manifest) -> bool:
    """It is a kind that asks for pods."""
    return _kind(manifest) in READERS


def shapes_of(
    manifest: Manifest, where: str = "", objects: Objects | None = None, above: Sequence[Carrier] = ()
) -> tuple[Shape, ...]:
    """The workloads that a manifest asks for: one, or several that do not start together.

    `objects` are the other objects of the file or dump: a TrainJob finds its runtime there, a Volcano Job
    the names of its tiers. `above` are owners of the manifest whose keys hold for it, too. Raises BadInput with
    `where`, the field's path, value, rule and remedy.
    """
    field = Field(manifest, where)
    kind = field["kind"].text()
    api_version = field["apiVersion"].text()
    reader = READERS.get((group_of(api_version), kind))
    if reader is None:
        remedy = "Berth reads " + ", ".join(sorted({k for _, k in READERS})) + "."
        if kind in API_GROUPS:
            group = API_GROUPS[kind]
            remedy = f"The {kind} that Berth reads is of {group or 'the core group, apiVersion v1'}."
        raise field["apiVersion" if kind in API_GROUPS else "kind"].bad("not a workload", remedy)
    if (group_of(api_version), kind) == (TRAINER, "TrainJob"):
        return kubeflow.train_job(field, _runtime(field, objects or {}))
    if (group_of(api_version), kind) == (VOLCANO, "Job"):
        return volcano.volcano_job(field, tiers_among(objects or {}))
    below = BELOW_ANOTHER.get((group_of(api_version), kind)) if above else None
    return below(field, above) if below is not None else reader(field)


def tiers_among(objects: Objects) -> dict[int, str]:
    """Names of the tiers of the HyperNodes among the objects."""
    if isinstance(objects, Index):
        return tier_names(objects.hypernodes)
    return tier_names([thing for (_, kind, _, _), thing in objects.items() if kind == "HyperNode"])


def _runtime(manifest: Field, objects: Objects) -> Manifest | None:
    ref = manifest["spec.runtimeRef"]
    kind, name = ref["kind"].text("ClusterTrainingRuntime"), ref["name"].text()
    return find(objects, TRAINER, kind, namespace_of(manifest), name)


def _kind(manifest: Mapping[str, Any]) -> tuple[str, str]:
    return group_of(str(manifest.get("apiVersion") or "")), str(manifest.get("kind") or "")
