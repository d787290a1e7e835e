"""Neighbours in a job are neighbours in the order in which its pods are placed."""

from __future__ import annotations

from berth.dialects.ranks import UNRANKED, rank_of


def test_a_pod_of_a_jobset_is_in_its_job_first() -> None:
    def pod(job: int, index: int) -> tuple[int, int]:
        labels = {"jobset.sigs.k8s.io/job-index": str(job), "batch.kubernetes.io/job-completion-index": str(index)}
        found = rank_of(labels, {})
        assert found is not None
        return found

    assert sorted([pod(10, 0), pod(2, 11), pod(2, 9), pod(1, 3)]) == [(1, 3), (2, 9), (2, 11), (10, 0)]


def test_every_controllers_index() -> None:
    assert rank_of({"training.kubeflow.org/replica-index": "3"}, {}) == (-1, 3)
    assert rank_of({"leaderworkerset.sigs.k8s.io/worker-index": "0"}, {}) == (-1, 0)
    assert rank_of({"kueue.x-k8s.io/pod-group-pod-index": "7"}, {}) == (-1, 7)
    assert rank_of({}, {"volcano.sh/task-index": "2"}) == (-1, 2)
    assert rank_of({}, {"batch.kubernetes.io/job-completion-index": "12"}) == (-1, 12)


def test_what_is_no_index_is_none() -> None:
    assert rank_of({}, {}) is None
    assert rank_of({"training.kubeflow.org/replica-index": "x"}, {"volcano.sh/task-index": "-1"}) is None
    assert rank_of({"training.kubeflow.org/replica-index": "9" * 30}, {}) is None
    assert UNRANKED > (2**31 - 1, 2**31 - 1)
