"""Slurm's account of GPUs: where the cause sits, and what is only news."""

from __future__ import annotations

import pytest
from asked import of_text

from berth.diagnosis.words import Layer


@pytest.mark.parametrize(
    "text",
    [
        "slurmd: Gres Name=gpu Type=a100 Count=1 Index=0 File=/dev/nvidia0 Cores=0-31 Flags=HAS_FILE,HAS_TYPE",
        "slurmctld: gres/gpu: count changed for node gpu1 from 0 to 8",
        "slurmd: GRES: Global AutoDetect=nvml",
        "ConstrainDevices=yes",
        "NodeName=cpu1 Gres=(null) State=IDLE",
        "nvidia-smi shows 8 GPUs and scontrol show node has Gres=gpu:8",
        "  4711   gpu  train  ada PD  0:00  2 (Priority)",
        "  4711   gpu  train  ada  R  1:00  2 gpu[01-02]",
        "debug: _node_config_validate: gres/gpu: Ignoring excess count on node n1 (8 > 4)",
        "AccountingStorageTRES=gres/gpu\nGresTypes=gpu\nNodeName=gpu[1-4] Gres=gpu:a100:8 RealMemory=1000000",
    ],
)
def test_news_is_no_fault(text: str) -> None:
    assert of_text(text).findings == ()


def test_a_file_that_gres_conf_names_does_not_say_that_the_driver_is_missing() -> None:
    found = of_text(
        "slurmd: error: Waiting for gres.conf file /dev/nvidia0\n"
        "slurmd: fatal: can't stat gres.conf file /dev/nvidia0: No such file or directory",
        "host",
    )
    assert [one.code for one in found.findings] == ["SlurmDeviceFileAbsent"]


def test_a_lost_gpu_explains_that_slurm_counts_fewer() -> None:
    found = of_text(
        "NVRM: Xid (PCI:0000:43:00): 79, pid=1, name=python3, GPU has fallen off the bus.\n"
        "slurmctld: Setting node n1 state to INVAL with reason:gres/gpu count reported lower than configured (7 < 8)"
    )
    assert found.findings[0].layer is Layer.L0
    assert "SlurmCountsFewerGpus" in [one.finding.code for one in found.consequences]


def test_partitions_that_were_changed() -> None:
    found = of_text("Reason=gres/gpu:a100_3g.20gb count reported lower than configured (1 < 2)")
    assert (found.findings[0].layer, found.findings[0].cause_class) == (Layer.L3, "mig-state")


def test_no_library_is_a_matter_of_the_driver() -> None:
    found = of_text("slurmd: We were configured with nvml functionality, but that lib wasn't found on the system.")
    assert (found.findings[0].layer, found.findings[0].cause_class) == (Layer.L1, "driver-build")
