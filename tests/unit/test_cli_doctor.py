"""`berth doctor` and `ledger` from files: what they print, what they leave, and how they end."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Ran
from cli_runs import here as run

from berth.diagnosis.xid.catalogue import catalogue
from berth.model.ledger import Account, Boundary, DeviceLine
from berth.views.ledger import show
from berth.views.tables import console

LOST = "[ 1.5] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n"
PENDING = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available."


def doctor(*arguments: str) -> Ran:
    return run("doctor", *arguments)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.log"
    path.write_text(LOST)
    return path


def found(*arguments: str) -> dict:
    return json.loads(doctor(*arguments, "-o", "json").out)


def test_a_text_with_a_fault_ends_with_one(log: Path) -> None:
    done = doctor("--evidence", str(log))
    assert done.code == 1
    assert done.out.startswith("L0  a GPU has fallen off the bus: GPU 0000:3b:00")
    for words in ("seen:", "if not:", "mend:", "risk:", "undo:", "verify:", "stop at isolation"):
        assert words in done.out


def test_a_text_without_one_ends_with_none(tmp_path: Path) -> None:
    path = tmp_path / "fine.txt"
    path.write_text("all is well\n")
    done = doctor("--evidence", str(path))
    assert (done.code, done.out.splitlines()[0]) == (0, "no fault found in what was read")
    assert "nothing was read that says anything about a GPU" in done.out


def test_lines_of_json_say_whose_they_are(tmp_path: Path) -> None:
    path = tmp_path / "evidence.jsonl"
    path.write_text(json.dumps({"kind": "dmesg", "text": LOST, "node": "n1"}) + "\n")
    (one,) = found("--evidence", str(path))["findings"]
    assert (one["code"], one["layer"], one["cause_class"]) == ("GpuFellOffBus", "L0", "hw-fault")
    assert one["subject"] == "GPU 0000:3b:00 of node n1"
    assert one["evidence"][0]["text"] == LOST.strip()
    assert any("kubectl cordon n1" in step for step in one["fix"]["steps"])
    assert one["docs"] == "docs/findings/L0.md#gpufelloffbus"


@pytest.mark.parametrize("kind", ["dmesg", "nccl-log", "no such kind", None])
def test_a_kind_that_is_wrong_or_absent_changes_nothing(tmp_path: Path, kind: str | None) -> None:
    path = tmp_path / "evidence.jsonl"
    path.write_text(json.dumps({"text": LOST} | ({"kind": kind} if kind else {})))
    assert [one["code"] for one in found("--evidence", str(path))["findings"]] == ["GpuFellOffBus"]


def test_evidence_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LOST.encode())))
    assert doctor("--evidence", "-").code == 1


def test_a_folder_an_archive_and_gzip_are_read_alike(tmp_path: Path, log: Path) -> None:
    folder = tmp_path / "gathered"
    (folder / "nodes" / "n1").mkdir(parents=True)
    (folder / "nodes" / "n1" / "dmesg.txt").write_text(LOST)
    (folder / "picture.png").write_bytes(b"\x89PNG" + LOST.encode())
    archive = tmp_path / "gathered.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname="gathered")
    packed = tmp_path / "kernel.log.gz"
    packed.write_bytes(gzip.compress(LOST.encode()))
    cut_off = tmp_path / "cut.log.gz"
    cut_off.write_bytes(gzip.compress(LOST.encode() * 3000)[:-30])
    subjects = {}
    for path in (folder, archive, packed, cut_off):
        record = found("--from", str(path))
        subjects[path.name] = [one["subject"] for one in record["findings"]]
    assert subjects["gathered"] == subjects["gathered.tar.gz"] == ["GPU 0000:3b:00 of node n1"]
    assert subjects["kernel.log.gz"] == subjects["cut.log.gz"] == ["GPU 0000:3b:00"]
    assert any("cut off" in note for note in found("--from", str(cut_off))["notes"])


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--from", "no/such/folder"), 3, "there is no such file or folder"),
        (("--evidence", "no/such/file"), 3, "cannot be read"),
        (("--explain", "GpuFellOfBus"), 2, "Did you mean GpuFellOffBus"),
        (("nobody", "--evidence", "LOG"), 2, "no pod, node or job"),
        (("--evidence", "LOG", "--record", "no/such/folder/r.json"), 3, "cannot be written"),
        (("--evidence", "LOG", "-o", "xml"), 2, "xml"),
        (("--from", ""), 2, "it is empty"),
    ],
)
def test_what_is_wrong_is_said_with_its_remedy(log: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    done = doctor(*(str(log) if one == "LOG" else one for one in arguments))
    assert done.code == code
    assert words in done.err
    assert "Traceback" not in done.err


def test_evidence_that_is_no_text_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "evidence.jsonl"
    path.write_text('{"kind": "dmesg", "text": "fine"}\n{"kind": "dmesg", "text": 7}\n')
    done = doctor("--evidence", str(path))
    assert done.code == 2
    assert "line 2: text" in done.err and "evidence is text" in done.err


def test_a_code_is_explained_without_reading_anything() -> None:
    done = doctor("--explain", "gpufelloffbus")
    assert done.code == 0
    for words in ("means:", "known by:", "if not:", "mend:", "verify:", "sources:"):
        assert words in done.out


def test_a_code_is_explained_to_programs() -> None:
    record = json.loads(doctor("--explain", "gpufelloffbus", "-o", "json").out)
    assert (record["code"], record["layer"], record["severity"]) == ("GpuFellOffBus", "L0", "critical")
    assert record["fix"]["steps"] and record["verify"] and record["counter_check"]


@pytest.mark.parametrize("asked", ["79", "Xid79", "xid 79", "Xid: 79"])
def test_an_xid_is_explained_with_the_finding_that_it_makes(asked: str) -> None:
    shown = doctor("--explain", asked)
    assert shown.code == 0
    for words in ("Xid 79 (", "fatal for the node", "RESTART_BM: restart the machine", "finding:  GpuFellOffBus"):
        assert words in shown.out
    record = json.loads(doctor("--explain", asked, "-o", "json").out)
    assert (record["xid"], record["severity"], record["action"]) == (79, "critical", "RESTART_BM")
    assert record["finding"]["code"] == "GpuFellOffBus"


def test_every_xid_of_the_catalogue_is_explained() -> None:
    for number in catalogue():
        assert json.loads(doctor("--explain", str(number), "-o", "json").out)["xid"] == number


@pytest.mark.parametrize("asked", ["999", "Xid 0"])
def test_an_xid_that_is_none_is_refused(asked: str) -> None:
    done = doctor("--explain", asked)
    assert done.code == 2 and "in the catalogue" in done.err and "It has 1 to 176." in done.err


def test_control_characters_of_a_log_do_not_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "odd.log"
    odd = LOST.encode().replace(b"GPU has", b"GPU\x07 has fallen off the bus, has")
    path.write_bytes(b"\x1b]0;title\x07\x1b[2J" + odd)
    shown = doctor("--evidence", str(path)).out
    assert "\x07" not in shown and "\x1b" not in shown


# ---- a pod, a node


def dump(tmp_path: Path) -> Path:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {
        "capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"}}}  # fmt: skip
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train-0", "namespace": "x", "ownerReferences": [
        {"kind": "Job", "name": "train", "controller": True}]}, "spec": {"containers": [
            {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}, "status": {
        "phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": PENDING}]}}  # fmt: skip
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, pod]}, indent=4))
    return path


@pytest.mark.parametrize("target", ["train-0", "x/train-0", "pod/train-0", "train", "job/train"])
def test_a_question_about_a_pod_walks_down_from_it(tmp_path: Path, target: str) -> None:
    record = found(target, "--from", str(dump(tmp_path)))
    walk = {step["question"]: (step["layer"], step["holds"]) for step in record["walk"]}
    assert walk["asks for GPUs"] == ("L5", True)
    assert walk["has a node"] == ("L5", False)
    assert record["findings"]


def gone(reporter: dict[str, Any]) -> dict[str, Any]:
    """What the kubelet of n2 said of a pod that is no more."""
    said = 'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "nvidia" is configured'  # noqa: E501
    return {"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "FailedCreatePodSandBox",
        "metadata": {"name": "wants.1", "namespace": "x"}, "message": said,
        "involvedObject": {"kind": "Pod", "namespace": "x", "name": "wants"}, **reporter}  # fmt: skip


@pytest.mark.parametrize(
    "reporter",
    [
        {},
        {"source": {"component": "kubelet", "host": "n2"}},
        {"reportingComponent": "kubelet", "reportingInstance": "n2"},
    ],
)
def test_what_was_said_of_a_pod_that_is_gone_hides_nothing_on_another_node(
    tmp_path: Path, reporter: dict[str, Any]
) -> None:
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}, "status": {
            "capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": usable}}}
        for name, usable in (("n1", "7"), ("n2", "8"))
    ]  # fmt: skip
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, gone(reporter)]}))
    assert [one["code"] for one in found("n1", "--from", str(path))["findings"]][-1] == "DevicesWithheld"
    everything = [one["code"] for one in found("--from", str(path))["findings"]]
    assert sorted(everything) == ["DevicesWithheld", "RuntimeHandlerMissing"]
    if reporter:
        assert [one["code"] for one in found("n1", "--from", str(path))["findings"]] == ["DevicesWithheld"]
        assert [one["code"] for one in found("n2", "--from", str(path))["findings"]] == ["RuntimeHandlerMissing"]


def test_a_cause_elsewhere_is_told_where_it_explains_what_is_asked_about(tmp_path: Path) -> None:
    """A pod without a node waits for a GPU that a node has lost."""
    of_node = tmp_path / "nodes" / "n1"
    of_node.mkdir(parents=True)
    (of_node / "dmesg.txt").write_text(
        "[86231.104712] NVRM: Xid (PCI:0000:43:00): 79, pid=22817, name=python3, GPU has fallen off the bus.\n"
    )
    dump(tmp_path)
    record = found("train-0", "--from", str(tmp_path))
    assert [one["code"] for one in record["findings"]] == ["GpuFellOffBus"]
    assert {one["explained_by"] for one in record["consequences"]} == {"GpuFellOffBus"}
    assert record["consequences"]


def test_a_question_about_a_node_shows_its_account(tmp_path: Path) -> None:
    record = found("n1", "--from", str(dump(tmp_path)))
    assert [step["question"] for step in record["walk"]] == ["nvidia.com/gpu on n1"]
    assert found("train-0", "-n", "x", "--from", str(dump(tmp_path)))["walk"]
    assert doctor("train-0", "-n", "y", "--from", str(dump(tmp_path))).code == 2


# ---- preserve, report


def test_what_was_preserved_is_read_again(tmp_path: Path, log: Path) -> None:
    kept = tmp_path / "kept"
    first = found("--evidence", str(log), "--preserve", str(kept))
    assert kept.stat().st_mode & 0o077 == 0, "logs may hold tokens"
    log.unlink()
    again = found("--from", str(kept))
    assert [one["code"] for one in again["findings"]] == [one["code"] for one in first["findings"]]


def test_two_cases_are_never_kept_in_one_folder(tmp_path: Path, log: Path) -> None:
    kept = tmp_path / "kept"
    first = doctor("--evidence", str(log), "--preserve", str(kept))
    assert first.code == 1 and f"kept in {kept}: 1 piece of evidence" in first.err
    written = {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()}
    again = doctor("--evidence", str(log), "--preserve", str(kept))
    assert again.code == 2 and "holds something already" in again.err and "Name a new folder." in again.err
    assert written == {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()}
    empty = tmp_path / "empty"
    empty.mkdir()
    assert doctor("--evidence", str(log), "--preserve", str(empty)).code == 1


def test_what_was_done_is_not_advised(tmp_path: Path, log: Path) -> None:
    keeps, records = ("--preserve", str(tmp_path / "kept")), ("--record", str(tmp_path / "record.json"))
    assert "--preserve DIR keeps" in doctor("--evidence", str(log), *records).out
    done = doctor("--evidence", str(log), "--preserve", str(tmp_path / "other"), *records)
    assert "--preserve DIR" not in done.out and "--record FILE" not in done.out and "berth verify" in done.out
    assert f"written: the work record {tmp_path / 'record.json'}" in done.err
    assert "--record FILE" in doctor("--evidence", str(log), *keeps).out


def test_a_page_for_a_ticket_needs_nothing_from_elsewhere(tmp_path: Path, log: Path) -> None:
    page = tmp_path / "report.html"
    doctor("--evidence", str(log), "--report", str(page))
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>") and "GpuFellOffBus" in text
    assert "http" not in text and "<script" not in text


def overdrawn(tmp_path: Path) -> Path:
    """A node of 8 GPUs whose pods hold 9, and nothing that says why."""
    path = dump(tmp_path)
    kept = json.loads(path.read_text())
    pod = kept["items"][1]
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "9"
    pod["spec"]["nodeName"] = "n1"
    pod["status"] = {"phase": "Running"}
    path.write_text(json.dumps(kept))
    return path


@pytest.mark.parametrize("target", [("n1",), ()])
def test_nobody_goes_on_over_a_boundary_that_breaks(tmp_path: Path, target: tuple[str, ...]) -> None:
    path = overdrawn(tmp_path)
    done = doctor(*target, "--from", str(path))
    assert "no fault found in what was read" in done.out
    assert "stop at discovery: nvidia.com/gpu on n1: no (pods hold 9, the node gives 8)" in " ".join(done.out.split())
    assert done.code == run("ledger", "--from", str(path)).code == 1


# ---- the ledger


def test_a_ledger_that_parts_ends_with_one(tmp_path: Path) -> None:
    path = dump(tmp_path)
    assert run("ledger", "--from", str(path)).code == 0
    path.write_text(path.read_text().replace('"nvidia.com/gpu": "8"', '"nvidia.com/gpu": "7"', 1))
    done = run("ledger", "n1", "--from", str(path), "-o", "json")
    (account,) = json.loads(done.out)["accounts"]
    assert done.code == 1
    assert (account["capacity"], account["allocatable"], account["partsAt"], account["host"]) == (7, 8, "node", None)
    assert run("ledger", "nobody", "--from", str(path)).code == 2


def test_the_account_is_never_cut_on_a_narrow_terminal(tmp_path: Path) -> None:
    uuid = "GPU-5a1d9b1c-1f2e-4b3a-9d0e-2f1b6c1d7e88"
    line = DeviceLine(id=uuid, index=0, pci="0000:3b:00.0", host="there", plugin="healthy", node="offered",
                      request="research-of-a-long-name/train-of-a-long-name-0", memory_bytes=80 * 2**30)  # fmt: skip
    account = Account(node="gpu-00000.cluster.example", resource="nvidia.com/mig-1g.10gb.shared", host=8, plugin=8,
                      capacity=8, allocatable=7, requested=7, visible=7, parts_at=Boundary.Node, sentence="7 of 8",
                      devices=(line,))  # fmt: skip
    out = io.StringIO()
    show([account], console(out, width=40), wide=True, one_node=False)
    for words in ("REQUEST", "VISIBLE", "parts at node", account.node, account.resource, line.request):
        assert words in out.getvalue()
    assert "…" not in out.getvalue()


def test_of_very_many_nodes_those_that_part_are_shown(tmp_path: Path) -> None:
    def node(number: int) -> dict:
        allocatable = "7" if number == 42 else "8"
        status = {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": allocatable}}
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}, "status": status}

    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node(i) for i in range(200)]}))
    shown = run("ledger", "--from", str(path))
    assert "n42" in shown.out and "n43" not in shown.out and "199 nodes equal" in shown.out
    assert "n43" in run("ledger", "--from", str(path), "-o", "wide").out
    assert len(json.loads(run("ledger", "--from", str(path), "-o", "json").out)["accounts"]) == 200
