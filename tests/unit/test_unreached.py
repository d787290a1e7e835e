"""Why there was no answer is told in words, whatever object the HTTP client names."""

from __future__ import annotations

import asyncio
import socket

import aiohttp
import pytest

from berth.kube.access import Access
from berth.kube.client import Client
from berth.kube.errors import Unreachable
from berth.kube.unreached import as_said, in_words


@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_nobody_listens(verb):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else takes it meanwhile
        port = taken.getsockname()[1]

        async def ask() -> None:
            async with Client(Access(server=f"https://127.0.0.1:{port}", insecure=True)) as client:
                await client.request(verb, "/x", {} if verb == "POST" else None, most_attempts=1)

        with pytest.raises(Unreachable) as caught:
            asyncio.run(ask())
    assert str(caught.value) == f"{verb} /x: no answer Unreachable: the connection was refused"


@pytest.mark.parametrize(("error", "said"), [
    (OSError(113, "No route to host"), "there is no way to it"),
    (socket.gaierror(-2, "Name or service not known"), "its name is not known"),
    (aiohttp.ClientPayloadError("the payload is not complete"), ""),
])  # fmt: skip
def test_what_is_below_http_is_told_in_words(error, said):
    assert in_words(error) == said


def test_no_object_of_a_program_is_named():
    said = "Cannot connect to host 10.0.0.1:6443 ssl:<berth.kube.tls.ResumingContext object at 0x7f> [odd]"
    assert as_said(OSError(said)) == "Cannot connect to host 10.0.0.1:6443 [odd]"
    assert as_said(ConnectionError()) == "ConnectionError"
