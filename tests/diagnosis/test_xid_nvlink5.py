"""Xids 144 to 150: each row of the decode table is reached by a line of either version of the driver."""

from __future__ import annotations

import csv
import os
from functools import cache
from pathlib import Path

import pytest
from asked import codes, of_text

from berth.diagnosis.xid.nvlink5 import CODES, Resolution, decode, read_line, table

LOADING = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build\n"
VERSIONS = {1: "570.158.01", 2: "580.65.06"}


def word(mask: str) -> int:
    return int(mask.replace("-", "0"), 2)


def line(rule: Resolution, version: int, *, mask: str = "", status: int | None = None, weight: str = "") -> str:
    weight = weight or ("Nonfatal" if rule.severity == "Non-fatal" else "Fatal")
    if status is None:
        status = rule.status[0] if rule.status else 0
    information = word(mask or rule.masks[version - 1])
    return f"{rule.unit(version)} {weight} XC0 i0 Link 08 (0x{information:08x} 0x{status:08x} 0x00000000 0x0)"


@pytest.mark.parametrize("version", VERSIONS)
def test_each_row_is_reached(version: int) -> None:
    branch = int(VERSIONS[version].partition(".")[0])
    for rule in table():
        for status in rule.status or (0, 0x40):
            read = read_line(line(rule, version, status=status))
            assert read is not None and read.link == 8
            (found,) = decode(rule.code, read, branch)
            assert found.version == version
            assert (found.action, found.rule.investigate) == (rule.action, rule.investigate), (rule, found)
            assert found.rule.unit(version) == rule.unit(version)
            assert found.rule.severity == rule.severity


@pytest.mark.parametrize("version", VERSIONS)
def test_a_bit_of_the_information_may_change_the_action(version: int) -> None:
    rules = [rule for rule in table() if rule.action_then]
    assert len(rules) == 3
    for rule in rules:
        read = read_line(line(rule, version, mask=rule.masks_that_change_it[version - 1]))
        assert read is not None
        (found,) = decode(rule.code, read, int(VERSIONS[version].partition(".")[0]))
        assert (rule.action, found.action) == ("IGNORE", "RESET_GPU")


def test_each_row_is_reached_through_the_doctor() -> None:
    """The version of the driver is a fact like any other."""
    for version, driver in VERSIONS.items():
        for rule in table():
            text = f"{LOADING.format(version=driver)}NVRM: Xid (PCI:0018:01:00): {rule.code}, {line(rule, version)}"
            found = of_text(text, "dmesg")
            told = [*found.findings, *found.traps][0]
            assert f"Xid {rule.code}: {rule.unit(version).upper()} on link 8" in told.cause, told.cause
            assert f"{rule.action} (" in told.cause
            harmless = rule.action == "IGNORE" and rule.severity == "Non-fatal"
            assert told.code == ("NvLinkEventHarmless" if harmless else "NvLinkFault"), (rule, told.cause)


def test_without_a_driver_the_word_itself_tells_its_version() -> None:
    """No word fits a row of one version and a row of the other that asks for something else: the driver's version only
    decides where words are missing."""
    for one in table():
        for other in table():
            masks = (one.masks[0], other.masks[1])
            both = int("".join("0" if "-" in bits else "1" for bits in zip(*masks, strict=True)), 2)
            fits_both = word(masks[0]) & both == word(masks[1]) & both
            if one.code == other.code and fits_both and set(one.status) & set(other.status):
                assert one.action == other.action
    for rule in table():
        for version in VERSIONS:
            read = read_line(line(rule, version))
            assert read is not None
            assert {found.action for found in decode(rule.code, read)} == {rule.action}


def test_a_line_may_be_without_a_link_or_cut_short() -> None:
    read = read_line("NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000 0x00000000")
    assert read is not None and read.link == -1 and read.is_fatal
    assert decode(149, read)[0].action == "RESET_GPU"
    read = read_line("RLW_SRC_TRACK Nonfatal XC1 i0 Link 00 (0x004505c6 0x00000004 ...)")
    assert read is not None and decode(145, read)[0].action == "XID_154_EVAL"  # by name: the word is of another unit
    assert read_line("pid=1234, name=python") is None


def test_why_a_link_went_down_is_read_from_either_version() -> None:
    for text, investigate in (
        ("NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000)", "INVESTIGATE_PEER_DEVICE"),
        ("NETIR_LINK_DOWN Fatal XC0 i0 Link 00 (0x02800011 0x00000000)", "INVESTIGATE_HOST"),
        ("NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)", "INVESTIGATE_LINK_SI"),
        ("NETIR_LINK_DOWN Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)", "INVESTIGATE_LINK_SI"),
    ):
        read = read_line(text)
        assert read is not None
        assert decode(149, read)[0].rule.investigate == investigate, text


def test_a_line_that_the_table_lacks_is_still_a_fault() -> None:
    assert "NvLinkFault" in codes(of_text("NVRM: Xid (PCI:0018:01:00): 147, NEW_UNIT Fatal XC0 i0 Link 03 (0x1 0x2)"))


@cache
def collected() -> list[dict[str, str]]:
    path = Path(os.environ.get("BERTH_DATA", "")) / "xid_144_150_decode.csv"
    return list(csv.DictReader(path.open())) if path.is_file() else []


@pytest.mark.skipif(not collected(), reason="BERTH_DATA has no decode table")
def test_the_table_has_every_row_of_the_source() -> None:
    names = list(collected()[0])
    assert len(collected()) == len(table()) == 95
    for row, rule in zip(collected(), table(), strict=True):
        assert rule.code == int(row["xid"]) in CODES
        assert rule.masks == (row[names[2]], row[names[3]])
        assert rule.status == tuple(int(one, 16) for one in row["error_status"].split("/") if one)
        assert (rule.action, rule.action_then) == (row["resolution"], row["action2"])
        assert rule.masks_that_change_it == (row["action2_mask_v1"], row["action2_mask_v2"])
        assert rule.investigate == row["investigatory"].replace("SW/USER", "SW_USER")
        assert rule.side == row["hw_sw"]
