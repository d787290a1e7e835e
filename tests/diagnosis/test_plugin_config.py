"""Configuration of the device plugin, of the kubelet, what it remembers, and the validator's files."""

from __future__ import annotations

import pytest

from berth.evidence.facts import Facts
from berth.evidence.formats.kubelet_files import Checkpoint, DeviceHeld, KubeletConfig
from berth.evidence.formats.plugin_config import PluginConfig, SharedResource
from berth.evidence.formats.validations import ValidationFiles
from berth.evidence.piece import Piece
from berth.evidence.read import read


def of(text: str) -> Facts:
    return read([Piece(text.encode(), source="text")])


def test_a_file() -> None:
    (config,) = of(
        "version: v1\nflags:\n  migStrategy: mixed\nsharing:\n  timeSlicing:\n    renameByDefault: true\n"
        "    failRequestsGreaterThanOne: false\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 10\n"
        "    - name: nvidia.com/mig-1g.5gb\n      replicas: 2\n"
    ).of(PluginConfig)
    assert (config.kind, config.mig_strategy, config.renames, config.refuses_more_than_one) == (
        "timeSlicing", "mixed", True, False,
    )  # fmt: skip
    assert config.resources == (SharedResource("nvidia.com/gpu", 10), SharedResource("nvidia.com/mig-1g.5gb", 2))
    assert config.replicas == 10
    assert not config.is_in_effect and config.misplaced == ()


def test_a_config_map_is_as_many_as_it_has_keys() -> None:
    configs = of(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: sharing\n  namespace: gpu-operator\ndata:\n  a100: |-\n"
        "    version: v1\n    sharing:\n      timeSlicing:\n        resources:\n        - name: nvidia.com/gpu\n"
        "          replicas: 8\n  t4: |-\n    version: v1\n    sharing:\n      mps:\n        resources:\n"
        "        - name: nvidia.com/gpu\n          replicas: 4\n"
    ).of(PluginConfig)
    assert {(config.key, config.kind, config.replicas) for config in configs} == {
        ("a100", "timeSlicing", 8), ("t4", "mps", 4),
    }  # fmt: skip


PRINTED = """\
I0101 12:00:00.000001       1 main.go:276]
Running with config:
{
  "version": "v1",
  "flags": {
    "migStrategy": "none",
    "plugin": {
      "deviceListStrategy": [
        "envvar"
      ]
    }
  },
  "resources": {
    "gpus": [
      {
        "pattern": "*",
        "name": "nvidia.com/gpu"
      }
    ]
  },
  "sharing": {
    "timeSlicing": {}
  }
}
I0101 12:00:01.000001       1 main.go:279] Retrieving plugins.
"""


def test_what_the_plugin_prints_is_in_effect() -> None:
    (config,) = of(PRINTED).of(PluginConfig)
    assert config.is_in_effect
    assert (config.mig_strategy, config.replicas, config.renames) == ("none", 0, None)


@pytest.mark.parametrize(
    ("text", "misplaced"),
    [
        ("flags:\n  renameByDefault: true\nsharing:\n  timeSlicing:\n    resources: [...]", ("flags.renameByDefault",)),
        ("sharing:\n  failRequestsGreaterThanOne: true\n  mps:\n", ("sharing.failRequestsGreaterThanOne",)),
        ("sharing:\n  timeSlicing:\n    renameByDefault: true\n", ()),
    ],
)  # fmt: skip
def test_options_under_the_wrong_heading(text: str, misplaced: tuple[str, ...]) -> None:
    (config,) = of(text).of(PluginConfig)
    assert config.misplaced == misplaced


def test_replicas_of_a_deployment_are_none_of_a_device() -> None:
    assert of("apiVersion: apps/v1\nkind: Deployment\nspec:\n  replicas: 3\n").of(PluginConfig) == []


def test_configuration_of_the_kubelet() -> None:
    (config,) = of(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncpuManagerPolicy: static\n"
        "topologyManagerPolicy: single-numa-node\ntopologyManagerScope: pod\nfeatureGates:\n"
        "  DynamicResourceAllocation: true\n"
    ).of(KubeletConfig)
    assert (config.cpu_manager, config.topology_manager, config.topology_scope) == ("static", "single-numa-node", "pod")
    assert config.gates == {"DynamicResourceAllocation": True}
    (flags,) = of("kubelet --root-dir=/data/kubelet --cpu-manager-policy=none").of(KubeletConfig)
    assert (flags.root_dir, flags.cpu_manager) == ("/data/kubelet", "none")


CHECKPOINT = (
    '{"Data":{"PodDeviceEntries":[{"PodUID":"p1","ContainerName":"main","ResourceName":"nvidia.com/gpu",'
    '"DeviceIDs":{"-1":["GPU-1::0"],"0":["GPU-2::1"]},"AllocResp":"CkIK"}],'
    '"RegisteredDevices":{"nvidia.com/gpu":["GPU-1::0","GPU-2::1"]}},"Checksum":4242}'
)


def test_checkpoint_whole_and_cut_off() -> None:
    (whole,) = of(CHECKPOINT).of(Checkpoint)
    assert whole.is_whole and whole.checksum == 4242
    assert whole.held == (DeviceHeld("p1", "main", "nvidia.com/gpu", ("GPU-1::0", "GPU-2::1")),)
    assert whole.registered == {"nvidia.com/gpu": ("GPU-1::0", "GPU-2::1")}
    assert whole.twice() == []
    (cut,) = of(CHECKPOINT[:150]).of(Checkpoint)
    assert not cut.is_whole
    assert [(one.pod_uid, one.container) for one in cut.held] == [("p1", "main")]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("cuda-ready  driver-ready  toolkit-ready\n", ("cuda-ready", "driver-ready", "toolkit-ready")),
        ("total 0\n-rw-r--r-- 1 root root 0 Mar 10 03:30 driver-ready\n", ("driver-ready",)),
        ("$ ls -a /run/nvidia/validations\n.driver-ctr-ready\ndriver-ready\n", (".driver-ctr-ready", "driver-ready")),
        ("$ ls /run/nvidia/validations\n", ()),
    ],
)  # fmt: skip
def test_files_of_the_validator(text: str, names: tuple[str, ...]) -> None:
    (files,) = of(text).of(ValidationFiles)
    assert files.names == names


def test_a_path_in_a_script_is_no_listing() -> None:
    assert of("until [ -f /run/nvidia/validations/toolkit-ready ]; do sleep 5; done").of(ValidationFiles) == []
