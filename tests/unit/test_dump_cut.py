"""A List that kubectl printed is cut into shorter ones, and nothing is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from berth.sources import dump_json


def printed(count: int, **of_each: Any) -> bytes:
    items = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{i}"}, **of_each} for i in range(count)]
    return (json.dumps({"apiVersion": "v1", "items": items, "kind": "List", "metadata": {}}, indent=4) + "\n").encode()


@pytest.mark.parametrize("size", [1, 100, 1000, 10**6])
@pytest.mark.parametrize("count", [1, 2, 50])
def test_every_item_comes_once_and_in_order(monkeypatch: pytest.MonkeyPatch, count: int, size: int) -> None:
    monkeypatch.setattr(dump_json, "PIECE_BYTES", size)
    lists = [json.loads(text) for text in dump_json.cut(printed(count))]
    assert all(one["items"] for one in lists)
    assert [item["metadata"]["name"] for one in lists for item in one["items"]] == [f"n{i}" for i in range(count)]


def test_what_only_looks_like_a_boundary_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A string holds no raw line break, so a script in an annotation cannot cut an item in two."""
    monkeypatch.setattr(dump_json, "PIECE_BYTES", 200)
    text = printed(10, data={"script": "a\n        },\n        {\nb"})
    assert sum(len(json.loads(one)["items"]) for one in dump_json.cut(text)) == 10


def test_what_is_no_such_list_comes_whole() -> None:
    text = json.dumps({"kind": "List", "items": []}).encode()
    assert list(dump_json.cut(text)) == [text]


def test_a_list_that_ends_in_the_middle_gives_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_json, "PIECE_BYTES", 400)
    whole = printed(20)
    pieces = list(dump_json.cut(whole[: len(whole) // 2]))
    assert json.loads(pieces[0])["items"]
    assert b'"n9"' in b"".join(pieces) and b'"n19"' not in b"".join(pieces)
