"""How evidence is read: what is damaged, packed, empty or written by hand, and what is said of it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_runs import here as run

from berth.diagnosis.diagnose import diagnose
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen
from berth.evidence.piece import Piece, is_text
from berth.evidence.read import read
from berth.sources import dump_json, evidence_files

LOST = "[ 1.5] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n"
ON_N1 = {"kind": "dmesg", "text": LOST, "node": "n1"}
GPUS = {"nvidia.com/gpu": "8"}


def node(name: str) -> dict[str, Any]:
    status = {"capacity": dict(GPUS), "allocatable": dict(GPUS)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def dumped(*names: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "items": [node(name) for name in names], "kind": "List", "metadata": {}}


AS_JSON = json.dumps(dumped("n1", "n2", "n3"), indent=4) + "\n"
AS_YAML = yaml.safe_dump(dumped("n1", "n2", "n3"))


def of(text: str, source: str = "dump") -> Facts:
    return read([Piece(text.encode(), source)])


def nodes(facts: Facts) -> list[str]:
    return [one.name for one in facts.of(NodeSeen)]


# ---- damaged dumps


@pytest.mark.parametrize(
    ("text", "problem", "left"),
    [
        (AS_JSON[: AS_JSON.index('"n3"')], "the JSON ends in the middle of an object", ["n1", "n2"]),
        (AS_JSON + "}}\n", f"line {AS_JSON.count(chr(10)) + 1} is no JSON", ["n1", "n2", "n3"]),
        (AS_JSON.replace('"status"', 'status"', 1), "line 10 is no JSON", ["n2", "n3"]),
        ("[" + json.dumps(node("n1")) + ",\n", "the JSON ends in the middle of an object", ["n1"]),
        (AS_YAML[: AS_YAML.index("n3")], "the list of items ends without the kind of the list: the file was cut off",
         ["n1", "n2"]),
        (AS_YAML[: AS_YAML.index("kind: List")],
         "the list of items ends without the kind of the list: the file was cut off", ["n1", "n2"]),
        (AS_YAML.replace("    capacity:", "   capacity", 1), "line 10 is no YAML", ["n2", "n3"]),
    ],
    ids=["cut", "brackets", "broken", "array", "yaml-cut", "yaml-cut-between", "yaml-broken"],
)  # fmt: skip
def test_what_can_be_read_of_a_damaged_dump_is_read_and_the_gate_stops(
    text: str, problem: str, left: list[str]
) -> None:
    facts = of(text)
    assert facts.damage == {"dump": problem}
    assert nodes(facts) == left
    found = diagnose(facts)
    assert found.findings == () and not found.gate.go and found.gate.stage == "discovery"
    assert found.gate.sentence.startswith("stop: the rest of dump (") and problem in found.gate.missing[0].what


@pytest.mark.parametrize(
    "text",
    [
        AS_JSON,
        AS_YAML,
        AS_JSON + AS_JSON,
        json.dumps([node("n1")]) + "\n" + json.dumps([node("n2")]),
        f"{json.dumps(node('n1'))}\nand in the log: [ 1.0] foo {{ bar\n{json.dumps(node('n2'))}",
        '{"status": 200, "path": "/"}\n{"status": 404, "path": "/x"}\n',
        "kind: of a mystery: it says: nothing\nmetadata\n",
        "apiVersion: v1\nkind: ConfigMap\n{{ if .Values.x }}\nmetadata:\n{{ end }}\n",
        "$ kubectl get nodes\nNAME  STATUS\nn1  Ready\n",
        LOST,
    ],
)
def test_what_is_whole_or_somebodys_words_is_not_damaged(text: str) -> None:
    assert of(text).damage == {}


def test_half_a_character_is_no_damage() -> None:
    facts = of(json.dumps(node("n1")).replace('"v1"', '"v1", "x": "\\ud800"'))
    assert (nodes(facts), facts.damage) == (["n1"], {})


def test_a_log_may_end_where_it_was_turned_over() -> None:
    assert of(AS_JSON[:200], "audit.log").damage == {} != of(AS_JSON[:200], "dump.json").damage


def test_what_an_object_holds_is_cut_where_its_writer_liked() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"x.json": AS_JSON[:200]}}
    assert of(json.dumps(config)).damage == {}


def test_a_large_list_that_is_cut_off_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_files, "MAP_FROM_BYTES", 100)
    monkeypatch.setattr(dump_json, "PIECE_BYTES", 200)
    path = tmp_path / "dump.json"
    for text, damage in ((AS_JSON, {}), (AS_JSON[:-150], {"dump.json": "the JSON ends in the middle of an object"})):
        path.write_text(text)
        assert read(evidence_files.pieces_of(str(path))).damage == damage


@pytest.mark.parametrize("command", ["doctor", "ledger"])
def test_damage_is_a_note(tmp_path: Path, command: str) -> None:
    for name, content in (
        ("cut.json", AS_JSON[:-150].encode()), ("cut.json.gz", gzip.compress(AS_JSON.encode())[:-20]),
        ("cut.json.xz", lzma.compress(AS_JSON.encode())[:-20]),
    ):  # fmt: skip
        path = tmp_path / name
        path.write_bytes(content)
        done = run(command, "--from", str(path))
        assert "note: cut.json: " in done.err and "what can be read was read" in done.err, name
        assert "go on" not in done.out
        assert "n1" in run("ledger", "--from", str(path)).out or name.endswith(".xz")


def test_a_name_that_is_not_there_may_be_in_what_could_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text(AS_JSON[: AS_JSON.index('"n3"')])
    for command in ("doctor", "ledger"):
        done = run(command, "n3", "--from", str(tmp_path))
        assert done.code == 2 and "cut.json: the JSON ends in the middle of an object" in done.err


def test_a_line_of_a_later_document_is_one_of_the_file() -> None:
    whole = yaml.safe_dump(node("n1"))
    broken = yaml.safe_dump(node("n2")).replace("  capacity:", " capacity", 1)
    facts = of(f"{whole}---\n{broken}")
    assert nodes(facts) == ["n1"]
    lines = f"{whole}---\n{broken}".splitlines()
    assert facts.damage == {"dump": f"line {lines.index(' capacity') + 1} is no YAML"}


def test_what_is_kept_of_a_damaged_file_is_known_to_be_a_part(tmp_path: Path) -> None:
    for name, text in (("whole", AS_JSON), ("cut", AS_JSON * 50)):
        path, kept = tmp_path / f"{name}.json.gz", tmp_path / name
        path.write_bytes(gzip.compress(text.encode())[: None if name == "whole" else -9])
        run("doctor", "--from", str(path), "--preserve", str(kept))
        assert json.loads(run("doctor", "--from", str(kept), "-o", "json").out)["gate"]["go"] is (name == "whole")


def test_a_file_of_a_folder_that_is_damaged_stops_the_gate(tmp_path: Path) -> None:
    (tmp_path / "nodes.json").write_text(AS_JSON)
    assert json.loads(run("doctor", "--from", str(tmp_path), "-o", "json").out)["gate"]["go"]
    (tmp_path / "pods.json").write_text(AS_JSON[:-150])
    gate = json.loads(run("doctor", "--from", str(tmp_path), "-o", "json").out)["gate"]
    assert not gate["go"] and "pods.json" in gate["sentence"]


# ---- archives


def packed(name: str) -> bytes:
    if name.endswith(".zip"):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("gathered/nodes/n1/dmesg.txt", LOST)
            archive.writestr("gathered/picture.png", LOST)
        return file.getvalue()
    return {"xz": lzma.compress, "bz2": bz2.compress, "gz": gzip.compress}[name.rpartition(".")[2]](LOST.encode())


@pytest.mark.parametrize("option", ["--from", "--evidence"])
@pytest.mark.parametrize("name", ["g.zip", "g.log.xz", "g.log.bz2", "g.log.gz"])
def test_what_the_standard_library_unpacks_is_read(tmp_path: Path, option: str, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(packed(name))
    (one,) = json.loads(run("doctor", option, str(path), "-o", "json").out)["findings"]
    assert one["subject"] == "GPU 0000:3b:00" + (" of node n1" if name == "g.zip" else "")


@pytest.mark.parametrize("option", ["--from", "--evidence"])
def test_what_it_does_not_unpack_is_refused_as_a_dump_is(tmp_path: Path, option: str) -> None:
    path = tmp_path / "dump.json.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"x" * 100)
    told = [run(*command, str(path)) for command in (("doctor", option), ("nodes", "--from"))]
    assert [one.code for one in told] == [3, 3]
    assert all("it is compressed with zstd. Unpack it" in one.err for one in told)
    folder = tmp_path / "folder"
    folder.mkdir()
    path.rename(folder / path.name)
    (folder / "dump.json").write_text(AS_JSON)
    assert "dump.json.zst: it is compressed with zstd" in run("doctor", "--from", str(folder)).err


def test_an_archive_is_unpacked_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from berth.sources import evidence_packed

    monkeypatch.setattr(evidence_packed, "LARGEST_BYTES", 1000)
    for name in ("g.log.gz", "g.zip"):
        path = tmp_path / name
        if name == "g.zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("a.log", LOST)
                archive.writestr("b.log", LOST * 1000)
        else:
            path.write_bytes(gzip.compress(LOST.encode() * 1000))
        pieces = list(evidence_files.pieces_of(str(path)))
        assert 0 < sum(len(one.raw) for one in pieces) <= 1000
        assert any("the rest was not read" in one.damage for one in pieces)


def test_archives_in_archives_have_an_end(tmp_path: Path) -> None:
    content = LOST.encode()
    for depth in range(8):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(f"{depth}.zip" if depth else "x.log", content)
        content = file.getvalue()
    (tmp_path / "deep.zip").write_bytes(content)
    done = run("doctor", "--from", str(tmp_path / "deep.zip"))
    assert done.code == 3 and "archive in archives" in done.err


def test_a_damaged_or_locked_archive_says_so(tmp_path: Path) -> None:
    path = tmp_path / "g.zip"
    path.write_bytes(packed("g.zip")[:-30])
    done = run("doctor", "--from", str(path))
    assert done.code == 3 and "it is cut off or damaged" in done.err
    locked = bytearray(packed("g.zip"))
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(locked))
    assert "it is encrypted" in run("doctor", "--from", str(path)).err


# ---- nothing to read


@pytest.mark.parametrize("command", ["doctor", "ledger"])
@pytest.mark.parametrize("option", ["--from", "--evidence"])
@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "it is empty"), (b" \n", "it is empty"), (b"\0" * 100, "it is empty"),
     (random.Random(1).randbytes(5000), "binary data")],
    ids=["empty", "blank", "nulls", "random"],
)  # fmt: skip
def test_what_holds_no_text_ends_with_3(tmp_path: Path, command: str, option: str, content: bytes, words: str) -> None:
    path = tmp_path / "given"
    path.write_bytes(content)
    done = run(command, option, str(path))
    assert (done.code, done.out) == (3, "") and words in done.err
    done = run(command, option, str(path), "-o", "json")
    record = json.loads(done.out)
    assert done.code == 3 and words in done.err and words in record["notes"][0]
    assert command == "ledger" or not record["gate"]["go"]


def test_standard_input_without_anything_ends_with_3(monkeypatch: pytest.MonkeyPatch) -> None:
    for option in ("--from", "--evidence"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
        done = run("doctor", option, "-")
        assert done.code == 3 and "standard input: it is empty" in done.err


def test_one_text_among_what_is_none_is_read(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(random.Random(1).randbytes(5000))
    (tmp_path / "empty").write_text("")
    (tmp_path / "dmesg").write_text(LOST)
    assert run("doctor", "--from", str(tmp_path)).code == 1


def test_a_text_is_a_text_in_any_script_and_with_holes() -> None:
    for text in (LOST, "显卡从总线上掉了", "Die Karte fällt aus", "\x1b[31mred\x1b[0m\n"):
        assert is_text(text.encode())
    assert is_text("Die Karte fällt aus der Überwachung".encode("latin-1"))
    assert is_text(b"\0" * 70_000 + LOST.encode())
    assert not is_text(b"\0" * 70_000) and not is_text(b"")


# ---- namespaces


def of_two_namespaces(tmp_path: Path) -> str:
    def pod(namespace: str, name: str) -> dict[str, Any]:
        metadata = {"name": name, "namespace": namespace}
        spec = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "9"}}}]}
        why = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
        status = {"phase": "Pending", "conditions": [condition]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}

    path = tmp_path / "dump.json"
    items = [node("n1"), pod("ml", "a"), pod("web", "b")]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


def test_a_namespace_that_is_not_there_is_no_healthy_one(tmp_path: Path) -> None:
    for target in ((), ("a",)):
        done = run("doctor", *target, "--from", of_two_namespaces(tmp_path), "-n", "nope")
        assert (done.code, done.out) == (2, "")
        assert "nothing of namespace 'nope' is in what was read, only of ml, web" in done.err


def test_only_one_namespace_is_looked_at_where_one_is_named(tmp_path: Path) -> None:
    dump = of_two_namespaces(tmp_path)

    def pods(*options: str) -> set[str]:
        record = json.loads(run("doctor", "--from", dump, *options, "-o", "json").out)
        return {one["subject"] for one in (*record["findings"], *record["consequences"])}

    everything = pods()
    assert everything == pods("-n", "ml") | pods("-n", "web")
    assert all("ml/" not in one for one in pods("-n", "web")) and any("ml/" in one for one in everything)


def test_what_cannot_be_written_says_that_its_folder_is_not_there(tmp_path: Path) -> None:
    dump = of_two_namespaces(tmp_path)
    away = tmp_path / "not" / "there"
    for command in (
        ("doctor", "--from", dump, "--record", str(away / "r.json")),
        ("doctor", "--from", dump, "--report", str(away / "r.html")),
        ("agent", "--set", f"paths.root={tmp_path}", "bundle", str(away / "b.tar.gz"), "--no-commands", "--no-cluster"),
    ):
        done = run(*command)
        assert done.code == 3 and f"it cannot be written: there is no folder {away}." in done.err, command
