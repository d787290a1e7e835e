"""Forms of nvidia-smi beyond the samples: other drivers, columns without units, what stands in the place of a value."""

from __future__ import annotations

import pytest

from berth.evidence.formats import Format, smi_csv, smi_list, smi_mig, smi_query, smi_table, smi_topology, smi_xml
from berth.evidence.formats.smi_facts import (
    DeviceSeen,
    DriverSeen,
    MigInstanceSeen,
    MigProfileSeen,
    NvlinkSeen,
    TopologySeen,
)
from berth.evidence.piece import piece

GIB, MIB = 2**30, 2**20


def read(known: Format, text: str) -> list[object]:
    assert known.looks_like(text.encode())
    return list(known.read(piece(text, "nvidia-smi", node="gpu-1")))


TABLE = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |
|-------------------------------+----------------------+----------------------+
|   0  Tesla V100-SXM2...  On   | 00000000:00:1E.0 Off |                    3 |
| N/A   35C    P0    24W / 300W |      3MiB / 16160MiB |      0%   E. Process |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+
|   1  NVIDIA A100-PCI...  On   | 00000000:00:1F.0 Off |                 ERR! |
| N/A   ERR!   P0   ERR! / ERR! | Unknown Error        |    ERR!      Default |
|                               |                      |            Disabled* |
+-------------------------------+----------------------+----------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|=============================================================================|
|    0   N/A  N/A     11842      C   python my script.py              11000MiB |
|    1     2    0        22      C                                        N/A |
+-----------------------------------------------------------------------------+
"""


def test_a_table_of_2021_with_a_sick_device() -> None:
    first, second, driver = read(smi_table.FORMAT, TABLE)
    assert isinstance(first, DeviceSeen)
    assert (first.name, first.uncorrected_volatile, first.compute_mode) == (
        "Tesla V100-SXM2...",
        3,
        "Exclusive_Process",
    )
    assert first.processes is not None
    assert [(one.pid, one.name, one.memory_bytes) for one in first.processes] == [
        (11842, "python my script.py", 11000 * MIB)
    ]
    assert first.node == "gpu-1"
    assert isinstance(second, DeviceSeen)
    assert second.temperature_c is None
    assert second.unreadable["temperature_c"] == "ERR!"
    assert second.unreadable["memory_used_bytes"] == "Unknown Error"
    assert (second.mig_mode, second.mig_mode_pending) == ("Disabled", "Enabled"), "the star"
    assert second.processes is not None
    assert [(one.pid, one.name, one.memory_bytes, one.gi, one.ci) for one in second.processes] == [(22, "", None, 2, 0)]
    assert isinstance(driver, DriverSeen)
    assert (driver.version, driver.cuda) == ("470.57.02", "11.4")


def test_a_few_lines_of_a_query() -> None:
    (gpu,) = read(
        smi_query.FORMAT,
        "    Remapped Rows\n        Correctable Error   : 0\n        Uncorrectable Error : 1\n"
        "        Pending             : Yes\n        Remapping Failure Occurred : No\n",
    )
    assert isinstance(gpu, DeviceSeen)
    assert (gpu.remapped_uncorrectable, gpu.is_remap_pending, gpu.is_remap_failed) == (1, True, False)
    assert (gpu.index, gpu.name, gpu.uuid) == (None, "", ""), "whose it is, nobody says"


def test_a_query_of_a_lost_device_guesses_nothing() -> None:
    gpu, driver = read(
        smi_query.FORMAT,
        "==============NVSMI LOG==============\nDriver Version  : 535.104.05\nAttached GPUs   : 8\n"
        "GPU 00000000:5E:00.0\n    Product Name    : Unknown Error\n    FB Memory Usage\n"
        "        Total       : GPU is lost\n    Temperature\n        GPU Current Temp : GPU is lost\n"
        "    Volatile Uncorr. ECC : [N/A]\n",
    )
    assert isinstance(gpu, DeviceSeen)
    assert (gpu.name, gpu.temperature_c, gpu.memory_total_bytes) == ("", None, None)
    assert gpu.unreadable["temperature_c"] == "GPU is lost"
    assert gpu.unreadable["name"] == "Unknown Error"
    assert isinstance(driver, DriverSeen)
    assert (driver.version, driver.attached) == ("535.104.05", 8)


def test_processes_of_a_query() -> None:
    (gpu,) = read(
        smi_query.FORMAT,
        "GPU 00000000:5E:00.0\n    MIG Mode\n        Current : Disabled\n    Processes\n"
        "        GPU instance ID                   : N/A\n        Compute instance ID               : N/A\n"
        "        Process ID                        : 1842\n            Type                          : C\n"
        "            Name                          : python train.py\n"
        "            Used GPU Memory               : 160 MiB\n"
        "        GPU instance ID                   : 3\n        Compute instance ID               : 0\n"
        "        Process ID                        : 1900\n            Type                          : M+C\n"
        "            Name                          : [Not Found]\n"
        "            Used GPU Memory               : Not available in WDDM driver model\n",
    )
    assert isinstance(gpu, DeviceSeen)
    assert gpu.processes is not None
    assert [(one.pid, one.type, one.name, one.gi, one.memory_bytes) for one in gpu.processes] == [
        (1842, "C", "python train.py", None, 160 * MIB),
        (1900, "M+C", "[Not Found]", 3, None),
    ]


def test_columns_without_units_and_bits_of_reasons() -> None:
    first, second = read(
        smi_csv.FORMAT,
        "index, uuid, memory.used [MiB], temperature.gpu, clocks_event_reasons.active, power.draw [W]\n"
        "0, GPU-1, 1024, 83, 0x0000000000000048, 699.10\n1, GPU-2, 0, [Unknown Error], 0x0000000000000001, [N/A]\n",
    )
    assert isinstance(first, DeviceSeen)
    assert (first.index, first.memory_used_bytes, first.temperature_c, first.power_draw_w) == (0, GIB, 83, 699.10)
    assert first.slowed_by == ("hw_slowdown", "hw_thermal_slowdown")
    assert isinstance(second, DeviceSeen)
    assert (second.temperature_c, second.unreadable["temperature_c"]) == (None, "Unknown Error")
    assert (second.slowed_by, second.power_draw_w) == (("gpu_idle",), None)


def test_programs_as_columns() -> None:
    (gpu,) = read(
        smi_csv.FORMAT,
        "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
        "GPU-1, 4321, /usr/bin/python3, 2048 MiB\nGPU-1, 4400, [Not Found], 12 MiB\n",
    )
    assert isinstance(gpu, DeviceSeen)
    assert gpu.uuid == "GPU-1"
    assert gpu.processes is not None
    assert [(one.pid, one.memory_bytes) for one in gpu.processes] == [(4321, 2 * GIB), (4400, 12 * MIB)]


def test_a_list_of_2021_names_instances() -> None:
    (gpu,) = read(
        smi_list.FORMAT,
        "GPU 0: A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)\n"
        "  MIG 3g.20gb Device 0: (UUID: MIG-GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77/2/0)\n",
    )
    assert isinstance(gpu, DeviceSeen)
    assert [(one.gi, one.ci, one.profile) for one in gpu.mig] == [(2, 0, "3g.20gb")]


def test_versions_by_name() -> None:
    (driver,) = read(
        smi_list.FORMAT,
        "NVIDIA-SMI version  : 550.54.15\nNVML version        : 550.54\nDRIVER version      : 545.23.08\n"
        "CUDA Version        : 12.3\n",
    )
    assert isinstance(driver, DriverSeen)
    assert (driver.tool, driver.nvml, driver.version, driver.cuda) == ("550.54.15", "550.54", "545.23.08", "12.3")


def test_errors_and_abilities_of_links() -> None:
    (seen,) = read(
        smi_list.FORMAT,
        "GPU 3: NVIDIA B200 (UUID: GPU-19a556ea-38df-750d-fcf7-3da28757ba5b)\n"
        "\t Link 0: Replay Errors: 2\n\t Link 0: Recovery Errors: 0\n\t Link 0: CRC Errors: 14\n"
        "\t Link 0: Effective BER: 15e-255\n\t Link 1: <inactive>\n"
        "\t Link 2, P2P is supported: true\n\t Link 2, SLI is supported: false\n",
    )
    assert isinstance(seen, NvlinkSeen)
    zero, one, two = seen.links
    assert zero.errors == {"replay_errors": 2, "recovery_errors": 0, "crc_errors": 14, "effective_ber": 15e-255}
    assert (one.number, one.is_active) == (1, False)
    assert two.abilities == {"p2p_is_supported": "true", "sli_is_supported": "false"}


def test_a_topology_with_network_cards() -> None:
    (seen,) = read(
        smi_topology.FORMAT,
        "\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
        "GPU0\t X \tNV18\tPIX\tSYS\t0-47,96-143\t0\t\tN/A\n"
        "GPU1\tNV18\t X \tSYS\tPXB\t48-95\t1\t\tN/A\n"
        "NIC0\tPIX\tSYS\t X \tSYS\t\t\t\t\nNIC1\tSYS\tPXB\tSYS\t X \t\t\t\t\n\nLegend:\n\n  X    = Self\n"
        "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n",
    )
    assert isinstance(seen, TopologySeen)
    assert seen.names == ("GPU0", "GPU1", "NIC0", "NIC1")
    assert (seen.links["GPU0", "GPU1"], seen.links["GPU1", "NIC1"], seen.links["NIC0", "GPU0"]) == (
        "NV18",
        "PXB",
        "PIX",
    )
    assert len(seen.links) == 16
    assert seen.cpus == {"GPU0": "0-47,96-143", "GPU1": "48-95"}
    assert seen.nics == {"NIC0": "mlx5_0", "NIC1": "mlx5_1"}


def test_profiles_and_instances_of_mig() -> None:
    seen = read(
        smi_mig.FORMAT,
        "| GPU instance profiles:                                                      |\n"
        "| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |\n"
        "|   0  MIG 1g.10gb       19     5/7        9.75       No     16     1     0   |\n"
        "|                                                             1     1     0   |\n"
        "|   0  MIG 1g.10gb+me    20     1/1        9.75       No     16     1     0   |\n"
        "GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1\nGPU  0 Profile ID  0 Placement : {0}:8\n"
        "|   0  MIG 1g.10gb         19        9          2:1     |\n"
        "|   0      9       MIG 1g.10gb          0         0          0:1     |\n",
    )
    profiles = [one for one in seen if isinstance(one, MigProfileSeen)]
    assert [(one.profile, one.id, one.free, one.total, one.memory_gib, one.multiprocessors) for one in profiles] == [
        ("1g.10gb", 19, 5, 7, 9.75, 16),
        ("1g.10gb+me", 20, 1, 1, 9.75, 16),
        ("", 0, None, None, None, None),
    ]
    assert (profiles[0].starts, profiles[0].size) == ((0, 1, 2, 3, 4, 5, 6), 1)
    instances = [one for one in seen if isinstance(one, MigInstanceSeen)]
    assert [(one.gi, one.ci, one.profile_id, one.start, one.size) for one in instances] == [
        (9, None, 19, 2, 1),
        (9, 0, 0, 0, 1),
    ]


def test_an_xml_that_expands_entities_says_nothing_more() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><nvidia_smi_log><gpu id="00000000:01:00.0">'
    bomb += "<product_name>&b;</product_name></gpu></nvidia_smi_log>"
    (gpu,) = read(smi_xml.FORMAT, bomb)
    assert isinstance(gpu, DeviceSeen)
    assert gpu.name == ""


def test_text_of_other_kinds_is_not_taken_for_it() -> None:
    for text in ("a,b,c\n1,2,3\n", "GPU memory is low\n", "| a | b |\n", "Temperature: 20\n", "<xml/>"):
        for known in (smi_csv, smi_list, smi_mig, smi_query, smi_table, smi_topology, smi_xml):
            assert not known.FORMAT.looks_like(text.encode()), (known.__name__, text)


RENAMED = """\
==============NVSMI LOG==============
Driver Version : 610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]
CUDA Version : 13.3 [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]
KMD Version      : 610.57.04
CUDA UMD Version : 13.3
Attached GPUs    : 1
GPU 00000000:01:00.0
    Temperature
        GPU Current Temp                  : GPU requires reset
"""
HALVES = "| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |\n"
VERSIONS = (
    "NVIDIA-SMI version  : 610.43.02\nNVML version  : 610.43\nKMD version  : 610.43.02\nCUDA UMD Version  : 13.3\n"
)


def test_the_names_of_the_versions_from_610_on() -> None:
    gpu, driver = read(smi_query.FORMAT, RENAMED)
    assert isinstance(gpu, DeviceSeen)
    assert isinstance(driver, DriverSeen)
    assert (gpu.driver, gpu.cuda, driver.version, driver.cuda) == ("610.57.04", "13.3", "610.57.04", "13.3")
    for known, text in ((smi_table, HALVES), (smi_list, VERSIONS)):
        (driver,) = read(known.FORMAT, text)
        assert isinstance(driver, DriverSeen)
        assert (driver.version, driver.cuda, driver.tool) == ("610.43.02", "13.3", "610.43.02")
    columns = "index, name, driver_version, temperature.gpu\n0, NVIDIA H200, 610.43.02 [Deprecated; use another], 30\n"
    assert [one.driver for one in read(smi_csv.FORMAT, columns) if isinstance(one, DeviceSeen)] == ["610.43.02"]


def test_a_device_that_has_to_be_reset_says_so_in_the_place_of_any_value() -> None:
    (gpu, _) = read(smi_query.FORMAT, RENAMED)
    assert isinstance(gpu, DeviceSeen)
    assert (gpu.is_reset_required, gpu.recovery_action, gpu.temperature_c) == (True, "Reset", None)
    assert gpu.quote("recovery_action").text.endswith(": GPU requires reset")
    assert gpu.unreadable == {"temperature_c": "GPU requires reset"}


def test_a_row_that_was_cut_out_of_the_table_is_known() -> None:
    (gpu,) = read(
        smi_table.FORMAT,
        "|   2  NVIDIA H100 80GB HBM3          On  |   00000000:5D:00.0 Off |                  ERR! |\n"
        "| N/A   41C    P0            119W /  700W |       4MiB /  81559MiB |      3%      Default |\n",
    )
    assert isinstance(gpu, DeviceSeen)
    assert (gpu.index, gpu.temperature_c, gpu.memory_total_bytes) == (2, 41, 81559 * MIB)
    assert gpu.unreadable == {"uncorrected_volatile": "ERR!"}


def test_the_licence_of_a_guest() -> None:
    seen = read(
        smi_query.FORMAT,
        "    vGPU Software Licensed Product\n        Product Name   : NVIDIA Virtual Compute Server\n"
        "        License Status : Licensed (Expiry: 2026-1-17 7:33:36 GMT)\n",
    )
    assert [one.license_status for one in seen if isinstance(one, DeviceSeen)] == [
        "Licensed (Expiry: 2026-1-17 7:33:36 GMT)"
    ]


def test_a_table_in_a_log_with_times_is_read_like_any_other() -> None:
    logged = "\n".join(f"2025-06-01T10:00:00.000000001Z stdout F {line}" for line in TABLE.splitlines())
    plain, seen = read(smi_table.FORMAT, TABLE), read(smi_table.FORMAT, logged)
    assert len(plain) == len(seen)
    for one, other in zip(plain, seen, strict=True):
        if isinstance(one, DeviceSeen) and isinstance(other, DeviceSeen):
            assert (one.pci, one.temperature_c, one.processes) == (other.pci, other.temperature_c, other.processes)
            assert (one.memory_used_bytes, one.mig_mode, one.unreadable) == (
                other.memory_used_bytes,
                other.mig_mode,
                other.unreadable,
            )


@pytest.mark.parametrize("before", ["2025-06-01T10:00:00.1Z stdout F ", "2025-06-01T10:00:00.123456789Z ", "> "])
def test_what_logs_put_before_lines_is_taken_off(before: str) -> None:
    report = "==============NVSMI LOG==============\nGPU 00000000:01:00.0\n    Fabric\n        State : In Progress\n"
    part = "    Fabric\n        State : In Progress\n"
    columns = "index, fabric.state\n0, In Progress\n"
    for known, text in ((smi_query, report), (smi_query, part), (smi_csv, columns)):
        seen = read(known.FORMAT, "".join(f"{before}{line}\n" for line in text.splitlines()))
        assert [one.fabric_state for one in seen if isinstance(one, DeviceSeen)] == ["In Progress"]
