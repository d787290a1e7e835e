"""Profiles of nvml-mock as evidence: healthy ones find nothing, a fault that is injected is found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from asked import of_text

from berth.evidence.formats.smi_facts import DeviceSeen
from berth.evidence.piece import Piece
from berth.evidence.read import read

PROFILES = Path(os.environ.get("BERTH_DATA", "")) / "samples" / "nvml-mock-profiles"
SMALL = """
version: "1.0"
system: {driver_version: "550.163.01", cuda_version: "12.4"}
device_defaults:
  name: NVIDIA H100 80GB HBM3
  memory: {total_bytes: 85899345920, used_bytes: 0}
  remapped_rows: {correctable: 0, uncorrectable: 0, pending: false, failure_occurred: false}
  mig: {mode_current: disabled, mode_pending: disabled}
devices:
- {index: 0, uuid: GPU-0, pci: {bus_id: "0000:1A:00.0"}}
- {index: 1, uuid: GPU-1, pci: {bus_id: "0000:1B:00.0"}, remapped_rows: {uncorrectable: 1, pending: true}}
"""


@pytest.mark.skipif(not PROFILES.is_dir(), reason="BERTH_DATA has no samples")
@pytest.mark.parametrize(
    ("name", "count", "memory_gib", "product"),
    [
        ("a100", 8, 40, "NVIDIA A100-SXM4-40GB"), ("b200", 8, 192, "NVIDIA B200"), ("gb200", 8, 192, "NVIDIA GB200"),
        ("h100", 8, 80, "NVIDIA H100 80GB HBM3"), ("l40s", 8, 48, "NVIDIA L40S"), ("t4", 4, 16, "NVIDIA T4"),
    ],
)  # fmt: skip
def test_a_profile_is_a_machine(name: str, count: int, memory_gib: int, product: str) -> None:
    devices = read([Piece((PROFILES / f"{name}.yaml").read_bytes(), name)]).of(DeviceSeen)
    assert len(devices) == len({one.uuid for one in devices}) == len({one.pci for one in devices}) == count
    assert {(one.name, (one.memory_total_bytes or 0) >> 30, one.is_remap_pending) for one in devices} == {
        (product, memory_gib, False)
    }


def test_what_a_device_says_itself_goes_over_the_defaults() -> None:
    first, second = read([Piece(SMALL.encode(), "mock")]).of(DeviceSeen)
    assert (first.is_remap_pending, second.is_remap_pending, second.is_remap_failed) == (False, True, False)
    assert (second.name, second.pci, second.driver) == ("NVIDIA H100 80GB HBM3", (0, 0x1B, 0), "550.163.01")
    assert [one.code for one in of_text(SMALL).findings] == ["RowRemapPending"]
