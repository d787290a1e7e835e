"""How a pod gets what it asks for of a device: whole, as a partition, or as a replica that others have, too."""

from __future__ import annotations

from typing import Literal, get_args

from berth.model.cluster import Node
from berth.model.gpus import replicas_of
from berth.model.resources import MIG_PREFIX
from berth.model.workload import WHOLE

Sharing = Literal["exclusive", "mig", "time-slice", "mps"]
KINDS: tuple[Sharing, ...] = get_args(Sharing)
WORDS: dict[Sharing, str] = {
    "exclusive": "whole GPUs", "mig": "partitions", "time-slice": "time-slices", "mps": "MPS replicas",
}  # fmt: skip

SHARING_KEY = "berth.dev/sharing"  # with which pods say it themselves
ANY_WAY = "any"
_MPS = "mps"


def sharing_of(resource: str, milli: int, node: Node, is_cut: bool = False) -> tuple[Sharing, ...]:
    """How a node gives a unit of a resource; a partition may be shared itself. `milli` below a whole device is a
    fraction, which others share in time; `is_cut`: all that the node gives as GPUs are partitions."""
    found: list[Sharing] = ["mig"] if is_cut or resource.startswith(MIG_PREFIX) else []
    count, strategy = replicas_of(node.labels, resource)
    is_replica = count > 1 or (not found and any(device.replicas > 1 for device in node.devices))
    if is_replica or milli < WHOLE:
        found.append("mps" if strategy == _MPS and is_replica else "time-slice")
    return tuple(found) or ("exclusive",)
