"""Of many Xids one is the cause: over time, on one GPU, on its peers."""

from __future__ import annotations

import pytest
from asked import codes, of_text

from berth.diagnosis.chain import effects_of
from berth.diagnosis.diagnose import Diagnosis, diagnose
from berth.diagnosis.words import Layer
from berth.evidence.fact import pci_words
from berth.evidence.piece import Piece
from berth.evidence.read import read


def causes(diagnosis: Diagnosis) -> list[str]:
    return [one.code for one in diagnosis.findings]


def test_what_follows_from_a_lost_gpu_is_no_cause() -> None:
    found = of_text("""
[100.000001] NVRM: Xid (PCI:0000:41:00): 119, pid=77, name=nvidia-smi, Timeout after 6s of waiting for RPC response
[100.500000] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
[100.500002] NVRM: Xid (PCI:0000:41:00): 45, pid=1234, name=python, Ch 00000001
[101.000000] NVRM: Xid (PCI:0000:41:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)
""")
    assert causes(found) == ["GpuFellOffBus"]
    (cause,) = found.findings
    assert "What followed from it and is no cause: Xid 45, Xid 119" in cause.cause
    assert "Node Reboot Required" in cause.cause


def test_a_fault_of_a_program_long_before_is_a_finding_of_its_own() -> None:
    found = of_text("""
[100.0] NVRM: Xid (PCI:0000:41:00): 31, pid=77, name=python, Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS
[90000.0] NVRM: Xid (PCI:0000:41:00): 79, pid=99, name=train, GPU has fallen off the bus.
""")
    assert set(codes(found)) == {"GpuFellOffBus", "ProgramFaultOnGpu"}


def test_memory_errors_of_one_gpu_are_one_finding_with_the_drivers_verdict() -> None:
    found = of_text("""
NVRM: Xid (PCI:0000:61:00): 48, pid=1, name=a, An uncorrectable double bit error (DBE) has been detected on GPU
NVRM: Xid (PCI:0000:61:00): 63, pid=1, name=a, Row remapper: New row (0x1) marked for remapping, reset gpu to activate.
NVRM: Xid (PCI:0000:61:00): 94, pid=1, name=a, Contained: HBM (0x0). RST: No, D-RST: Yes
NVRM: Xid (PCI:0000:61:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)
NVRM: Xid (PCI:0000:61:00): 45, pid=1, name=a, Ch 00000001
""")
    assert causes(found) == ["GpuMemoryUncorrectable"]
    (cause,) = found.findings
    assert "drain, then reset" in cause.cause.lower()
    assert any("let running work finish or drain" in step for step in cause.fix.steps)
    assert len(cause.evidence) == 5


@pytest.mark.parametrize(
    ("words", "step"),
    [
        ("0x1 (GPU Reset Required)", "nvidia-smi --gpu-reset"),
        ("0x2 (Node Reboot Required)", "restart the machine: a reset of the GPU is not enough"),
        ("0x3 (Drain P2P)", "end all programs that reach this GPU from others"),
        ("0x4 (Drain and Reset)", "let running work finish or drain it"),
        ("0x1 (PF FLR)", "nvidia-smi --gpu-reset"),
        ("0x2 (OS Reboot)", "restart the machine: a reset of the GPU is not enough"),
    ],
)
def test_the_drivers_verdict_wins(words: str, step: str) -> None:
    found = of_text(f"""
NVRM: Xid (PCI:0000:61:00): 119, pid=1, name=a, Timeout after 6s of waiting for RPC response from GPU4 GSP!
NVRM: Xid (PCI:0000:61:00): 154, GPU recovery action changed from 0x0 (None) to {words}
""")
    assert any(step in one for one in found.findings[0].fix.steps)


def test_the_last_verdict_counts() -> None:
    found = of_text("""
[1.0] NVRM: Xid (PCI:0000:61:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)
[9.0] NVRM: Xid (PCI:0000:61:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)
""")
    assert causes(found) == []


def test_peers_that_report_the_same_event_are_put_under_its_origin() -> None:
    peers = "\n".join(
        f"[1000.{number}] NVRM: Xid (PCI:0000:{number:02x}:00): 145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 02 "
        f"(0x000000e2 0x00000004 0x0 0x0 0x0 0x0)"
        for number in range(20, 27)
    )
    found = of_text(f"""
{peers}
[1000.9] NVRM: Xid (PCI:0000:dc:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004001c6 0x00000000 0x0 0x0)
[1001.2] NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149
[1001.3] NVRM: Xid (PCI:0000:14:00): 45, pid=1818992, name=python3, Ch 0000000c caused by previous Xid 145
""")
    assert causes(found) == ["NvLinkFault"]
    (cause,) = found.findings
    assert pci_words(cause.pci) == "0000:dc:00"
    assert "Xid 145 (7 times) on 7 other GPUs" in cause.cause
    assert "RESET_GPU" in cause.cause


def test_where_no_gpu_is_the_origin_all_are_one_finding() -> None:
    found = of_text("\n".join(
        f"NVRM: Xid (PCI:0000:{number:02x}:00): 145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 00 (0x000000e2 0x00000004 0x0)"
        for number in range(8)
    ))  # fmt: skip
    assert causes(found) == ["NvLinkFault"]
    assert found.findings[0].cause.startswith("8 GPUs report NVLink errors of one event")


def test_events_of_one_domain_on_several_nodes_have_one_origin() -> None:
    def node(name: str, second: int, line: str) -> Piece:
        return Piece(f"2026-04-03T06:20:{second:02}.545191+00:00 {name} kernel: {line}".encode(), name, "dmesg", name)

    found = diagnose(read([
        node("tray-4", 31, "NVRM: Xid (PCI:0009:01:00): 145, RLW_SRC_TRACK Nonfatal XC0 i0 Link 03 (0x000000e2 0x4)"),
        node("tray-1", 28, "NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 14 (0x004001c6 0x0)"),
        node("tray-7", 33, "NVRM: Xid (PCI:0018:01:00): 45, pid=8, name=python3, Ch 00000002"),
    ]))  # fmt: skip
    assert [(one.code, one.node) for one in found.findings] == [("NvLinkFault", "tray-1")]


def smi(node: str, cluster: str) -> Piece:
    text = f"""
==============NVSMI LOG==============

Timestamp                                 : Mon Jan 12 05:23:08 2026
Driver Version                            : 580.65.06
Attached GPUs                             : 1
GPU 00000008:01:00.0
    Product Name                          : NVIDIA GB200
    Fabric
        State                             : Completed
        Status                            : Success
        CliqueId                          : 1
        ClusterUUID                       : {cluster}
"""
    return Piece(text.encode(), f"{node}-smi", "nvidia-smi", node)


def test_a_domain_that_spans_nodes_has_one_event_and_two_domains_have_two() -> None:
    line = b"2026-04-03T06:20:28+00:00 kernel: NVRM: Xid (PCI:0008:01:00): 145, RLW_SRC_TRACK Nonfatal XC0 i0 Link 1 "
    line += b"(0x000000e2 0x00000004)"
    logs = [Piece(line, name, "dmesg", name) for name in ("a", "b", "c")]
    one = "3143b15b-c2cd-192b-28cc-9b5473fb5b93"
    other = "4143b15b-c2cd-192b-28cc-9b5473fb5b94"
    found = diagnose(read([*logs, smi("a", one), smi("b", one), smi("c", other)]))
    causes_of = [cause for cause in found.findings if cause.code == "NvLinkFault"]
    assert [cause.node for cause in causes_of] == ["a", "c"]
    assert causes_of[0].cause.startswith("2 GPUs of 2 nodes report NVLink errors of one event")


def test_two_nodes_that_fail_hours_apart_have_two_causes() -> None:
    down = b"NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 1 (0x1c6 0x0)"
    found = diagnose(read([
        Piece(b"2026-04-03T06:20:28+00:00 kernel: " + down, "a", "dmesg", "a"),
        Piece(b"2026-04-03T09:20:28+00:00 kernel: " + down, "b", "dmesg", "b"),
    ]))  # fmt: skip
    assert [one.node for one in found.findings] == ["a", "b"]


def test_a_cause_that_the_driver_names_counts_though_its_line_is_gone() -> None:
    found = of_text("""
kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149
kernel: NVRM: Xid (PCI:0000:ed:00): 45, pid=1818992, name=python3, Ch 0000000c caused by previous Xid 145
kernel: NVRM: Xid (PCI:0000:ba:00): 45, pid=1818989, name=python3, Ch 00000002 caused by previous Xid 145
""")
    assert causes(found) == ["NvLinkFault"]
    assert pci_words(found.findings[0].pci) == "0000:dc:00"
    assert any("whole line of Xid 149" in one.what for one in found.unconfirmed)


def test_one_fault_on_many_gpus_is_one_finding() -> None:
    found = of_text("\n".join(
        f"[10{number}.0] NVRM: Xid (PCI:0000:{number}a:00): 31, pid=47{number}, name=python3, channel 0x00000002"
        for number in range(1, 9)
    ))  # fmt: skip
    assert causes(found) == ["ProgramFaultOnGpu"]
    assert "8 GPUs" in found.findings[0].cause


def test_a_halt_that_silences_gsp_is_the_firmwares() -> None:
    found = of_text("""
kernel: NVRM: Xid (PCI:0000:07:00): 62, pid=1, name=Xorg, 00000000
kernel: NVRM: Xid (PCI:0000:07:00): 45, pid=1, name=Xorg, Ch 00000008
kernel: NVRM: Xid (PCI:0000:07:00): 119, pid=1, name=kworker, Timeout after 6s of waiting for RPC response from GPU0
""")
    assert [(one.code, one.cause_class) for one in found.findings] == [("GpuEngineStopped", "driver-bug")]


def test_numbers_in_other_tools_words() -> None:
    for text, code in (
        ("GPU had an uncontained error (XID 95) Drain the GPU and reset it.", "GpuMemoryUncorrectable"),
        ('{"level":"warn","xid": 119, "pci": "0000:9b:00"}', "GspTimeout"),
        ("NvidiaXID79Error on node a", "GpuFellOffBus"),
        ("Xid 31 PCI:0000:f0:00 pid=477448 UNRECOGNIZED_CLIENT", "ProgramFaultOnGpu"),
    ):
        assert code in codes(of_text(text)), text


def test_a_harmless_event_makes_nothing_follow() -> None:
    found = of_text("""
[1.0] NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x1)
[9.0] NVRM: Xid (PCI:0018:01:00): 31, pid=9, name=train, Ch 00000010, intr 00000000. MMU Fault
""")
    assert causes(found) == ["ProgramFaultOnGpu"]
    assert [one.code for one in found.traps] == ["NvLinkEventHarmless"]
    blamed = of_text("""
[1.0] NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x1)
[1.2] NVRM: Xid (PCI:0018:01:00): 45, pid=9, name=train, Ch 00000010 caused by previous Xid 145
""")
    assert causes(blamed) == ["NvLinkFault"]


def test_a_switch_that_failed_explains_its_gpus() -> None:
    found = of_text("""
[10.0] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 30 sourcetrack timeout error (First)
[10.1] NVRM: Xid (PCI:0000:0f:00): 74, NVLink: fatal error detected on link 6(0x10000, 0x0, 0x0, 0x0, 0x0)
[10.2] NVRM: Xid (PCI:0000:0f:00): 45, pid=9, name=train, Ch 00000010
[10.3] NVRM: Xid (PCI:0000:4f:00): 45, pid=10, name=train, Ch 00000010
""")
    assert causes(found) == ["NvSwitchFault"]
    assert "GPUs behind it followed: Xid 74, Xid 45 (2 times)" in found.findings[0].cause


def test_a_light_xid_that_only_the_plugin_tells_of_is_the_plugins_to_mend() -> None:
    line = "XidCriticalError: Xid={} on Device=GPU-7540a9b3-eeb9-1214-1526-f93c9ea826a8, the device will go unhealthy."
    assert of_text(line.format(94)).findings[0].layer == Layer.L3
    assert of_text(line.format(48)).findings[0].layer == Layer.L0
    kernel = "NVRM: Xid (PCI:0000:9b:00): 94, pid=1, name=a, Contained: SM (0x1). RST: No, D-RST: No\n"
    assert of_text(kernel + line.format(94)).findings[0].layer == Layer.L0


def test_a_sentence_about_a_monitor_that_misses_an_xid_is_about_the_monitor() -> None:
    for text in (
        "AcceleratedHardwareReady=True although Xid 79 is in the kernel log",
        "Xid 62 never appears in the metrics of dcgm-exporter",
    ):
        assert not {"GpuFellOffBus", "GpuEngineStopped"} & codes(of_text(text)), text


def test_the_registers_of_xid_74_decide() -> None:
    line = "NVRM: Xid (PCI:0000:0f:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 14"
    assert codes(of_text(line + "(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)")) == {"NvLinkFault"}
    assert codes(of_text(line + "(0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)")) == {"NvLinkEventHarmless"}
    assert codes(of_text(line + "(0x0, 0x0, 0x0, 0x0, 0x100000, 0x0, 0x0)")) == {"NvLinkEventHarmless"}
    told = of_text(line + "(0x300, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)").findings[0].cause
    assert "bit 8 of the first, bit 9 of the first: check and reseat the connections" in told


def test_a_peer_access_alone_is_a_programs_fault_and_with_nvlink_errors_the_fabrics() -> None:
    alone = of_text("NVRM: Xid (PCI:0000:9b:00): 137, pid=5, name=a, NVLink: remote MMU fault on link 3")
    assert [(one.code, one.layer) for one in alone.findings] == [("PeerAccessFault", Layer.L6)]
    both = of_text("NVRM: Xid (PCI:0000:9b:00): 145\nNVRM: Xid (PCI:0000:9b:00): 137")
    assert causes(both) == ["NvLinkFault"]


def test_programs_are_to_blame_unless_always_the_same_unit_is_hit() -> None:
    line = "[{at}.0] NVRM: Xid (PCI:0000:cb:00): 13, pid={pid}, name=a, Graphics SM Warp Exception on (GPC {gpc}, TPC 7"
    one = of_text("\n".join(line.format(at=at, pid=1, gpc=at) for at in range(3)))
    assert causes(one) == ["ProgramFaultOnGpu"]
    burst = of_text("\n".join(line.format(at=5, pid=1, gpc=7) for _ in range(9)))
    assert causes(burst) == ["ProgramFaultOnGpu"]
    many = of_text("\n".join(line.format(at=day * 10_000, pid=day, gpc=7) for day in range(1, 6)))
    assert causes(many) == ["FaultsOnOneUnit"]
    assert many.findings[0].layer == Layer.L0


def test_a_program_that_ended_is_not_the_gpus_fault() -> None:
    found = of_text("NVRM: Xid (PCI:0000:0f:00): 45, pid=9, name=python, Ch 00000008")
    assert [(one.code, one.layer) for one in found.findings] == [("ProgramEndedOnGpu", Layer.L6)]
    after = of_text("""
[1.0] NVRM: Xid (PCI:0000:0f:00): 13, pid=9, name=python, Graphics Exception: ESR 0x546fb0=0x11f000e
[1.1] NVRM: Xid (PCI:0000:0f:00): 43, pid=9, name=python, Ch 00000008
""")
    assert causes(after) == ["ProgramFaultOnGpu"]


def test_a_storm_is_told_once_and_quickly() -> None:
    lines = "\n".join(
        f"[{at}.{at % 7}] NVRM: Xid (PCI:0000:9b:00): 119, pid={at}, name=a, Timeout after 6s of waiting for RPC"
        for at in range(20_000)
    )
    found = of_text(lines)
    assert causes(found) == ["GspTimeout"]


def test_a_storm_of_followers_does_not_hide_what_came_after_it() -> None:
    line = "[{0}.0] NVRM: Xid (PCI:0000:9b:00): 31, pid={0}, name=a, Ch {0:08x}, intr 0. MMU Fault"
    storm = "\n".join(line.format(at) for at in range(5_000))
    found = of_text(storm + "\n[900000.0] NVRM: Xid (PCI:0000:3b:00): 62, pid=1, name=a, halted")
    assert "GpuEngineStopped" in causes(found)


def test_a_gpu_that_is_gone_explains_what_is_above() -> None:
    effect = of_text("NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.").findings[0].effect
    assert {"NvmlFails", "CapacityMissing", "PodsRejected"} <= {one.name for one in effects_of(effect)}
