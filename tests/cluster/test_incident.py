"""The opening incident, and its kin, on a real kubelet with real device plugins: what breaks is named within ten
seconds, at its boundary, by evidence that was measured.

Each test breaks one thing, and then does what an operator does: a bundle of the node, the objects of the API server,
the doctor and the ledger over both.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from devcluster import Admin, Cluster
from devcluster.device_plugin import DevicePlugin
from devcluster.real_node import RealNode
from ward import DEVICES, GPU, ROOT, Ward, machine_root


@pytest.fixture
def ward(cluster: Cluster, real_node: RealNode, tmp_path: Path) -> Ward:
    return Ward(cluster, real_node, machine_root(tmp_path), tmp_path)


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
