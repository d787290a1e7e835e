"""Configurations of container runtimes are read in every version, whole or quoted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from berth.diagnosis.diagnose import diagnose
from berth.evidence.formats.container_facts import V1_TABLE, V2_TABLE, V3_TABLE, RuntimeConfig, ToolkitConfig
from berth.evidence.piece import Piece
from berth.evidence.read import read

SAMPLES = Path(os.environ.get("BERTH_DATA", "")) / "samples" / "containerd-config"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="BERTH_DATA has no samples")


def config(text: str, source: str = "") -> RuntimeConfig:
    (found,) = read([Piece(text.encode(), source=source)]).of(RuntimeConfig)
    return found


def sample(name: str) -> RuntimeConfig:
    return config((SAMPLES / name).read_text(), name)


@needs_samples
@pytest.mark.parametrize(
    ("name", "version", "tables", "handlers", "default", "enable_cdi"),
    [
        ("eks_containerd1_no-nvidia.toml", 2, (V2_TABLE,), ["runc"], "runc", True),
        ("eks_containerd1_nvidia.toml", 2, (V2_TABLE,), ["nvidia"], "nvidia", False),
        ("eks_containerd2_no-nvidia_config-v3.toml", 3, (V3_TABLE,), ["runc"], "runc", True),
        ("eks_containerd2_nvidia_config-v3.toml", 3, (V3_TABLE,), ["nvidia"], "nvidia", True),
        ("eks_containerd2_nvidia_config-v2.toml", 3, (V3_TABLE,), ["nvidia", "runc"], "nvidia", True),
        ("ctk_before_config-v3.toml", 3, (V3_TABLE,), ["runc"], "", None),
        ("ctk_after_config-v3.toml", 3, (V3_TABLE,), ["runc"], "", None),
        (
            "ctk_dropin_99-nvidia_config-v3.toml", 3, (V3_TABLE,),
            ["nvidia", "nvidia-cdi", "nvidia-legacy", "runc"], "", None,
        ),
    ],
)  # fmt: skip
def test_samples(
    name: str, version: int, tables: tuple[str, ...], handlers: list[str], default: str, enable_cdi: bool | None
) -> None:
    found = sample(name)
    assert (found.version, found.tables, found.default_handler) == (version, tables, default)
    assert [one.name for one in found.handlers] == handlers
    assert found.enable_cdi is enable_cdi


@needs_samples
def test_a_handler_of_a_sample() -> None:
    nvidia = sample("eks_containerd2_nvidia_config-v2.toml").handler("nvidia")
    assert nvidia is not None
    assert (nvidia.runtime_type, nvidia.binary) == ("io.containerd.runc.v2", "/usr/bin/nvidia-container-runtime")
    assert nvidia.systemd_cgroup is True
    assert sample("eks_containerd2_nvidia_config-v2.toml").cdi_dirs == ("/etc/cdi", "/var/run/cdi")
    assert sample("ctk_after_config-v3.toml").imports == ("/etc/containerd/conf.d/*.toml",)


def test_quoted_lines_are_read() -> None:
    found = config(
        'root@gpu-1:~# cat /var/lib/rancher/k3s/agent/etc/containerd/config.toml.tmpl\n{{ template "base" . }}\n\n'
        '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes."nvidia".options]\n'
        '  BinaryName = "/usr/local/nvidia/toolkit/nvidia-container-runtime"\n  SystemdCgroup = true\n  ...\n'
    )
    assert found.is_template
    assert not found.is_whole
    assert found.path == "/var/lib/rancher/k3s/agent/etc/containerd/config.toml.tmpl"
    assert found.tables == (V2_TABLE,)
    (nvidia,) = found.nvidia_handlers
    assert nvidia.systemd_cgroup is True
    assert nvidia.runtime_type == ""


def test_version_1_has_short_names() -> None:
    found = config(
        'disabled_plugins = ["cri"]\n[plugins.cri.containerd.default_runtime]\n'
        '  runtime_type = "io.containerd.runtime.v1.linux"\n  runtime_engine = "/usr/bin/nvidia-container-runtime"\n'
    )
    assert found.tables == (V1_TABLE,)
    assert found.disabled_plugins == ("cri",)
    assert found.handlers[0].binary == "/usr/bin/nvidia-container-runtime"


def test_a_list_over_several_lines_in_a_file_that_is_not_toml() -> None:
    found = config('imports = [\n  "/etc/k0s/containerd.d/nv.toml",\n  "/run/k0s/cri.toml",\n]\n[plugins]\n<snip>\n')
    assert found.imports == ("/etc/k0s/containerd.d/nv.toml", "/run/k0s/cri.toml")


def test_cri_o() -> None:
    found = config(
        '[crio.runtime]\ndefault_runtime = "crun"\ncgroup_manager = "systemd"\n[crio.runtime.runtimes.nvidia]\n'
        'runtime_path = "/usr/bin/nvidia-container-runtime"\nruntime_type = "oci"\n',
        "/etc/crio/crio.conf.d/99-nvidia.toml",
    )
    assert (found.engine, found.default_handler, found.cgroup_driver) == ("cri-o", "crun", "systemd")
    assert found.nvidia_handlers[0].binary == "/usr/bin/nvidia-container-runtime"


def test_docker() -> None:
    found = config(
        '{"runtimes": {"nvidia": {"args": [], "path": "nvidia-container-runtime"}},\n'
        '"exec-opts": ["native.cgroupdriver=cgroupfs"], "features": {"cdi": true}}',
        "/etc/docker/daemon.json",
    )
    assert (found.engine, found.cgroup_driver, found.enable_cdi, found.is_whole) == ("docker", "cgroupfs", True, True)
    assert found.default_handler == ""
    broken = config('"default-runtime": "nvidia",\n"runtimes": {\n "nvidia": {\n "path": "/usr/bin/nvidia-contai')
    assert broken.default_handler == "nvidia"


def test_crictl_info() -> None:
    found = config(
        '{"status": {"conditions": [{"type": "RuntimeReady", "status": true}]}, "config": {"containerd": '
        '{"defaultRuntimeName": "runc", "runtimes": {"runc": {"runtimeType": "io.containerd.runc.v2", "options": '
        '{"SystemdCgroup": true}}}}, "enableCDI": true, "cdiSpecDirs": ["/etc/cdi", "/var/run/cdi"]}}'
    )
    assert found.is_in_effect
    assert found.handler("nvidia") is None
    assert (found.enable_cdi, found.cdi_dirs) == (True, ("/etc/cdi", "/var/run/cdi"))


def test_the_toolkit_prints_its_configuration_between_lines_of_its_log() -> None:
    text = """Using config:
accept-nvidia-visible-devices-as-volume-mounts = false
accept-nvidia-visible-devices-envvar-when-unprivileged = true
[nvidia-container-cli]
  ldconfig = "@/run/nvidia/driver/sbin/ldconfig.real"
  root = "/run/nvidia/driver"
time="2024-02-13T23:34:47Z" level=info msg="Generating CDI spec for management containers"
[nvidia-container-runtime]
  mode = "cdi"
  runtimes = ["docker-runc", "runc", "crun"]
    [nvidia-container-runtime.modes.cdi]
      annotation-prefixes = ["nvidia.cdi.k8s.io/"]
      default-kind = "management.nvidia.com/gpu"
      spec-dirs = ["/etc/cdi", "/var/run/cdi"]
"""
    (found,) = read([Piece(text.encode())]).of(ToolkitConfig)
    assert (found.mode, found.driver_root) == ("cdi", "/run/nvidia/driver")
    assert found.accepts_volume_mounts is False
    assert found.cdi_default_kind == "management.nvidia.com/gpu"
    assert found.low_level_runtimes == ("docker-runc", "runc", "crun")
    assert found.no_cgroups is None


@pytest.mark.parametrize(
    "text", ["[plugins", "[plugins.]\n=\n[[[", "disabled_plugins = [", "[crio.\n\x00", '"runtimes": {']
)
def test_rubble_does_not_raise(text: str) -> None:
    read([Piece(text.encode())])


def drop_in(version: int) -> Piece:
    text = (
        f'version = {version}\n[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]\n'
        '  runtime_type = "io.containerd.runc.v2"\n'
        '  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options]\n'
        '    BinaryName = "/usr/local/nvidia/toolkit/nvidia-container-runtime"\n'
    )
    return Piece(text.encode(), "/etc/containerd/conf.d/99-nvidia.toml", "containerd-config")


def root_file(version: int) -> Piece:
    text = f'version = {version}\nimports = ["/etc/containerd/conf.d/*.toml"]\nroot = "/var/lib/containerd"\n'
    return Piece(text.encode(), "/etc/containerd/config.toml", "containerd-config")


@pytest.mark.parametrize(("root", "part", "refused"), [(2, 4, True), (2, 3, True), (3, 3, False), (4, 3, False)])
def test_a_drop_in_newer_than_its_root_is_told_before_the_restart(root: int, part: int, refused: bool) -> None:
    found = diagnose(read([root_file(root), drop_in(part)])).findings
    assert ("ContainerdConfigRefused" in {one.code for one in found}) is refused
