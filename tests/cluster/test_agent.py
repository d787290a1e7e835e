"""The node agent on a real kubelet with a real device plugin: what it sees, what it writes, and what it may not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster import Admin, Cluster
from devcluster.device_plugin import DevicePlugin
from devcluster.real_node import RealNode

ROOT = Path(__file__).parents[2]
GPU = "nvidia.com/gpu"


def settings_of(node: RealNode, root: Path) -> list[str]:
    """The paths of a real node, whose folders lie where its kubelet keeps them; the rest is a made-up machine."""
    values = {
        "node": node.name,
        "paths.root": root,
        "paths.kubelet": node.kubelet_folder,
        "paths.logs": node.folder / "var-log",
        "paths.proc": "/proc",
        "looks.socketSeconds": 1,
    }
    return [part for path, value in values.items() for part in ("--set", f"{path}={value}")]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A root without a driver, whose bus nobody can look at: how many devices there are is the plugin's word alone."""
    root = tmp_path / "root"
    for folder in ("dev", "etc", "run"):
        (root / folder).mkdir(parents=True)
    return root


@pytest.fixture
def berth(cluster: Cluster, real_node: RealNode, machine: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """berth("--once", "-o", "json"): the command `berth agent` on the real node, as its administrator."""

    def run(*arguments: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "berth.app.cli.main", "agent", *settings_of(real_node, machine), *before]
        environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "BERTH_TRACEBACK": "1"}
        return subprocess.run(
            [*command, *arguments], capture_output=True, text=True, check=False, cwd=ROOT, env=environment, timeout=60
        )

    return run


def status_in(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stdout, done.stderr
    return dict(json.loads(done.stdout)["status"])


def boundary(status: dict[str, Any]) -> dict[str, Any]:
    (found,) = [one for one in status["boundaries"] if one["resource"] == GPU]
    return dict(found)


@pytest.fixture
def plugin_process(real_node: RealNode) -> Iterator[subprocess.Popen[str]]:
    """A device plugin of eight devices in a process of its own, so that it can be made to stand still."""
    command = [sys.executable, "-m", "devcluster", "device-plugin", "--folder", str(real_node.device_plugins)]
    plugin = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert plugin.stdout is not None and plugin.stdout.readline() == "registered\n"
        real_node.wait_allocatable(GPU, 8)
        yield plugin
    finally:
        plugin.kill()
        plugin.wait()


def test_the_opening_incident_is_told(
    berth: Callable[..., subprocess.CompletedProcess[str]], plugin_process: subprocess.Popen[str], real_node: RealNode
) -> None:
    """A plugin that stands still: the node goes on offering eight, and only who asks the plugin knows."""
    before = status_in(berth("--once", "-o", "json"))
    assert (boundary(before)["capacity"], boundary(before)["allocatable"]) == (8, 8)
    assert [one.get("problem") for one in before["plugins"]] == [None]
    assert len(before["offers"][0]["ids"]) == 8
    plugin_process.send_signal(signal.SIGSTOP)
    done = berth("--once", "-o", "json")
    after = status_in(done)
    assert done.returncode == 1
    assert [one["problem"] for one in after["plugins"]] == ["no answer within 1 s"]
    told = boundary(after)
    assert (told["capacity"], told["allocatable"], told["partsAt"]) == (8, 8, "Plugin")
    assert "gives no list (no answer within 1 s); the node still offers 8" in told["sentence"]
    assert (after["state"], after["code"]) == ("Suspect", "PluginSilent")
    table = berth("--once").stdout
    assert "parts at plugin" in table and "no answer within 1 s" in table
    probe = berth("probe", "--plugin", GPU)
    assert (probe.returncode, probe.stdout) == (1, "nvidia.com/gpu (nvidia.com-gpu.sock): no answer within 1 s\n")


def test_devices_of_a_pod_are_told_at_every_boundary(
    berth: Callable[..., subprocess.CompletedProcess[str]],
    admin: Admin,
    namespace: str,
    real_node: RealNode,
    device_plugin: DevicePlugin,
) -> None:
    """Given by the kubelet, and seen in the container's environment, without a right on pods."""
    admin.create(real_node.pod("train", namespace, "sleep 600", gpus=2))
    path = f"/api/v1/namespaces/{namespace}/pods/train"
    admin.until(lambda: admin.get(path)["status"].get("phase") == "Running", 30, "it runs")
    status = status_in(berth("--once", "-o", "json", before=("--set", "looks.listPlugins=true")))
    (given,) = status["given"]
    assert (given["pod"], given["container"], given["resource"]) == (f"{namespace}/train", "main", GPU)
    assert set(given["ids"]) == set(device_plugin.allocations[0].devices)
    (visible,) = status["visible"]
    assert (visible["pod"], visible["container"], set(visible["ids"])) == (given["pod"], "main", set(given["ids"]))
    (plugin,) = status["plugins"]
    assert plugin["resource"] == GPU and plugin["listed"] and len(plugin["devices"]) == 4
    told = boundary(status)
    assert (told["plugin"], told["capacity"], told["given"], told["visible"]) == (4, 4, 2, 2)
    assert "partsAt" not in told


def test_a_plugin_that_has_gone_is_told_apart_from_one_that_stands_still(
    berth: Callable[..., subprocess.CompletedProcess[str]], plugin_process: subprocess.Popen[str], real_node: RealNode
) -> None:
    plugin_process.kill()
    plugin_process.wait()
    real_node.wait_allocatable(GPU, 0)
    status = status_in(berth("--once", "-o", "json"))
    assert [one["problem"] for one in status["plugins"]] == ["refused: nobody listens on the socket"]
    assert boundary(status)["partsAt"] == "Plugin"


def test_an_unhealthy_device_is_told_where_the_list_is_asked_for(
    berth: Callable[..., subprocess.CompletedProcess[str]], real_node: RealNode, device_plugin: DevicePlugin
) -> None:
    device_plugin.set_health("GPU-00000001", False)
    real_node.wait_allocatable(GPU, 3)
    probe = berth("probe", "-o", "json")
    assert probe.returncode == 1
    (plugin,) = json.loads(probe.stdout)["plugins"]
    assert {one["id"]: one["healthy"] for one in plugin["devices"]}["GPU-00000001"] is False
    assert sum(one["healthy"] for one in plugin["devices"]) == 3
    quiet = berth("probe", "--no-list")
    assert (quiet.returncode, quiet.stdout) == (0, f"{GPU} (nvidia.com-gpu.sock): answers\n")


def test_a_bundle_is_read_by_the_ledger(
    berth: Callable[..., subprocess.CompletedProcess[str]],
    plugin_process: subprocess.Popen[str],
    real_node: RealNode,
    tmp_path: Path,
) -> None:
    plugin_process.send_signal(signal.SIGSTOP)
    target = tmp_path / "node.tar.gz"
    done = berth("bundle", str(target), "--no-commands")
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-m", "berth.app.cli.main", "ledger", "--from", str(target), "-o", "json"]
    read = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    (account,) = json.loads(read.stdout)["accounts"]
    assert (account["node"], account["resource"], account["partsAt"]) == (real_node.name, GPU, "plugin")
