"""Xid 74: every bit of its registers, as NVIDIA's work-flow for NVLink errors judges it."""

from __future__ import annotations

import pytest

from berth.diagnosis.xid.nvlink4 import Registers, Verdict, read_registers

LINE = "pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 14({})"

# Register and bit → what the work-flow says; all others of these registers should not be seen.
EXPECTED = {
    (0, Verdict.Ignore): (0, 23, 30),
    (0, Verdict.Follower): (1, 20),
    (0, Verdict.Parity): (4, 5),
    (0, Verdict.Connection): (8, 9, 12, 16, 17, 24, 28),
    (0, Verdict.Marginal): (21, 22),
    (0, Verdict.Repeated): (27, 29),
    (2, Verdict.Parity): (0, 1, 2, 6),
    (2, Verdict.Diagnose): (16, 19),
    (2, Verdict.Repeated): (17, 18),
    (3, Verdict.Follower): (16, 17),
    (3, Verdict.FollowerWithReset): (18,),
    (4, Verdict.Parity): (18, 19, 21, 22, 24, 25, 27, 28),
    (4, Verdict.Threshold): (20, 23, 26, 29),
}


def registers(*words: int) -> Registers:
    padded = [*words, *(0 for _ in range(7 - len(words)))]
    found = read_registers(LINE.format(", ".join(f"0x{word:x}" for word in padded)))
    assert found is not None
    return found


@pytest.mark.parametrize("register", [0, 2, 3, 4])
def test_each_bit_is_judged(register: int) -> None:
    for bit in range(32):
        words = [0] * 7
        words[register] = 1 << bit
        expected = next(
            (verdict for (number, verdict), bits in EXPECTED.items() if number == register and bit in bits),
            Verdict.Unexpected,
        )
        found = registers(*words)
        assert found.verdict == expected, (register, bit)
        assert found.link == 14


def test_the_gravest_bit_counts() -> None:
    assert registers(1 | 1 << 20).verdict == Verdict.Follower
    assert registers(1 << 20 | 1 << 8).verdict == Verdict.Connection
    assert registers(1 << 8, 0, 1 << 6).verdict == Verdict.Parity
    assert "bit 8 of the first" in registers(1 << 8 | 1).sentence


def test_registers_that_hopper_does_not_use_say_nothing() -> None:
    assert registers(0, 0xFFFF, 0, 0, 0, 0xFFFF, 0xFFFF).verdict == Verdict.Ignore


def test_other_forms() -> None:
    assert read_registers("link 6(0x10000, 0x0, 0x0, 0x0, 0x0)") is not None  # cut short
    bare = read_registers("0x1 (0x100, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)")
    assert bare is not None and bare.link == -1 and bare.verdict == Verdict.Connection
    assert read_registers("NVLink: fatal error detected on link 6") is None
