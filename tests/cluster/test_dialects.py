"""Manifests as users of each project write them, on the real API server: scenarios in dialects/scenarios.

One control plane for all, each scenario in a namespace and on nodes of its own, several at a time. Berth starts
before the kinds are there: that they come later makes no difference is a part of each scenario.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.sources.live.kinds import FOLLOWED
from devcluster import Cluster, InvariantWatcher, Options, fake_node, gpu_pod
from devcluster.api import Refused
from devcluster.binaries import MissingBinaries
from devcluster.process import Process
from dialects import definitions
from dialects.definitions import Definition
from dialects.playing import Play
from dialects.reading import Scenario, scenarios

ROOT = Path(__file__).parents[2]
ALIVE = "koord-scheduler"  # of all names the one whose scheduler lives for a while
NAMES = ("berth", ALIVE, "volcano", "kai-scheduler", "scheduler-plugins-scheduler", "default-scheduler")
AT_ONCE = 6
UPSTREAM, SINCE = "scheduling.k8s.io/v1beta1", 37  # the minor version of Kubernetes that has it
SCENARIOS = [s for s in scenarios() if UPSTREAM not in s.api_versions or Options().minor >= SINCE]


@dataclass
class Stage:
    """A cluster with a running Berth, and the scenarios that run on it."""

    cluster: Cluster
    berth: Process
    plays: dict[str, Future[None]]
    watcher: InvariantWatcher
    late: tuple[str, ...]

    def berth_said(self, text: str) -> bool:
        return text in self.berth.log.read_text(errors="replace")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    try:
        crds = [*definitions.ours(), *definitions.of_the_projects()]
        cluster = Cluster(Options()).start()
    except MissingBinaries as absent:
        if os.environ.get("BERTH_CLUSTER_REQUIRED") and not os.environ.get("BERTH_ALLOW_SKIP"):
            pytest.fail(f"{absent}\nBERTH_ALLOW_SKIP=1 leaves these tests out.", pytrace=False)
        pytest.skip(str(absent))
    gangs: dict[str, dict[str, int]] = {}
    try:
        own = [yaml.safe_load(file.read_text()) for file in sorted((ROOT / "deploy/crds").glob("berth.dev_*.yaml"))]
        _install(cluster, own)
        berth = _start(cluster, tmp_path_factory.mktemp("berth") / "berth.log")
        with (
            InvariantWatcher(
                cluster.access_of("admin"),
                own=NAMES,
                partial_s=2.0,
                gang_of=lambda pod: _gang_of(gangs, pod),
                interrupt=False,
            ) as watcher,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):
            groups = {crd["spec"]["group"] for crd in crds}
            waits = {s.file: any(v.partition("/")[0] in groups for v in s.api_versions) for s in SCENARIOS}
            plays = {s.file: pool.submit(_play, cluster, s, gangs) for s in SCENARIOS if not waits[s.file]}
            plays[ALIVE] = pool.submit(_beside_a_scheduler, cluster, berth)
            _install(cluster, crds)
            followed = {kind.called for kind in FOLLOWED}
            names = tuple(name for crd in crds if (name := definitions.named(crd)) in followed)
            _until(lambda: all(f'"{name}"' in berth.log.read_text(errors="replace") for name in names), 60, berth)
            plays |= {s.file: pool.submit(_play, cluster, s, gangs) for s in SCENARIOS if waits[s.file]}
            yield Stage(cluster, berth, plays, watcher, names)
            for play in plays.values():
                play.cancel()
    finally:
        cluster.stop()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[s.file.removesuffix(".yaml") for s in SCENARIOS])
def test_scenario(stage: Stage, scenario: Scenario) -> None:
    stage.plays[scenario.file].result(timeout=180)


def test_the_name_of_a_scheduler_that_is_alive_is_left_to_it_and_served_when_it_is_gone(stage: Stage) -> None:
    stage.plays[ALIVE].result(timeout=180)


def test_kinds_that_came_later_were_followed(stage: Stage) -> None:
    assert len(stage.late) > 10
    assert stage.berth_said('"follows a kind"')


def test_nothing_was_booked_twice_and_no_gang_stood_half_bound(stage: Stage) -> None:
    for play in stage.plays.values():
        play.exception(timeout=180)
    stage.watcher.check()
    assert stage.berth.is_alive
    assert not stage.berth_said("Traceback")


def _play(cluster: Cluster, scenario: Scenario, gangs: dict[str, dict[str, int]]) -> None:
    namespace = f"{Path(scenario.file).stem[:40].strip('-')}-{secrets.token_hex(2)}"
    gangs[namespace] = dict(scenario.gang)
    play = Play(scenario, cluster.admin, namespace)
    play.run()
    play.end()


def _beside_a_scheduler(cluster: Cluster, berth: Process) -> None:
    """Its Lease is renewed: Berth leaves its pod alone. It is not any more: Berth places the pod."""
    admin, namespace = cluster.admin, f"alive-{secrets.token_hex(2)}"
    admin.make_namespace(namespace)
    admin.create(fake_node(0, "h100", f"{namespace}-n0", {"example.com/scenario": namespace}))
    meta = {"name": ALIVE, "namespace": namespace}
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 4}
    lease = admin.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec})
    path = f"/api/v1/namespaces/{namespace}/pods/theirs"
    berth_says = f'"serves a scheduler\'s name no longer","scheduler":"{ALIVE}"'

    def renewed(times: int) -> None:
        for number in range(times):
            admin.patch(admin.path_of(lease), {"spec": {"leaseTransitions": number}})
            time.sleep(0.5)

    _until(lambda: renewed(1) or berth_says in berth.log.read_text(errors="replace"), 20, berth)
    admin.create(gpu_pod("theirs", namespace, scheduler=ALIVE, nodeSelector={"example.com/scenario": namespace}))
    renewed(5)
    pod, verdicts = admin.get(path), admin.items(f"/apis/berth.dev/v1alpha1/namespaces/{namespace}/verdicts")
    assert not pod["spec"].get("nodeName") and not verdicts
    assert not pod["status"].get("conditions"), "nobody has said anything on it"
    admin.until(lambda: admin.get(path)["spec"].get("nodeName"), 30, "the pod is bound")


def _gang_of(gangs: dict[str, dict[str, int]], pod: dict[str, Any]) -> tuple[str, int | None] | None:
    meta = pod["metadata"]
    for beginning, minimum in gangs.get(meta["namespace"], {}).items():
        if meta["name"].startswith(beginning):
            return f"{meta['namespace']}/{beginning}", minimum
    return None


def _install(cluster: Cluster, crds: list[Definition]) -> None:
    cluster.admin.create_all(crds, in_flight=4)

    def is_served(crd: Definition) -> bool:
        version = next(version["name"] for version in crd["spec"]["versions"] if version["served"])
        try:
            found = cluster.admin.get(f"/apis/{crd['spec']['group']}/{version}")["resources"]
        except Refused:
            return False
        return crd["spec"]["names"]["plural"] in {resource["name"] for resource in found}

    cluster.admin.until(lambda: all(map(is_served, crds)), 60, f"{len(crds)} kinds are served", every_s=0.3)


def _start(cluster: Cluster, log: Path) -> Process:
    berth = Process("berth", log)
    command = [
        str(Path(sys.executable).parent / "berth"),
        "scheduler",
        "--no-leader-election",
        "--set",
        "server.port=0",
    ]
    berth.start([*command, *(f"--scheduler-name={name}" for name in NAMES)], {"KUBECONFIG": str(cluster.kubeconfig)})
    cluster.adopt(berth)
    _until(lambda: '"decides"' in log.read_text(errors="replace"), 60, berth)
    return berth


def _until(claim: Callable[[], bool], timeout_s: float, berth: Process) -> None:
    until = time.monotonic() + timeout_s
    while not claim():
        assert berth.is_alive and time.monotonic() < until, berth.last_lines(25)
        time.sleep(0.1)
