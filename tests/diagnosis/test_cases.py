"""The public cases: the layer and the class of the cause, from the evidence that people posted."""

from __future__ import annotations

from typing import Any

import pytest
from asked import cases, of_case

MUST = 0.95

pytestmark = pytest.mark.skipif(not cases(), reason="BERTH_DATA has no cases")


def answered(case: dict[str, Any]) -> tuple[str, str]:
    """Layer and class that the report puts first, of the traps where the case is one."""
    diagnosis = of_case(case)
    top = next(iter(diagnosis.traps if case["trap"] else diagnosis.findings), None)
    return (top.layer.name, top.cause_class) if top else ("", "")


def test_the_layer_of_the_cause_is_named() -> None:
    wrong = [(case["id"], case["layer"], answered(case)) for case in cases() if answered(case)[0] != case["layer"]]
    assert len(wrong) <= (1 - MUST) * len(cases()), wrong


def test_the_class_of_the_cause_is_named() -> None:
    wrong = [
        (case["id"], case["cause_class"], answered(case))
        for case in cases()
        if answered(case)[1] != case["cause_class"]
    ]
    assert len(wrong) <= (1 - MUST) * len(cases()), wrong


def test_what_looks_like_a_fault_and_is_none_is_no_finding() -> None:
    assert [case["id"] for case in cases() if case["trap"] and of_case(case).findings] == []


def test_confidence_means_something() -> None:
    """Of findings that are sure, at least 95 in 100 name the right layer."""
    sure = [(case, one) for case in cases() for one in of_case(case).findings[:1] if one.confidence >= 0.9]
    right = [case for case, one in sure if one.layer.name == case["layer"]]
    assert len(right) >= 0.95 * len(sure)
