"""Driver managers, installers and cards that do not start: what is a fault, what is none, and which comes first."""

from __future__ import annotations

import pytest
from asked import codes, of_text

COMPLETED = """\
Init Containers:
  k8s-driver-manager:
    Image:         nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.8.0
    State:          Terminated
      Reason:       Completed
      Exit Code:    0
Containers:
  nvidia-driver-ctr:
    State:          {state}
      Reason:       {reason}
"""


@pytest.mark.parametrize(
    "text",
    [
        "time=2026-08-01T10:00:00Z level=info msg=No NVIDIA driver loaded, skipping eviction of GPU clients",
        "time=2026-08-01T10:00:01Z level=info msg=Driver root directory does not exist, nothing to unmount",
        "nvidia-driver-daemonset-x2x9k   2/2   Running    0   14m",
        "nvidia-driver-daemonset-x2x9k   0/2   Init:0/1   0   1m",
        "it works on 535.183.01 and on 550.54.15",
        "Resizable BAR and Above 4G Decoding enabled in the BIOS",
        "NVRM: GPU 0000:01:00.0: Failed to enable MSI; falling back to PCIe virtual-wire interrupts.",
        "irq/130-nvidia 0.3 %CPU",
        '{"checkName":"GpuNvlinkWatch","isHealthy":true,"message":"No Health Failures"}',
        "License Status : Licensed (Expiry: 2026-12-01)",
        "pci 0000:00:15.6: BAR 13: failed to assign [io  size 0x1000]",
        COMPLETED.format(state="Running", reason="Started"),
    ],
)
def test_what_is_well_gives_no_finding(text: str) -> None:
    assert not of_text(text).findings


def test_the_container_that_fails_decides() -> None:
    assert codes(of_text(COMPLETED.format(state="Waiting", reason="CrashLoopBackOff"))) == {"DriverPodFails"}
    manager = COMPLETED.replace("Terminated", "Waiting").replace("Completed", "CrashLoopBackOff")
    assert of_text(manager.format(state="Waiting", reason="PodInitializing")).findings[0].code == "DriverInUse"


def test_a_manager_that_fails_is_not_asked_twice_where_its_log_says_why() -> None:
    row = "nvidia-driver-daemonset-x2x9k   0/2   Init:CrashLoopBackOff   7   14m\n"
    nouveau = 'level=fatal msg="failed to unload nouveau driver: device or resource busy"\n'
    assert "DriverInUse" in codes(of_text(row))
    assert "DriverInUse" not in codes(of_text(row + nouveau))


def test_a_release_with_which_the_card_starts_makes_it_the_drivers_fault() -> None:
    fails = "NVRM: GPU 0000:05:00.0: RmInitAdapter failed! (0x62:0x40:2168)\n"
    alone, told = of_text(fails), of_text(fails + "It works on 595.45.04.\n")
    assert [one.code for one in alone.findings] == ["GpuInitFailed"]
    assert [(one.code, one.cause_class) for one in told.findings] == [("DriverRegression", "driver-bug")]


def test_errors_of_the_bus_beside_a_failed_start_make_it_the_card() -> None:
    fails = "NVRM: GPU 0000:81:00.0: RmInitAdapter failed! (0x25:0x40:1470)\n"
    entry = "6a | 04/12/2024 | 03:27:29 PM CDT | Critical Interrupt | Bus Correctable error () | Asserted\n"
    assert of_text(fails).findings[0].cause_class == "hw-firmware"
    assert of_text(fails + entry).findings[0].cause_class == "hw-fault"


def test_a_processor_that_spins_in_the_driver_is_the_drivers_defect_and_a_task_that_waits_is_not() -> None:
    spins = "watchdog: BUG: soft lockup - CPU#12 stuck for 22s! [python:30404]\n uvm_spin_loop+0x2b/0xf0 [nvidia_uvm]\n"
    waits = "INFO: task python:620917 blocked for more than 120 seconds.\n uvm_va_space_mm+0x24/0x80 [nvidia_uvm]\n"
    assert of_text(spins).findings[0].cause_class == "driver-bug"
    assert of_text(waits).findings[0].cause_class == "hw-fault"


def test_the_name_of_a_dcgm_error_says_it_where_no_text_follows() -> None:
    assert "GpuMemoryUncorrectable" in codes(of_text("ErrorCode:DCGM_FR_VOLATILE_DBE_DETECTED GPU:2"))
    assert "NvSwitchFault" in codes(of_text("ErrorCode:DCGM_FR_NVSWITCH_FATAL_ERROR"))
    assert "NvSwitchFault" not in codes(of_text("ErrorCode:DCGM_FR_NVSWITCH_NON_FATAL_ERROR"))
    told = of_text("DCGM_FR_NVLINK_DOWN GPU:5 GPU 5's NvLink link 3 is currently down")
    assert [one.cause for one in told.findings] == ["GPU 5: link 3 is down, DCGM says."]
