"""What dialects disagree on comes with the workload, on its Verdict and in `berth why`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from cli_runs import here
from played_cluster import Played, node, pod, verdict

from berth.actions import verdicts
from berth.actions.notice import Said
from berth.actions.verdicts import Place
from berth.kube import wire
from berth.kube import wire_verdict as told
from berth.model.reasons import Answer, Cause, Reason, Verdict
from berth.sources.live.world import World
from berth.sources.told import told_by

PLACE = Place("ml", 1, 0)
NOT_YET = Verdict("ml/train", Answer.NotYet, (Cause(Reason.Gated, "one gate is closed"),))


def waiting(name: str, created: str, uid: str = "", **labels: str) -> wire.Pod:
    meta: dict[str, Any] = {"name": name, "namespace": "ml", "uid": uid or name, "creationTimestamp": created,
                            "labels": {k.replace("__", "/"): v for k, v in labels.items()}}  # fmt: skip
    spec = {"schedulerName": "berth", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}, wire.Pod)


def test_two_queues_on_one_pod_are_a_finding_of_its_workload_until_they_agree() -> None:
    world = World(["berth"])
    early = "2026-01-01T00:00:00Z"
    both = {"kai.scheduler__queue": "vision", "kueue.x-k8s.io__queue-name": "research"}
    world.put_pod(waiting("train", early, **both))
    (workload,) = world.snapshot(0.0).workloads
    assert workload.queue == "vision"
    (finding,) = workload.findings
    assert "vision by label kai.scheduler/queue of the pod, but research" in finding
    before = Said.of(workload, NOT_YET, PLACE)
    world.put_pod(waiting("train", early, **{**both, "kueue.x-k8s.io__queue-name": "vision"}))
    (mended,) = world.snapshot(0.0).workloads
    assert mended.findings == ()
    assert Said.of(mended, NOT_YET, PLACE) != before, "a finding that is no longer true is written anew"


def test_a_verdict_carries_findings_and_they_are_read_back() -> None:
    world = World(["berth"])
    world.put_pod(waiting("train", "2026-01-01T00:00:00Z", **{"pod-group.scheduling.run.ai__name": "x"}))
    (workload,) = world.snapshot(0.0).workloads
    said = verdicts.said_of(workload, NOT_YET, PLACE, 1.0, 1.0)
    assert said.findings == workload.findings
    body = verdicts.creation(("Pod", "ml", "train"), said, None)
    assert told_by(msgspec.json.decode(body, type=told.VerdictObject)).findings == workload.findings
    many = msgspec.structs.replace(workload, findings=tuple(f"{i} " + "x" * 2000 for i in range(40)))
    cut = verdicts.said_of(many, NOT_YET, PLACE, 1.0, 1.0).findings
    assert cut is not None and len(cut) == 16 and max(map(len, cut)) == 1024


def test_why_shows_them_in_a_live_cluster(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_NOW", "2026-11-29T12:00:00Z")
    finding = "The queue is vision by label a, but research by label b; the first was taken."
    with Played(node("n-1"), pod("fits"), verdict("fits", findings=[finding])).running() as played:
        ran = here("why", "fits", "--kubeconfig", played.kubeconfig(tmp_path, "ml"))
        assert f"  finding: {finding}" in ran.out.splitlines()


def test_pods_of_one_job_of_a_jobset_are_neighbours_in_whatever_order_they_were_made() -> None:
    world = World(["berth"])
    for second, (job, index) in enumerate([(1, 1), (0, 1), (1, 0), (0, 0)]):
        labels = {"jobset.sigs.k8s.io__job-index": str(job), "berth.dev__gang": "train",
                  "batch.kubernetes.io__job-completion-index": str(index)}  # fmt: skip
        world.put_pod(waiting(f"train-w-{job}-{index}", f"2026-01-01T00:00:0{second}Z", **labels))
    (workload,) = world.snapshot(0.0).workloads
    assert workload.pods == (("train-w-0-0", "train-w-0-1", "train-w-1-0", "train-w-1-1"),)
