"""L5. A job for GPUs waits in Slurm, or is refused by it: limits, an unknown name, nodes that do not have it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, listed, values
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.facts import Facts

_JOBS = ("scontrol show job: JobState=RUNNING, TresPerNode as asked for",)

LIMIT = Code(
    name="SlurmLimitReached",
    layer=Layer.L5,
    cause_class="quota-gang",
    severity=Severity.Warning,
    effect=Effect.HeldByPolicy,
    title="a limit of the association or QOS holds the job",
    meaning="GPUs may be free: user, account or QOS has what it may have. A job above the limit for one never starts.",
    known_by="The job's Reason begins with QOS or Assoc, or it is refused for accounting or QOS policy.",
    disproved_by="sacctmgr shows no such limit, or use is below it.",
    counter_check="sacctmgr show qos format=name,maxtrespu,maxtrespj,grptres; squeue -u USER: below the limit",
    fix=Fix(
        steps=(
            "Grp and PerUser: wait, or end what is idle; PerJob, PerNode, Wall: ask for less",
            "another QOS or account that may: sacctmgr show assoc user=USER",
            "or raise the limit after review: sacctmgr modify qos QOS set MaxTRESPerUser=gres/gpu=N",
        ),
        risk="a larger limit takes GPUs from other users",
        rollback="set the former limit",
    ),
    verify=_JOBS,
    sources=("Slurm documentation: resource_limits.html, job_reason_codes.html",),
)

NAME = Code(
    name="SlurmGresNotKnown",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.HeldByPolicy,
    title="Slurm does not know the GPUs in the form that the job asks for",
    meaning="The job, or the step in it, is refused at once.",
    known_by="Invalid generic resource (gres) specification, or an option that the SelectType plugin does not have.",
    disproved_by="sinfo -o '%N %G' lists the name and type, and the job has so many of them.",
    counter_check="sinfo -N -o '%N %P %G': the name and type, on nodes of that partition",
    fix=Fix(
        steps=(
            "sinfo -N -o '%N %P %G': ask for what stands there: name, type (case counts), partition",
            "nothing there: GresTypes=gpu and Gres=gpu:N of the node in slurm.conf, on all machines",
            "--gpus, --gpus-per-task: SelectType=select/cons_tres",
            "srun within a job: ask for no more than the job has; --gres there counts for each node",
        ),
        risk="GresTypes wants a restart of slurmctld and all slurmd",
        rollback="the former slurm.conf",
    ),
    verify=_JOBS,
    sources=("Slurm documentation: gres.html", "slurm, src/common/slurm_errno.c"),
)

REFUSED = Code(
    name="SlurmRequestRefused",
    layer=Layer.L5,
    cause_class="scheduling-policy",
    severity=Severity.Error,
    effect=Effect.HeldByPolicy,
    title="the controller does not take the job in the way that it is asked for",
    meaning="Partition, account, QOS, feature or time do not go together, or a filter of the site wants GPUs to be "
    "asked for in its own form.",
    known_by="sbatch, srun or salloc end with an error that names what is invalid, or what must be asked for.",
    disproved_by="The same request is taken from another user or for another partition.",
    counter_check="sacctmgr show assoc user=USER format=account,partition,qos; scontrol show partition: the "
    "combination is among them",
    fix=Fix(
        steps=(
            "name a partition, account and QOS that go together; --constraint only features of sinfo -o '%N %f'",
            "a partition that wants GPUs: --gres=gpu:N (or --gpus-per-node) as its documentation says",
            "within a job: unset SLURM_* and SBATCH_* before another sbatch or srun, what is inherited contradicts it",
        ),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=_JOBS,
    sources=("slurm, src/common/slurm_errno.c", "Slurm documentation: job_submit_plugins.html"),
)

UNFIT = Code(
    name="SlurmNoNodeFits",
    layer=Layer.L5,
    cause_class="capacity",
    severity=Severity.Error,
    effect=Effect.PodsWait,
    title="no node of the partition has what the job asks for",
    meaning="More GPUs, CPUs or memory for each node than any has, or the nodes that have them are down or reserved.",
    known_by="Requested node configuration is not available, BadConstraints, ReqNodeNotAvail.",
    disproved_by="scontrol show node of one node of the partition has all of it at once.",
    counter_check="sinfo -N -p PARTITION -o '%N %t %G %c %m %E': one node with all of it, idle or mixed",
    fix=Fix(
        steps=(
            "sinfo -N -o '%N %P %t %G %c %m': ask for no more of each than one node has; more by --nodes",
            "nodes that are down or drained: sinfo -R names the reason, mend that; scontrol show res: reservations",
        ),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=_JOBS,
    sources=("Slurm documentation: job_reason_codes.html", "slurm, src/common/slurm_errno.c"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("slurm.limit_reached")):
        yield LIMIT.finding(
            f"{listed(values(found, 'why'))}: a limit is reached.", ESTABLISHED, found, node=node, pod=pod
        )
    for node, pod, found in by_place(facts.said("slurm.gres_refused")):
        yield NAME.finding(
            f"Slurm refuses the form of the request: {found[0].get('why')}.", LIKELY, found, node=node, pod=pod
        )
    for node, pod, found in by_place(facts.said("slurm.request_refused")):
        if not any(facts.said("slurm.gres_refused", "slurm.no_node_fits")):
            yield REFUSED.finding(f"Slurm: {listed(values(found, 'why'))}.", LIKELY, found, node=node, pod=pod)
    for node, pod, found in by_place(facts.said("slurm.waits")):
        reasons = set(values(found, "why"))
        if chosen := sorted(reasons - _AWAY):
            yield REFUSED.finding(f"The job is held: {listed(chosen)}.", POSSIBLE, found, node=node, pod=pod)
        else:
            yield UNFIT.finding(f"The job waits: {listed(sorted(reasons))}.", WEAK, found, node=node, pod=pod)
    for node, pod, found in by_place(facts.said("slurm.no_node_fits")):
        if any(facts.said("slurm.gres_null")):
            continue  # the nodes have nothing that could be asked for
        yield UNFIT.finding(f"Slurm: {found[0].get('why').strip('()')}.", LIKELY, found, node=node, pod=pod)
    for node, pod, found in by_place(facts.said("slurm.nodes_away")):
        yield UNFIT.finding(
            f"The nodes are down, drained or reserved: {found[0].get('why')}.", POSSIBLE, found, node=node, pod=pod
        )


_AWAY = frozenset(("Resources", "PartitionDown", "PartitionInactive", "NodeDown"))  # not the job's own doing

RULE = Rule((LIMIT, NAME, REFUSED, UNFIT), find)
