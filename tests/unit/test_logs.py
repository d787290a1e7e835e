"""Lines of the log: what `extra` carries are fields, and tokens are in none of them."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from berth.app.scheduler import logs


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    logger = logging.getLogger()
    before = logger.handlers[:], logger.level
    yield logger
    logger.handlers[:], level = before[0], before[1]
    logger.setLevel(level)
    logging.captureWarnings(False)


def said(form: str, level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    logs.start(level, form, stream)
    return stream


def test_json_lines_carry_what_extra_carried(root):
    stream = said("json")
    logging.getLogger("berth.scheduler").info("decided in %d", 3, extra={"binds": 7, "nodes": ("a", "b"), "level": "x"})
    logging.getLogger("berth.scheduler").debug("not this")
    line = json.loads(stream.getvalue())
    assert {k: v for k, v in line.items() if k != "time"} == {
        "level": "info", "logger": "berth.scheduler", "message": "decided in 3", "binds": 7, "nodes": ["a", "b"],
        "level_": "x",
    }  # fmt: skip
    assert line["time"].endswith("Z")


def test_text_is_a_line_for_people(root):
    stream = said("text", "debug")
    logging.getLogger("berth.leader").debug("leads", extra={"epoch": 3, "said": "two words", "pod": "a/b"})
    assert stream.getvalue()[13:] == 'DEBUG leader: leads epoch=3 said="two words" pod=a/b\n'


def test_an_exception_is_told_with_its_lines(root):
    stream = said("json")
    try:
        raise ValueError("Bearer abcdefgh12345678")
    except ValueError:
        logging.getLogger("berth").exception("broke")
    line = json.loads(stream.getvalue())
    assert "ValueError" in line["traceback"] and "abcdefgh" not in stream.getvalue()


JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize("extra", [
    {"token": "sesame-open-1"}, {"Authorization": "sesame-open-1"}, {"headers": {"authorization": "sesame-open-1"}},
    {"said": "Authorization: Bearer sesame-open-1"}, {"client_password": "sesame-open-1"}, {"said": JWT},
    {"nested": [{"apiKey": "sesame-open-1"}, f"x {JWT} y"]}, {"error": ValueError(f"bearer {JWT}")},
])  # fmt: skip
def test_no_token_gets_into_the_log(root, form, extra):
    stream = said(form)
    logging.getLogger("berth").warning("refused: Bearer sesame-open-1", extra=extra)
    assert "sesame" not in stream.getvalue() and "eyJ" not in stream.getvalue()
    assert logs.HIDDEN in stream.getvalue()


def test_words_about_tokens_are_no_tokens():
    for words in ("no bearer token was given", "the basic rule", "bearer of bad news"):
        assert logs.without_secrets(words) == words
