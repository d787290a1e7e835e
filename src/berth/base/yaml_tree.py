"""YAML text into plain values, by the rules that kubectl's parser follows, at the speed of libyaml.

libyaml composes the nodes; only the meaning of a plain scalar is decided here: YAML 1.1 words (`yes` and `on`
are true), octal `0755`, `1e3` a number, but a date stays text, as JSON has none. Keys are always text.
"""

from __future__ import annotations

import re
from typing import Any

from yaml import MappingNode, ScalarNode, SequenceNode, YAMLError
from yaml.composer import ComposerError
from yaml.cyaml import CParser  # type: ignore[attr-defined]

__all__ = ["AliasUnknown", "YAMLError", "parse", "scalar"]

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_NUMBER_STARTS = frozenset("0123456789+-.")

MOST_UNFOLDED = 1_000_000

_TEXT_TAGS = ("!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:binary", "tag:yaml.org,2002:timestamp")


class AliasUnknown(YAMLError):
    """`*name` without `&name` in the same text: the anchor may stand in another part of the file."""


class _Parser(CParser):
    """libyaml with the least resolver: True for what is plain (to be interpreted), False for quoted text."""

    def resolve(self, kind: type, value: str | None, implicit: Any) -> bool:
        return kind is ScalarNode and implicit[0]

    def descend_resolver(self, parent: Any, index: Any) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass


def parse(text: bytes | str) -> Any:
    """The one document in the text; None where it is empty. Raises YAMLError, RecursionError."""
    parser = _Parser(text)
    try:
        node = parser.get_single_node()
    except ComposerError as error:
        if "undefined alias" in str(error):
            raise AliasUnknown(str(error)) from None
        raise
    finally:
        parser.dispose()
    if node is None:
        return None
    # Only a text with aliases can repeat a node, or hold a node that contains itself.
    if (b"*" if isinstance(text, bytes) else "*") not in text:  # type: ignore[operator]
        return _build(node, None)
    tree = _build(node, {})
    if _unfolded(node, {}) > MOST_UNFOLDED:
        raise YAMLError(f"its aliases stand for more than {MOST_UNFOLDED:,} values")
    return tree


def _unfolded(node: Any, known: dict[int, int]) -> int:
    """How many values a tree holds when each alias is written out: a few lines can stand for billions."""
    if type(node) is ScalarNode:
        return 1
    found = known.get(id(node), 0)
    if not found:
        inside = node.value if type(node) is SequenceNode else (child for pair in node.value for child in pair)
        found = known[id(node)] = 1 + sum(_unfolded(child, known) for child in inside)
    return found


def scalar(text: str) -> Any:
    """What a plain scalar means."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    try:
        if _INTEGER.fullmatch(text):
            return _integer(text.replace("_", ""))
        if _FLOAT.fullmatch(text):
            return float(text.replace("_", ""))
    except ValueError:  # thousands of digits: no number that anybody means
        return text
    return float(text.replace(".", "")) if _NOT_FINITE.fullmatch(text) else text


def _integer(text: str) -> int:
    digits = text.lstrip("+-")
    sign = -1 if text.startswith("-") else 1
    if len(digits) > 1 and digits[0] == "0":
        bases = {"x": 16, "b": 2, "o": 8}
        return sign * (int(digits[2:], bases[digits[1]]) if digits[1] in bases else int(digits, 8))
    return sign * int(digits)


def _build(node: Any, seen: dict[int, Any] | None) -> Any:
    if type(node) is ScalarNode:
        return _scalar(node)
    if seen is not None:
        if id(node) in seen:
            if seen[id(node)] is seen:
                raise YAMLError("an anchor contains itself")
            return seen[id(node)]
        seen[id(node)] = seen
    value = _sequence(node, seen) if type(node) is SequenceNode else _mapping(node, seen)
    if seen is not None:
        seen[id(node)] = value
    return value


def _scalar(node: ScalarNode) -> Any:
    tag: Any = node.tag  # what the resolver said, or a tag that the text spells out
    value = node.value
    if tag is False or tag in _TEXT_TAGS:
        return value
    return scalar(value)


def _is_plain(node: ScalarNode) -> bool:
    tag: Any = node.tag
    return tag is True


def _sequence(node: SequenceNode, seen: dict[int, Any] | None) -> list[Any]:
    return [_build(child, seen) for child in node.value]


def _mapping(node: MappingNode, seen: dict[int, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    merged: list[Any] = []
    for key_node, value_node in node.value:
        if type(key_node) is not ScalarNode:
            raise YAMLError("a key is a list or a mapping, where Kubernetes has text")
        key = key_node.value
        if key == "<<" and _is_plain(key_node):
            merged.append(_build(value_node, seen))
            continue
        if key in found:
            raise YAMLError(f"the key {key!r} is there twice in one mapping")
        found[key] = _build(value_node, seen)
    for more in merged:
        for mapping in more if isinstance(more, list) else [more]:
            if not isinstance(mapping, dict):
                raise YAMLError("<< merges mappings only")
            for key, value in mapping.items():
                found.setdefault(key, value)
    return found
