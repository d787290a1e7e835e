"""The kubelet's own account of devices: what it takes for allocatable, what it has given, and its checkpoint.

Source: PodResources v1 (List, GetAllocatableResources) on ROOT/pod-resources/kubelet.sock.
"""

from __future__ import annotations

from collections.abc import Iterator

from berth.evidence.fact import LONGEST_TEXT, Origin
from berth.evidence.formats.boundary_facts import Given, KubeletOffers
from berth.evidence.piece import Piece
from berth.node.kubelet_messages import ALLOCATABLE, LIST, allocatable_in, given_in
from berth.node.places import Places
from berth.node.protobuf import Undecodable
from berth.node.seen import NotSeen, Sight, because
from berth.node.sockets import NoAnswer, call

_CALLS = "PodResources"
TIMEOUT_S = 3.0


def look(places: Places, node: str = "", timeout_s: float = TIMEOUT_S) -> Iterator[Sight]:
    """KubeletOffers and Given for each resource; the checkpoint as the text that it is."""
    yield from _offers(places, node, timeout_s)
    yield from _given(places, node, timeout_s)
    yield from _checkpoint(places, node)


def _offers(places: Places, node: str, timeout_s: float) -> Iterator[Sight]:
    try:
        offers = allocatable_in(call(places.pod_resources, ALLOCATABLE, timeout_s))
    except (NoAnswer, Undecodable) as error:
        yield NotSeen("what the kubelet takes for allocatable", f"{_CALLS}: {error}")
        return
    for resource, ids in offers.items():
        yield KubeletOffers(
            origin=_origin(node, "GetAllocatableResources", f"{resource}: {len(ids)}: {' '.join(ids)}"),
            resource=resource,
            ids=ids,
        )


def _given(places: Places, node: str, timeout_s: float) -> Iterator[Sight]:
    try:
        given = given_in(call(places.pod_resources, LIST, timeout_s))
    except (NoAnswer, Undecodable) as error:
        yield NotSeen("what the kubelet has given to pods", f"{_CALLS}: {error}")
        return
    for one in given:
        words = f"{one.pod} {one.container}: {one.resource} {' '.join(one.ids)}"
        yield Given(
            origin=_origin(node, "List", words),
            resource=one.resource,
            of_pod=one.pod,
            container=one.container,
            ids=one.ids,
        )


def _checkpoint(places: Places, node: str) -> Iterator[Sight]:
    path = places.checkpoint
    name = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
    try:
        yield Piece(path.read_bytes(), name, "kubelet-checkpoint", node)
    except OSError as error:
        yield NotSeen("the kubelet's checkpoint of devices", f"{name}: {because(error)}")


def _origin(node: str, call: str, words: str) -> Origin:
    return Origin(f"kubelet, {_CALLS} {call}", "pod-resources", words[:LONGEST_TEXT], node=node)
