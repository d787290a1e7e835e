"""What of the evidence could not be read: a dump that breaks off, an archive that is damaged. What stands before the
damage is read, and that it is not all has to be known.
"""

from __future__ import annotations

import json
import re

import msgspec

from berth.evidence.fact import Fact

AGAIN = "Dump again, and look whether the command that wrote the file was interrupted."
CUT_OFF = "the JSON ends in the middle of an object"
NO_KIND = "the list of items ends without the kind of the list: the file was cut off"
DAMAGED = "it is cut off or damaged"
ENDING = ".damaged"  # of the name of a file that holds what was left of another

_BLANK = re.compile(r"[\s,]*")
_NEXT = re.compile(r"\n[ \t]*(?=\{\s*[\"}])")  # another object behind the words of somebody
_BRACKETS = re.compile(r"[\]}][\]}\s,]*(?=\Z|\n)")
_decoder = json.JSONDecoder()


class Damage(Fact, frozen=True, kw_only=True):
    """A part of a source that could not be read, or of which it is known that it is missing."""

    problem: str  # "the JSON ends in the middle of an object"


def of_json(text: str) -> str:
    """What is wrong with a text that begins as JSON; "" where it is JSON, several in a row, or JSON among words."""
    position = 0
    while (position := _end(text, position)) < len(text):
        if text[position] in "{[":
            try:
                _, position = _decoder.raw_decode(text, position)
            except ValueError as error:
                return _words(text, position, error)
            except RecursionError:
                return "JSON nested too deeply"
        elif _BRACKETS.match(text, position):
            return f"line {_line(text, position)} is no JSON"
        if (following := _end(text, position)) < len(text) and text[following] not in "{]}":
            found = _NEXT.search(text, following)
            position = found.end() if found else len(text)
    return ""


def _end(text: str, position: int) -> int:
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def _words(text: str, begin: int, error: ValueError) -> str:
    try:
        msgspec.json.decode(text[begin:].encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError) as exact:
        if "truncated" in str(exact):
            return CUT_OFF
    at = error.pos if isinstance(error, json.JSONDecodeError) else begin
    return f"line {_line(text, at)} is no JSON"


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
