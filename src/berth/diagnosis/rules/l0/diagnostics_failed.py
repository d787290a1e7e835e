"""L0. A GPU fails a test that is made to find bad hardware, and no error that it reported says why."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import listed, value, values
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

FAILED = Code(
    name="GpuFailsDiagnostics",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Error,
    effect=Effect.DeviceUnfit,
    title="a GPU fails a hardware test",
    meaning="It computes wrongly, or reaches less than its model does. Jobs on it give wrong results, fail or are "
    "slow, although the driver reports nothing.",
    known_by="dcgmi diag fails a test of hardware or stress, or gpu-burn calls a GPU faulty.",
    disproved_by="The test passes when nothing else runs on the GPU, at the default power limit and clocks.",
    counter_check="with the node drained, at the default power limit and clocks: dcgmi diag -r 3: pass",
    fix=Fix(
        steps=(
            "kubectl cordon NODE, drain it: nothing else may use the GPUs during the test",
            "dcgmi diag -r 3 twice; the same GPU fails again: its kernel log, heat, power and PCIe link first",
            "nothing there: field diagnostics of the vendor, replace the GPU",
        ),
        risk="the node is out meanwhile",
        rollback="kubectl uncordon NODE",
    ),
    verify=("dcgmi diag -r 3: Pass for every GPU",),
    sources=("DCGM documentation: diagnostics", "gpu-burn"),
)


def find(facts: Facts) -> Iterator[Answer]:
    """By test and by figure: a table that fails and the words that say why are one finding."""
    wrong = list(facts.said("gpu_burn.faulty"))
    weak = list(facts.said("dcgm_health.below_target"))
    table = list(facts.said("dcgm_health.test_failed"))
    if not any(facts.said("dcgm_health.nvlink_down")):
        table += facts.said("dcgm_health.pcie_test_failed")
    if found := [*wrong, *weak, *table]:
        which = f"GPU {listed(gpus)}" if (gpus := values(found, "gpu")) else "A GPU"
        yield FAILED.finding(f"{which} {_how(wrong, weak, table)}.", LIKELY if wrong else POSSIBLE, found)


def _how(wrong: list[Said], weak: list[Said], table: list[Said]) -> str:
    if wrong:
        return "computes wrongly under gpu-burn"
    if weak:
        reached, wanted = value(weak[0], "is"), value(weak[0], "wanted")
        return f"does not reach what its model does ({reached} of {wanted})"
    return f"fails {listed((said.get('test') or 'PCIe').strip() for said in table)} of DCGM's diagnostics"


RULE = Rule((FAILED,), find)
