"""`berth check`: would this job start now?"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from berth.app.cli.compiled import plain_unless_kept
from berth.app.cli.options import from_dump, gpu_mapping, job, namespace, now_s, output, say_notes, topology
from berth.model.topology import Level


@click.command()
@job
@from_dump
@namespace
@gpu_mapping
@topology
@output("table", "json")
def check(
    filename: str, dump: str, namespace: str | None, gpu_mapping: str | None, topology: tuple[Level, ...], output: str
) -> None:
    """Would this job start now on the cluster that DUMP shows?

    JOB is a Pod, Job, PyTorchJob, MPIJob, JobSet, Deployment, StatefulSet, LeaderWorkerSet, RayCluster,
    RayJob, TrainJob or Volcano Job. Exit code: 0 it fits, 1 it does not, 2 a bad JOB, 3 an unreadable DUMP.
    """
    plain_unless_kept()
    from msgspec.structs import replace

    from berth.base.errors import BadInput
    from berth.model.reasons import Answer
    from berth.scheduling.answer import what_if
    from berth.sources.assemble import read_snapshot
    from berth.sources.manifests import read_jobs, workloads_of
    from berth.views import records, tables, verdicts

    if filename == "-" and dump == "-":
        raise BadInput("check", "both the job and the dump are to come from standard input.", "Name a file for one.")
    shapes = read_jobs(filename)
    workloads = workloads_of(shapes)
    for workload in workloads:
        for pod_set in workload.pod_sets:
            for problem in pod_set.pod_class.problems:
                raise BadInput(filename, f"{workload.key}: {problem}")
    if namespace:
        workloads = [replace(w, namespace=namespace) for w in workloads]
    snapshot = read_snapshot(dump, now_s=now_s(), gpu_mapping=gpu_mapping, levels=topology)
    answers = what_if(snapshot, workloads)
    claims = [s.name for s in shapes if any(_mounts_claims(one.template) for one in s.sets)]
    unseen = [f"{name} mounts volume claims: where their volumes are was not considered" for name in claims]
    notes = tuple(
        dict.fromkeys((*unseen, *(n for s in shapes for n in (*s.notes, *s.contradictions)), *snapshot.notes))
    )
    if output == "json":
        record = {"kind": "Check", "answers": [verdicts.record(a) for a in answers], "notes": notes}
        click.echo(records.to_json(record))
    else:
        verdicts.show(answers, tables.console())
        say_notes(notes)
    sys.exit(0 if all(a.verdict.answer is Answer.Fits for a in answers) else 1)


def _mounts_claims(template: Mapping[str, Any]) -> bool:
    volumes = (template.get("spec") or {}).get("volumes") or ()
    return any("persistentVolumeClaim" in v or "ephemeral" in v for v in volumes if isinstance(v, dict))
