"""Rules of layer 0: hardware and PCIe."""

from berth.diagnosis.finding import Rule
from berth.diagnosis.rules.l0 import fallen_off_bus, gsp, memory_errors, nvlink_errors, nvswitch_errors

RULES: tuple[Rule, ...] = (
    fallen_off_bus.RULE,
    memory_errors.RULE,
    gsp.RULE,
    nvlink_errors.RULE,
    nvswitch_errors.RULE,
)
