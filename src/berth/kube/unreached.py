"""Why there was no answer, in words for people: HTTP clients, sockets and OpenSSL each say it in their own way."""

from __future__ import annotations

import re

_SIGNS = (
    ("certificate required", "it asks for a client certificate"),
    ("alert", "it refused the TLS handshake"),
    ("WRONG_VERSION_NUMBER", "it does not speak TLS"),
    ("record layer failure", "it does not speak TLS"),
    ("Name or service not known", "its name is not known"),
    ("nodename nor servname", "its name is not known"),
    ("Temporary failure in name resolution", "its name cannot be looked up now"),
    ("No address associated", "its name has no address"),
    ("Connect call failed", "the connection was refused"),
    ("refused", "the connection was refused"),
    ("No route to host", "there is no way to it"),
    ("unreachable", "there is no way to it"),
    ("timed out", "no answer in time"),
)
# How aiohttp names our TLS context in its own sentences.
_OBJECT = re.compile(r" ?ssl:<[^>]*>")


def causes(error: BaseException) -> list[BaseException]:
    """The error and what lies below it, an HTTP client's wrapping of a system error too."""
    found: list[BaseException] = []
    todo: list[object] = [error]
    while todo:
        one = todo.pop(0)
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            todo += [one.__cause__, one.__context__, getattr(one, "os_error", None)]
            todo += [getattr(one, "certificate_error", None)]
    return found


def distrust(error: BaseException) -> str:
    """Why its certificate is not believed, in OpenSSL's words; "" where that is not the trouble."""
    # The HTTP client's own error is of the same type, and has no such message.
    return next((said for one in causes(error) if (said := getattr(one, "verify_message", ""))), "")


def in_words(error: BaseException) -> str:
    """What went wrong below HTTP; "" where it is nothing that is known."""
    if said := distrust(error):
        return f"its certificate cannot be trusted: {said.rstrip('.')}"
    text = " ".join(str(one) for one in causes(error))
    return next((words for sign, words in _SIGNS if sign in text), "")


def as_said(error: BaseException) -> str:
    """The error's own words, without what only a programmer reads."""
    return _OBJECT.sub("", str(error)).strip() or type(error).__name__
