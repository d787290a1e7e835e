"""The client of the node agent: the same refusals and rules of repetition as the scheduler's, over one connection."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from stand_in import Answer, Seen, StandIn, refused

from berth.kube.access import Access
from berth.kube.errors import ApiError, Unreachable
from berth.kube.few import FewRequests

Story = Callable[[StandIn, FewRequests], Coroutine[Any, Any, None]]


class Named(Struct):
    name: str


def live(story: Story, **access: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(20), StandIn() as server, FewRequests(Access(server=server.url, **access)) as client:
            await story(server, client)

    asyncio.run(run())


def test_bodies_types_and_parameters_go_as_they_should() -> None:
    async def story(server: StandIn, client: FewRequests) -> None:
        server.on("/x", Answer({"name": "a"}))
        assert (await client.get("/x", Named)).name == "a"
        await client.post("/x", b'{"b": 1}')
        await client.patch("/x", b"{}", "strategic", "berth-agent")
        get, post, patch = server.asked("/x")
        assert (get.verb, get.body) == ("GET", b"") and get.headers["Accept"] == "application/json"
        assert (post.verb, post.body, post.headers["Content-Type"]) == ("POST", b'{"b": 1}', "application/json")
        assert patch.headers["Content-Type"] == "application/strategic-merge-patch+json"
        assert patch.query == {"fieldManager": "berth-agent"}

    live(story)


def test_an_answer_that_is_not_what_it_should_be_is_told() -> None:
    async def story(server: StandIn, client: FewRequests) -> None:
        server.on("/x", Answer(b"<html>"))
        with pytest.raises(ApiError) as caught:
            await client.get("/x", Named)
        assert caught.value.reason == "Undecodable"

    live(story)


def test_not_now_is_tried_again_and_no_is_no() -> None:
    async def story(server: StandIn, client: FewRequests) -> None:
        server.on("/busy", refused(503, "ServiceUnavailable", "wait"), Answer({"name": "a"}))
        assert (await client.get("/busy", Named)).name == "a"
        server.on("/no", refused(403, "Forbidden", 'User "x" cannot patch'))
        with pytest.raises(ApiError) as caught:
            await client.patch("/no", b"{}")
        assert caught.value.is_no_right and len(server.asked("/no")) == 1
        server.on("/once", refused(503, "ServiceUnavailable", "wait"))
        with pytest.raises(ApiError):
            await client.post("/once", b"{}")
        assert len(server.asked("/once")) == 1, "what may not be carried out twice is not sent twice"

    live(story)


def test_a_connection_that_the_server_has_closed_is_opened_again() -> None:
    async def story(server: StandIn, client: FewRequests) -> None:
        server.on("/x", Answer({"name": "a"}))
        await client.get("/x", Named)
        kept = client._connection
        assert kept is not None and kept.sock is not None
        kept.sock.shutdown(socket.SHUT_RDWR)
        await client.get("/x", Named)
        assert client._connection is not kept
        await client.get("/x", Named)
        assert len(server.asked("/x")) == 3

    live(story)


def test_a_token_that_was_replaced_is_read_again_after_a_401(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    def answer(seen: Seen) -> Answer:
        is_new = seen.headers["Authorization"] == "Bearer new"
        return Answer({"name": "a"}) if is_new else refused(401, "Unauthorized")

    async def story(server: StandIn, client: FewRequests) -> None:
        server.on("/x", answer)
        with pytest.raises(ApiError) as caught:
            await client.get("/x", Named)
        assert caught.value.is_unauthorized
        token.write_text("new")
        assert (await client.get("/x", Named)).name == "a"

    live(story, token_file=str(token))


def test_nobody_there_is_told_in_words() -> None:
    async def story(server: StandIn, client: FewRequests) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        async with FewRequests(Access(server=f"http://127.0.0.1:{port}")) as other:
            with pytest.raises(Unreachable) as caught:
                await other.request("GET", "/x", most_attempts=1)
        assert "the connection was refused" in caught.value.sentence and not caught.value.may_have_arrived
        server.on("/slow", Answer({}, wait_s=5))
        with pytest.raises(Unreachable) as late:
            await client.request("GET", "/slow", timeout_s=0.2, most_attempts=1)
        assert "no answer in time" in late.value.sentence and late.value.may_have_arrived

    live(story)
