"""The opening incident, and its kin, on a real kubelet with real device plugins: what breaks is named within ten
seconds, at its boundary, by evidence that was measured.

Each test breaks one thing, and then does what an operator does: a bundle of the node, the objects of the API server,
the doctor and the ledger over both.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from devcluster import Admin, Cluster
from devcluster.device_plugin import DevicePlugin
from devcluster.real_node import RealNode

ROOT = Path(__file__).parents[2]
GPU = "nvidia.com/gpu"
DEVICES = [f"GPU-{number:08}" for number in range(8)]
WITHIN_S = 10.0
LISTS = (
    "/api/v1/nodes", "/api/v1/pods", "/api/v1/events", "/apis/node.k8s.io/v1/runtimeclasses",
)  # fmt: skip


@dataclass
class Ward:
    """A real node as its operator sees it. `root` is its machine's root, as far as there is one."""

    cluster: Cluster
    node: RealNode
    root: Path
    folder: Path
    number: int = 0

    def gather(self) -> Path:
        """All that can be read now: a bundle of the node's agent, and what the API server has."""
        self.number += 1
        target = self.folder / f"look-{self.number}"
        values = {
            "node": self.node.name, "paths.root": self.root, "paths.kubelet": self.node.kubelet_folder,
            "paths.logs": self.node.folder / "var-log", "paths.proc": "/proc", "looks.socketSeconds": 1,
            "looks.listPlugins": "true",
        }  # fmt: skip
        settings = [part for path, value in values.items() for part in ("--set", f"{path}={value}")]
        done = self._berth("agent", *settings, "bundle", str(target), "--no-commands")
        assert target.is_dir(), done.stderr
        for number, path in enumerate(LISTS):
            items = self.cluster.admin.items(path)
            kind = path.rsplit("/", 1)[1][:-1].capitalize().replace("Runtimeclasse", "RuntimeClass")
            version = path.removeprefix("/apis/").removeprefix("/api/").rsplit("/", 1)[0]
            told = [{"apiVersion": version, "kind": kind, **item} for item in items]
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": told})
            (target / f"api-{number}.json").write_text(text)
        log = self.node.folder / "kubelet.log"
        if log.exists():
            (target / "nodes" / self.node.name / "kubelet.log").write_bytes(log.read_bytes()[-500_000:])
        return target

    def told(self, what: str = "doctor", *arguments: str) -> dict[str, Any]:
        done = self._berth(what, *arguments, "--from", str(self.gather()), "-o", "json")
        assert done.returncode in (0, 1), done.stderr
        return dict(json.loads(done.stdout))

    def names(self, code: str, layer: str, *words: str) -> dict[str, Any]:
        """Until the doctor finds it, within ten seconds from now; then how it is told. Everything that was found counts
        as found; it must not lie under a cause of another kind."""
        began = time.monotonic()
        while True:
            asked = time.monotonic()
            report = self.told()
            found = {one["code"]: one for one in report["findings"]}
            if code in found or time.monotonic() - began > WITHIN_S:
                break
        under = [(one["code"], one["explained_by"]) for one in report["consequences"]]
        assert code in found, (sorted(found), under)
        assert asked - began <= WITHIN_S
        one = dict(found[code])
        assert one["layer"] == layer
        for word in words:
            assert word in one["cause"], one["cause"]
        assert one["evidence"] and all(each["source"] for each in one["evidence"])
        assert not report["gate"]["go"]
        return one

    def account(self) -> dict[str, Any]:
        """The ledger's line of the node's GPUs."""
        accounts = self.told("ledger", self.node.name)["accounts"]
        return dict(next(one for one in accounts if one["resource"] == GPU))

    def _berth(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig), "BERTH_TRACEBACK": "1"}
        command = [sys.executable, "-m", "berth.app.cli.main", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment, timeout=60
        )


@pytest.fixture
def ward(cluster: Cluster, real_node: RealNode, tmp_path: Path) -> Ward:
    """A machine whose bus shows eight GPUs, and its kubelet."""
    root = tmp_path / "root"
    for folder in ("dev", "etc", "run", "sys/bus/pci/devices"):
        (root / folder).mkdir(parents=True)
    for number in range(8):
        function = root / f"sys/bus/pci/devices/0000:{number + 1:02x}:00.0"
        function.mkdir()
        for name, text in (("vendor", "0x10de"), ("device", "0x2330"), ("class", "0x030200"), ("revision", "0xa1")):
            (function / name).write_text(f"{text}\n")
    return Ward(cluster, real_node, root, tmp_path)


@pytest.fixture
def plugin(real_node: RealNode) -> Iterator[subprocess.Popen[str]]:
    """A device plugin of eight devices in a process of its own."""
    command = [sys.executable, "-m", "devcluster", "device-plugin", "--folder", str(real_node.device_plugins)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "registered\n"
        real_node.wait_allocatable(GPU, 8)
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()


@pytest.fixture
def serve(real_node: RealNode) -> Iterator[Callable[..., DevicePlugin]]:
    """serve(devices, socket="…"): a device plugin in this process, registered when it is given back."""
    started: list[DevicePlugin] = []

    def start(devices: list[str], **options: Any) -> DevicePlugin:
        started.append(DevicePlugin(real_node.device_plugins, devices=devices, **options).start())
        return started[-1]

    yield start
    for each in started:
        each.stop()


def test_what_works_has_no_finding(ward: Ward, plugin: subprocess.Popen[str]) -> None:
    account = ward.account()
    assert (account["host"], account["plugin"], account["capacity"], account["allocatable"]) == (8, 8, 8, 8)
    assert account["partsAt"] is None
    assert [one["code"] for one in ward.told()["findings"]] == []


def test_a_plugin_that_hangs(ward: Ward, plugin: subprocess.Popen[str]) -> None:
    """The opening incident: the node goes on to offer eight."""
    plugin.send_signal(signal.SIGSTOP)
    ward.names("PluginSilent", "L3", "no answer", "the node still offers 8")
    account = ward.account()
    assert (account["capacity"], account["allocatable"], account["partsAt"]) == (8, 8, "plugin")


def test_a_plugin_that_dies(ward: Ward, plugin: subprocess.Popen[str]) -> None:
    plugin.kill()
    plugin.wait()
    ward.names("PluginGone", "L3", "nobody listens")
    account = ward.account()
    assert (account["capacity"], account["allocatable"], account["partsAt"]) == (8, 0, "plugin")


def test_a_plugin_that_comes_back_with_fewer_devices(
    ward: Ward, plugin: subprocess.Popen[str], serve: Callable[..., DevicePlugin]
) -> None:
    plugin.kill()
    plugin.wait()
    serve(DEVICES[:7])
    ward.node.wait_allocatable(GPU, 7)
    ward.names("PluginListsFewer", "L3", "has 8", "offers 7")
    account = ward.account()
    assert (account["host"], account["plugin"], account["allocatable"], account["partsAt"]) == (8, 7, 7, "plugin")


def test_a_device_that_is_unhealthy_and_stays_so(ward: Ward, serve: Callable[..., DevicePlugin]) -> None:
    served = serve(DEVICES)
    ward.node.wait_allocatable(GPU, 8)
    served.set_health(DEVICES[3], False)
    ward.names("PluginCallsUnhealthy", "L3", DEVICES[3])
    account = ward.account()
    assert (account["plugin"], account["capacity"], account["allocatable"]) == (7, 8, 7)
    assert {one["id"] for one in account["devices"] if one["plugin"] == "unhealthy"} == {DEVICES[3]}


def test_a_kubelet_that_comes_back_while_the_plugin_hangs(ward: Ward, plugin: subprocess.Popen[str]) -> None:
    """It removes all sockets and waits for plugins to register; this one never does."""
    plugin.send_signal(signal.SIGSTOP)
    ward.node.signal_kubelet(signal.SIGKILL)
    ward.node.wait_allocatable(GPU, 0, 30)
    ward.names("PluginNotRegistered", "L3", "no plugin of it has a socket")
    account = ward.account()
    assert (account["host"], account["allocatable"], account["partsAt"]) == (8, 0, "node")


def test_a_socket_that_is_removed(ward: Ward, plugin: subprocess.Popen[str]) -> None:
    """The stream lives on, and the next kubelet will not find the plugin."""
    (ward.node.device_plugins / "nvidia.com-gpu.sock").unlink()
    ward.names("PluginNotRegistered", "L3", "no plugin of it has a socket")


def test_two_plugins_for_one_resource(ward: Ward, serve: Callable[..., DevicePlugin]) -> None:
    serve(DEVICES)
    serve(DEVICES[:4], socket="another.sock")
    ward.names("TwoPluginsOneResource", "L3", "another.sock", "nvidia.com-gpu.sock")
    assert ward.account()["partsAt"] == "plugin"


def test_a_checkpoint_that_is_damaged(
    ward: Ward, admin: Admin, namespace: str, plugin: subprocess.Popen[str]
) -> None:
    admin.create(ward.node.pod("holds", namespace, "sleep 600", gpus=2))
    path = f"/api/v1/namespaces/{namespace}/pods/holds"
    admin.until(lambda: admin.get(path)["status"].get("phase") == "Running", 30, "it runs")
    checkpoint = ward.node.device_plugins / "kubelet_internal_checkpoint"
    checkpoint.write_bytes(checkpoint.read_bytes()[: -len(checkpoint.read_bytes()) // 2])
    ward.names("CheckpointCorrupt", "L3")


def test_a_handler_that_the_runtime_does_not_know(
    ward: Ward, admin: Admin, namespace: str, plugin: subprocess.Popen[str]
) -> None:
    """The RuntimeClass is there, what it names is not."""
    runtime_class = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}}
    admin.apply(runtime_class | {"handler": "nvidia"})
    try:
        admin.create(ward.node.pod("wants", namespace, "sleep 600", gpus=1, runtimeClassName="nvidia"))
        events = f"/api/v1/namespaces/{namespace}/events"

        def refused() -> bool:
            return any(one["reason"] == "FailedCreatePodSandBox" for one in admin.items(events))

        admin.until(refused, 30, "the sandbox is refused")
        told = ward.names("RuntimeHandlerMissing", "L2")
        assert told["cause_class"] == "runtime-config"
    finally:
        admin.delete("/apis/node.k8s.io/v1/runtimeclasses/nvidia")


def test_a_configuration_of_the_runtime_that_is_broken(ward: Ward, plugin: subprocess.Popen[str]) -> None:
    """What containerd reads at its next start: a table that is opened and not closed."""
    folder = ward.root / "etc/containerd"
    folder.mkdir(parents=True)
    table = 'plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia'
    (folder / "config.toml").write_text(f"version = 2\n[{table}\n")
    told = ward.names("ContainerdConfigRefused", "L2")
    assert told["cause_class"] == "runtime-config"
