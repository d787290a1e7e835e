"""What a pod's claims mean for where it may run: nodes that they allow, what they take there, what is waited for.

Source: the plugins VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits of kube-scheduler.
"""

from __future__ import annotations

from msgspec import Struct

from berth.model.resources import Resources, resources
from berth.model.volumes import ATTACHED, Claim, Shape
from berth.model.workload import NO_VOLUME, NodeTerm, Requirement, Unbound
from berth.sources.selectors import both
from berth.sources.volumes.attached import slots, used_by
from berth.sources.volumes.mounts import PodKey
from berth.sources.volumes.offers import Offers, Ready, RoomOfClaim, RoomOfDriver, Slots
from berth.sources.volumes.reading import StorageClass
from berth.sources.volumes.storage import Storage


class Wishes(Struct, frozen=True, gc=False):
    """`terms` are the nodes that all claims allow, any of them (() for all); `requests` amounts of a node."""

    terms: tuple[NodeTerm, ...] = ()
    requests: Resources = ()
    waits: tuple[Unbound, ...] = ()


def wishes_of(
    pod: PodKey, uid: str, claims: tuple[str, ...], made_for_it: tuple[str, ...], storage: Storage, offers: Offers
) -> Wishes:
    """What the claims of a waiting pod mean. `made_for_it` are those of its claims that come and go with it."""
    terms: tuple[NodeTerm, ...] = ()
    amounts: dict[str, int] = {}
    waits: list[Unbound] = []
    for name in dict.fromkeys(claims):
        claim = storage.claims.get((pod[0], name))
        if claim is None:
            waits.append(_absent(name, name in made_for_it))
        elif wait := _kept_from(claim, pod, uid if name in made_for_it else "", storage):
            waits.append(wait)
        else:
            allowed, asked = _allowed(claim, storage, offers)
            terms = both(terms, allowed)
            for resource, amount in asked:
                amounts[resource] = amounts.get(resource, 0) + amount
    for resource, amount in slots(used_by(pod[0], claims, storage)):
        offers.know(Slots(resource.removeprefix(ATTACHED)))
        amounts[resource] = amounts.get(resource, 0) + amount
    return Wishes(terms, resources(amounts), tuple(waits))


def wishes_of_shape(shape: Shape, storage: Storage, offers: Offers) -> Wishes | None:
    """The same for a claim that is still to be made; None where only its volume will tell."""
    storage_class = storage.classes.get(shape.storage_class or storage.default_class)
    if storage_class is None or not storage_class.waits:
        return None
    terms, asked = _first_consumer(shape, storage_class, storage, offers)
    amounts = dict(asked)
    if storage_class.driver in storage.limited:
        amounts[offers.know(Slots(storage_class.driver))] = 1
    return Wishes(terms, resources(amounts))


def waits_for_consumer(claim: Claim, storage: Storage) -> bool:
    """The claim gets its volume once the pod has a node, and has neither yet."""
    storage_class = storage.classes.get(claim.shape.storage_class)
    return not claim.volume and storage_class is not None and storage_class.waits


def _absent(name: str, is_made: bool) -> Unbound:
    if is_made:
        return Unbound(name, "has not been made yet; the controller-manager makes it for the pod", f"{name} made")
    return Unbound(name, "does not exist", f"{name} created")


def _kept_from(claim: Claim, pod: PodKey, uid: str, storage: Storage) -> Unbound | None:
    """Why the pod has to wait before anybody can say where it may run. `uid` is whose the claim has to be."""
    name = claim.name
    if uid and claim.made_for != uid:
        return Unbound(name, "was not made for this pod, whose volume has that name", f"claim {name} removed")
    if claim.is_lost:
        return Unbound(name, f"has lost its volume {claim.volume}", f"{claim.volume} back, or another claim")
    if claim.is_ending:
        return Unbound(name, "is being deleted", f"claim {name} made anew")
    if claim.is_single and (other := storage.mounts.first(claim.key)) not in (None, pod):
        assert other is not None
        return Unbound(name, f"can be used by one pod alone, and is by {other[1]}", f"{other[1]} ended")
    if claim.is_bound:
        if claim.volume not in storage.volumes and storage.knows_volumes:
            return Unbound(name, f"is bound to volume {claim.volume}, which does not exist", f"{claim.volume} back")
        return None
    if claim.volume:
        return Unbound(name, f"is to have volume {claim.volume}, which is not bound to it yet", f"{name} bound")
    wanted = claim.shape.storage_class
    storage_class = storage.classes.get(wanted)
    if storage_class is None and wanted and storage.knows_classes:
        return Unbound(name, f"{NO_VOLUME}; its storage class {wanted} does not exist", f"storage class {wanted} made")
    if storage_class is None or not storage_class.waits:
        return Unbound(name, NO_VOLUME, f"{name} bound")
    return None


def _allowed(claim: Claim, storage: Storage, offers: Offers) -> tuple[tuple[NodeTerm, ...], Resources]:
    if claim.is_bound:
        volume = storage.volumes.get(claim.volume)
        return (volume.reach, ()) if volume is not None else ((), ())
    if (chosen := storage.volume_for(claim)) is not None:
        return chosen.reach, ()
    if (selected := storage.node_for(claim)) in offers.shelves.places.index:
        return (NodeTerm(fields=(Requirement("metadata.name", "In", (selected,)),)),), ()
    terms, asked = _first_consumer(claim.shape, storage.classes[claim.shape.storage_class], storage, offers)
    if any(refused == claim.key for refused, _ in storage.refused):
        asked = (*asked, (offers.know(RoomOfClaim(claim.key)), 1))
    return terms, asked


def _first_consumer(
    shape: Shape, storage_class: StorageClass, storage: Storage, offers: Offers
) -> tuple[tuple[NodeTerm, ...], Resources]:
    """What a claim without a volume asks of the node that is chosen for it."""
    if not storage_class.makes_volumes:
        # Of all volumes of the class, and of those that would do: smaller claims take from the larger ones' share.
        every, own = Ready(storage_class.name), Ready(storage_class.name, shape)
        return (), tuple((offers.know(one), 1) for one in {every.name: every, own.name: own}.values())
    if storage.tracks_capacity(storage_class.driver):
        return storage_class.topologies, ((offers.know(RoomOfDriver(storage_class.name, shape.bytes)), 1),)
    return storage_class.topologies, ()
