"""L2. Processes that touch the GPU do not come back: container starts hang, and the cause lies below."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.rules.l2.places import by_node
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

HANGS = Code(
    name="GpuProcessesHang",
    layer=Layer.L2,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.ContainersDoNotStart,
    title="processes hang in the kernel while they touch a GPU",
    meaning="Container starts, nvidia-smi and the monitoring wait for a GPU or its driver and cannot be killed. The "
    "container layer is not at fault.",
    known_by="nvidia-smi or nvidia-container-cli is in state D, or the kernel reports it as blocked.",
    disproved_by="The processes return after some seconds, or wait for a network file system.",
    counter_check="on NODE: ps -eo pid,stat,wchan:32,cmd | grep ' D' : none of nvidia",
    fix=Fix(
        steps=(
            "dmesg | grep -e NVRM -e Xid -e hung on NODE: which GPU, and since when; keep nvidia-bug-report.sh "
            "--safe-mode",
            "kubectl cordon NODE; drain what can be drained",
            "restart the machine (a reset of the GPU needs the processes gone); power it off and on where it hangs "
            "again",
        ),
        risk="a restart ends everything on the node",
        rollback="kubectl uncordon NODE",
    ),
    verify=("ps -eo stat,cmd | grep '^D' on NODE : none of nvidia", "time nvidia-smi -L : below two seconds"),
    sources=("Linux, hung task detector", "NVIDIA Xid catalogue, GSP time-outs"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.hangs")).items():
        yield HANGS.finding("Processes of the GPU's tools do not leave the kernel.", LIKELY, said, node=node)
        if not facts.looked_at("dmesg"):
            yield Unconfirmed(
                what=f"the kernel log of {node or 'the node'}",
                how="dmesg -T | grep -e NVRM -e Xid",
                wanted_for=HANGS.name,
                layer=Layer.L0,
                node=node,
            )


RULE = Rule((HANGS,), find)
