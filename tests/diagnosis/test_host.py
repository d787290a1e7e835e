"""A log whose lines name their host is of that node."""

from __future__ import annotations

import pytest
from asked import of_text

from berth.diagnosis.diagnose import diagnose
from berth.diagnosis.focus import focused
from berth.evidence.host import host_of
from berth.evidence.piece import piece
from berth.evidence.read import read

LOST = "kernel: NVRM: Xid (PCI:0000:43:00): 79, pid=1, GPU has fallen off the bus."


@pytest.mark.parametrize("begin", ["Nov 30 23:12:41 gpu-7 ", "2026-11-30T23:12:41.123456+01:00 gpu-7 "])
def test_a_finding_is_about_the_host_of_its_log(begin: str) -> None:
    (found,) = of_text(begin + LOST, "dmesg").findings
    assert found.node == "gpu-7" and "gpu-7" in found.subject


@pytest.mark.parametrize(
    "text",
    [
        f"Nov 30 23:12:41 gpu-7 {LOST}\nNov 30 23:12:41 gpu-8 {LOST}",
        f"Nov 30 23:12:41 localhost {LOST}",
        f"[  12.345678] {LOST}",
        "Nov 30 23:12:41 train-0 python: step 7",
    ],
)
def test_it_is_nobodys_where_lines_name_several_or_none(text: str) -> None:
    assert host_of(text.encode()) == ""


def test_a_node_that_only_its_log_names_can_be_asked_for() -> None:
    facts = read([piece(f"Nov 30 23:12:41 gpu-7 {LOST}", "dmesg")])
    about = focused(diagnose(facts), facts, "gpu-7")
    assert about is not None and [one.code for one in about[0].findings] == ["GpuFellOffBus"]
    assert focused(diagnose(facts), facts, "gpu-8") is None
