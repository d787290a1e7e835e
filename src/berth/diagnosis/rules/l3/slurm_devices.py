"""L3. Slurm's own account of a node's GPUs: gres.conf and slurm.conf, what slurmd counts."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import listed
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

_GRES = ("Slurm documentation: gres.html, gres.conf", "slurm, src/interfaces/gres.c, src/interfaces/gpu.c")
_NODE_BACK = ("scontrol show node NODE: State=IDLE, no Reason, Gres=gpu with the number that nvidia-smi -L lists",)

REFUSED = Code(
    name="SlurmGresRefused",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="slurmd does not accept what gres.conf says of the GPUs",
    meaning="slurmd ends, or leaves out GPUs; the node then registers fewer than slurm.conf promises and is drained.",
    known_by="slurmd or slurmctld names a record of gres.conf, or a detection that this build of Slurm does not have.",
    disproved_by="slurmd -G on the node lists each GPU once with its file.",
    counter_check="on NODE: slurmd -G: one line for each GPU, with File=/dev/nvidiaN",
    fix=Fix(
        steps=(
            "on NODE: slurmd -C; slurmd -G: what slurmd makes of the files",
            "either AutoDetect=nvml alone, or records by hand in one form: Name=gpu Type=... File=/dev/nvidia[0-7]; a "
            "GPU without File= is left out",
            "Cores= takes Slurm's core numbers, not hardware threads: nvidia-smi topo -m numbers CPUs as Linux does",
            "AutoDetect=nvml needs a slurmd that was compiled where the NVML header was: ldd of gpu_nvml.so; else "
            "AutoDetect=off and records by hand",
            "the same type and count in slurm.conf (NodeName=NODE Gres=gpu:TYPE:N), the same files on all machines; "
            "systemctl restart slurmd",
        ),
        risk="a restart of slurmd leaves running jobs alone",
        rollback="the former gres.conf",
    ),
    verify=_NODE_BACK,
    sources=_GRES,
)

FILE_ABSENT = Code(
    name="SlurmDeviceFileAbsent",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="gres.conf names a device file that is not there",
    meaning="slurmd waits for the file for a while and ends: the node is down for all jobs, also those without GPU.",
    known_by="slurmd: waiting for, or cannot stat, the gres.conf file.",
    disproved_by="ls shows the file, and slurmd starts: it came too late.",
    counter_check="on NODE: ls -l /dev/nvidia*; nvidia-smi -L: as many as gres.conf names",
    fix=Fix(
        steps=(
            "on NODE: nvidia-smi -L. Works: the files come with the first call; enable nvidia-persistenced and let "
            "slurmd start After= it",
            "no GPU in this node, or fewer: mend the NodeName= of the gres.conf record",
            "nvidia-smi fails: the driver is the cause, mend that first",
        ),
        risk="none",
        rollback="the former gres.conf",
    ),
    verify=_NODE_BACK,
    sources=_GRES,
)

FEWER = Code(
    name="SlurmCountsFewerGpus",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="slurmd counts fewer GPUs than slurm.conf promises",
    meaning="slurmctld drains the node (INVALID_REG), and no job starts on it.",
    known_by="Reason=gres/gpu count reported lower than configured, or count too low.",
    disproved_by="nvidia-smi -L lists fewer GPUs than slurm.conf: then one is lost, and the configuration is right.",
    counter_check="on NODE: nvidia-smi -L | wc -l: fewer than slurm.conf promises (then one is lost)",
    fix=Fix(
        steps=(
            "on NODE: nvidia-smi -L; slurmd -G: where they differ, gres.conf is missing, of another node, or names no "
            "files; or slurmd started before the driver: systemctl restart slurmd",
            "fewer in nvidia-smi too: dmesg | grep -i xid; a GPU is lost",
            "partitions (MIG) were changed: Gres= in slurm.conf must have the new numbers and types",
            "scontrol update NodeName=NODE State=RESUME",
        ),
        risk="none for running jobs",
        rollback="scontrol update NodeName=NODE State=DRAIN Reason=...",
    ),
    verify=_NODE_BACK,
    sources=_GRES,
)

HELD = Code(
    name="SlurmNodeDrained",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="slurmctld keeps the node from jobs until somebody resumes it",
    meaning="A drained node stays so after the reason has gone.",
    known_by="The node's Reason: Kill task failed, Prolog error, count changed while jobs use them, rebooted.",
    disproved_by="scontrol show node has no DRAIN, DOWN or INVALID_REG in State.",
    counter_check="scontrol show node NODE | grep -E 'State|Reason': IDLE or MIXED",
    fix=Fix(
        steps=(
            "Kill task failed: ps -eo pid,stat,wchan,cmd | grep ' D': a process that hangs in the driver or the file "
            "system; dmesg",
            "Prolog or Epilog: its exit code and output in slurmd's log; often a GPU health check",
            "count changed: wait for the node's jobs, then restart slurmd",
            "scontrol update NodeName=NODE State=RESUME",
        ),
        risk="a node that is really ill gets jobs again",
        rollback="scontrol update NodeName=NODE State=DRAIN Reason=...",
    ),
    verify=_NODE_BACK,
    sources=("Slurm documentation: troubleshoot.html", "slurm, src/slurmctld/node_mgr.c"),
)

UNCONFINED = Code(
    name="SlurmDevicesUnconfined",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Warning,
    effect=Effect.ProgramFails,
    title="a job may use GPUs that Slurm did not give it",
    meaning="Jobs get into each other's GPUs; CUDA_VISIBLE_DEVICES alone is a request, not a fence.",
    known_by="ConstrainDevices is not set, or jobs see all GPUs of the node.",
    disproved_by="srun --gres=gpu:1 nvidia-smi -L lists one GPU.",
    counter_check="srun --gres=gpu:1 nvidia-smi -L: one GPU",
    fix=Fix(
        steps=(
            "cgroup.conf: ConstrainDevices=yes; slurm.conf: TaskPlugin=task/cgroup,task/affinity and "
            "ProctrackType=proctrack/cgroup",
            "gres.conf names the files (File= or AutoDetect=nvml): what is not named is not fenced",
            "in a container: its runtime must not give it all devices",
            "restart slurmd",
        ),
        risk="jobs that used more than they asked for fail",
        rollback="the former cgroup.conf",
    ),
    verify=("srun --gres=gpu:1 nvidia-smi -L: one GPU",),
    sources=("Slurm documentation: cgroup.conf, gres.html",),
)


def find(facts: Facts) -> Iterator[Answer]:
    wrong = [*facts.said("slurm.devices_refused"), *facts.said("slurm.autodetect_unbuilt")]
    for said in by_node(wrong).values():
        reasons = [why for one in said if (why := _why(one))]
        if any(one.message == "slurm.autodetect_unbuilt" for one in said):
            reasons.append("AutoDetect asks for a library that this build of Slurm does not have")
        yield REFUSED.finding(f"gres.conf is not accepted: {listed(reasons) or 'see the line'}.", LIKELY, said)
    for said in by_node(facts.said("slurm.library_absent")).values():
        yield REFUSED.finding(
            "AutoDetect needs the driver's library, and slurmd does not find it on this machine.",
            POSSIBLE,
            said,
            layer=Layer.L1,
            cause_class="driver-build",
        )
    for said in by_node(facts.said("slurm.file_absent")).values():
        yield FILE_ABSENT.finding(f"gres.conf names {said[0].get('path')}, which is not there.", POSSIBLE, said)
    for said in by_node(facts.said("slurm.fewer_devices", "slurm.told_fewer")).values():
        yield _fewer(said)
    for said in by_node(facts.said("slurm.gres_null")).values():
        yield FEWER.finding("The node has no GPU among its GRES.", POSSIBLE, said)
    for said in by_node(facts.said("slurm.files_differ")).values():
        yield REFUSED.finding("gres.conf and slurm.conf do not say the same.", POSSIBLE, said)
    for said in by_node(facts.said("slurm.devices_unconfined")).values():
        yield UNCONFINED.finding("Jobs are not kept to the GPUs that Slurm gave them.", POSSIBLE, said)
    held = facts.said("slurm.node_held", "slurm.count_changed_in_use")
    for said in by_node(held).values():
        why = said_of(one.get("why") for one in said) or "the number of GPUs changed while jobs use them"
        yield HELD.finding(f"The node is drained: {why}.", POSSIBLE, said)
    for said in by_node(facts.said("slurm.node_smaller")).values():
        if why := said_of(one.get("why") or one.get("why2") for one in said):
            cause = f"The node has less than slurm.conf promises: {why}."
            yield HELD.finding(cause, LIKELY, said, cause_class="plugin-config")
        elif not any(facts.said("slurm.fewer_devices")):
            cause = "The node registered with less than slurm.conf promises (INVALID_REG)."
            yield HELD.finding(cause, POSSIBLE, said, cause_class="plugin-config")


def _why(said: Said) -> str:
    return said_of(said.get(f"why{number}") for number in ("", *map(str, range(2, 13)))).strip()


def _fewer(said: list[Said]) -> Answer:
    counted = next((one for one in said if one.get("found")), None)
    if counted is None:
        return FEWER.finding("Slurm counts fewer GPUs than the node should have.", POSSIBLE, said)
    found, configured = counted.get("found"), counted.get("configured")
    is_mig = any(f".{size}gb" in one.origin.text.lower() for one in said for size in (5, 6, 10, 12, 20, 24, 40))
    return FEWER.finding(
        f"slurmd registered {found} GPUs, slurm.conf promises {configured}"
        + (": none is seen or named (gres.conf, detection, driver)." if found == "0" else
           ": partitions were changed, a GPU is lost, or the files differ."),
        POSSIBLE,
        said,
        cause_class="mig-state" if is_mig else None,
    )  # fmt: skip


RULE = Rule((REFUSED, FILE_ABSENT, FEWER, HELD, UNCONFINED), find)
