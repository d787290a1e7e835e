"""jobset.x-k8s.io JobSet: all replicated jobs are one gang, each a set of `replicas` × pods at once.

With `startupPolicyOrder: InOrder`, or `dependsOn … Ready`, a job's pods are made only when those before it
run: they are no part of the start. A job that `dependsOn … Complete` never runs beside what it waits for and
is a workload of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from berth.dialects.assembly import (
    annotated_minimum,
    called,
    name_of,
    owner_carrier,
    pod_set,
    shape_of,
    share_minimum,
)
from berth.dialects.batch import pods_at_once
from berth.dialects.carriers import Carrier, carrier, either
from berth.dialects.fields import Field
from berth.dialects.shape import SetShape, Shape
from berth.dialects.topology import exclusive_domain

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_NOT_ALONE = "Of exclusive-topology it is read that each job stays in one domain, not that it is alone there."

Told = tuple[SetShape, tuple[str, ...]]


def job_set(manifest: Field, above: Sequence[Carrier] = ()) -> tuple[Shape, ...]:
    """`above` are its owners, whose keys hold for it, too."""
    jobs = manifest["spec.replicatedJobs"]
    entries = jobs.items()
    if not entries:
        raise jobs.bad("a JobSet needs its jobs here", "Write a list of name, replicas and template.")
    in_order = manifest["spec.startupPolicy.startupPolicyOrder"].text("AnyOrder") == "InOrder"
    together: list[tuple[Told, Field]] = []
    after: list[tuple[Told, Field]] = []
    notes: list[str] = []
    for i, job in enumerate(entries):
        if either(_owners(manifest, job), EXCLUSIVE) and _NOT_ALONE not in notes:
            notes.append(_NOT_ALONE)
        waits = {d["status"].text("Ready") for d in job["dependsOn"].items()}
        made = _set_of(manifest, job, follows=(in_order and i > 0) or "Ready" in waits)
        if made[0].later:
            notes.append(
                f"{made[0].later} more pods of {made[0].name} come as earlier ones end; they are no part of the gang."
            )
        (after if "Complete" in waits else together).append((made, job))
    shapes = [_shape(manifest, together, notes, above=above)]
    for made, job in after:
        name = f"{name_of(manifest)}-{made[0].name}"
        note = f"{made[0].name} starts when what it depends on is complete."
        shapes.append(_shape(manifest, [(made, job)], [note], name, above))
    return tuple(shape for shape in shapes if shape.sets)


def _set_of(manifest: Field, job: Field, follows: bool) -> Told:
    spec = job["template.spec"]
    at_once, later = pods_at_once(spec)
    replicas = job["replicas"].number(1)
    name = job["name"].text()
    if not name:
        raise job["name"].bad("every replicated job needs a name", "Write its name.")
    owners = _owners(manifest, job)
    exclusive = exclusive_domain(owners, EXCLUSIVE, at_once) if at_once else None
    return pod_set(
        name,
        spec["template"],
        owners,
        replicas * at_once,
        later=replicas * later,
        follows=follows,
        exclusive=exclusive,
    )


def _owners(manifest: Field, job: Field) -> list[Carrier]:
    name = job["name"].text()
    return [carrier(job["template.metadata"], f"replicated job {name}"), owner_carrier(manifest)]


def _shape(
    manifest: Field, made: Sequence[tuple[Told, Field]], notes: Sequence[str], name: str = "",
    above: Sequence[Carrier] = (),
) -> Shape:  # fmt: skip
    told = [one for one, _ in made]
    owner = owner_carrier(manifest)
    total = sum(shape.count for shape, _ in told)
    minimum, by = annotated_minimum([owner, *above], total, is_batch=True)
    if minimum:
        sets = share_minimum([shape for shape, _ in told], minimum)
        told = [(one, sentences) for one, (_, sentences) in zip(sets, told, strict=True)]
    templates = [job["template.spec.template"] for _, job in made]
    limits = [job["template.spec.activeDeadlineSeconds"].number() for _, job in made]
    # The JobSet ends with its longest job; one without a limit makes it unlimited.
    limit_s = float(max(limits)) if limits and all(limits) else 0.0
    return shape_of(
        manifest,
        told,
        templates,
        above=above,
        name=name,
        time_limit=(limit_s, f"activeDeadlineSeconds of the jobs of {called(manifest)}"),
        suspended=manifest["spec.suspend"].flag(),
        is_gang_by=by or f"all replicated jobs of {called(manifest)}",
        notes=[*notes, *([] if total else [f"{called(manifest)} asks for no pods."])],
    )
