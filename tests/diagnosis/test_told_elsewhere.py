"""Sentences that come near to a finding and are none, and circumstances that change the answer."""

from __future__ import annotations

import pytest
from asked import codes, of_text

NEAR = (
    "I set the PCIe link to Gen4 in the BIOS and bandwidth works as expected: 25 GB/s",
    "the kueue workload was suspended; after resuming the job: CUDA_ERROR_UNKNOWN was not seen, all is well",
    "nvidia-powerd service: Started nvidia-powerd service. Active: active (running)",
    "LnkSta: Speed 16GT/s, Width x16",
    "[ 3.1] nvidia 0000:c1:00.0: BAR 1 [mem 0x20000000000-0x21fffffffff 64bit pref]: assigned",
    "power brake not asserted on any node; the power brake is inactive",
    "HwPowerBrakeSlowdown: 0",
    "nvidia-container-toolkit is already the newest version (1.17.8-1).",
    "all_reduce_perf hangs between two nodes over RoCE",
    "* soft memlock unlimited",
    "BAR 1: current size: 64GB, supported: 64MB 64GB, Resizable BAR is enabled",
    "the drop-in /etc/containerd/conf.d/99-nvidia.toml is imported and used",
    "INFO[0000] Wrote updated config to /etc/containerd/conf.d/99-nvidia.toml",
    "pcieport 0000:00:1c.0: AER: Corrected error received: 0000:00:1c.0",
    "PM: suspend entry (deep)\nPM: suspend exit",
    "the query returned 8021 rows in 802 ms",
)


@pytest.mark.parametrize("text", NEAR)
def test_what_comes_near_is_no_finding(text: str) -> None:
    answer = of_text(text)
    # Slurm, NCCL or a device may be named in it: what must not come is one of the findings that it comes near to.
    assert codes(answer) & NEAR_TO == set()


NEAR_TO = {
    "LinkHoldsOnlySlower", "CudaGoneAfterSleep", "PowerServiceNotForThisBoard", "PcieLinkReduced", "PcieLinkIdle",
    "BarUnassigned", "GpuPowerBrake", "DockerNotSetUpForGpus", "PeerAccessBlocked", "LockedMemorySmall",
    "RuntimeConfigInWrongFile", "PcieErrorsCorrected", "CudaSystemNotReady",
}  # fmt: skip


def test_a_stub_on_the_path_does_not_hide_a_module_of_another_version() -> None:
    answer = of_text("Driver/library version mismatch\nLD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs")
    assert [one.code for one in answer.findings] == ["DriverVersionsDiffer"]


def test_a_stub_before_the_drivers_library_is_no_skew_of_versions() -> None:
    answer = of_text("LD_LIBRARY_PATH=/opt/hook/lib64 nvidia-smi\nMismatch in versions between nvidia-smi and NVML.")
    assert (answer.findings, [one.code for one in answer.traps]) == ((), ["NvmlOfAnotherPlace"])


def test_blocked_in_a_container_is_its_device_rules() -> None:
    words = "Failed to initialize NVML: GPU access blocked by the operating system"
    assert [one.cause_class for one in of_text(words).findings] == ["permission"]
    assert [one.cause_class for one in of_text(f"docker run --gpus all x\n{words}").findings] == ["cgroup"]


def test_a_request_that_fails_is_the_windows_drivers_in_wsl_only() -> None:
    words = "nvidia-container-cli: initialization error: driver error: failed to process request"
    assert codes(of_text(words)) == {"DriverAnswersTooLate"}
    assert codes(of_text(f"Linux 5.10-microsoft-standard-WSL2\n{words}")) == {"DriverRefusesLibraryCall"}


@pytest.mark.parametrize(
    ("more", "cause"), [("", "driver-bug"), ("the same job runs fine on another node", "hw-fault")]
)
def test_firmware_that_fails_on_one_machine_only_is_its_hardware(more: str, cause: str) -> None:
    (one,) = of_text(f"GSP crashed under load on this machine\n{more}").findings
    assert (one.code, one.cause_class) == ("GspTimeout", cause)


def test_docker_with_the_toolkit_installed_is_not_set_up() -> None:
    words = 'could not select device driver "" with capabilities: [[gpu]]'
    assert codes(of_text(words)) == {"DockerHasNoGpuDriver"}
    for there in ("nvidia-container-toolkit is installed", "as in the docs I installed nvidia-container-toolkit 1.17"):
        assert codes(of_text(f"{words}\n{there}")) == {"DockerNotSetUpForGpus"}
    for absent in ("nvidia-container-toolkit is not installed", "I have not installed nvidia-container-toolkit"):
        assert "DockerNotSetUpForGpus" not in codes(of_text(f"{words}\n{absent}"))


def test_cuda_that_fails_after_sleep_is_the_driver() -> None:
    answer = of_text("CUDA_ERROR_UNKNOWN: unknown error\nit happens each time after suspend")
    assert answer.findings[0].code == "CudaGoneAfterSleep"
