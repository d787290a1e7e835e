"""L0. The machine itself reports errors of its memory or processors: jobs on it fail for no reason of their own."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

FAULT = Code(
    name="HostHardwareError",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the machine reports errors of its own memory or processors",
    meaning="Data in the machine's memory, or a processor, could not be trusted at that time. Processes may have been "
    "killed for it, and results computed from it may be wrong.",
    known_by="An uncorrected machine check, an uncorrectable error of EDAC, a page that the kernel took away, or an "
    "entry of the machine's own event log for a memory module or a processor.",
    disproved_by="The lines are corrected errors only, few, and on one module.",
    counter_check="ras-mc-ctl --summary, or the event log of the machine's management: no uncorrected entry",
    fix=Fix(
        steps=(
            "kubectl cordon NODE, drain it",
            "the event log of the machine's management (BMC) names the memory module or processor",
            "replace or reseat it; a memory test before the node comes back",
        ),
        risk="the machine is off meanwhile",
        rollback="kubectl uncordon NODE",
    ),
    verify=("dmesg | grep -e EDAC -e 'Hardware Error': nothing after the repair",),
    sources=(
        "Linux, drivers/edac, mm/memory-failure.c and arch/x86/kernel/cpu/mce",
        "IPMI specification: sensor types Memory and Processor",
    ),
)


def find(facts: Facts) -> Iterator[Answer]:
    """One finding for each machine."""
    by_node: dict[str, list[Said]] = {}
    for said in facts.said("kernel.machine_check", "host.dimm_error", "host.processor_error"):
        by_node.setdefault(said.node, []).append(said)
    for node, lines in by_node.items():
        who = "The kernel" if any(one.message == "kernel.machine_check" for one in lines) else "The machine"
        yield FAULT.finding(
            f"{who} reports {sum(one.times for one in lines)} uncorrected errors of the machine itself.",
            LIKELY,
            lines,
            node=node,
        )


RULE = Rule((FAULT,), find)
