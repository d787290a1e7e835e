"""What is made from deploy/: the chart's copy of the CRDs, the schemas that the program carries, and the manifests for
`kubectl apply -k`.

`python deploy/manifests.py` writes them, `--check` says which differ and ends with 1. Helm is found in PATH or named
by HELM.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parent
CHART = DEPLOY / "chart"
PACKED = DEPLOY.parent / "src" / "berth" / "sources" / "schemas.json"
WRITTEN_BY_PEOPLE = ("GPUClass", "GPUQueue", "GPUReservation", "GPUTopology")
NAMESPACE = "berth-system"
HEAD = "# Made from deploy/chart by deploy/manifests.py; do not edit.\n"
# Labels that are true only of what Helm itself installs.
OF_HELM = re.compile(r"^ +(?:app\.kubernetes\.io/managed-by|helm\.sh/chart): .*\n", re.M)
# Where the Lease is, in the text of the configuration: an overlay that moves everything to another namespace changes
# objects, not text. Left out, it is the scheduler's own namespace.
LEASE_NAMESPACE = re.compile(r"(^ +leaderElection:\n(?: +(?!namespace:).*\n)*?) +namespace: .*\n", re.M)


def copied_crds() -> dict[Path, str]:
    """The chart carries the CRDs itself: a chart reads no file outside its folder."""
    return {
        CHART / "files" / "crds" / crd.name: crd.read_text() for crd in sorted(DEPLOY.glob("crds/berth.dev_*.yaml"))
    }


def packed_schemas() -> dict[Path, str]:
    """What files are held to where no API server has seen them: the schemas of the kinds that people write."""
    found = {}
    for crd in sorted(DEPLOY.glob("crds/berth.dev_*.yaml")):
        said = yaml.safe_load(crd.read_text())["spec"]
        if (kind := said["names"]["kind"]) in WRITTEN_BY_PEOPLE:
            found[kind] = _without_words(said["versions"][0]["schema"]["openAPIV3Schema"])
            found[kind]["properties"]["status"] = {"type": "object"}  # Berth's own; its fields change
    return {PACKED: json.dumps(found, indent=1, ensure_ascii=False) + "\n"}


def _without_words(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without descriptions. A field may have that name, too."""
    kept = {key: value for key, value in schema.items() if key not in ("description", "default")}
    if "properties" in kept:
        kept["properties"] = {name: _without_words(one) for name, one in kept["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _without_words(kept[key])
    return kept


def helm() -> str | None:
    """The program, as HELM names it or PATH has it."""
    return os.environ.get("HELM") or shutil.which("helm")


def rendered(program: str, *values: str, kubernetes: str = "") -> str:
    """The chart's objects as YAML, with `--set` for each of `values`; for that version of Kubernetes, or Helm's own."""
    settings = [part for value in values for part in ("--set", value)]
    settings += ["--kube-version", kubernetes] if kubernetes else []
    command = [program, "template", "berth", str(CHART), "--namespace", NAMESPACE, *settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"helm template: {done.stderr.strip()}")
    return done.stdout


def for_kustomize(program: str) -> dict[Path, str]:
    """The chart with its default values, without the CRDs, which kustomize takes from their own folder; and what of it
    says what people may do; and the node agent, which is off by default."""
    text = OF_HELM.sub("", rendered(program, "crds.install=false"))
    people = [part for part in text.split("\n---\n") if "# Source: berth/templates/people.yaml" in part]
    with_agent = OF_HELM.sub("", rendered(program, "crds.install=false", "agent.enabled=true"))
    agent = [part for part in with_agent.split("\n---\n") if "# Source: berth/templates/agent.yaml" in part]
    return {
        DEPLOY / "agent" / "agent.yaml": HEAD + "".join(f"---\n{part.strip()}\n" for part in agent),
        DEPLOY / "kustomize" / "berth.yaml": HEAD + LEASE_NAMESPACE.sub(r"\1", text),
        # Also for a cluster that has the kinds and not the rest: where Berth runs outside of it, or in shadow.
        DEPLOY / "people" / "roles.yaml": HEAD + "".join(f"---\n{part.strip()}\n" for part in people),
    }


def main(arguments: list[str]) -> int:
    crds = copied_crds() | packed_schemas()
    if "--check" not in arguments:
        for path, text in crds.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    program = helm()
    if program is None:
        print("manifests: no helm in PATH; name it with HELM", file=sys.stderr)
        return 3
    made = crds | for_kustomize(program)
    differ = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in differ:
            print(f"manifests: {path.relative_to(DEPLOY.parent)} is not what it is made from", file=sys.stderr)
        return 1 if differ else 0
    for path in differ:
        path.parent.mkdir(exist_ok=True)
        path.write_text(made[path])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
