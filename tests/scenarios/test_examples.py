"""The examples in docs/reasons.md are what Berth says today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from berth.model.reasons import Reason

from .examples import example

PAGE = Path(__file__).parents[2] / "docs" / "reasons.md"
_EXAMPLE = re.compile(
    r"\*\*Example\*\* \(\[scenario\]\(\.\./tests/scenarios/(\S+?)\.yaml\)\)\.\n\n```\n(.*?)\n```", re.S
)


@pytest.mark.parametrize("reason", list(Reason), ids=lambda r: r.name)
def test_example(reason: Reason) -> None:
    section = re.split(r"(?m)^## ", PAGE.read_text())
    text = next(s for s in section if s.startswith(f"{reason.name}\n"))
    found = _EXAMPLE.search(text)
    assert found, f"the section {reason.name} has no example"
    assert found[2] == example(found[1], reason.name)
