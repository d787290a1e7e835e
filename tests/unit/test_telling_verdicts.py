"""The Verdict object and the condition of pods: names, bounds, and which word autoscalers see."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from telling_api import GPU, Cluster, refused, run, workload

from berth.actions import verdicts
from berth.actions.conditions import NODE_WOULD_HELP, PodSaid, PodThere, change, condition
from berth.actions.subjects import object_of
from berth.actions.verdicts import Place
from berth.kube import wire_verdict as wire
from berth.model.reasons import Answer, Block, Cause, Reason, Verdict
from berth.model.workload import PodClass, PodSet, Workload

CRD = yaml.safe_load((Path(__file__).parents[2] / "deploy" / "crds" / "berth.dev_verdicts.yaml").read_text())
SCHEMA = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
NO_NODE_HELPS = {
    Reason.InvalidRequest, Reason.Unsupported, Reason.UnknownTopologyLevel, Reason.LargerThanLimit,
    Reason.QuotaExceeded, Reason.LimitExceeded, Reason.Gated, Reason.WaitingForVolume, Reason.WaitingForGang,
}  # fmt: skip


def test_it_is_decided_of_every_reason_whether_a_node_would_help() -> None:
    assert set(NODE_WOULD_HELP) == set(Reason), "a reason is not in the table of actions/conditions.py"
    assert {r for r, helps in NODE_WOULD_HELP.items() if not helps} >= NO_NODE_HELPS


def test_quota_and_gates_never_call_for_nodes() -> None:
    for reason in NO_NODE_HELPS:
        said = json.loads(condition(refused(workload("a"), reason), ""))
        assert said["reason"] == "BerthWaiting"
    assert json.loads(condition(refused(workload("a")), ""))["reason"] == "Unschedulable"


def test_the_page_for_users_has_the_same_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "telling.md").read_text()
    rows = dict(re.findall(r"(?m)^\| ([A-Z]\w+) \| `(Unschedulable|BerthWaiting)` \|$", page))
    assert rows == {r.name: "Unschedulable" if NODE_WOULD_HELP[r] else "BerthWaiting" for r in Reason}


# ---- names


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (("Pod", "a", "train-0"), "pod-train-0"),
        (("PodGroup", "a", "train"), "podgroup-train"),
        (("LeaderWorkerSet", "a", "llm.v2-0"), "leaderworkerset-llm.v2-0"),
    ],
)
def test_a_verdict_is_named_after_its_workload(key: tuple[str, str, str], name: str) -> None:
    assert verdicts.name_of(key) == name


@pytest.mark.parametrize("name", ["My_Gang", "a" * 253, "x..y", "-a", "ünicode", "a/b", "_"])
def test_a_name_that_is_none_is_rewritten(name: str) -> None:
    made = verdicts.name_of(("Gang", "a", name))
    assert verdicts._PLAIN.fullmatch(made)
    assert len(made) <= 253
    assert made.startswith("gang.")
    assert made != verdicts.name_of(("Gang", "a", name + "x"))


kinds = st.sampled_from(["Pod", "PodGroup", "Gang", "Job", "pod", "X"])
names = st.text("abA-._0", min_size=1, max_size=6)


@given(kinds, names, kinds, names)
def test_two_workloads_never_share_a_name(kind: str, name: str, other_kind: str, other: str) -> None:
    one, two = verdicts.name_of((kind, "a", name)), verdicts.name_of((other_kind, "a", other))
    assert verdicts._PLAIN.fullmatch(one)
    if (kind.lower(), name) != (other_kind.lower(), other):
        assert one != two


def test_the_owner_is_the_object_and_not_what_the_workload_is_called() -> None:
    replica = Workload("llm-3", (), "a", "LeaderWorkerSet", api_version="leaderworkerset.x-k8s.io/v1", uid="u")
    owner = object_of(replica)
    assert owner is not None
    assert owner.name == "llm"
    assert object_of(Workload("g", (), "a", "Gang")) is None


# ---- what it says


def conforms(thing: Any, schema: dict[str, Any], path: str = "") -> None:
    """As far as the schema's bounds go."""
    if schema.get("x-kubernetes-int-or-string"):
        assert isinstance(thing, int | str), path
        return
    kind = schema["type"]
    if kind == "object":
        assert isinstance(thing, dict), path
        assert len(thing) <= schema.get("maxProperties", 1 << 30), path
        for key in schema.get("required", ()):
            assert key in thing, f"{path}.{key}"
        for key, value in thing.items():
            below = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if schema.get("properties") or schema.get("additionalProperties"):
                assert below is not None, f"{path}.{key} is not in the schema"
                conforms(value, below, f"{path}.{key}")
    elif kind == "array":
        assert len(thing) <= schema.get("maxItems", 1 << 30), path
        for i, value in enumerate(thing):
            conforms(value, schema["items"], f"{path}[{i}]")
    elif kind == "string":
        assert isinstance(thing, str), path
        assert schema.get("minLength", 0) <= len(thing) <= schema.get("maxLength", 1 << 30), path
        assert thing in schema.get("enum", [thing]), path
    elif kind == "integer":
        assert isinstance(thing, int), path
        assert thing >= schema.get("minimum", -(1 << 63)), path
    else:
        assert isinstance(thing, bool), path


def absurd() -> tuple[Workload, Verdict]:
    long = "x" * 9000
    cause = Cause(
        Reason.NotEnoughGpus, long, 10**12, -1, long, long, tuple(f"{i}{long}" for i in range(99)),
        tuple((block, 1) for block in Block), tuple((f"node-{i}", long) for i in range(99)), proven=False,
    )  # fmt: skip
    w = Workload("w", (PodSet("s", PodClass(requests=(("nvidia.com/gpu", 1),), gpu_milli=500), 3, 3),), kind="Gang")
    return w, Verdict(w.key, Answer.NotYet, (cause,) * 40)


@pytest.mark.parametrize(
    ("w", "verdict"),
    [
        (workload("train", 8), refused(workload("train", 8))),
        absurd(),
        (workload("a"), Verdict("team-a/a", Answer.NotYet, (Cause(Reason.NoNodes, ""),))),
    ],
)
def test_all_that_is_sent_is_in_the_schema(w: Workload, verdict: Verdict) -> None:
    evicted = wire.Eviction("2026-11-29T22:00:00Z", "Preempted", "s", 3, 100)
    said = verdicts.said_of(w, verdict, Place("q", 1, 0, ("Pod/x",) * 16), 1.8e9, 1.8e9, evicted)
    conforms(json.loads(verdicts.creation(("Gang", "a", "w"), said, object_of(w))), SCHEMA)
    fields = set(json.loads(verdicts.change(said, None))) - {"metadata"}
    assert fields == set(SCHEMA["properties"]) - {"apiVersion", "kind", "metadata"}, "a merge patch names every field"


def test_a_part_of_a_gpu_is_a_quantity() -> None:
    w, verdict = absurd()
    assert verdicts.said_of(w, verdict, Place("q", 1, 0), 0, 0).gpus == "1500m"


def test_at_is_never_before_since() -> None:
    said = verdicts.said_of(*absurd(), Place("q", 1, 0), 1.8e9, 1.7e9)
    assert said.since <= said.at


def test_what_was_written_is_read_back() -> None:
    said = verdicts.said_of(*absurd(), Place("q", 2, 1, ("Pod/x",)), 1.8e9, 1.8e9)
    there = msgspec.json.decode(verdicts.creation(("Gang", "a", "w"), said, None), type=wire.VerdictObject)
    assert not verdicts.differs(said, there)
    later = verdicts.said_of(*absurd(), Place("q", 1, 1, ("Pod/x",)), 1.8e9, 1.9e9)
    assert verdicts.differs(later, there)
    assert not verdicts.news(later, there)


def test_a_field_that_is_no_longer_said_goes() -> None:
    async def story() -> None:
        c = Cluster()
        a, b = workload("a"), workload("b")
        c.create(a, b)
        c.plan([(a, refused(a)), (b, refused(b))])
        await c.settle()
        assert (c.verdict("pod-b") or {})["aheadHere"] == ["Pod/a"]
        c.plan([(b, refused(b, sentence="other"))])
        await c.settle(31)
        after = c.verdict("pod-b") or {}
        assert "aheadHere" not in after
        assert after["ahead"] == 0

    run(story())


# ---- pods


def test_a_patch_of_a_pod_holds_its_uid_and_only_what_changes() -> None:
    said = condition(refused(workload("a")), "2026-11-29T22:00:00Z")
    both = json.loads(change(PodSaid("u", "NotEnoughGpus", "n1"), {"code", "node"}, said))
    assert both["metadata"] == {"uid": "u"}
    assert both["status"]["nominatedNodeName"] == "n1"
    assert both["status"]["conditions"][0]["lastTransitionTime"] == "2026-11-29T22:00:00Z"
    node = json.loads(change(PodSaid("u", "NotEnoughGpus"), {"node"}, said))
    assert node["status"] == {"nominatedNodeName": None}


@pytest.mark.parametrize(
    ("reason", "message", "code"),
    [
        ("Unschedulable", "NotEnoughGpus: 8 asked for", "NotEnoughGpus"),
        ("BerthWaiting", "QuotaExceeded: no", "QuotaExceeded"),
        ("Unschedulable", "QuotaExceeded: no", ""),  # what we say now would be BerthWaiting
        ("Unschedulable", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", ""),
        ("SchedulingGated", "Scheduling is blocked", ""),
    ],
)
def test_what_a_pod_says_is_ours_or_it_is_nothing(reason: str, message: str, code: str) -> None:
    thing = {
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]}
    }
    assert msgspec.convert(thing, PodThere).said.code == code


def test_gpus_are_counted_of_what_must_start_together() -> None:
    elastic = Workload("e", (PodSet("s", GPU, 10, 4),))
    assert verdicts.said_of(elastic, refused(elastic), Place("q", 1, 0), 0, 0).gpus == "32"
