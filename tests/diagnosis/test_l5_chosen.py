"""What somebody chose in a driver's or KubeVirt's settings is a fault only beside something that lacks it."""

from __future__ import annotations

import pytest
from asked import codes, of_case, of_text

PERMITTED = "spec:\n  configuration:\n    permittedHostDevices:\n      pciHostDevices: []\n"
CLASSES = "NAME                               AGE\ncompute-domain-daemon.nvidia.com   38m\n"
OFF = "resources:\n  gpus:\n    enabled: false\n  computeDomains:\n    enabled: true\n"


@pytest.mark.parametrize(
    "text",
    [
        OFF,
        CLASSES,
        OFF + CLASSES + "gpu.nvidia.com                     38m\n",
        PERMITTED,
        "apiVersion: kubevirt.io/v1\nkind: KubeVirt\n" + PERMITTED,
        "sudo nvidia-smi -mig 1\nsudo reboot\n",
    ],
)
def test_a_setting_by_itself_is_no_fault(text: str) -> None:
    assert codes(of_text(text)) == set()


def test_the_driver_that_serves_compute_domains_alone_has_no_class_for_gpus() -> None:
    assert "DeviceClassMissing" in codes(of_text(OFF + CLASSES))


def test_a_card_that_nobody_offers_beside_a_list_of_permitted_devices() -> None:
    found = of_text(
        "Insufficient [nvidia.com/TU104GL_Tesla_T4](http://nvidia.com/TU104GL_Tesla_T4)\n"
        "spec:\n  permittedHostDevices:\n    pciHostDevices:\n    - pciVendorSelector: 10de:1eb8\n"
    )
    assert found.findings[0].code == "HostDeviceNotPermitted"


def test_what_comes_back_with_a_restart_of_the_plugin_is_not_the_kubelets_account() -> None:
    assert "ResourceAtZero" not in codes(of_text("the GPU does not recover until the device plugin is restarted"))
    assert "XidMarkedUnhealthy" not in codes(of_text("we restarted the device plugin but the GPUs do not recover"))


MACHINE = """apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: bench, namespace: lab}
spec:
  domain:
    devices: {gpus: [{name: gpu1, deviceName: nvidia.com/GA102GL_A10}]}
    resources: {requests: {memory: 8Gi}, limits: {nvidia.com/GA102GL_A10: "1"}}
"""


def test_a_machine_with_its_device_is_no_fault() -> None:
    assert codes(of_text(MACHINE)) == set()
    assert codes(of_text(MACHINE.replace("gpus: [", "disks: [")))


def test_only_memory_is_asked_for_under_resources() -> None:
    without = MACHINE.replace('limits: {nvidia.com/GA102GL_A10: "1"}', "limits: {cpu: 2}").replace(
        "gpus: [", "disks: ["
    )
    assert codes(of_text(without)) == set()


def test_pieces_of_a_manifest_and_of_a_node() -> None:
    node = "Allocatable:\n  devices.kubevirt.io/kvm:   110\n  nvidia.com/GA100_A100_PCIE_40GB:  2\n  pods:  110\n"
    manifest = "resources:\n  limits:\n    nvidia.com/GA100_A100_PCIE_40GB: 1\n"
    pieces = [{"kind": "kubectl", "text": node}, {"kind": "", "text": manifest}]
    assert "VmAsksForDeviceAsResource" in codes(of_case({"evidence": pieces}))
    assert codes(of_case({"evidence": pieces[:1]})) == set()
    assert codes(of_case({"evidence": pieces[1:]})) == set()


def test_a_pod_that_is_larger_than_every_node_waits_for_that_and_for_nothing_else() -> None:
    node = (
        '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-%d"}, "status": '
        '{"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "%d"}}}'
    )
    pod = (
        '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train", "namespace": "a"}, "spec": {"containers": '
        '[{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "16"}}}]}, "status": {"phase": "Pending", '
        '"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": '
        '"0/2 nodes are available: 2 Insufficient nvidia.com/gpu."}]}}'
    )
    text = f'{{"apiVersion": "v1", "kind": "List", "items": [{node % (1, 8)}, {node % (2, 7)}, {pod}]}}'
    first = of_text(text).findings[0]
    assert (first.code, first.cause_class) == ("MoreDevicesThanNode", "scheduling-policy")
    assert "16" in first.cause and "8" in first.cause
