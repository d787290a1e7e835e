"""Rules of layer 0: hardware and PCIe. What the kernel says of programs is told here, too, and belongs to layer 6."""

from berth.diagnosis.finding import Rule
from berth.diagnosis.rules.l0 import (
    address_windows,
    engine_stopped,
    fallen_off_bus,
    gpus_missing,
    gsp,
    heat_and_power,
    host_hardware,
    init_failed,
    link_reduced,
    memory_errors,
    nvlink_down,
    nvlink_errors,
    nvswitch_errors,
    pcie_errors,
    power_cable,
    program_faults,
    stuck_in_driver,
    xid_notes,
)

RULES: tuple[Rule, ...] = (
    fallen_off_bus.RULE,
    gpus_missing.RULE,
    init_failed.RULE,
    power_cable.RULE,
    address_windows.RULE,
    pcie_errors.RULE,
    link_reduced.RULE,
    heat_and_power.RULE,
    host_hardware.RULE,
    memory_errors.RULE,
    gsp.RULE,
    engine_stopped.RULE,
    nvlink_errors.RULE,
    nvlink_down.RULE,
    nvswitch_errors.RULE,
    stuck_in_driver.RULE,
    program_faults.RULE,
    xid_notes.RULE,
)
