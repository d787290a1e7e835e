"""The name of another scheduler is served while nobody renews its Lease, and not a moment longer than a look."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest

from berth.app.scheduler.foreign import LEASES, Foreign
from berth.kube.client import Client
from berth.kube.errors import ApiError, Unreachable

TABLE = {"volcano": ("volcano", "vc-scheduler"), "kai-scheduler": ("kai",), "yunikorn": ()}


class Played:
    """The Leases of a cluster by name; `refusal` is raised instead."""

    def __init__(self) -> None:
        self.leases: dict[str, list[dict[str, Any]]] = {}
        self.refusal: ApiError | None = None
        self.version = 0

    def renew(self, name: str, holder: str = "somebody", lasts_s: int = 15, namespace: str = "x") -> None:
        self.version += 1
        meta = {"name": name, "namespace": namespace, "resourceVersion": str(self.version)}
        self.leases[name] = [{"metadata": meta, "spec": {"holderIdentity": holder, "leaseDurationSeconds": lasts_s}}]

    async def get(self, path: str, type: Any, *, params: Mapping[str, str]) -> Any:
        if self.refusal is not None:
            raise self.refusal
        assert path == LEASES
        name = params["fieldSelector"].removeprefix("metadata.name=")
        return msgspec.convert({"items": self.leases.get(name, [])}, type)


class Watched:
    def __init__(self, *names: str) -> None:
        self.api = Played()
        self.now_s = 0.0
        self.told: list[set[str]] = []
        self.foreign = Foreign(
            cast(Client, self.api), names, lambda served: self.told.append(set(served)), table=TABLE,
            clock=lambda: self.now_s,
        )  # fmt: skip

    def look(self, after_s: float = 0.0) -> set[str]:
        self.now_s += after_s
        asyncio.run(self.foreign.look())
        return set(self.foreign.served)


def test_names_of_nobody_else_are_served_without_a_look() -> None:
    w = Watched("berth", "yunikorn", "of-our-own")
    assert not w.foreign.is_needed
    assert w.foreign.served == {"berth", "yunikorn", "of-our-own"}
    asyncio.run(asyncio.wait_for(w.foreign.run(), 1.0))


def test_a_foreign_name_is_not_served_before_the_first_look() -> None:
    w = Watched("berth", "volcano")
    assert w.foreign.is_needed
    assert w.foreign.served == {"berth"}
    assert w.look() == {"berth", "volcano"}  # no Lease at all
    assert w.told == [{"berth", "volcano"}]


def test_a_name_that_is_not_served_at_first_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    w = Watched("berth", "volcano", "kai-scheduler")
    w.api.renew("volcano")
    with caplog.at_level("INFO", "berth.scheduler"):
        w.look()
        w.look(after_s=3.0)
    assert [(r.message, r.scheduler) for r in caplog.records] == [
        ("a scheduler's name is not served until its Lease is seen to be free", "volcano"),
        ("serves a scheduler's name", "kai-scheduler"),
    ]  # fmt: skip


def test_a_lease_that_is_renewed_keeps_the_name_from_us() -> None:
    w = Watched("berth", "volcano")
    for _ in range(5):
        w.api.renew("vc-scheduler")  # under its older name
        assert w.look(after_s=10.0) == {"berth"}
    assert w.told == []


def test_a_lease_that_nobody_renews_is_stale_on_our_own_clock() -> None:
    w = Watched("berth", "volcano")
    w.api.renew("volcano", lasts_s=15)
    assert w.look() == {"berth"}
    assert w.look(after_s=15.0) == {"berth"}
    assert w.look(after_s=0.1) == {"berth", "volcano"}
    # The scheduler comes back: at the next look the name is its own again.
    w.api.renew("volcano")
    assert w.look(after_s=3.0) == {"berth"}
    assert w.told == [{"berth", "volcano"}, {"berth"}]


def test_a_lease_that_was_given_back_frees_the_name_at_once() -> None:
    w = Watched("volcano")
    w.api.renew("volcano")
    assert w.look() == set()
    w.api.renew("volcano", holder="")
    assert w.look(after_s=3.0) == {"volcano"}


def test_one_scheduler_that_is_alive_does_not_keep_the_others_names() -> None:
    w = Watched("volcano", "kai-scheduler")
    w.api.renew("kai")
    assert w.look() == {"volcano"}


def test_what_may_not_be_seen_counts_as_alive() -> None:
    w = Watched("berth", "volcano")
    w.api.refusal = ApiError(403, "Forbidden", "no", verb="GET", path=LEASES)
    assert w.look() == {"berth"}
    w.api.refusal = None
    assert w.look() == {"berth", "volcano"}
    w.api.refusal = ApiError(403, "Forbidden", "no", verb="GET", path=LEASES)
    assert w.look() == {"berth"}  # the right was taken away: nobody can tell any more


def test_a_server_that_does_not_answer_changes_nothing() -> None:
    w = Watched("berth", "volcano")
    w.api.refusal = Unreachable("no answer", verb="GET", path=LEASES)
    assert w.look() == {"berth"}
    w.api.refusal = None
    assert w.look() == {"berth", "volcano"}
    w.api.refusal = Unreachable("no answer", verb="GET", path=LEASES)
    assert w.look(after_s=60.0) == {"berth", "volcano"}
