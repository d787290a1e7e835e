"""batch/v1 Job and CronJob.

What runs at once is the smaller of `parallelism` and `completions`; the rest of the completions is a tail
that comes when earlier pods have ended, and is never waited for. The pods at once are a gang only where the
manifest says that they need each other:

- an annotation with a minimum (Berth, KAI, Volcano, Kueue), or `spec.scheduling` of Kubernetes 1.36 and later;
- a topology wish, which is about all of them;
- `completionMode: Indexed` with all indexes running at once, as torchrun and MPI rendezvous want it. With
  more indexes than parallelism it is an array of independent tasks.

Everything else is independent pods, each of which starts where it fits.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from berth.dialects.assembly import annotated_minimum, called, name_of, owner_carrier, pod_set, shape_of
from berth.dialects.carriers import Carrier, carrier
from berth.dialects.fields import Field
from berth.dialects.shape import Shape
from berth.dialects.topology import set_wishes, upstream_constraints, whole_wishes


def job(manifest: Field, kind: str = "", above: Sequence[Carrier] = ()) -> tuple[Shape, ...]:
    """`above` are owners of the Job whose keys hold for it too."""
    spec = manifest["spec"]
    at_once, later = pods_at_once(spec)
    template = spec["template"]
    owners = [owner_carrier(manifest), *above]
    carriers = [carrier(template["metadata"], "its pod template"), *owners]
    minimum, by = gang_of(spec, carriers, at_once, called(manifest))
    upstream = upstream_constraints(spec["scheduling.schedulingConstraints"], called(manifest))
    limit_s = float(spec["activeDeadlineSeconds"].number())
    if minimum > 1 or at_once == 0:
        made, copies = pod_set("pods", template, owners, at_once, minimum, later=later), 1
    else:
        made, copies = pod_set("pods", template, owners, 1, later=later), at_once
    shape = shape_of(
        manifest,
        [made],
        [template],
        above=above,
        copies=copies,
        kind=kind,
        time_limit=(limit_s, f"spec.activeDeadlineSeconds of {called(manifest)}"),
        suspended=spec["suspend"].flag(),
        upstream=upstream,
        is_gang_by=by,
        notes=_notes(manifest, at_once, later, minimum),
    )
    return (shape,)


def cron_job(manifest: Field) -> tuple[Shape, ...]:
    """Each run is a Job of its own; the shape is that of one run."""
    run = manifest["spec.jobTemplate"]
    meta = {**run["metadata"].mapping(), "name": name_of(manifest)}
    meta.setdefault("namespace", manifest["metadata.namespace"].text("default"))
    content = {"kind": "CronJob", "metadata": meta, "spec": run["spec"].mapping()}
    inner = Field(content, manifest.where, run.path)
    shapes = job(inner, "CronJob", [owner_carrier(manifest)])
    if not manifest["spec.suspend"].flag():
        return shapes
    return tuple(replace(shape, suspended=True) for shape in shapes)


def pods_at_once(spec: Field) -> tuple[int, int]:
    """(pods that run at once, pods that come later) of a JobSpec.

    Without `completions` any pod's success ends the Job, so all of `parallelism` run at once.
    """
    parallelism = spec["parallelism"].number(1)
    completions = spec["completions"]
    if not completions.is_given:
        return parallelism, 0
    total = completions.number()
    at_once = min(parallelism, total)
    return at_once, (total - at_once) if at_once else 0


def gang_of(spec: Field, carriers: Sequence[Carrier], at_once: int, name: str) -> tuple[int, str]:
    """(how many pods must start together, who says so); (1, "") where they are independent."""
    upstream = spec["scheduling.schedulingPolicy.gang.minCount"]
    if upstream.is_given:
        minimum = upstream.number(least=1)
        if minimum > at_once > 0:
            raise upstream.bad(f"only {at_once} pods run at once", f"Write {at_once} or less.")
        return minimum, f"{upstream.path} of {name}"
    minimum, by = annotated_minimum(carriers, at_once, is_batch=True)
    if minimum:
        return min(minimum, max(at_once, 1)), by
    wishes = whole_wishes(carriers).by or set_wishes(carriers).by
    if wishes:
        return at_once, f"its topology wish ({wishes})"
    mode = spec["completionMode"].text("NonIndexed")
    is_whole = spec["completions"].is_given and spec["completions"].number() == at_once
    if mode == "Indexed" and is_whole and at_once > 1:
        return at_once, f"completionMode Indexed of {name}, all indexes at once"
    return min(at_once, 1), ""


def _notes(manifest: Field, at_once: int, later: int, minimum: int) -> list[str]:
    notes = []
    if at_once == 0:
        notes.append(f"{called(manifest)} asks for no pods: parallelism or completions is 0.")
    if later and minimum <= 1 and manifest["spec.completionMode"].text() == "Indexed":
        notes.append(
            f"{called(manifest)} has more indexes than run at once, so its pods are taken as independent; "
            "berth.dev/min-count makes them a gang."
        )
    if later and minimum > 1:
        notes.append(
            f"The gang of {called(manifest)} is the {at_once} pods that run at once; {later} more come one "
            "by one as these end."
        )
    return notes
