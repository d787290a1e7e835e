"""`berth agent` as a command: its configuration, one look, bundles, its endpoints."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from made_up_machine import MadeUpMachine

from berth.app.agent.configuration import configure, node_of, places_of
from berth.app.agent.server import Server
from berth.app.agent.settings import Configuration
from berth.app.cli.main import cli
from berth.base.errors import BadInput
from berth.node.metrics import Measures

HEAD = "apiVersion: berth.dev/v1alpha1\nkind: AgentConfiguration\n"


def run(*arguments: str):  # type: ignore[no-untyped-def]
    return CliRunner(env={"KUBECONFIG": "/nonexistent", "NODE_NAME": "n1"}).invoke(cli, ["agent", *arguments])


# ---- configuration


def test_a_flag_goes_before_a_variable_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(HEAD + "looks: {seconds: 60, socketSeconds: 2}\nwrites: {taint: true}\n")
    environment = {"BERTH_AGENT_LOOKS_SECONDS": "45", "BERTH_AGENT_WRITES_EVENTS": "false"}
    found = configure(str(file), {"looks.seconds": "20"}, environment)
    assert (found.value.looks.seconds, found.value.looks.socket_seconds) == (20, 2)
    assert found.value.writes.taint and not found.value.writes.events
    sources = {path: source for path, _, source in found.sources}
    assert sources["looks.seconds"] == "flag" and sources["looks.socketSeconds"] == f"file {file}"
    assert sources["writes.events"] == "variable BERTH_AGENT_WRITES_EVENTS" and sources["server.port"] == "default"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("looks: {second: 3}", "looks.second: is no key of the configuration. Perhaps looks.seconds"),
        ("looks: {seconds: 1}", "looks.seconds: is 1. Write 5 or more"),
        ("looks: {seconds: soon}", "looks.seconds: is 'soon'. Write a number."),
        ("writes: {cordon: true, condition: false}", "writes.cordon: is true, and writes.condition false"),
        ("paths: {root: ''}", "paths.root: is empty"),
        ("logLevel: loud", "logLevel: is 'loud'. Write debug, info, warning or error."),
    ],
)
def test_what_is_written_wrongly_is_told_with_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(HEAD + text + "\n")
    with pytest.raises(BadInput) as caught:
        configure(str(file))
    assert sentence in caught.value.sentence.replace(f"{file}: ", "")


def test_a_variable_that_sets_nothing_is_told() -> None:
    (said,) = configure(environ={"BERTH_AGENT_LOOKS_SECOND": "3", "BERTH_SERVER_PORT": "1"}).unknown
    assert said == "BERTH_AGENT_LOOKS_SECOND sets nothing. Perhaps BERTH_AGENT_LOOKS_SECONDS."


def test_places_and_the_nodes_name() -> None:
    value = configure(flags={"paths.root": "/host", "paths.kubelet": "/k"}).value
    places = places_of(value)
    assert places.pod_resources == Path("/k/pod-resources/kubelet.sock")
    assert places.checkpoint == Path("/k/device-plugins/kubelet_internal_checkpoint")
    assert (places.logs, places.proc) == (Path("/host/var/log"), Path("/host/proc"))
    assert places.as_the_machine_names_it(Path("/host/etc/cdi/x.yaml")) == "/etc/cdi/x.yaml"
    assert node_of(Configuration(), {"NODE_NAME": "n7"}) == "n7"
    assert node_of(Configuration(node="mine"), {"NODE_NAME": "n7"}) == "mine"


def test_help_lists_every_value() -> None:
    done = run("--help")
    assert done.exit_code == 0
    for path, _, _ in configure().sources[2:]:
        assert path in done.output


# ---- one look


def test_a_machine_without_a_gpu_says_so(tmp_path: Path) -> None:
    MadeUpMachine(tmp_path / "m", gpus=0)
    done = run("--once", "--no-cluster", "--set", f"paths.root={tmp_path / 'm'}")
    assert done.exit_code == 0, done.output
    assert "n1  Fit  NoGpu" in done.output
    assert "no GPU on this machine (lspci 0, /dev 0)" in done.output
    assert "not seen: NVML: no libnvidia-ml.so.1 on this machine" in done.output


def test_what_was_not_seen_is_not_called_absent(tmp_path: Path) -> None:
    done = run("--once", "--no-cluster", "--set", f"paths.root={tmp_path / 'nowhere'}")
    assert done.exit_code == 3
    assert "whether this machine has a GPU could not be seen (nothing could count them)" in done.output
    assert "no GPU on this machine" not in done.output


def test_gpus_without_nvml_are_unknown_and_not_fit(tmp_path: Path) -> None:
    MadeUpMachine(tmp_path / "m")
    done = run("--once", "--no-cluster", "--set", f"paths.root={tmp_path / 'm'}", "-o", "json")
    assert done.exit_code == 1
    ledger = json.loads(done.stdout)
    assert (ledger["kind"], ledger["metadata"]["name"]) == ("NodeLedger", "n1")
    assert {one["state"] for one in ledger["status"]["devices"]} == {"Unknown"}
    assert ledger["status"]["state"] == "Unknown"


def test_nothing_that_can_be_seen_is_told_by_the_exit_code(tmp_path: Path) -> None:
    done = run("--once", "--no-cluster", "--set", f"paths.root={tmp_path}")
    assert done.exit_code == 3
    assert "n1  Unknown  NotSeen" in done.output


def test_without_a_cluster_the_look_is_taken_all_the_same(tmp_path: Path) -> None:
    MadeUpMachine(tmp_path / "m", gpus=0)
    done = run("--once", "--set", f"paths.root={tmp_path / 'm'}")
    assert done.exit_code == 0
    assert "note: the Node object was not read" in done.output


def test_a_value_that_there_is_not_is_a_usage_error() -> None:
    done = CliRunner().invoke(cli, ["agent", "--once", "--set", "looks.second=3"], standalone_mode=True)
    assert done.exit_code == 2
    assert "there is no such value. Known are looks.seconds" in done.output


# ---- bundles


def test_a_bundle_is_read_by_doctor_and_ledger(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path / "m")
    machine.say("NVRM: Xid (PCI:0000:11:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")
    machine.write("etc/containerd/config.toml", 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n')
    machine.write("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", '{"Data": {"RegisteredDevices": {}}}')
    root = ("--set", f"paths.root={tmp_path / 'm'}")
    target = tmp_path / "n1.tar.gz"
    done = run(*root, "bundle", str(target), "--no-commands", "--no-cluster")
    assert done.exit_code == 0, done.output
    with tarfile.open(target) as archive:
        names = set(archive.getnames())
        assert all(member.mode == 0o600 for member in archive)
    assert names >= {
        f"nodes/n1/{name}"
        for name in (
            "nodeledger.json", "dmesg-kmsg.txt", "kubelet_internal_checkpoint", "lsmod-proc-modules.txt",
            "containerd-config/etc_containerd_config.toml",
        )
    }  # fmt: skip
    found = CliRunner().invoke(cli, ["doctor", "--from", str(target), "-o", "json"])
    codes = {one["code"]: one for one in json.loads(found.stdout)["findings"]}
    assert codes["GpuFellOffBus"]["subject"] == "GPU 0000:11:00 of node n1"
    folder = tmp_path / "folder"
    assert run(*root, "bundle", str(folder), "--no-commands", "--no-cluster").exit_code == 0
    assert (folder / "nodes/n1/nodeledger.json").stat().st_mode & 0o777 == 0o600


def test_a_bundle_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    MadeUpMachine(tmp_path / "m", gpus=0)
    (tmp_path / "file").write_text("")
    target = str(tmp_path / "file" / "x.tar.gz")
    done = run("--set", f"paths.root={tmp_path / 'm'}", "bundle", target, "--no-commands", "--no-cluster")
    assert isinstance(done.exception, BadInput)
    assert "cannot be written" in done.exception.sentence


def test_a_program_that_hangs_or_is_not_there_is_told(tmp_path: Path) -> None:
    from berth.node.programs import output_of
    from berth.node.seen import NotSeen

    assert output_of(("no-such-program-here",)) == NotSeen(
        "no-such-program-here", "there is no such program on the machine"
    )
    assert output_of(("sleep", "5"), limit_s=0.1) == NotSeen("sleep 5", "no answer within 0.1 s")
    assert output_of(("sh", "-c", "echo out; echo err >&2; exit 9")) == b"out\nerr\n"
    assert output_of(("cat",), given=b"given") == b"given"


# ---- the server


def test_health_and_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    configured = configure(flags={"server.port": "0", "server.address": "127.0.0.1", "looks.seconds": "5"})
    server = Server(configured, Measures("n1"))
    server.start()
    url = f"http://{server.address[0]}:{server.address[1]}"
    try:
        assert urllib.request.urlopen(f"{url}/healthz").read() == b"ok\n"
        text = urllib.request.urlopen(f"{url}/metrics").read().decode()
        assert 'berth_agent_info{node="n1"' in text
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{url}/debug")
        assert caught.value.code == 404
        later = time.time() + 3600
        monkeypatch.setattr("berth.app.agent.server.time.time", lambda: later)
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{url}/healthz")
        assert caught.value.code == 503
        with pytest.raises(BadInput, match="is in use"):
            taken = {"server.address": "127.0.0.1", "server.port": str(server.address[1])}
            Server(configure(flags=taken), Measures("x"))
    finally:
        server.stop()


def test_the_agent_imports_nothing_that_decides_or_draws() -> None:
    """What it holds in memory on every node."""
    names = [
        "numpy", "numba", "rich", "aiohttp", "uvloop", "matplotlib", "berth.scheduling", "berth.views", "berth.sources",
        "berth.dialects", "berth.model.gpus",
    ]  # fmt: skip
    code = f"import sys; import berth.app.agent.run; print([m for m in {names} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_example_of_the_chart_is_yaml_that_a_file_may_hold() -> None:
    assert yaml.safe_load(HEAD)["kind"] == Configuration().kind
