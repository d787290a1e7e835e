"""TOML as people quote it: whole files, but also a table header and two lines, with prompts, templates and log lines
between them. What is well-formed is parsed as such; of the rest, every line that can be understood is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

Tree = dict[str, Any]

_HEADER = re.compile(r"^\s*(?:[-+>|$#]\s+)?\[{1,2}(?P<keys>[^\[\]]+)\]{1,2}")
_PAIR = re.compile(r"""^\s*(?:[-+>|]\s+)?(?P<key>"[^"]+"|'[^']+'|[\w.-]+)\s*=\s*(?P<value>.+?)\s*$""")
_KEY = re.compile(r""""([^"]*)"|'([^']*)'|([\w/-]+)""")
_STRING = re.compile(r'''^(?:"((?:[^"\\]|\\.)*)"|'([^']*)')''')
_STRINGS = re.compile(r'''"([^"]*)"|'([^']*)\'''')
LONGEST = 2 * 2**20  # characters that are read


def parsed(text: str) -> tuple[Tree, bool]:
    """Tables of a text, and whether it was TOML throughout."""
    text = text[:LONGEST]
    try:
        return tomllib.loads(text), True
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return _by_line(text), False


def problem(text: str) -> str:
    """Why a whole file is no TOML; "" where it is."""
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        return str(error)
    return ""


def at(tree: Tree, *keys: str) -> Any:
    """The value under a path of keys; None where there is none."""
    here: Any = tree
    for key in keys:
        if not isinstance(here, dict):
            return None
        here = here.get(key)
    return here


def table(tree: Tree, *keys: str) -> Tree:
    found = at(tree, *keys)
    return found if isinstance(found, dict) else {}


def word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def words(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _by_line(text: str) -> Tree:
    tree: Tree = {}
    here = tree
    for line in _joined(text.splitlines()):
        if header := _HEADER.match(line):
            here = tree
            for key in _keys(header["keys"]):
                deeper = here.setdefault(key, {})
                here = deeper if isinstance(deeper, dict) else here
        elif (pair := _PAIR.match(line)) and (value := _value(pair["value"])) is not None:
            *path, last = _keys(pair["key"])
            inner = here
            for key in path:
                deeper = inner.setdefault(key, {})
                inner = deeper if isinstance(deeper, dict) else inner
            inner[last] = value
    return tree


def _joined(lines: list[str]) -> Iterator[str]:
    """Lines, with a list that goes over several of them made one."""
    held = ""
    for line in lines:
        bare = line.rstrip()
        if held:
            held += " " + bare.strip()
            if "]" in bare or len(held) > 4096:
                yield held
                held = ""
        elif _PAIR.match(bare) and bare.endswith("["):
            held = bare
        else:
            yield bare
    if held:
        yield held


def _keys(dotted: str) -> list[str]:
    return [double or single or bare for double, single, bare in _KEY.findall(dotted)] or [dotted]


def _value(words: str) -> Any:
    if string := _STRING.match(words):
        return string[1] if string[1] is not None else string[2]
    if words.startswith("["):
        return [double or single for double, single in _STRINGS.findall(words)]
    bare = words.split("#", 1)[0].strip().rstrip(",")
    if bare in ("true", "false"):
        return bare == "true"
    return int(bare) if bare.lstrip("-").isdigit() else None
