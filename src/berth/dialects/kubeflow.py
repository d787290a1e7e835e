"""Kubeflow's training operators: PyTorchJob and its kin, MPIJob (v1 and v2beta1), and Trainer's TrainJob.

All pods of such a job are one gang, unless `runPolicy.schedulingPolicy.minAvailable` or PyTorchJob's
`elasticPolicy.minReplicas` says that fewer are enough to start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.dialects.assembly import (
    annotated_minimum,
    called,
    owner_carrier,
    pod_set,
    shape_of,
    share_minimum,
)
from berth.dialects.carriers import carrier
from berth.dialects.fields import Field
from berth.dialects.queue import Candidate
from berth.dialects.shape import Manifest, SetShape, Shape

# Field with the replica specs by kind. Leading roles first: the rest waits for them.
REPLICA_SPECS = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
}
_LEADERS = ("launcher", "master", "chief", "ps")


def training_job(manifest: Field) -> tuple[Shape, ...]:
    """PyTorchJob, TFJob, XGBoostJob, JAXJob, PaddleJob, MPIJob."""
    kind = manifest["kind"].text()
    spec = manifest["spec"]
    roles = spec[REPLICA_SPECS[kind]]
    entries = sorted(roles.entries(), key=lambda e: (_rank(e[0]), e[0].lower()))
    if not entries:
        raise roles.bad(f"a {kind} needs its replicas here", "Write Worker with replicas and template.")
    owner = owner_carrier(manifest)
    # In MPIJob v2beta1 the launcher may be made only when all workers are ready.
    waits = kind == "MPIJob" and spec["launcherCreationPolicy"].text() == "WaitForWorkersReady"
    made = []
    for role, replica in entries:
        follows = waits and role.lower() == "launcher"
        made.append(
            pod_set(
                role.lower(),
                replica["template"],
                [owner],
                replica["replicas"].number(1),
                follows=follows,
            )
        )
    sets, by = _with_minimum(manifest, tuple(shape for shape, _ in made))
    # v1 has spec.runPolicy; MPIJob of older versions keeps some of its fields in spec.
    policy = spec["runPolicy"]
    limit = policy["activeDeadlineSeconds"] if policy.is_given else spec["activeDeadlineSeconds"]
    queue = policy["schedulingPolicy.queue"].text()
    priority = policy["schedulingPolicy.priorityClass"].text()
    where = f"spec.runPolicy.schedulingPolicy of {called(manifest)}"
    shape = shape_of(
        manifest,
        [(one, told) for one, (_, told) in zip(sets, made, strict=True)],
        [replica["template"] for _, replica in entries],
        volcano_queue=Candidate(queue, where) if queue else None,
        priority_classes=[Candidate(priority, where)] if priority else [],
        time_limit=(float(limit.number()), f"{limit.path} of {called(manifest)}"),
        suspended=policy["suspend"].flag() or spec["suspend"].flag(),
        is_gang_by=by,
        notes=_notes(manifest, sets),
    )
    return (shape,)


def _with_minimum(manifest: Field, sets: tuple[SetShape, ...]) -> tuple[tuple[SetShape, ...], str]:
    spec, name = manifest["spec"], called(manifest)
    total = sum(s.count for s in sets)
    templates = [
        carrier(replica["template.metadata"], "its pod template")
        for _, replica in spec[REPLICA_SPECS[manifest["kind"].text()]].entries()
    ]
    minimum, by = annotated_minimum([*templates, owner_carrier(manifest)], total)
    if minimum:
        return share_minimum(sets, minimum), by
    elastic = spec["elasticPolicy.minReplicas"]
    if elastic.is_given:
        least = elastic.number(least=1)
        workers = next((s for s in sets if s.name == "worker"), None)
        if workers is not None and least > workers.count:
            raise elastic.bad(
                f"spec asks for {workers.count} workers, fewer than this minimum",
                f"Write {workers.count} or less.",
            )
        others = sum(s.count for s in sets if s.name != "worker")
        return share_minimum(sets, least + others), f"spec.elasticPolicy.minReplicas of {name}"
    available = spec["runPolicy.schedulingPolicy.minAvailable"]
    if available.is_given:
        least = available.number(least=1)
        if least > total > 0:
            raise available.bad(f"the job has {total} pods, so it would never start", f"Write {total} or less.")
        return share_minimum(sets, least), f"{available.path} of {name}"
    return sets, f"all replicas of {name}"


def _notes(manifest: Field, sets: tuple[SetShape, ...]) -> list[str]:
    notes = []
    if not sum(s.count for s in sets):
        notes.append(f"{called(manifest)} asks for no pods.")
    most = manifest["spec.elasticPolicy.maxReplicas"]
    if most.is_given and most.number() > sum(s.count for s in sets if s.name == "worker"):
        notes.append(f"It may grow to {most.number()} workers; what spec.replicas says is counted.")
    return notes


def _rank(role: str) -> int:
    return _LEADERS.index(role.lower()) if role.lower() in _LEADERS else len(_LEADERS)


def train_job(manifest: Field, runtime: Manifest | None = None) -> tuple[Shape, ...]:
    """Trainer's TrainJob: `trainer.numNodes` nodes of `trainer.resourcesPerNode`.

    The pod template is in its TrainingRuntime. Where that is not at hand, what the TrainJob itself says
    is all that is known: requests, and no image, selector or toleration.
    """
    spec = manifest["spec"]
    trainer = spec["trainer"]
    inner = Field(runtime, manifest.where, "runtime") if runtime is not None else Field(None)
    template, role = _trainer_template(inner)
    nodes = trainer["numNodes"].number(inner["spec.mlPolicy.numNodes"].number(1))
    notes = []
    if runtime is None:
        name = spec["runtimeRef.name"].text() or "none is named"
        notes.append(
            f"The pod template of {called(manifest)} is in its runtime ({name}), which is not among the "
            "manifests: only spec.trainer.resourcesPerNode is known."
        )
    owners = [owner_carrier(manifest)]
    content = _with_resources(template, trainer["resourcesPerNode"].mapping())
    minimum, by = annotated_minimum(owners, nodes)
    path = template.path if template.is_given else "spec.trainer"
    made, told = pod_set(role, Field(content, manifest.where, path), owners, nodes, minimum or nodes)
    shape = shape_of(
        manifest,
        [(made, told)],
        [template] if template.is_given else [],
        suspended=spec["suspend"].flag(),
        is_gang_by=by or f"numNodes of {called(manifest)}",
        notes=notes,
    )
    return (shape,)


def _trainer_template(runtime: Field) -> tuple[Field, str]:
    """The pod template of the runtime's trainer, and the name of its replicated job.

    It is the one labelled `trainer.kubeflow.org/trainjob-ancestor-step: trainer`, else the one called node.
    """
    jobs = runtime["spec.template.spec.replicatedJobs"].items()
    for job in jobs:
        step = job["template.metadata.labels"].at("trainer.kubeflow.org/trainjob-ancestor-step").text()
        if step == "trainer":
            return job["template.spec.template"], job["name"].text("node")
    for job in jobs:
        if job["name"].text() == "node":
            return job["template.spec.template"], "node"
    return Field(None), "node"


def _with_resources(template: Field, resources: Mapping[str, Any]) -> dict[str, Any]:
    """The template with `resources` on its first container, as Trainer does for the container `node`."""
    content = dict(template.mapping())
    spec = dict(template["spec"].mapping())
    containers = [dict(c.mapping()) for c in template["spec.containers"].items()] or [{"name": "node"}]
    index = next((i for i, c in enumerate(containers) if c.get("name") == "node"), 0)
    if resources:
        containers[index]["resources"] = dict(resources)
    content["spec"] = {**spec, "containers": containers}
    return content
