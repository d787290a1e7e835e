"""Device plugins asked on their own sockets: who answers, who stands still, who has gone and left the socket behind.

By default a plugin is asked for its options, a call without effects. Its list is asked for only where somebody wants
it: ListAndWatch is a stream, and NVIDIA's plugin serves it from one channel of health events without heeding that a
reader has left (k8s-device-plugin, internal/plugin/server.go). Each stream that is opened beside the kubelet's may
take an event that the kubelet then never hears of. The kubelet's own copy of the list is in PodResources (kubelet.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from berth.evidence.fact import LONGEST_TEXT, Origin
from berth.evidence.formats.boundary_facts import Offered, PluginAnswer
from berth.node.kubelet_messages import LIST_AND_WATCH, OPTIONS, offered_in
from berth.node.places import Places
from berth.node.protobuf import Undecodable
from berth.node.seen import because
from berth.node.sockets import NoAnswer, call, first_of_stream

TIMEOUT_S = 3.0
NO_ANSWER = "no answer"  # how a problem begins where somebody listens and stands still


class Asked(Struct, frozen=True):
    """One socket. `problem` is "" where the plugin answered; `devices` is None where its list was not asked for."""

    socket: str  # its file name
    problem: str = ""
    devices: tuple[Offered, ...] | None = None


class Served(Struct, frozen=True):
    """A socket, and the resource that it serves; "" where that cannot be told."""

    asked: Asked
    resource: str = ""


def sockets_in(folder: Path) -> list[Path]:
    """Plugins' sockets; not the kubelet's own. Raises OSError."""
    return sorted(path for path in folder.iterdir() if path.suffix == ".sock" and path.name != "kubelet.sock")


def ask(path: Path, timeout_s: float = TIMEOUT_S, with_list: bool = False) -> Asked:
    try:
        call(path, OPTIONS, timeout_s)
        devices = offered_in(first_of_stream(path, LIST_AND_WATCH, timeout_s)) if with_list else None
    except (NoAnswer, Undecodable) as problem:
        return Asked(path.name, str(problem))
    return Asked(path.name, devices=devices)


def look(places: Places, timeout_s: float = TIMEOUT_S, with_list: bool = False) -> tuple[list[Asked], str]:
    """Every socket of the kubelet's folder; then why the folder could not be read, "" where it could."""
    try:
        return [ask(path, timeout_s, with_list) for path in sockets_in(places.device_plugins)], ""
    except OSError as error:
        return [], f"{places.as_the_machine_names_it(places.device_plugins)}: {because(error)}"


# ---- which resource a socket serves: the protocol does not say


def served(asked: Iterable[Asked], resources: Mapping[str, Collection[str]]) -> list[Served]:
    """`resources` are those that the kubelet knows, with the devices that it knows of each."""
    return [Served(one, _resource(one, resources)) for one in asked]


def _resource(one: Asked, resources: Mapping[str, Collection[str]]) -> str:
    """By its devices where it listed some, else by the socket's name, else by the form of NVIDIA's names."""
    if one.devices:
        ids = {device.id for device in one.devices}
        best = max(resources, key=lambda resource: len(ids & set(resources[resource])), default="")
        if best and ids & set(resources[best]):
            return best
    stem = one.socket.removesuffix(".sock")
    for resource in resources:
        if stem in _stems(resource):
            return resource
    if stem.startswith("nvidia-"):
        return f"nvidia.com/{stem.removeprefix('nvidia-')}"
    vendor, _, name = stem.partition("-")
    return f"{vendor}/{name}" if "." in vendor and name else ""


def _stems(resource: str) -> set[str]:
    vendor, _, name = resource.partition("/")
    maker = vendor.partition(".")[0]
    return {f"{maker}-{name}", f"{maker}_{name}", f"{vendor}-{name}", f"{vendor}_{name}", name}


def facts_of(found: Sequence[Served], node: str = "") -> Iterator[PluginAnswer]:
    """What is known of each resource's plugin. One that answers and whose list was not asked for says nothing: an empty
    list would be taken for no devices. A socket that was left behind says nothing where another one answers."""
    alive = {one.resource for one in found if not one.asked.problem}
    for one in found:
        asked = one.asked
        is_left_behind = bool(asked.problem) and one.resource in alive
        has_not_listed = not asked.problem and asked.devices is None
        if not one.resource or is_left_behind or has_not_listed:
            continue
        words = asked.problem or " ".join(
            f"{device.id} {'healthy' if device.is_healthy else 'unhealthy'}" for device in asked.devices or ()
        )
        yield PluginAnswer(
            origin=Origin(f"device plugin {asked.socket}", "probe", words[:LONGEST_TEXT], node=node),
            resource=one.resource,
            socket=asked.socket,
            answered=not asked.problem,
            problem=asked.problem,
            devices=asked.devices or (),
        )
