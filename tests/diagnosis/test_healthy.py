"""No false alarms: what is healthy gives no finding."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from asked import HERE

from berth.diagnosis.diagnose import diagnose
from berth.evidence.piece import Piece
from berth.evidence.read import read

SAMPLES = Path(os.environ.get("BERTH_DATA", "")) / "samples"
NO_EVIDENCE = ("README.md", "manifest.json")
LEFT_OFF: dict[str, str] = yaml.safe_load((HERE / "healthy.yaml").read_text())

LOGS: list[dict[str, str]] = yaml.safe_load((HERE / "healthy_logs.yaml").read_text())

with_samples = pytest.mark.skipif(not (SAMPLES / "manifest.json").is_file(), reason="BERTH_DATA has no samples")


def names() -> list[str]:
    found = (path for path in SAMPLES.rglob("*") if path.is_file() and path.name not in NO_EVIDENCE)
    return sorted(str(path.relative_to(SAMPLES)) for path in found)


@with_samples
@pytest.mark.parametrize("name", [name for name in names() if name not in LEFT_OFF])
def test_nothing_is_found_in_a_healthy_sample(name: str) -> None:
    found = diagnose(read([Piece((SAMPLES / name).read_bytes(), name)]))
    assert [(one.code, one.cause) for one in found.findings] == []


@with_samples
def test_what_is_left_off_is_there_and_has_a_reason() -> None:
    assert [name for name, why in LEFT_OFF.items() if name not in names() or not why] == []


@with_samples
def test_all_healthy_samples_together_are_healthy() -> None:
    """A machine, a cluster and its logs at once: facts of different sources do not accuse each other."""
    healthy = [name for name in names() if name not in LEFT_OFF]
    found = diagnose(read([Piece((SAMPLES / name).read_bytes(), name, node=name) for name in healthy]))
    assert [(one.code, one.cause) for one in found.findings] == []


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log["name"])
def test_nothing_is_found_in_a_healthy_log(log: dict[str, str]) -> None:
    found = diagnose(read([Piece(log["text"].encode(), log["name"])]))
    assert [(one.code, one.cause) for one in found.findings] == []


def test_all_healthy_logs_together_are_healthy() -> None:
    """But those of NCCL: ranks of one job would have to agree with each other."""
    logs = [log for log in LOGS if not log["name"].startswith("NCCL")]
    found = diagnose(read([Piece(log["text"].encode(), log["name"], node=f"n{n}") for n, log in enumerate(logs)]))
    assert [(one.code, one.cause) for one in found.findings] == []
