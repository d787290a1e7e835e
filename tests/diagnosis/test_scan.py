"""Known sentences are found in any text, once each, whatever stands around them."""

from __future__ import annotations

import random
import re
import sys
import time
from pathlib import Path
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from berth.evidence.message import Message
from berth.evidence.messages import MESSAGES
from berth.evidence.piece import Piece, piece
from berth.evidence.scan import BLOCK, LONGEST_LINE, MOST_OF_ONE, Scanner, scanner

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.make_bundle import KERNEL_LOG, PLUGIN_LOG, lines

DEAR_S = 0.4  # of the processor for one line: the dearest that is known takes a fifth of it
PHRASE = 12  # characters: what is shorter is what optional parts leave over, and nothing that somebody prints

LOST = Message("kernel.lost", "is lost", r"GPU (?P<gpu>\d+) is lost")
TWO = Message("kernel.two", "first half", r"first half[\s\S]*?second (?P<half>\w+)", lines=2)


def said(text: str | bytes, *messages: Message) -> list[Any]:
    raw = text if isinstance(text, bytes) else text.encode()
    return list(Scanner(messages or (LOST, TWO)).scan(Piece(raw, "a log", "dmesg", "node-1")))


def test_a_sentence_comes_with_its_words_time_line_and_place() -> None:
    (one,) = said("nothing\n[   12.5] NVRM: GPU 3 is LOST. Reboot\n")
    assert (one.message, one.values, one.times) == ("kernel.lost", {"gpu": "3"}, 1)
    assert (one.origin.text, one.origin.line) == ("[   12.5] NVRM: GPU 3 is LOST. Reboot", 2)
    assert one.origin.time == "[   12.5]"
    assert (one.origin.source, one.origin.node, one.origin.at_s) == ("a log", "node-1", 12.5)


def test_like_sentences_are_one_fact_with_its_count() -> None:
    first, other = said("GPU 1 is lost\n" * 1000 + "GPU 2 is lost\n")
    assert (first.values["gpu"], first.times, first.origin.line) == ("1", 1000, 1)
    assert (other.values["gpu"], other.times, other.origin.line) == ("2", 1, 1001)


def test_a_storm_of_different_sentences_is_bounded_and_counted() -> None:
    text = "".join(f"GPU {number} is lost\n" for number in range(3 * MOST_OF_ONE))
    found = said(text)
    assert len(found) == MOST_OF_ONE
    assert sum(one.times for one in found) == 3 * MOST_OF_ONE


def test_a_sentence_over_two_lines() -> None:
    (one,) = said("x first half\ny second part\nz")
    assert one.values == {"half": "part"}
    assert said("x first half\nz\ny second part") == []


def test_a_literal_on_the_border_of_two_blocks_is_found_once() -> None:
    for shift in range(1, 8):
        text = b"." * (BLOCK - 10 - shift) + b"\nGPU 7 is lost\n" + b"." * 100
        assert [one.values["gpu"] for one in said(text)] == ["7"]


def test_lines_without_end_and_bytes_that_are_no_text_cost_nothing() -> None:
    (one,) = said(b"\xff\xfe\x00" * LONGEST_LINE + b" GPU 9 is lost " + b"\x00" * LONGEST_LINE)
    assert one.values == {"gpu": "9"}
    assert said(b"") == []
    assert said(b"\x1b[31mGPU 4 is lost\x1b[0m")[0].origin.text == "GPU 4 is lost"


def test_texts_that_say_something_are_picked_from_many() -> None:
    scanner = Scanner((LOST,))
    assert scanner.mentioned([b"fine", b"GPU 1 is lost", b"", b"something is lost", b"x\nGPU 2 is lost\ny"]) == [1, 4]


# ---- the messages themselves


def test_names_are_unique_and_say_whose_they_are() -> None:
    names = [message.name for message in MESSAGES]
    assert sorted(names) == sorted(set(names))
    assert [name for name in names if not re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)+", name)] == []


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
def test_an_anchor_is_in_every_wording(message: Message) -> None:
    """Else the wording would never be found. Each way through the pattern has to contain one of the literals."""
    assert all(anchor == anchor.lower() and len(anchor) >= 4 for anchor in message.anchors)
    assert message.compiled.groups >= 0
    never_found = _without(parser.parse(message.pattern, re.IGNORECASE), message.anchors)
    assert never_found == [], f"no anchor of {message.name} is in wordings with: {never_found[:3]}"


def _without(pattern: Any, anchors: tuple[str, ...]) -> list[str]:
    """The longest literal words of each way through a pattern that may match without any anchor in it."""
    ways = _ways(list(pattern), 4096)
    lacking = [way for way in ways if not any(anchor in run for run in way for anchor in anchors)]
    return sorted({word for way in lacking if len(word := max(way, key=len)) >= PHRASE})


def _ways(items: list[Any], most: int) -> list[list[str]]:
    """Each way through a pattern as runs of literals; what may be anything ends a run."""
    ways: list[list[str]] = [[""]]
    for operation, argument in items:
        name = str(operation)
        if name == "LITERAL":
            ways = [[*way[:-1], way[-1] + chr(argument).lower()] for way in ways]
        elif name == "BRANCH":
            ways = _joined(ways, [way for branch in argument[1] for way in _ways(list(branch), most)], most)
        elif name == "SUBPATTERN":
            ways = _joined(ways, _ways(list(argument[3]), most), most)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, largest, inner = argument
            inside = _ways(list(inner), most)
            if (least, largest) == (0, 1):
                ways = _joined(ways, [[""], *inside], most)
            else:
                ways = _joined(ways, [["", *way, ""] for way in inside] if least else [["", ""]], most)
        elif name == "IN" and all(str(each[0]) == "LITERAL" for each in argument):
            ways = _joined(ways, [[chr(argument[0][1]).lower()]], most)  # the others spell the same word
        elif name in ("AT", "ASSERT", "ASSERT_NOT"):
            continue
        else:
            ways = [[*way, ""] for way in ways]
    return ways


def _joined(before: list[list[str]], after: list[list[str]], most: int) -> list[list[str]]:
    """Every way before with every way after; the last run of one goes on as the first of the other."""
    joined = {(*one[:-1], one[-1] + other[0], *other[1:]) for one in before for other in after}
    return [list(way) for way in sorted(joined)[:most]]


def test_anchors_are_rare_in_what_is_healthy() -> None:
    """Where a literal is, a pattern is tried: a bundle of 50 MB must not hold ten of them in each line."""
    rng = random.Random(1)
    logs = "\n".join((*lines(rng, PLUGIN_LOG, 200_000), *lines(rng, KERNEL_LOG, 200_000)))
    status = "Ready=True KubeletReady kubelet is posting ready status, reported by the scheduler\n" * 1000
    text = f"{logs}\n{status}".lower()
    most = text.count("\n") // 50
    common = {anchor: text.count(anchor) for message in MESSAGES for anchor in message.anchors}
    assert {anchor: count for anchor, count in common.items() if count > most} == {}


def test_a_sentence_is_read_from_a_piece() -> None:
    from berth.evidence.read import read

    facts = read([piece("NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus", "dmesg")])
    assert [one.get("pci") for one in facts.said("kernel.off_bus")] == ["0000:3b:00.0"]


@pytest.mark.parametrize(
    ("line", "is_evidence"),
    [
        ("- Fixed a bug where a GPU 3 is lost was reported twice", False),
        ("a1b2c3d fix(health): GPU 3 is lost is told once", False),
        ("* [monitor] Resolved an issue that made GPU 3 is lost appear", False),
        ("Fixed the trouble that GPU 3 is lost by reseating it", True),
        ("fix me: GPU 3 is lost", True),
    ],
)
def test_entries_of_changelogs_are_no_evidence(line: str, is_evidence: bool) -> None:
    assert bool(said(line)) is is_evidence


def test_no_pattern_is_dear_on_a_hostile_line() -> None:
    """A line of nothing but one literal, as long as any that is looked at: dear ones are cubic and take a second."""
    dear: dict[str, float] = {}
    for message in MESSAGES:
        line = f"{message.anchors[0]} " * (2560 // (len(message.anchors[0]) + 1))
        began = time.process_time()
        message.compiled.search(line)
        if (took := time.process_time() - began) > DEAR_S:
            dear[message.name] = took
    assert dear == {}


@pytest.mark.parametrize(
    "text",
    [
        "root@gpu-4:~# dmesg -T | grep -i 'Driver/library version mismatch'",
        "$ grep -c 'fallen off the bus' /var/log/kern.log",
        "we have ruled out a Driver/library version mismatch",
        "GPU has not fallen off the bus",
    ],
)
def test_what_is_looked_for_or_denied_is_not_said(text: str) -> None:
    assert [one.message for one in scanner().scan(piece(text)) if not one.message.startswith("reported.")] == []
