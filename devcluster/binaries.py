"""Where the programs are: a folder that the environment names, or a cache that Go fills.

`BERTH_DEVCLUSTER_BIN` names a folder with ready programs (etcd, kube-apiserver, ...; kwok and helm where they are
needed). Without it they are built from pinned Go modules into `~/.cache/berth-devcluster/`, once for each version.
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
from pathlib import Path

from devcluster.options import DEFAULT_KUBERNETES

HERE = Path(__file__).parent
IN_ONE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
TOOLS = {"kwok": "sigs.k8s.io/kwok", "helm": "helm.sh/helm/v4"}  # name -> Go module; the package is MODULE/cmd/NAME
_VERSION_PACKAGE = "k8s.io/component-base/version"


class MissingBinaries(Exception):
    """No program, and nothing here that could build it. The text says what to do."""


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
            f"{name} is not built and there is no Go to build it. Install Go 1.26 or later, or name a folder with "
            f"etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl in BERTH_DEVCLUSTER_BIN."
        )
    folder = _folder(name, kubernetes)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_current(name, kubernetes):
            return
        began = time.monotonic()
        minutes = "about 7 minutes" if name in IN_ONE else "a minute"
        print(f"devcluster: building {folder.name}, {minutes} on two cores the first time", file=sys.stderr)
        if name in IN_ONE:
            _build_components(go, folder, kubernetes)
        else:
            _go_build(go, HERE / name, folder / name, f"{TOOLS[name]}/cmd/{name}")
        (folder / "built-from").write_text(_source_digest(name, kubernetes))
        print(f"devcluster: built in {time.monotonic() - began:.0f} s", file=sys.stderr)


def module_file(kubernetes: str) -> str:
    """The name of the module file in components/ that pins this version."""
    return "go.mod" if kubernetes == DEFAULT_KUBERNETES else f"kubernetes-{kubernetes}.mod"


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "berth-devcluster"


def _folder(name: str, kubernetes: str) -> Path:
    if name in IN_ONE:
        return cache_folder() / kubernetes
    return cache_folder() / f"{name}-{_pinned(name)}"


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
        files = [HERE / name / "go.mod", HERE / name / "go.sum"]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes() if file.exists() else b"")
    return digest.hexdigest()


def _pinned(name: str) -> str:
    """The version of a tool as its go.mod says it."""
    found = re.search(rf"{re.escape(TOOLS[name])} v(\S+)", (HERE / name / "go.mod").read_text())
    if found is None:
        raise MissingBinaries(f"devcluster/{name}/go.mod pins no version of {TOOLS[name]}.")
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


def _go_build(go: str, module: Path, target: Path, package: str, *flags: str, stamp: str = "") -> None:
    command = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", *flags]
    command += ["-ldflags", f"-s -w {stamp}".strip(), "-o", f"{target}.new", package]
    done = subprocess.run(command, cwd=module, env={**os.environ, "CGO_ENABLED": "0"}, capture_output=True, text=True)
    if done.returncode != 0:
        raise MissingBinaries(f"Go could not build {package} in {module}:\n{done.stderr[-3000:]}")
    Path(f"{target}.new").rename(target)
