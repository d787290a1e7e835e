"""What the samples of nvidia-smi say, by form. Values were looked up in the samples by eye."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from berth.evidence.fact import Fact
from berth.evidence.formats.families.smi import FORMATS
from berth.evidence.formats.smi_facts import DeviceSeen, DriverSeen, NvlinkSeen, TopologySeen
from berth.evidence.piece import Piece

SAMPLES = Path(os.environ.get("BERTH_DATA", "")) / "samples"
MIB = 2**20

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="BERTH_DATA has no samples")


def facts(path: str) -> list[Fact]:
    raw = (SAMPLES / path).read_bytes()
    return [fact for known in FORMATS if known.looks_like(raw[:65536]) for fact in known.read(Piece(raw, path))]


def devices(path: str) -> list[DeviceSeen]:
    return [fact for fact in facts(path) if isinstance(fact, DeviceSeen)]


def drivers(path: str) -> list[DriverSeen]:
    return [fact for fact in facts(path) if isinstance(fact, DriverSeen)]


def test_a_query_of_an_h200() -> None:
    (gpu,) = devices("nvidia-smi-q/h200_590.48.01.txt")
    assert (gpu.form, gpu.index, gpu.name, gpu.pci) == ("query", 0, "NVIDIA H200", (0, 0x83, 0))
    assert gpu.uuid == "GPU-00000000-0000-0000-0000-000000000000"
    assert (gpu.architecture, gpu.vbios, gpu.gsp_firmware) == ("Hopper", "96.00.A5.00.03", "590.48.01")
    assert (gpu.memory_total_bytes, gpu.memory_used_bytes) == (143771 * MIB, 0)
    assert gpu.bar1_total_bytes == 262144 * MIB
    assert (gpu.temperature_c, gpu.margin_c, gpu.margin_shutdown_c, gpu.memory_temperature_c) == (28, 59, -8, 32)
    assert gpu.temperature_shutdown_c is None, "a Hopper prints margins only"
    assert (gpu.power_draw_w, gpu.power_limit_w, gpu.power_max_w) == (77.67, 700, 700)
    assert (gpu.sm_clock_mhz, gpu.sm_clock_max_mhz, gpu.memory_clock_mhz) == (345, 1980, 3201)
    assert gpu.slowed_by == ("gpu_idle",)
    assert gpu.slowed_us["hw_thermal_slowdown"] == 0
    assert (gpu.pcie_gen, gpu.pcie_gen_max, gpu.pcie_width, gpu.pcie_width_max) == (5, 5, 16, 16)
    assert gpu.pcie_gen_host_max is None
    assert (gpu.mig_mode, gpu.mig_mode_pending, gpu.mig) == ("Disabled", "Disabled", ())
    assert (gpu.fabric_state, gpu.fabric_status, gpu.fabric_clique) == ("Completed", "Success", "0")
    assert (gpu.is_remap_pending, gpu.is_remap_failed, gpu.remap_banks["max"]) == (False, False, 3072)
    assert gpu.processes == ()
    assert (gpu.persistence_mode, gpu.compute_mode, gpu.recovery_action) == ("Enabled", "Default", "None")


def test_a_query_with_partitions() -> None:
    (gpu,) = devices("nvidia-smi-q/h100-mig_590.48.01.txt")
    assert gpu.mig_mode == "Enabled"
    assert [(one.gi, one.ci, one.multiprocessors) for one in gpu.mig] == [
        (2, 0, 60),
        (3, 0, 32),
        (9, 0, 16),
        (10, 0, 16),
    ]
    assert (gpu.mig[0].memory_total_bytes, gpu.mig[0].memory_used_bytes) == (40448 * MIB, 26 * MIB)
    assert gpu.memory_used_bytes == 59 * MIB, "that of the device, not of a partition"
    assert (gpu.remapped_correctable, gpu.is_remap_pending) == (None, None), "N/A"
    assert gpu.gpu_percent is None
    assert (gpu.pcie_replays, gpu.virtualization, gpu.module_id) == (9, "Pass-Through", "7")


def test_two_compute_instances_of_one_gpu_instance() -> None:
    (gpu,) = devices("nvidia-smi-q/h200-mig_590.48.01.txt")
    assert [(one.gi, one.ci) for one in gpu.mig] == [(2, 0), (2, 1), (3, 0), (9, 0), (10, 0)]


def test_a_busy_l40s() -> None:
    (gpu,) = devices("nvidia-smi-q/l40s_595.80.txt")
    assert (gpu.gpu_percent, gpu.memory_percent, gpu.temperature_c) == (100, 9, 64)
    assert gpu.slowed_by == ()
    assert gpu.slowed_us["sw_power_cap"] == 200740215
    assert (gpu.mig_mode, gpu.fabric_state) == ("N/A", "N/A")
    assert gpu.memory_temperature_c is None
    (driver,) = drivers("nvidia-smi-q/l40s_595.80.txt")
    assert (driver.version, driver.cuda, driver.attached) == ("595.80", "13.2", 1)


def test_one_section_of_eight_devices() -> None:
    seen = devices("nvidia-smi-q/azure_bad_nvsmi8_output.txt")
    assert [gpu.pci[0] for gpu in seen] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [gpu.retired_double_bit for gpu in seen] == [5, 61, 0, 0, 0, 45, 0, 56]
    assert [gpu.is_retirement_pending for gpu in seen] == [False, True, False, True, False, True, False, True]
    assert seen[1].quote("is_retirement_pending").text.split() == ["Pending", "Page", "Blacklist", ":", "Yes"]
    assert seen[1].quote("is_retirement_pending").line == 19
    assert seen[0].temperature_c is None, "not in this section"
    healthy = devices("nvidia-smi-q/azure_orig_nvsmi8_output.txt")
    assert not any(gpu.is_retirement_pending for gpu in healthy)
    assert len(healthy) == 8


def test_an_xml_of_partitions() -> None:
    (gpu,) = devices("nvidia-smi-xml/a100-sxm4-v12.xml")
    assert gpu.index is None, "one of four was kept"
    assert [(one.gi, one.ci, one.memory_total_bytes) for one in gpu.mig] == [
        (instance, 0, 19968 * MIB) for instance in (3, 4, 5, 6)
    ]
    assert (gpu.temperature_c, gpu.temperature_shutdown_c, gpu.temperature_slowdown_c) == (27, 92, 89)
    assert gpu.margin_c is None
    assert (gpu.is_reset_required, gpu.fabric_state) == (False, "N/A")
    assert gpu.quote("temperature_c").text == "<gpu_temp>27 C</gpu_temp>"


def test_an_xml_of_turing() -> None:
    (gpu,) = devices("nvidia-smi-xml/tesla-t4.xml")
    assert gpu.slowed_by == (), "clocks_throttle_reasons, as it was called"
    assert (gpu.pcie_gen, gpu.pcie_gen_max, gpu.pcie_width, gpu.pcie_width_max) == (3, 3, 8, 16)
    assert (gpu.uncorrected_volatile, gpu.corrected_aggregate, gpu.retired_double_bit) == (0, 0, 0)
    assert gpu.processes is not None
    assert [(one.pid, one.name, one.type, one.memory_bytes) for one in gpu.processes] == [
        (675, "/usr/lib/xorg/Xorg", "G", 22 * MIB),
        (5762, "python", "C", 1005 * MIB),
    ]


def test_an_xml_of_pascal() -> None:
    (gpu,) = devices("nvidia-smi-xml/quadro-p400.xml")
    assert (gpu.ecc_mode, gpu.uncorrected_volatile, gpu.retired_double_bit) == ("N/A", None, None)
    assert (gpu.name, gpu.pci, gpu.driver, gpu.cuda) == ("Quadro P400", (0, 0x43, 0), "418.43", "10.1")
    assert gpu.processes == ()


def test_an_xml_that_was_cut_down() -> None:
    (gpu,) = devices("nvidia-smi-xml/gtx-1070-ti.xml")
    assert (gpu.temperature_c, gpu.pcie_gen, gpu.memory_used_bytes, gpu.processes) == (39, 1, 42 * MIB, None)
    assert drivers("nvidia-smi-xml/gtx-1070-ti.xml") == []


def test_an_xml_of_two_of_eight() -> None:
    seen = devices("nvidia-smi-xml/h100-80gb-hbm3_570.86.15_first2of8.xml")
    assert [gpu.pci for gpu in seen] == [(0, 4, 0), (0, 5, 0)]
    assert [gpu.index for gpu in seen] == [None, None]
    assert seen[0].pcie_gen_device_max == 5
    assert seen[0].pcie_gen_max == 4
    assert (seen[0].remapped_uncorrectable, seen[0].is_remap_failed) == (0, False)
    (driver,) = drivers("nvidia-smi-xml/h100-80gb-hbm3_570.86.15_first2of8.xml")
    assert (driver.version, driver.attached) == ("570.86.15", 8)


def test_a_sick_place_in_the_fabric() -> None:
    first, second = devices("nvidia-smi-xml/gb200-fabric-degraded_nvml-mock.xml")
    assert (first.fabric_health["summary"], second.fabric_health["summary"]) == ("Healthy", "Unhealthy")
    assert (second.fabric_health["route_unhealthy"], second.fabric_state) == ("True", "Completed")
    assert (first.index, second.index) == (0, 1)


def test_a_workstation_with_programs() -> None:
    (gpu,) = devices("nvidia-smi-xml/rtx-4000-sff-ada-v13.xml")
    assert gpu.processes is not None
    assert [one.type for one in gpu.processes] == ["G", "G", "C", "C+G"]
    assert gpu.processes[2].gi is None
    assert (gpu.pcie_gen, gpu.pcie_gen_max, gpu.performance_state) == (1, 4, "P8")


def test_a_table() -> None:
    (gpu,) = devices("nvidia-smi-table/h100-mig_590.48.01.txt")
    assert (gpu.form, gpu.index, gpu.name, gpu.pci) == ("table", 0, "NVIDIA H100 80GB HBM3", (0, 0, 9))
    assert (gpu.temperature_c, gpu.power_draw_w, gpu.power_limit_w) == (42, 98, 700)
    assert (gpu.memory_used_bytes, gpu.memory_total_bytes, gpu.gpu_percent) == (59 * MIB, 81559 * MIB, None)
    assert (gpu.mig_mode, gpu.processes) == ("Enabled", ())
    assert [(one.gi, one.ci, one.index, one.multiprocessors) for one in gpu.mig] == [
        (2, 0, 0, 60), (3, 0, 1, 32), (9, 0, 2, 16), (10, 0, 3, 16),
    ]  # fmt: skip
    (driver,) = drivers("nvidia-smi-table/h100-mig_590.48.01.txt")
    assert (driver.version, driver.tool, driver.cuda) == ("590.48.01", "590.48.01", "13.1")
    (busy,) = devices("nvidia-smi-table/l40s_595.80.txt")
    assert (busy.persistence_mode, busy.gpu_percent, busy.uncorrected_volatile) == ("Disabled", 100, 0)


def test_a_list() -> None:
    (gpu,) = devices("nvidia-smi-L/mig-mixed-nvidia-smi.txt")
    assert gpu.uuid == "GPU-b4895dbf-9350-2524-a89b-98161ddd9fe4"
    assert [(one.profile, one.index) for one in gpu.mig] == [
        ("3g.40gb", 0),
        ("2g.20gb", 1),
        ("1g.10gb", 2),
        ("1g.10gb", 3),
    ]
    assert gpu.mig[3].uuid == "MIG-0f709664-740c-52b0-ae79-3e4c9ede6d3b"
    assert [len(one.mig) for one in devices("nvidia-smi-L/mig-nvidia-smi.txt")] == [7]
    assert [(one.name, one.mig) for one in devices("nvidia-smi-L/l40s_595.80.txt")] == [("NVIDIA L40S", ())]


def test_a_row_of_columns() -> None:
    (gpu,) = devices("nvidia-smi-query-csv/h100_590.48.01.csv")
    assert (gpu.form, gpu.index, gpu.name, gpu.pci) == ("csv", 0, "NVIDIA H100 80GB HBM3", (0, 0, 9))
    assert (gpu.memory_total_bytes, gpu.memory_reserved_bytes, gpu.memory_free_bytes) == (
        81559 * MIB, 479 * MIB, 81081 * MIB,
    )  # fmt: skip
    assert (gpu.temperature_c, gpu.margin_c, gpu.memory_temperature_c, gpu.power_draw_w) == (41, 46, 48, 69.85)
    assert gpu.slowed_by == ("gpu_idle",)
    assert (gpu.pcie_gen, gpu.pcie_width, gpu.is_remap_pending, gpu.remapped_uncorrectable) == (5, 16, False, 0)
    assert (gpu.mig_mode, gpu.fabric_state, gpu.fabric_status, gpu.ecc_mode) == (
        "Disabled", "Completed", "Success", "Enabled",
    )  # fmt: skip
    (driver,) = drivers("nvidia-smi-query-csv/h100_590.48.01.csv")
    assert (driver.version, driver.attached) == ("590.48.01", 1)


def test_links_of_nvlink() -> None:
    seen = [fact for fact in facts("nvidia-smi-nvlink/a100.txt") if isinstance(fact, NvlinkSeen)]
    assert [(one.index, len(one.links)) for one in seen] == [(index, 12) for index in range(8)]
    assert {link.speed_gbytes_s for one in seen for link in one.links} == {25.0}
    assert devices("nvidia-smi-nvlink/a100.txt") == [], "a list of links is no list of devices"
    (hopper,) = [fact for fact in facts("nvidia-smi-nvlink/h100_590.48.01.txt") if isinstance(fact, NvlinkSeen)]
    assert (len(hopper.links), hopper.links[17].speed_gbytes_s) == (18, 26.562)


@pytest.mark.parametrize(
    ("path", "inactive", "supported"),
    [
        ("nvidia-smi-nvlink/azure_bad_nvlink_status.txt", True, True),
        ("nvidia-smi-nvlink/h100-mig_590.48.01.txt", False, False),
        ("nvidia-smi-nvlink/l40s_595.80.txt", False, False),
        ("nvidia-smi-nvlink/azure_good_nvlink_status.txt", False, True),
    ],
)
def test_links_that_are_not_there(path: str, inactive: bool, supported: bool) -> None:
    (seen,) = [fact for fact in facts(path) if isinstance(fact, NvlinkSeen)]
    assert (seen.are_all_inactive, seen.is_supported) == (inactive, supported)


def test_a_topology_of_one() -> None:
    (seen,) = [fact for fact in facts("nvidia-smi-topo/h200_590.48.01.txt") if isinstance(fact, TopologySeen)]
    assert (seen.names, seen.links) == (("GPU0",), {("GPU0", "GPU0"): "X"})
    assert (seen.cpus, seen.numa) == ({"GPU0": "0-23"}, {"GPU0": "0"})


def every_sample() -> list[Any]:
    return sorted(path for path in SAMPLES.glob("nvidia-smi-*/*") if path.is_file())


@pytest.mark.parametrize("path", every_sample(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_sample_is_read_and_a_torn_one_does_not_hurt(path: Path) -> None:
    raw = path.read_bytes()
    assert facts(str(path.relative_to(SAMPLES)))
    for cut in range(0, len(raw), max(1, len(raw) // 37)):
        for torn in (raw[:cut], raw[cut:], raw[:cut] + b"\x00\xff\n|<&" + raw[cut:]):
            for known in FORMATS:
                list(known.read(Piece(torn, "torn")))
