"""Gangs in each of the simple forms in which people write them, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from devcluster import Admin, Limit, gpu_pod, pod_group
from versions import SERVES_POD_GROUPS

# On every pod of a gang of these tests, whatever its form: what the invariant watcher judges by. Berth reads neither.
GANG, SIZE = "example.com/gang", "example.com/gang-size"
UPSTREAM, KEYED, JOB = "upstream", "keyed", "job"
FORMS = (UPSTREAM, KEYED, JOB)

Object = dict[str, Any]


@dataclass(frozen=True)
class Gang:
    """Objects to create, and how many pods there will be once their controllers have made theirs."""

    name: str
    namespace: str
    size: int
    gpus: int  # of each pod
    objects: tuple[Object, ...] = field(repr=False)

    @property
    def total_gpus(self) -> int:
        return self.size * self.gpus


def gang(form: str, name: str, namespace: str, size: int, gpus: int = 1, **pod: Any) -> Gang:
    """All of `size` pods of so many GPUs, or none. `pod` as in devcluster.gpu_pod.

    On a Kubernetes without upstream groups the keys of Berth stand in for them.
    """
    makers = {UPSTREAM: _upstream if SERVES_POD_GROUPS else _keyed, KEYED: _keyed, JOB: _job}
    return Gang(name, namespace, size, gpus, tuple(makers[form](name, namespace, size, gpus, pod)))


def single(name: str, namespace: str, gpus: int = 1, **pod: Any) -> Gang:
    """One pod that stands alone."""
    return Gang(name, namespace, 1, gpus, (_pod(name, name, namespace, 1, gpus, pod),))


def replicas(name: str, namespace: str, count: int, gpus: int = 1, minimum: int = 0, **pod: Any) -> Gang:
    """A ReplicaSet, which makes a pod again at once that failed or was deleted; a gang where there is a minimum."""
    keys = {"labels": {"berth.dev/gang": name}, "annotations": {"berth.dev/min-count": str(minimum)}} if minimum else {}
    template = _pod(name, name, namespace, minimum, gpus, pod, keys)
    template["metadata"]["labels"]["app"] = name
    template["spec"]["restartPolicy"] = "Always"
    spec = {"replicas": count, "selector": {"matchLabels": {"app": name}}, "template": _template_of(template)}
    return Gang(name, namespace, count, gpus, (_object("apps/v1", "ReplicaSet", name, namespace, spec),))


def create_all(admin: Admin, gangs: Iterable[Gang]) -> None:
    """Groups before the pods that name them, each gang's pods together."""
    made = [thing for each in gangs for thing in each.objects]
    admin.create_all(thing for thing in made if thing["kind"] == "PodGroup")
    admin.create_all(thing for thing in made if thing["kind"] != "PodGroup")


def pods_of(admin: Admin, namespace: str, name: str = "") -> list[Object]:
    """The pods of a gang that are not on their way out; of the whole namespace without a name."""
    query = {"labelSelector": f"{GANG}={name}"} if name else {}
    pods = admin.items(f"/api/v1/namespaces/{namespace}/pods", **query)
    return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def bound(pods: Iterable[Object]) -> list[Object]:
    """Those that have a node and have not failed."""
    return [pod for pod in pods if pod["spec"].get("nodeName") and pod["status"].get("phase") != "Failed"]


def bound_by_gang(admin: Admin, namespace: str) -> dict[str, int]:
    """How many pods of each gang have a node."""
    counts: dict[str, int] = {}
    for pod in bound(pods_of(admin, namespace)):
        name = name_of(pod)
        counts[name] = counts.get(name, 0) + 1
    return counts


def missing(admin: Admin, gangs: Iterable[Gang]) -> dict[str, str]:
    """Gangs of one namespace that are not whole, with what is bound of them; empty where all are."""
    gangs = list(gangs)
    counts = bound_by_gang(admin, gangs[0].namespace) if gangs else {}
    short = {each.name: (counts.get(each.name, 0), each.size) for each in gangs}
    return {name: f"{there} of {size}" for name, (there, size) in short.items() if there != size}


def wait_whole(admin: Admin, gangs: Iterable[Gang], timeout_s: float) -> None:
    """Until every pod of every gang is bound. Raises AssertionError with those that are not."""
    gangs = list(gangs)
    try:
        admin.until(lambda: not missing(admin, gangs), timeout_s, every_s=0.1)
    except TimeoutError:
        raise AssertionError(f"Not bound within {timeout_s:g} s: {missing(admin, gangs)}") from None


def remove(admin: Admin, namespace: str) -> None:
    """All that these makers make is gone, with its pods."""
    batch, apps = (f"/apis/{group}/namespaces/{namespace}" for group in ("batch/v1", "apps/v1"))
    for path in (f"{batch}/jobs", f"{apps}/replicasets"):
        if admin.items(path):
            admin.delete(path)
    pods = f"/api/v1/namespaces/{namespace}/pods"

    def is_empty() -> bool:
        if admin.items(pods):
            admin.delete(pods, grace_s=0)
        return not admin.items(pods)

    admin.until(is_empty, 30, "all pods are gone", every_s=0.2)
    groups = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{namespace}/podgroups"
    if SERVES_POD_GROUPS and admin.items(groups):
        admin.delete(groups)


def name_of(pod: Object) -> str:
    """The gang that a pod belongs to; its own name where it stands alone."""
    return str(pod["metadata"].get("labels", {}).get(GANG) or pod["metadata"]["name"])


def gang_of(pod: Object) -> tuple[str, int | None] | None:
    """For the invariant watcher: (gang, its minimum), in whatever form it was written."""
    size = pod["metadata"].get("annotations", {}).get(SIZE)
    return (f"{pod['metadata']['namespace']}/{name_of(pod)}", int(size)) if size else None


def namespace_limit(namespace: str, gpus: int) -> Limit:
    """At most so many GPUs bound in a namespace."""
    return Limit(namespace, lambda pod: pod["metadata"]["namespace"] == namespace, "nvidia.com/gpu", gpus)


def _upstream(name: str, namespace: str, size: int, gpus: int, pod: Object) -> Iterable[Object]:
    group = pod_group(name, namespace, size)
    if pod.get("priority_class"):  # upstream the group's own priority counts, not that of its pods
        group["spec"]["priorityClassName"] = pod["priority_class"]
    yield group
    for number in range(size):
        yield _pod(f"{name}-{number}", name, namespace, size, gpus, {"group": name, **pod})


def _keyed(name: str, namespace: str, size: int, gpus: int, pod: Object) -> Iterable[Object]:
    keys = {"labels": {"berth.dev/gang": name}, "annotations": {"berth.dev/min-count": str(size)}}
    for number in range(size):
        yield _pod(f"{name}-{number}", name, namespace, size, gpus, pod, keys)


def _job(name: str, namespace: str, size: int, gpus: int, pod: Object) -> Iterable[Object]:
    """Indexed, all indexes at once: so torchrun and MPI want it."""
    spec = {
        "completions": size,
        "parallelism": size,
        "completionMode": "Indexed",
        "backoffLimit": 1000,
        "template": _template_of(_pod(name, name, namespace, size, gpus, pod)),
    }
    yield _object("batch/v1", "Job", name, namespace, spec)


def _pod(
    pod_name: str, name: str, namespace: str, size: int, gpus: int, pod: Object, keys: Object | None = None
) -> Object:
    made = gpu_pod(pod_name, namespace, gpus, **pod)
    keys = keys or {}
    made["metadata"]["labels"] = {GANG: name, **keys.get("labels", {}), **made["metadata"]["labels"]}
    told = {SIZE: str(size)} if size > 1 else {}
    made["metadata"]["annotations"] = {**told, **keys.get("annotations", {}), **made["metadata"]["annotations"]}
    return made


def _template_of(pod: Object) -> Object:
    meta = {key: pod["metadata"][key] for key in ("labels", "annotations")}
    return {"metadata": meta, "spec": pod["spec"]}


def _object(version: str, kind: str, name: str, namespace: str, spec: Object) -> Object:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
