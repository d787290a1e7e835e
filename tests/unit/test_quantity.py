"""Quantities against an independent definition in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.base import quantity
from berth.base.quantity import LARGEST, QuantityError

SUFFIXES = {
    "": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "P": Fraction(10**15), "E": Fraction(10**18), "Ki": Fraction(2**10), "Mi": Fraction(2**20),
    "Gi": Fraction(2**30), "Ti": Fraction(2**40), "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip


@st.composite
def quantities(draw):
    """(text, value as a fraction)."""
    whole = draw(st.text("0123456789", max_size=12))
    part = draw(st.none() | st.text("0123456789", max_size=9))
    if not whole and not part:
        whole = "0"
    sign = draw(st.sampled_from(["", "+", "-"]))
    number = Fraction(int(whole + (part or "")), 10 ** len(part or ""))
    if draw(st.booleans()):
        suffix = draw(st.sampled_from(sorted(SUFFIXES)))
        scale = SUFFIXES[suffix]
    else:
        power = draw(st.integers(-20, 20))
        suffix = draw(st.sampled_from("eE")) + draw(st.sampled_from(["", "+"] if power >= 0 else [""])) + str(power)
        scale = Fraction(10) ** power
    text = sign + whole + ("" if part is None else "." + part) + suffix
    return text, (-1 if sign == "-" else 1) * number * scale


def rounded_away(value: Fraction) -> int:
    return min(math.ceil(value), LARGEST) if value >= 0 else max(math.floor(value), -LARGEST)


@given(quantities())
def test_amounts_are_exact_and_round_away_from_zero(quantity_and_value):
    text, value = quantity_and_value
    assert quantity.whole(text) == rounded_away(value)
    assert quantity.milli(text) == rounded_away(value * 1000)


@given(quantities())
def test_a_count_is_whole_and_not_negative_or_refused(quantity_and_value):
    text, value = quantity_and_value
    if value.denominator == 1 and value >= 0:
        assert quantity.count(text) == min(value.numerator, LARGEST)
    else:
        with pytest.raises(QuantityError):
            quantity.count(text)


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_refused(text):
    try:
        assert isinstance(quantity.whole(text), int)
    except QuantityError as error:
        assert repr(text) in str(error)


@pytest.mark.parametrize(
    "text", ["", " ", "1 Gi", "1gb", "Gi", ".", "1e", "1e1.5", "0x10", "1,5", "∞", "١", "1\n", "nan"]
)
def test_what_is_no_quantity(text):
    with pytest.raises(QuantityError):
        quantity.whole(text)
