"""A Berth does not begin while another one serves the same name; a Lease that nobody renews stops nobody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest

from berth.app.scheduler.others import AGAIN_S, Others
from berth.base.errors import BadInput
from berth.kube.client import Client
from berth.kube.errors import ApiError
from berth.kube.lease import LEASES, SERVES, LeaseMeta, marked

NOON_S = 1_796_040_000.0  # 2026-11-30T12:00:00Z
FRESH, OLD = "2026-11-30T11:59:58.000000Z", "2026-11-30T09:00:00.000000Z"


class Cluster:
    """The Leases of a cluster, by address; `renewing` change at each look. Time passes by sleeping."""

    def __init__(self) -> None:
        self.leases: dict[str, dict[str, Any]] = {}
        self.renewing: set[str] = set()
        self.refusal: ApiError | None = None
        self.now_s = 0.0
        self.looks = 0

    def put(self, address: str, serves: str = "berth", holder: str = "b-0", renewed: str = FRESH) -> None:
        namespace, _, name = address.partition("/")
        meta = {"namespace": namespace, "name": name, "annotations": {SERVES: serves}, "resourceVersion": "1"}
        spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
        self.leases[address] = {"metadata": meta, "spec": spec}

    async def get(self, path: str, type: Any, *, params: Mapping[str, str]) -> Any:
        assert path == LEASES and params["labelSelector"] == "app.kubernetes.io/name=berth"
        if self.refusal is not None:
            raise self.refusal
        self.looks += 1
        for address in self.renewing:
            self.leases[address]["metadata"]["resourceVersion"] = str(self.looks)
        return msgspec.convert({"items": list(self.leases.values())}, type)

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        await asyncio.sleep(0)

    def others(self, *names: str, own: tuple[str, str] | None = ("here", "berth")) -> Others:
        return Others(
            cast(Client, self), names or ("berth",), own, clock=lambda: self.now_s, now=lambda: NOON_S,
            sleep=self.sleep,
        )  # fmt: skip


def test_one_that_renews_its_lease_keeps_another_from_beginning():
    cluster = Cluster()
    cluster.put("there/berth", "berth,volcano")
    cluster.renewing = {"there/berth"}
    with pytest.raises(BadInput) as caught:
        asyncio.run(cluster.others("volcano", "mine").look_before())
    assert caught.value.sentence == (
        "schedulerNames: volcano: is served by another Berth: Lease there/berth, held by b-0. "
        "Stop it, or give this one a name of its own with --scheduler-name."
    )


def test_one_that_does_not_renew_is_looked_at_for_a_part_of_the_time_that_its_lease_lasts():
    cluster = Cluster()
    cluster.put("there/berth")
    asyncio.run(cluster.others().look_before())
    assert 5.0 < cluster.now_s < 8.0


@pytest.mark.parametrize("change", [
    {"serves": "other"}, {"serves": ""}, {"holder": ""}, {"renewed": OLD}, {"address": "here/berth"},
])  # fmt: skip
def test_who_is_nobodys_rival(change):
    cluster = Cluster()
    cluster.put(**{"address": "there/berth", **change})
    cluster.renewing = set(cluster.leases)
    asyncio.run(cluster.others().look_before())
    assert cluster.now_s == 0.0


def test_where_leases_cannot_be_seen_it_begins_and_says_so(caplog):
    cluster = Cluster()
    cluster.refusal = ApiError(403, "Forbidden", "leases is forbidden")
    with caplog.at_level(logging.INFO, "berth.scheduler"):
        asyncio.run(cluster.others().look_before())
    assert [r.message for r in caplog.records] == ["whether another Berth serves the same names cannot be seen"]


def test_one_that_comes_later_is_told_once(caplog):
    cluster = Cluster()

    async def story() -> None:
        others = cluster.others()
        await others.look_before()
        running = asyncio.create_task(others.run())
        cluster.put("there/berth")
        cluster.renewing = {"there/berth"}
        while cluster.now_s < 8 * AGAIN_S:
            await asyncio.sleep(0)
        running.cancel()

    with caplog.at_level(logging.INFO, "berth.scheduler"):
        asyncio.run(story())
    assert [(r.message, r.lease, r.names) for r in caplog.records] == [
        ("another Berth serves the same name", "there/berth", "berth"),
    ]  # fmt: skip


def test_a_lease_is_marked_and_keeps_what_others_wrote():
    meta = LeaseMeta("berth", "here", labels={"a": "b"}, annotations={"c": "d", SERVES: "old"}, resource_version="7")
    made = marked(meta, ("volcano", "berth"))
    assert made.labels == {"a": "b", "app.kubernetes.io/name": "berth"}
    assert made.annotations == {"c": "d", SERVES: "berth,volcano"} and made.resource_version == "7"
    assert marked(meta, ()) == meta
