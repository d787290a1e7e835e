"""A kind as it is and as it changes, whatever happens to the connection."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_in import Answer, Seen, StandIn, live, refused, status_of

from berth.kube import wire
from berth.kube.changes import Change, Trouble
from berth.kube.client import Client
from berth.kube.errors import ApiError
from berth.kube.reflect import Reflector
from berth.kube.retry import Backoff

PODS = "/api/v1/pods"


def pod(name: str, version: int, uid: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "d", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}}


def event(kind: str, thing: Any) -> bytes:
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"


def added(name: str, version: int, uid: str = "") -> bytes:
    return event("ADDED", pod(name, version, uid))


def end_of_list(version: int) -> bytes:
    notes = {"k8s.io/initial-events-end": "true"}
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version), "annotations": notes}})


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version), "creationTimestamp": None}})


def streamed(*pieces: bytes, then: str = "stay") -> Answer:
    return Answer(pieces=list(pieces), then=then)


def listed(version: int, *pods: dict[str, Any], token: str = "") -> Answer:
    return Answer({"items": list(pods), "metadata": {"resourceVersion": str(version), "continue": token}})


class Told:
    """What the sink was told, and the state that follows from it."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str, str]] = []
        self.batches: list[int] = []
        self.state: dict[str, str] = {}
        self.troubles: list[Trouble] = []
        self.failures: list[ApiError] = []

    def sink(self, changes: list[Change[Any]]) -> None:
        assert changes
        self.batches.append(len(changes))
        for change in changes:
            name = change.key[1]
            version = ""
            if change.kind == "put":
                meta = change.object["metadata"] if isinstance(change.object, dict) else change.object.metadata
                version = meta["resourceVersion"] if isinstance(meta, dict) else meta.resource_version
                self.state[name] = version
            else:
                assert change.object is None
                del self.state[name]
            self.changes.append((change.kind, name, version))


Until = Callable[[Callable[[], bool]], Awaitable[None]]
Story = Callable[[StandIn, Reflector[Any], Told, Until], Awaitable[None]]


def reflecting(answers: list[Any], story: Story, path: str = PODS, type: Any = wire.Pod, **options: Any) -> Told:
    """Run a reflector against these answers while the story looks on."""
    told = Told()

    async def run(server: StandIn, client: Client) -> None:
        server.on(PODS, *answers)
        options.setdefault("backoff", Backoff(0.01, 0.02))
        reflector = Reflector(
            client, path, type, told.sink, troubles=told.troubles.append, failures=told.failures.append, **options
        )
        task = asyncio.create_task(reflector.run())

        async def until(is_so: Callable[[], bool]) -> None:
            async with asyncio.timeout(5):
                while not is_so():
                    if task.done():
                        task.result()
                    await asyncio.sleep(0.002)

        try:
            await story(server, reflector, told, until)
        finally:
            task.cancel()

    live(run)
    return told


def queries(server: StandIn) -> list[dict[str, str]]:
    kept = ("watch", "resourceVersion", "sendInitialEvents", "resourceVersionMatch", "continue", "limit")
    return [{key: each.query[key] for key in kept if key in each.query} for each in server.seen]


STREAMED_LIST = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


# ---- list and watch


def test_a_streamed_list_and_what_follows() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await reflector.synced.wait()
        assert told.state == {"a": "1", "b": "2"}
        assert not reflector.is_absent and not reflector.is_forbidden
        await until(lambda: reflector.resource_version == "30")
        assert told.changes[2:] == [("put", "a", "11"), ("gone", "b", ""), ("put", "c", "13")]
        assert len(reflector) == 2
        assert time.monotonic() - reflector.last_heard_s < 5
        assert queries(server) == [STREAMED_LIST]
        assert server.seen[0].query["allowWatchBookmarks"] == "true"
        assert 240 <= int(server.seen[0].query["timeoutSeconds"]) <= 360
        assert server.seen[0].query["fieldSelector"] == "spec.nodeName="

    later = [event("MODIFIED", pod("a", 11)), event("DELETED", pod("b", 12)), added("c", 13), bookmark(30)]
    first = [added("a", 1), added("b", 2), end_of_list(10)]
    reflecting([streamed(*first, *later)], story, field_selector="spec.nodeName=")


def test_events_that_come_together_are_told_together() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await until(lambda: len(told.changes) == 100)
        assert told.batches == [100]

    reflecting([streamed(b"".join(added(f"p{number}", number) for number in range(1, 101)))], story)


def test_all_in_one_piece() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await reflector.synced.wait()
        assert told.changes[:2] == [("put", "a", "1"), ("put", "b", "2")]
        await until(lambda: told.state == {"b": "2", "c": "13"})
        assert told.batches == [2, 2], "the list is told whole before it counts as synced"

    stream = [added("a", 1), added("b", 2), end_of_list(10), event("DELETED", pod("a", 12)), added("c", 13)]
    reflecting([streamed(b"".join(stream))], story)


def test_a_list_in_pages_where_lists_are_not_streamed() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await reflector.synced.wait()
        assert told.state == {"a": "1", "b": "2"}
        await until(lambda: told.state["a"] == "11")
        assert queries(server) == [
            STREAMED_LIST,
            {"limit": "500"},
            {"limit": "500", "continue": "t"},
            {"watch": "true", "resourceVersion": "10"},
        ]

    answers = [
        refused(
            422, "Invalid", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        ),
        listed(10, pod("a", 1), token="t"),
        listed(10, pod("b", 2)),
        streamed(event("MODIFIED", pod("a", 11))),
    ]
    reflecting(answers, story)


def test_a_server_that_takes_no_notice_of_the_wish_for_a_streamed_list() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await reflector.synced.wait()
        assert queries(server)[:2] == [STREAMED_LIST, {"limit": "500"}]
        await until(lambda: told.state == {"a": "1", "b": "12"})
        assert reflector.resource_version == "12"

    answers = [streamed(added("a", 1)), listed(10, pod("a", 1)), streamed(added("b", 12))]
    reflecting(answers, story, first_answer_s=0.1)


def test_a_list_that_is_too_old_between_pages_starts_again() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await reflector.synced.wait()
        assert told.state == {"b": "2"}, "a went between the two attempts"

    answers = [
        listed(10, pod("a", 1), token="t"),
        refused(410, "Expired"),
        listed(20, pod("b", 2)),
        streamed(),
    ]
    reflecting(answers, story, stream_lists=False)


def test_plain_mappings() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await reflector.synced.wait()
        assert told.state == {"a": "1"}

    reflecting([streamed(added("a", 1), end_of_list(10))], story, type=dict)


def test_nobody_says_anything_about_what_is_not_changed() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await until(lambda: len(server.seen) == 3)
        await until(lambda: told.state.get("c") == "25")
        assert told.changes == [
            ("put", "a", "1"),
            ("put", "b", "2"),
            ("put", "b", "3"),
            ("gone", "a", ""),
            ("put", "c", "25"),
        ]

    answers = [
        streamed(added("a", 1), added("b", 2), end_of_list(10), then="end"),
        refused(410, "Expired", "too old resource version"),
        streamed(added("b", 3), end_of_list(20), added("c", 25)),
    ]
    reflecting(answers, story)


# ---- after a gap


@pytest.mark.parametrize("is_streamed", [True, False])
def test_what_vanished_meanwhile_is_told(is_streamed: bool) -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await until(lambda: told.state == {"b": "2", "c": "12", "d": "14"})
        assert told.changes[3:] == [
            ("gone", "c", ""),  # made anew under the same name
            ("put", "c", "12"),
            ("put", "d", "14"),
            ("gone", "a", ""),
        ]
        await until(lambda: reflector.resource_version == "20")
        assert reflector.relists == 1

    before = [pod("a", 1), pod("b", 2), pod("c", 3)]
    after = [pod("b", 2), pod("c", 12, "another"), pod("d", 14)]
    gone = streamed(event("ERROR", status_of(410, "Expired", "too old resource version: 1 (5)")))
    if is_streamed:
        answers = [
            streamed(*(event("ADDED", each) for each in before), end_of_list(10), then="end"),
            gone,
            streamed(*(event("ADDED", each) for each in after), end_of_list(20)),
        ]
    else:
        answers = [listed(10, *before), gone, listed(20, *after), streamed()]
    reflecting(answers, story, stream_lists=is_streamed)


def test_a_position_from_the_future_is_dropped() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await until(lambda: reflector.resource_version == "5")
        assert told.state == {}

    future = status_of(
        504, "Timeout", "Too large resource version: 10, current: 5", causes=[{"reason": "ResourceVersionTooLarge"}]
    )
    answers = [streamed(added("a", 1), end_of_list(10), then="end"), Answer(future, 504), streamed(end_of_list(5))]
    reflecting(answers, story)


def test_a_cut_watch_goes_on_where_it_was() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await until(lambda: told.state == {"a": "11", "b": "12"})
        assert queries(server)[1:] == [
            {"watch": "true", "resourceVersion": "11"},
            {"watch": "true", "resourceVersion": "11"},
        ]
        assert reflector.relists == 0
        assert told.changes == [("put", "a", "1"), ("put", "a", "11"), ("put", "b", "12")]

    answers = [
        streamed(added("a", 1), end_of_list(10), event("MODIFIED", pod("a", 11)), added("b", 12)[:30], then="cut"),
        refused(503, "ServiceUnavailable"),
        streamed(added("b", 12)),
    ]
    reflecting(answers, story)


def test_a_list_that_is_cut_begins_anew() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await reflector.synced.wait()
        assert told.state == {"b": "2"}
        assert queries(server) == [STREAMED_LIST] * 3

    answers = [
        streamed(added("a", 1), then="cut"),
        streamed(added("a", 1), then="end"),
        streamed(added("b", 2), end_of_list(10)),
    ]
    reflecting(answers, story)


def test_a_silent_watch_is_cut_and_resumed() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await until(lambda: told.state == {"a": "1", "b": "12"})
        assert [error.message for error in told.failures] == ["silent for 0.2 s"]

    answers = [streamed(added("a", 1), end_of_list(10)), streamed(added("b", 12))]
    reflecting(answers, story, watch_s=(0.1, 0.1), grace_s=0.1)


def test_the_same_error_at_the_same_place_lists_again() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await until(lambda: told.state == {"b": "2"})
        assert [query.get("resourceVersion") for query in queries(server)] == [None, "10", "10", "10", None]

    error = streamed(event("ERROR", status_of(500, "InternalError", "etcd event received with PrevKv=nil")))
    first = streamed(added("a", 1), end_of_list(10), then="end")
    reflecting([first, error, error, error, streamed(added("b", 2), end_of_list(20))], story)


def test_a_server_that_ends_each_watch_at_once_is_not_asked_in_a_loop() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await asyncio.sleep(0.5)
        assert len(server.seen) < 12

    answers = [streamed(end_of_list(10), then="end"), streamed(then="end")]
    reflecting(answers, story, backoff=Backoff(0.1, 5.0))


def test_a_server_that_answers_410_to_everything_is_not_asked_in_a_loop() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await asyncio.sleep(0.5)
        assert len(server.seen) < 12

    reflecting([refused(410, "Expired")], story, backoff=Backoff(0.1, 5.0))


# ---- kinds that are absent or out of sight


def test_an_absent_kind_is_no_error_and_is_seen_when_it_comes() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await reflector.synced.wait()
        assert reflector.is_absent and not told.failures
        reflector.look_again()
        await until(lambda: told.state == {"a": "1"})
        assert not reflector.is_absent

    reflecting([refused(404, "NotFound"), streamed(added("a", 1), end_of_list(10))], story)


def test_a_wish_to_look_again_is_not_lost_while_a_request_is_under_way() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await until(lambda: len(server.seen) == 1)
        reflector.look_again()
        await until(lambda: told.state == {"a": "1"})

    slow = Answer(status_of(404, "NotFound"), 404, wait_s=0.1)
    reflecting([slow, streamed(added("a", 1), end_of_list(10))], story)


def test_a_kind_that_goes_takes_its_objects_with_it() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await until(lambda: reflector.is_absent)
        assert told.state == {} and told.changes[-1] == ("gone", "a", "")

    reflecting([streamed(added("a", 1), end_of_list(10), then="end"), refused(404, "NotFound")], story)


def test_a_path_that_has_been_there_is_not_gone_before_it_was_asked_whether_it_is() -> None:
    asked: list[float] = []

    async def has_gone(missing_s: float) -> bool:
        asked.append(missing_s)
        return len(asked) in (2, 4)

    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await until(lambda: ("put", "b", "11") in told.changes)
        assert told.changes[:2] == [("put", "a", "1"), ("put", "b", "11")], "nothing went in between"
        assert queries(server)[2] == {"watch": "true", "resourceVersion": "10"}, "it goes on where it was"
        await until(lambda: reflector.is_absent)
        assert told.state == {} and len(asked) == 2
        reflector.look_again()
        await until(lambda: told.state == {"c": "20"})
        await until(lambda: reflector.is_absent)
        assert len(asked) == 4
        assert asked[0] < 0.01 and asked[2] < asked[3], "from the first 404 in a row"

    answers = [
        streamed(added("a", 1), end_of_list(10), then="end"), refused(404, "NotFound"),
        streamed(added("b", 11), then="end"), refused(404, "NotFound"),
        streamed(added("c", 20), end_of_list(30), then="end"), refused(404, "NotFound"),
    ]  # fmt: skip
    reflecting(answers, story, has_gone=has_gone)


def test_of_a_path_that_was_never_there_nobody_is_asked() -> None:
    async def has_gone(missing_s: float) -> bool:
        pytest.fail("there is nothing to lose")

    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await reflector.synced.wait()
        assert reflector.is_absent

    reflecting([refused(404, "NotFound")], story, has_gone=has_gone)


def test_a_reflector_goes_on_where_one_at_another_path_has_ended() -> None:
    """Its objects are told again, since they may look otherwise here; none is gone but what is."""

    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await reflector.synced.wait()
        server.on("/other", streamed(added("a", 1), added("b", 2, "anew"), end_of_list(10)))
        again = Told()
        again.state = dict(told.state)
        other = Reflector(reflector._client, "/other", wire.Pod, again.sink, after=reflector)
        task = asyncio.create_task(other.run())
        await until(other.synced.is_set)
        assert again.changes == [("put", "a", "1"), ("gone", "b", ""), ("put", "b", "2"), ("gone", "c", "")]
        task.cancel()

    reflecting([streamed(added("a", 1), added("b", 2), added("c", 3), end_of_list(10))], story)


def test_a_reflector_knows_whether_it_has_heard_all() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        assert not reflector.is_current
        await until(lambda: told.state == {"a": "1"})
        assert not reflector.is_current, "the list is not whole"
        await reflector.synced.wait()
        assert reflector.is_current
        await until(lambda: len(server.seen) > 2)
        assert not reflector.is_current, "it cannot be watched now"
        await until(lambda: reflector.is_current)

    answers = [
        Answer(pieces=[added("a", 1), bookmark(2), end_of_list(10)], then="end"), refused(500, "InternalError"),
        Answer(status_of(500, "InternalError"), 500, wait_s=0.1), streamed(bookmark(12)),
    ]  # fmt: skip
    reflecting(answers, story)


def test_a_kind_that_we_may_not_see_is_not_synced_and_is_asked_for_again() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await reflector.answered.wait()
        assert reflector.is_forbidden and not reflector.synced.is_set()
        assert [error.is_forbidden for error in told.failures] == [True]
        await reflector.synced.wait()
        assert not reflector.is_forbidden

    reflecting([refused(403, "Forbidden"), streamed(end_of_list(10))], story, look_again_s=0.05)


def test_a_right_that_is_withdrawn_makes_nothing_vanish() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await until(lambda: reflector.is_forbidden)
        assert told.state == {"a": "1"}
        await until(lambda: told.state == {"a": "11"})
        assert not reflector.is_forbidden

    answers = [
        streamed(added("a", 1), end_of_list(10), then="end"),
        refused(403, "Forbidden"),
        streamed(event("MODIFIED", pod("a", 11))),
    ]
    reflecting(answers, story, look_again_s=0.05)


# ---- what cannot be decoded


def test_one_object_that_cannot_be_decoded_costs_no_other() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await until(lambda: told.state.get("c") == "13")
        assert told.state == {"a": "1", "c": "13"}, "what was known of a stands"
        assert [(trouble.key, trouble.path) for trouble in told.troubles] == [
            (("d", "x"), PODS),
            (("d", "a"), PODS),
            (None, PODS),
            (None, PODS),
            (None, PODS),
        ]
        assert "Expected `object | null`, got `int`" in told.troubles[0].problem
        assert reflector.resource_version == "13"

    broken = [
        event("ADDED", {**pod("x", 2), "spec": 7}),
        end_of_list(10),
        event("MODIFIED", {**pod("a", 11), "spec": 7}),
        event("ADDED", {"metadata": {"name": None}}),
        event("ADDED", 3),
        b"not json\n",
        added("c", 13),
    ]
    reflecting([streamed(added("a", 1), *broken)], story)


def test_an_undecodable_object_of_a_list_has_not_vanished() -> None:
    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        await until(lambda: reflector.resource_version == "20")
        assert told.state == {"a": "1"}
        assert [trouble.key for trouble in told.troubles] == [("d", "a")]

    answers = [listed(10, pod("a", 1)), refused(410, "Expired"), listed(20, {**pod("a", 5), "spec": 7}), streamed()]
    reflecting(answers, story, stream_lists=False)


# ---- any order of things


class World:
    """A server with a history of its own: it answers from what has happened, and forgets when told to."""

    def __init__(self, cuts: list[int]) -> None:
        self.version = 1
        self.objects: dict[str, dict[str, Any]] = {}
        self.events: list[tuple[int, bytes]] = []
        self.oldest = 0
        self.cuts = cuts

    def put(self, name: str) -> None:
        self.version += 1
        kind = "MODIFIED" if name in self.objects else "ADDED"
        uid = self.objects[name]["metadata"]["uid"] if name in self.objects else f"{name}-{self.version}"
        self.objects[name] = pod(name, self.version, uid)
        self.events.append((self.version, event(kind, self.objects[name])))

    def drop(self, name: str) -> None:
        if thing := self.objects.pop(name, None):
            self.version += 1
            self.events.append((self.version, event("DELETED", pod(name, self.version, thing["metadata"]["uid"]))))

    def forget(self) -> None:
        self.oldest = self.version
        self.events.clear()

    def answer(self, seen: Seen) -> Answer:
        if "resourceVersion" not in seen.query:
            pieces = [event("ADDED", each) for each in self.objects.values()] + [end_of_list(self.version)]
        elif int(seen.query["resourceVersion"]) < self.oldest:
            return streamed(event("ERROR", status_of(410, "Expired")))
        else:
            since = int(seen.query["resourceVersion"])
            pieces = [line for version, line in self.events if version > since]
        stream = b"".join(pieces)
        cut_at = self.cuts.pop(0) if self.cuts else len(stream)
        odd = [stream[:cut_at][start : start + 37] for start in range(0, len(stream[:cut_at]), 37)]
        return streamed(*odd, then="cut" if cut_at < len(stream) else "end")


STEP = st.tuples(st.sampled_from(["put", "put", "drop", "forget"]), st.sampled_from("abcde"))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(STEP, max_size=6), min_size=1, max_size=5), st.lists(st.integers(0, 900), max_size=5))
def test_the_sink_ends_with_what_the_server_has(rounds: list[list[tuple[str, str]]], cuts: list[int]) -> None:
    world = World(cuts)

    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        for steps in rounds:
            for what, name in steps:
                if what == "forget":
                    world.forget()
                else:
                    getattr(world, what)(name)
            wanted = {name: thing["metadata"]["resourceVersion"] for name, thing in world.objects.items()}
            await until(lambda wanted=wanted: reflector.synced.is_set() and told.state == wanted)  # type: ignore[misc]
            assert len(reflector) == len(wanted)

    reflecting([world.answer], story, backoff=Backoff(0.001, 0.002))


# ---- the loop is not held


def test_a_burst_does_not_hold_the_loop() -> None:
    """Twenty thousand events in one go: nobody else on the loop waits for long."""
    template = msgspec.json.encode({"type": "ADDED", "object": {**pod("NAME", 1), "spec": {"containers": [{}] * 40}}})
    burst = b"".join(template.replace(b"NAME", b"p%d" % number) + b"\n" for number in range(20_000))
    longest_s = 0.0

    async def story(server: StandIn, reflector: Reflector[Any], told: Told, until: Until) -> None:
        nonlocal longest_s
        reflector._seen = None
        work = asyncio.create_task(reflector._take(burst.split(b"\n")[:-1]))
        while not work.done():
            before_s = time.thread_time()  # not the time of other processes
            await asyncio.sleep(0)
            longest_s = max(longest_s, time.thread_time() - before_s)
        await work
        assert len(told.state) == 20_000
        assert len(told.batches) > 3, "told in slices"

    gc.collect()
    gc.freeze()  # what other tests left behind is not walked through again
    try:
        reflecting([streamed()], story)
    finally:
        gc.unfreeze()
    assert longest_s < 0.05
