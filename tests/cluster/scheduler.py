"""Real `berth scheduler` processes: started, stopped, killed, several at a time; what they say and what they show."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from devcluster import Cluster
from devcluster.process import Process, Usage
from programs import install_kinds

# A Lease that is over soon: a test does not wait fifteen seconds for each new leader.
LEASE_S, RENEW_S, RETRY_S = 2.0, 1.2, 0.3
# From the death of a leader to the first decision of the next one: the Lease, the time in which what was sent may
# still arrive, lists; twice that for a machine that has other things to do.
TAKEOVER_S = 2.0 * (LEASE_S + RETRY_S + 2.0)
_SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")

Line = dict[str, Any]


class Replica:
    """One process. It starts with the same flags each time and ends with the cluster at the latest.

    `values` are given with --set, over those of `QUICK`; `kubeconfig` is the administrator's where none is given.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        log: Path,
        kubeconfig: Path | None = None,
        values: Mapping[str, object] | None = None,
        flags: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._cluster = cluster
        self._process = Process(f"berth-{name}", log)
        self._environment = {
            "POD_NAME": name, "KUBECONFIG": str(kubeconfig or cluster.kubeconfig), **(environment or {})
        }  # fmt: skip
        given = {**_QUICK, **(values or {})}
        sets = [part for path, value in given.items() for part in ("--set", f"{path}={value}")]
        self._command = [str(Path(sys.executable).parent / "berth"), "scheduler", *sets, *flags]
        self._from_byte = 0  # of the log: what this start has written
        self._may_end = True

    def start(self) -> Replica:
        """Started; not yet deciding."""
        self._from_byte = self.log.stat().st_size if self.log.exists() else 0
        self._process.start(self._command, self._environment)
        self._may_end = False
        self._cluster.adopt(self._process)
        return self

    def stop(self, patience_s: float = 20.0) -> None:
        """SIGTERM, and until it has ended."""
        self._may_end = True
        self._process.signal(signal.SIGTERM)
        if not self._process.wait_gone(patience_s):
            self._process.kill()
            raise AssertionError(f"{self.name} runs on for {patience_s:g} s after SIGTERM.\n{self.last_lines()}")

    def kill(self) -> None:
        """SIGKILL."""
        self._may_end = True
        self._process.kill()

    def pause(self) -> None:
        """SIGSTOP: it holds its connections and does nothing, as a machine that stands still."""
        self._process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.signal(signal.SIGCONT)

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive

    @property
    def log(self) -> Path:
        return self._process.log

    def usage(self) -> Usage:
        return self._process.usage()

    # --- what it says

    def lines(self) -> list[Line]:
        """What it has logged since its last start."""
        if not self.log.exists():
            return []
        with self.log.open("rb") as log:
            log.seek(self._from_byte)
            return [_line(raw) for raw in log.read().decode(errors="replace").splitlines()]

    def said(self, message: str, **fields: object) -> list[Line]:
        """Lines with this message and these fields."""
        wanted = {"message": message, **fields}
        return [line for line in self.lines() if wanted.items() <= line.items()]

    def wait_said(self, message: str, timeout_s: float = 30.0, **fields: object) -> Line:
        """The first such line. Raises AssertionError with the end of the log."""
        until = time.monotonic() + timeout_s
        while not (found := self.said(message, **fields)):
            if not self.is_alive or time.monotonic() > until:
                ended = "" if self.is_alive else " and has ended"
                raise AssertionError(f"{self.name} has not said {message!r}{ended}.\n{self.last_lines()}")
            time.sleep(0.02)
        return found[0]

    def wait_decides(self, timeout_s: float = 30.0) -> Replica:
        """Until it places pods."""
        self.wait_said("decides", timeout_s)
        return self

    def last_lines(self, count: int = 25) -> str:
        """The end of the log, what it was configured with left out."""
        lines = [line for line in self._process.last_lines(1000).splitlines() if '"configuration"' not in line]
        return "\n".join(lines[-count:])

    def check(self) -> None:
        """It has not ended by itself, and nothing went wrong in it that it did not foresee."""
        assert self._may_end or self.is_alive, f"{self.name} has ended by itself.\n{self.last_lines()}"
        broken = [line for line in self.lines() if "traceback" in line or "Traceback" in str(line.get("message"))]
        broken = [line for line in broken if not str(line.get("message")).startswith(_UVLOOP)]
        assert not broken, f"{self.name}: {broken[0].get('message')}\n{broken[0].get('traceback', self.last_lines())}"

    # --- what it shows

    def address(self) -> str:
        return str(self.wait_said("serves")["address"])

    def ask(self, path: str, token: str = "") -> tuple[int, str]:
        """(status, body) of a GET of its server."""
        request = urllib.request.Request(f"http://{self.address()}{path}")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def metrics(self) -> Metrics:
        return Metrics(self.ask("/metrics")[1])


class Metrics:
    """The samples of one scrape."""

    def __init__(self, text: str) -> None:
        self._samples: list[tuple[str, dict[str, str], float]] = []
        for line in text.splitlines():
            if not line.startswith("#") and (found := _SAMPLE.match(line)):
                labels = dict(re.findall(r'(\w+)="([^"]*)"', found["labels"] or ""))
                self._samples.append((found["name"], labels, float(found["value"])))

    def of(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name that carry these labels; 0 where there is none."""
        return sum(value for each, has, value in self._samples if each == name and labels.items() <= has.items())


def holder(cluster: Cluster, namespace: str, lease: str = "berth") -> str:
    """The name of the replica that holds the Lease; "" where nobody does."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    for each in cluster.admin.items(path):
        if each["metadata"]["name"] == lease:
            return str(each["spec"].get("holderIdentity") or "").rpartition("_")[0]
    return ""


@pytest.fixture
def berth_kinds(cluster: Cluster) -> None:
    """GPUQueue, Verdict and the others are served; they stay."""
    install_kinds(cluster.admin)


@pytest.fixture
def run_scheduler(
    cluster: Cluster, berth_kinds: None, namespace: str, tmp_path: Path
) -> Iterator[Callable[..., Replica]]:
    """run_scheduler("a", values={"clients.inFlight": 4}): a replica that decides; its Lease is in `namespace`.

    wait=False does not wait until it decides, which one that stands by does not. After the test all are killed; one
    that ended by itself or met what it did not foresee fails the test.
    """
    replicas: list[Replica] = []

    def run(name: str = "a", *flags: str, wait: bool = True, values: Mapping[str, object] | None = None,
            kubeconfig: Path | None = None, environment: Mapping[str, str] | None = None) -> Replica:  # fmt: skip
        own = {"leaderElection.namespace": namespace, **(values or {})}
        replica = Replica(cluster, name, tmp_path / f"{name}.log", kubeconfig, own, flags, environment)
        replicas.append(replica.start())
        return replica.wait_decides() if wait else replica

    yield run
    try:
        for replica in replicas:
            replica.check()
    finally:
        for replica in replicas:
            replica.kill()
            print(f"--- the end of {replica.log}\n{replica.last_lines()}")


_QUICK: dict[str, object] = {
    "server.address": "127.0.0.1",
    "server.port": 0,
    "leaderElection.leaseSeconds": LEASE_S,
    "leaderElection.renewSeconds": RENEW_S,
    "leaderElection.retrySeconds": RETRY_S,
}


# What uvloop says of a connection that breaks while something is written to it.
_UVLOOP = "Fatal error on SSL protocol"


def _line(raw: str) -> Line:
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"message": raw}
