"""What users see on a real API server: what it accepts, what it makes of it, and how long it takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.actions import conditions
from berth.actions.binding import Binder, Order, Outcome
from berth.actions.conditions import PodSaid
from berth.actions.fence import Fenced
from berth.actions.letting_in import LettingIn
from berth.actions.telling import Teller
from berth.actions.writing import Writing
from berth.app.scheduler.driver import by_workload
from berth.kube.client import Client
from berth.kube.discover import Served, served
from berth.kube.find_access import load_access
from berth.model.reasons import Answer, Cause, Reason, Verdict
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan
from berth.scheduling.tables import Tables
from berth.sources.live.follow import Follower
from berth.sources.live.world import World
from devcluster import Admin, Cluster, gpu_pod, pod_group
from kinds import foreign_kind, install, remove
from versions import needs_pod_groups

ROOT = Path(__file__).parents[2]
VERDICTS = "/apis/berth.dev/v1alpha1"
UPSTREAM, KAI = "scheduling.k8s.io/v1beta1", "scheduling.run.ai/v2alpha2"
VOLCANO, PLUGINS = "scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"


@pytest.fixture
def kinds(cluster: Cluster) -> Iterator[None]:
    """The kinds of berth.dev, and PodGroups of three other projects."""
    wanted = [
        *(yaml.safe_load((ROOT / "deploy" / "crds" / f"berth.dev_{name}.yaml").read_text())
          for name in ("verdicts", "gpuqueues", "gputopologies")),
        foreign_kind(KAI, "PodGroup", "podgroups"),
        foreign_kind(VOLCANO, "PodGroup", "podgroups", has_status=False),
        foreign_kind("batch.volcano.sh/v1alpha1", "Job", "jobs"),
        foreign_kind(PLUGINS, "PodGroup", "podgroups"),
    ]  # fmt: skip
    install(cluster.admin, wanted)
    for left in cluster.admin.items(f"{VERDICTS}/verdicts"):
        # Of an earlier test, whose namespace is still going: whoever adopts it would remove it, and count that.
        meta = left["metadata"]
        cluster.admin.delete(f"{VERDICTS}/namespaces/{meta['namespace']}/verdicts/{meta['name']}")
    yield
    cluster.admin.delete(f"{VERDICTS}/gpuqueues")
    remove(cluster.admin, wanted[3:])


class Stage:
    """The scheduler without its loop: what is there, one decision at a time, and its telling."""

    def __init__(self, client: Client, known: Served) -> None:
        self.client = client
        self.world = World(["berth"])
        self.follower = Follower(client, self.world, known)
        self.binder = Binder(client, self._heard)
        self.teller = Teller(client, known, schedulers=["berth"], busy=lambda: self.binder.pending > 0)
        self.tables = Tables()

    def _heard(self, outcome: Outcome) -> None:
        self.teller.heard(outcome)

    def decide(self, verdict: Verdict | None = None) -> Plan:
        """One cycle. With `verdict` everybody is refused for that."""
        snapshot = self.world.snapshot(time.time())
        plan = cycle(snapshot, None, self.tables)
        if verdict is not None:
            empty = plan.workload[:0]
            said = dict.fromkeys(range(len(snapshot.workloads)), verdict)
            plan = Plan(snapshot.workloads, snapshot.nodes, empty, empty, empty, plan.devices[:0], said, {}, {})
        for workload, places in by_workload(plan):
            orders = []
            for name, node in places:
                record = self.world.assume((workload.namespace, name), node)
                if record is not None:
                    orders.append(Order((workload.namespace, name), record.uid, node))
            self.binder.submit(orders)
        self.teller.tell(plan, snapshot, self.world)
        return plan

    async def until(self, claim: Callable[[], bool], longest_s: float = 10.0) -> None:
        async with asyncio.timeout(longest_s):
            while not claim():
                await asyncio.sleep(0.01)

    def waiting(self) -> int:
        return sum(len(names) for w in self.world.snapshot(time.time()).workloads for names in w.pods)


def on_stage(cluster: Cluster, story: Callable[[Stage], Awaitable[None]], longest_s: float = 90.0) -> None:
    async def run() -> None:
        access = load_access(str(cluster.kubeconfig_of("admin")))
        async with asyncio.timeout(longest_s), Client(access) as client:
            stage = Stage(client, await served(client))
            follow = asyncio.create_task(stage.follower.run())
            try:
                await stage.follower.synced()
                await story(stage)
            finally:
                follow.cancel()
                await asyncio.gather(follow, return_exceptions=True)
                await stage.binder.close()
                await stage.teller.close()

    asyncio.run(run())


def scheduled(pod: dict[str, Any]) -> dict[str, Any]:
    return next((c for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled"), {})


def refusal(reason: Reason = Reason.NotEnoughGpus) -> Verdict:
    return Verdict("x", Answer.NotYet, (Cause(reason, "no room", 8, 0, unlock=("more",)),))


@needs_pod_groups
@pytest.mark.usefixtures("kinds")
def test_a_large_gang_that_does_not_fit_and_then_does(
    cluster: Cluster, admin: Admin, namespace: str, make_nodes: Callable[..., list[str]]
) -> None:
    """1,001 pods: each has its reason within two seconds of the decision, and nothing is written after it."""
    make_nodes(126, "h100")
    admin.create_all(gpu_pod(f"filler-{i}", namespace, 8) for i in range(1))
    admin.create(pod_group("train", namespace, 1001))
    admin.create_all(gpu_pod(f"train-{i}", namespace, 1, group="train") for i in range(1001))
    pods = f"/api/v1/namespaces/{namespace}/pods"

    async def story(stage: Stage) -> None:
        teller = stage.teller
        await teller.adopt()
        await stage.until(lambda: stage.waiting() == 1002)
        plan = stage.decide()
        began = time.monotonic()
        assert [v.reason for v in plan.verdicts.values()] == [Reason.NotEnoughGpus]
        await stage.until(lambda: teller.counts["verdicts_written"] == 1)
        first_s = time.monotonic() - began
        await stage.until(lambda: teller.counts["pods_written"] == 1001, 30)
        all_s = time.monotonic() - began
        print(f"\nVerdict after {first_s:.3f} s, the last of 1,001 pods after {all_s:.2f} s")
        assert first_s < 2.0, "0.02 s on an idle machine of two cores"
        assert all_s < 20.0, "2 s on an idle machine of two cores"
        await teller.idle()
        before, cpu = dict(teller.counts), time.process_time()
        await asyncio.sleep(4)
        spent = time.process_time() - cpu
        print(f"CPU of the following 4 s: {spent:.3f} s")
        stage.decide()
        await teller.idle()
        assert dict(teller.counts) == before

        items = await asyncio.to_thread(admin.items, pods)
        told = [scheduled(p) for p in items if p["metadata"]["name"].startswith("train-")]
        assert {(c["status"], c["reason"]) for c in told} == {("False", "Unschedulable")}
        assert {c["message"].partition(":")[0] for c in told} == {"NotEnoughGpus"}
        group = await asyncio.to_thread(admin.get, f"/apis/{UPSTREAM}/namespaces/{namespace}/podgroups/train")
        [said] = group["status"]["conditions"]
        assert (said["type"], said["status"], said["reason"]) == (
            "PodGroupInitiallyScheduled",
            "False",
            "Unschedulable",
        )
        shown = await asyncio.to_thread(cluster.kubectl, "get", "verdicts", "-n", namespace)
        print(shown)
        assert "NotEnoughGpus" in shown and "1001" in shown
        by_queue = await asyncio.to_thread(
            cluster.kubectl, "get", "verdicts", "-n", namespace, "--field-selector", f"queue={namespace}", "-o", "name"
        )
        assert by_queue.strip() == "verdict.berth.dev/podgroup-train"

        await asyncio.to_thread(admin.delete, f"{pods}/filler-0", 0)
        await stage.until(lambda: stage.world.record((namespace, "filler-0")) is None)
        stage.decide()
        await stage.until(lambda: teller.counts["verdicts_removed"] == 1, 30)
        await teller.idle()

    on_stage(cluster, story)
    assert admin.items(f"{VERDICTS}/verdicts") == []
    assert {scheduled(p)["status"] for p in admin.items(pods)} == {"True"}
    [said] = admin.get(f"/apis/{UPSTREAM}/namespaces/{namespace}/podgroups/train")["status"]["conditions"]
    assert (said["status"], said["reason"]) == ("True", "Scheduled")
    events = admin.items(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
    of_gang = [(e["reason"], e["regarding"]["kind"]) for e in events if e["regarding"]["name"] == "train"]
    assert sorted(of_gang) == [("NotEnoughGpus", "PodGroup"), ("Scheduled", "PodGroup")]
    assert {e["note"] for e in events if e["reason"] == "Scheduled" and e["regarding"]["kind"] == "Pod"}
    assert "Scheduled" in cluster.kubectl("describe", "podgroup", "train", "-n", namespace)


GROUPS = {
    "upstream": (UPSTREAM, {"schedulingGroup": {"podGroupName": "pg"}}, {}, {}),
    "kai": (KAI, {}, {}, {"pod-group-name": "pg"}),
    "volcano": (VOLCANO, {}, {}, {"scheduling.k8s.io/group-name": "pg"}),
    "plugins": (PLUGINS, {}, {"scheduling.x-k8s.io/pod-group": "pg"}, {}),
}


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize("dialect", [pytest.param("upstream", marks=needs_pod_groups), "kai", "volcano", "plugins"])
def test_each_dialects_group_says_it_in_its_own_form(
    cluster: Cluster, admin: Admin, namespace: str, make_nodes: Callable[..., list[str]], dialect: str
) -> None:
    api_version, spec, labels, annotations = GROUPS[dialect]
    make_nodes(2, "h100")
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}} if dialect == "upstream" else {"minMember": 2}
    admin.create(
        {
            "apiVersion": api_version,
            "kind": "PodGroup",
            "metadata": {"name": "pg", "namespace": namespace},
            "spec": policy,
        }
    )
    admin.create_all(gpu_pod(f"p{i}", namespace, 8, labels=labels, annotations=annotations, **spec) for i in range(2))
    path = f"/apis/{api_version}/namespaces/{namespace}/podgroups/pg"
    told: list[dict[str, Any]] = []

    async def story(stage: Stage) -> None:
        await stage.until(lambda: stage.waiting() == 2)
        stage.decide(refusal())
        await stage.teller.idle()
        told.append(await asyncio.to_thread(admin.get, path))
        stage.decide()
        await stage.until(lambda: stage.teller.counts["verdicts_removed"] == 1)
        await stage.teller.idle()
        told.append(await asyncio.to_thread(admin.get, path))

    on_stage(cluster, story)
    refused, placed = (one.get("status") or {} for one in told)
    if dialect == "upstream":
        assert [c["status"] for c in (*refused["conditions"], *placed["conditions"])] == ["False", "True"]
    elif dialect == "kai":
        assert refused["schedulingConditions"][0]["reasons"][0]["reason"] == "NotEnoughGpus"
        assert placed["schedulingConditions"] == []
    elif dialect == "volcano":
        assert (refused["phase"], placed["phase"]) == ("Inqueue", "Running")
        assert [c["type"] for c in (*refused["conditions"], *placed["conditions"])] == ["Unschedulable", "Scheduled"]
    else:
        assert (refused["phase"], placed["phase"]) == ("Pending", "Scheduling")
    assert told[1]["spec"] == told[0]["spec"], "the spec is not ours"


@pytest.mark.usefixtures("kinds")
def test_the_verdict_goes_with_its_workload_even_if_no_scheduler_runs(
    cluster: Cluster, admin: Admin, namespace: str, make_nodes: Callable[..., list[str]]
) -> None:
    make_nodes(1, "h100")
    admin.create(gpu_pod("solo", namespace, 64))

    async def story(stage: Stage) -> None:
        await stage.until(lambda: stage.waiting() == 1)
        stage.decide()
        await stage.teller.idle()

    on_stage(cluster, story)
    path = f"{VERDICTS}/namespaces/{namespace}/verdicts"
    [said] = admin.items(path)
    assert (said["metadata"]["name"], said["verdict"], said["reason"]) == ("pod-solo", "Never", "LargerThanNode")
    admin.delete(f"/api/v1/namespaces/{namespace}/pods/solo", 0)
    admin.until(lambda: not admin.items(path), 30, "the garbage collector has taken the Verdict")


@pytest.mark.usefixtures("kinds")
def test_a_new_leader_takes_over_what_is_there(
    cluster: Cluster, admin: Admin, new_namespace: Callable[..., str], make_nodes: Callable[..., list[str]]
) -> None:
    make_nodes(1, "h100")
    here = new_namespace()
    admin.create_all(gpu_pod(f"p{i}", here, 8) for i in range(3))
    stale = {
        "apiVersion": "berth.dev/v1alpha1", "kind": "Verdict", "metadata": {"name": "gang-gone", "namespace": here},
        "workload": {"kind": "Gang", "name": "gone"}, "verdict": "NotYet", "reason": "NotEnoughGpus", "sentence": "old",
        "since": "2026-01-01T00:00:00Z", "at": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    admin.create(stale)
    said: list[dict[str, Any]] = []
    counts: list[dict[str, int]] = []

    async def story(stage: Stage) -> None:
        await stage.teller.adopt()
        await stage.until(lambda: stage.waiting() == 3)
        stage.decide(refusal())
        await stage.teller.idle()
        said.extend(await asyncio.to_thread(admin.items, f"{VERDICTS}/namespaces/{here}/verdicts"))
        counts.append(dict(stage.teller.counts))

    on_stage(cluster, story)
    assert sorted(v["metadata"]["name"] for v in said) == ["pod-p0", "pod-p1", "pod-p2"]
    assert (counts[0]["verdicts_written"], counts[0]["verdicts_removed"], counts[0]["pods_written"]) == (3, 1, 3)
    versions = {v["metadata"]["resourceVersion"] for v in said}
    said.clear()
    on_stage(cluster, story)
    assert {v["metadata"]["resourceVersion"] for v in said} == versions, "nothing was written again"
    assert counts[1].get("pods_written", 0) == counts[1].get("verdicts_written", 0) == 0


def test_what_a_patch_of_a_pods_status_needs_and_does(cluster: Cluster, admin: Admin, namespace: str) -> None:
    """A uid is a precondition; the condition is merged; a node that is kept can be named and taken back."""
    pod = admin.create(gpu_pod("solo", namespace))
    uid, key = pod["metadata"]["uid"], (namespace, "solo")
    path = f"/api/v1/namespaces/{namespace}/pods/solo"
    said = conditions.condition(refusal(), "2026-11-29T22:00:00Z")

    async def story(stage: Stage) -> None:
        writing = Writing(Fenced(stage.client, lambda: True), await served(stage.client), stage.teller.counts)

        async def write(before: PodSaid, after: PodSaid, condition: bytes) -> Any:
            changed = [name for name in conditions.FIELDS if getattr(before, name) != getattr(after, name)]
            return await writing.write_pod(key, after.uid, conditions.change(after, changed, condition))

        other = "00000000-0000-0000-0000-000000000000"
        assert await write(PodSaid(other), PodSaid(other, "NotEnoughGpus"), said) is None
        there = await write(PodSaid(uid), PodSaid(uid, "NotEnoughGpus", "n1"), said)
        assert there.said == PodSaid(uid, "NotEnoughGpus", "n1")
        quota = conditions.condition(refusal(Reason.QuotaExceeded), "")
        there = await write(PodSaid(uid, "NotEnoughGpus", "n1"), PodSaid(uid, "QuotaExceeded"), quota)
        assert there.said == PodSaid(uid, "QuotaExceeded")
        pod = await asyncio.to_thread(admin.get, path)
        assert scheduled(pod)["lastTransitionTime"] == "2026-11-29T22:00:00Z"
        assert "nominatedNodeName" not in pod["status"]
        await writing.write_pod(key, uid, conditions.bound_after_all(uid, "2026-11-29T23:00:00Z"))
        pod = await asyncio.to_thread(admin.get, path)
        assert scheduled(pod)["status"] == "True"
        assert not {"reason", "message"} & set(scheduled(pod))

    on_stage(cluster, story)


@pytest.mark.usefixtures("kinds")
def test_a_queues_status_is_taken(
    cluster: Cluster, admin: Admin, namespace: str, make_nodes: Callable[..., list[str]]
) -> None:
    make_nodes(1, "h100")
    admin.create({"apiVersion": "berth.dev/v1alpha1", "kind": "GPUQueue", "metadata": {"name": "q"},
                  "spec": {"parent": "nobody", "namespaces": [namespace]}})  # fmt: skip
    admin.create_all(gpu_pod(f"p{i}", namespace, 8) for i in range(2))
    path = f"{VERDICTS}/gpuqueues/q"

    async def story(stage: Stage) -> None:
        await stage.until(lambda: stage.waiting() == 2)
        stage.decide()
        await stage.until(lambda: stage.teller.counts["queues_written"] == 1)

    on_stage(cluster, story)
    status = admin.get(path)["status"]
    assert (status["waiting"], status["waitingGpus"], status["observedGeneration"]) == (1, 8, 1)
    assert [(c["status"], c["reason"]) for c in status["conditions"]] == [("False", "ParentNotFound")]


@pytest.mark.usefixtures("kinds")
def test_a_volcano_job_is_let_in(cluster: Cluster, admin: Admin, namespace: str) -> None:
    meta = {"namespace": namespace}
    job = admin.create({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j", **meta},
        "spec": {"schedulerName": "berth"},
    })  # fmt: skip
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": "Job",
        "name": "j",
        "uid": job["metadata"]["uid"],
        "controller": True,
    }
    admin.create({
        "apiVersion": VOLCANO, "kind": "PodGroup", "metadata": {"name": "j", "ownerReferences": [owner], **meta},
        "spec": {"minMember": 2}, "status": {"phase": "Pending"},
    })  # fmt: skip

    async def story(stage: Stage) -> None:
        letting = LettingIn(stage.client, await served(stage.client), ["berth"], may_write=lambda: True)
        work = asyncio.create_task(letting.run())
        await stage.until(lambda: letting.counts["groups_let_in"] == 1)
        await asyncio.sleep(0.5)
        assert letting.counts["groups_let_in"] == 1
        work.cancel()
        await letting.close()

    on_stage(cluster, story)
    group = admin.get(f"/apis/{VOLCANO}/namespaces/{namespace}/podgroups/j")
    assert group["status"]["phase"] == "Inqueue"


def test_without_any_kind_of_ours_the_pods_are_told(
    cluster: Cluster, admin: Admin, namespace: str, make_nodes: Callable[..., list[str]]
) -> None:
    make_nodes(1, "h100")
    admin.create(gpu_pod("solo", namespace, 64))

    async def story(stage: Stage) -> None:
        stage.teller = Teller(stage.client, Served({}, (await served(stage.client)).server), schedulers=["berth"])
        await stage.teller.adopt()
        await stage.until(lambda: stage.waiting() == 1)
        stage.decide()
        await stage.teller.idle()

    on_stage(cluster, story)
    said = scheduled(admin.get(f"/api/v1/namespaces/{namespace}/pods/solo"))
    assert (said["status"], said["reason"]) == ("False", "Unschedulable")
