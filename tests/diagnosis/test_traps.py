"""What looks like a fault and is none: the trap is found, and no fault beside it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from asked import HERE, of_text

from berth.diagnosis.rules import RULES

TRAPS = {code.name for rule in RULES for code in rule.codes if code.is_trap}
WORDINGS: list[dict[str, Any]] = [
    one for one in yaml.safe_load((HERE / "wordings" / "traps.yaml").read_text()) if one["code"] in TRAPS
]
CODES = {code.name: code for rule in RULES for code in rule.codes}


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda one: f"{one['code']}: {one['source']}")
def test_a_trap_comes_without_a_fault(wording: dict[str, Any]) -> None:
    found = of_text(wording["text"])
    assert wording["code"] in {one.code for one in found.traps}
    assert [one.code for one in found.findings] == []


@pytest.mark.parametrize("name", sorted(TRAPS))
def test_a_trap_has_nothing_to_mend_and_stands_for_faults_that_there_are(name: str) -> None:
    code = CODES[name]
    assert code.cause_class == "diagnosis-rule"
    assert [fault for fault in code.instead_of if fault not in CODES or CODES[fault].is_trap] == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Warning FailedScheduling 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "DevicesAllTaken"),
        ("could not load NVML library: libnvidia-ml.so.1: cannot open shared object file", "PluginSeesNoDriver"),
        ("Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.55GiB", "GpuMemoryFull"),
        ("Job for nvidia-fabricmanager.service failed because the control process exited", "FabricManagerDown"),
        ("NCCL WARN NET/OFI Failed to initialize rdma protocol", "NetworkPluginNotUsed"),
        ("GPU 0's NvLink link 3 is currently down, NVIDIA H100 80GB HBM3", "NvLinkDown"),
        (
            "Found GPU0 NVIDIA GeForce RTX 5090 which is of cuda capability 12.0.\n"
            "Minimum and Maximum cuda capability supported by this version of PyTorch is\n(5.0) - (9.0)",
            "NoKernelForDevice",
        ),
        ("UserWarning: CUDA initialization: Found no NVIDIA driver on your system.", "NoGpuInContainer"),
        (
            "unable to open mca_btl_openib: librdmacm.so.1: cannot open shared object file (ignored)\n"
            "ImportError: libnccl.so.2: cannot open shared object file: No such file or directory",
            "ImageLibraryMissing",
        ),
    ],
)
def test_the_fault_itself_is_still_a_fault(text: str, code: str) -> None:
    assert code in {one.code for one in of_text(text).findings}
