"""Owners and groups that come and go leave nothing behind, in whichever order they and their pods go."""

from __future__ import annotations

import pytest

from berth.dialects.following import Following
from berth.dialects.members import PodFacts
from berth.dialects.membership import signature
from berth.dialects.objects import OwnerRef


def job(name):
    key = ("batch", "Job", "default", name)
    return key, {"apiVersion": "batch/v1", "kind": "Job",
                 "metadata": {"name": name, "namespace": "default", "uid": name,
                 "ownerReferences": [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": f"set-{name}",
                                      "uid": f"set-{name}", "controller": True}]},
                 "spec": {"completions": 2, "parallelism": 2, "completionMode": "Indexed"}}  # fmt: skip


def group(name):
    key = ("scheduling.k8s.io", "PodGroup", "default", name)
    return key, {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
                 "metadata": {"name": name, "namespace": "default", "uid": f"group-{name}"},
                 "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}  # fmt: skip


@pytest.mark.parametrize("pods_first", [True, False], ids=["pods first", "objects first"])
@pytest.mark.parametrize("grouped", [True, False], ids=["in a group", "of a job"])
def test_nothing_is_left_of_what_has_gone(pods_first, grouped):
    following = Following()
    for number in range(50):
        name = f"j{number}"
        things = [group(name)] if grouped else [job(name)]
        pod = PodFacts(
            f"{name}-0", labels={"berth.dev/queue": name}, scheduling_group=name if grouped else "",
            owners=() if grouped else (OwnerRef("batch/v1", "Job", name, name, True),),
        )  # fmt: skip
        alike = signature(pod)
        assert following.of_alike(alike, pod).name  # before its owner has been heard of
        for key, thing in things:
            following.put(key, thing)
        assert following.of_alike(alike, pod).kind == ("PodGroup" if grouped else "JobSet")
        assert following.remembered
        if pods_first:
            following.forget_signature(alike)
        for key, _ in things:
            following.drop(key)
        if not pods_first:
            following.of_alike(alike, pod)  # as a pod that stays for a moment is read again
            following.forget_signature(alike)
        assert following.remembered == 0


def test_what_others_still_read_stays():
    following = Following()
    key, thing = job("shared")
    following.put(key, thing)
    owners = (OwnerRef("batch/v1", "Job", "shared", "shared", True),)
    first, second = (PodFacts(n, owners=owners, labels={"berth.dev/queue": n}) for n in ("a", "b"))
    for pod in (first, second):
        following.of_alike(signature(pod), pod)
    following.forget_signature(signature(first))
    assert following.drop(key) == {signature(second)}
