"""Calls over the kubelet's unix sockets, each with a deadline: who stands still is told apart from who is gone.

grpcio is used here and nowhere else.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc

# One channel for one call: nothing is kept open to a plugin that may be restarted, and nothing is retried.
_OPTIONS = (
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", 64 * 2**20),
)
_NAMES = {
    grpc.StatusCode.DEADLINE_EXCEEDED: "no answer within {s:g} s",
    grpc.StatusCode.UNAVAILABLE: "refused",
    grpc.StatusCode.UNIMPLEMENTED: "does not know this call",
    grpc.StatusCode.PERMISSION_DENIED: "permission denied",
}


class NoAnswer(Exception):
    """Why there is none: "no socket", "refused", "no answer within 3 s", or the other side's own words."""


def call(path: Path, method: str, timeout_s: float) -> bytes:
    """The answer to a call without arguments. Raises NoAnswer."""
    return _asked(path, timeout_s, lambda channel: channel.unary_unary(method)(b"", timeout=timeout_s))


def first_of_stream(path: Path, method: str, timeout_s: float) -> bytes:
    """The first message of a stream, which is then left. Raises NoAnswer."""

    def ask(channel: grpc.Channel) -> bytes:
        stream = channel.unary_stream(method)(b"", timeout=timeout_s)
        try:
            return bytes(next(stream))
        except StopIteration:
            raise NoAnswer("the stream ended without a list") from None
        finally:
            stream.cancel()

    return _asked(path, timeout_s, ask)


def _asked(path: Path, timeout_s: float, ask: Callable[[grpc.Channel], Any]) -> bytes:
    _refused_at_once(path, timeout_s)
    channel = grpc.insecure_channel(f"unix:{path}", options=_OPTIONS)
    try:
        return bytes(ask(channel))
    except grpc.RpcError as error:
        raise NoAnswer(_words(error, timeout_s)) from None
    finally:
        channel.close()


def _refused_at_once(path: Path, timeout_s: float) -> None:
    """grpcio tries again and again until the deadline where nobody listens: that is known sooner, and exactly."""
    try:
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
            probe.settimeout(timeout_s)
            probe.connect(str(path))
    except FileNotFoundError:
        raise NoAnswer("no socket") from None
    except ConnectionRefusedError:
        raise NoAnswer("refused: nobody listens on the socket") from None
    except TimeoutError:
        raise NoAnswer(f"no answer within {timeout_s:g} s") from None
    except OSError as error:
        raise NoAnswer((error.strerror or str(error)).lower()) from None


def _words(error: grpc.RpcError, timeout_s: float) -> str:
    code = error.code() if isinstance(error, grpc.Call) else None
    known = _NAMES.get(code) if code is not None else None
    if known:
        return known.format(s=timeout_s)
    details = error.details() if isinstance(error, grpc.Call) else str(error)
    return (details or str(code)).strip()[:200]
