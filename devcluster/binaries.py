"""Where the programs are: a folder that the environment names, or a cache that Go fills.

`BERTH_DEVCLUSTER_BIN` names a folder with ready programs (etcd, kube-apiserver, ...; kwok, helm, containerd and runc
where they are needed). Without it they are built from pinned Go modules into `~/.cache/berth-devcluster/`, once for
each version.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from devcluster.options import DEFAULT_KUBERNETES

HERE = Path(__file__).parent
IN_ONE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
_C_PACKAGES = "gcc libc6-dev pkg-config libseccomp-dev"
_VERSION_PACKAGE = "k8s.io/component-base/version"


class MissingBinaries(Exception):
    """No program, and nothing here that could build it. The text says what to do."""


@dataclass(frozen=True)
class Tool:
    """Programs that are built as one Go module ships them. `folder` of devcluster pins its version."""

    folder: str
    module: str
    packages: tuple[str, ...]  # within the module; the last part is the program's name
    takes: str = "a minute"
    tags: str = ""
    c_library: str = ""  # as pkg-config calls it; with it the programs are built by a C compiler, too

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(f"{self.module}{package}".rpartition("/")[2] for package in self.packages)


TOOLS = (
    Tool("kwok", "sigs.k8s.io/kwok", ("/cmd/kwok",)),
    Tool("helm", "helm.sh/helm/v4", ("/cmd/helm",)),
    Tool(
        folder="containerd",
        module="github.com/containerd/containerd/v2",
        packages=("/cmd/containerd", "/cmd/containerd-shim-runc-v2", "/cmd/ctr"),
        takes="2 to 6 minutes",
    ),
    # Its first steps inside a namespace are C. Without seccomp it refuses every pod's sandbox of a kubelet.
    Tool("runc", "github.com/opencontainers/runc", ("",), tags="seccomp", c_library="libseccomp"),
)
_TOOL_OF = {program: tool for tool in TOOLS for program in tool.programs}


def program(name: str, kubernetes: str = DEFAULT_KUBERNETES) -> Path:
    """The path of a program, built where that has not happened yet. Raises MissingBinaries."""
    named = os.environ.get("BERTH_DEVCLUSTER_BIN")
    if named:
        path = Path(named) / name
        if not os.access(path, os.X_OK):
            raise MissingBinaries(f"BERTH_DEVCLUSTER_BIN={named} holds no program {name!r}.")
        return path
    if not _is_current(name, kubernetes):
        build(name, kubernetes)
    return _folder(name, kubernetes) / name


def build(name: str, kubernetes: str = DEFAULT_KUBERNETES) -> None:
    """Build the program, or wait for another process that builds it. Minutes the first time, seconds after."""
    go = shutil.which("go") or next((path for path in ("/usr/local/go/bin/go",) if os.access(path, os.X_OK)), None)
    if go is None:
        raise MissingBinaries(
            f"{name} is not built and there is no Go to build it. Install Go 1.26 or later, or name a folder in "
            f"BERTH_DEVCLUSTER_BIN that has it and the other programs: devcluster/README.md lists them."
        )
    tool = _TOOL_OF.get(name)
    if tool is not None and tool.c_library and (lacks := _lacks_c(tool.c_library)):
        raise MissingBinaries(f"{name} is not built and there is no {lacks} for it: apt-get install {_C_PACKAGES}")
    folder = _folder(name, kubernetes)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_current(name, kubernetes):
            return
        began = time.monotonic()
        minutes = tool.takes if tool else "about 7 minutes"
        print(f"devcluster: building {folder.name}, {minutes} on two cores the first time", file=sys.stderr)
        if tool is None:
            _build_components(go, folder, kubernetes)
        else:
            for program, package in zip(tool.programs, tool.packages, strict=True):
                package = f"{tool.module}{package}"
                flags = [f"-tags={tool.tags}"] if tool.tags else []
                _go_build(go, HERE / tool.folder, folder / program, package, *flags, with_c=bool(tool.c_library))
        (folder / "built-from").write_text(_source_digest(name, kubernetes))
        print(f"devcluster: built in {time.monotonic() - began:.0f} s", file=sys.stderr)


def _lacks_c(library: str) -> str:
    """What a program with C in it cannot be built without; empty where all is there."""
    for program in (os.environ.get("CC") or "gcc", "pkg-config"):
        if not shutil.which(program):
            return program
    found = subprocess.run(["pkg-config", "--exists", library], capture_output=True)
    return "" if found.returncode == 0 else library


def module_file(kubernetes: str) -> str:
    """The name of the module file in components/ that pins this version."""
    return "go.mod" if kubernetes == DEFAULT_KUBERNETES else f"kubernetes-{kubernetes}.mod"


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "berth-devcluster"


def _folder(name: str, kubernetes: str) -> Path:
    if name in IN_ONE:
        return cache_folder() / kubernetes
    tool = _TOOL_OF[name]
    return cache_folder() / f"{tool.folder}-{_pinned(tool)}"


def _is_current(name: str, kubernetes: str) -> bool:
    """Whether the program is there and was built from the module that stands here now."""
    folder = _folder(name, kubernetes)
    try:
        return (folder / name).exists() and (folder / "built-from").read_text() == _source_digest(name, kubernetes)
    except OSError:
        return False


def _source_digest(name: str, kubernetes: str) -> str:
    if name in IN_ONE:
        modules = HERE / "components" / module_file(kubernetes)
        files = [HERE / "components" / "main.go", modules, modules.with_suffix(".sum")]
    else:
        folder = HERE / _TOOL_OF[name].folder
        files = [folder / "go.mod", folder / "go.sum"]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes() if file.exists() else b"")
    if name not in IN_ONE:
        digest.update(_TOOL_OF[name].tags.encode())
    return digest.hexdigest()


def _pinned(tool: Tool) -> str:
    """The version of a tool as its go.mod says it."""
    found = re.search(rf"{re.escape(tool.module)} v(\S+)", (HERE / tool.folder / "go.mod").read_text())
    if found is None:
        raise MissingBinaries(f"devcluster/{tool.folder}/go.mod pins no version of {tool.module}.")
    return found.group(1)


def _build_components(go: str, folder: Path, kubernetes: str) -> None:
    modules = module_file(kubernetes)
    if not (HERE / "components" / modules).exists():
        raise MissingBinaries(
            f"Kubernetes {kubernetes} is not pinned: there is no devcluster/components/{modules}. "
            f"`python -m devcluster pin --kubernetes {kubernetes}` writes it."
        )
    major, minor, _ = kubernetes.split(".", 2)
    stamp = f"-X {_VERSION_PACKAGE}.gitVersion=v{kubernetes} "
    stamp += f"-X {_VERSION_PACKAGE}.gitMajor={major} -X {_VERSION_PACKAGE}.gitMinor={minor}"
    _go_build(go, HERE / "components", folder / "components", ".", f"-modfile={modules}", stamp=stamp)
    for name in IN_ONE:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to("components")


def _go_build(
    go: str, module: Path, target: Path, package: str, *flags: str, stamp: str = "", with_c: bool = False
) -> None:
    command = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", *flags]
    command += ["-ldflags", f"-s -w {stamp}".strip(), "-o", f"{target}.new", package]
    environment = {**os.environ, "CGO_ENABLED": "1" if with_c else "0"}
    done = subprocess.run(command, cwd=module, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise MissingBinaries(f"Go could not build {package} in {module}:\n{done.stderr[-3000:]}")
    Path(f"{target}.new").rename(target)
