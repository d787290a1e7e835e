"""API server, etcd and network that go away, stand still, lose answers and say no: Berth goes on where it was."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from berth.sources.live.unheard import PATIENCE_S
from devcluster import Admin, gpu_pod
from devcluster.options import API_SERVER, ETCD
from gangs import JOB, UPSTREAM, Gang
from kinds import foreign_kind, install, remove
from proxy import BINDS, Proxy
from scheduler import RENEW_S
from stage import SetStage, Stage

BURST = 32  # pods of Stage.mixed
# Servers that are away hold up a gang that is half bound, whoever decides: until they are back.
PARTIAL_S = 15.0


@pytest.fixture
def stage(set_stage: SetStage) -> Stage:
    return set_stage(partial_s=PARTIAL_S)


# ---- the servers themselves


@pytest.mark.parametrize("server", [API_SERVER, ETCD])
def test_a_server_that_is_killed_during_a_burst(stage: Stage, server: str) -> None:
    stage.run(values={"clients.inFlight": 2})
    first, second = stage.mixed("first"), stage.mixed("second")
    stage.create(*first)
    stage.wait_binds(10)
    stage.cluster.restart(server, down_s=0.5)
    stage.cluster.wait_ready(API_SERVER)
    stage.create(*second)
    stage.wait_whole(*first, *second, timeout_s=30)
    assert len(stage.pods()) == 2 * BURST


@pytest.mark.parametrize("server", [API_SERVER, ETCD])
def test_a_server_that_stands_still_for_longer_than_the_lease(stage: Stage, server: str) -> None:
    """Two replicas: none may write what it decided before, on the ground of a Lease that it cannot renew."""
    stage.run("a", values={"clients.inFlight": 2})
    stage.run("b", values={"clients.inFlight": 2}, wait=False).wait_said("synced")
    first, second = stage.mixed("first"), stage.mixed("second")
    stage.create(*first)
    stage.wait_binds(10)
    stage.cluster.pause(server)
    time.sleep(6)
    stage.cluster.resume(server)
    stage.create(*second)
    stage.wait_whole(*first, *second, timeout_s=40)
    assert len(stage.pods()) == 2 * BURST


def test_while_the_server_is_away_it_waits_quietly(stage: Stage) -> None:
    """And ends when it is told to, although nothing can be written any more."""
    replica = stage.run()
    waits = [stage.gang(UPSTREAM, f"waits-{number}", 20, 8) for number in range(5)]
    stage.create(*waits)
    stage.until(lambda: _all_told(stage), 20, "all are told")
    stage.cluster.kill(API_SERVER)
    before, cpu_s = len(replica.lines()), replica.usage().cpu_s
    time.sleep(6)
    assert len(replica.lines()) - before < 60
    assert replica.usage().cpu_s - cpu_s < 1.5
    replica.stop(patience_s=20)


def _all_told(stage: Stage) -> bool:
    """Every pod that waits says why."""
    pods = [pod for pod in stage.pods() if not pod["spec"].get("nodeName")]
    return bool(pods) and all(pod["status"].get("conditions") for pod in pods)


# ---- the way to them


def test_a_leader_that_could_not_renew_for_a_moment_goes_on_by_itself(stage: Stage, proxy: Proxy) -> None:
    """Its Lease is its own still, nobody else has led; what it left unsent is sent, without anything new to wake it."""
    stage.run(kubeconfig=proxy.kubeconfig(), values={"clients.inFlight": 1})
    gang = stage.gang(UPSTREAM, "train", 12, 2)
    with proxy.delay(0.25, BINDS):
        stage.create(gang)
        stage.wait_binds(2)
        with proxy.answer(503, "/leases/"):
            time.sleep(RENEW_S + 0.4)
        stage.wait_whole(gang, timeout_s=10)


def test_connections_that_are_cut_again_and_again(stage: Stage, proxy: Proxy) -> None:
    stage.run(kubeconfig=proxy.kubeconfig(), values={"clients.inFlight": 4})
    waves: list[Gang] = []
    for number in range(3):
        wave = stage.mixed(f"w{number}")[: 4 if number else None]
        stage.create(*wave)
        waves += wave
        for _ in range(4):
            time.sleep(0.15)
            assert proxy.cut() > 0
    stage.wait_whole(*waves, timeout_s=30)


def test_answers_to_binds_that_never_arrive(stage: Stage, proxy: Proxy) -> None:
    """The bind is carried out, the connection breaks: it is looked at before anything is sent again."""
    stage.run(kubeconfig=proxy.kubeconfig())
    gangs = stage.mixed("lost")
    with proxy.lose_answers(BINDS, times=20) as lost:
        stage.create(*gangs)
        stage.wait_whole(*gangs, timeout_s=30)
    assert lost.met == 20
    assert len(proxy.requests("POST", BINDS)) == BURST, "what had arrived is not sent again"


def test_watches_whose_position_is_gone(stage: Stage, proxy: Proxy) -> None:
    replica = stage.run(kubeconfig=proxy.kubeconfig())
    first, second = stage.mixed("first"), stage.mixed("second")
    stage.create(*first)
    assert proxy.expire() > 10
    stage.create(*second)
    stage.wait_whole(*first, *second, timeout_s=30)
    assert replica.metrics().of("berth_watch_relists_total", kind="pods") >= 1


def test_a_watch_that_falls_silent_books_nothing_twice(stage: Stage, proxy: Proxy) -> None:
    """Pods come and are bound while the scheduler hears nothing of either; then all of it comes at once."""
    stage.run(kubeconfig=proxy.kubeconfig())
    first, second = stage.mixed("first"), stage.mixed("second")
    stage.create(*first)
    stage.wait_binds(1)
    with proxy.silence("/pods"):
        stage.create(*second)
        time.sleep(2)
    stage.wait_whole(*first, *second, timeout_s=30)


@pytest.mark.parametrize(("form", "owners"), [(JOB, "/jobs"), (UPSTREAM, "/podgroups")])
def test_pods_whose_owner_has_not_been_heard_of_yet_are_not_taken_for_singles(
    set_stage: SetStage, proxy: Proxy, form: str, owners: str
) -> None:
    """Each kind has a watch of its own, and one may be late: a pod says whose it is before the owner is seen."""
    stage = set_stage(1)
    stage.run(kubeconfig=proxy.kubeconfig())
    gang = stage.gang(form, "pair", 2, 8)
    with proxy.silence(owners):
        stage.create(gang)
        stage.until(lambda: len(stage.pods()) == 2, 10, "both pods are there")
        stage.stays(lambda: not stage.nodes_of(), 1.5, "no half of the gang is bound")
    stage.wait_verdict("pair", "LargerThanCluster")


def test_an_owner_is_waited_for_longer_while_its_kind_cannot_be_watched(set_stage: SetStage, proxy: Proxy) -> None:
    """The position of the watch is gone, and the new list does not come."""
    stage = set_stage(1)
    stage.run(kubeconfig=proxy.kubeconfig())
    with proxy.hold("/apis/batch/v1/jobs"):
        assert proxy.expire("/jobs")
        stage.create(stage.gang(JOB, "pair", 2, 8))
        stage.until(lambda: len(stage.pods()) == 2, 10, "both pods are there")
        stage.stays(lambda: not stage.nodes_of(), PATIENCE_S + 1.5, "no half of the gang is bound")
    stage.wait_verdict("pair", "LargerThanCluster")


def test_a_job_is_not_started_before_the_one_above_it_has_been_heard_of(
    set_stage: SetStage, proxy: Proxy, admin: Admin
) -> None:
    """JobSet, Job, pod: one Job of two has room, the JobSet has not, and it is seen last."""
    definition = foreign_kind("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets")
    install(admin, [definition])
    try:
        stage = set_stage(1)
        stage.run(kubeconfig=proxy.kubeconfig())
        (job,) = stage.gang(JOB, "work", 2, 4).objects
        replicated = {"name": "work", "replicas": 2, "template": {"spec": job["spec"]}}
        job_set = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": {"replicatedJobs": [replicated]},
                   "metadata": {"name": "train", "namespace": stage.namespace}}  # fmt: skip
        with proxy.silence("/jobsets"):
            uid = admin.create(job_set)["metadata"]["uid"]
            owner = {"apiVersion": job_set["apiVersion"], "kind": "JobSet", "name": "train", "uid": uid,
                     "controller": True}  # fmt: skip
            for number in range(2):
                meta = {**job["metadata"], "name": f"train-work-{number}", "ownerReferences": [owner]}
                admin.create({**job, "metadata": meta})
            stage.until(lambda: len(stage.pods()) == 4, 10, "all pods are there")
            stage.stays(lambda: not stage.nodes_of(), 1.5, "no half of the gang is bound")
        stage.wait_verdict("train", "LargerThanCluster")
    finally:
        remove(admin, [definition])


def test_a_namespace_that_is_deleted_in_a_burst_silences_nobody_else(
    stage: Stage, new_namespace: Callable[..., str]
) -> None:
    """Nothing can be created in it any more; what is said elsewhere goes on to be said."""
    stage.run()
    doomed = new_namespace("doomed")
    stage.admin.create_all(gpu_pod(f"waits-{number}", doomed, 16) for number in range(60))
    stage.admin.delete(f"/api/v1/namespaces/{doomed}")
    waits = [stage.single(f"waits-{number}", 16) for number in range(3)]
    stage.create(*waits)
    for each in waits:
        stage.wait_verdict(each.name, "LargerThanNode", timeout_s=5)
    fits = stage.mixed("fits")
    stage.create(*fits)
    stage.wait_whole(*fits)


def test_a_slow_api(stage: Stage, proxy: Proxy) -> None:
    """Up to 0.4 s for each request, writes and reads in any order."""
    dice = random.Random(7)
    gangs = stage.mixed("slow") + stage.mixed("slower")
    with proxy.delay(lambda: dice.uniform(0.05, 0.4)):
        stage.run(kubeconfig=proxy.kubeconfig())
        stage.create(*gangs)
        stage.wait_whole(*gangs, timeout_s=30)
    assert len(stage.pods()) == 2 * BURST


BUSY = [(429, "TooManyRequests"), (503, "ServiceUnavailable"), (504, "Timeout")]


@pytest.mark.parametrize(("status", "reason"), BUSY)
def test_a_server_that_is_too_busy_is_asked_again(stage: Stage, proxy: Proxy, status: int, reason: str) -> None:
    stage.run(kubeconfig=proxy.kubeconfig())
    gangs = stage.mixed("busy")
    retry_after_s = 1 if status == 429 else None
    with proxy.answer(status, BINDS, "POST", times=25, reason=reason, retry_after_s=retry_after_s):
        stage.create(*gangs)
        stage.wait_whole(*gangs, timeout_s=30)
    assert len(proxy.requests("POST", BINDS)) == BURST + 25, "each is asked again once it was refused, and no more"


@pytest.mark.parametrize(("status", "reason"), [(409, "Conflict"), (403, "Forbidden")])
def test_binds_that_are_refused_for_a_while_are_decided_again(
    stage: Stage, proxy: Proxy, status: int, reason: str
) -> None:
    """The pod changed in between, a right was missing for a moment, a server was behind: the pod waits and is bound."""
    stage.run(kubeconfig=proxy.kubeconfig())
    gangs = stage.mixed("refused")
    with proxy.answer(status, BINDS, "POST", times=10, reason=reason):
        stage.create(*gangs)
        stage.wait_whole(*gangs, timeout_s=30)


def test_a_new_leader_whose_lists_break_off_does_not_decide_on_a_part(stage: Stage, proxy: Proxy) -> None:
    first = stage.run("a", values={"clients.inFlight": 1})
    second = stage.run("b", kubeconfig=proxy.kubeconfig(), wait=False)
    second.wait_said("synced")
    load = stage.mixed("load") + stage.mixed("more")
    stage.create(*load)
    stage.wait_binds(10)
    with (
        proxy.answer(503, "/api/v1/(pods|nodes)", "GET", times=4),
        proxy.lose_answers("/api/v1/(pods|nodes)", "GET", times=4),
    ):
        first.kill()
        stage.wait_whole(*load, timeout_s=40)


def test_who_cannot_be_told_is_placed_all_the_same(stage: Stage, proxy: Proxy) -> None:
    """Verdicts, events and conditions hang; binds do not wait for them."""
    stage.run(kubeconfig=proxy.kubeconfig())
    with proxy.hold("/verdicts|/events|/status"):
        stage.create(*(stage.gang(UPSTREAM, f"waits-{number}", 20, 8) for number in range(3)))
        time.sleep(2)
        gangs = stage.mixed("placed")
        stage.create(*gangs)
        stage.wait_whole(*gangs, timeout_s=5)


def test_everything_at_once(stage: Stage, proxy: Proxy) -> None:
    """Delays, lost answers, refusals and cuts, of any request, for eight seconds."""
    dice = random.Random(11)
    stage.run(kubeconfig=proxy.kubeconfig())
    gangs: list[Gang] = []
    with ExitStack() as faults:
        faults.enter_context(proxy.delay(lambda: dice.uniform(0, 0.2)))
        for number in range(4):
            faults.enter_context(proxy.lose_answers(times=10))
            faults.enter_context(proxy.answer(429, method="POST", times=5, retry_after_s=1))
            faults.enter_context(proxy.answer(503, method="GET", times=5))
            faults.enter_context(proxy.answer(409, method="PATCH", times=5))
            wave = stage.mixed(f"w{number}")[:3]
            stage.create(*wave)
            gangs += wave
            time.sleep(1)
            proxy.expire(dice.choice(["/pods", "/nodes", "/jobs"]))
            time.sleep(1)
            proxy.cut()
    stage.wait_whole(*gangs, timeout_s=30)
