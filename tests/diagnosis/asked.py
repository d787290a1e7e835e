"""What tests of the doctor share: the public cases, and a diagnosis of a text."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from berth.diagnosis.diagnose import Diagnosis, diagnose
from berth.evidence.piece import Piece
from berth.evidence.read import read

HERE = Path(__file__).parent


@cache
def cases() -> list[dict[str, Any]]:
    """The public cases, where BERTH_DATA has them."""
    path = Path(os.environ.get("BERTH_DATA", "")) / "cases" / "cases.jsonl"
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def of_text(text: str, kind: str = "") -> Diagnosis:
    return diagnose(read([Piece(text.encode(), source=kind or "text", kind=kind)]))


def of_case(case: dict[str, Any]) -> Diagnosis:
    found = case["evidence"]
    return diagnose(read([Piece(one["text"].encode(), source=one["kind"], kind=one["kind"]) for one in found]))


def codes(diagnosis: Diagnosis) -> set[str]:
    """All that was found: causes, consequences and traps."""
    return {
        *(one.code for one in diagnosis.findings),
        *(one.finding.code for one in diagnosis.consequences),
        *(one.code for one in diagnosis.traps),
    }
