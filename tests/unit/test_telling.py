"""What users see, and what it costs: each write is counted."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace
from telling_api import Cluster, refused, run, served, workload

from berth.actions.binding import Result
from berth.kube.errors import ApiError, StatusCause
from berth.model.reasons import Reason

VERDICT_PATH = "/apis/berth.dev/v1alpha1/namespaces/team-a/verdicts"


def test_a_gang_that_is_refused_is_told_once_and_then_nothing() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 1001)
        c.create(gang)
        c.plan([(gang, refused(gang, have=8000))])
        await c.settle()
        assert c.api.take() == {
            ("POST", "verdicts"): 1, ("PATCH", "podgroups"): 1, ("PATCH", "pods"): 1001, ("POST", "events"): 1,
        }  # fmt: skip
        written = [f"{verb} {path.split('/')[-2]}" for verb, path, _ in c.api.log]
        assert c.api.log[0][:2] == ("POST", VERDICT_PATH), "the Verdict before all"
        assert "PATCH podgroups" in written[:80], "then the group, while the first pods are told"
        said = c.verdict("podgroup-train")
        assert said is not None
        assert (said["verdict"], said["reason"]) == ("NotYet", "NotEnoughGpus")
        assert said["sentence"] == "8008 GPUs asked for; 8000 are free"
        assert (said["pods"], said["gpus"], said["position"], said["ahead"]) == (1001, "8008", 1, 0)
        assert said["metadata"]["ownerReferences"][0]["uid"] == "uid-of-train"
        for pod in ("train-0", "train-1000"):
            condition = c.condition(pod)
            assert condition["status"] == "False"
            assert condition["reason"] == "Unschedulable"
            assert condition["message"] == "NotEnoughGpus: 8008 GPUs asked for; 8000 are free"
        [condition] = c.group("train")["conditions"]
        assert (condition["type"], condition["status"]) == ("PodGroupInitiallyScheduled", "False")
        [event] = c.events()
        assert (event["reason"], event["type"], event["regarding"]["kind"]) == ("NotEnoughGpus", "Normal", "PodGroup")
        for _ in range(3):
            c.plan([(gang, refused(gang, have=8000))])
            await c.settle(40)
        assert c.api.take() == {}

    run(story())


def test_a_gang_that_is_placed_has_no_verdict_and_its_group_says_so() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 16)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await c.settle()
        c.api.take()
        orders = c.plan(placed=[gang], scope="block b1")
        await c.settle()
        assert c.api.take() == {}, "nothing is said before the binds have been answered"
        c.answer(orders)
        await c.settle()
        assert c.api.take() == {("DELETE", "verdicts"): 1, ("PATCH", "podgroups"): 1, ("POST", "events"): 1}
        assert c.verdict("podgroup-train") is None
        [condition] = c.group("train")["conditions"]
        assert (condition["status"], condition["reason"]) == ("True", "Scheduled")
        assert condition["message"] == "16 pods placed on 16 nodes in block b1"
        assert {e["reason"]: e["note"] for e in c.events()}["Scheduled"] == "16 pods placed on 16 nodes in block b1"
        assert c.condition("train-3")["status"] == "True"

    run(story())


def test_what_is_placed_in_the_same_burst_was_never_waiting() -> None:
    async def story() -> None:
        c = Cluster()
        gang, lone = workload("train", 4), workload("solo")
        c.create(gang, lone)
        c.plan([(gang, refused(gang)), (lone, refused(lone))])
        c.answer(c.plan(placed=[gang, lone]))
        await c.settle()
        assert c.api.take() == {("PATCH", "podgroups"): 1, ("POST", "events"): 2}
        notes = {(e["regarding"]["kind"], e["note"]) for e in c.events()}
        assert notes == {("PodGroup", "4 pods placed on 4 nodes"), ("Pod", "Placed on node-4")}

    run(story())


def test_a_bind_that_fails_leaves_the_verdict_until_the_next_plan() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 4)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await c.settle()
        c.api.take()
        orders = c.plan(placed=[gang])
        c.answer(orders[:3])
        c.answer(orders[3:], Result.Refused)
        await c.settle()
        assert c.api.take() == {}
        assert c.verdict("podgroup-train") is not None
        c.plan()  # the pod has gone meanwhile
        await c.settle()
        assert c.verdict("podgroup-train") is None

    run(story())


def test_numbers_are_written_every_half_minute_at_most_and_not_on_the_pods() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 4)
        c.create(gang)
        c.plan([(gang, refused(gang, have=0))])
        await c.settle(1)
        c.api.take()
        for have in range(1, 25):
            c.plan([(gang, refused(gang, have=have))])
            await c.settle(1)
        assert c.api.take() == {}
        await c.settle(8)
        assert c.api.take() == {("PATCH", "verdicts"): 1, ("PATCH", "podgroups"): 1}
        said = c.verdict("podgroup-train")
        assert said is not None
        assert said["causes"][0]["have"] == 24
        assert c.condition("train-0")["message"].endswith("0 are free"), "a pod keeps the numbers of its moment"
        await c.settle(100)
        assert c.api.take() == {}

    run(story())


def test_a_new_reason_is_told_at_once_on_all() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 4)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await c.settle()
        before = c.verdict("podgroup-train")
        assert before is not None
        since, changed = before["since"], c.condition("train-0")["lastTransitionTime"]
        await c.settle(5)
        c.api.take()
        c.plan([(gang, refused(gang, Reason.QuotaExceeded))])
        await c.settle()
        assert c.api.take() == {
            ("PATCH", "verdicts"): 1, ("PATCH", "podgroups"): 1, ("PATCH", "pods"): 4, ("POST", "events"): 1,
        }  # fmt: skip
        after = c.verdict("podgroup-train")
        assert after is not None
        assert after["reason"] == "QuotaExceeded"
        assert after["since"] > since
        condition = c.condition("train-0")
        assert condition["reason"] == "BerthWaiting", "no other node would help"
        assert condition["lastTransitionTime"] == changed, "the status was False all the time"

    run(story())


def test_a_reason_that_comes_and_goes_before_it_is_written_is_not_told() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 4)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await c.settle()
        c.api.take()
        c.plan([(gang, refused(gang, Reason.QuotaExceeded))])
        c.plan([(gang, refused(gang))])
        await c.settle(60)
        assert c.api.take() == {}

    run(story())


def test_pods_that_are_still_being_made_are_waited_for() -> None:
    async def story() -> None:
        c = Cluster()
        for created in range(1, 9):
            part = workload("train", 8, created=created)
            if created == 8:
                c.create(part)
            waits = refused(part, Reason.WaitingForGang, created) if created < 8 else refused(part)
            c.plan([(part, waits)])
            await c.settle(0.3)
        assert c.api.take() == {
            ("POST", "verdicts"): 1, ("PATCH", "podgroups"): 1, ("PATCH", "pods"): 8, ("POST", "events"): 1,
        }  # fmt: skip
        said = c.verdict("podgroup-train")
        assert said is not None
        assert said["reason"] == "NotEnoughGpus"

    run(story())


def test_a_gang_that_lacks_pods_for_good_is_told_after_a_second() -> None:
    async def story() -> None:
        c = Cluster()
        part = workload("train", 8, created=5)
        c.create(part)
        c.plan([(part, refused(part, Reason.WaitingForGang, 5))])
        await c.settle(0.9)
        assert c.api.take() == {}
        await c.settle(0.2)
        assert c.api.take()["POST", "verdicts"] == 1
        assert c.condition("train-0")["reason"] == "BerthWaiting"

    run(story())


def test_a_gang_whose_pods_come_slowly_is_told_after_a_few_seconds_all_the_same() -> None:
    async def story() -> None:
        c = Cluster()
        for created in range(1, 12):
            part = workload("train", 64, created=created)
            c.plan([(part, refused(part, Reason.WaitingForGang, created))])
            await c.settle(0.5)
        assert c.api.take()["POST", "verdicts"] == 1

    run(story())


def test_a_pod_that_joins_later_is_told_alone() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 4)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await c.settle()
        c.api.take()
        more = workload("train", 5)
        c.create(more)
        c.plan([(more, refused(gang))])
        await c.settle()
        assert c.api.take() == {("PATCH", "pods"): 1}
        assert c.condition("train-4")["message"] == c.condition("train-0")["message"]

    run(story())


def test_while_binds_are_under_way_only_old_verdicts_are_written() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 4)
        c.create(gang)
        c.is_busy = True
        c.plan([(gang, refused(gang))])
        await asyncio.sleep(0.15)
        assert c.api.take() == {}
        await asyncio.sleep(0.15)
        assert c.api.take() == {("POST", "verdicts"): 1}
        await asyncio.sleep(0.5)
        assert c.api.take() == {}
        c.is_busy = False
        await c.settle()
        assert c.api.take() == {("PATCH", "podgroups"): 1, ("PATCH", "pods"): 4, ("POST", "events"): 1}

    run(story())


def test_a_cluster_that_never_stops_binding_is_told_slowly() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 64)
        c.create(gang)
        c.is_busy = True
        c.plan([(gang, refused(gang))])
        await asyncio.sleep(5)
        assert c.api.take()["PATCH", "pods"] == 64
        assert c.api.most_in_flight <= 4

    run(story())


def test_what_is_doubtful_of_who_starts_is_one_warning() -> None:
    async def story() -> None:
        c = Cluster()
        gang = replace(workload("train", 2), findings=("spec.x is wrong. It was passed over.", "Another."))
        c.create(gang)
        c.answer(c.plan(placed=[gang], scope="block b1"))
        await c.settle()
        found = {e["reason"]: (e["type"], e["note"]) for e in c.events()}
        assert found["Finding"] == ("Warning", "spec.x is wrong. It was passed over. And 1 more.")
        assert found["Scheduled"][0] == "Normal"

    run(story())


def test_no_event_is_written_into_a_burst_of_binds() -> None:
    async def story() -> None:
        c = Cluster()
        pods = [workload(f"p{i}") for i in range(100)]
        c.create(*pods)
        c.is_busy = True
        c.answer(c.plan(placed=pods))
        await asyncio.sleep(20)
        assert c.api.take() == {}
        c.is_busy = False
        await c.settle()
        assert c.api.take() == {("POST", "events"): 100}
        c.is_busy = True
        lone = workload("solo")
        c.create(lone)
        c.plan([(lone, refused(lone))])
        await asyncio.sleep(1)
        assert c.api.take() == {("POST", "verdicts"): 1}, "an earlier burst does not count"
        await asyncio.sleep(10)
        assert c.api.take() == {("PATCH", "pods"): 1}
        await asyncio.sleep(30)
        assert c.api.take() == {("POST", "events"): 1}

    run(story())


def test_many_pods_are_told_many_at_a_time() -> None:
    async def story() -> None:
        c = Cluster()
        c.api.latency_s = 0.02
        gang = workload("train", 1001)
        c.create(gang)
        began = asyncio.get_running_loop().time()
        c.plan([(gang, refused(gang))])
        await c.settle()
        assert c.api.most_in_flight == 32
        assert asyncio.get_running_loop().time() - began < 1.0, "1,001 writes of 20 ms, 32 at a time"

    run(story())


def test_who_leads_no_more_writes_nothing() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 100)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await asyncio.sleep(0.0035)
        c.leads = False
        await asyncio.sleep(0.01)
        told = sum(c.api.take().values())
        assert 0 < told < 102
        await asyncio.sleep(10)
        c.plan([(gang, refused(gang, have=3))])
        await asyncio.sleep(60)
        assert c.api.take() == {}

    run(story())


def test_without_the_kind_verdict_all_the_rest_is_told() -> None:
    async def story() -> None:
        c = Cluster(served=served("verdicts"))
        gang = workload("train", 4)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await c.settle()
        assert c.api.take() == {("PATCH", "podgroups"): 1, ("PATCH", "pods"): 4, ("POST", "events"): 1}
        c.answer(c.plan(placed=[gang]))
        await c.settle()
        assert c.api.take() == {("PATCH", "podgroups"): 1, ("POST", "events"): 1}

    run(story())


def test_once_the_kind_verdict_is_there_it_is_told_and_nothing_else_again() -> None:
    async def story() -> None:
        c = Cluster(served=served("verdicts"))
        gang = workload("train", 4)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await c.settle()
        c.api.take()
        c.teller.serve(served())
        await c.settle()
        assert c.api.take() == {("POST", "verdicts"): 1}

    run(story())


def test_a_pod_bound_meanwhile_is_passed_over() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 4)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        c.world.pods["team-a", "train-2"].node = "node-9"
        await c.settle()
        assert c.api.take()["PATCH", "pods"] == 3
        assert c.condition("train-2") == {}

    run(story())


def test_a_bind_that_arrives_first_is_not_overwritten_for_long() -> None:
    async def story() -> None:
        c = Cluster()
        lone = workload("solo")
        c.create(lone)
        c.plan([(lone, refused(lone))])
        await asyncio.sleep(0.0012)  # the Verdict has been written, the pod's patch is under way
        c.answer(c.plan(placed=[lone]))
        await c.settle()
        assert c.condition("solo")["status"] == "True"
        assert "message" not in c.condition("solo")
        assert c.verdict("pod-solo") is None

    run(story())


def test_another_pod_of_the_name_is_left_alone() -> None:
    async def story() -> None:
        c = Cluster()
        lone = workload("solo")
        c.create(lone)
        c.api.objects["/api/v1/namespaces/team-a/pods/solo"]["metadata"]["uid"] = "another"
        c.plan([(lone, refused(lone))])
        await c.settle(120)
        assert c.condition("solo") == {}

    run(story())


def test_a_pod_with_gates_keeps_what_the_api_server_says_of_it() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 2, gates=("example.com/wait",))
        c.create(gang)
        c.plan([(gang, refused(gang, Reason.Gated))])
        await c.settle()
        assert ("PATCH", "pods") not in c.api.take()
        said = c.verdict("podgroup-train")
        assert said is not None
        assert said["reason"] == "Gated"

    run(story())


def test_a_workload_that_is_gone_is_no_longer_told_of() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 4)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await c.settle()
        c.api.take()
        c.delete(gang)
        c.plan()
        await c.settle()
        assert c.api.take() == {("DELETE", "verdicts"): 1, ("PATCH", "podgroups"): 1}
        assert c.group("train")["conditions"] == []

    run(story())


def test_a_workload_made_anew_under_its_name_is_told_anew() -> None:
    async def story() -> None:
        c = Cluster()
        first, second = workload("train", 2), workload("train", 2, generation=2)
        c.create(first)
        c.plan([(first, refused(first))])
        await c.settle(5)
        since = (c.verdict("podgroup-train") or {})["since"]
        c.delete(first)
        c.create(second)
        c.plan([(second, refused(second))])
        await c.settle()
        said = c.verdict("podgroup-train")
        assert said is not None
        assert said["workload"]["uid"] == "uid-of-train-2"
        assert said["metadata"]["ownerReferences"][0]["uid"] == "uid-of-train-2"
        assert said["since"] > since

    run(story())


def test_a_verdict_that_somebody_deleted_or_made_is_written_all_the_same() -> None:
    async def story() -> None:
        c = Cluster()
        lone = workload("solo")
        c.create(lone)
        c.api.put(f"{VERDICT_PATH}/pod-solo", {"verdict": "Never"})
        c.plan([(lone, refused(lone))])
        await c.settle()
        said = c.verdict("pod-solo")
        assert said is not None
        assert said["verdict"] == "NotYet"
        del c.api.objects[f"{VERDICT_PATH}/pod-solo"]
        c.plan([(lone, refused(lone, Reason.QuotaExceeded))])
        await c.settle()
        assert (c.verdict("pod-solo") or {})["reason"] == "QuotaExceeded"

    run(story())


def test_position_is_by_queue_and_names_are_of_the_same_namespace_only() -> None:
    async def story() -> None:
        c = Cluster()
        a, b = workload("a"), workload("b", namespace="team-b")
        d, e = workload("d", 2, queue="shared"), workload("e")
        c.create(a, b, d, e)
        c.plan([(w, refused(w)) for w in (a, b, d, e)])
        await c.settle()
        last = c.verdict("pod-e")
        assert last is not None
        assert (last["queue"], last["position"], last["ahead"]) == ("team-a", 2, 3)
        assert last["aheadHere"] == ["Pod/a", "PodGroup/d"], "not the one of team-b"
        of_gang = c.verdict("podgroup-d")
        assert of_gang is not None
        assert (of_gang["queue"], of_gang["position"], of_gang["ahead"]) == ("shared", 1, 2)
        assert "team-b" not in str([v for k, v in c.api.of("verdicts").items() if k.startswith("team-a/")])

    run(story())


@pytest.mark.parametrize("status", [503, 429])
def test_a_server_that_is_busy_is_asked_again(status: int) -> None:
    from berth.kube.errors import ApiError

    async def story() -> None:
        c = Cluster()
        gang = workload("train", 4)
        c.create(gang)
        refusals = iter(range(6))

        def refuse(verb: str, path: str) -> None:
            if verb != "GET" and next(refusals, None) is not None:
                raise ApiError(status, "Busy", "come back", verb=verb, path=path)

        c.api.refuse = refuse
        c.plan([(gang, refused(gang))])
        await c.settle(30)
        assert c.verdict("podgroup-train") is not None
        assert {c.condition(f"train-{i}")["reason"] for i in range(4)} == {"Unschedulable"}
        assert c.group("train")["conditions"]
        assert c.teller.counts["failed"] == 6

    run(story())


def test_a_right_that_is_missing_is_not_asked_for_a_thousand_times() -> None:
    from telling_api import forbidden

    async def story() -> None:
        c = Cluster()
        gang = workload("train", 1000)
        c.create(gang)
        asked = 0

        def refuse(verb: str, path: str) -> None:
            nonlocal asked
            if "/pods/" in path:
                asked += 1
                raise forbidden(verb, path)

        c.api.refuse = refuse
        c.plan([(gang, refused(gang))])
        await asyncio.sleep(50)
        assert asked <= 64, "what was under way when the first were refused"
        assert c.api.take() == {("POST", "verdicts"): 1, ("PATCH", "podgroups"): 1, ("POST", "events"): 1}

    run(story())


def test_nothing_runs_after_the_last_reason() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 64)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await c.settle()
        assert c.teller.pending == 0
        assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []
        assert asyncio.get_running_loop()._scheduled == [] or all(
            handle.cancelled()
            for handle in asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        )

    run(story())


def test_what_is_pending_is_written_before_the_end() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 64)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await c.teller.close(drain_s=5)
        assert c.api.take()["PATCH", "pods"] == 64
        c.plan([(gang, refused(gang, Reason.QuotaExceeded))])
        await asyncio.sleep(5)
        assert c.api.take() == {}

    run(story())


def test_a_namespace_that_ends_closes_no_lane() -> None:
    """It answers 403, too, and says nothing about our rights."""

    def refuse(verb: str, path: str) -> None:
        if (verb, path) == ("POST", VERDICT_PATH):
            said = "unable to create new content in namespace team-a because it is being terminated"
            raise ApiError(403, "Forbidden", said, causes=(StatusCause("NamespaceTerminating"),))

    async def story() -> None:
        c = Cluster()
        doomed = [workload(f"doomed-{number}", 1) for number in range(40)]
        for each in doomed:
            c.create(each)
        c.api.refuse = refuse
        c.plan([(each, refused(each)) for each in doomed])
        await asyncio.sleep(1)
        c.api.refuse = lambda verb, path: None
        other = workload("other", 2)
        c.create(other)
        c.plan([(other, refused(other))])
        await asyncio.sleep(1)
        assert c.verdict("podgroup-other") is not None

    run(story())
