"""All SXids of the Fabric Manager guide."""

from __future__ import annotations

import csv
import os
from functools import cache
from pathlib import Path

import pytest
from asked import of_text

from berth.diagnosis.xid.sxid import sxid, sxids


@cache
def collected() -> list[dict[str, str]]:
    path = Path(os.environ.get("BERTH_DATA", "")) / "sxid.csv"
    return list(csv.DictReader(path.open())) if path.is_file() else []


@pytest.mark.skipif(not collected(), reason="BERTH_DATA has no table of SXids")
def test_the_table_says_what_the_guide_says() -> None:
    assert len(sxids()) == len(collected()) == 93
    for row in collected():
        known = sxid(int(row["sxid"]))
        assert (known.name, known.severity) == (row["name"], row["severity"])
        assert " > ".join(known.gpud_repairs) == row["action(gpud)"]


def test_each_is_named_by_the_doctor() -> None:
    for code, known in sxids().items():
        found = of_text(f"kernel: nvidia-nvswitch1: SXid (PCI:0000:06:00.0): {code:05d}, Link 04 something (First)")
        told = [*found.findings, *found.traps][0]
        assert f"SXid {code} ({known.name})" in told.cause
        assert "link 04" in told.cause
        always = known.severity == "always-fatal"
        assert (told.code == "NvSwitchFault") == always, code


def test_one_that_is_not_listed_is_said_to_be() -> None:
    assert sxid(28006).sentence == "SXid 28006 (not listed): not in the public list; its line says whether it is fatal"
