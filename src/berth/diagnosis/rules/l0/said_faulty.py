"""L0. A GPU that somebody calls faulty, without a word of the kernel or a tool. Its rows are in l1/told_rows.py."""

from __future__ import annotations

from berth.diagnosis.finding import Code, Fix
from berth.diagnosis.words import Effect, Layer, Severity

FAULTY = Code(
    name="GpuSaidFaulty",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Error,
    effect=Effect.DeviceUnfit,
    title="a GPU is said to be faulty",
    meaning="Somebody suspects the hardware: a card, its slot, cable, cooling or power. Nothing that was collected "
    "says which, or whether it is so.",
    known_by="A person calls a GPU bad, had it reseated or replaced, or names its power supply.",
    disproved_by="The same job fails on another machine, too; or the GPU passes its diagnostics under load.",
    counter_check="dmesg | grep -e Xid -e AER: nothing; nvidia-smi -q -d ECC,ROW_REMAPPER,PERFORMANCE: no errors, no "
    "slowdown; dcgmi diag -r 3: pass",
    fix=Fix(
        steps=(
            "kubectl cordon NODE, drain it; keep the kernel log and `nvidia-bug-report.sh`",
            "dcgmi diag -r 3 alone on the machine; swap the suspect with a neighbour: the fault goes with the card or "
            "stays with the slot",
            "power supply, cables, riser and cooling of the slot; then replace the card",
        ),
        risk="the node is out meanwhile",
        rollback="kubectl uncordon NODE",
    ),
    verify=("dcgmi diag -r 3: pass", "the job that failed runs to its end on this GPU"),
    sources=("DCGM user guide: diagnostics", "NVIDIA GPU debug guidelines"),
)
