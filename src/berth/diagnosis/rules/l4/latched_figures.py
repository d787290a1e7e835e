"""L4. Traps of monitoring: figures that do not mean what they seem to."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import LIKELY, WEAK, Effect, Layer, Severity
from berth.evidence.fact import Fact
from berth.evidence.facts import Facts
from berth.evidence.formats.dcgm_metrics import Sample
from berth.evidence.formats.smi_facts import DeviceSeen

XID_LATCHED = Code(
    name="XidMetricLatched",
    layer=Layer.L4,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.BlindMonitoring,
    title="the Xid metric holds the last code for ever",
    meaning="DCGM_FI_DEV_XID_ERRORS is the number of the last Xid, no count; it stays until the driver is loaded anew. "
    "A value says that there was one, not that there is a fault now.",
    known_by="The metric has a value other than 0.",
    disproved_by="The kernel log has an Xid of that number within the last hour.",
    counter_check="on NODE: dmesg -T | grep -i xid: when it came; changes of the metric in Prometheus",
    fix=Fix(
        steps=(
            "read the time in the kernel log, and judge that Xid",
            "alert on a new series or a change (count over a window: DCGM_EXP_XID_ERRORS_COUNT), never on the level",
        ),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("no alert on the level is left",),
    sources=("dcgm-exporter issues 95, 500", "DCGM field 230"),
    is_trap=True,
)

SENTINEL = Code(
    name="DcgmValueBlank",
    layer=Layer.L4,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.BlindMonitoring,
    title="an absurdly large figure stands for 'no value'",
    meaning="DCGM writes blanks as numbers near the end of their range; sums and averages over them are worthless.",
    known_by="4294967295, 9223372036854775794 and kin.",
    disproved_by="The field counts something that can be that large.",
    counter_check="dcgmi dmon -e <field id> -c 1: N/A",
    fix=Fix(
        steps=("drop such samples when scraping; a newer exporter filters them",),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("no sample above 1e18 in Prometheus",),
    sources=("DCGM dcgm_structs.h: blank values", "DCGM issue 199"),
    is_trap=True,
)

_XID_FIELDS = ("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR", "dcgm_xid_errors")


NO_UTILISATION = Code(
    name="UtilisationAbsentUnderMig",
    layer=Layer.L4,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.BlindMonitoring,
    title="a GPU in MIG mode has no utilisation figure",
    meaning="NVML has no utilisation of a GPU that is in MIG mode, nor of its partitions: GPU_UTIL and MEM_COPY_UTIL "
    "are absent or 0 by design, while others (energy, memory, profiling) go on. It is no sign of an idle GPU or of a "
    "broken exporter.",
    known_by="Only the utilisation fields are missing or 0, on a node with MIG.",
    disproved_by="nvidia-smi -q shows MIG Mode: Current: Disabled.",
    counter_check="curl -s NODE:9400/metrics | grep -e PROF_GR_ENGINE_ACTIVE -e FB_USED: values",
    fix=Fix(
        steps=(
            "use DCGM_FI_PROF_GR_ENGINE_ACTIVE and DCGM_FI_PROF_DRAM_ACTIVE of the partitions in their place",
            "dashboards and autoscalers: no rule on GPU_UTIL for nodes with MIG",
        ),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("DCGM_FI_PROF_GR_ENGINE_ACTIVE has a series for each partition",),
    sources=("NVML documentation, nvmlDeviceGetUtilizationRates: not with MIG", "dcgm-exporter issue 272"),
    is_trap=True,
)


# DCGM's stand-ins for "no value" begin here: 32 and 64 bits, as integers and floats.
_BLANK_32 = range(0x7FFFFFF0, 0x80000000)
_BLANK_64 = 9.22e18


def _is_blank(value: float) -> bool:
    return value in _BLANK_32 or value >= _BLANK_64 or value == 0xFFFFFFFF


def find(facts: Facts) -> Iterator[Answer]:
    for sample in facts.of(Sample):
        if sample.field in _XID_FIELDS and sample.value > 0:
            yield XID_LATCHED.finding(
                f"GPU {sample.gpu or sample.uuid or '?'} shows Xid {int(sample.value)}: the last one there was.",
                LIKELY,
                [sample],
                node=sample.node,
                pci=sample.pci,
            )
        elif (sample.field.endswith("UTIL") and sample.value > 100) or _is_blank(sample.value):
            yield SENTINEL.finding(
                f"{sample.field} is {sample.value:.0f}: no value.", LIKELY, [sample], node=sample.node
            )
    for one in facts.said("dcgm.xid_stays"):
        yield XID_LATCHED.finding("The metric's level is read as if it were a fault of now.", LIKELY, [one])
    for one in facts.said("dcgm.wrong_values"):
        yield SENTINEL.finding("A figure at the end of its range is no value.", LIKELY, [one])
    without: list[Fact] = list(facts.said("dcgm.mig_no_utilisation"))
    rows = [
        device.quote("gpu_percent", "mig_mode")
        for device in facts.of(DeviceSeen)
        if device.form == "table" and device.mig_mode == "Enabled" and device.gpu_percent is None
    ]
    series = [sample for sample in facts.of(Sample) if sample.labels.get("GPU_I_ID")]
    if not any("_PROF_" in sample.field for sample in series):
        without += [one for one in series if one.field == "DCGM_FI_DEV_GPU_UTIL" and one.value == 0]
    if without or rows:
        yield NO_UTILISATION.finding(
            "Utilisation is not given for a GPU in MIG mode.", LIKELY if without else WEAK, [*without, *rows]
        )


RULE = Rule((NO_UTILISATION, XID_LATCHED, SENTINEL), find)
