"""CustomResourceDefinitions for the scenarios: the projects' own from their Go modules, else ours from crds/.

What a module gave is kept beside the programs of devcluster, so that Go and the network are asked once.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from devcluster.binaries import MissingBinaries, cache_folder

Definition = dict[str, Any]

HERE = Path(__file__).parent / "crds"
OF_THE_PROJECTS = HERE / "of-the-projects.yaml"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def ours() -> list[Definition]:
    """Definitions of projects whose own cannot be had: the same names, a schema for the fields that are used."""
    files = (file for file in sorted(HERE.glob("*.yaml")) if file != OF_THE_PROJECTS)
    return [crd for file in files for crd in yaml.safe_load_all(file.read_text())]


def of_the_projects() -> list[Definition]:
    """Raises MissingBinaries where they are not at hand and Go, which would fetch them, is not there."""
    return [crd for entry in yaml.safe_load(OF_THE_PROJECTS.read_text()) for crd in _of_module(entry)]


def named(crd: Definition) -> str:
    """`podgroups.scheduling.volcano.sh`."""
    return str(crd["metadata"]["name"])


def _of_module(entry: dict[str, Any]) -> list[Definition]:
    kept = cache_folder() / "kinds" / f"{entry['sum'].removeprefix('h1:').replace('/', '_').rstrip('=')}.json"
    known: dict[str, Definition] = json.loads(kept.read_text()) if kept.exists() else {}
    if not known.keys() >= set(entry["files"]):
        folder = _downloaded(entry["module"], entry["version"], entry["sum"]) / entry["folder"]
        known |= {file: yaml.load((folder / file).read_text(), _LOADER) for file in entry["files"]}
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=kept.parent, delete=False) as half:
            json.dump(known, half)
        Path(half.name).replace(kept)
    return [known[file] for file in entry["files"]]


def _downloaded(module: str, version: str, wanted: str) -> Path:
    """The folder of a module whose hash is the pinned one."""
    go = shutil.which("go") or next((p for p in ("/usr/local/go/bin/go",) if os.access(p, os.X_OK)), None)
    if go is None:
        raise MissingBinaries(f"The kinds of {module} come from its Go module, and there is no Go to fetch it.")
    with tempfile.TemporaryDirectory() as nowhere:  # outside any module: this one and no other is asked for
        command = [go, "mod", "download", "-json", f"{module}@{version}"]
        done = subprocess.run(command, cwd=nowhere, capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout) if done.stdout.startswith("{") else {"Error": done.stderr[-1000:]}
    if "Error" in answer:
        raise MissingBinaries(f"{module}@{version} cannot be had: {answer['Error']}")
    if answer["Sum"] != wanted:
        raise AssertionError(f"{module}@{version} has the hash {answer['Sum']}, and {OF_THE_PROJECTS} says {wanted}.")
    return Path(answer["Dir"])


def served_versions(crds: list[Definition]) -> Iterator[tuple[str, str]]:
    """(apiVersion, kind) of everything that they define."""
    for crd in crds:
        for version in crd["spec"]["versions"]:
            yield f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"]
