"""What is read of a snapshot that a scheduler gave: kinds of which it found none, and its own verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Ran, here
from played_cluster import node, pod

STATE: dict[str, Any] = {
    "apiVersion": "berth.dev/v1alpha1", "kind": "BerthState", "metadata": {"name": "berth"}, "version": "0.1.0",
    "at": "2026-11-29T11:59:00Z", "notSeen": [],
}  # fmt: skip
SAID = {
    "workload": "Pod ml/fits", "verdict": "NotYet",
    "causes": [{"reason": "QuotaExceeded", "sentence": "others wait within their quota", "need": 1, "have": 0,
                "unit": "GPUs", "unlock": ["1 GPU released in queue ml"], "blocks": {"Queue": 1},
                "nearest": [{"node": "n-1", "lacks": "a quota"}]}],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_NOW", "2026-11-29T12:00:00Z")


def with_claim(name: str) -> dict[str, Any]:
    thing = pod(name)
    thing["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "absent"}}]
    return thing


def refused(group: str, resource: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Status", "reason": "Forbidden", "message": f"{resource} is forbidden",
            "details": {"group": group, "kind": resource}}  # fmt: skip


def asked(folder: Path, *things: dict[str, Any], command: str) -> Ran:
    dump = folder / "snapshot.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*things]}))
    return here(*command.split(), "--from", str(dump), "-o", "json")


def reason(ran: Ran) -> str | None:
    found: str | None = json.loads(ran.out)["answers"][0]["reason"]
    return found


def test_of_a_kind_that_was_listed_and_is_not_there_there_is_none(tmp_path):
    things = (node("n-1"), with_claim("pvc"))
    assert reason(asked(tmp_path, *things, command="why pvc")) is None, "of a dump of nodes and pods nobody knows"
    ran = asked(tmp_path, STATE, *things, command="why pvc")
    assert (ran.code, reason(ran)) == (1, "WaitingForVolume")


@pytest.mark.parametrize("blind", [[{**STATE, "notSeen": [""]}], [STATE, refused("", "persistentvolumeclaims")]])
def test_of_a_kind_that_was_not_seen_nobody_knows(tmp_path, blind):
    ran = asked(tmp_path, *blind, node("n-1"), with_claim("pvc"), command="why pvc")
    assert reason(ran) is None


def test_the_word_of_the_scheduler_goes_first(tmp_path):
    things = ({**STATE, "verdicts": [SAID]}, node("n-1"), pod("fits"), pod("other"))
    ran = asked(tmp_path, *things, command="why fits")
    answer = json.loads(ran.out)["answers"][0]
    assert (ran.code, answer["reason"], answer["unlock"]) == (1, "QuotaExceeded", ["1 GPU released in queue ml"])
    assert (answer["nodes"], answer["nearest"]) == ({"Queue": 1}, [{"node": "n-1", "lacks": "a quota"}])
    assert (answer["pods"], answer["gpus"], answer["told"]["at"]) == (1, 1.0, "2026-11-29T11:59:00Z")
    assert json.loads(ran.out)["notes"] == ["given by a scheduler at 2026-11-29T11:59:00Z, Berth 0.1.0"]
    assert reason(asked(tmp_path, *things, command="why fits --anew")) is None
    waiting = json.loads(asked(tmp_path, *things, command="queue").out)["waiting"]
    assert {w["workload"]: (w["reason"], w["saidBy"]) for w in waiting} == {
        "ml/fits": ("QuotaExceeded", "scheduler"), "ml/other": (None, "here")
    }  # fmt: skip
