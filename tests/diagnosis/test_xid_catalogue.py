"""Every Xid in every form in which kernels print it: named, with severity and action, and who sees it another way."""

from __future__ import annotations

import csv
import os
from functools import cache
from pathlib import Path

import pytest
from asked import of_text

from berth.diagnosis.diagnose import Diagnosis
from berth.diagnosis.words import Severity
from berth.diagnosis.xid.catalogue import ACTIONS, AZURE, FIRST, LAST, STANDINGS, catalogue, xid

CODES = range(FIRST, LAST + 1)

FORMS = {
    "usual": "NVRM: Xid (PCI:0000:b3:00): {code}, pid=1234, name=python, Ch 00000001",
    "process not known": "NVRM: Xid (PCI:0000:02:00): {code}, pid='<unknown>', name=<unknown>, something happened.",
    "old driver": "NVRM: Xid (0000:03:00): {code}, Channel 0000007e",
    "nothing behind it": "NVRM: Xid (PCI:0000:9b:00): {code}",
    "raw kmsg": "4,3973,227986636,-;NVRM: Xid (PCI:0000:b3:00): {code}, pid=1234, name=python",
    "dmesg since boot": "[ 1843.308145] NVRM: Xid (PCI:0000:b3:00): {code}, pid=1234, name=python",
    "dmesg -T": "[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:b3:00): {code}, pid=1, name=a",
    "dmesg -x": "kern  :warn  : 2025-01-21T04:41:44,283302+00:00 NVRM: Xid (PCI:0000:38:00): {code}, pid=1, name=a",
    "journal": "Nov 12 03:14:07 gpu-7 kernel: NVRM: Xid (PCI:0018:01:00): {code}, pid=1, name=a",
    "MIG": "NVRM: Xid (PCI:0000:0f:00 GPU-I:05 GPU-CI:00): {code}, pid=1, name=a",
    "address left out": "kernel: NVRM: Xid (PCI:...): {code}, pid=1, name=a",
}


def told(diagnosis: Diagnosis) -> str:
    return " ".join(one.cause for one in (*diagnosis.findings, *diagnosis.traps))


@pytest.mark.parametrize("form", FORMS)
def test_every_code_is_named_with_severity_and_action(form: str) -> None:
    for code in CODES:
        text = told(of_text(FORMS[form].format(code=code), "dmesg"))
        known = xid(code)
        assert f"Xid {code} ({known.name}): {known.meaning}" in text, (code, text)
        assert f"NVIDIA: {STANDINGS[known.standing]}, " in text, code
        assert (known.action or ACTIONS[""]) in text, code
        for view in known.other_views:
            assert view in text, code


def test_a_number_that_nobody_has_listed_is_said_to_be_unlisted() -> None:
    assert "Xid 211 (not listed)" in told(of_text(FORMS["usual"].format(code=211), "dmesg"))


def test_numbers_that_are_no_xids_are_not_taken_for_any() -> None:
    for text in (
        "nfs: server gave no answer to xid 79",
        "transaction XID 79 was rolled back",
        'DCGM_FI_DEV_XID_ERRORS{gpu="3"} 31',
        "no Xid 79 was seen",
        "Xid: 0x79ab",
    ):
        found = of_text(text)
        assert [one.code for one in found.findings if "Xid" in one.cause] == [], text


# What the sources say, in the words of the table that was collected from them.


@cache
def collected() -> list[dict[str, str]]:
    path = Path(os.environ.get("BERTH_DATA", "")) / "xid.csv"
    return list(csv.DictReader(path.open())) if path.is_file() else []


needs_table = pytest.mark.skipif(not collected(), reason="BERTH_DATA has no table of Xids")

SEVERITIES = {
    "unused": "unused", "app": "app", "app (or sympathetic)": "app-or-follower", "fatal (gpu)": "gpu",
    "fatal (node)": "node", "info": "info", "CHECK_MECHANICALS": "board", "UPDATE_SWFW": "software",
    "fatal (gpu) unless register decode says ignore": "registers", "critical (contact support)": "support",
    "depends on sub-code (see xid_144_150_decode.csv)": "subcode", "RESTART_VM": "vm", "CHECK_UVM": "uvm",
    "informational: states the recovery action itself": "verdict", "not stated in catalogue": "unstated",
}  # fmt: skip


@needs_table
def test_the_catalogue_says_what_the_sources_say() -> None:
    assert [int(row["code"]) for row in collected()] == list(CODES) == sorted(catalogue())
    for row in collected():
        known = xid(int(row["code"]))
        assert known.name == row["name"]
        assert known.standing == SEVERITIES[row["severity"]], known.code
        action = row["action"].partition("immediate: ")[2].partition(";")[0]
        assert known.action == action.replace("not stated", ""), known.code
        assert known.gpud == row["gpud_event_type"], known.code
        assert " > ".join(known.gpud_repairs) == row["gpud_repair_actions"], known.code
        assert bool(known.in_154_since) == bool(row["xid154_linkage"]), known.code


@needs_table
def test_no_sentence_is_taken_over() -> None:
    """Facts are; the meaning is in our words."""
    for row in collected():
        assert xid(int(row["code"])).meaning.lower() != row["meaning"].lower(), row["code"]


def test_who_disagrees_is_shown() -> None:
    for code in (38, 44, 63, 121):
        assert any(view.startswith("gpud: fatal") for view in xid(code).other_views), code
    for code in (63, 68, 69, 92):
        assert "Azure: the node is not fit" in xid(code).other_views, code
    assert any(view.startswith("AWS") for view in xid(64).other_views)
    assert xid(79).other_views == ()
    assert len(AZURE) == 18


def test_severities_go_with_the_standing() -> None:
    assert xid(79).severity == xid(48).severity == Severity.Critical
    assert xid(13).severity == Severity.Error
    assert xid(37).severity == Severity.Info
