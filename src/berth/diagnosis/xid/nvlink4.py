"""The seven registers of Xid 74, NVLink up to the fourth generation. Those of Hopper are the first, third to fifth."""

from __future__ import annotations

import re
from enum import IntEnum

from msgspec import Struct

_LINE = re.compile(
    r"link (?P<link>\d+) ?\((?P<words>0x[0-9a-f]+(?:, ?0x[0-9a-f]+){4,})\)|"
    r"\((?P<bare>0x[0-9a-f]+(?:,? ?0x[0-9a-f]+){6})\)",
    re.IGNORECASE,
)
_WORD = re.compile(r"0x[0-9a-f]+", re.IGNORECASE)


class Verdict(IntEnum):
    """The gravest of all bits that are set counts."""

    Ignore = 0
    Threshold = 1  # corrected errors passed a limit: go on, test the link when convenient
    Follower = 2  # usually of another fault; alone it is to be reported
    FollowerWithReset = 3  # the same, and the fabric wants a reset
    Repeated = 4  # to be reported when it comes again
    Diagnose = 5  # field diagnostics when it comes again
    Marginal = 6  # signal at the edge: connections, field diagnostics
    Connection = 7  # connections, seating; then diagnostics
    Parity = 8  # ECC or parity in hardware; more than twice on one link: report
    Unexpected = 9  # not to be seen in production, or a bit that nobody describes

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    Verdict.Ignore: "harmless bits only",
    Verdict.Threshold: "corrected errors passed a limit, nothing was lost: go on, test the link when convenient",
    Verdict.Follower: "usually follows another fault; alone it is to be reported",
    Verdict.FollowerWithReset: "usually follows another fault, and the fabric needs a reset",
    Verdict.Repeated: "to be reported if it comes again",
    Verdict.Diagnose: "run field diagnostics if it comes again",
    Verdict.Marginal: "the signal is at its edge: check the connections, run field diagnostics",
    Verdict.Connection: "check and reseat the connections of the link, then run diagnostics",
    Verdict.Parity: "ECC or parity error in hardware; more than twice on one link: report it",
    Verdict.Unexpected: "bits that should not be seen: report it",
}

_BITS: dict[int, tuple[tuple[Verdict, tuple[int, ...]], ...]] = {
    0: (
        (Verdict.Ignore, (0, 23, 30)),
        (Verdict.Follower, (1, 20)),
        (Verdict.Parity, (4, 5)),
        (Verdict.Connection, (8, 9, 12, 16, 17, 24, 28)),
        (Verdict.Marginal, (21, 22)),
        (Verdict.Repeated, (27, 29)),
    ),
    2: (
        (Verdict.Parity, (0, 1, 2, 6)),
        (Verdict.Unexpected, (13,)),
        (Verdict.Diagnose, (16, 19)),
        (Verdict.Repeated, (17, 18)),
    ),
    3: ((Verdict.Follower, (16, 17)), (Verdict.FollowerWithReset, (18,))),
    4: ((Verdict.Parity, (18, 19, 21, 22, 24, 25, 27, 28)), (Verdict.Threshold, (20, 23, 26, 29))),
}
_NAMES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")


class Registers(Struct, frozen=True, gc=False):
    """What was read of one line."""

    link: int  # -1 where none is named
    words: tuple[int, ...]
    bits: tuple[tuple[int, int, Verdict], ...]  # register from 0, bit, what it means

    @property
    def verdict(self) -> Verdict:
        return max((verdict for _, _, verdict in self.bits), default=Verdict.Ignore)

    @property
    def sentence(self) -> str:
        gravest = self.verdict
        which = ", ".join(f"bit {bit} of the {_NAMES[number]}" for number, bit, one in self.bits if one == gravest)
        return f"{which or 'no bit of the registers is set'}: {gravest.words}"


def read_registers(detail: str) -> Registers | None:
    """Of what follows the number; None where there are none."""
    found = _LINE.search(detail)
    if not found:
        return None
    words = tuple(int(word, 16) for word in _WORD.findall(found["words"] or found["bare"]))[:7]
    bits = tuple(
        (number, bit, _verdict(number, bit))
        for number, word in enumerate(words)
        if number in _BITS
        for bit in range(32)
        if word >> bit & 1
    )
    return Registers(int(found["link"]) if found["link"] else -1, words, bits)


def _verdict(number: int, bit: int) -> Verdict:
    return next((verdict for verdict, bits in _BITS[number] if bit in bits), Verdict.Unexpected)
