"""Which pod of its set a pod is: the index that its controller writes on it.

Pods of one slice (the pods of one Job of a JobSet, hosts that a framework numbers in a row) are neighbours in this
order, in whatever order they were made.
"""

from __future__ import annotations

from collections.abc import Mapping

# The part of the set first (a JobSet's set is several Jobs), then the pod in it.
_PARTS = ("jobset.sigs.k8s.io/job-index",)
_PODS = (
    "batch.kubernetes.io/job-completion-index",
    "training.kubeflow.org/replica-index",
    "volcano.sh/task-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "kueue.x-k8s.io/pod-group-pod-index",
    "apps.kubernetes.io/pod-index",
)

Rank = tuple[int, int]
UNRANKED: Rank = (2**31, 2**31)  # after all that say theirs


def rank_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Rank | None:
    """(part, pod), each -1 where nothing says; None where neither is said."""
    part, pod = _first(_PARTS, labels, annotations), _first(_PODS, labels, annotations)
    return None if part == pod == -1 else (part, pod)


def _first(keys: tuple[str, ...], labels: Mapping[str, str], annotations: Mapping[str, str]) -> int:
    for key in keys:
        said = labels.get(key) or annotations.get(key) or ""
        if said.isascii() and said.isdigit() and len(said) < 10:
            return int(said)
    return -1
