"""Texts as people post them: the usual cause comes first, by layer and class, whatever else is said beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from asked import of_text

POSTED: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "posted.yaml").read_text())


@pytest.mark.parametrize("posted", POSTED, ids=lambda one: one["text"][:60])
def test_the_usual_cause_comes_first(posted: dict[str, Any]) -> None:
    diagnosis = of_text(posted["text"])
    top = next(iter((*diagnosis.findings, *diagnosis.traps)), None)
    assert top is not None
    assert (top.layer.name, top.cause_class) == (posted["layer"], posted["cause_class"])
