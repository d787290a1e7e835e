"""What the tests themselves rely on: a kind that was taken away can be made anew, and no pod is left over."""

from __future__ import annotations

from conftest import empty
from devcluster import Admin
from kinds import DEFINITIONS, foreign_kind, install, remove


def test_a_kind_that_is_being_deleted_is_waited_for_and_made_anew(admin: Admin) -> None:
    definition = foreign_kind("kinds.test.berth.dev/v1", "Slow", "slows")
    path = f"{DEFINITIONS}/{definition['metadata']['name']}"
    install(admin, [definition])
    try:
        for _ in range(5):
            before = admin.get(path)["metadata"]["uid"]
            remove(admin, [definition])
            install(admin, [definition])
            there = admin.get(path)["metadata"]
            assert there["uid"] != before and "deletionTimestamp" not in there
            assert admin.items("/apis/kinds.test.berth.dev/v1/slows") == []
    finally:
        remove(admin, [definition])


def test_pods_of_jobs_are_gone_before_the_next_test_begins(admin: Admin, namespace: str) -> None:
    """Their finalizer would keep them on a node of the name, and the next test finds it occupied."""
    pod = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "tracked", "namespace": namespace, "finalizers": ["batch.kubernetes.io/job-tracking"]},
        "spec": {"containers": [{"name": "c", "image": "x"}], "terminationGracePeriodSeconds": 30},
    }  # fmt: skip
    admin.create(pod)
    empty(admin)
    assert admin.items("/api/v1/pods") == []
