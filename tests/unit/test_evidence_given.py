"""Evidence that somebody gives by hand: JSON in each layout, with a slip of the pen, or no JSON at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Ran
from cli_runs import here as run

LOST = "[ 1.5] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n"
ON_N1 = {"kind": "dmesg", "text": LOST, "node": "n1"}
NODE: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def given(tmp_path: Path, content: str) -> Ran:
    path = tmp_path / "given.json"
    path.write_text(content)
    return run("doctor", "--evidence", str(path), "-o", "json")


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(ON_N1),
        json.dumps(ON_N1, indent=2),
        json.dumps([ON_N1]),
        json.dumps([ON_N1, {"text": "all is well"}], indent=2),
        "\n".join([json.dumps(ON_N1), "", json.dumps({"kind": "lspci", "text": "x"})]),
    ],
    ids=["line", "printed", "array", "printed-array", "lines"],
)
def test_evidence_in_json_says_whose_it_is_however_it_is_laid_out(tmp_path: Path, content: str) -> None:
    (one,) = json.loads(given(tmp_path, content).out)["findings"]
    assert one["subject"] == "GPU 0000:3b:00 of node n1"
    assert one["evidence"][0]["text"] == LOST.strip()
    named_as_a_source = run("doctor", "--from", str(tmp_path / "given.json"), "-o", "json")
    assert [one["code"] for one in json.loads(named_as_a_source.out)["findings"]] == [one["code"]]


@pytest.mark.parametrize(
    ("broken", "note"),
    [
        (json.dumps(ON_N1)[:-20], "line 2: the JSON ends in the middle of an object"),
        (json.dumps(ON_N1).replace('"node"', "node"), "line 2: it is no JSON"),
        ("# from the console", "line 2 is no evidence in JSON; it was read as a text"),
    ],
)
def test_one_broken_line_among_good_ones_costs_no_other(tmp_path: Path, broken: str, note: str) -> None:
    good = {**ON_N1, "text": "[ 9.0] NVRM: Xid (PCI:0000:9c:00): 48, pid=1, DBE (double bit error)", "node": "n2"}
    record = json.loads(given(tmp_path, "\n".join((json.dumps(ON_N1), broken, json.dumps(good)))).out)
    subjects = {one["subject"] for one in record["findings"]}
    assert {"GPU 0000:3b:00 of node n1", "GPU 0000:9c:00 of node n2"} <= subjects
    assert any(note in one for one in record["notes"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"kind": "dmesg", "txt": LOST}, ': txt: there is no such field; it has to be "text"'),
        ({"txt": LOST}, ': txt: there is no such field; it has to be "text"'),
        ({"kind": "dmesg", "message": LOST}, 'it has no field "text", only "kind", "message"'),
        ([ON_N1, {"kind": "dmesg", "text": None}], "[1]: text: is null: evidence is text"),
    ],
)
def test_a_field_that_is_not_there_is_named_with_the_right_one(tmp_path: Path, content: object, words: str) -> None:
    done = given(tmp_path, json.dumps(content))
    assert done.code == 2 and words in done.err


def test_a_field_that_is_nearly_one_is_a_note(tmp_path: Path) -> None:
    record = json.loads(given(tmp_path, json.dumps({"text": LOST, "nod": "n1"})).out)
    assert any('nod: there is no such field; "node" is one' in note for note in record["notes"])


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE]}),
        json.dumps([NODE], indent=2), json.dumps({"kind": "Pod", "name": "x"}),
        '{"level": "info", "msg": "hello"}\n{"level": "info", "msg": "again"}\n', json.dumps({"test": "x"}),
    ],
)  # fmt: skip
def test_other_json_is_a_text_as_it_was(tmp_path: Path, content: str) -> None:
    done = given(tmp_path, content)
    assert done.code == 0 and not [one for one in json.loads(done.out)["notes"] if "given.json" in one]
