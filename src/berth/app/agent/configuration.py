"""What the agent runs by: one versioned object, each value with the place that it came from (app/layers.py)."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping

from berth.app.agent.settings import API_VERSION, KIND, Configuration
from berth.app.layers import Layers, layered
from berth.base.errors import BadInput
from berth.node.look import Looking
from berth.node.places import Places

PREFIX = "BERTH_AGENT_"
LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("json", "text")
SHORTEST_S = 5.0
LEAST_HEARTBEAT_S = 10.0

Configured = Layers[Configuration]
Broken = tuple[str, str, str]  # path, problem, remedy


def configure(
    file: str | None = None, flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
) -> Configured:
    """`flags` by path ("looks.seconds"); variables are BERTH_AGENT_LOOKS_SECONDS. Raises BadInput."""
    return layered(Configuration, (API_VERSION, KIND), PREFIX, file, flags, environ, _check)


def places_of(value: Configuration) -> Places:
    paths = value.paths
    return Places.of(paths.root, paths.kubelet, paths.device_plugins, paths.logs, paths.run, paths.proc)


def looking_of(value: Configuration) -> Looking:
    return Looking(
        socket_s=value.looks.socket_seconds,
        lists_plugins=value.looks.list_plugins,
        sees_containers=value.looks.containers,
        log_window_s=value.looks.log_window_seconds,
        operands=value.operand_namespaces,
    )


def node_of(value: Configuration, environ: Mapping[str, str]) -> str:
    """The Node's name: as configured, else NODE_NAME, which the DaemonSet sets, else that of the machine."""
    return value.node or environ.get("NODE_NAME", "") or socket.gethostname().lower()


def _check(value: Configuration, where: Callable[[str], str]) -> None:
    for path, problem, remedy in _broken(value):
        raise BadInput(where(path), problem, remedy)


def _broken(value: Configuration) -> Iterator[Broken]:
    if not value.paths.root:
        yield "paths.root", "is empty.", "Write / on the machine itself, /host where its root is mounted there."
    if value.looks.seconds < SHORTEST_S:
        yield "looks.seconds", f"is {value.looks.seconds:g}.", f"Write {SHORTEST_S:g} or more, such as 30."
    if not 0.1 <= value.looks.socket_seconds <= 30:
        yield "looks.socketSeconds", f"is {value.looks.socket_seconds:g}.", "Write 0.1 to 30, such as 3."
    if value.looks.log_window_seconds < 60:
        yield "looks.logWindowSeconds", f"is {value.looks.log_window_seconds:g}.", "Write 60 or more, such as 3600."
    if value.writes.heartbeat_seconds < LEAST_HEARTBEAT_S:
        told = f"is {value.writes.heartbeat_seconds:g}."
        yield "writes.heartbeatSeconds", told, f"Write {LEAST_HEARTBEAT_S:g} or more, such as 60."
    if value.writes.cordon and not value.writes.condition:
        yield "writes.cordon", "is true, and writes.condition false.", "Who cordons says why: set both."
    if not 0 <= value.server.port <= 65535:
        yield "server.port", f"is {value.server.port}.", "Write 0 to 65535."
    if value.log_level not in LEVELS:
        yield "logLevel", f"is {value.log_level!r}.", "Write debug, info, warning or error."
    if value.log_format not in FORMATS:
        yield "logFormat", f"is {value.log_format!r}.", "Write json or text."
