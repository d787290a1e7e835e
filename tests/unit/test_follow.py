"""Kinds that come later are followed from then on; those that may not be seen hold nobody up."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from stand_in import Answer, StandIn, live, refused

from berth.kube import wire
from berth.kube.client import Client
from berth.kube.discover import Served, served
from berth.sources.live import follow
from berth.sources.live.follow import Follower
from berth.sources.live.kinds import NEEDED, Kind
from berth.sources.live.unheard import BEHIND_S, FOR_EVER, PATIENCE_S
from berth.sources.live.world import World

JOBSETS = Kind("jobset.x-k8s.io", "jobsets", "JobSet")
PATH = "/apis/jobset.x-k8s.io/{}/jobsets"


def document(*groups: dict[str, Any]) -> Answer:
    return Answer({"kind": "APIGroupDiscoveryList", "items": list(groups)})


def group(name: str, *versions: str, resource: str = "jobsets", kind: str = "JobSet") -> dict[str, Any]:
    found = [
        {"version": v, "resources": [{"resource": resource, "responseKind": {"kind": kind}, "scope": "Namespaced"}]}
        for v in versions
    ]
    return {"metadata": {"name": name}, "versions": found}


def listed(*items: dict[str, Any], then: str = "stay") -> Answer:
    """A watch that begins with all objects, and stays."""
    mark = {"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}}
    events = [*({"type": "ADDED", "object": item} for item in items), {"type": "BOOKMARK", "object": mark}]
    return Answer(pieces=[msgspec.json.encode(event) + b"\n" for event in events], then=then)


def needed(server: StandIn) -> None:
    server.on("/version", Answer({"major": "1", "minor": "37"}))
    server.on("/api", document())
    for path in ("/api/v1/nodes", "/api/v1/pods", "/apis/scheduling.k8s.io/v1/priorityclasses"):
        server.on(path, listed())


def job_set(parallelism: int) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c"}]}}
    spec = {"parallelism": parallelism, "completions": parallelism, "template": template}
    jobs = [{"name": "w", "replicas": 1, "template": {"spec": spec}}]
    return {"metadata": {"name": "train", "namespace": "a", "uid": "u", "resourceVersion": "5"},
            "spec": {"replicatedJobs": jobs}}  # fmt: skip


def pod() -> wire.Pod:
    meta = {"name": "train-w-0", "namespace": "a", "uid": "p", "labels": {"jobset.sigs.k8s.io/jobset-name": "train"}}
    limits = {"nvidia.com/gpu": "1"}
    spec = {"schedulerName": "berth", "containers": [{"resources": {"limits": limits}}]}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}, wire.Pod)


def missing(world: World) -> int | None:
    """Pods that nobody has made yet, of the one workload; None while it waits for its owner."""
    found = [workload.missing_pods for workload in world.snapshot(0.0).workloads]
    return found[0] if found else None


async def until(claim: Any) -> None:
    while not claim():
        await asyncio.sleep(0.01)


def test_a_kind_that_is_installed_later_is_followed_without_a_restart() -> None:
    async def story(server: StandIn, client: Client) -> None:
        needed(server)
        server.on("/apis", document(), document(), document(group("jobset.x-k8s.io", "v1alpha2")))
        server.on(PATH.format("v1alpha2"), listed(job_set(3)))
        world = World(["berth"])
        told: list[Served] = []
        follower = Follower(
            client, world, await served(client), [*NEEDED, JOBSETS], look_s=0.02, changed=told.append
        )  # fmt: skip
        assert follower.absent == [JOBSETS]
        work = asyncio.create_task(follower.run())
        await follower.synced()
        world.put_pod(pod())
        assert missing(world) is None, "it waits for the JobSet, whose kind may have come a moment ago"
        await until(lambda: follower.absent == [])
        await until(lambda: missing(world) == 2)
        await asyncio.sleep(0.1)
        assert [one.has("jobset.x-k8s.io", "jobsets") for one in told] == [True], "told once, when it differs"
        work.cancel()

    live(story)


def test_a_pod_whose_owner_is_of_a_kind_that_came_a_moment_ago_has_it_looked_for_at_once() -> None:
    async def story(server: StandIn, client: Client) -> None:
        needed(server)
        server.on("/apis", document(), document(group("jobset.x-k8s.io", "v1alpha2")))
        server.on(PATH.format("v1alpha2"), listed(job_set(3)))
        world = World(["berth"])
        follower = Follower(client, world, await served(client), [*NEEDED, JOBSETS])  # the next look is far away
        work = asyncio.create_task(follower.run())
        await follower.synced()
        world.put_pod(pod())
        assert missing(world) is None
        async with asyncio.timeout(3):
            await until(lambda: missing(world) == 2)
        work.cancel()

    live(story)


def test_a_kind_that_stays_away_is_looked_for_once_a_second_while_somebody_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follow, "CONFIRM_S", 0.05)

    async def story(server: StandIn, client: Client) -> None:
        needed(server)
        server.on("/apis", document())
        world = World(["berth"])
        follower = Follower(client, world, await served(client), [*NEEDED, JOBSETS])
        work = asyncio.create_task(follower.run())
        await follower.synced()
        world.put_pod(pod())
        world.snapshot(0.0)
        for _ in range(100):  # many who ask are one question
            follower._want("jobset.x-k8s.io", "JobSet")
            await asyncio.sleep(0.003)
        assert 3 <= len(server.asked("/apis")) <= 12
        assert [w.identity for w in world.snapshot(PATIENCE_S).workloads] == ["JobSet a/train"], "not for ever"
        work.cancel()

    live(story)


def test_a_kind_whose_version_went_is_followed_in_the_one_that_is_served() -> None:
    async def story(server: StandIn, client: Client) -> None:
        needed(server)
        old, new = group("jobset.x-k8s.io", "v1alpha2"), group("jobset.x-k8s.io", "v1", "v1beta1")
        server.on("/apis", document(old), document(old), document(new))
        server.on(PATH.format("v1alpha2"), listed(job_set(3)))
        server.on(PATH.format("v1"), listed(job_set(5)))
        world = World(["berth"])
        world.put_pod(pod())
        follower = Follower(client, world, await served(client), [*NEEDED, JOBSETS], look_s=0.05)
        work = asyncio.create_task(follower.run())
        await until(lambda: missing(world) == 2)
        await until(lambda: missing(world) == 4)
        asked = len(server.asked(PATH.format("v1alpha2")))
        await asyncio.sleep(0.2)
        assert len(server.asked(PATH.format("v1alpha2"))) == asked
        work.cancel()

    live(story)


def named(name: str, version: str = "5") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "a", "uid": name, "resourceVersion": version}, "spec": {}}


def there(world: World) -> list[str]:
    return sorted(key[3] for key in world._following.objects)


def test_a_version_that_goes_takes_no_object_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch ends, the path is a 404, and discovery names the other version a moment later."""
    monkeypatch.setattr(follow, "CONFIRM_S", 0.05)

    async def story(server: StandIn, client: Client) -> None:
        needed(server)
        old, new = group("jobset.x-k8s.io", "v1alpha2"), group("jobset.x-k8s.io", "v1")
        server.on("/apis", document(old), document(old), document(), document(new))
        server.on(PATH.format("v1alpha2"), listed(named("stays"), named("went"), then="end"), refused(404, "NotFound"))
        server.on(PATH.format("v1"), listed(named("stays"), named("came")))
        world = World(["berth"])
        dropped: list[str] = []
        drop = world.drop_object
        world.drop_object = lambda key: (dropped.append(key[3]), drop(key))[1]  # type: ignore[method-assign]
        follower = Follower(client, world, await served(client), [*NEEDED, JOBSETS])  # the next look is far away
        work = asyncio.create_task(follower.run())
        await until(lambda: there(world) == ["stays", "went"])
        await until(lambda: there(world) == ["came", "stays"])
        assert dropped == ["went"]
        assert follower.reflectors[JOBSETS].path == PATH.format("v1") and not follower.reflectors[JOBSETS].is_absent
        work.cancel()

    live(story)


def test_a_kind_that_is_uninstalled_takes_its_objects_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "CONFIRM_S", 0.05)

    async def story(server: StandIn, client: Client) -> None:
        needed(server)
        server.on("/apis", document(group("jobset.x-k8s.io", "v1alpha2")), document())
        server.on(PATH.format("v1alpha2"), listed(named("gone"), then="end"), refused(404, "NotFound"))
        world = World(["berth"])
        follower = Follower(client, world, await served(client), [*NEEDED, JOBSETS])  # the next look is far away
        work = asyncio.create_task(follower.run())
        await until(lambda: there(world) == ["gone"])
        await until(lambda: there(world) == [])
        assert len(server.asked("/apis")) == 1 + 2, "what one look lacks the next may have"
        assert follower.reflectors[JOBSETS].is_absent
        assert world.unheard.patience_s("jobset.x-k8s.io", "JobSet") == PATIENCE_S
        work.cancel()

    live(story)


@pytest.mark.parametrize("discovery", [document(group("jobset.x-k8s.io", "v1alpha2")), refused(503, "Unavailable")])
def test_discovery_that_names_what_is_not_there_is_not_believed_for_ever(
    discovery: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "GONE_S", 0.3)

    async def story(server: StandIn, client: Client) -> None:
        needed(server)
        server.on("/apis", document(group("jobset.x-k8s.io", "v1alpha2")), discovery)
        server.on(PATH.format("v1alpha2"), listed(named("gone"), then="end"), refused(404, "NotFound"))
        world = World(["berth"])
        follower = Follower(client, world, await served(client), [*NEEDED, JOBSETS], look_s=0.05)
        work = asyncio.create_task(follower.run())
        await until(lambda: there(world) == ["gone"])
        began_s = time.monotonic()
        await until(lambda: there(world) == [])
        assert time.monotonic() - began_s > 0.2
        work.cancel()

    live(story)


def test_an_owner_is_waited_for_as_long_as_we_may_hear_of_it() -> None:
    async def story(server: StandIn, client: Client) -> None:
        needed(server)
        server.on("/apis", document(group("jobset.x-k8s.io", "v1alpha2")))
        server.on(PATH.format("v1alpha2"), *(refused(500, "InternalError") for _ in range(2)), listed(),
                  refused(403, "Forbidden"))  # fmt: skip
        world = World(["berth"])
        follower = Follower(client, world, await served(client), [*NEEDED, JOBSETS])
        patience_s = world.unheard.patience_s
        work = asyncio.create_task(follower.run())
        assert patience_s("jobset.x-k8s.io", "JobSet") == BEHIND_S, "it has not been listed"
        assert patience_s("batch", "Job") == patience_s("", "Pod") == 0, "it is not followed as an owner"
        reflector = follower.reflectors[JOBSETS]
        await reflector.synced.wait()
        assert patience_s("jobset.x-k8s.io", "JobSet") == PATIENCE_S
        reflector.resource_version = ""
        follower._again[JOBSETS].set()
        await until(lambda: reflector.is_forbidden)
        assert patience_s("jobset.x-k8s.io", "JobSet") == FOR_EVER
        assert world.unheard.needs("jobset.x-k8s.io", "JobSet") == "get, list, watch on jobsets.jobset.x-k8s.io"
        work.cancel()

    live(story)


def test_a_look_that_fails_is_tried_again() -> None:
    async def story(server: StandIn, client: Client) -> None:
        needed(server)
        server.on("/apis", document(), refused(403, "Forbidden"), document(group("jobset.x-k8s.io", "v1alpha2")))
        server.on(PATH.format("v1alpha2"), listed())
        follower = Follower(client, World(["berth"]), await served(client), [*NEEDED, JOBSETS], look_s=0.02)
        work = asyncio.create_task(follower.run())
        await until(lambda: follower.absent == [])
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work

    live(story)


def test_a_kind_that_may_not_be_seen_holds_nobody_up_and_the_right_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def story(server: StandIn, client: Client) -> None:
        needed(server)
        server.on("/apis", document(group("jobset.x-k8s.io", "v1alpha2")))
        server.on(PATH.format("v1alpha2"), refused(403, "Forbidden"))
        follower = Follower(client, World(["berth"]), await served(client), [*NEEDED, JOBSETS])
        work = asyncio.create_task(follower.run())
        await follower.synced()
        work.cancel()

    live(story)
    (said,) = [r for r in caplog.records if r.name == "berth.follow"]
    assert said.needs == "get, list, watch on jobsets.jobset.x-k8s.io"  # type: ignore[attr-defined]


def test_what_the_watch_still_hears_does_not_keep_a_refresh_from_listing_anew() -> None:
    """A leader that takes over asks for everything anew while a burst is on; it would wait for its list for ever."""

    async def story(server: StandIn, client: Client) -> None:
        needed(server)
        server.on("/apis", document())
        follower = Follower(client, World(["berth"]), await served(client), NEEDED)
        work = asyncio.create_task(follower.run())
        await follower.synced()
        pods = next(each for kind, each in follower.reflectors.items() if kind.kind == "Pod")
        asked = asyncio.create_task(follower.refresh())
        await asyncio.sleep(0)
        late = {"metadata": {"name": "late", "namespace": "a", "uid": "u", "resourceVersion": "20"}}
        await pods._take([msgspec.json.encode({"type": "ADDED", "object": late})])
        assert not asked.done()
        async with asyncio.timeout(3):
            await asked
        assert [("sendInitialEvents" in each.query) for each in server.asked("/api/v1/pods")] == [True, True]
        work.cancel()

    live(story)


def test_a_list_that_was_under_way_already_is_no_answer_to_a_refresh() -> None:
    async def story(server: StandIn, client: Client) -> None:
        needed(server)
        server.on("/apis", document())
        follower = Follower(client, World(["berth"]), await served(client), NEEDED)
        work = asyncio.create_task(follower.run())
        await follower.synced()
        nodes = next(each for kind, each in follower.reflectors.items() if kind.kind == "Node")
        asked = asyncio.create_task(follower.refresh())
        await asyncio.sleep(0)
        await nodes._whole(set(), "7")  # what was asked for before the refresh ends now
        async with asyncio.timeout(3):
            await asked
        assert [("sendInitialEvents" in each.query) for each in server.asked("/api/v1/nodes")] == [True, True]
        assert nodes.synced.is_set()
        work.cancel()

    live(story)
