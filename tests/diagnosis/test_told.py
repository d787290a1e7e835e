"""What somebody tells in his own words is a hint to its usual cause, and never stands before what a component says."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from asked import HERE, of_text

from berth.diagnosis.rules.l5.told import ROWS
from berth.diagnosis.rules.l5.told_rows import LAST
from berth.diagnosis.words import POSSIBLE
from berth.evidence.formats.told import LARGEST, TOPICS, Told, looks_like
from berth.evidence.piece import piece
from berth.evidence.read import read

TEXTS: dict[str, Any] = yaml.safe_load((HERE / "told.yaml").read_text())


@pytest.mark.parametrize("told", TEXTS["told"], ids=lambda one: one["code"])
def test_the_usual_cause_is_answered(told: dict[str, str]) -> None:
    top = of_text(told["text"]).findings[0]
    assert (top.layer.name, top.cause_class, top.code) == (told["layer"], told["cause_class"], told["code"])
    assert top.confidence <= POSSIBLE
    assert top.evidence[0].text == told["text"]


@pytest.mark.parametrize("text", TEXTS["nothing"])
def test_what_tells_of_no_fault_gives_none(text: str) -> None:
    assert [(one.code, one.cause) for one in of_text(text).findings] == []


def test_each_row_asks_for_known_topics() -> None:
    for row in (*ROWS, *LAST):
        asked = {*row.topics.split(", "), *filter(None, row.unless.split(", "))}
        assert asked <= set(TOPICS), row
    asked_for = {topic for row in (*ROWS, *LAST) for topic in (*row.topics.split(", "), *row.unless.split(", "))}
    assert set(TOPICS) <= asked_for, "a topic that no row asks for"


def test_a_row_that_an_earlier_one_hides_would_never_answer() -> None:
    for place, row in enumerate(ROWS):
        topics = set(row.topics.split(", "))
        for before in ROWS[:place]:
            assert before.unless or not set(before.topics.split(", ")) <= topics, (before, row)


def test_what_a_component_says_in_the_line_is_left_to_its_own_rule() -> None:
    text = (
        "Warning: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu, so the GPU pod stays Pending, no GPU in sight"
    )
    assert {one.code for one in of_text(text).findings} == {"DevicesAllTaken"}


def test_a_hint_stands_behind_what_a_log_says() -> None:
    told = "since the reboot kubernetes lists no GPU for the node any more"
    log = "[86231.104712] NVRM: Xid (PCI:0000:43:00): 79, pid=1, name=python3, GPU has fallen off the bus."
    assert of_text(f"{told}\n{log}").findings[0].code == "GpuFellOffBus"


def test_only_what_was_written_by_hand_is_read() -> None:
    line = "kubernetes lists no GPU for that node"
    assert [type(one) for one in read([piece(line)])] == [Told]
    assert not looks_like((line + "\n").encode() * (LARGEST // len(line)))
    assert not looks_like(b'{"items": "kubernetes lists no GPU"}')
    assert not looks_like(b"a long story of something else entirely")


@pytest.mark.parametrize(
    "line",
    ["mig: {mode: disabled, failure_occurred: false, pending: none}", "devices: [no GPU, failed MIG, a trouble]"],
)
def test_a_mapping_or_a_list_of_a_document_is_nobodys_own_words(line: str) -> None:
    assert list(read([piece(line)]).of(Told)) == []
    assert len(list(read([piece(line.translate(str.maketrans("", "", ":{}[]")))]).of(Told))) == 1


def test_topics_are_found_in_linear_time() -> None:
    """Long lines of one word, as fuzzing makes them, take no longer than others."""
    for name, patterns in TOPICS.items():
        for pattern in patterns:
            for word in ("GPU ", "not ", "no ", "same GPU ", "two pods ", "scale ", "allocatable "):
                assert re.search(pattern, word * 150 + "x", re.IGNORECASE) is None or name
