"""`verify` tells an intact copy from a missing, changed or incomplete one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from berth.sources import datasets
from berth.sources.datasets import DIFFERENT, MISSING, VERIFIED, verify


def test_each_set_says_where_it_is_from_and_under_which_licence():
    for dataset in datasets.datasets():
        assert dataset.source and dataset.licence and dataset.cite and dataset.holds
        assert len(dataset.commit) == 40 and len(dataset.sha256) == 64
        assert dataset.folder.startswith("traces/")
    assert len({dataset.name for dataset in datasets.datasets()}) == len(datasets.datasets())


def test_an_empty_folder_has_none(tmp_path):
    assert {checked.state for checked in verify(tmp_path)} == {MISSING}


def _fgd(root: Path):
    return next(checked for checked in verify(root) if checked.dataset.name == "fgd")


@pytest.fixture
def copy(tmp_path):
    data = os.environ.get("BERTH_DATA")
    if not data:
        pytest.skip("BERTH_DATA is not set: no public data to verify")
    shutil.copytree(Path(data) / "traces" / "fgd-atc23-results", tmp_path / "traces" / "fgd-atc23-results",
                    copy_function=shutil.copyfile)
    (tmp_path / "traces" / "fgd-atc23-results").chmod(0o755)
    return tmp_path


def test_the_public_data_is_intact(copy):
    assert _fgd(copy).state == VERIFIED
    assert {checked.state for checked in verify(Path(os.environ["BERTH_DATA"]))} <= {VERIFIED, MISSING}


def test_a_changed_absent_or_additional_file_is_named(copy):
    folder = copy / "traces" / "fgd-atc23-results"
    summary = folder / "published_summary.csv"
    original = summary.read_bytes()
    summary.write_bytes(original[:-2] + b"9\n")
    assert (_fgd(copy).state, _fgd(copy).detail) == (DIFFERENT, "published_summary.csv differs")
    summary.write_bytes(original + b"x" * 10_000_000)
    assert _fgd(copy).state == DIFFERENT and "bytes" in _fgd(copy).detail
    summary.unlink()
    assert (_fgd(copy).state, _fgd(copy).detail) == (DIFFERENT, "lacks published_summary.csv")
    summary.write_bytes(original)
    (folder / "more.csv").write_text("")
    assert _fgd(copy).detail == "has more.csv in addition"
