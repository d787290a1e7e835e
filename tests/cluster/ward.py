"""A real node as its operator sees it: a bundle of the node, the objects of the API server, the doctor and the ledger
over both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster import Cluster
from devcluster.real_node import RealNode

ROOT = Path(__file__).parents[2]
GPU = "nvidia.com/gpu"
DEVICES = [f"GPU-{number:08}" for number in range(8)]
WITHIN_S = 10.0
LISTS = (
    "/api/v1/nodes", "/api/v1/pods", "/api/v1/events", "/apis/node.k8s.io/v1/runtimeclasses",
)  # fmt: skip


def machine_root(folder: Path) -> Path:
    """The root of a machine whose bus shows eight GPUs."""
    root = folder / "root"
    for each in ("dev", "etc", "run", "sys/bus/pci/devices"):
        (root / each).mkdir(parents=True)
    for number in range(8):
        function = root / f"sys/bus/pci/devices/0000:{number + 1:02x}:00.0"
        function.mkdir()
        for name, text in (("vendor", "0x10de"), ("device", "0x2330"), ("class", "0x030200"), ("revision", "0xa1")):
            (function / name).write_text(f"{text}\n")
    return root


@dataclass
class Ward:
    """A real node as its operator sees it. `root` is its machine's root, as far as there is one."""

    cluster: Cluster
    node: RealNode
    root: Path
    folder: Path
    number: int = 0

    def gather(self) -> Path:
        """All that can be read now: a bundle of the node's agent, and what the API server has."""
        self.number += 1
        target = self.folder / f"look-{self.number}"
        values = {
            "node": self.node.name, "paths.root": self.root, "paths.kubelet": self.node.kubelet_folder,
            "paths.logs": self.node.folder / "var-log", "paths.proc": "/proc", "looks.socketSeconds": 1,
            "looks.listPlugins": "true",
        }  # fmt: skip
        settings = [part for path, value in values.items() for part in ("--set", f"{path}={value}")]
        done = self._berth("agent", *settings, "bundle", str(target), "--no-commands")
        assert target.is_dir(), done.stderr
        for number, path in enumerate(LISTS):
            items = self.cluster.admin.items(path)
            kind = path.rsplit("/", 1)[1][:-1].capitalize().replace("Runtimeclasse", "RuntimeClass")
            version = path.removeprefix("/apis/").removeprefix("/api/").rsplit("/", 1)[0]
            told = [{"apiVersion": version, "kind": kind, **item} for item in items]
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": told})
            (target / f"api-{number}.json").write_text(text)
        for log, name in (
            (self.node.folder / "kubelet.log", "kubelet.log"),
            (self.node.containerd_log, "containerd-journal.txt"),
        ):
            if log.exists():
                (target / "nodes" / self.node.name / name).write_bytes(log.read_bytes()[-500_000:])
        return target

    def told(self, what: str = "doctor", *arguments: str) -> dict[str, Any]:
        done = self._berth(what, *arguments, "--from", str(self.gather()), "-o", "json")
        assert done.returncode in (0, 1), done.stderr
        return dict(json.loads(done.stdout))

    def names(self, code: str, layer: str, *words: str) -> dict[str, Any]:
        """Until the doctor finds it, within ten seconds from now; then how it is told. Everything that was found counts
        as found; it must not lie under a cause of another kind."""
        began = time.monotonic()
        while True:
            asked = time.monotonic()
            report = self.told()
            found = {one["code"]: one for one in report["findings"]}
            if code in found or time.monotonic() - began > WITHIN_S:
                break
        under = [(one["code"], one["explained_by"]) for one in report["consequences"]]
        assert code in found, (sorted(found), under)
        assert asked - began <= WITHIN_S
        one = dict(found[code])
        assert one["layer"] == layer
        for word in words:
            assert word in one["cause"], one["cause"]
        assert one["evidence"] and all(each["source"] for each in one["evidence"])
        assert not report["gate"]["go"]
        return one

    def account(self) -> dict[str, Any]:
        """The ledger's line of the node's GPUs."""
        accounts = self.told("ledger", self.node.name)["accounts"]
        return dict(next(one for one in accounts if one["resource"] == GPU))

    def _berth(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig), "BERTH_TRACEBACK": "1"}
        command = [sys.executable, "-m", "berth.app.cli.main", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment, timeout=60
        )
