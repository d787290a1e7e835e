"""One run of one scenario by one scheduler: a fresh control plane, the load, what was seen, what it cost."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.live.seen import Pods
from devcluster import Cluster, Options
from devcluster.api import Api
from devcluster.process import Process

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"berth": "berth", "kube": "default-scheduler"}


class Bench:
    """A control plane with nodes, and a scheduler that is started when the scenario says so."""

    def __init__(self, cluster: Cluster, scheduler: str, api: Api, namespace: str = "default") -> None:
        self.cluster = cluster
        self.kind = scheduler
        self.name = NAMES[scheduler]
        self.api = api
        self.namespace = namespace
        self.pods = Pods(api, namespace)
        self._process = Process("berth", cluster.state / "logs" / "berth.log")
        self._port = 0
        self._before: dict[str, float] = {}
        self._writes_before: Any = None

    # ---- the scheduler

    def start_scheduler(self) -> float:
        """Start it; the moment at which that was asked for."""
        began = time.time()
        if self.kind == "kube":
            self.cluster.start_component("kube-scheduler", wait=False)
        else:
            berth = str(Path(sys.executable).parent / "berth")
            self._port = free_port()
            values = ["--no-leader-election", "--set", f"server.port={self._port}", "--set", "logLevel=warning"]
            self._process.start([berth, "scheduler", *values], {"KUBECONFIG": str(self.cluster.kubeconfig)})
            self.cluster.adopt(self._process)
        return began

    @property
    def audit_log(self) -> Path:
        return self.cluster.state / "logs" / "audit.log"

    @property
    def scheduler_cpu_s(self) -> float:
        usage = self.cluster.usage()
        found = usage.get("kube-scheduler" if self.kind == "kube" else "berth")
        return found.cpu_s if found else 0.0

    @property
    def peak_mib(self) -> float:
        usage = self.cluster.usage()
        found = usage.get("kube-scheduler" if self.kind == "kube" else "berth")
        return found.peak_rss_bytes / 2**20 if found else 0.0

    @property
    def resident_mib(self) -> float:
        usage = self.cluster.usage()
        found = usage.get("kube-scheduler" if self.kind == "kube" else "berth")
        return found.rss_bytes / 2**20 if found else 0.0

    async def loop_lag_s(self) -> float:
        """By how much Berth's event loop was late at most in the last minute, as it says itself."""
        page = await asyncio.to_thread(_text, f"http://127.0.0.1:{self._port}/metrics")
        found = [line for line in page.splitlines() if line.startswith("berth_loop_lag_seconds ")]
        return float(found[0].split()[1])

    # ---- what it costs

    def begin(self) -> None:
        """Count CPU and writes from now on."""
        self._before = {name: usage.cpu_s for name, usage in self.cluster.usage().items()}
        self._writes_before = self.cluster.requests()

    def costs(self) -> dict[str, Any]:
        """CPU seconds by component since `begin`, and what the API server was asked to write."""
        now = {name: usage.cpu_s for name, usage in self.cluster.usage().items()}
        spent = {name: round(cpu - self._before.get(name, 0.0), 2) for name, cpu in now.items()}
        writes = self.cluster.requests().since(self._writes_before)
        counts: Counter[str] = Counter()
        for (verb, resource, status), count in writes.counts.items():
            if verb in ("POST", "PUT", "PATCH", "DELETE") and resource != "leases":
                counts[f"{verb} {resource}" + ("" if status < 300 else f" {status}")] += count
        shown = {what: count for what, count in sorted(counts.items()) if count > 1}
        return {"cpu_s": spent, "cpu_all_s": round(sum(spent.values()), 2), "writes": shown}

    # ---- the load

    async def make(self, objects: list[dict[str, Any]], in_flight: int = 48) -> float:
        """Create objects, many at a time; the moment after the last answer."""
        todo = []
        for item in objects:
            todo.append(("POST", await self.api.collection_of(item), item, "application/json"))
        await self.api.all_of(todo, in_flight)
        return time.time()

    async def until(self, claim: Callable[[], bool], timeout_s: float, every_s: float = 0.02) -> bool:
        ends = time.time() + timeout_s
        while time.time() < ends:
            if claim():
                return True
            await asyncio.sleep(every_s)
        return claim()


def run(scheduler: str, nodes: int, scenario: Callable[[Bench], Any], audit: bool = False) -> dict[str, Any]:
    """The result of a scenario on a fresh control plane, which with `audit` writes down when it answered what."""
    with Cluster(Options(audit=audit)) as cluster:
        cluster.add_nodes(nodes, "h100")
        if scheduler == "berth":
            _install_kinds(cluster)

        async def work() -> dict[str, Any]:
            api = Api(cluster.access_of("admin"))
            bench = Bench(cluster, scheduler, api)
            ready = asyncio.Event()
            watch = asyncio.create_task(bench.pods.follow(ready))
            await ready.wait()
            try:
                found: dict[str, Any] = await scenario(bench)
            finally:
                watch.cancel()
                await api.close()
            return {**found, "moved": len(bench.pods.moved)}

        return asyncio.run(work())


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _text(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def _install_kinds(cluster: Cluster) -> None:
    for file in sorted((ROOT / "deploy" / "crds").glob("*.yaml")):
        if file.name != "kustomization.yaml":
            cluster.kubectl("apply", "-f", str(file))


def machine() -> str:
    """What the figures were measured on, in a line."""
    cpu = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), "unknown processor")  # fmt: skip
    cores = subprocess.run(["nproc"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{cpu}, {cores} cores, Python {sys.version.split()[0]}, {time.strftime('%Y-%m-%d')}"
