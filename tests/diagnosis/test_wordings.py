"""Each finding is found in wordings that the public cases do not have: a rule states a mechanism, not a quotation."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import yaml
from asked import HERE, cases, codes, of_text

from berth.diagnosis.rules import RULES

WORDINGS: list[dict[str, Any]] = [
    one for path in sorted((HERE / "wordings").glob("*.yaml")) for one in yaml.safe_load(path.read_text()) or ()
]


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda one: f"{one['code']}: {one['source']}")
def test_the_wording_is_understood(wording: dict[str, Any]) -> None:
    assert wording["code"] in codes(of_text(wording["text"], wording.get("kind", "")))


def test_every_code_has_wordings_of_its_own() -> None:
    quoted = {" ".join(piece["text"].split()) for case in cases() for piece in case["evidence"]}
    own = Counter(one["code"] for one in WORDINGS if " ".join(one["text"].split()) not in quoted)
    known = {code.name for rule in RULES for code in rule.codes}
    assert not set(own) - known, "no rule answers with it"
    assert [name for name in sorted(known) if own[name] < 2] == []
