"""What only looks like a fault, beside the fault that looks like it."""

from __future__ import annotations

import pytest
from asked import of_text

ROW = "|   1  Tesla V100-PCIE...  On   | 00008ED0:00:00.0 Off |                    0 |\n"
WATCH = "GPU 0's NvLink link 3 is currently down"
UNSIGNED = "[ 2.8] nvidia: module verification failed: signature and/or required key missing - tainting kernel\n"
EMPTY = (
    "| Processes: |\n|  GPU   GI   CI        PID   Type   Process name      GPU Memory |\n|====|\n"
    "+-----------------------------------------------------------------------------+\n"
)


def told(text: str) -> tuple[list[str], list[str]]:
    found = of_text(text)
    return [one.code for one in found.findings], [one.code for one in found.traps]


@pytest.mark.parametrize(
    ("second", "findings", "traps"),
    [
        (
            "| N/A   29C    P0   ERR! / 250W |    593MiB / 16160MiB |      0%      Default |",
            [],
            ["SensorReadingFailed"],
        ),
        ("| N/A   29C    P0   25W / 250W |    593MiB / 16160MiB |   ERR!      Default |", [], ["SensorReadingFailed"]),
        (
            "| ERR!  ERR!  ERR!  ERR! / 250W |    593MiB / 16160MiB |   ERR!      Default |",
            ["GpuHandleUnavailable"],
            [],
        ),
        ("| N/A  ERR!  P0   ERR! / 250W |    593MiB / 16160MiB |     0%      Default |", ["GpuHandleUnavailable"], []),
    ],
)
@pytest.mark.parametrize("first", [ROW, ""])
def test_one_column_is_a_sensor_and_many_are_a_lost_device(
    first: str, second: str, findings: list[str], traps: list[str]
) -> None:
    assert told(first + second) == (findings, traps)


def test_a_link_is_missing_only_where_one_can_be() -> None:
    assert told(f"{WATCH}\nGPU 0: NVIDIA A100 80GB PCIe") == ([], ["NvLinkWithoutBridge"])
    assert told(f"{WATCH}\nGPU 0: NVIDIA A100-SXM4-80GB") == (["NvLinkDown"], [])
    assert told(WATCH) == (["NvLinkDown"], [])


def test_a_bridge_with_one_link_that_works_is_there() -> None:
    bridged = "GPU 0: NVIDIA A100 80GB PCIe (UUID: GPU-1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed)\n"
    links = "\t Link 0: 25 GB/s\n\t Link 3: <inactive>\n"
    assert "NvLinkDown" in told(bridged + links + "\n" + WATCH)[0]


def test_an_unsigned_module_is_a_fault_only_where_it_is_refused() -> None:
    assert told(UNSIGNED) == ([], ["ModuleTaintsKernel"])
    findings, traps = told(UNSIGNED + "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service")
    assert findings and "ModuleTaintsKernel" not in traps


def test_a_cut_row_without_processes_is_seen_busy_only_with_load() -> None:
    busy = "| N/A   31C    P0    37W / 250W |   2716MiB /  3000MiB |     64%      Default |\n"
    assert told(busy + EMPTY) == ([], ["ProcessesNotListed"])
    assert told(busy.replace("64%", " 0%") + EMPTY)[1] == []
    assert told(busy) == ([], [])


def test_a_file_of_iommufd_is_told_once() -> None:
    opened = "qemu-kvm: vfio 0000:81:00.0: failed to open /dev/vfio/devices/vfio0: No such file or directory"
    assert told(opened)[0] == ["IommufdDeviceMissing"]
    assert told("qemu-kvm: failed to open /dev/vfio/42: Permission denied")[0] == ["PassthroughDeviceUnusable"]


def test_a_test_that_passes_on_such_a_machine_is_silent() -> None:
    assert told("all_reduce_perf on 2x AMD EPYC 9654: Avg bus bandwidth 372.1")[0] == []


@pytest.mark.parametrize(
    "text",
    [
        "using GPU 0 to perform barrier as devices used by this process are currently unknown. This can cause a hang",
        "using GPU 6 as device used by this process is currently unknown. This can potentially cause a hang",
    ],
)
def test_a_device_that_is_guessed_is_no_fault(text: str) -> None:
    assert told(text) == ([], ["FrameworkStartupNoise"])
