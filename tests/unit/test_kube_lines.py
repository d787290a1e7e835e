"""Streams of bytes that are cut anywhere: lines of a watch, and answers to writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.errors import Unreachable
from berth.kube.http1 import BODY_LIMIT, Answered, parse
from berth.kube.lanes import Lanes
from berth.kube.lines import Lines

A_LINE = st.binary(min_size=1, max_size=40).map(lambda raw: raw.replace(b"\n", b" "))


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(bounds)]


@given(st.lists(A_LINE, max_size=12), st.lists(st.integers(0, 600), max_size=30), st.binary(max_size=5))
def test_lines_are_whole_wherever_the_stream_is_cut(lines: list[bytes], places: list[int], rest: bytes) -> None:
    rest = rest.replace(b"\n", b"")
    stream = b"".join(line + b"\n" for line in lines) + rest
    reader = Lines()
    assert [line for piece in cut(stream, places) for line in reader.take(piece)] == lines
    assert reader.take(b"\n") == ([rest] if rest else [])


def test_empty_lines_are_left_out() -> None:
    assert Lines().take(b"\n\na\n\nb\n") == [b"a", b"b"]


# ---- answers


def answer_of(body: bytes, chunks: list[int] | None, status: int = 201, remarks: int = 0) -> bytes:
    head = b"HTTP/1.1 100 Continue\r\n\r\n" * remarks + b"HTTP/1.1 %d Created\r\nRetry-After: 7\r\n" % status
    if chunks is None:
        return head + b"content-LENGTH:  %d\r\n\r\n" % len(body) + body
    parts = [part for part in cut(body, chunks) if part]
    coded = b"".join(b"%X;x=1\r\n%b\r\n" % (len(part), part) for part in parts)
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + coded + b"0\r\nTrailer: x\r\n\r\n"


class Echo(asyncio.Protocol):
    """Answers each request with the next pieces, one write each."""

    def __init__(self, answers: list[list[bytes]], then_close: bool = False) -> None:
        self.answers = answers
        self.then_close = then_close
        self.got: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.is_lost = False

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True

    def data_received(self, data: bytes) -> None:
        self.got.append(data)
        asyncio.get_running_loop().create_task(self.say(self.answers.pop(0) if self.answers else []))

    async def say(self, pieces: list[bytes]) -> None:
        for piece in pieces:
            self.transport.write(piece)  # type: ignore[attr-defined]
            await asyncio.sleep(0.001)
        if self.then_close:
            self.transport.close()


def posted(lanes: Lanes, target: str = "/x", data: bytes = b"{}") -> asyncio.Future[Answered]:
    return asyncio.ensure_future(lanes.send("POST", target, (("A", "b"),), 1, data, "application/json", None))


def with_server(made: Callable[[], Echo], story: Callable[[Lanes, list[Echo]], object], idle_s: float = 60.0) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        served: list[Echo] = []

        def serve() -> Echo:
            served.append(made())
            return served[-1]

        server = await loop.create_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        lanes = Lanes(f"http://127.0.0.1:{port}/prefix", None, loop.time, idle_s)
        async with asyncio.timeout(10):
            await story(lanes, served)  # type: ignore[misc]
        lanes.close()
        server.close()

    asyncio.run(run())


@given(
    body=st.binary(max_size=80),
    chunks=st.none() | st.lists(st.integers(0, 80), max_size=5),
    places=st.lists(st.integers(0, 300), max_size=12),
    remarks=st.integers(0, 2),
)
def test_an_answer_is_read_wherever_it_is_cut(
    body: bytes, chunks: list[int] | None, places: list[int], remarks: int
) -> None:
    whole = answer_of(body, chunks, remarks=remarks)
    got = b""
    for piece in cut(whole, places)[:-1]:
        got += piece
        if len(got) < len(whole):
            missing = parse(got)
            assert isinstance(missing, int), "not whole yet"
            assert missing <= len(whole) - len(got), "never waits for more than there is"
    answered, used = parse(whole + b"rest")  # type: ignore[misc]
    assert (answered.status, answered.body, used) == (201, body, len(whole))
    assert answered.header("retry-after") == "7"


@pytest.mark.parametrize(
    "nonsense",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (BODY_LIMIT + 1),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\naXX",
        b"x" * (1 << 17),
    ],
)
def test_what_is_no_answer_is_not_guessed(nonsense: bytes) -> None:
    with pytest.raises(ValueError):
        parse(nonsense)

    async def story(lanes: Lanes, served: list[Echo]) -> None:
        with pytest.raises(Unreachable) as caught:
            await posted(lanes)
        assert caught.value.may_have_arrived

    with_server(lambda: Echo([[nonsense]]), story)


def test_no_content() -> None:
    assert parse(b"HTTP/1.1 204 No Content\r\nA: b\r\n\r\n") == (
        Answered(204, b"http/1.1 204 no content\r\na: b", b""),
        33,
    )


# ---- lanes


def test_a_lane_is_used_again() -> None:
    async def story(lanes: Lanes, served: list[Echo]) -> None:
        assert (await posted(lanes)).body == b"one"
        assert (await posted(lanes, "/y?z=1", b"[]")).body == b"two"
        assert len(served) == 1
        assert served[0].got[1] == (
            b"POST /prefix/y?z=1 HTTP/1.1\r\nHost: "
            + served[0].got[1].split(b"\r\n")[1].removeprefix(b"Host: ")
            + b"\r\nA: b\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]"
        )

    with_server(lambda: Echo([[answer_of(b"one", None)], [answer_of(b"two", [1])]]), story)


def test_as_many_lanes_as_are_needed_at_once() -> None:
    async def story(lanes: Lanes, served: list[Echo]) -> None:
        await asyncio.gather(*(posted(lanes) for _ in range(5)))
        await asyncio.gather(*(posted(lanes) for _ in range(3)))
        assert len(served) == 5

    with_server(lambda: Echo([[answer_of(b"a", None)]] * 9), story)


def test_a_large_answer_in_many_pieces() -> None:
    body = bytes(range(256)) * 2000

    async def story(lanes: Lanes, served: list[Echo]) -> None:
        assert (await posted(lanes)).body == body

    whole = answer_of(body, None)
    with_server(lambda: Echo([cut(whole, list(range(0, len(whole), 50_000)))]), story)


@pytest.mark.parametrize(
    "last",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na",
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
        answer_of(b"a", None) + b"more than was asked for",
    ],
)
def test_a_lane_that_ends_is_not_used_again(last: bytes) -> None:
    async def story(lanes: Lanes, served: list[Echo]) -> None:
        assert (await posted(lanes)).body == b"a"
        assert (await posted(lanes)).body == b"a"
        assert len(served) == 2

    with_server(lambda: Echo([[last], [answer_of(b"wrong lane", None)]]), story)


def test_a_lane_that_was_closed_while_idle_is_not_used_again() -> None:
    async def story(lanes: Lanes, served: list[Echo]) -> None:
        await posted(lanes)
        await asyncio.sleep(0.05)
        await posted(lanes)
        assert len(served) == 2

    with_server(lambda: Echo([[answer_of(b"a", None)]], then_close=True), story)


def test_a_lane_that_was_idle_for_long_is_not_used_again() -> None:
    async def story(lanes: Lanes, served: list[Echo]) -> None:
        await posted(lanes)
        await asyncio.sleep(0.05)
        await posted(lanes)
        assert len(served) == 2

    with_server(lambda: Echo([[answer_of(b"a", None)]] * 2), story, idle_s=0.02)


def test_what_a_burst_opened_is_closed_while_one_lane_serves_on() -> None:
    async def story(lanes: Lanes, served: list[Echo]) -> None:
        await asyncio.gather(*(posted(lanes) for _ in range(5)))
        assert [each.is_lost for each in served] == [False] * 5
        for _ in range(10):
            await asyncio.sleep(0.02)
            await posted(lanes)
        await asyncio.sleep(0.02)
        assert len(served) == 5
        assert sum(not each.is_lost for each in served) == 1

    with_server(lambda: Echo([[answer_of(b"a", None)]] * 20), story, idle_s=0.1)


def test_a_late_answer_is_not_taken_for_the_next() -> None:
    async def story(lanes: Lanes, served: list[Echo]) -> None:
        given_up = posted(lanes, "/slow")
        await asyncio.sleep(0.02)
        given_up.cancel()
        await asyncio.sleep(0)
        assert (await posted(lanes, "/next")).body == b"mine"
        assert [each.is_lost for each in served] == [True, False]

    answers = iter([[b""] * 50 + [answer_of(b"not mine", None)], [answer_of(b"mine", None)]])
    with_server(lambda: Echo([next(answers)]), story)


def test_a_server_that_hangs_up() -> None:
    async def story(lanes: Lanes, served: list[Echo]) -> None:
        with pytest.raises(Unreachable) as caught:
            await posted(lanes)
        assert caught.value.may_have_arrived

    with_server(lambda: Echo([[b"HTTP/1.1 2"]], then_close=True), story)


def test_nobody_listens() -> None:
    async def story() -> None:
        lanes = Lanes("http://127.0.0.1:1", None, asyncio.get_running_loop().time, 60.0)
        with pytest.raises(Unreachable) as caught:
            await posted(lanes)
        assert not caught.value.may_have_arrived

    asyncio.run(story())


@pytest.mark.parametrize("target", ["/a b", "/a\r\nHost: evil", "/ä", ""])
def test_a_path_cannot_smuggle_a_header(target: str) -> None:
    async def story(lanes: Lanes, served: list[Echo]) -> None:
        with pytest.raises(ValueError):
            await posted(lanes, target)
        assert not served

    with_server(lambda: Echo([]), story)


def test_a_header_cannot_smuggle_another() -> None:
    async def story(lanes: Lanes, served: list[Echo]) -> None:
        with pytest.raises(ValueError):
            await lanes.send("POST", "/", (("Authorization", "Bearer a\r\nB: c"),), 1, b"", "application/json", None)

    with_server(lambda: Echo([]), story)
