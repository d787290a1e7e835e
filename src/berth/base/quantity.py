"""Kubernetes quantities, exact: `1500m`, `80Gi`, `1e3`, `0.5`.

A quantity is a decimal number with a binary suffix (Ki … Ei), a decimal one (n u m k M G T P E) or an
exponent. Everything is computed in integers; where a unit cannot hold the value it is rounded up, as
`MilliValue` and `Value` of k8s.io/apimachinery do. Source: k8s.io/apimachinery/pkg/api/resource.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SUFFIX: dict[str, tuple[int, int]] = {
    # suffix: (base, exponent)
    "n": (10, -9), "u": (10, -6), "m": (10, -3), "": (10, 0),
    "k": (10, 3), "M": (10, 6), "G": (10, 9), "T": (10, 12), "P": (10, 15), "E": (10, 18),
    "Ki": (2, 10), "Mi": (2, 20), "Gi": (2, 30), "Ti": (2, 40), "Pi": (2, 50), "Ei": (2, 60),
}  # fmt: skip
_SHAPE = re.compile(
    r"^(?P<sign>[+-]?)(?P<whole>\d*)(?:\.(?P<part>\d*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?\d{1,4}))?\Z",
    re.ASCII,
)

# Kubernetes stores a quantity in 64 bits and caps what is larger.
LARGEST = 2**63 - 1


class QuantityError(ValueError):
    """Text that is not a Kubernetes quantity, or not one of the unit asked for."""


@lru_cache(maxsize=8192)
def scaled(text: str, per_unit: int = 1) -> int:
    """The quantity times `per_unit`, rounded up (away from zero) to a whole number, capped at 2**63 - 1."""
    numerator, denominator = _ratio(text)
    whole = -(-abs(numerator) * per_unit // denominator)
    capped = min(whole, LARGEST)
    return -capped if numerator < 0 else capped


def milli(text: str) -> int:
    """CPU or GPU in thousandths: `1500m` is 1500, `0.5` is 500, `100u` is 1."""
    return scaled(text, 1000)


def whole(text: str) -> int:
    """Bytes, rounded up: `80Gi` is 85899345920, `100m` is 1."""
    return scaled(text, 1)


def count(text: str) -> int:
    """A number of things that cannot be divided (GPUs): refuses what is not whole or is negative."""
    numerator, denominator = _ratio(text)
    if numerator % denominator:
        raise QuantityError(f"{text!r} is not a whole number")
    if numerator < 0:
        raise QuantityError(f"{text!r} is negative")
    return min(numerator // denominator, LARGEST)


@lru_cache(maxsize=8192)
def _ratio(text: str) -> tuple[int, int]:
    shape = _SHAPE.match(text)
    if shape is None or not (shape["whole"] or shape["part"]):
        raise QuantityError(f"{text!r} is not a quantity (examples: 500m, 2, 80Gi)")
    digits = (shape["whole"] or "") + (shape["part"] or "")
    numerator, denominator = int(digits), 10 ** len(shape["part"] or "")
    if shape["exponent"] is not None:
        base, power = 10, int(shape["exponent"])
    else:
        base, power = _SUFFIX[shape["suffix"] or ""]
    if power >= 0:
        numerator *= base**power
    else:
        denominator *= base**-power
    return (-numerator if shape["sign"] == "-" else numerator), denominator
