"""What runs a real node's containers: Debian's containerd 1.6, or containerd 2.4, which knows CDI.

A runtime is programs that node_init finds in its PATH, and their configuration.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from devcluster import binaries
from devcluster.busybox_image import IMAGE, MACHINES

CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))


@dataclass(frozen=True)
class Runtime:
    """containerd, its shim, ctr and runc. `config` writes config.toml for the folder of a node.

    `built` are the programs that Go builds, `packaged` the others, of Debian's `packages`.
    """

    name: str
    config: Callable[[Path], str]
    packaged: tuple[str, ...]
    packages: str
    built: tuple[str, ...] = ()

    def path(self) -> str:
        """PATH with the runtime's own programs first. Minutes where they have to be built. Raises MissingBinaries."""
        folders = dict.fromkeys(str(binaries.program(name).parent) for name in self.built)
        return os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])

    def missing(self) -> str:
        """Which packages are absent, and how they are had; empty where none is."""
        absent = [name for name in self.packaged if not shutil.which(name)]
        if absent or cni_folder() is None:
            return f"A real node needs {', '.join(absent) or 'CNI plugins'}: apt-get install {self.packages}"
        return ""


def cni_folder() -> Path | None:
    return next((folder for folder in CNI_FOLDERS if (folder / "ptp").exists()), None)


def _config_of_1(node: Path) -> str:
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "/run/containerd/containerd.sock"
[{cri}]
  sandbox_image = "{IMAGE}"
  restrict_oom_score_adj = true  # without CAP_SYS_RESOURCE runc dies when it may not lower a score
[{cri}.cni]
  bin_dir = "{cni_folder()}"
  conf_dir = "{node / "cni"}"
[{cri}.containerd]
  snapshotter = "native"  # overlay does not lie on overlay
"""


def _config_of_2(node: Path) -> str:
    """CDI is always on from 2.4, which knows no `enable_cdi` any more. Source: containerd, docs/cri/config.md."""
    cri = 'plugins."io.containerd.cri.v1'
    machine = MACHINES.get(platform.machine(), platform.machine())
    return f"""version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[{cri}.images"]
  snapshotter = "native"  # overlay does not lie on overlay
[{cri}.images".pinned_images]
  sandbox = "{IMAGE}"
[{cri}.runtime"]
  restrict_oom_score_adj = true  # without CAP_SYS_RESOURCE runc dies when it may not lower a score
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
[{cri}.runtime".cni]
  bin_dirs = ["{cni_folder()}"]
  conf_dir = "{node / "cni"}"
[[plugins."io.containerd.transfer.v1.local".unpack_config]]
  platform = "linux/{machine}"
  snapshotter = "native"
"""


DEBIAN = Runtime(
    name="containerd 1.6",
    config=_config_of_1,
    packaged=("containerd", "runc", "busybox"),
    packages="containerd runc containernetworking-plugins busybox-static",
)
CONTAINERD_2 = Runtime(
    name="containerd 2.4",
    config=_config_of_2,
    packaged=("busybox",),
    packages="containernetworking-plugins busybox-static",
    built=("containerd", "runc"),
)
