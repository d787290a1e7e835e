"""`berth check`: would this job start now?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from berth.app.cli.compiled import plain_unless_kept
from berth.app.cli.options import Where, job, namespace, of_cluster, output

if TYPE_CHECKING:
    from berth.model.workload import Workload
    from berth.sources.inventory import Inventory

DEFAULT = "default"  # the namespace of what names none


@click.command()
@job
@of_cluster
@namespace
@output("table", "json", "yaml")
def check(filenames: tuple[str, ...], where: Where, namespace: str | None, output: str) -> None:
    """Would this job start now?

    JOB is a CronJob, DaemonSet, Deployment, JAXJob, Job, JobSet, LeaderWorkerSet, MPIJob, PaddleJob, Pod, PyTorchJob,
    RayCluster, RayJob, RayService, ReplicaSet, ReplicationController, StatefulSet, TFJob, TrainJob, XGBoostJob or a
    Job of Volcano. Exit code: 0 it fits, 1 it does not, 2 a bad JOB, 3 the cluster cannot be seen.
    """
    plain_unless_kept()
    from msgspec.structs import replace

    from berth.app.cli.frames import Frame, emit
    from berth.app.cli.seeing import look
    from berth.base.errors import BadInput
    from berth.model.reasons import Answer
    from berth.scheduling.answer import what_if
    from berth.sources.claims_asked import ClaimsAsked
    from berth.sources.governing import Governors
    from berth.sources.manifests import read_jobs, workloads_of
    from berth.sources.queues_read import queues_in
    from berth.views import verdicts

    if "-" in filenames and where.dump == "-":
        raise BadInput("check", "both the job and the dump are to come from standard input.", "Name a file for one.")
    # What names no namespace is made in that of the context, as kubectl does it.
    own = DEFAULT if where.dump is not None else _own_namespace(where)
    shapes = read_jobs(filenames, namespace or own)
    for shape in shapes:
        for workload in workloads_of([shape]):
            for pod_set in workload.pod_sets:
                for problem in pod_set.pod_class.problems:
                    raise BadInput(shape.where, f"{workload.key}: {problem}")
    workloads: list[Workload] = []
    unseen: list[str] = []

    def ask(inventory: Inventory) -> None:
        for shape in shapes:
            here = namespace or shape.namespace
            claims = ClaimsAsked(inventory, here)
            made = workloads_of([shape], claims.pod_class, inventory.priority_values, inventory.never_preempt)
            governors, payers = Governors(queues_in(inventory.queues)), inventory.payers()
            workloads.extend(governors.workload(replace(w, namespace=here), payers) for w in made)
            if shape.priority is None and shape.priority_class and shape.priority_class not in inventory.priorities:
                unseen.append(f"PriorityClass {shape.priority_class} was not seen: priority 0 was taken")
            if claims.unseen:
                unseen.append(f"{shape.name} mounts volume claims: where their volumes are was not considered")

    snapshot = look(where, ask, dict.fromkeys(namespace or shape.namespace for shape in shapes))
    answers = what_if(snapshot, workloads)
    notes = tuple(
        dict.fromkeys((*unseen, *(n for s in shapes for n in (*s.notes, *s.contradictions)), *snapshot.notes))
    )
    frame = Frame(
        {"kind": "Check", "answers": [verdicts.record(a) for a in answers], "notes": notes},
        lambda screen, wide: verdicts.show(answers, screen),
        notes,
        0 if all(a.verdict.answer is Answer.Fits for a in answers) else 1,
    )
    emit(frame, output)
    sys.exit(frame.code)


def _own_namespace(where: Where) -> str:
    from berth.app.cli.live import access_of
    from berth.base.errors import BadInput

    try:
        return access_of(where).namespace or DEFAULT
    except BadInput:
        return DEFAULT  # whoever looks at the cluster says so, once the manifest itself has been read
