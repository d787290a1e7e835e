"""leaderworkerset.x-k8s.io LeaderWorkerSet: each replica is a gang of one leader and `size - 1` workers.

The replicas start independently: leaders never fill the cluster while their workers wait, because a group's
pods are counted before they are created.
"""

from __future__ import annotations

from berth.dialects.assembly import annotated_minimum, called, owner_carrier, pod_set, shape_of, share_minimum
from berth.dialects.carriers import carrier
from berth.dialects.fields import Field
from berth.dialects.shape import Shape
from berth.dialects.topology import exclusive_domain

EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
SUBGROUP_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"


def leader_worker_set(manifest: Field) -> tuple[Shape, ...]:
    spec = manifest["spec"]
    group = spec["leaderWorkerTemplate"]
    replicas, size = spec["replicas"].number(1), group["size"].number(1, least=1)
    workers = group["workerTemplate"]
    leader = group["leaderTemplate"] if group["leaderTemplate"].is_given else workers
    owner = owner_carrier(manifest)
    # With LeaderReady the workers are made only once the leader is ready.
    follows = spec["startupPolicy"].text("LeaderCreated") == "LeaderReady"
    sub_size = group["subGroupPolicy.subGroupSize"].number()
    slices = exclusive_domain([owner], SUBGROUP_EXCLUSIVE, sub_size) if sub_size else None
    made = [pod_set("leader", leader, [owner], 1)]
    if size > 1:
        made.append(pod_set("worker", workers, [owner], size - 1, follows=follows, exclusive=slices))
    minimum, by = annotated_minimum([carrier(workers["metadata"], "its pod template"), owner], size)
    if minimum:
        sets = share_minimum([shape for shape, _ in made], minimum)
        made = [(one, told) for one, (_, told) in zip(sets, made, strict=True)]
    exclusive = exclusive_domain([owner], EXCLUSIVE, 0)
    notes = []
    if replicas == 0:
        notes.append(f"{called(manifest)} asks for no pods: spec.replicas is 0.")
    if exclusive or slices:
        notes.append("Of exclusive-topology it is read that a group stays in one domain, not that it is alone.")
    shape = shape_of(
        manifest,
        made if replicas else [],
        [leader, workers],
        copies=max(replicas, 1),
        exclusive=exclusive,
        is_gang_by=by or f"leaderWorkerTemplate.size of {called(manifest)}",
        notes=notes,
    )
    return (shape,)
