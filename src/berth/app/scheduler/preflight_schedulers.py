"""Who else schedules here, by Leases: other schedulers, and other Berths."""

from __future__ import annotations

from collections.abc import Iterator

from berth.app.scheduler.preflight import Found
from berth.app.scheduler.preflight_check import FINDING, NOTE, OK, Check, unseen
from berth.app.scheduler.rights import FOREIGN
from berth.base.units import duration
from berth.kube.lease import Lease, address_of, serves
from berth.sources.inventory import seconds
from berth.sources.leading import Leading

AREA = "other schedulers"
SKEW_S = 5.0  # between our clock and that of whoever renewed a Lease


def leases(found: Found) -> Iterator[Check]:
    """Whose Leases are held, and what that means for a Berth with this configuration."""
    if found.leases is None:
        yield unseen(AREA, found.refused.get("leases", ""))
        return
    yield from _foreign(found, found.leases)
    yield from _berths(found, found.leases)


def _foreign(found: Found, seen: list[Lease]) -> Iterator[Check]:
    by_name: dict[str, list[Lease]] = {}
    for lease in seen:
        by_name.setdefault(address_of(lease)[1], []).append(lease)
    alive: list[str] = []
    for scheduler, names in FOREIGN.items():
        serves = scheduler in found.configuration.scheduler_names
        held = [lease for name in names for lease in by_name.get(name, ()) if _is_alive(lease, found.now_s)]
        for lease in held:
            alive.append(scheduler)
            said = f"{scheduler} is alive: {_of_lease(lease, found.now_s)}"
            if serves:
                yield Check(
                    AREA, FINDING, f"{said}; its pods are not Berth's while it is",
                    f"Stop it, or take {scheduler} out of schedulerNames.",
                )  # fmt: skip
            else:
                yield Check(AREA, NOTE, f"{said}; it places its own pods on the same nodes")
        if serves and not held:
            no_lease = "it keeps no Lease, so that nobody can tell whether it runs" if not names else "no Lease is held"
            yield Check(AREA, OK if names else NOTE, f"{scheduler} is served by Berth: {no_lease}")
    if not alive:
        yield Check(AREA, OK, "no Lease of another scheduler is held")


def _berths(found: Found, seen: list[Lease]) -> Iterator[Check]:
    """Who leads, whether two serve the same name, and whether another than the one looked at does."""
    election, names = found.configuration.leader_election, frozenset(found.configuration.scheduler_names)
    ours = [lease for lease in seen if serves(lease) & names or (not serves(lease) and _is_plain(found, lease))]
    held = [lease for lease in ours if _is_alive(lease, found.now_s)]
    own = (election.namespace or found.account[0], election.name) if found.account is not None else None
    for at, lease in enumerate(held):
        rivals = [other for other in held[:at] if serves(other) & serves(lease)]
        shared = ", ".join(sorted(serves(lease) & serves(rivals[0]))) if rivals else ""
        if rivals:
            yield Check(
                AREA, FINDING,
                f"two Berths serve {shared}: {_of_lease(rivals[0], found.now_s)}; {_of_lease(lease, found.now_s)}",
                "Stop one of them, or give each names of its own: schedulerNames.",
            )  # fmt: skip
        elif own is not None and address_of(lease) != own:
            said = f"another Berth serves {', '.join(sorted(serves(lease) & names))}"
            yield Check(
                AREA, FINDING,
                f"{said}: {_of_lease(lease, found.now_s)}; one with Lease {'/'.join(own)} does not begin",
                "Stop it, give this one names of its own (schedulerNames), or look at the account of that one.",
            )  # fmt: skip
        else:
            yield Check(AREA, NOTE, f"Berth itself leads here: {_of_lease(lease, found.now_s)}")
    if held or found.is_shadow or not election.enabled:
        return
    lack = Leading(tuple(lease for lease in ours if serves(lease)), now_s=found.now_s).lack(names)
    if any(lease.spec is not None and lease.spec.holder_identity for lease in ours):
        remedy = "See why no replica renews it: its pods, their log. Where Berth was taken away, delete the Lease."
        yield Check(AREA, FINDING, lack or "no Berth leads here: its Lease is stale", remedy)
    elif lack:
        yield Check(AREA, NOTE, lack)


def _is_plain(found: Found, lease: Lease) -> bool:
    """Named as our Lease is, and without a word about whom it serves, as earlier versions made it."""
    return address_of(lease)[1] == found.configuration.leader_election.name


def _is_alive(lease: Lease, now_s: float) -> bool:
    spec = lease.spec
    if spec is None or not spec.holder_identity:
        return False
    return now_s - seconds(spec.renew_time) < (spec.lease_duration_seconds or 15) + SKEW_S


def _of_lease(lease: Lease, now_s: float) -> str:
    meta, spec = lease.metadata, lease.spec
    assert meta is not None and spec is not None
    renewed = duration(max(0.0, now_s - seconds(spec.renew_time)))
    return f"Lease {meta.namespace}/{meta.name}, held by {spec.holder_identity}, renewed {renewed} ago"
