"""Writes without an answer, and writes that were not sent: what users see is right in the end, and the log is short."""

from __future__ import annotations

import asyncio
import logging

import pytest
from telling_api import Cluster, refused, run, workload

from berth.kube.errors import ApiError, Unreachable
from berth.model.reasons import Reason


def lose(c: Cluster, part: str) -> None:
    """From now on what is written to such a path is carried out, and no answer comes."""

    def lost(verb: str, path: str) -> None:
        if verb != "GET" and part in path:
            raise Unreachable("timed out", verb=verb, path=path)

    c.api.lose = lost


@pytest.mark.parametrize("part", ["/podgroups/", "/pods/", "/verdicts"])
def test_a_reason_that_was_written_without_an_answer_is_taken_back(part: str) -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 2)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await c.settle()
        lose(c, part)
        c.plan([(gang, refused(gang, Reason.QuotaExceeded))])
        await asyncio.sleep(0.1)
        c.api.lose = lambda verb, path: None
        c.plan([(gang, refused(gang))])
        await asyncio.sleep(60)
        await c.settle()
        assert (c.verdict("podgroup-train") or {})["reason"] == "NotEnoughGpus"
        for pod in ("train-0", "train-1"):
            assert c.condition(pod)["message"].startswith("NotEnoughGpus: ")
        assert c.group("train")["conditions"][0]["message"].startswith("NotEnoughGpus: ")

    run(story())


def test_a_group_that_was_told_without_an_answer_is_told_that_it_waits_no_more() -> None:
    async def story() -> None:
        c = Cluster()
        gang = workload("train", 2)
        c.create(gang)
        lose(c, "/podgroups/")
        c.plan([(gang, refused(gang))])
        await asyncio.sleep(0.1)
        assert c.group("train")["conditions"][0]["status"] == "False"
        c.api.lose = lambda verb, path: None
        c.delete(gang)
        c.plan([])
        await asyncio.sleep(60)
        assert c.group("train").get("conditions", []) == []
        assert c.verdict("podgroup-train") is None

    run(story())


def test_a_group_made_anew_is_told_only_once_its_verdict_names_it() -> None:
    """By the Verdict the next leader knows which group is to be told that it waits no more."""

    async def story() -> None:
        c = Cluster()
        first, second = workload("train", 2), workload("train", 2, generation=1)
        c.create(first)
        c.plan([(first, refused(first))])
        await c.settle()
        c.delete(first)
        c.create(second)

        def refuse(verb: str, path: str) -> None:
            if verb != "GET" and "/verdicts/" in path:
                raise ApiError(503, "ServiceUnavailable", "not now", verb=verb, path=path)

        c.api.refuse = refuse
        c.plan([(second, refused(second))])
        await asyncio.sleep(5)
        assert c.group("train") == {}
        c.api.refuse = lambda verb, path: None
        await asyncio.sleep(20)
        assert (c.verdict("podgroup-train") or {})["workload"]["uid"] == second.uid
        assert c.group("train")["conditions"][0]["status"] == "False"

    run(story())


def test_who_may_not_write_for_a_moment_tells_the_rest_afterwards() -> None:
    """The same leadership goes on: nobody lists anew what was told."""

    async def story() -> None:
        c = Cluster()
        gang = workload("train", 40)
        c.create(gang)
        c.plan([(gang, refused(gang))])
        await asyncio.sleep(0.0005)
        asked = 0

        def may_write() -> bool:
            nonlocal asked
            asked += 1
            return asked % 3 != 0  # it lapses between taking an item and sending it, too

        c.teller._outbox._may_write = c.teller._writing._client._may_write = may_write
        await asyncio.sleep(60)
        assert c.teller.counts["withdrawn"] > 0
        assert {c.condition(f"train-{i}").get("status") for i in range(40)} == {"False"}

    run(story())


def test_a_server_that_is_away_is_a_line_for_each_lane_and_not_for_each_write(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "berth.telling")

    def lines() -> list[tuple[str, int]]:
        found = [(r.lane, r.count) for r in caplog.records if r.getMessage() == "writes were refused"]
        caplog.clear()
        return found

    def away(verb: str, path: str) -> None:
        raise Unreachable("refused", verb=verb, path=path, may_have_arrived=False)

    async def story() -> None:
        c = Cluster()
        pods = [workload(f"solo-{i}") for i in range(100)]
        c.create(*pods)
        c.api.refuse = away
        c.plan([(w, refused(w)) for w in pods])
        await asyncio.sleep(1.1)
        [(lane, count)] = lines()
        assert lane == "verdict"
        assert count >= 100
        await asyncio.sleep(50)
        assert lines() == [], "tried again, and told once a minute"
        await asyncio.sleep(20)
        [(lane, count)] = lines()
        assert lane == "verdict"
        assert count > 400
        await c.teller.close()
        assert len(lines()) == 1
        await asyncio.sleep(100)
        assert lines() == []

    run(story())


def test_failures_of_other_kinds_have_lines_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "berth.telling")

    def refuse(verb: str, path: str) -> None:
        if "/pods/" in path:
            raise ApiError(422, "Invalid", f"no {path[-20:]}", verb=verb, path=path)
        if verb != "GET" and "/podgroups/" in path:
            raise ApiError(503, "ServiceUnavailable", "not now", verb=verb, path=path)

    async def story() -> None:
        c = Cluster()
        gang = workload("train", 3)
        c.create(gang)
        c.api.refuse = refuse
        c.plan([(gang, refused(gang))])
        await asyncio.sleep(1.05)

    run(story())
    found = {(r.lane, r.said.split(": ", 1)[1][:3], r.count) for r in caplog.records if hasattr(r, "count")}
    assert found == {("pod", "422", 3), ("group", "503", 2)}
