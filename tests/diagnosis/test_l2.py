"""Layer 2: what decides between findings that look alike, what is no finding, and which finding explains which."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from asked import codes, of_text

from berth.diagnosis.diagnose import Diagnosis, diagnose
from berth.diagnosis.words import Layer
from berth.evidence.message import Message
from berth.evidence.messages import MESSAGES
from berth.evidence.piece import piece
from berth.evidence.read import read

SAMPLES = Path(os.environ.get("BERTH_DATA", "")) / "samples"


def of(*pieces: tuple[str, str]) -> Diagnosis:
    return diagnose(read([piece(text, source=source) for source, text in pieces]))


def of_layer_2(diagnosis: Diagnosis) -> list[str]:
    return [one.code for one in diagnosis.findings if one.layer == Layer.L2]


@pytest.mark.parametrize(
    "message",
    [one for one in MESSAGES if one.name.startswith(("runtime.", "cgroup.", "cdi.", "toolkit."))],
    ids=lambda one: one.name,
)
def test_a_long_line_is_looked_at_in_no_time(message: Message) -> None:
    """No pattern goes over the line again and again: a minified file is one line of what the scanner takes."""
    began = time.process_time()
    for filler in ("a ", "/x", "nvidia ", "/etc/cdi spec "):
        half = filler * (8_000 // len(filler))
        for anchor in message.anchors:
            message.compiled.search(f"{half}{anchor}{half}")
    assert time.process_time() - began < 5.0


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="BERTH_DATA has no samples")
@pytest.mark.parametrize("folder", ["containerd-config", "kubectl", "host", "dra"])
def test_configurations_that_are_right_are_no_finding(folder: str) -> None:
    for sample in sorted((SAMPLES / folder).iterdir()):
        assert of_layer_2(of((sample.name, sample.read_text(errors="replace")))) == [], sample.name


POD_OF_NVIDIA = """{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"},
"spec": {"runtimeClassName": "nvidia"}, "status": {"phase": "Pending"}}"""

HEALTHY_TOOLKIT = """
time="2024-06-03T10:46:29Z" level=info msg="Skipping library candidate '/run/nvidia/driver/usr/lib64/libnvidia-ml.so': error resolving link '/run/nvidia/driver/usr/lib64/libnvidia-ml.so': lstat /run/nvidia/driver/usr/lib64/libnvidia-ml.so: no such file or directory"
time="2024-06-03T10:46:29Z" level=info msg="Installed '/usr/local/nvidia/toolkit/nvidia-container-runtime.cdi.real'"
time="2024-06-03T10:46:29Z" level=info msg="Flushing config to /etc/containerd/config.toml"
time="2024-06-03T10:46:29Z" level=info msg="Sending SIGHUP signal to containerd"
time="2024-06-03T10:46:29Z" level=info msg="Successfully signaled containerd"
time="2024-06-03T10:46:29Z" level=info msg="Completed 'setup' for containerd"
"""  # noqa: E501

HEALTHY_NVC = """
I0620 19:28:50.255712 7268 nvc.c:376] initializing library context (version=1.10.0, build=395fd41)
I0620 19:28:50.255801 7268 nvc.c:393] attempting to load dxcore to see if we are running under WSL
I0620 19:28:50.255949 7268 nvc.c:395] dxcore initialization failed, continuing assuming a non-WSL environment
W0620 19:28:50.257621 7269 nvc.c:273] failed to set inheritable capabilities
I0620 19:28:50.264525 7268 nvc_info.c:173] selecting /usr/lib/x86_64-linux-gnu/libnvoptix.so.495.29.05
"""

HEALTHY_CONTAINERD = """
level=info msg="loading plugin \\"io.containerd.grpc.v1.cri\\"..." type=io.containerd.grpc.v1
level=info msg="Start cri plugin with config {PluginConfig:{ContainerdConfig:{DefaultRuntimeName:nvidia}}}"
time="2025-03-01T10:00:00Z" level=info msg="containerd successfully booted in 0.1s"
"""

HEALTHY_GENERATE = """
INFO[0000] Using /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.120
WARN[0000] Ignoring error in locating libnvidia-sandboxutils.so.1: pattern libnvidia-sandboxutils.so.1 not found
INFO[0000] Auto-detected mode as 'nvml'
WARN[0000] Could not locate libnvidia-egl-wayland.so.*.*: pattern libnvidia-egl-wayland.so.*.* not found
INFO[0000] Generated CDI spec with version 0.8.0
"""


@pytest.mark.parametrize("text", [HEALTHY_TOOLKIT, HEALTHY_NVC, HEALTHY_CONTAINERD, HEALTHY_GENERATE])
def test_healthy_logs_are_no_finding(text: str) -> None:
    assert of_layer_2(of_text(text)) == []


def test_a_complete_specification_is_no_finding() -> None:
    spec = """
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits: {deviceNodes: [{path: /dev/nvidia0}]}
containerEdits:
  deviceNodes: [{path: /dev/nvidiactl}, {path: /dev/nvidia-uvm}, {path: /dev/nvidia-uvm-tools}]
"""
    assert of_layer_2(of(("/var/run/cdi/nvidia.yaml", spec))) == []


def test_a_runtime_that_is_not_default_is_none_where_pods_name_it() -> None:
    config = """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
"""
    log = "Failed to initialize NVML: could not load NVML library."
    pod = (
        '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"a"},"spec":{"runtimeClassName":"nvidia"}}'
    )
    assert "NvidiaRuntimeNotDefault" in codes(of(("config.toml", config), ("log", log)))
    assert "NvidiaRuntimeNotDefault" not in codes(of(("config.toml", config), ("log", log), ("pods", pod)))
    assert "NvidiaRuntimeNotDefault" not in codes(of(("config.toml", config)))


def test_a_handler_that_a_pod_names_and_the_configuration_lacks() -> None:
    info = """{"status": {"conditions": [{"type": "RuntimeReady", "status": true}]}, "config": {"containerd":
    {"defaultRuntimeName": "runc", "runtimes": {"runc": {"runtimeType": "io.containerd.runc.v2"}}}}}"""
    pod = POD_OF_NVIDIA
    assert "RuntimeHandlerMissing" in codes(of(("crictl info", info), ("pods", pod)))
    assert "RuntimeHandlerMissing" not in codes(of(("crictl info", info.replace("runc", "nvidia")), ("pods", pod)))


def test_the_directory_that_is_not_searched() -> None:
    config = 'version = 3\n[plugins."io.containerd.cri.v1.runtime"]\nenable_cdi = true\ncdi_spec_dirs = ["/etc/cdi"]\n'
    spec = '{"cdiVersion": "0.5.0", "kind": "a.b/c", "devices": [{"name": "0", "containerEdits": {}}]}'
    assert "CdiDirectoryNotSearched" in codes(of(("/etc/containerd/config.toml", config), ("/run/cdi/a.json", spec)))
    both = config.replace('["/etc/cdi"]', '["/etc/cdi", "/var/run/cdi"]')
    assert "CdiDirectoryNotSearched" not in codes(of(("/etc/containerd/config.toml", both), ("/run/cdi/a.json", spec)))


def test_two_files_of_one_directory_with_one_name() -> None:
    spec = '{"cdiVersion": "0.5.0", "kind": "a.b/c", "devices": [{"name": "0", "containerEdits": {}}]}'
    assert "CdiSpecConflict" in codes(of(("/etc/cdi/a.json", spec), ("/etc/cdi/b.json", spec)))
    assert "CdiSpecConflict" not in codes(of(("/etc/cdi/a.json", spec), ("/var/run/cdi/a.json", spec)))


def test_the_operators_own_name_is_told_from_a_workloads() -> None:
    workload = of_text("unresolvable CDI devices management.nvidia.com/gpu=GPU-1f2e")
    assert codes(workload) & {"CdiManagementNameForWorkload", "CdiDeviceUnresolvable"} == {
        "CdiManagementNameForWorkload"
    }
    operand = of_text("unresolvable CDI devices management.nvidia.com/gpu=all: unknown")
    assert codes(operand) & {"CdiManagementNameForWorkload", "CdiDeviceUnresolvable"} == {"CdiDeviceUnresolvable"}
    assert operand.unconfirmed


def test_pending_pods_follow_from_one_missing_file() -> None:
    """The chain of a node whose toolkit never wrote the operator's specification."""
    found = of(
        ("events", "Error: container create failed: failed to inject CDI devices: unresolvable CDI devices "
                   "management.nvidia.com/gpu=all"),
        ("scheduler", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
    )  # fmt: skip
    assert found.findings[0].code == "CdiDeviceUnresolvable"
    assert found.findings[0].layer == Layer.L2


def test_a_plugin_that_is_ended_from_outside_is_explained_by_the_handler() -> None:
    config = """[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
"""
    kubelet = (
        'E0210 10:26:29.794844 1 client.go:83] "ListAndWatch ended unexpectedly for device plugin" '
        'err="rpc error: code = Unavailable desc = error reading from server: EOF"'
    )
    found = of(("config.toml", config), ("kubelet.log", kubelet))
    assert found.findings[0].code == "CgroupDriverMismatch"
    assert found.findings[0].cause_class == "cgroup"
    assert "CgroupDriverMismatch" not in codes(of(("config.toml", config + "SystemdCgroup = true\n")))


def test_no_cgroups_makes_sure_of_the_cause() -> None:
    toolkit = "[nvidia-container-cli]\nno-cgroups = true\n"
    (alone,) = [one for one in of_text("Failed to initialize NVML: Unknown Error").findings if one.layer == Layer.L2]
    found = of(("config.toml", toolkit), ("pod", "Failed to initialize NVML: Unknown Error"))
    (with_setting,) = [one for one in found.findings if one.code == alone.code]
    assert with_setting.confidence > alone.confidence
    assert "no-cgroups" in with_setting.cause


def test_findings_are_of_their_node() -> None:
    text = 'no runtime for "nvidia" is configured'
    found = diagnose(read([piece(text, "events", "e1", node="a"), piece(text, "events", "e2", node="b")]))
    assert sorted(one.node for one in found.findings if one.code == "RuntimeHandlerMissing") == ["a", "b"]


def test_a_file_that_nobody_reads_is_none_where_nobody_misses_it() -> None:
    config = """version = 2
disabled_plugins = ["cri"]
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
"""
    node = """{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"nodeInfo":
    {"kubeletVersion": "v1.33.1+k3s1", "containerRuntimeVersion": "containerd://2.0.4-k3s2"}}}"""
    here = ("/etc/containerd/config.toml", config)
    assert of_layer_2(of(here, ("nodes", node))) == []
    missed = ("events", 'no runtime for "nvidia" is configured')
    assert "RuntimeConfigInWrongFile" in codes(of(here, ("nodes", node), missed))


def test_annotations_are_read_by_the_nvidia_runtime_itself() -> None:
    node = """{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"nodeInfo":
    {"containerRuntimeVersion": "containerd://1.6.28"}}}"""
    config = """[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "nvidia"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "/usr/local/nvidia/toolkit/nvidia-container-runtime"
"""
    plugin = ("plugin.log", '"deviceListStrategy": ["cdi-annotations"],')
    assert "CdiSwitchedOff" not in codes(of(("config.toml", config), ("nodes", node), plugin))
    assert "CdiSwitchedOff" in codes(of(("nodes", node), ("plugin.log", '"deviceListStrategy": ["cdi-cri"],')))


def test_a_drop_in_that_the_main_file_does_not_import() -> None:
    drop_in = (
        "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]\n"
        "runtime_type = 'io.containerd.runc.v2'\n"
        "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]\n"
        "BinaryName = '/usr/bin/nvidia-container-runtime'\n"
    )
    event = ("events", 'no runtime for "nvidia" is configured')
    for imports, expected in (("[]", True), ('["/etc/containerd/conf.d/*.toml"]', False)):
        main = f"version = 3\nimports = {imports}\n[grpc]\naddress = '/run/containerd/containerd.sock'\n"
        found = of(("/etc/containerd/config.toml", main), ("/etc/containerd/conf.d/99-nvidia.toml", drop_in), event)
        assert ("RuntimeConfigInWrongFile" in codes(found)) is expected


_CLI = "stderr: Auto-detected mode as 'legacy' nvidia-container-cli: "


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("creating symlinks: failed to create NVIDIA device nodes: failed to determine major: invalid device node",
         "ToolkitOlderThanDriver"),
        (f"{_CLI}mount error: failed to add device rules: unable to generate new device filter program from existing "
         "programs: unable to create new device filters program: load program: no space left on device",
         "DeviceFilterRejected"),
        (f"{_CLI}mount error: file creation failed: /run/containerd/x/rootfs/usr/lib64/libcuda.so.1: file exists",
         "ImageBringsDriverFiles"),
        (f"{_CLI}requirement error: unsatisfied condition: cuda>=12.6, please update your driver",
         "ImageNeedsNewerDriver"),
        (f"{_CLI}detection error: nvml error: unknown error", "UnhealthyGpuStopsContainers"),
        ("lstat /run/nvidia/driver/dev/nvidiactl: no such file or directory", "DriverRootEmpty"),
        ("Failed to initialize NVML: Unknown Error", "DevicesRevokedFromContainer"),
        ("failed to find runtime handler nvidia-cdi from runtime list map[crun:0xc000 runc:0xc001]",
         "RuntimeHandlerMissing"),
        ("unable to dial: dial unix /runtime/sock-dir/containerd.sock: connect: no such file or directory",
         "ToolkitCannotReachRuntime"),
        ("insufficient privileges to read device list from NVIDIA_VISIBLE_DEVICES envvar", "DeviceListRefused"),
    ],
)  # fmt: skip
def test_of_words_that_several_layers_know_the_cause_is_here(text: str, code: str) -> None:
    assert [one.code for one in of(("", text)).findings][:1] == [code]


@pytest.mark.parametrize(
    ("layer", "cause_class", "text"),
    [
        ("L2", "version-mismatch", "/usr/bin/nvidia-container-cli: symbol lookup error: undefined symbol: nvc_imex"),
        ("L2", "runtime-install", "nvidia-container-cli: error while loading shared libraries: libelf.so.1"),
        ("L2", "version-mismatch", "Error: stat nvidia.com/gpu=all: no such file or directory"),
        ("L2", "version-mismatch", "nvidia-container-cli: detection error: nvml error: function not found"),
        ("L2", "hw-fault", "nvidia-container-cli: detection error: nvml error: unknown error"),
        ("L2", "version-mismatch", "Error: unable to load config: unsupported config version: 3"),
        ("L2", "runtime-config", "Error: unable to load config: (3, 1): unexpected token"),
        ("L2", "cdi", "nvidia-cdi-hook create-symlinks failed: signal: illegal instruction (core dumped)"),
        ("L2", "permission", "unable to signal init: permission denied"),
        ("L2", "cdi", "failed to check if link exists: unexpected link target"),
        ("L2", "image", "nvidia-container-cli: mount error: file creation failed: /x/libcuda.so.1: file exists"),
        ("L2", "path-mount", "/driver-root (/ on host): nvidia-smi: '/bin/nvidia-smi', libnvidia-ml.so.1: not found"),
        ("L1", "driver-build", "nvidia-container-cli: detection error: cuda error: no cuda-capable device is detected"),
    ],
)
def test_what_has_to_be_mended(layer: str, cause_class: str, text: str) -> None:
    top = of_text(text).findings[0]
    assert (top.layer.name, top.cause_class) == (layer, cause_class)


def test_who_asks_for_tools_alone_may_want_no_more() -> None:
    assert codes(of_text("NVIDIA_DRIVER_CAPABILITIES=utility")) == set()
