"""Kinds whose versions come and go under a follower, as their installers do it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from berth.kube.client import Client
from berth.kube.discover import served
from berth.kube.find_access import load_access
from berth.sources.live.follow import Follower
from berth.sources.live.kinds import NEEDED, Kind
from berth.sources.live.unheard import PATIENCE_S
from berth.sources.live.world import World
from devcluster import Admin, Cluster, gpu_pod
from kinds import DEFINITIONS, foreign_kind, install, remove
from scheduler import Replica
from stage import SetStage

OWNERS = Kind("follow.test.berth.dev", "owners", "Owner")
OLD, NEW = "v1alpha1", "v1"


class Watched(World):
    """A world that notes which objects it was told to be gone."""

    def __init__(self) -> None:
        super().__init__({"berth"})
        self.gone: list[str] = []

    def drop_object(self, thing: Any) -> None:
        self.gone.append(thing[3])
        super().drop_object(thing)

    def versions(self) -> dict[str, str]:
        """The apiVersion in which each owner is known."""
        found = self._following.objects
        return {key[3]: found[key]["apiVersion"].rpartition("/")[2] for key in found if key[1] == OWNERS.kind}


def versions(**are_served: bool) -> list[dict[str, Any]]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return [
        {"name": name, "served": is_served, "storage": name == OLD, "schema": schema}
        for name, is_served in are_served.items()
    ]


@pytest.fixture
def definition(admin: Admin) -> Iterator[dict[str, Any]]:
    made = foreign_kind(f"{OWNERS.group}/{OLD}", OWNERS.kind, OWNERS.resource)
    yield made
    remove(admin, [made])


@pytest.mark.parametrize("was_served", [True, False], ids=["served beside it", "served in its stead"])
def test_a_version_that_goes_takes_no_object_with_it(
    cluster: Cluster, admin: Admin, namespace: str, definition: dict[str, Any], was_served: bool
) -> None:
    """Pods whose owner vanishes for a moment would be taken for pods that stand alone."""
    definition["spec"]["versions"] = versions(**{OLD: True, NEW: was_served})
    install(admin, [definition])
    path = f"{DEFINITIONS}/{definition['metadata']['name']}"
    for name in ("one", "two"):
        admin.create({"apiVersion": f"{OWNERS.group}/{OLD}", "kind": OWNERS.kind,
                      "metadata": {"name": name, "namespace": namespace}})  # fmt: skip

    async def story() -> None:
        world = Watched()
        async with asyncio.timeout(60), Client(load_access(str(cluster.kubeconfig_of("admin")))) as client:
            kinds = await served(client)
            first = kinds.resources[OWNERS.group, OWNERS.resource][0].version
            follower = Follower(client, world, kinds, [*NEEDED, OWNERS])
            work = asyncio.create_task(follower.run())
            await follower.synced()
            assert world.versions() == {"one": first, "two": first}
            other = OLD if first == NEW else NEW
            left = {"spec": {"versions": versions(**{OLD: first == NEW, NEW: first == OLD})}}
            await asyncio.to_thread(admin.patch, path, left)
            while world.versions() != {"one": other, "two": other}:
                await asyncio.sleep(0.02)
            assert world.gone == []
            while world.unheard.patience_s(OWNERS.group, OWNERS.kind) != PATIENCE_S:
                await asyncio.sleep(0.02)
            await asyncio.to_thread(admin.delete, path)
            while world.versions():
                await asyncio.sleep(0.02)
            while OWNERS in follower.reflectors and not follower.reflectors[OWNERS].is_absent:
                await asyncio.sleep(0.02)
            work.cancel()

    asyncio.run(story())


def test_pods_of_a_kind_that_came_a_moment_ago_are_not_bound_one_by_one(
    set_stage: SetStage, run_scheduler: Callable[..., Replica], admin: Admin
) -> None:
    """The kind, the job and the first of its pods come within a second, long before the next look at what is served."""
    kind = foreign_kind("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets")
    remove(admin, [kind])
    stage = set_stage(2)
    replica = run_scheduler("a")
    try:
        install(admin, [kind])
        template = {"spec": {"containers": [{"name": "c", "image": "none"}]}}
        job = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": template}
        made = admin.create({
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": "train", "namespace": stage.namespace},
            "spec": {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": job}}]},
        })  # fmt: skip
        pod = gpu_pod("train-w-0-0", stage.namespace, 2)
        pod["metadata"]["ownerReferences"] = [
            {"apiVersion": made["apiVersion"], "kind": "JobSet", "name": "train", "uid": made["metadata"]["uid"],
             "controller": True}
        ]  # fmt: skip
        admin.create(pod)
        stage.wait_verdict("train", "WaitingForGang")
        assert replica.said("follows a kind")
        assert not stage.nodes_of("train-w-0-0")
    finally:
        remove(admin, [kind])
