"""Requests: what is sent, what is sent again, and what a refusal says."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
import time
from typing import Any

import pytest
from stand_in import Answer, Seen, StandIn, live, refused, status_of

from berth.kube import wire
from berth.kube.access import Access
from berth.kube.client import Client
from berth.kube.errors import ApiError, Unreachable, refusal, refusal_in_stream
from berth.kube.lease import LeaseSpec, create_lease, micro_time, read_lease, write_lease
from berth.kube.retry import Backoff, may_repeat

PODS = "/api/v1/namespaces/team/pods"
POD = f"{PODS}/a"


def refusal_of(story: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        live(story)
    return caught.value


# ---- what is sent


def test_a_bind() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(f"{POD}/binding", Answer(status_of(201, ""), 201))
        await client.bind("team", "a", "uid-1", "77", "node-3", {"berth.dev/note": 'quo"te'})
        (seen,) = server.seen
        assert (seen.verb, seen.headers["Content-Type"]) == ("POST", "application/json")
        assert seen.headers["User-Agent"] == "berth/0.1.0"
        assert json.loads(seen.body) == {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": "a",
                "namespace": "team",
                "uid": "uid-1",
                "resourceVersion": "77",
                "annotations": {"berth.dev/note": 'quo"te'},
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": "node-3"},
        }
        await client.bind("team", "a", "uid-1", None, "node-3")
        assert json.loads(server.seen[1].body)["metadata"] == {"name": "a", "namespace": "team", "uid": "uid-1"}
        assert client.counts == {("POST", 201): 2}

    live(story)


def test_an_eviction() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(f"{POD}/eviction", Answer({}, 201), refused(429, "TooManyRequests", "would violate the budget"))
        await client.evict("team", "a", "uid-1", grace_s=5, dry_run=True)
        assert json.loads(server.seen[0].body) == {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "a", "namespace": "team"},
            "deleteOptions": {"gracePeriodSeconds": 5, "dryRun": ["All"], "preconditions": {"uid": "uid-1"}},
        }
        with pytest.raises(ApiError) as caught:
            await client.evict("team", "a", "uid-1")
        assert caught.value.is_too_many
        assert len(server.seen) == 2, "whether to wait for a budget is not decided here"

    live(story)


def test_the_other_verbs() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(PODS, Answer({"metadata": {"name": "a"}}))
        server.on(POD, Answer({"metadata": {"name": "a", "resourceVersion": "5"}}))
        pod = await client.get(POD, wire.Pod)
        assert pod.metadata is not None and pod.metadata.resource_version == "5"
        assert await client.get(POD, params={"x": "a b&c"}) == {"metadata": {"name": "a", "resourceVersion": "5"}}
        assert (await client.post(PODS, {"kind": "Pod"}, wire.Pod)).metadata == wire.ObjectMeta(name="a")
        await client.put(POD, {"kind": "Pod"})
        await client.patch(POD, {"metadata": {"uid": "u"}})
        await client.patch(POD, {}, "apply", "berth-verdicts", force=True, dry_run=True)
        await client.patch(POD, [{"op": "test"}], "json")
        await client.delete(POD, uid="u", resource_version="9", grace_s=0)
        await client.delete(POD)
        asked = [(each.verb, each.query, each.headers.get("Content-Type")) for each in server.seen]
        assert asked == [
            ("GET", {}, None),
            ("GET", {"x": "a b&c"}, None),
            ("POST", {}, "application/json"),
            ("PUT", {}, "application/json"),
            ("PATCH", {"fieldManager": "berth"}, "application/merge-patch+json"),
            (
                "PATCH",
                {"fieldManager": "berth-verdicts", "force": "true", "dryRun": "All"},
                "application/apply-patch+yaml",
            ),
            ("PATCH", {"fieldManager": "berth"}, "application/json-patch+json"),
            ("DELETE", {}, "application/json"),
            ("DELETE", {}, "application/json"),
        ]
        assert json.loads(server.seen[-2].body) == {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u", "resourceVersion": "9"},
        }
        assert json.loads(server.seen[-1].body) == {"apiVersion": "v1", "kind": "DeleteOptions"}

    live(story)


def test_an_answer_that_is_something_else() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(POD, Answer(b"<html>"))
        await client.get(POD, wire.Pod)

    assert refusal_of(story).reason == "Undecodable"


def test_a_proxy_gets_all_requests() -> None:
    async def story() -> None:
        async with StandIn() as proxy, Client(Access(server="http://api.example", proxy_url=proxy.url)) as client:
            proxy.on(POD, Answer({}))
            await client.get(POD)
            await client.put(POD, {})
            assert [each.headers["Host"] for each in proxy.seen] == ["api.example", "api.example"]

    asyncio.run(story())


def test_a_far_server_is_asked_to_compress() -> None:
    async def story() -> None:
        packed = Answer(gzip.compress(b'{"a":1}'), headers={"Content-Encoding": "gzip"})
        async with StandIn() as server, Client(Access(server=server.url), is_far=True) as client:
            server.on(POD, packed)
            assert await client.get(POD) == {"a": 1}
            assert server.seen[0].headers["Accept-Encoding"] == "gzip"

    async def near(server: StandIn, client: Client) -> None:
        server.on(POD, Answer({}))
        await client.get(POD)
        assert "Accept-Encoding" not in server.seen[0].headers

    asyncio.run(story())
    live(near)


# ---- refusals


def test_a_refusal_says_what_the_server_said() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(f"{POD}/binding", refused(409, "Conflict", "pod a is already assigned", causes=[{"field": "x"}]))
        await client.bind("team", "a", "u", None, "n")

    error = refusal_of(story)
    assert error.is_conflict and not error.is_already_there and not error.is_retriable
    assert (error.status, error.reason, error.message) == (409, "Conflict", "pod a is already assigned")
    assert error.causes[0].field == "x"
    assert str(error) == f"POST {POD}/binding: 409 Conflict: pod a is already assigned"


@pytest.mark.parametrize(
    ("body", "reason", "message"),
    [
        (b"upstream connect error", "ServiceUnavailable", "upstream connect error"),
        (b"", "ServiceUnavailable", "the answer had no text"),
        (b"\xff\xfe", "ServiceUnavailable", "\ufffd\ufffd"),
        (b"[1]", "ServiceUnavailable", "[1]"),
        (b'{"message":null,"reason":"X"}', "X", '{"message":null,"reason":"X"}'),
    ],
)
def test_a_refusal_that_is_no_status(body: bytes, reason: str, message: str) -> None:
    error = refusal(503, None, body, "GET", "/x")
    assert (error.reason, error.message, error.is_retriable) == (reason, message, True)


@pytest.mark.parametrize(
    ("header", "expected_s"), [("3", 3.0), ("1.5", 1.5), ("soon", None), (None, None), ("", None), ("-4", 0.0)]
)
def test_retry_after(header: str | None, expected_s: float | None) -> None:
    assert refusal(429, header, b"", "GET", "/x").retry_after_s == expected_s


def test_retry_after_as_a_date_and_in_the_body() -> None:
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 60))
    after_s = refusal(429, date, b"", "GET", "/x").retry_after_s
    assert after_s is not None and 57 < after_s < 61
    assert refusal(500, None, b'{"details":{"retryAfterSeconds":2}}', "GET", "/x").retry_after_s == 2.0
    assert refusal(500, None, b'{"details":{"retryAfterSeconds":2}}', "GET", "/x").is_retriable
    assert not refusal(500, None, b"{}", "GET", "/x").is_retriable


def test_the_kinds_of_refusal() -> None:
    said = {
        name: {code for code in (401, 403, 404, 409, 410, 422, 429, 500, 503, 504) if getattr(of(code), name)}
        for name in ("is_conflict", "is_not_found", "is_gone", "is_forbidden", "is_unauthorized", "is_too_many")
    }
    assert said == {
        "is_conflict": {409},
        "is_not_found": {404},
        "is_gone": {410},
        "is_forbidden": {403},
        "is_unauthorized": {401},
        "is_too_many": {429},
    }
    assert refusal(409, None, b'{"reason":"AlreadyExists"}', "POST", "/x").is_already_there
    assert not refusal(409, None, b'{"reason":"AlreadyExists"}', "POST", "/x").is_conflict


def of(code: int) -> ApiError:
    return refusal(code, None, b"", "GET", "/x")


def test_an_error_event() -> None:
    error = refusal_in_stream(json.dumps(status_of(410, "Expired", "too old resource version")).encode(), "/x")
    assert error.is_gone and error.message == "too old resource version"
    assert refusal_in_stream(b"[]", "/x").status == 500
    future = status_of(504, "Timeout", causes=[{"reason": "ResourceVersionTooLarge"}])
    assert refusal_in_stream(json.dumps(future).encode(), "/x").is_too_new


# ---- sent again, or not


@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_too_many_requests_waits_as_long_as_it_is_told(verb: str) -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(POD, refused(429, "TooManyRequests", headers={"Retry-After": "0.3"}), Answer({}))
        began_s = time.monotonic()
        await client.request(verb, POD, None if verb == "GET" else {})
        assert 0.3 <= time.monotonic() - began_s < 1.0
        assert client.counts == {(verb, 429): 1, (verb, 200): 1}

    live(story)


def test_a_wait_beyond_the_time_that_is_left_is_not_begun() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(POD, refused(429, "TooManyRequests", headers={"Retry-After": "60"}))
        await client.request("GET", POD, timeout_s=5)

    began_s = time.monotonic()
    assert refusal_of(story).retry_after_s == 60
    assert time.monotonic() - began_s < 2


@pytest.mark.parametrize(
    ("first", "verb", "attempts"),
    [
        (refused(503, "ServiceUnavailable"), "GET", 2),
        (refused(503, "ServiceUnavailable"), "DELETE", 2),
        (refused(503, "ServiceUnavailable"), "POST", 1),
        (refused(503, "ServiceUnavailable", headers={"Retry-After": "0"}), "POST", 2),
        (refused(504, "Timeout"), "POST", 1),
        (refused(500, "ServerTimeout", retryAfterSeconds=0), "POST", 1),
        (refused(500, "InternalError"), "GET", 1),
        (refused(409, "Conflict"), "PUT", 1),
        (Answer(then="cut"), "GET", 2),
        (Answer(then="cut"), "PUT", 2),
        (Answer(then="cut"), "POST", 1),
    ],
)
def test_what_is_sent_again(first: Answer, verb: str, attempts: int) -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(POD, first, Answer({}))
        try:
            await client.request(verb, POD, None if verb == "GET" else {})
        except ApiError:
            assert attempts == 1
        # aiohttp itself asks once more for a GET whose connection was reused; here none was.
        assert len(server.seen) == attempts

    live(story)


def test_a_json_patch_is_not_sent_again_and_a_review_is() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(POD, Answer(then="cut"), Answer({}))
        with pytest.raises(Unreachable) as caught:
            await client.patch(POD, [], "json")
        assert caught.value.may_have_arrived
        server.on("/review", Answer(then="cut"), Answer({}))
        await client.request("POST", "/review", {}, repeatable=True)

    live(story)


def test_attempts_are_bounded_in_time() -> None:
    now_s = 0.0

    def busy(seen: Seen) -> Answer:
        nonlocal now_s
        now_s += 0.4
        return refused(503, "ServiceUnavailable")

    async def story() -> None:
        async with StandIn() as server, Client(Access(server=server.url), clock=lambda: now_s) as client:
            server.on(POD, busy)
            with pytest.raises(ApiError):
                await client.request("GET", POD, timeout_s=1.0, most_attempts=100)
            assert len(server.seen) == 3

    asyncio.run(story())


def test_attempts_are_bounded() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(POD, refused(503, "ServiceUnavailable"))
        with pytest.raises(ApiError):
            await client.request("GET", POD, most_attempts=3)
        assert len(server.seen) == 3

    live(story)


def test_nobody_listens() -> None:
    async def story() -> None:
        async with Client(Access(server="http://127.0.0.1:1")) as client:
            for verb, body in (("GET", None), ("POST", b"{}")):
                with pytest.raises(Unreachable) as caught:
                    await client.request(verb, POD, body, most_attempts=2)
                assert not caught.value.may_have_arrived
                assert caught.value.path == POD
            assert client.counts == {("GET", 0): 2, ("POST", 0): 2}

    asyncio.run(story())


@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_no_answer_in_time(verb: str) -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(POD, Answer({}, wait_s=5))
        with pytest.raises(Unreachable, match="no answer in time"):
            await client.request(verb, POD, None if verb == "GET" else {}, timeout_s=0.1)
        assert client.in_flight == 0

    live(story)


def test_backoff_doubles_within_bounds_and_adds_to_what_was_asked() -> None:
    backoff = Backoff(1.0, 8.0)
    bounds = [1, 2, 4, 8, 8]
    waits = [backoff.next_s() for _ in bounds]
    assert all(0 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))
    assert len(set(waits)) == len(waits), "drawn, not fixed"
    backoff.succeeded()
    assert backoff.next_s(10.0) <= 11.0
    backoff.failures = 10_000
    assert backoff.next_s() <= 8.0


def test_what_may_be_repeated() -> None:
    assert may_repeat(Unreachable("", may_have_arrived=False), False)
    assert not may_repeat(Unreachable("", may_have_arrived=True), False)
    assert may_repeat(Unreachable("", may_have_arrived=True), True)
    assert not may_repeat(of(403), True)


# ---- many at once


def test_requests_in_flight_are_bounded_and_a_lease_goes_first() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(f"{POD}/binding", Answer({}, 201, wait_s=0.1))
        server.on(
            "/apis/coordination.k8s.io/v1/namespaces/berth/leases/l", Answer({"metadata": {"resourceVersion": "1"}})
        )
        for _ in range(10):
            await read_lease(client, "berth", "l")
        binds = asyncio.gather(*(client.bind("team", "a", "u", None, "n") for _ in range(200)))
        await asyncio.sleep(0.05)
        assert client.in_flight == 64
        await read_lease(client, "berth", "l", timeout_s=1.0)
        assert len(server.asked(f"{POD}/binding")) <= 128
        await binds
        assert client.in_flight == 0

    live(story)


def test_binds_do_not_queue_behind_what_people_are_told() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(f"{POD}/status", Answer({}, 200, wait_s=1.0))
        server.on(f"{POD}/binding", Answer({}, 201))
        told = asyncio.gather(*(client.patch(f"{POD}/status", {}) for _ in range(100)))
        await asyncio.sleep(0.1)
        assert client.in_flight == 64
        async with asyncio.timeout(0.6):
            await client.bind("team", "a", "u", None, "n")
        told.cancel()
        await asyncio.gather(told, return_exceptions=True)

    live(story)


def test_time_is_counted_from_when_the_turn_comes() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(f"{POD}/binding", Answer({}, 201, wait_s=0.2))
        await asyncio.gather(*(client.bind("team", "a", "u", None, "n", timeout_s=0.5) for _ in range(300)))

    live(story)


def test_a_delay_for_tests() -> None:
    asked: list[tuple[str, str]] = []

    def slowly(verb: str, path: str) -> float:
        asked.append((verb, path))
        return 0.1

    async def story(server: StandIn, client: Client) -> None:
        client.delay_s = slowly
        server.on(POD, Answer({}))
        began_s = time.monotonic()
        await client.get(POD)
        assert time.monotonic() - began_s >= 0.1

    live(story)
    assert asked == [("GET", POD)]


# ---- Leases


def test_a_lease_is_made_read_and_renewed_over_the_version_that_was_read() -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/berth/leases"

    def stored(seen: Seen) -> Answer:
        body = json.loads(seen.body)
        body["metadata"]["resourceVersion"] = "2"
        return Answer(body)

    async def story(server: StandIn, client: Client) -> None:
        server.on(path, stored)
        server.on(
            f"{path}/l",
            refused(404, "NotFound"),
            Answer(
                {
                    "metadata": {
                        "name": "l",
                        "namespace": "berth",
                        "resourceVersion": "1",
                        "labels": {"a": "b"},
                        "annotations": {"c": "d"},
                        "finalizers": ["f"],
                    },
                    "spec": {"holderIdentity": "x", "leaseTransitions": 3},
                }
            ),
            stored,
        )
        with pytest.raises(ApiError) as caught:
            await read_lease(client, "berth", "l")
        assert caught.value.is_not_found
        made = await create_lease(client, "berth", "l", LeaseSpec(holder_identity="me", lease_transitions=1))
        assert made.spec is not None and made.spec.holder_identity == "me"
        read = await read_lease(client, "berth", "l")
        assert read.spec is not None and read.spec.lease_transitions == 3
        await write_lease(client, read)
        sent = json.loads(server.seen[-1].body)
        assert server.seen[-1].verb == "PUT"
        assert sent["metadata"] == {
            "name": "l",
            "namespace": "berth",
            "resourceVersion": "1",
            "labels": {"a": "b"},
            "annotations": {"c": "d"},
            "finalizers": ["f"],
        }
        assert sent["spec"] == {"holderIdentity": "x", "leaseTransitions": 3}

    live(story)


def test_a_lease_is_asked_once() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on("/apis/coordination.k8s.io/v1/namespaces/berth/leases/l", refused(503, "ServiceUnavailable"))
        with pytest.raises(ApiError):
            await read_lease(client, "berth", "l")
        assert len(server.seen) == 1

    live(story)


def test_a_moment() -> None:
    assert micro_time(1_700_000_000.25) == "2023-11-14T22:13:20.250000Z"


# ---- what is imported


@pytest.mark.parametrize("module", ["berth.app.cli.main", "berth.sources.dump", "berth.kube.wire", "berth.kube.access"])
def test_what_talks_to_no_cluster_does_not_import_the_client(module: str) -> None:
    code = f"import sys, {module}; print([name for name in ('aiohttp', 'uvloop', 'asyncio') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
