"""docs/findings says what the rules say, and every rule says all that an operator needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from berth.diagnosis.finding import Code
from berth.diagnosis.rules import RULES
from berth.diagnosis.words import CAUSE_CLASSES, LEADS_TO, Effect
from berth.views.findings import pages

DOCS = Path(__file__).parents[2] / "docs" / "findings"
CODES = [code for rule in RULES for code in rule.codes]


def test_the_pages_are_those_of_the_rules() -> None:
    made = pages(RULES)
    assert {path.name for path in DOCS.iterdir()} == set(made)
    assert [name for name, text in made.items() if (DOCS / name).read_text() != text] == [], "run `make findings`"


def test_codes_are_unique() -> None:
    names = [code.name for code in CODES]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_a_code_says_all_that_is_needed_at_three_in_the_morning(code: Code) -> None:
    assert re.fullmatch(r"[A-Z][A-Za-z0-9]+", code.name)
    assert code.cause_class in CAUSE_CLASSES
    assert code.title and not code.title.endswith(".") and len(code.title) <= 100
    for words in (code.meaning, code.known_by, code.disproved_by):
        assert words.endswith("."), words
    assert code.counter_check and code.fix.steps and code.fix.risk and code.fix.rollback
    assert code.verify and code.sources
    assert all(step.strip() for step in (*code.fix.steps, *code.verify, *code.sources))


PLACE = re.compile(r"^(?:on|in|after|under|with) [^:]*: ")


@pytest.mark.parametrize("code", [one for one in CODES if not one.is_trap], ids=lambda code: code.name)
def test_what_would_disprove_a_fault_is_a_look_and_its_result(code: Code) -> None:
    look, _, result = PLACE.sub("", code.counter_check).rpartition(": ")
    assert look and result and not result.endswith("?"), code.counter_check


@pytest.mark.parametrize(
    ("name", "disproves"),
    [
        ("DevicesRevokedFromContainer", "in the container: nvidia-smi -L : works"),
        ("FaultsOnOneUnit", "dcgmi diag -r 3 on PCI: pass"),
        ("ProgramCrashed", "it runs there"),
        ("DriverVersionsDiffer", "one and the same version"),
        ("CollectiveTimedOut", "none completed it"),
        ("DriverCrashed", "no function of the trace"),
        ("CudaKernelFault", "another than 13, 31, 43 and 45"),
        ("GpuInitFailed", "a line (then it is L1)"),
        ("ControlGroupsExhausted", "succeeds"),
        ("AdmittedBeforePlugin", "still 0"),
    ],
)
def test_the_result_is_the_one_that_would_not_be_there_with_the_fault(name: str, disproves: str) -> None:
    (code,) = [one for one in CODES if one.name == name]
    assert disproves in code.counter_check


def test_effects_lead_up_and_never_in_a_circle_of_their_own() -> None:
    assert set(LEADS_TO) <= set(Effect)
    used = {code.effect for code in CODES}
    assert [effect for effect in LEADS_TO if effect in LEADS_TO[effect]] == []
    assert used <= set(Effect)
