"""Two that decide at once, on purpose: leaders in doubt, clocks that differ, other schedulers on the same nodes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import leave_out_unless_required
from devcluster import gpu_pod
from devcluster.options import SCHEDULER
from gangs import FORMS, UPSTREAM, Gang, bound, missing, namespace_limit
from proxy import BINDS, Proxy
from scheduler import LEASE_S, RENEW_S, TAKEOVER_S, holder
from stage import SetStage, Stage

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
GPU = "nvidia.com/gpu"


def lease_path(stage: Stage) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{stage.namespace}/leases/berth"


def stream(stage: Stage, seconds: float, each_s: float, wave: str, seed: int = 3) -> list[Gang]:
    """Small gangs and single pods, one after the other, for so long: at most 30 GPUs."""
    dice = random.Random(seed)
    made: list[Gang] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until and sum(each.total_gpus for each in made) < 28:
        name = f"{wave}-{len(made)}"
        new = stage.single(name, dice.choice([1, 2])) if dice.random() < 0.5 else stage.gang(UPSTREAM, name, 2, 2)
        stage.create(new)
        made.append(new)
        time.sleep(each_s)
    return made


# ---- one leader at a time


def test_a_leader_whose_lease_names_another_binds_nothing(set_stage: SetStage) -> None:
    """It takes the Lease back once it has seen it unchanged for its whole length, and goes on."""
    stage = set_stage(4)
    replica = stage.run()
    stage.admin.patch(lease_path(stage), {"spec": {"holderIdentity": "somebody-else", "leaseTransitions": 7}})
    time.sleep(0.6)  # it looks at the Lease that often
    waits = stage.mixed("waits")[:2]
    stage.create(*waits)
    stage.stays(lambda: not bound(stage.pods()), LEASE_S - 1.0, "no pod is bound under another's Lease")
    stage.wait_whole(*waits, timeout_s=2 * TAKEOVER_S)
    assert replica.metrics().of("berth_epoch") == 8
    assert holder(stage.cluster, stage.namespace) == "a"


def test_a_lease_that_is_deleted_again_and_again_makes_no_two_leaders_overlap(set_stage: SetStage) -> None:
    stage = set_stage(16, partial_s=2 * TAKEOVER_S)
    stage.run("a")
    stage.run("b", wait=False).wait_said("synced")
    made: list[Gang] = []
    for number in range(4):
        stage.admin.delete(lease_path(stage))
        made += stream(stage, 1.0, 0.05, f"w{number}", seed=number)
    stage.wait_whole(*made, timeout_s=3 * TAKEOVER_S)


def test_a_leader_that_stood_still_does_not_finish_what_it_had_decided(set_stage: SetStage) -> None:
    """SIGSTOP in the middle of a burst; another leads; then the first one goes on living."""
    stage = set_stage(16, partial_s=2 * TAKEOVER_S)
    first = stage.run("a", values={"clients.inFlight": 1})
    stage.run("b", wait=False).wait_said("synced")
    load = stage.mixed("load")
    stage.create(*load)
    stage.wait_binds(6)
    first.pause()
    stage.wait_whole(*load, timeout_s=2 * TAKEOVER_S)
    assert holder(stage.cluster, stage.namespace) == "b"
    first.resume()
    more = stage.mixed("more")
    stage.create(*more)
    stage.wait_whole(*more, timeout_s=TAKEOVER_S)
    assert first.metrics().of("berth_leader") == 0


def test_binds_of_a_leader_that_is_cut_off_do_not_arrive_under_the_next_one(set_stage: SetStage, proxy: Proxy) -> None:
    """Its way to the API server is slow and its Lease runs out; what it had sent late must not meet a new decision.

    One node with room for one pod: the last leader sends the pod of low priority there, the next one that of high
    priority, which came later.
    """
    stage = set_stage(1, partial_s=2 * TAKEOVER_S)
    stage.run("a", kubeconfig=proxy.kubeconfig())
    stage.run("b", wait=False).wait_said("synced")
    with (
        proxy.answer(503, "/leases/"),
        proxy.delay(2 * LEASE_S, BINDS),
    ):
        time.sleep(RENEW_S - 0.5)
        stage.create(stage.single("low", 8))
        stage.until(lambda: holder(stage.cluster, stage.namespace) == "b", 2 * TAKEOVER_S, "b leads")
        stage.admin.create(gpu_pod("high", stage.namespace, 8, priority_class="system-cluster-critical"))
        stage.until(lambda: stage.pod("high")["spec"].get("nodeName"), TAKEOVER_S, "the pod of high priority is bound")
        time.sleep(2 * LEASE_S)
    assert not stage.pod("low")["spec"].get("nodeName")


def test_a_leader_that_is_told_to_end_finishes_and_hands_over_at_once(set_stage: SetStage) -> None:
    stage = set_stage(16)
    first = stage.run("a", values={"clients.inFlight": 2})
    second = stage.run("b", wait=False)
    second.wait_said("synced")
    load = stage.mixed("load")
    stage.create(*load)
    stage.wait_binds(4)
    first.stop()
    ended = time.monotonic()
    second.wait_decides()
    assert time.monotonic() - ended < LEASE_S, "it waited for the Lease to run out"
    more = stage.single("more")
    stage.create(more)
    stage.wait_whole(*load, more, timeout_s=5)


# ---- clocks


@pytest.fixture
def shifted() -> Iterator[Callable[[str], dict[str, str]]]:
    """shifted("+1h"): the environment in which a process sees another time of day; its stop watch stays right."""
    leave_out_unless_required("" if FAKETIME else "A shifted clock needs libfaketime: apt-get install faketime")
    yield lambda by: {"LD_PRELOAD": str(FAKETIME), "FAKETIME": by, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def test_replicas_whose_clocks_differ_by_an_hour_follow_each_other_all_the_same(
    set_stage: SetStage, proxy: Proxy, shifted: Callable[[str], dict[str, str]]
) -> None:
    """By the proxy, which speaks plain HTTP: by a clock that is late the server's certificate is not valid yet."""
    stage = set_stage(16, partial_s=TAKEOVER_S)
    way = proxy.kubeconfig()
    first = stage.run("a", kubeconfig=way)
    ahead = stage.run("b", kubeconfig=way, environment=shifted("+1h"), wait=False)
    ahead.wait_said("synced")
    behind = stage.run("c", kubeconfig=way, environment=shifted("-1h"), wait=False)
    behind.wait_said("synced")
    stage.stays(lambda: holder(stage.cluster, stage.namespace) == "a", LEASE_S + 1, "the Lease stays where it is")
    load: list[Gang] = []
    for number, leader in enumerate((first, ahead, behind)):
        assert holder(stage.cluster, stage.namespace) in ("a", "b", "c")
        wave = [stage.gang(form, f"w{number}-{form}", 3, 2) for form in FORMS]
        stage.create(*wave)
        load += wave
        stage.wait_binds(9 * number + 2)
        leading = {"a": first, "b": ahead, "c": behind}[holder(stage.cluster, stage.namespace)]
        if leader is not behind:
            leading.kill()
        stage.wait_whole(*load, timeout_s=2 * TAKEOVER_S)


# ---- without an election


def test_two_that_both_decide_are_kept_apart_by_the_api_server_and_the_kubelet(
    set_stage: SetStage, proxy: Proxy
) -> None:
    """Nobody should do that. No pod is bound twice; a node that both filled is sorted out by its kubelet."""
    stage = set_stage(8, own=(), foreign=True, partial_s=20)
    alone = {"leaderElection.enabled": "false"}
    before = stage.cluster.requests()
    # Both through the proxy: where one heard of the pods before the other, it would have bound them all by then.
    first, second = (stage.run(name, values=alone, kubeconfig=proxy.kubeconfig()) for name in ("a", "b"))
    made: list[Gang] = []
    with proxy.delay(0.4, BINDS):  # what one has sent has not arrived yet when the other decides
        for number in range(12):
            new = [stage.replicas(f"w{number}-gang", 2, 2, minimum=2), stage.replicas(f"w{number}-free", 1, 1)]
            stage.create(*new)
            made += new
        stage.wait_whole(*made, timeout_s=30)
    first.stop()
    stage.until(lambda: not stage.watcher.over_now(), 10, "no node is over its allocatable")
    stage.wait_whole(*made, timeout_s=20)
    second.stop()
    bind = stage.cluster.requests().since(before)
    refused = bind.of(verb="POST", resource="pods/binding", status=409)
    assert refused > 0, "both were at work"
    print(f"{bind.of(verb='POST', resource='pods/binding', status=201)} binds, {refused} refused as double.")


# ---- beside another scheduler


def test_what_another_scheduler_binds_is_seen_within_a_second(set_stage: SetStage) -> None:
    stage = set_stage(2, foreign=True)
    replica = stage.run()
    stage.admin.create(gpu_pod("foreign", stage.namespace, 8, scheduler="another"))
    stage.admin.bind(stage.namespace, "foreign", "n00000")
    began = time.monotonic()
    stage.until(lambda: replica.metrics().of("berth_gpus_allocated") == 8, 5, "it is counted")
    assert time.monotonic() - began < 1.0
    stage.create(stage.single("own", 8))
    stage.wait_whole(stage.single("own", 8), timeout_s=2)
    assert stage.nodes_of("own") == ["n00001"]


def test_an_over_commit_by_another_scheduler_is_settled(set_stage: SetStage) -> None:
    """The kubelet refuses whoever comes second; its owner makes the pod again, and it goes where there is room."""
    stage = set_stage(2, foreign=True)
    stage.run()
    own = stage.replicas("own", 1, 8)
    stage.create(own)
    stage.wait_whole(own)
    (taken,) = stage.nodes_of("own")
    stage.admin.create(gpu_pod("foreign", stage.namespace, 8, scheduler="another"))
    stage.admin.bind(stage.namespace, "foreign", taken)
    began = time.monotonic()
    stage.until(lambda: stage.watcher.over_now() or stage.pod("foreign")["status"].get("phase") == "Failed", 1, "seen")
    stage.until(lambda: not stage.watcher.over_now(), 10, "settled")
    assert time.monotonic() - began < 10
    stage.stays(lambda: stage.nodes_of("own") == [taken], 1, "who was there first stays")


def test_the_real_scheduler_on_the_same_nodes(set_stage: SetStage, proxy: Proxy) -> None:
    """Both fill the same eight nodes to nine tenths at the same time; all of it runs in the end.

    Berth's binds are on their way while the other one binds: often to where they go.
    """
    stage = set_stage(8, foreign=True, partial_s=20)
    stage.cluster.start_component(SCHEDULER)
    stage.run(kubeconfig=proxy.kubeconfig())
    own = [stage.replicas(f"own-{number}", 2, 2, minimum=2) for number in range(7)]
    theirs = [stage.replicas(f"theirs-{number}", 4, 1, scheduler="default-scheduler") for number in range(7)]
    with proxy.hold(BINDS) as held:
        stage.create(*own)
        stage.until(lambda: held.met >= len(own), 10, "the first bind of each gang is on its way")
        stage.create(*theirs)
        stage.wait_whole(*theirs)
    made = own + theirs
    stage.wait_whole(*made, timeout_s=30)
    stage.until(lambda: not stage.watcher.over_now(), 10, "no node is over its allocatable")

    def all_run() -> bool:
        return not missing(stage.admin, made) and all(p["status"]["phase"] == "Running" for p in bound(stage.pods()))

    stage.until(all_run, 20, "all of it runs")
    assert stage.kubelet.rejections, "they met"


# ---- limits


def test_a_queue_limit_holds_when_the_leader_is_killed_in_a_burst(set_stage: SetStage, namespace: str) -> None:
    stage = set_stage(16, partial_s=2 * TAKEOVER_S, limits=[namespace_limit(namespace, 24)])
    queue = {
        "apiVersion": "berth.dev/v1alpha1",
        "kind": "GPUQueue",
        "metadata": {"name": stage.namespace},
        "spec": {"namespaces": [stage.namespace], "limit": {"*": 24}},
    }
    path = stage.admin.path_of(stage.admin.create(queue))
    try:
        replica = stage.run(values={"clients.inFlight": 1})
        load = [stage.gang(form, f"{form}-{number}", 4, 1) for form in FORMS for number in range(4)]
        stage.create(*load[:6])
        stage.wait_binds(7)
        replica.kill()
        stage.create(*load[6:])
        replica.start()
        stage.until(lambda: len(bound(stage.pods())) == 24, 2 * TAKEOVER_S, "as much as the limit allows is bound")
        stage.stays(lambda: len(bound(stage.pods())) == 24, 2, "and no more")
        whole = [each for each in load if len(stage.nodes_of(each.name)) == 4]
        assert len(whole) == 6, "the limit is used by whole gangs"
        waits = next(each for each in load if each not in whole)
        verdict = stage.wait_verdict(waits.name, "LimitExceeded")
        assert "24" in verdict["sentence"]
    finally:
        stage.admin.delete(path)
