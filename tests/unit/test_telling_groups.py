"""What a group's status says, in each dialect's own form; and Volcano's groups that are to be let in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from telling_api import KAI, PLUGINS, UPSTREAM, VOLCANO, Cluster, FakeApi, refused, run, served, workload

from berth.actions.letting_in import LettingIn
from berth.dialects.conditions import Fate, State, let_in, status_change
from berth.kube.reflect import Change
from berth.model.reasons import Reason

AT, LATER = "2026-11-29T22:00:00Z", "2026-11-29T23:00:00Z"
NO_GPUS = "NotEnoughGpus: 64 GPUs asked for; 8 are free"


def group(api_version: str, status: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    made = {"apiVersion": api_version, "kind": "PodGroup", "metadata": {"name": "pg", "generation": 3, **meta}}
    return {**made, "status": status} if status is not None else made


def waiting(at: str = AT, message: str = NO_GPUS, help: bool = True, **more: Any) -> Fate:
    return Fate(State.Waiting, at, message.partition(":")[0], message, node_would_help=help, **more)


PLACED = Fate(State.Placed, LATER, message="8 pods placed on 8 nodes", has_begun=True, pods=8)
GONE = Fate(State.Gone, LATER)


def after(thing: dict[str, Any], fate: Fate) -> dict[str, Any]:
    """The group with the change that was answered."""
    return {**thing, "status": {**(thing.get("status") or {}), **(status_change(thing, fate) or {})}}


@pytest.mark.parametrize("api_version", [UPSTREAM, KAI, VOLCANO, PLUGINS])
def test_what_is_said_already_is_not_said_again(api_version: str) -> None:
    thing = group(api_version)
    for fate in (waiting(), PLACED, waiting(LATER, has_begun=True), GONE):
        thing = after(thing, fate)
        assert status_change(thing, fate) is None


def test_upstream_waits_with_the_word_for_autoscalers_only_where_nodes_would_help() -> None:
    said = status_change(group(UPSTREAM), waiting())
    assert said == {
        "conditions": [{
            "type": "PodGroupInitiallyScheduled", "status": "False", "reason": "Unschedulable", "message": NO_GPUS,
            "observedGeneration": 3, "lastTransitionTime": AT,
        }]
    }  # fmt: skip
    quota = status_change(group(UPSTREAM), waiting(message="QuotaExceeded: no", help=False))
    assert quota is not None
    assert quota["conditions"][0]["reason"] == "BerthWaiting"


def test_upstream_true_is_for_good() -> None:
    placed = after(after(group(UPSTREAM), waiting()), PLACED)
    [said] = placed["status"]["conditions"]
    assert (said["status"], said["reason"], said["lastTransitionTime"]) == ("True", "Scheduled", LATER)
    assert status_change(placed, waiting()) is None
    assert status_change(placed, GONE) is None


def test_upstream_other_conditions_stay_and_the_time_of_the_change_too() -> None:
    other = {"type": "DisruptionTarget", "status": "True"}
    first = after(group(UPSTREAM, {"conditions": [other]}), waiting())
    second = after(first, waiting(LATER, "Fragmented: scattered"))
    assert second["status"]["conditions"][0] == other
    said = second["status"]["conditions"][1]
    assert (said["message"], said["lastTransitionTime"]) == ("Fragmented: scattered", AT)
    assert after(second, GONE)["status"]["conditions"] == [other]


def test_upstream_a_gang_that_runs_and_waits_for_more_pods_is_not_unscheduled() -> None:
    assert status_change(group(UPSTREAM), waiting(has_begun=True)) is None


def test_kai_has_one_condition_for_its_node_pool_and_it_is_the_last() -> None:
    other = {"type": "UnschedulableOnNodePool", "nodePool": "a100", "status": "True", "transitionID": "6"}
    thing = group(
        KAI, {"schedulingConditions": [other], "phase": "Pending"}, labels={"kai.scheduler/node-pool": "h100"}
    )
    told = after(thing, waiting())
    assert told["status"]["phase"] == "Pending"
    assert told["status"]["schedulingConditions"] == [
        other,
        {
            "type": "UnschedulableOnNodePool", "nodePool": "h100", "status": "True", "reason": "Unschedulable",
            "message": NO_GPUS, "reasons": [{"reason": "NotEnoughGpus", "message": NO_GPUS}],
            "lastTransitionTime": AT, "transitionID": "7",
        },
    ]  # fmt: skip
    assert after(told, PLACED)["status"]["schedulingConditions"] == [other]
    assert status_change(told, waiting(LATER, has_begun=True)) is None, "KAI leaves it while pods run"


def test_kai_without_a_label_is_of_the_default_pool() -> None:
    said = status_change(group(KAI), waiting())
    assert said is not None
    assert said["schedulingConditions"][0]["nodePool"] == "default"


def test_volcano_is_let_in_waits_and_runs() -> None:
    told = after(group(VOLCANO, {"phase": "Pending"}), waiting())
    assert told["status"]["phase"] == "Inqueue", "a phase of Pending would keep its pods from being made"
    [said] = told["status"]["conditions"]
    assert (said["type"], said["status"], said["reason"]) == ("Unschedulable", "True", "NotEnoughResources")
    placed = after(told, PLACED)
    assert placed["status"]["phase"] == "Running"
    assert [c["type"] for c in placed["status"]["conditions"]] == ["Scheduled"]
    again = after(placed, waiting(has_begun=True))
    assert again == placed, "some of it runs: more pods do not make it unschedulable"


def test_volcano_says_what_is_missing_in_its_own_words() -> None:
    lacks = status_change(group(VOLCANO), waiting(message="WaitingForGang: 3 of 8", help=False, lacks_pods=True))
    quota = status_change(group(VOLCANO), waiting(message="QuotaExceeded: no", help=False))
    assert lacks is not None and quota is not None
    assert lacks["conditions"][0]["reason"] == "NotEnoughTasks"
    assert quota["conditions"][0]["reason"] == "QuotaExceeded"


@pytest.mark.parametrize("phase", ["Running", "Completed", "Unknown"])
def test_volcano_a_phase_that_is_further_is_not_taken_back(phase: str) -> None:
    change = status_change(group(VOLCANO, {"phase": phase}), waiting())
    assert change is not None
    assert "phase" not in change
    assert let_in(group(VOLCANO, {"phase": phase})) is None


def test_scheduler_plugins_phase_goes_on_but_never_over_its_controller() -> None:
    assert status_change(group(PLUGINS), waiting()) == {"phase": "Pending"}
    assert status_change(group(PLUGINS, {"phase": "Pending"}), PLACED) == {
        "phase": "Scheduling", "scheduled": 8, "scheduleStartTime": LATER,
    }  # fmt: skip
    for phase in ("Scheduling", "Scheduled", "Running", "Finished", "Failed"):
        assert status_change(group(PLUGINS, {"phase": phase}), PLACED) is None
        assert status_change(group(PLUGINS, {"phase": phase}), waiting()) is None


def test_a_group_of_nobody_we_know_is_left_alone() -> None:
    assert status_change(group("example.com/v1"), PLACED) is None


@pytest.mark.parametrize("status", [{"conditions": "none"}, {"conditions": [1, None]}, {"schedulingConditions": 3}])
def test_a_status_that_somebody_mangled_is_no_error(status: dict[str, Any]) -> None:
    for api_version in (UPSTREAM, KAI, VOLCANO, PLUGINS):
        status_change(group(api_version, status), waiting())


# ---- as they are written


@pytest.mark.parametrize("api_version", [UPSTREAM, KAI, VOLCANO, PLUGINS])
def test_each_kind_of_group_is_written_and_once(api_version: str) -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 4, api_version=api_version)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await c.settle()
        assert c.api.take()["PATCH", "podgroups"] == 1
        c.answer(c.plan(placed=[gang]))
        await c.settle()
        assert c.api.take()["PATCH", "podgroups"] == 1

    run(story())


@pytest.mark.parametrize("has_status", [False, True])
def test_volcanos_groups_are_written_where_their_status_is(has_status: bool) -> None:
    async def story() -> None:
        paths: list[str] = []
        c = Cluster(served=served(volcano_status=has_status))
        c.api.refuse = lambda verb, path: paths.append(path) if verb == "PATCH" and "podgroups" in path else None
        gang = workload("train", 2, api_version=VOLCANO)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await c.settle()
        assert [path.endswith("/status") for path in paths] == [has_status]

    run(story())


def test_a_group_that_others_write_too_keeps_what_they_say() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 2)
        c.create(gang)
        path = f"/apis/{UPSTREAM}/namespaces/team-a/podgroups/train"
        times = iter(range(2))

        def interfere(verb: str, asked: str) -> None:
            if verb == "PATCH" and "podgroups" in asked and (n := next(times, None)) is not None:
                thing = c.api.objects[path]
                others = [{"type": "DisruptionTarget", "status": "True", "reason": f"R{n}"}]
                c.api.put(path, {**thing, "status": {"conditions": others}})

        c.api.refuse = interfere
        c.plan([(gang, refused(gang))])
        await c.settle()
        said = {s["type"]: s for s in c.group("train")["conditions"]}
        assert said["DisruptionTarget"]["reason"] == "R1"
        assert said["PodGroupInitiallyScheduled"]["status"] == "False"

    run(story())


def test_a_group_that_is_gone_or_another_one_is_no_error() -> None:
    async def story() -> None:
        c = Cluster()
        gone, other = workload("gone", 2), workload("other", 2)
        c.create(gone, other)
        del c.api.objects[f"/apis/{UPSTREAM}/namespaces/team-a/podgroups/gone"]
        c.api.objects[f"/apis/{UPSTREAM}/namespaces/team-a/podgroups/other"]["metadata"]["uid"] = "another"
        c.plan([(gone, refused(gone)), (other, refused(other))])
        await c.settle(100)
        assert ("PATCH", "podgroups") not in c.api.take()
        assert c.teller.counts["failed"] == 0

    run(story())


def test_an_elastic_gang_that_has_begun_stays_scheduled() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 4)
        c.create(gang)
        c.answer(c.plan(placed=[gang]))
        await c.settle()
        more = workload("train", 6)
        c.create(more)
        rest = type(more)(**{f: getattr(more, f) for f in more.__struct_fields__} | {"pods": (("train-4", "train-5"),)})
        c.plan([(rest, refused(rest))])
        await c.settle()
        [said] = c.group("train")["conditions"]
        assert said["status"] == "True"
        assert c.condition("train-5")["status"] == "False"
        verdict = c.verdict("podgroup-train")
        assert verdict is not None
        assert verdict["reason"] == Reason.NotEnoughGpus.name

    run(story())


# ---- letting in


def volcano_job(api: FakeApi, name: str, scheduler: str, phase: str = "Pending", kind: str = "Job") -> dict[str, Any]:
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/team-a/jobs/{name}"
    api.put(path, {"spec": {"schedulerName": scheduler}})
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": kind, "name": name, "uid": "u", "controller": True}
    return api.put(
        f"/apis/{VOLCANO}/namespaces/team-a/podgroups/{name}",
        {"apiVersion": VOLCANO, "metadata": {"ownerReferences": [owner]}, "status": {"phase": phase}},
    )


def test_volcano_jobs_of_ours_are_let_in_so_that_their_pods_are_made() -> None:
    async def story() -> None:
        api = FakeApi()
        letting = LettingIn(
            api,
            served(),
            ["volcano"],
            may_write=lambda: True,
            clock=asyncio.get_running_loop().time,  # type: ignore[arg-type]
        )
        groups = {
            "mine": volcano_job(api, "mine", "volcano"),
            "fresh": volcano_job(api, "fresh", "volcano", ""),
            "theirs": volcano_job(api, "theirs", "default-scheduler"),
            "running": volcano_job(api, "running", "volcano", "Running"),
            "bare": volcano_job(api, "bare", "volcano", kind="ReplicaSet"),
        }
        for _ in range(2):
            letting.take([Change("put", ("team-a", name), dict(g)) for name, g in groups.items()])
            await asyncio.sleep(1)
        phases = {
            name: api.objects[f"/apis/{VOLCANO}/namespaces/team-a/podgroups/{name}"]["status"]["phase"]
            for name in groups
        }
        assert phases == {
            "mine": "Inqueue", "fresh": "Inqueue", "theirs": "Pending", "running": "Running", "bare": "Pending",
        }  # fmt: skip
        assert letting.counts["groups_let_in"] == 2
        letting.serve(["default-scheduler"])
        await asyncio.sleep(1)
        assert api.objects[f"/apis/{VOLCANO}/namespaces/team-a/podgroups/theirs"]["status"]["phase"] == "Inqueue"
        await letting.close()

    run(story())


def test_nobody_is_let_in_by_who_does_not_lead() -> None:
    async def story() -> None:
        api = FakeApi()
        leads = False
        clock = asyncio.get_running_loop().time
        letting = LettingIn(api, served(), ["volcano"], may_write=lambda: leads, clock=clock)  # type: ignore[arg-type]
        thing = volcano_job(api, "mine", "volcano")
        letting.take([Change("put", ("team-a", "mine"), dict(thing))])
        await asyncio.sleep(10)
        assert api.take() == {}
        leads = True
        await asyncio.sleep(1.1)
        assert api.take() == {("PATCH", "podgroups"): 1}

    run(story())
