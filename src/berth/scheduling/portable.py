"""Exponential and logarithm out of additions, multiplications and divisions alone.

A processor's or a library's own differ in the last digit from machine to machine, and with them a plan could.
These give the same bits wherever floats are IEEE 754: nothing is reordered and nothing is fused.
"""

from __future__ import annotations

from math import floor, frexp

import numpy as np

from berth.scheduling.kernels import inlined

LEAST, MOST = -700.0, 700.0  # beyond these the exponential is cut off

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_LN2 = 0.6931471805599453
_HALF_ROOT = 0.7071067811865476
_POWERS = 2.0 ** np.arange(-1022, 1023)
_ZERO = 1022  # index of 2**0


@inlined
def exp(x):  # type: ignore[no-untyped-def]
    """e**x with a relative error below 1e-11."""
    x = min(max(x, LEAST), MOST)
    n = floor(x * _LOG2_E + 0.5)
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    p = 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * _POWERS[int(n) + _ZERO]


@inlined
def log(x):  # type: ignore[no-untyped-def]
    """Natural logarithm of x > 0 with an error below 1e-11."""
    m, e = frexp(x)
    if m < _HALF_ROOT:
        m = m * 2.0
        e = e - 1
    s = (m - 1.0) / (m + 1.0)
    q = s * s
    p = 1.0 / 13.0
    p = p * q + 1.0 / 11.0
    p = p * q + 1.0 / 9.0
    p = p * q + 1.0 / 7.0
    p = p * q + 0.2
    p = p * q + 1.0 / 3.0
    p = p * q + 1.0
    return e * _LN2 + 2.0 * s * p
