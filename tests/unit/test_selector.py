"""Labels as kubectl's -l takes them."""

from __future__ import annotations

import pytest

from berth.app.cli.selector import fits, parse

LABELS = {"zone": "a", "gpu": "h100", "example.com/rack": "r-1", "empty": ""}


@pytest.mark.parametrize(("text", "holds"), [
    ("", True), ("zone=a", True), ("zone==a", True), ("zone=b", False), ("zone!=b", True), ("zone!=a", False),
    ("other!=a", True), ("other=a", False), ("zone", True), ("other", False), ("!other", True), ("!zone", False),
    ("zone in (a,b)", True), ("zone in (b, c)", False), ("other in (a)", False), ("zone notin (b)", True),
    ("other notin (a)", True), ("zone notin (a, b)", False), ("zone=a,gpu=h100", True), ("zone=a,gpu=l4", False),
    ("example.com/rack=r-1", True), ("zone in (a,b),gpu!=l4,!spot", True), ("empty=", True), ("zone=", False),
    (" zone = a , gpu ", True),
])  # fmt: skip
def test_conditions(text, holds):
    assert fits(parse(text), LABELS) is holds


@pytest.mark.parametrize("text", ["zone>3", "=a", "zone=a=b", "zone in a", "zone in (a", "a b", "zone=a,", "!"])
def test_what_is_no_condition(text):
    with pytest.raises(ValueError, match="is no condition on labels"):
        parse(text)
