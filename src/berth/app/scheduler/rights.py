"""Every right that the scheduler uses, in one place: `berth preflight` asks for them, the chart grants them.

A test holds the chart's roles equal to this list.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from berth.app.scheduler.settings import Configuration

READS = ("get", "list", "watch")

# Schedulers by the names that pods give in spec.schedulerName, with the names of their Leases; YuniKorn has none.
FOREIGN: dict[str, tuple[str, ...]] = {
    "default-scheduler": ("kube-scheduler",),
    "volcano": ("volcano", "vc-scheduler"),
    "kai-scheduler": ("kai-scheduler", "kai-scheduler-default"),
    "scheduler-plugins-scheduler": ("scheduler-plugins-scheduler",),
    "koord-scheduler": ("koord-scheduler",),
    "yunikorn": (),
}


class For(Enum):
    """What a right is for; the value says what is lost without it."""

    Deciding = "nothing can be decided without it"
    Reading = "what these objects say does not count"
    Questions = "/debug/snapshot lets nobody in"
    Binding = "no pod can be placed"
    Telling = "nobody is told why a workload waits"
    Volumes = "pods whose volumes wait for their first consumer are not placed"
    Evicting = "nobody is asked to leave for a workload of higher priority"
    Leading = "no replica can lead"
    Foreign = "whether the scheduler whose name is served is gone cannot be seen"
    Beside = "whether another Berth serves the same name cannot be seen"


class Right(Struct, frozen=True):
    """One verb on one resource. `namespace`, `name`: only there, only this one; "" is everywhere, any."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    purpose: For = For.Reading
    namespace: str = ""
    name: str = ""

    @property
    def called(self) -> str:
        """As a role writes it: `pods/binding`, `podgroups.scheduling.k8s.io/status`."""
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{kind}/{self.subresource}" if self.subresource else kind


_DECIDING = (("", ("nodes", "pods")),)

_READING: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("", ("namespaces", "persistentvolumes", "persistentvolumeclaims")),
    ("apps", ("deployments", "replicasets", "statefulsets")),
    ("batch", ("jobs", "cronjobs")),
    ("policy", ("poddisruptionbudgets",)),
    ("storage.k8s.io", ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities")),
    ("scheduling.k8s.io", ("priorityclasses", "podgroups", "workloads")),
    ("resource.k8s.io", ("deviceclasses", "resourceslices", "resourceclaims")),
    ("berth.dev", ("gpuqueues", "gpureservations", "gputopologies", "gpuclasses", "verdicts", "nodeledgers")),
    ("scheduling.x-k8s.io", ("podgroups",)),
    ("scheduling.volcano.sh", ("podgroups",)),
    ("batch.volcano.sh", ("jobs",)),
    ("topology.volcano.sh", ("hypernodes",)),
    ("scheduling.run.ai", ("podgroups",)),
    ("kai.scheduler", ("topologies",)),
    ("kueue.x-k8s.io", ("workloads", "topologies")),
    ("jobset.x-k8s.io", ("jobsets",)),
    ("kubeflow.org", ("pytorchjobs", "tfjobs", "mpijobs", "xgboostjobs", "paddlejobs", "jaxjobs")),
    ("trainer.kubeflow.org", ("trainjobs", "trainingruntimes", "clustertrainingruntimes")),
    ("ray.io", ("rayclusters", "rayjobs", "rayservices")),
    ("leaderworkerset.x-k8s.io", ("leaderworkersets",)),
)

_ASKING = (
    Right("create", "authentication.k8s.io", "tokenreviews", purpose=For.Questions),
    Right("create", "authorization.k8s.io", "subjectaccessreviews", purpose=For.Questions),
)

_WRITING = (
    Right("create", "", "pods", "binding", For.Binding),
    Right("patch", "", "pods", "status", For.Telling),
    *(Right("patch", "", kind, purpose=For.Volumes) for kind in ("persistentvolumeclaims", "persistentvolumes")),
    *(Right(verb, "events.k8s.io", "events", purpose=For.Telling) for verb in ("create", "patch")),
    *(
        Right("patch", group, "podgroups", "status", For.Telling)
        for group in ("scheduling.k8s.io", "scheduling.x-k8s.io", "scheduling.volcano.sh", "scheduling.run.ai")
    ),
    # Volcano's PodGroup has no status of its own to write.
    Right("patch", "scheduling.volcano.sh", "podgroups", purpose=For.Telling),
    *(Right(verb, "berth.dev", "verdicts", purpose=For.Telling) for verb in ("create", "patch", "delete")),
    Right("patch", "berth.dev", "gpuqueues", "status", For.Telling),
    Right("patch", "berth.dev", "gpureservations", "status", For.Telling),
)

_EVICTING = (
    Right("create", "", "pods", "eviction", For.Evicting),
    Right("delete", "", "pods", purpose=For.Evicting),
)


def rights(configuration: Configuration, shadow: bool = False, namespace: str = "") -> tuple[Right, ...]:
    """What a scheduler with this configuration needs; `namespace` is where it runs, for its Lease."""
    return tuple(_needed(configuration, shadow, namespace))


def _needed(configuration: Configuration, shadow: bool, namespace: str) -> Iterator[Right]:
    for groups, purpose in ((_DECIDING, For.Deciding), (_READING, For.Reading)):
        for group, resources in groups:
            for resource in resources:
                for verb in READS:
                    yield Right(verb, group, resource, purpose=purpose)
    yield from _ASKING
    if any(name in FOREIGN for name in configuration.scheduler_names):
        yield Right("list", "coordination.k8s.io", "leases", purpose=For.Foreign)
    if shadow:
        return
    if not any(name in FOREIGN for name in configuration.scheduler_names):
        yield Right("list", "coordination.k8s.io", "leases", purpose=For.Beside)
    yield from _WRITING
    if configuration.preemption.enabled:
        yield from _EVICTING
    election = configuration.leader_election
    if election.enabled:
        where = election.namespace or namespace or "default"
        yield Right("create", "coordination.k8s.io", "leases", purpose=For.Leading, namespace=where)
        for verb in ("get", "update"):
            yield Right(verb, "coordination.k8s.io", "leases", "", For.Leading, where, election.name)
