"""What users of other schedulers complain of, as it would show on a live cluster.

Each test is a symptom; in brackets the number by which tests/scenarios/complaints knows it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from devcluster import gpu_pod
from devcluster.nodes import fake_node
from gangs import FORMS, JOB, KEYED, UPSTREAM, bound
from proxy import BINDS, Proxy
from stage import SetStage, Stage
from versions import needs_pod_groups

BERTH = "/apis/berth.dev/v1alpha1"
HIGH = "test-high"


def condition(pod: dict[str, Any]) -> dict[str, Any]:
    """PodScheduled, as it stands on a pod; {} where it does not."""
    return next((c for c in pod["status"].get("conditions", []) if c["type"] == "PodScheduled"), {})


def is_leaving(stage: Stage, name: str) -> bool:
    """It has been asked to go, or has gone."""
    return name not in {pod["metadata"]["name"] for pod in stage.pods()}


# ---- gangs


@pytest.mark.parametrize("form", FORMS)
def test_one_free_node_does_not_start_half_a_gang(set_stage: SetStage, form: str) -> None:
    """[1] Two pods of a node each, one node: none is bound until there is another."""
    stage = set_stage(1)
    stage.run()
    gang = stage.gang(form, "pair", 2, 8)
    stage.create(gang)
    stage.wait_verdict("pair", "LargerThanCluster")
    stage.stays(lambda: not bound(stage.pods()), 2, "nothing of it is bound")
    stage.admin.create_all(_more_nodes(1, 1))
    stage.wait_whole(gang, timeout_s=5)


def test_gangs_that_do_not_fit_hold_nothing(set_stage: SetStage) -> None:
    """[2] Nine of ten would fit: nothing is kept for them, and small pods start at once. Interleaved gangs do not
    lock each other out: one of three that want more than half each starts."""
    stage = set_stage(3)
    stage.run()
    large = stage.gang(UPSTREAM, "large", 4, 8)
    stage.create(large)
    stage.wait_verdict("large", "LargerThanCluster")
    thirds = [stage.gang(KEYED, f"third-{number}", 2, 8) for number in range(3)]
    pods = [pod for pair in zip(*(each.objects for each in thirds), strict=True) for pod in pair]
    stage.admin.create_all(pods)
    stage.until(lambda: len(bound(stage.pods())) == 2, 5, "one gang starts")
    small = [stage.single(f"small-{number}") for number in range(8)]
    stage.create(*small)
    stage.wait_whole(*small, timeout_s=5)
    assert sorted(len(stage.nodes_of(each.name)) for each in thirds) == [0, 0, 2]


@needs_pod_groups
def test_pods_may_come_before_their_group(set_stage: SetStage) -> None:
    """[3] In any order, without minutes of waiting, without a flood in the log."""
    stage = set_stage(4)
    replica = stage.run()
    gang = stage.gang(UPSTREAM, "late", 3, 8)
    group, *pods = gang.objects
    stage.admin.create_all(pods[:2])
    stage.stays(lambda: not bound(stage.pods()), 2, "its group is not there")
    stage.admin.create(group)
    stage.stays(lambda: not bound(stage.pods()), 1, "it is not complete")
    stage.admin.create_all(pods[2:])
    stage.wait_whole(gang, timeout_s=2)
    hopeless = [stage.gang(UPSTREAM, f"hopeless-{number}", 5, 8) for number in range(5)]
    stage.create(*hopeless)
    stage.wait_verdict("hopeless-4", "LargerThanCluster")
    before, cpu_s = len(replica.lines()), replica.usage().cpu_s
    time.sleep(4)
    assert len(replica.lines()) - before < 5
    assert replica.usage().cpu_s - cpu_s < 0.4


def test_pairs_of_groups_start_together_or_not_at_all(set_stage: SetStage) -> None:
    """[4] A with B, C with D, room for one pair: nobody holds a half."""
    stage = set_stage(2)
    stage.run()
    pods = []
    for part in ("a", "b"):
        for pair in ("first", "second"):
            labels = {"berth.dev/gang": pair, "berth.dev/pod-set": part, "example.com/gang": pair}
            notes = {"berth.dev/min-count": "2", "example.com/gang-size": "2"}
            pods.append(gpu_pod(f"{pair}-{part}", stage.namespace, 8, labels=labels, annotations=notes))
    stage.admin.create_all(pods)
    stage.until(lambda: len(bound(stage.pods())) == 2, 5, "one pair is bound")
    stage.stays(lambda: len(bound(stage.pods())) == 2, 1, "and no more")
    assert sorted(len(stage.nodes_of(pair)) for pair in ("first", "second")) == [0, 2]


def test_a_gang_that_lost_a_member_gets_it_back_when_the_node_is_mended(set_stage: SetStage) -> None:
    """[5] It is below its minimum, the capacity comes back, the missing member is placed."""
    stage = set_stage(3, partial_s=30)
    stage.run()
    gang = stage.replicas("train", 3, 8, minimum=3)
    stage.create(gang)
    stage.wait_whole(gang)
    node = "/api/v1/nodes/n00002"
    stage.admin.patch(node, {"spec": {"unschedulable": True}})
    (lost,) = [pod for pod in stage.pods() if pod["spec"]["nodeName"] == "n00002"]
    stage.delete(lost["metadata"]["name"])
    stage.until(lambda: len(stage.pods()) == 3, 10, "its owner makes it again")
    stage.stays(lambda: len(bound(stage.pods())) == 2, 2, "there is no room for it")
    stage.admin.patch(node, {"spec": {"unschedulable": False}})
    stage.wait_whole(gang, timeout_s=5)


def test_a_stale_nomination_keeps_nobody_out(set_stage: SetStage) -> None:
    """[6] status.nominatedNodeName of a full node and of one that is gone, left by whoever scheduled before."""
    stage = set_stage(4)
    stage.admin.create(gpu_pod("there", stage.namespace, 8, scheduler="another"))
    stage.admin.bind(stage.namespace, "there", "n00000")
    gang = stage.gang(UPSTREAM, "train", 3, 8)
    stage.create(gang)
    for name, node in (("train-0", "n00000"), ("train-1", "gone"), ("train-2", "n00000")):
        stage.admin.patch(f"{stage.pods_path}/{name}/status", {"status": {"nominatedNodeName": node}})
    stage.run()
    stage.wait_whole(gang, timeout_s=5)


@pytest.mark.parametrize("form", FORMS)
def test_a_gang_that_is_larger_than_its_queue_is_not_half_started(
    set_stage: SetStage, berth_object: Callable[..., str], form: str
) -> None:
    """[8]"""
    stage = set_stage(4)
    berth_object("GPUQueue", stage.namespace, namespaces=[stage.namespace], limit={"*": 8})
    stage.run()
    stage.create(stage.gang(form, "cluster", 3, 4))
    stage.wait_verdict("cluster", "LargerThanLimit")
    fits = stage.gang(form, "fits", 2, 4)
    stage.create(fits)
    stage.wait_whole(fits, timeout_s=5)
    assert len(bound(stage.pods())) == 2


def test_leaders_do_not_fill_the_cluster_while_their_workers_do_not_exist(set_stage: SetStage) -> None:
    """[9] Of four replicas of a leader and a worker only the leaders have been created."""
    stage = set_stage(4)
    stage.run()
    gangs = [stage.gang(KEYED, f"replica-{number}", 2, 8) for number in range(4)]
    stage.admin.create_all(each.objects[0] for each in gangs)
    stage.wait_verdict("replica-3", "WaitingForGang")
    stage.stays(lambda: not bound(stage.pods()), 2, "no leader is bound alone")
    stage.admin.create_all(each.objects[1] for each in gangs)
    stage.until(lambda: len(bound(stage.pods())) == 4, 5, "as many as fit are whole")
    assert sorted(len(stage.nodes_of(each.name)) for each in gangs) == [0, 0, 2, 2]


def test_the_size_of_a_gang_follows_its_owner(set_stage: SetStage) -> None:
    """[10] A Job of four that waits is scaled to two and starts; one that is suspended and resumed starts, too."""
    stage = set_stage(2)
    stage.run()
    stage.create(stage.gang(JOB, "train", 4, 8))
    stage.wait_verdict("train", "LargerThanCluster")
    job = f"/apis/batch/v1/namespaces/{stage.namespace}/jobs/train"
    stage.admin.patch(job, {"spec": {"parallelism": 2, "completions": 2}})
    stage.until(lambda: len(bound(stage.pods())) == 2, 10, "the smaller one starts")
    stage.admin.patch(job, {"spec": {"suspend": True}})
    stage.until(lambda: not stage.pods(), 15, "its pods are gone")
    stage.admin.patch(job, {"spec": {"suspend": False}})
    stage.until(lambda: len(bound(stage.pods())) == 2, 15, "it starts again")


# ---- preemption


def test_an_idle_node_and_victims_are_used_together(set_stage: SetStage, high: str) -> None:
    """[12] Two nodes, one of them idle: only what stands on the other one leaves."""
    stage = set_stage(2)
    low = [stage.single(f"low-{number}", 4) for number in range(2)]
    stage.run()
    stage.create(*low)
    stage.wait_whole(*low)
    gang = stage.gang(UPSTREAM, "urgent", 2, 8, priority_class=high)
    stage.create(gang)
    stage.wait_whole(gang, timeout_s=10)
    assert stage.nodes_of("urgent") == ["n00000", "n00001"]
    assert is_leaving(stage, "low-0") and is_leaving(stage, "low-1")


def test_nobody_leaves_for_who_cannot_be_placed_even_so(set_stage: SetStage, high: str) -> None:
    """[13] Three nodes asked for, two there; and two in one rack, of which each has one."""
    stage = set_stage(2)
    low = [stage.single(f"low-{number}", 8) for number in range(2)]
    stage.run()
    stage.create(*low)
    stage.wait_whole(*low)
    stage.create(stage.gang(UPSTREAM, "urgent", 3, 8, priority_class=high))
    stage.wait_verdict("urgent", "LargerThanCluster")
    stage.stays(lambda: len(bound(stage.pods())) == 2, 3, "who runs goes on running")


def test_who_is_evicted_gives_way_once(set_stage: SetStage, high: str) -> None:
    """[14, live] The victim comes back, waits, and evicts nobody in turn: the evictions end."""
    stage = set_stage(2)
    stage.run()
    low = stage.replicas("low", 2, 8)
    stage.create(low)
    stage.wait_whole(low)
    urgent = stage.single("urgent", 8, priority_class=high)
    stage.create(urgent)
    stage.wait_whole(urgent, timeout_s=10)
    stage.until(lambda: len(stage.pods("low")) == 2, 10, "its owner makes the victim again")
    there = {pod["metadata"]["uid"] for pod in stage.pods()}
    stage.stays(lambda: {pod["metadata"]["uid"] for pod in stage.pods()} == there, 4, "nobody else leaves")


def test_two_that_make_room_at_once_do_not_take_the_same_place(set_stage: SetStage, high: str) -> None:
    """[13, 14, live] Two gangs above six nodes full of others: four of those leave, and each gang is whole."""
    stage = set_stage(6, kubelet={"stop_s": 0.5})
    stage.run()
    low = stage.replicas("low", 6, 8)
    stage.create(low)
    stage.wait_whole(low)
    there = {pod["metadata"]["uid"] for pod in stage.pods("low")}
    gangs = [stage.gang(form, f"urgent-{form}", 2, 8, priority_class=high) for form in (UPSTREAM, JOB)]
    stage.create(*gangs)
    stage.wait_whole(*gangs, timeout_s=15)
    time.sleep(2)
    assert len(there & {pod["metadata"]["uid"] for pod in stage.pods("low")}) == 2


def test_a_budget_is_heeded_until_it_allows_it(set_stage: SetStage, high: str) -> None:
    """[13, live] Both pods of a budget are needed: nobody leaves; one is enough: one leaves."""
    stage = set_stage(2)
    stage.run()
    low = stage.replicas("low", 2, 8)
    stage.create(low)
    stage.wait_whole(low)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "low", "namespace": stage.namespace},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "low"}}},
    }
    path = stage.admin.path_of(stage.admin.create(budget))
    stage.until(lambda: stage.admin.get(path).get("status", {}).get("currentHealthy") == 2, 10, "both count as healthy")
    urgent = stage.single("urgent", 8, priority_class=high)
    stage.create(urgent)
    stage.wait_verdict("urgent", "NotEnoughGpus")
    stage.stays(lambda: len(bound(stage.pods("low"))) == 2, 2, "nobody leaves")
    stage.admin.patch(path, {"spec": {"minAvailable": 1}})
    stage.wait_whole(urgent, timeout_s=15)
    stage.until(lambda: len(stage.pods("low")) == 2, 10, "its owner makes the one that left again")
    assert len(bound(stage.pods("low"))) == 1


def test_room_that_is_not_wanted_any_more_goes_back(set_stage: SetStage, high: str) -> None:
    """[2, live] Who had others leave is deleted before it starts: nothing is held for it."""
    stage = set_stage(2, kubelet={"stop_s": 1.5})
    stage.run()
    low = stage.replicas("low", 2, 8)
    stage.create(low)
    stage.wait_whole(low)
    stage.create(stage.single("urgent", 8, priority_class=high))
    stage.until(lambda: len(bound(stage.pods("low"))) == 1, 10, "one is on its way out")
    stage.delete("urgent")
    stage.wait_whole(low, timeout_s=10)


def test_a_daemon_is_not_asked_to_leave(set_stage: SetStage, high: str) -> None:
    """[19] It would come back to the same node; who can run elsewhere leaves."""
    stage = set_stage(2)
    stage.run()
    template = gpu_pod("agent", stage.namespace, 4, labels={"app": "agent"})
    template["spec"]["restartPolicy"] = "Always"
    template["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n00000"}
    daemon = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": stage.namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": template["spec"]},
        },
    }
    path = stage.admin.path_of(stage.admin.create(daemon))
    try:
        stage.until(lambda: len(bound(stage.pods())) == 1, 10, "the daemon runs")
        others = stage.single("other", 8)
        stage.create(others)
        stage.wait_whole(others)
        urgent = stage.single("urgent", 8, priority_class=high)
        stage.create(urgent)
        stage.wait_whole(urgent, timeout_s=10)
        assert stage.nodes_of("urgent") == ["n00001"]
        assert len(bound([pod for pod in stage.pods() if pod["metadata"]["name"].startswith("agent")])) == 1
    finally:
        stage.admin.delete(path)


def test_victims_are_of_one_rack_where_the_gang_has_to_be_in_one(set_stage: SetStage, high: str) -> None:
    """[20] And a gang that only prefers it is placed in one from the first pod on."""
    stage = set_stage(0)
    stage.admin.create_all(_more_nodes(4, 0, racks=("a", "a", "b", "b")))
    stage.run("a", values={"topology.levels": "rack=example.com/rack"})
    low = [stage.single(f"low-{number}", 8) for number in range(4)]
    stage.create(*low)
    stage.wait_whole(*low)
    notes = {"berth.dev/topology-required": "rack"}
    gang = stage.gang(KEYED, "urgent", 2, 8, priority_class=high, annotations=notes)
    stage.create(gang)
    stage.wait_whole(gang, timeout_s=10)
    assert stage.nodes_of("urgent") in (["n00000", "n00001"], ["n00002", "n00003"])
    assert sum(is_leaving(stage, each.name) for each in low) == 2


# ---- why


def test_everybody_who_waits_is_told_why(set_stage: SetStage, berth_object: Callable[..., str]) -> None:
    """[32] One dominant reason with numbers on each workload, its pods, and an event; taken back when it starts."""
    stage = set_stage(2)
    stage.run()
    fills = [stage.single(f"fills-{number}", 6) for number in range(2)]
    stage.create(*fills)
    stage.wait_whole(*fills)
    gangs = {form: stage.gang(form, f"waits-{form}", 2, 4) for form in FORMS}
    stage.create(*gangs.values())
    for form in FORMS:
        verdict = stage.wait_verdict(f"waits-{form}", "NotEnoughGpus")
        assert "2 pods of 4 GPUs" in verdict["sentence"] and verdict["causes"][0]["need"] == 8, verdict
        for pod in stage.pods(f"waits-{form}"):
            name = pod["metadata"]["name"]
            told = stage.until(lambda name=name: condition(stage.pod(name)), 10, f"{name} is told")
            assert told["reason"] == "Unschedulable" and "NotEnoughGpus" in told["message"]
    events = f"/apis/events.k8s.io/v1/namespaces/{stage.namespace}/events"
    told = {"NotEnoughGpus"}
    stage.until(lambda: len([e for e in stage.admin.items(events) if e["reason"] in told]) >= 3, 10, "events")
    for each in fills:
        stage.delete(each.name)
    stage.until(lambda: len(bound(stage.pods())) == 4, 10, "two of them start")
    stage.until(lambda: sum(stage.verdict(f"waits-{form}") is not None for form in FORMS) == 1, 10, "and wait no more")


# ---- accounts


def test_two_jobs_that_want_one_node_do_not_both_get_it(set_stage: SetStage, berth_object: Callable[..., str]) -> None:
    """[34] Pinned, in one burst; and with levels of topology that are taken away and made again meanwhile."""
    stage = set_stage(2)
    levels = [{"name": "rack", "label": "example.com/rack"}]
    path = berth_object("GPUTopology", stage.namespace, levels=levels)
    stage.run()
    here = {"kubernetes.io/hostname": "n00000"}
    pinned = [stage.gang(form, f"pinned-{form}", 2, 4, nodeSelector=here) for form in FORMS]
    stage.create(*pinned)
    stage.until(lambda: len(bound(stage.pods())) == 2, 10, "one of them is bound")
    stage.admin.delete(path)
    stage.stays(lambda: len(bound(stage.pods())) == 2, 1, "the others wait")
    berth_object("GPUTopology", f"{stage.namespace}-again", levels=levels)
    free = stage.gang(KEYED, "free", 2, 4, annotations={"berth.dev/topology-required": "rack"})
    stage.create(free)
    stage.wait_whole(free, timeout_s=5)
    assert stage.nodes_of("free") == ["n00001", "n00001"]
    for pod in stage.pods():
        if pod["spec"].get("nodeName") == "n00000":
            stage.delete(pod["metadata"]["name"])
    stage.until(lambda: len(bound(stage.pods())) == 4, 10, "the next one gets the node")


def test_a_node_that_blinks_keeps_what_it_holds(set_stage: SetStage) -> None:
    """[35] NotReady for a moment, while its pods run: nothing new goes there, nothing of it is given out again."""
    stage = set_stage(2)
    stage.run()
    runs = [stage.gang(UPSTREAM, f"runs-{number}", 2, 3) for number in range(2)]
    stage.create(*runs)
    stage.wait_whole(*runs)
    before = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in stage.pods()}
    for blink in range(2):
        for status in ("Unknown", "True"):
            ready = {"type": "Ready", "status": status, "reason": "KubeletReady" if status == "True" else "Silent"}
            for node in ("n00000", "n00001"):
                stage.admin.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": [ready]}},
                                  "application/strategic-merge-patch+json")  # fmt: skip
            stage.create(stage.single(f"late-{blink}-{status.lower()}", 2))
            time.sleep(0.5)
    stage.until(lambda: len(bound(stage.pods())) == 4 + 2, 10, "only what there is room for comes to it")
    stage.stays(lambda: len(bound(stage.pods())) == 6, 1, "and no more")
    assert before.items() <= {p["metadata"]["name"]: p["spec"].get("nodeName") for p in stage.pods()}.items()


UNALIGNED = ("TopologyAffinityError", "Resources cannot be allocated with Topology locality")
TOO_MANY = ("UnexpectedAdmissionError", "Allocate failed due to rpc error: code = Unknown desc = request for "
            "'nvidia.com/gpu: 2' too large: maximum request size for shared resources is 1; found 2, which is "
            "unexpected")  # fmt: skip
GPU_LOST = ("UnexpectedAdmissionError", "Allocate failed due to rpc error: GPU is lost, which is unexpected")


@pytest.mark.parametrize("why", [UNALIGNED, TOO_MANY], ids=["unaligned", "too many for its plugin"])
def test_a_pod_that_no_kubelet_admits_takes_no_node_away_from_others(set_stage: SetStage, why: tuple[str, str]) -> None:
    """[36, live] It is made again each time it is refused, anywhere; whoever else comes is placed at once."""

    def refuse(pod: dict[str, Any]) -> tuple[str, str] | None:
        return why if pod["metadata"]["name"].startswith("bad") else None

    stage = set_stage(3, kubelet={"refuse": refuse})
    stage.run()
    stage.create(stage.replicas("bad", 1, 2))
    stage.until(lambda: len(stage.kubelet.rejections) >= 3, 15, "each node has refused it")
    for number in range(4):
        good = stage.single(f"good-{number}", 4)
        stage.create(good)
        stage.wait_whole(good, timeout_s=2)
        time.sleep(2)
    assert len(stage.kubelet.rejections) < 20, "it is not tried in a loop"
    told = stage.until(lambda: [v for v in stage.verdicts() if v["reason"] == "BindRefused"], 15, "the next says so")
    assert all(each["workload"]["name"].startswith("bad") and why[0] in each["sentence"] for each in told)


def test_a_node_that_admits_nobody_does_not_swallow_everybody(set_stage: SetStage) -> None:
    """[36, live] It is empty, so it looks like the best place, each time; its neighbours have room for all."""

    def refuse(pod: dict[str, Any]) -> tuple[str, str] | None:
        return GPU_LOST if pod["spec"]["nodeName"] == "n00000" else None

    stage = set_stage(4, kubelet={"refuse": refuse})
    stage.run()
    for wave in range(3):
        owners = [stage.replicas(f"wave-{wave}-{number}", 1, 1 + number) for number in range(3)]
        stage.create(*owners)
        stage.wait_whole(*owners, timeout_s=5)
        time.sleep(2)
    stage.until(lambda: "n00000" not in stage.nodes_of(), 5, "all of them run")
    assert 0 < len(stage.kubelet.rejections) <= 9, "each owner has met it once at the most"


def test_a_pod_that_came_second_is_placed_again(set_stage: SetStage, proxy: Proxy) -> None:
    """[37] Another scheduler took the CPUs between decision and bind: OutOfcpu, and the next one goes elsewhere."""
    stage = set_stage(1, foreign=True)
    stage.run(kubeconfig=proxy.kubeconfig())
    own = stage.replicas("own", 1, 4)
    with proxy.hold(BINDS) as held:
        stage.create(own)
        stage.until(lambda: held.met, 10, "its bind is on its way")
        foreign = gpu_pod("foreign", stage.namespace, 0, scheduler="another")
        foreign["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "120"}}
        stage.admin.create(foreign)
        stage.admin.bind(stage.namespace, "foreign", "n00000")
        stage.admin.create_all(_more_nodes(1, 1))
    stage.wait_whole(own, timeout_s=10)
    stage.until(lambda: stage.nodes_of("own") == ["n00001"], 10, "it runs elsewhere")
    assert [each.reason for each in stage.kubelet.rejections] == ["OutOfcpu"]


# ---- blast radius


def test_no_nodes_are_bought_for_who_waits_for_its_queue(set_stage: SetStage, berth_object: Callable[..., str]) -> None:
    """[40] Autoscalers act on the reason Unschedulable: it is not said where another node would not help."""
    stage = set_stage(2)
    berth_object("GPUQueue", stage.namespace, namespaces=[stage.namespace], limit={"*": 4})
    stage.run()
    runs, waits = stage.single("runs", 4), stage.single("waits", 2)
    stage.create(runs)
    stage.wait_whole(runs)
    stage.create(waits)
    stage.wait_verdict("waits", "LimitExceeded")
    told = stage.until(lambda: condition(stage.pod("waits")), 10, "the pod is told")
    assert told["status"] == "False" and told["reason"] == "BerthWaiting"


def test_without_the_scheduler_pods_are_created_all_the_same(set_stage: SetStage) -> None:
    """[40] It stands in nobody's way: no webhook, and what was created meanwhile is bound when it is back."""
    stage = set_stage(2)
    replica = stage.run()
    replica.kill()
    kinds = "/apis/admissionregistration.k8s.io/v1"
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        assert not stage.admin.items(f"{kinds}/{kind}")
    began = time.monotonic()
    load = stage.mixed("meanwhile")[:2]
    stage.create(*load)
    assert time.monotonic() - began < 2
    replica.start()
    stage.wait_whole(*load)


def _more_nodes(count: int, first: int, racks: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Nodes after those that are there; each in its rack, where they are given."""
    labels = [{"example.com/rack": rack} for rack in racks] or [{}] * count
    return [fake_node(first + number, labels=labels[number]) for number in range(count)]
