"""docs/reasons.md has a section for each reason, in the order of the code, with what it says and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from berth.model.reasons import BLOCK_WORDS, HELD_BACK, Answer, Block, Cause, Reason, Verdict

PAGE = Path(__file__).parents[2] / "docs" / "reasons.md"
ANSWERS = {Answer.Never: "*Never.*", Answer.NotYet: "*Not yet.*"}


def sections() -> dict[str, str]:
    title_and_text = (part.partition("\n") for part in re.split(r"(?m)^## ", PAGE.read_text())[1:])
    return {title.strip(): text for title, _, text in title_and_text}


def test_sections_are_the_reasons_in_their_order() -> None:
    assert list(sections())[: len(Reason)] == [reason.name for reason in Reason]


@pytest.mark.parametrize("reason", list(Reason), ids=lambda r: r.name)
def test_a_section_says_all_it_should(reason: Reason) -> None:
    text = sections()[reason.name]
    assert text.lstrip().startswith(ANSWERS[reason.answer])
    for heading in ("**Cause.**", "**Example**", "**What to do.**"):
        assert heading in text, f"{reason.name} lacks {heading}"


def test_the_table_of_blocks_is_complete() -> None:
    rows = re.findall(r"(?m)^\| (\w+) \| (.+) \|$", sections()["Nodes by what keeps a pod off"])
    assert rows[1:] == [(block.name, words) for block, words in BLOCK_WORDS.items()]


def test_every_block_has_words() -> None:
    assert set(BLOCK_WORDS) == set(Block) - {Block.Nothing}
    assert set(HELD_BACK) <= set(Block)


@pytest.mark.parametrize("reason", list(Reason), ids=lambda r: r.name)
def test_a_summary_is_one_line(reason: Reason) -> None:
    assert reason.answer in (Answer.Never, Answer.NotYet)
    assert not reason.summary.endswith(".")
    assert re.fullmatch(r"[A-Z]\w+", reason.name)


def test_a_message_is_reason_and_sentence() -> None:
    verdict = Verdict("team/train", Answer.NotYet, (Cause(Reason.Gated, "the scheduling gate x is closed"),))
    assert verdict.message == "Gated: the scheduling gate x is closed"
    assert verdict.reason is Reason.Gated


def test_a_verdict_without_causes_says_its_answer() -> None:
    assert Verdict("team/train", Answer.Fits).message == "Fits"
    assert Verdict("team/train", Answer.Fits).reason is None
