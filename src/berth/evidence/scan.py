"""All known sentences are looked for in a text at once.

Each message names a literal that every wording of it holds. An Aho-Corasick automaton finds all of them in one pass
over the bytes (0.1 s for 60 MB); only where one is, the message's own pattern looks at the line. Like sentences are
folded, so that a storm of one error is one fact with its count.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from operator import attrgetter

import ahocorasick_rs

from berth.evidence.fact import LONGEST_TEXT, Origin, Said
from berth.evidence.in_general import is_advice, what_happened, without_denied
from berth.evidence.line_time import line_time
from berth.evidence.message import Message
from berth.evidence.piece import Piece

MOST_OF_ONE = 2_000  # different sentences of one message in one piece; beyond it they are counted with the last
LONGEST_LINE = 2048  # bytes that are looked at around a literal: a minified file is one line
OVERLAP = 512  # bytes that two windows of one line share
BLOCK = 16 * 2**20  # bytes searched at once, so that the lower-case copy stays small
# Entries of changelogs and lists of commits name sentences of faults that nobody has any more. Who tells what helped
# ("fixed by setting …") tells of a fault of his own.
_HISTORY = re.compile(
    r"^\W*(?:[0-9a-f]{7,40} |\[[^\]]*\]:? ?|\d+\. )?"
    r"(?:(?:feat|fix|perf|chore|docs|test|refactor)\([\w/.,-]+\)!?: "
    r"|(?:bug ?)?fix(?:e[sd])? (?:for )?(?:an?|the|bugs?|issues?|hangs?|crash\w*|errors?|leaks?|races?|deadlocks?|some"
    r"|rare|spurious|potential|possible|handling|regressions?|incorrect|wrong|missing|false)\b"
    r"|resolve[sd] an? (?:\w+ )?(?:issue|bug)\b)(?!.*\b(?:by|after) \w+ing\b)",
    re.IGNORECASE,
)
REPORTED = "reported."  # messages that people say, and no component
MOST_LIKE = 1024  # lines that others may repeat
# What a line begins with that differs from its like: a time since boot, a clock, the number of a record.
_CLOCK = re.compile(
    rb"\[ *\d+\.\d+\] ?|\d+,\d+,\d+,[^;\n]*;|[^\n]{0,40}?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[\] ]+"
)
# Right before the words: what is looked for by a command, and what somebody says that there is not.
_LOOKED_FOR = re.compile(r"(?:^|[|;&$#>] ?)(?:sudo )?[ef]?grep (?!\S+: )[^|;\n]*$")
_DENIED = re.compile(
    r"(?:\b(?:has|have|had|is|are|was|were) (?:not|never)|\b(?:has|have|had|is|are|was|were)n't|\bruled out"
    r"|\bno (?:sign|trace) of)(?: (?:an?|any|the|yet|been))? [\"'`]?$",
    re.IGNORECASE,
)
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class _Folded:
    """Like sentences of one piece: the first of them, and how many."""

    __slots__ = ("begin", "line", "message", "times", "values")

    def __init__(self, message: str, values: dict[str, str], begin: int, line: str) -> None:
        self.message, self.values, self.begin, self.line = message, values, begin, line
        self.times = 1


class _Storm:
    """Lines that differ in their time alone say the same: a storm of a million is looked at once."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[tuple[Message, str, dict[str, str]]]] = {}
        self._tail = b""
        self.said: list[tuple[Message, str, dict[str, str]]] = []  # of the line that is being looked at
        self.is_alone = True  # nothing that was looked for goes on in the next line
        self.is_known = False

    def begins(self, raw: bytes, begin: int, end: int) -> list[tuple[Message, str, dict[str, str]]]:
        """A new line: what one like it has said, where there was one."""
        if self._tail and self.is_alone and not self.is_known:
            if len(self._known) >= MOST_LIKE:
                self._known.clear()
            self._known[self._tail] = self.said
        clock = _CLOCK.match(raw, begin, min(end, begin + 100))
        self._tail = raw[clock.end() : end] if clock else b""
        found = self._known.get(self._tail) if self._tail else None
        self.is_known, self.is_alone = found is not None, True
        self.said = []
        return found or []


class Scanner:
    """The messages as one automaton."""

    def __init__(self, messages: Sequence[Message]) -> None:
        wanted: dict[str, tuple[Message, ...]] = {}
        for message in messages:
            alone = (message,)  # one for all its literals: most are of one message
            for anchor in message.anchors:
                wanted[anchor] = (*wanted[anchor], message) if anchor in wanted else alone
        self._wanted = [*wanted.values()]
        self._automaton = ahocorasick_rs.BytesAhoCorasick([anchor.encode() for anchor in wanted])
        self._overlap = max((len(anchor) for anchor in wanted), default=1) - 1

    def mentioned(self, texts: Sequence[bytes]) -> list[int]:
        """Which of many short texts say anything that is known: looked at in one pass."""
        starts = [0, *accumulate(len(text) + 1 for text in texts)]
        return sorted({bisect_right(starts, begin) - 1 for _, begin, _, _ in self._sentences(b"\n".join(texts))})

    def scan(self, piece: Piece) -> Iterator[Said]:
        """What is said in a piece, in the order of its first mention. Like sentences come once, with their count."""
        folded: dict[tuple[str, tuple[tuple[str, str], ...]], _Folded] = {}
        of_one: dict[str, list[_Folded]] = defaultdict(list)
        for message, begin, line, values in self._sentences(piece.raw):
            key = (message.name, tuple(values.items()))
            if seen := folded.get(key):
                seen.times += 1
            elif len(of_one[message.name]) >= MOST_OF_ONE:
                of_one[message.name][-1].times += 1
            else:
                folded[key] = one = _Folded(message.name, values, begin, line)
                of_one[message.name].append(one)
        counted, lines = 0, 1
        for one in sorted(folded.values(), key=attrgetter("begin")):
            lines += piece.raw.count(b"\n", counted, one.begin)
            counted = one.begin
            yield Said(message=one.message, values=one.values, times=one.times, origin=_origin(piece, one.line, lines))

    def _sentences(self, raw: bytes) -> Iterator[tuple[Message, int, str, dict[str, str]]]:
        """Message, where its line begins, the line, the values."""
        storm = _Storm()
        line_begin, line_end, tried = -1, -1, set[str]()  # a line may hold several literals of one message
        for position, messages in self._literals(raw):
            if line_begin <= position < line_end and storm.is_known:
                continue
            begin, end = _line_around(raw, position)
            if begin != line_begin:
                line_begin, line_end, tried = begin, end, set()
                yield from ((message, begin, line, values) for message, line, values in storm.begins(raw, begin, end))
                if storm.is_known:
                    continue
            for message in messages:
                if message.name in tried:
                    continue
                tried.add(message.name)
                storm.is_alone &= message.lines == 1
                until = end if message.lines == 1 else _lines_on(raw, end, message.lines - 1)
                line = _ESCAPES.sub("", raw[begin:until].decode("utf-8", "replace")).rstrip()
                match = message.compiled.search(line)
                if match and not _is_denied(line, match.start()) and not _tells_nothing(message, line):
                    values = {name: value for name, value in match.groupdict().items() if value}
                    storm.said.append((message, line, values))
                    yield message, begin, line, values

    def _literals(self, raw: bytes) -> Iterator[tuple[int, tuple[Message, ...]]]:
        for block in range(0, len(raw), BLOCK):
            text = raw[block : block + BLOCK + self._overlap].lower()
            for number, start, _ in self._automaton.find_matches_as_indexes(text, overlapping=True):
                if start < BLOCK:
                    yield block + start, self._wanted[number]


def _is_denied(line: str, start: int) -> bool:
    """Whether a line has these words only because somebody searched for them, or says that they do not hold."""
    before = line[:start]
    return bool(_DENIED.search(before[-24:])) or ("grep " in before and _LOOKED_FOR.search(before) is not None)


def _tells_nothing(message: Message, line: str) -> bool:
    """Whether the words are there and nothing is told by them: an entry of a changelog, advice, a guide."""
    if _HISTORY.match(line) or is_advice(line):
        return True
    if not message.name.startswith(REPORTED):
        return False
    return not message.compiled.search(without_denied(what_happened(line)))


def _line_around(raw: bytes, position: int) -> tuple[int, int]:
    """The line that holds a position. One that is longer is cut into windows that start at the same places whichever
    position is asked for, so that each is looked at once."""
    begin = raw.rfind(b"\n", max(0, position - LONGEST_LINE), position) + 1
    if not begin and position > LONGEST_LINE:
        begin = position // LONGEST_LINE * LONGEST_LINE
    end = raw.find(b"\n", position, begin + LONGEST_LINE + OVERLAP)
    return begin, end if end >= 0 else min(len(raw), begin + LONGEST_LINE + OVERLAP)


def _lines_on(raw: bytes, end: int, more: int) -> int:
    for _ in range(more):
        following = raw.find(b"\n", end + 1, end + LONGEST_LINE)
        if following < 0:
            return min(len(raw), end + LONGEST_LINE)
        end = following
    return end


def _origin(piece: Piece, line: str, number: int) -> Origin:
    time, at_s = line_time(line)
    return Origin(
        source=piece.source,
        kind=piece.kind,
        text=line.strip()[:LONGEST_TEXT],
        time=time,
        at_s=at_s,
        line=number,
        node=piece.node,
        pod=piece.pod,
    )


@cache
def scanner() -> Scanner:
    """The one that knows every message."""
    from berth.evidence.messages import MESSAGES

    return Scanner(MESSAGES)
