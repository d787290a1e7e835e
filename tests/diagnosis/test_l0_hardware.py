"""Layer 0: what is a fault of hardware, what only looks like one, and what follows from it above."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from asked import codes, of_text

from berth.diagnosis import xid
from berth.diagnosis.diagnose import Diagnosis, diagnose
from berth.diagnosis.rules import l0
from berth.diagnosis.rules.l0 import RULES
from berth.diagnosis.words import ESTABLISHED, Layer
from berth.evidence.messages import MESSAGES
from berth.evidence.piece import Piece, piece
from berth.evidence.read import read

SAMPLES = Path(os.environ.get("BERTH_DATA", "")) / "samples"

HEALTHY = """\
[    0.512] pci 0000:82:00.0: BAR 7: no space for [mem size 0x01000000 64bit pref]
[    0.513] pci 0000:82:00.0: BAR 7: failed to assign [mem size 0x01000000 64bit pref]
[    0.514] pci 0000:00:1f.0: BAR 13: no space for [io  size 0x1000]
[    0.600] pci 0000:83:00.0: BAR 1: no space for [mem size 0x400000000 64bit pref]
[    0.613] pci 0000:83:00.0: BAR 1: failed to assign [mem size 0x400000000 64bit pref]
[    0.900] pci 0000:83:00.0: BAR 1: assigned [mem 0x23800000000-0x23bffffffff 64bit pref]
[    1.000] pci 0000:3b:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 2.5 GT/s PCIe x16 link at 0000:3a:00.0 \
(capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)
[    2.000] mlx5_core 0000:3c:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)
[    2.100] nvme 0000:3d:00.0: AER: can't recover (no error_detected callback)
[    9.000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.161.07  Sat Feb 17 22:55:48 UTC 2024
[    9.200] nvidia-modeset: WARNING: GPU:0: Unable to read EDID for display device DP-0
[    9.300] nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing
[    9.400] nvidia-nvswitch0: open (major=510)
[    9.500] pci 0000:04:00.0: Refused to change power state, currently in D0
[   19.400] INFO: task jbd2/sda1-8:620 blocked for more than 120 seconds.
[   19.400] Call Trace:
[   19.400]  jbd2_journal_commit_transaction+0x2a2/0x1640 [jbd2]
[   19.500] mce: CPU0: Core temperature above threshold, cpu clock throttled
"""


def of_l0(*pieces: Piece) -> Diagnosis:
    return diagnose(read(pieces), RULES)


def test_a_healthy_kernel_log_has_no_finding() -> None:
    assert of_l0(piece(HEALTHY, "dmesg")).findings == ()


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="BERTH_DATA has no samples")
def test_healthy_samples_have_no_finding() -> None:
    ill = {
        "dmesg/oom_kill.log": {"ProgramFaultOnGpu"},
        "dmesg/xid119_gsp_timeout.log": {"GspTimeout"},
        "fabricmanager/fabricmanager.log": {"NvSwitchErrorNotFatal"},
        "nvidia-smi-q/azure_bad_nvsmi8_output.txt": {"RowRemapPending"},
        "nvidia-smi-nvlink/azure_bad_nvlink_status.txt": {"NvLinkDown"},
    }
    for path in sorted(SAMPLES.glob("*/*")):
        name = str(path.relative_to(SAMPLES))
        found = {one.code for one in of_l0(Piece(path.read_bytes(), name)).findings}
        assert found == ill.get(name, set()), name


def test_a_lost_gpu_is_one_finding_whatever_tells_it() -> None:
    found = of_text("""
NVRM: GPU at PCI:0000:a1:00: GPU-979426f2-893a-7cbb-c4cf-81472f89a462
NVRM: Xid (PCI:0000:a1:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
NVRM: GPU 0000:a1:00.0: GPU has fallen off the bus.
Unable to determine the device handle for GPU0000:A1:00.0: Unknown Error
a1:00.0 3D controller: NVIDIA Corporation Device 2330 (rev ff)
pcieport 0000:a0:01.0: AER: Uncorrectable (Fatal) error message received from 0000:a0:01.0
""")
    assert [one.code for one in found.findings] == ["GpuFellOffBus"]
    assert "0000:a1:00" in found.findings[0].cause
    assert "First suspect: the link" in found.findings[0].cause


def test_a_lost_gpu_is_the_cause_of_what_kubernetes_says() -> None:
    found = of_text("""
NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus.
UnexpectedAdmissionError  Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc error: \
unable to get device link information, which is unexpected
allocatable nvidia.com/gpu: 7 (capacity 8)
""")
    assert found.findings[0].code == "GpuFellOffBus"
    assert all(one.layer == Layer.L0 for one in found.findings)


def test_a_start_that_fails_for_the_drivers_sake_is_not_the_hardwares() -> None:
    found = of_text("""
NVRM: API mismatch: the client has the version 570.153.02, but
NVRM: this kernel module has the version 570.144.  Please
NVRM: GPU 0000:07:00.0: RmInitAdapter failed! (0x61:0x56:1770)
nvidia: probe of 0000:07:00.0 failed with error -1
""")
    assert not {"GpuInitFailed", "GpuProbeFailed"} & codes(found)


def test_one_of_several_that_does_not_start_is_the_card() -> None:
    one = of_text("NVRM: GPU 0000:0a:00.0: RmInitAdapter failed! (0x24:0x72:1568)\n"
                  "NVRM: GPU 0000:0a:00.0: rm_init_adapter failed, device minor number 5")  # fmt: skip
    assert [(found.code, found.cause_class) for found in one.findings] == [("GpuInitFailed", "hw-fault")]
    all_of_them = of_text("NVRM: GPU 0000:04:01.0: RmInitAdapter failed! (0x11:0x45:2525)\n"
                          "NVRM: GPU 0000:04:02.0: RmInitAdapter failed! (0x11:0x45:2525)")  # fmt: skip
    assert [(found.code, found.cause_class) for found in all_of_them.findings] == [("GpuInitFailed", "hw-firmware")]


def test_missing_power_explains_a_failed_start() -> None:
    found = of_text("""
NVRM: GPU 0000:01:00.0: GPU does not have the necessary power cables connected.
NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x24:0x1c:1603)
""")
    assert [(one.code, one.pci) for one in found.findings] == [("GpuPowerNotConnected", (0, 1, 0))]


def test_a_gpu_that_lspci_has_and_nvidia_smi_has_not() -> None:
    lspci = "\n".join(f"{bus}:00.0 3D controller: NVIDIA Corporation Device 26b9 (rev a1)" for bus in (16, 38, 82))
    row = "GPU {0}: NVIDIA L40S (UUID: GPU-{0}1111111-1111-1111-1111-111111111111)"
    smi = "\n".join(row.format(index) for index in (0, 1))
    short = of_l0(piece(lspci, "lspci"), piece(smi, "nvidia-smi"))
    assert [one.code for one in short.findings] == ["GpuMissing"]
    assert "3 GPUs and nvidia-smi 2" in short.findings[0].cause
    assert short.unconfirmed and "kernel log" in short.unconfirmed[0].what
    passed_through = lspci + "\n\tKernel driver in use: vfio-pci"
    assert codes(of_l0(piece(passed_through, "lspci"), piece(smi, "nvidia-smi"))) == set()
    whole = of_l0(piece(lspci, "lspci"), piece(smi + "\n" + row.format(2)))
    assert codes(whole) == set()


def test_a_slow_link_is_a_fault_under_load_and_none_at_rest() -> None:
    header = "pci.bus_id, utilization.gpu [%], pstate, pcie.link.gen.current, pcie.link.gen.max, "
    header += "pcie.link.width.current, pcie.link.width.max\n"
    idle = of_text(header + "00000000:19:00.0, 0 %, P8, 1, 5, 16, 16\n00000000:3B:00.0, 0 %, P8, 1, 5, 16, 16\n")
    assert [one.code for one in idle.traps] == ["PcieLinkIdle"] and not idle.findings
    busy = of_text(header + "00000000:19:00.0, 98 %, P0, 1, 5, 16, 16\n00000000:3B:00.0, 97 %, P0, 5, 5, 16, 16\n")
    assert [(one.code, one.pci) for one in busy.findings] == [("PcieLinkReduced", (0, 0x19, 0))]
    narrow = of_text(header + "00000000:19:00.0, 0 %, P8, 1, 5, 8, 16\n00000000:3B:00.0, 0 %, P8, 1, 5, 16, 16\n")
    assert [(one.code, one.confidence) for one in narrow.findings] == [("PcieLinkReduced", ESTABLISHED)]


def test_errors_of_other_devices_are_not_the_gpus() -> None:
    assert codes(of_l0(piece("""
mlx5_core 0000:3c:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)
nvme 0000:3d:00.0: Unable to change power state from D3cold to D0, device inaccessible
"""))) == set()  # fmt: skip


def test_a_window_that_is_found_at_the_second_try_is_no_fault() -> None:
    first = "[0.1] pci 0000:82:00.0: BAR 1: no space for [mem size 0x400000000 64bit pref]"
    assert codes(of_l0(piece(first))) == {"BarUnassigned"}
    then = first + "\n[0.9] pci 0000:82:00.0: BAR 1: assigned [mem 0x238-0x23b 64bit pref]"
    assert codes(of_l0(piece(then))) == set()
    newer = "[0.1] pci 0000:82:00.0: BAR 1 [mem size 0x400000000 64bit pref]: can't assign; no space"
    assert codes(of_l0(piece(newer))) == {"BarUnassigned"}
    then = newer + "\n[0.9] pci 0000:82:00.0: BAR 1 [mem 0x23800000000-0x23bffffffff 64bit pref]: assigned"
    assert codes(of_l0(piece(then))) == set()


def test_what_hangs_because_of_a_known_fault_is_no_second_one() -> None:
    found = of_l0(piece("""
NVRM: Xid (PCI:0000:9b:00): 119, pid=1, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU4 GSP!
INFO: task nvidia-smi:4711 blocked for more than 120 seconds.
"""))  # fmt: skip
    assert [one.code for one in found.findings] == ["GspTimeout"]


def test_gauges_that_keep_their_last_value_are_no_evidence() -> None:
    gauge = 'DCGM_FI_DEV_XID_ERRORS{gpu="3",err_code="79",err_msg="GPU has fallen off the bus"} 79'
    assert of_l0(piece(gauge)).findings == ()
    count = 'DCGM_EXP_XID_ERRORS_COUNT{gpu="3",UUID="GPU-1",xid="79",window_size_in_ms="300000"} 2'
    assert codes(of_l0(piece(count))) == {"GpuFellOffBus"}


def test_nvswitch_lines_are_judged_by_what_they_say() -> None:
    line = "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): {code}, {weight}, Link 28 something"
    for code, weight, expected in (
        (24007, "Fatal", "NvSwitchFault"),
        (12028, "Non-fatal", "NvSwitchErrorNotFatal"),
        (20009, "Non-fatal", "NvSwitchErrorCorrected"),
        (11012, "Non-fatal", "NvSwitchErrorCorrected"),
        (28006, "Non-fatal", "NvSwitchErrorNotFatal"),  # not in the guide
        (99999, "Fatal", "NvSwitchFault"),
    ):
        assert codes(of_l0(piece(line.format(code=code, weight=weight)))) == {expected}, code


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.codes[0].name)
def test_every_code_is_filled_in(rule) -> None:  # type: ignore[no-untyped-def]
    for code in rule.codes:
        for words in (code.meaning, code.known_by, code.disproved_by, code.counter_check):
            assert words, code.name
        assert code.fix.risk and code.fix.rollback, code.name
        assert code.title[0].islower() or code.title[:3] in ("NVL", "PCI", "NVS"), code.name
        assert code.fix.steps and code.verify and code.sources, code.name


def test_every_sentence_that_a_rule_asks_for_is_known() -> None:
    """A name that nobody writes any more would silence a rule."""
    known = {message.name for message in MESSAGES}
    asked = set[str]()
    for path in (*Path(l0.__file__).parent.glob("*.py"), *Path(xid.__file__).parent.glob("*.py")):
        text = path.read_text()
        asked |= set(re.findall(r"\"((?:kernel|host|nvidia_smi|lspci|driver|cuda|nvml)\.[a-z0-9_]+)\"", text))
    assert asked - known == set()


def test_a_bridge_without_a_window_counts_where_a_gpu_may_be_below_it() -> None:
    small = "pcieport 0000:00:1c.0: bridge window [mem size 0x00200000 64bit pref]: can't assign; no space"
    ports = "pci 0000:02:02.0: bridge window [io  size 0x1000]: failed to assign"
    assert codes(of_l0(piece(f"{small}\n{ports}"))) == {"IoPortsNotGiven"}
    large = "pcieport 0000:00:01.0: BAR 15: no space for [mem size 0x18000000 64bit pref]"
    assert codes(of_l0(piece(large))) == {"BarUnassigned"}
    then = f"{large}\npcieport 0000:00:01.0: BAR 15: assigned [mem 0x6000000000-0x6017ffffff 64bit pref]"
    assert codes(of_l0(piece(then))) == set()


def test_the_power_limit_alone_is_no_fault_and_does_not_hide_one() -> None:
    reasons = "Clocks Event Reasons\n    SW Power Cap : Active\n    HW Slowdown : Not Active\n"
    alone = of_l0(piece(reasons, "nvidia-smi"))
    assert [one.code for one in alone.traps] == ["GpuAtPowerLimit"] and not alone.findings
    hot = of_l0(piece(reasons + "    HW Thermal Slowdown : Active\n", "nvidia-smi"))
    assert [one.code for one in hot.findings] == ["GpuTooHot"] and not hot.traps
