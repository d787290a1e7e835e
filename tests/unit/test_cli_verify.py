"""`berth verify`: what closes a case, what leaves it open, and what is run for it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from cli_runs import here as run

LOST = "[ 1.5] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n"
LOADS = "[ 1.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07"
DEVICE = "GPU 0000:3b:00 of node gpu-7"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.log"
    path.write_text(LOST)
    return path


def test_a_case_is_closed_by_a_second_look_and_not_by_silence(tmp_path: Path) -> None:
    first, fine, other = tmp_path / "first.jsonl", tmp_path / "fine.jsonl", tmp_path / "other.jsonl"
    first.write_text(json.dumps({"kind": "dmesg", "text": LOST}))
    fine.write_text(json.dumps({"kind": "dmesg", "text": LOADS}))
    other.write_text(json.dumps({"kind": "pod-events", "text": "Normal  Started"}))
    record = tmp_path / "record.json"
    run("doctor", "--evidence", str(first), "--record", str(record))
    kept = json.loads(record.read_text())
    assert (kept["kind"], kept["standing"], kept["entries"][0]["verdict"]) == ("WorkRecord", "example", "open")
    for evidence, verdict, code in ((first, "open", 1), (fine, "closed", 0), (other, "unconfirmed", 1)):
        done = run("verify", str(record), "--evidence", str(evidence), "-o", "json")
        assert (json.loads(done.out)["entries"][0]["verdict"], done.code) == (verdict, code)
    shown = run("verify", str(record), "--evidence", str(other)).out
    assert "nobody looked at dmesg" in shown


@pytest.mark.parametrize(
    ("kind", "target", "said", "verdict"),
    [
        ("dmesg", DEVICE, "", "unconfirmed"),
        ("dmesg", DEVICE, "hello", "unconfirmed"),
        ("dmesg", DEVICE, "all is well, all 8 GPUs work again", "unconfirmed"),
        ("dmesg", DEVICE, "[ 1.0] usb 1-1: new device", "unconfirmed"),
        ("dmesg", DEVICE, "[ 1.0] mce: [Hardware Error]: Machine check events logged", "unconfirmed"),
        ("dmesg", DEVICE, "[ 1.0] NVRM: Xid (PCI:0000:3b:00): 48, pid=1, DBE (double bit error)", "unconfirmed"),
        ("dmesg", DEVICE, LOADS, "closed"),
        ("lspci", DEVICE, "9c:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)", "unconfirmed"),
        ("lspci", DEVICE, "3b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)", "closed"),
        ("plugin-log", "node gpu-7", "I0101 10:00:00.000000 1 main.go:1] hello", "unconfirmed"),
        ("plugin-log", "node gpu-7", "Registered device plugin for 'nvidia.com/gpu' with Kubelet", "closed"),
        ("app-log", "node gpu-7", "epoch 1 loss 0.4", "unconfirmed"),
    ],
)
def test_a_second_look_speaks_of_the_same_thing(
    tmp_path: Path, kind: str, target: str, said: str, verdict: str
) -> None:
    record = _recorded(tmp_path, target=target, node="gpu-7", evidenceKinds=[kind])
    evidence = tmp_path / "evidence.jsonl"
    evidence.write_text(json.dumps({"kind": kind, "node": "gpu-7", "text": said}))
    done = run("verify", str(record), "--evidence", str(evidence))
    assert (done.out.splitlines()[1].split()[0], done.code) == (verdict, int(verdict != "closed")), done.out
    assert ("to be run: dmesg | grep -c Xid: 0" in done.out) is (verdict != "closed")


@pytest.mark.parametrize(
    ("name", "phase", "verdict"),
    [("train-0", "Running", "closed"), ("train-1", "Running", "closed"), ("other-0", "Running", "unconfirmed")],
)
def test_a_pod_is_looked_at_again_or_the_one_in_its_place(tmp_path: Path, name: str, phase: str, verdict: str) -> None:
    record = _recorded(tmp_path, target="pod x/train-0", code="ResourceNotHeld", evidenceKinds=["pod-events"])
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "x"}, "spec": {
        "nodeName": "n1", "containers": [{"name": "main"}]}, "status": {"phase": phase}}  # fmt: skip
    evidence = tmp_path / "pod.json"
    evidence.write_text(json.dumps(pod))
    done = run("verify", str(record), "--from", str(evidence), "-o", "json")
    assert json.loads(done.out)["entries"][0]["verdict"] == verdict


def _machine(folder: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    """Programs of a machine, each of which prints what is given."""
    folder.mkdir(exist_ok=True)
    for name, prints in programs.items():
        file = folder / name.replace("_", "-")
        file.write_text(f"#!/bin/sh\ncat <<'END'\n{prints}\nEND\n")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_the_checks_of_a_record_are_run_and_judged(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write_text("nvidia-fabricmanager.service: Failed with result 'exit-code'.\n")
    record = tmp_path / "record.json"
    run("doctor", "--evidence", str(log), "--record", str(record))
    empty = tmp_path / "empty"
    empty.write_text("")
    for state, verdict in (("active", "closed"), ("failed", "open")):
        done = tmp_path / state
        _machine(done, monkeypatch, systemctl=state, nvidia_smi="Fabric\n  State : Completed\n  Status : Success")
        again = run("verify", str(record), "--evidence", str(empty), "--run", "-o", "json")
        (entry,) = json.loads(again.out)["entries"]
        assert entry["verdict"] == verdict, entry
        assert "systemctl is-active nvidia-fabricmanager" in [check["command"] for check in entry["checks"]]
    words = run("verify", str(record), "--evidence", str(empty), "--run").out
    assert "systemctl is-active nvidia-fabricmanager: not as it must be" in words
    silent = run("verify", str(record), "--evidence", str(empty), "-o", "json")
    assert json.loads(silent.out)["entries"][0]["checks"] == []


def _recorded(tmp_path: Path, **more: object) -> Path:
    entry = {
        "time": "2026-01-01T00:00:00Z", "target": "x", "code": "GpuFellOffBus", "command": "c", "output": "o",
        "verdict": "open", "nextAction": "n", "evidenceKinds": ["dmesg"], "verify": ["dmesg | grep -c Xid: 0"], **more,
    }  # fmt: skip
    record = tmp_path / "record.json"
    record.write_text(json.dumps({
        "apiVersion": "berth.dev/v1alpha1", "kind": "WorkRecord", "runId": "r", "time": "t", "standing": "measured",
        "source": "s", "entries": [entry],
    }))  # fmt: skip
    return record


def test_a_program_that_may_not_look_has_not_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(tmp_path / "bin", monkeypatch, dmesg="x")
    refuses = tmp_path / "bin" / "dmesg"
    refuses.write_text("#!/bin/sh\necho 'dmesg: read kernel buffer failed: Operation not permitted'; exit 1\n")
    done = run("verify", str(_recorded(tmp_path)), "--evidence", "/dev/null", "--run", "-o", "json")
    (entry,) = json.loads(done.out)["entries"]
    assert entry["verdict"] == "unconfirmed" and "it ended with 1" in entry["checks"][0]["problem"]


def test_evidence_of_another_node_closes_nothing(tmp_path: Path) -> None:
    for node, verdict in (("gpu-9", "unconfirmed"), ("gpu-7", "closed")):
        folder = tmp_path / node / "nodes" / node
        folder.mkdir(parents=True)
        (folder / "dmesg.txt").write_text("[ 1.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07\n")
        record = _recorded(tmp_path, node="gpu-7", evidenceKinds=["dmesg"])
        done = run("verify", str(record), "--from", str(tmp_path / node), "-o", "json")
        assert json.loads(done.out)["entries"][0]["verdict"] == verdict, node


def test_what_a_record_says_is_neither_markup_nor_a_command_of_the_terminal(tmp_path: Path) -> None:
    record = _recorded(tmp_path, target="\x1b]0;x\x07[/x]", verify=["[/x] \x1b[2J"])
    done = run("verify", str(record), "--evidence", "/dev/null")
    assert done.code == 1 and "\x1b" not in done.out and "[/x]" in done.out


def test_a_check_of_another_node_is_left_to_be_run_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "nodes" / "gpu-7"
    folder.mkdir(parents=True)
    (folder / "dmesg.txt").write_text("[ 2.5] NVRM: RmInitAdapter failed! (0x24:0x65:1436)\n")
    record = tmp_path / "record.json"
    run("doctor", "--from", str(tmp_path), "--record", str(record))
    _machine(tmp_path / "bin", monkeypatch, nvidia_smi="GPU 0: fine")
    done = run("verify", str(record), "--evidence", "/dev/null", "--run")
    assert "to be run on gpu-7" in done.out and "GPU 0: fine" not in done.out


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [("{}", 2, "no work record"), ("not json", 2, "no work record"), (None, 3, "cannot be read")],
)
def test_what_is_no_record_is_said(tmp_path: Path, text: str | None, code: int, words: str) -> None:
    path = tmp_path / "record.json"
    if text is not None:
        path.write_text(text)
    done = run("verify", str(path), "--evidence", str(path))
    assert done.code == code and words in done.err


# ---- evidence of which nobody says what it is

XID = "[ 91.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python3, GPU has fallen off the bus."
BOOTED = f"[ 0.0] Linux version 6.8\n{LOADS}"


@pytest.mark.parametrize(
    ("first", "second", "kinds", "verdict"),
    [
        (f"{BOOTED}\n{XID}", BOOTED, ["dmesg"], "closed"),
        (f"{BOOTED}\n{XID}", f"{BOOTED}\n{XID}", ["dmesg"], "open"),
        (f"{BOOTED}\n{XID}", "[ 0.0] Linux version 6.8\n[ 1.0] usb 1-1: new device", ["dmesg"], "unconfirmed"),
        (f"{BOOTED}\n{XID}", "n1:1:2 [0] NCCL INFO NET/Socket : Using [0]eth0", ["dmesg"], "unconfirmed"),
        (f"{BOOTED}\n{XID}", json.dumps({"kind": "dmesg", "text": LOADS}), ["dmesg"], "closed"),
        (f"Jun  3 10:00:00 n1 kernel: {XID[8:]}", f"Jun  4 10:00:00 n1 kernel: {LOADS[7:]}", ["dmesg"], "closed"),
        (XID[8:], LOADS[7:], ["dmesg"], "closed"),
        ("our GPU has vanished: nvidia-smi shows only 7 of 8 GPUs", BOOTED, [], "unconfirmed"),
    ],
    ids=["dmesg", "again", "silent", "other", "said-later", "journal", "bare", "somebodys-words"],
)
def test_what_a_text_is_its_content_says(
    tmp_path: Path, first: str, second: str, kinds: list[str], verdict: str
) -> None:
    before, after, record = tmp_path / "before", tmp_path / "after", tmp_path / "record.json"
    before.write_text(first + "\n")
    after.write_text(second + "\n")
    run("doctor", "--evidence", str(before), "--record", str(record))
    assert json.loads(record.read_text())["entries"][0]["evidenceKinds"] == kinds
    done = run("verify", str(record), "--evidence", str(after))
    assert done.out.splitlines()[1].split()[0] == verdict, done.out
    assert ("JSON lines" in done.out) is (not kinds)


def test_what_is_cut_off_closes_nothing(tmp_path: Path) -> None:
    lines = "".join(f"[ {n}.0] usb 1-1: device {n * n}\n" for n in range(2000))
    for content, verdict in ((f"{LOADS}\n{lines}", "closed"), (f"{LOADS}\n{lines}{XID}\n", "open")):
        after = tmp_path / "after.gz"
        after.write_bytes(gzip.compress(content.encode()))
        done = run("verify", str(_recorded(tmp_path, target="GPU 0000:3b:00")), "--evidence", str(after))
        assert done.out.splitlines()[1].split()[0] == verdict
        after.write_bytes(after.read_bytes()[:-200])
        done = run("verify", str(_recorded(tmp_path, target="GPU 0000:3b:00")), "--evidence", str(after))
        assert done.out.splitlines()[1].split()[0] == "unconfirmed" and "cut off or damaged" in done.out


def test_what_was_only_told_is_no_kind_of_evidence(tmp_path: Path) -> None:
    before, record = tmp_path / "before", tmp_path / "record.json"
    before.write_text("no GPU under Allocatable since the reboot\n")
    run("doctor", "--evidence", str(before), "--record", str(record))
    assert json.loads(record.read_text())["entries"][0]["evidenceKinds"] == []
    older = _recorded(tmp_path, evidenceKinds=["told"])
    shown = run("verify", str(older), "--evidence", str(before)).out
    assert "told" not in shown and "JSON lines" in shown


def test_without_a_cluster_it_says_what_else_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    done = run("verify", str(_recorded(tmp_path)), "--no-run")
    assert done.code == 3 and "--evidence FILE" in done.err and "no kubeconfig" in done.err
