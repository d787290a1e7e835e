"""From the parts of an owner's manifest to a `Shape`: what all families of owners have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from berth.dialects.carriers import Carrier, carrier, inherited
from berth.dialects.fields import Field
from berth.dialects.groups import doubts_of
from berth.dialects.queue import Candidate, minimum_of, terms_of
from berth.dialects.shape import SetShape, Shape
from berth.dialects.topology import Source, set_wishes, whole_wishes


def namespace_of(manifest: Field) -> str:
    return manifest["metadata.namespace"].text("default") or "default"


def name_of(manifest: Field) -> str:
    """The name; for `generateName: train-` what it will begin with. Raises BadInput where there is neither."""
    meta = manifest["metadata"]
    name = meta["name"].text() or meta["generateName"].text().rstrip("-")
    if not name:
        raise meta["name"].bad("every object needs a name", "Write metadata.name.")
    return name


def called(manifest: Field) -> str:
    """How people name the object: `Job train`."""
    return f"{manifest['kind'].text()} {name_of(manifest)}"


def owner_carrier(manifest: Field) -> Carrier:
    return carrier(manifest["metadata"], called(manifest))


def pod_set(
    name: str,
    template: Field,
    owners: Sequence[Carrier],
    count: int,
    min_count: int | None = None,
    *,
    later: int = 0,
    follows: bool = False,
    kai: Source | None = None,
    volcano: Source | None = None,
    exclusive: Source | None = None,
    extra: Mapping[str, Any] | None = None,
) -> tuple[SetShape, tuple[str, ...]]:
    """A set from its pod template, and what its dialects disagree on.

    `owners` are its carriers above the template, nearest first. Berth's annotations on owners are written
    into the template, because a pod without a key has its owner's. `extra` replaces an absent template.
    """
    said = carrier(template["metadata"], f"the pod template {template.path}")
    wishes = set_wishes([said, *owners], kai, volcano, exclusive)
    content: Mapping[str, Any] = template.mapping() if template.is_given else extra or {}
    if handed := inherited([said, *owners]):
        meta = dict(template["metadata"].mapping())
        meta["annotations"] = {**handed, **said.annotations}
        content = {**content, "metadata": meta}
    shape = SetShape(
        name=name,
        template=content,
        count=count,
        min_count=count if min_count is None else min_count,
        later=later,
        follows=follows,
        topology=wishes.wishes,
        labels={str(k): str(v) for k, v in said.labels.items()},
        path=template.path,
    )
    return shape, wishes.contradictions


def shape_of(
    manifest: Field,
    sets: Sequence[tuple[SetShape, tuple[str, ...]]],
    templates: Sequence[Field],
    *,
    above: Sequence[Carrier] = (),
    copies: int = 1,
    name: str = "",
    kind: str = "",
    volcano_queue: Candidate | None = None,
    priority_classes: Sequence[Candidate] = (),
    time_limit: tuple[float, str] = (0.0, ""),
    suspended: bool = False,
    upstream: Source | None = None,
    volcano: Source | None = None,
    exclusive: Source | None = None,
    scheduler: str = "",
    is_gang_by: str = "",
    notes: Sequence[str] = (),
) -> Shape:
    """The shape of an owner with these sets. `templates` are the pod templates, the leading one first."""
    owner = owner_carrier(manifest)
    carriers = [*(carrier(t["metadata"], f"the pod template {t.path}") for t in templates), owner, *above]
    lead = next((t["spec"] for t in templates if t["spec"].is_given), Field(None))
    terms = terms_of(
        carriers,
        volcano_queue=volcano_queue,
        priority_classes=priority_classes,
        pod_priority_class=lead["priorityClassName"].text(),
        time_limit=time_limit,
    )
    whole = whole_wishes(carriers, upstream, None, volcano, exclusive)
    shapes = tuple(shape for shape, _ in sets)
    told = [sentence for _, sentences in sets for sentence in sentences]
    made = Shape(
        kind=kind or manifest["kind"].text(),
        name=name or name_of(manifest),
        namespace=namespace_of(manifest),
        sets=shapes,
        copies=copies,
        topology=whole.wishes,
        queue=terms.queue,
        priority_class=terms.priority_class,
        priority=lead["priority"].value if isinstance(lead["priority"].value, int) else None,
        preemptible=terms.preemptible,
        min_runtime_s=terms.min_runtime_s,
        time_limit_s=terms.time_limit_s,
        checkpoint_every_s=terms.checkpoint_every_s,
        scheduler=lead["schedulerName"].text(scheduler),
        gates=gates_of(lead),
        suspended=suspended,
        where=manifest.where,
        provenance=(*terms.provenance, *whole.provenance),
        notes=tuple(notes),
        contradictions=tuple(
            dict.fromkeys((*doubts_of(carriers), *terms.contradictions, *whole.contradictions, *told))
        ),
    )
    if made.is_gang and is_gang_by:
        made = replace(made, provenance=(("gang", is_gang_by), *made.provenance))
    return made


def gates_of(spec: Field) -> tuple[str, ...]:
    """Names of the pod's scheduling gates."""
    return tuple(name for gate in spec["schedulingGates"].items() if (name := gate["name"].text()))


def annotated_minimum(carriers: Sequence[Carrier], pods: int, *, is_batch: bool = False) -> tuple[int, str]:
    """The gang's minimum by annotation, and who said it; (0, "") where nobody does.

    Raises BadInput where it is more than the pods that there will be: such a gang never starts.
    """
    minimum, by, said = minimum_of(carriers, is_batch=is_batch)
    if said is not None and minimum > pods > 0:
        raise said.field.bad(
            f"only {pods} pods run at once, so a minimum of {minimum} is never reached",
            f"Write {pods} or less.",
        )
    return minimum, by


def share_minimum(sets: Sequence[SetShape], minimum: int) -> tuple[SetShape, ...]:
    """The sets with a gang's minimum laid on them in their order: sets of one pod (leaders) first.

    A gang's minimum counts any of its pods. Which of them is a choice, and leaders, without whom the others
    wait, are the safe one. Sets that follow others keep their own.
    """
    left = minimum
    given: dict[int, int] = {}
    order = sorted(range(len(sets)), key=lambda i: (sets[i].count > 1, i))
    for i in order:
        if sets[i].follows:
            given[i] = sets[i].min_count
            continue
        given[i] = min(sets[i].count, left)
        left -= given[i]
    return tuple(replace(one, min_count=given[i]) for i, one in enumerate(sets))


def least_shared(sets: Sequence[tuple[str, int, int]], minimum: int) -> dict[str, int]:
    """(name, room, waiting) of each set: how many of `minimum` each takes. Sets of one pod first, then pods
    that are there before pods that are still to be made.
    """
    given = {name: 0 for name, _, _ in sets}
    left = minimum
    for name, room, waiting in sorted(sets, key=lambda s: s[1] > 1):
        given[name] = max(0, min(room, waiting, left))
        left -= given[name]
    for name, room, _ in sorted(sets, key=lambda s: s[1] > 1):
        more = max(0, min(room - given[name], left))
        given[name] += more
        left -= more
    return given
