"""Who leads: one of several replicas, by a Lease, and never two at once.

Two clocks do not agree, so no time of another machine is compared with ours: a Lease is judged by how long, on
our own monotonic clock, it has been seen unchanged. A leader stops writing well before its Lease can be taken
over: after `renew_s` without a successful renewal it no longer leads, while others wait for the whole
`lease_s`. A new leader raises the epoch (`leaseTransitions`), waits until what the last one had sent must have
arrived, lists anew, and only then writes.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Struct

from berth.kube.client import Client
from berth.kube.errors import ApiError
from berth.kube.lease import Lease, LeaseSpec, create_lease, marked, read_lease, write_lease

log = logging.getLogger("berth.leader")

AGAIN_S = 60.0  # after which a trouble that stays is told again


class Terms(Struct, frozen=True):
    """Of the election. `lease_s` > `renew_s` > `retry_s`. `serves` are the names that the Lease says are served."""

    namespace: str
    name: str
    identity: str
    lease_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0
    serves: tuple[str, ...] = ()


class Leadership:
    """One candidate. `is_leader` may be asked at any time and is always current."""

    def __init__(self, client: Client, terms: Terms, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._terms = terms
        self._clock = clock
        self._good_until = float("-inf")
        self._seen: Lease | None = None
        self._seen_at = float("-inf")
        self.epoch = 0
        self.won_s = float("-inf")  # on our clock, when this epoch began
        self.has_predecessor = False  # whose Lease ran out: it may have written until shortly before
        self.tried = asyncio.Event()  # the Lease has been asked for once, with whatever success
        self._over = False
        self._turning = asyncio.Lock()
        self.holder = ""
        self.inherited: dict[str, str] = {}  # annotations that the Lease had when this epoch began
        self.leaves: dict[str, str] = {}  # annotations that it gets with the next renewal, for who leads after us
        self.won = asyncio.Event()  # it may write after a time, however short, in which it might not
        self._is_told = False
        self._stood_by_for = ""
        self._trouble = ""
        self._trouble_told_s = float("-inf")

    def is_leader(self) -> bool:
        """May write now."""
        return self._clock() < self._good_until

    async def run(self) -> None:
        """Stand for election, and renew, until cancelled or released."""
        while not self._over:
            try:
                async with self._turning, asyncio.timeout(self._terms.renew_s):
                    await self._turn()
                self._trouble = ""
            except ApiError as error:
                self._tell_trouble(error)
            except TimeoutError:
                self._tell_trouble(ApiError(0, "Late", f"no answer within {self._terms.renew_s:g} s"))
            self.tried.set()
            self._tell_standing()
            await asyncio.sleep(self._terms.retry_s * random.uniform(0.9, 1.2))

    def _tell_standing(self) -> None:
        """Once for each leader that there is."""
        if self._is_told != self.is_leader():
            self._is_told = self.is_leader()
            log.info("leads" if self._is_told else "leads no longer", extra={"epoch": self.epoch})
        stands_by_for = "" if self.is_leader() or self.holder == self._terms.identity else self.holder
        if stands_by_for and stands_by_for != self._stood_by_for:
            log.info("stands by", extra={"leads": stands_by_for, "lease": self._lease})
        self._stood_by_for = stands_by_for

    def _tell_trouble(self, error: ApiError) -> None:
        """Once, and again each minute for as long as it stays."""
        said, extra = self._why_not(error)
        if said == self._trouble and self._clock() - self._trouble_told_s < AGAIN_S:
            return
        self._trouble, self._trouble_told_s = said, self._clock()
        log.warning(said, extra=extra)

    def _why_not(self, error: ApiError) -> tuple[str, dict[str, str]]:
        """What is wrong, and for the log what the API server said where that adds anything."""
        terms = self._terms
        if error.is_no_right:
            needs = f"get, create and update on leases.coordination.k8s.io in namespace {terms.namespace}"
            return f"this replica cannot lead: it needs {needs}, for Lease {terms.name}", {}
        if error.is_not_found and "namespaces" in error.message:  # a Lease that is not there is made
            return (
                f"this replica cannot lead: the namespace {terms.namespace} does not exist. Make it, or set "
                "leaderElection.namespace", {},
            )  # fmt: skip
        said = str(error) if error.status else error.message
        return "the Lease could not be read or renewed", {"lease": self._lease, "error": said}

    @property
    def _lease(self) -> str:
        return f"{self._terms.namespace}/{self._terms.name}"

    async def release(self) -> None:
        """Give the Lease back, so that another need not wait for its end."""
        held, self._good_until, self._over = self.is_leader(), float("-inf"), True
        async with self._turning:  # a renewal that is under way would make our write one of the past
            self._good_until = float("-inf")
        if held and self._seen is not None and self._seen.spec is not None:
            spec = self._seen.spec
            ended = LeaseSpec(
                holder_identity="", lease_duration_seconds=1, acquire_time=spec.acquire_time,
                renew_time=_stamp(), lease_transitions=spec.lease_transitions,
            )  # fmt: skip
            try:
                await write_lease(self._client, Lease(self._seen.metadata, ended))
            except ApiError as error:
                log.warning("the Lease could not be given back", extra={"error": str(error)})

    async def _turn(self) -> None:
        terms, asked_at = self._terms, self._clock()
        try:
            lease = await read_lease(self._client, terms.namespace, terms.name)
        except ApiError as error:
            if not error.is_not_found:
                raise
            made = await create_lease(self._client, terms.namespace, terms.name, self._mine(1), terms.serves)
            self._won(made, asked_at)
            return
        if self._seen is None or _version(lease) != _version(self._seen):
            self._seen, self._seen_at = lease, asked_at
        spec = lease.spec or LeaseSpec()
        self.holder = spec.holder_identity or ""
        epoch = spec.lease_transitions or 0
        if self.is_leader() and (self.holder, epoch) != (terms.identity, self.epoch):
            self._good_until = float("-inf")  # it was taken from us, by whatever means
        if self.holder == terms.identity and self.epoch == epoch and self.epoch:
            meta = marked(lease.metadata, terms.serves, self.leaves)
            self._won(await write_lease(self._client, Lease(meta, self._mine(epoch, spec))), asked_at)
        elif not self.holder or self._clock() - self._seen_at > (spec.lease_duration_seconds or terms.lease_s):
            self.has_predecessor = bool(self.holder)  # one that gave its Lease back had sent everything
            self.inherited = dict((lease.metadata.annotations if lease.metadata else None) or {})
            meta = marked(lease.metadata, terms.serves)
            self._won(await write_lease(self._client, Lease(meta, self._mine(epoch + 1))), asked_at)

    def _mine(self, epoch: int, before: LeaseSpec | None = None) -> LeaseSpec:
        return LeaseSpec(
            holder_identity=self._terms.identity,
            lease_duration_seconds=round(self._terms.lease_s),
            acquire_time=(before.acquire_time if before else None) or _stamp(),
            renew_time=_stamp(),
            lease_transitions=epoch,
        )

    def _won(self, lease: Lease, asked_at: float) -> None:
        """The Lease is ours from the moment at which it was asked for, not from that of the answer."""
        self._seen, self._seen_at = lease, asked_at
        self.holder = self._terms.identity
        led, before = self.is_leader(), self.epoch
        self.epoch = (lease.spec.lease_transitions if lease.spec else 0) or 0
        self._good_until = asked_at + self._terms.renew_s
        if led or not self.is_leader():  # an answer that took too long wins nothing
            return
        self.won_s = self._clock()
        self.won.set()
        if self._is_told:
            log.info("leads again", extra={"epoch": self.epoch, "same": self.epoch == before})


def _version(lease: Lease) -> str:
    return (lease.metadata.resource_version if lease.metadata else "") or ""


def _stamp() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
