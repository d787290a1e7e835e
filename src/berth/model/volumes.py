"""Storage as it decides where pods run: claims and volumes, and what a node can still be given of them.

What a node can be given is an amount of a resource, so that it is counted, and explained, like every other:

- `attachable-volumes-csi-DRIVER`: volumes that the driver can attach there; a pod that ends gives its own back;
- `volumes of class …`: volumes that exist and are free there. They do not come back when a pod ends;
- `room for …`: whether a volume can be made there, no amount.
"""

from __future__ import annotations

from msgspec import Struct

from berth.model.workload import LabelSelector, NodeTerm

ATTACHED = "attachable-volumes-csi-"
VOLUMES = "volumes of class "
ROOM = "room for "
NO_LIMIT = 2**31  # more than any node is asked for

ClaimKey = tuple[str, str]  # (namespace, name)


def is_offered(resource: str) -> bool:
    """It is there or not whatever pods end: an empty node would not have more of it."""
    return resource.startswith((VOLUMES, ROOM))


class Shape(Struct, frozen=True, gc=False):
    """What a claim asks of a volume. `attributes_class` is that of a VolumeAttributesClass."""

    storage_class: str = ""
    bytes: int = 0
    modes: tuple[str, ...] = ()  # all of them
    is_block: bool = False
    selector: LabelSelector | None = None
    attributes_class: str = ""

    @property
    def words(self) -> str:
        """What tells it from the other shapes of its class: `of 100 GiB`."""
        parts = [f"of {_size(self.bytes)}"] if self.bytes else []
        if self.modes and self.modes != ("ReadWriteOnce",):
            parts.append("/".join(self.modes))
        if self.is_block:
            parts.append("as a block device")
        if self.attributes_class:
            parts.append(f"with attributes {self.attributes_class}")
        if self.selector is not None:
            pairs = [f"{k}={v}" for k, v in self.selector.labels]
            pairs += [f"{e.key} {e.operator} {'/'.join(e.values)}".rstrip() for e in self.selector.expressions]
            parts.append(f"labelled {', '.join(pairs)}")
        return " ".join(parts)


class Claim(Struct, frozen=True, gc=False):
    """A PersistentVolumeClaim. `volume` is the one that it names; it has it once it `is_bound`."""

    namespace: str
    name: str
    uid: str = ""
    shape: Shape = Shape()
    volume: str = ""
    is_bound: bool = False
    selected_node: str = ""  # for which its volume is being made
    made_for: str = ""  # uid of the pod that it goes with
    is_single: bool = False  # one pod alone may use it
    is_lost: bool = False
    is_ending: bool = False

    @property
    def key(self) -> ClaimKey:
        return self.namespace, self.name


class Volume(Struct, frozen=True, gc=False):
    """A PersistentVolume. `reach` are the nodes that it can be used on, any of the terms; () for all nodes.

    `claim` is whose it is or is to be, with that claim's uid where it is known. `version` is its resourceVersion.
    """

    name: str
    uid: str = ""
    version: str = ""
    shape: Shape = Shape()  # what it offers; of it no selector
    labels: tuple[tuple[str, str], ...] = ()
    reach: tuple[NodeTerm, ...] = ()
    claim: ClaimKey | None = None
    claim_uid: str = ""
    is_available: bool = False
    is_ending: bool = False
    driver: str = ""  # of CSI; "" where no driver attaches it
    handle: str = ""

    def is_for(self, claim: Claim) -> bool:
        """It names this claim as its own."""
        return self.claim == claim.key and (not self.claim_uid or self.claim_uid == claim.uid)


class Step(Struct, frozen=True, gc=False):
    """What makes a claim get its volume: the node that one is to be made for, or the volume that it is to have.

    `pod` is who waits for it. `is_written`: the cluster says so already.
    """

    claim: ClaimKey
    claim_uid: str
    node: str
    volume: str = ""
    volume_uid: str = ""
    volume_version: str = ""
    is_written: bool = False
    pod: tuple[str, str] = ("", "")


class Unmade(Struct, frozen=True, gc=False):
    """A claim that did not get its volume for the node that was chosen, and why. `pod` is who waits for it.

    `of_node`: for another node it may.
    """

    claim: ClaimKey
    node: str
    why: str
    pod: tuple[str, str] = ("", "")
    of_node: bool = True


def _size(size: int) -> str:
    """Bytes in the largest unit that tells them exactly."""
    for unit, word in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size % unit == 0:
            return f"{size // unit:,} {word}"
    return f"{size:,} bytes"
