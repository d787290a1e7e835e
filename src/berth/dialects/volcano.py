"""batch.volcano.sh Job: tasks are sets, `minAvailable` of the job and of each task is the gang's minimum."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from berth.dialects.assembly import annotated_minimum, called, owner_carrier, pod_set, shape_of, share_minimum
from berth.dialects.fields import Field
from berth.dialects.queue import Candidate
from berth.dialects.shape import SetShape, Shape
from berth.dialects.topology import volcano_network


def volcano_job(manifest: Field, tiers: Mapping[int, str] | None = None) -> tuple[Shape, ...]:
    """`tiers` names the tiers of HyperNodes where those are at hand (topology.tier_names)."""
    spec, name = manifest["spec"], called(manifest)
    tasks = spec["tasks"].items()
    if not tasks:
        raise spec["tasks"].bad("a Volcano Job needs its tasks here", "Write name, replicas and template.")
    owner = owner_carrier(manifest)
    made = []
    for i, task in enumerate(tasks):
        replicas = task["replicas"].number(1)
        partition = task["partitionPolicy"]
        volcano = volcano_network(partition["networkTopology"], name, tiers or {}, partition["partitionSize"].number())
        made.append(
            pod_set(
                task["name"].text(f"default{i}"),
                task["template"],
                [owner],
                replicas,
                task["minAvailable"].number(replicas),
                follows=bool(task["dependsOn.name"].items()),
                volcano=volcano,
            )
        )
    sets, by = _with_minimum(manifest, [shape for shape, _ in made])
    queue, priority = spec["queue"].text(), spec["priorityClassName"].text()
    notes = [f"{name} asks for no pods."] if not sum(s.count for s in sets) else []
    shape = shape_of(
        manifest,
        [(one, told) for one, (_, told) in zip(sets, made, strict=True)],
        [task["template"] for task in tasks],
        volcano_queue=Candidate(queue, f"spec.queue of {name}") if queue else None,
        priority_classes=[Candidate(priority, f"spec.priorityClassName of {name}")] if priority else [],
        volcano=volcano_network(spec["networkTopology"], name, tiers or {}),
        scheduler=spec["schedulerName"].text("volcano"),
        is_gang_by=by,
        notes=notes,
    )
    return (shape,)


def _with_minimum(manifest: Field, sets: list[SetShape]) -> tuple[tuple[SetShape, ...], str]:
    """The job's minimum goes before the tasks': below their sum Volcano no longer asks for each task's."""
    name = called(manifest)
    total = sum(s.count for s in sets)
    minimum, by = annotated_minimum([owner_carrier(manifest)], total)
    if minimum:
        return share_minimum(sets, minimum), by
    for task, one in zip(manifest["spec.tasks"].items(), sets, strict=True):
        if one.min_count > one.count:
            raise task["minAvailable"].bad(
                f"the task has {one.count} replicas, so it would never start",
                f"Write {one.count} or less.",
            )
    available = manifest["spec.minAvailable"]
    if not available.is_given:
        return tuple(sets), f"minAvailable of the tasks of {name}"
    least = available.number()
    if least > total:
        raise available.bad(f"the job has {total} pods, so it would never start", f"Write {total} or less.")
    of_tasks = sum(s.min_count for s in sets)
    if least < of_tasks:
        return share_minimum(sets, least), f"spec.minAvailable of {name}"
    left = least - of_tasks
    raised = []
    for one in sets:
        more = min(one.count - one.min_count, left)
        left -= more
        raised.append(replace(one, min_count=one.min_count + more))
    return tuple(raised), f"spec.minAvailable of {name}"
