"""CDI devices that cannot be resolved, on a real kubelet with containerd 2.4.2 and runc 1.5.3: a device plugin answers
with names, a specification says what they are, and containers get what it says, or are not created.

The devices are /dev/null by another name; the library that is mounted is a text.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import leave_out_unless_required
from devcluster import Admin, Cluster
from devcluster.binaries import MissingBinaries
from devcluster.device_plugin import DevicePlugin
from devcluster.real_node import RealNode, missing
from devcluster.runtimes import CONTAINERD_2
from ward import DEVICES, GPU, Ward, machine_root

LIBRARY = "usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05"
SHOWS = "env; ls /dev; cat /usr/lib/libcuda.so.1"
LOST = f"{GPU}={DEVICES[3]}"


@dataclass
class CdiWard(Ward):
    """A machine with a driver's files, and with a specification of its devices where its containerd looks."""

    def specification(self) -> dict[str, Any]:
        """As `nvidia-ctk cdi generate` writes one, as far as the device files and one library go."""
        devices = [
            {
                "name": name,
                "containerEdits": {"deviceNodes": [self._node(f"nvidia{number}")], "env": [f"CDI_{number}=x"]},
            }
            for number, name in enumerate(DEVICES)
        ]
        library = {"hostPath": str(self.root / LIBRARY), "containerPath": "/usr/lib/libcuda.so.1"}
        common = {
            "deviceNodes": [self._node(name) for name in ("nvidiactl", "nvidia-uvm")],
            "mounts": [library | {"options": ["ro", "nosuid", "nodev", "bind"]}],
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],
        }
        return {"cdiVersion": "0.6.0", "kind": GPU, "devices": devices, "containerEdits": common}

    def writes(self, specification: dict[str, Any] | str, name: str = "nvidia.json") -> None:
        """As whoever generates one does: whole, or not at all."""
        text = specification if isinstance(specification, str) else json.dumps(specification)
        new = self.node.cdi_specs / f"{name}.new"
        new.write_text(text)
        new.rename(self.node.cdi_specs / name)

    def runs(self, namespace: str, name: str) -> str:
        """What a container of a pod with all devices prints; the devices are free again when this returns."""
        self.asks(namespace, name, SHOWS)
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        admin = self.cluster.admin
        admin.until(lambda: admin.get(path)["status"].get("phase") == "Succeeded", 30, f"{name} has run")
        return self.node.output(namespace, name)

    def asks(self, namespace: str, name: str, command: str = "sleep 600") -> None:
        self.cluster.admin.create(self.node.pod(name, namespace, command, gpus=len(DEVICES)))

    def _node(self, name: str) -> dict[str, str]:
        return {"path": f"/dev/{name}", "hostPath": str(self.root / "dev" / name)}


@pytest.fixture
def cdi_node(cluster: Cluster) -> Iterator[RealNode]:
    """A node with a runtime that knows CDI, which Go builds where that has not happened yet."""
    leave_out_unless_required(missing(CONTAINERD_2))
    node = RealNode(cluster, runtime=CONTAINERD_2)
    try:
        node.start()
    except MissingBinaries as absent:
        leave_out_unless_required(str(absent))
    yield node
    node.stop()


@pytest.fixture
def ward(cluster: Cluster, cdi_node: RealNode, tmp_path: Path) -> Iterator[CdiWard]:
    root = machine_root(tmp_path)
    for name in ("nvidiactl", "nvidia-uvm", *(f"nvidia{number}" for number in range(len(DEVICES)))):
        os.mknod(root / "dev" / name, 0o666 | stat.S_IFCHR, Path("/dev/null").stat().st_rdev)
    (root / LIBRARY).parent.mkdir(parents=True)
    (root / LIBRARY).write_text("the driver's library\n")
    (root / "run" / "cdi").symlink_to(cdi_node.cdi_specs)
    (root / "etc" / "containerd").mkdir()
    (root / "etc" / "containerd" / "config.toml").write_text(cdi_node.containerd_config.read_text())
    ward = CdiWard(cluster, cdi_node, root, tmp_path)
    ward.writes(ward.specification())
    with DevicePlugin(cdi_node.device_plugins, devices=DEVICES, cdi_kind=GPU):
        cdi_node.wait_allocatable(GPU, len(DEVICES))
        yield ward


def evidence_of(found: dict[str, Any]) -> str:
    return "\n".join(f"{one['source']}: {one['text']}" for one in found["evidence"])


def test_containers_get_what_the_specification_says(ward: CdiWard, admin: Admin, namespace: str) -> None:
    said = ward.runs(namespace, "shows").splitlines()
    assert {"NVIDIA_VISIBLE_DEVICES=void", *(f"CDI_{number}=x" for number in range(8))} <= set(said)
    assert {"nvidiactl", "nvidia-uvm", *(f"nvidia{number}" for number in range(8))} <= set(said)
    assert said[-1] == "the driver's library"

    ward.asks(namespace, "stays")
    path = f"/api/v1/namespaces/{namespace}/pods/stays"
    admin.until(lambda: admin.get(path)["status"].get("phase") == "Running", 30, "it runs")
    account = ward.account()
    assert [account[each] for each in ("host", "plugin", "capacity", "allocatable", "requested", "visible")] == [8] * 6
    assert account["partsAt"] is None
    assert [(one["code"], evidence_of(one)) for one in ward.told()["findings"]] == []


def test_a_device_that_the_specification_has_lost(ward: CdiWard, namespace: str) -> None:
    """Written anew while one GPU did not answer: the plugin goes on to hand it out."""
    ward.runs(namespace, "before")
    specification = ward.specification()
    del specification["devices"][3]
    ward.writes(specification)
    ward.asks(namespace, "after")
    found = ward.names("CdiDeviceUnresolvable", "L2", LOST, "nvidia.json has 7 devices")
    assert found["cause_class"] == "cdi"
    seen = evidence_of(found)
    assert f"CDI device injection failed: unresolvable CDI devices {LOST}" in seen
    # Whichever of the two was there when it was looked at first.
    assert ("Event" in seen or f"Pod {namespace}/after" in seen) and "run_cdi_nvidia.json" in seen
    # Up to the request all is well; the container, which would show it, is not there.
    account = ward.account()
    assert [account[each] for each in ("host", "plugin", "capacity", "allocatable", "requested")] == [8] * 5
    assert account["visible"] is None
    assert {one["request"] for one in account["devices"]} == {f"{namespace}/after"}


def test_a_specification_that_is_gone(ward: CdiWard, namespace: str) -> None:
    """/run is empty after a boot, and nothing has written it anew."""
    ward.runs(namespace, "before")
    (ward.node.cdi_specs / "nvidia.json").unlink()
    ward.asks(namespace, "after")
    found = ward.names("CdiDeviceUnresolvable", "L2", f"No specification that the runtime reads defines {GPU}=GPU-")
    assert found["cause_class"] == "cdi"
    assert "unresolvable CDI devices" in evidence_of(found)


def test_a_specification_that_breaks_off(ward: CdiWard, namespace: str) -> None:
    ward.runs(namespace, "before")
    ward.writes(json.dumps(ward.specification())[:-80])
    ward.asks(namespace, "after")
    found = ward.names("CdiSpecInvalid", "L2", 'failed to parse CDI Spec "/var/run/cdi/nvidia.json"')
    assert found["cause_class"] == "cdi"
    assert "CDI registry refresh failed" in evidence_of(found)
    consequences = {one["code"]: one["explained_by"] for one in ward.told()["consequences"]}
    assert consequences["CdiDeviceUnresolvable"] == "CdiSpecInvalid"


def test_two_specifications_of_one_device(ward: CdiWard, namespace: str) -> None:
    """The former file was not removed: neither counts."""
    ward.runs(namespace, "before")
    ward.writes(ward.specification(), "former.json")
    ward.asks(namespace, "after")
    found = ward.names("CdiSpecConflict", "L2", "is defined twice", "former.json", "nvidia.json")
    assert found["cause_class"] == "cdi"


def test_a_specification_of_the_former_driver(ward: CdiWard, namespace: str) -> None:
    """The driver is another one since, and its library has another name."""
    ward.runs(namespace, "before")
    (ward.root / LIBRARY).rename((ward.root / LIBRARY).with_name("libcuda.so.590.48.01"))
    ward.asks(namespace, "after")
    found = ward.names("CdiSpecStale", "L2", "libcuda.so.580.95.05 does not exist")
    assert found["cause_class"] == "cdi"
    assert "failed to fulfil mount request" in evidence_of(found)
