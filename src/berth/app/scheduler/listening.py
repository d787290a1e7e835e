"""The port of the endpoints, opened before anything else: who cannot listen takes no Lease and asks no API server."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress

from berth.app.scheduler.configuration import Configured
from berth.base.errors import BadInput

BACKLOG = 128


def listen(configured: Configured) -> list[socket.socket]:
    """Sockets that listen, one for each address that `server.address` stands for.

    Raises BadInput where the port is in use or the address is none of this machine.
    """
    server = configured.value.server
    try:
        found = socket.getaddrinfo(
            server.address or None, server.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )  # fmt: skip
    except (OSError, UnicodeError):
        raise _no_address(configured) from None
    opened: list[socket.socket] = []
    try:
        for family, kind, protocol, _, where in dict.fromkeys(found):
            one = socket.socket(family, kind, protocol)
            opened.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                with suppress(OSError):
                    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(where)
            one.listen(BACKLOG)
            one.setblocking(False)
    except OSError as error:
        for one in opened:
            one.close()
        raise _not_open(configured, error) from None
    return opened


def _not_open(configured: Configured, error: OSError) -> BadInput:
    port = configured.value.server.port
    where = configured.where("server.port")
    if error.errno == errno.EADDRINUSE:
        remedy = "Stop what listens there, or set another with --set server.port=…."
        return BadInput(where, f"{port} is in use.", remedy)
    if error.errno in (errno.EACCES, errno.EPERM):
        return BadInput(where, f"{port} may not be opened by this user.", "Set one from 1024 up: server.port=8090.")
    if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
        return _no_address(configured)
    return BadInput(where, f"{port} cannot be opened: {os.strerror(error.errno or 0)}.")


def _no_address(configured: Configured) -> BadInput:
    address = configured.value.server.address
    remedy = "Write 0.0.0.0 for all, or one that it has."
    return BadInput(configured.where("server.address"), f"{address!r} is no address of this machine.", remedy)
