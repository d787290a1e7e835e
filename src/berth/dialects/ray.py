"""ray.io RayCluster, RayJob and RayService: the head and, of each worker group, its minimum, are one gang."""

from __future__ import annotations

from collections.abc import Sequence

from berth.dialects.assembly import annotated_minimum, called, owner_carrier, pod_set, shape_of, share_minimum
from berth.dialects.carriers import Carrier
from berth.dialects.fields import Field
from berth.dialects.shape import Shape

# Where the cluster's spec stands, by kind.
_CLUSTER = {"RayCluster": "spec", "RayJob": "spec.rayClusterSpec", "RayService": "spec.rayClusterConfig"}


def ray(manifest: Field, above: Sequence[Carrier] = ()) -> tuple[Shape, ...]:
    """`above` are owners of a RayCluster, whose keys hold for it, too."""
    kind = manifest["kind"].text()
    cluster = manifest[_CLUSTER[kind]]
    owner = owner_carrier(manifest)
    name = called(manifest)
    spec = manifest["spec"]
    if not cluster.is_given:
        if kind == "RayJob" and spec["clusterSelector"].is_given:
            note = f"{name} runs on a RayCluster that is there already; it asks for no pods but its submitter."
            return (shape_of(manifest, [], [], notes=[note]),)
        raise cluster.bad(f"a {kind} needs its cluster here", "Write headGroupSpec and workerGroupSpecs.")
    head = cluster["headGroupSpec.template"]
    made = [pod_set("head", head, [owner], 1)]
    templates = [head]
    notes: list[str] = []
    for group in cluster["workerGroupSpecs"].items():
        count, minimum = _workers(group)
        called_group = group["groupName"].text()
        if not called_group:
            raise group["groupName"].bad("every worker group needs a name", "Write its name.")
        if group["suspend"].flag():
            notes.append(f"Worker group {called_group} is suspended and not counted.")
            continue
        if count < minimum:
            notes.append(f"Worker group {called_group}: replicas is below minReplicas, which was taken.")
            count = minimum
        made.append(pod_set(called_group, group["template"], [owner], count, minimum))
        templates.append(group["template"])
    notes += _about_growth(cluster)
    if kind == "RayJob" and spec["submissionMode"].text("K8sJobMode") == "K8sJobMode":
        notes.append(f"The submitter pod of {name}, made once the cluster is ready, is not counted.")
    total = sum(shape.count for shape, _ in made)
    least, by = annotated_minimum([owner, *above], total)
    if least:
        sets = share_minimum([shape for shape, _ in made], least)
        made = [(one, told) for one, (_, told) in zip(sets, made, strict=True)]
    limit = spec["activeDeadlineSeconds"]
    shape = shape_of(
        manifest,
        made,
        templates,
        above=above,
        time_limit=(float(limit.number()), f"{limit.path} of {name}") if kind == "RayJob" else (0.0, ""),
        suspended=spec["suspend"].flag() if kind != "RayService" else cluster["suspend"].flag(),
        is_gang_by=by or f"head and minReplicas of {name}",
        notes=notes,
    )
    return (shape,)


def _workers(group: Field) -> tuple[int, int]:
    """(pods wanted, pods without which it does not start) of one worker group.

    A minReplicas of 0 says that the autoscaler may shrink it, not that the job can start without workers.
    """
    hosts = group["numOfHosts"].number(1, least=1)
    least = group["minReplicas"].number()
    wanted = group["replicas"].number(least)
    return wanted * hosts, (least or wanted) * hosts


def _about_growth(cluster: Field) -> Sequence[str]:
    if not cluster["enableInTreeAutoscaling"].flag():
        return ()
    most = sum(
        g["maxReplicas"].number() * g["numOfHosts"].number(1)
        for g in cluster["workerGroupSpecs"].items()
        if g["maxReplicas"].number() < 2**31 - 1
    )
    return (f"The autoscaler may grow it to {most} workers; what spec says now is counted.",) if most else ()
