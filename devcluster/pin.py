"""Writes the module file of another version of Kubernetes: the same program, other pins.

k8s.io/kubernetes points its sister modules at folders of its own source tree, which a module that requires it does
not see; each is replaced by the module of the same name that is published with that version.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from devcluster.binaries import HERE, MissingBinaries, module_file
from devcluster.options import DEFAULT_KUBERNETES


def pin(kubernetes: str) -> Path:
    """components/kubernetes-VERSION.mod and its .sum, as `go mod tidy` resolves them. Needs a module proxy."""
    if kubernetes == DEFAULT_KUBERNETES:
        raise MissingBinaries(f"Kubernetes {kubernetes} is pinned by devcluster/components/go.mod itself.")
    components = HERE / "components"
    found = json.loads(_go(["mod", "download", "-json", f"k8s.io/kubernetes@v{kubernetes}"], components))
    known = Path(found["GoMod"]).read_text()
    sisters = re.findall(r"^\s*(?:replace )?(k8s\.io/\S+) => \./staging/", known, re.MULTILINE)
    go_version = re.search(r"^go (\S+)$", known, re.MULTILINE)
    assert go_version is not None, f"{found['GoMod']} names no version of Go"
    staged = "v0." + kubernetes.split(".", 1)[1]
    lines = ["module berth.dev/devcluster/components", "", f"go {go_version.group(1)}", ""]
    lines += [f"require k8s.io/kubernetes v{kubernetes}", "", "replace ("]
    lines += [f"\t{sister} => {sister} {staged}" for sister in sisters]
    target = components / module_file(kubernetes)
    target.write_text("\n".join([*lines, ")", ""]))
    target.with_suffix(".sum").touch()
    _go(["mod", "tidy", f"-modfile={target.name}"], components)
    return target


def _go(arguments: list[str], folder: Path) -> str:
    go = shutil.which("go")
    if go is None:
        raise MissingBinaries("There is no Go here, which resolves the modules.")
    done = subprocess.run([go, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise MissingBinaries(f"go {' '.join(arguments)}: {done.stderr[-2000:]}")
    return done.stdout
