"""What a cluster is made of, and what may be chosen."""

from __future__ import annotations

import os
from dataclasses import dataclass

DEFAULT_KUBERNETES = "1.37.2"

# Component names, in the order in which they start.
ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KWOK = "kwok"
FAKE_KUBELET = "fake-kubelet"
COMPONENTS = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER, KWOK, FAKE_KUBELET)

# Users of the token file and their groups. Only the first four have rights; the others get theirs from a test.
USERS: dict[str, tuple[str, ...]] = {
    "admin": ("system:masters",),
    "second-admin": ("system:masters",),
    "system:kube-controller-manager": (),
    "system:kube-scheduler": (),
    "viewer": (),
    "alice": ("team-a",),
    "bob": ("team-b",),
    "nobody": (),
}


@dataclass(frozen=True)
class Options:
    """Which components run and how. The defaults are those of the published measurements."""

    kubernetes: str = os.environ.get("BERTH_DEVCLUSTER_KUBERNETES", DEFAULT_KUBERNETES)
    controller_manager: bool = True
    scheduler: bool = False  # the real kube-scheduler; it can also be started later
    kwok: bool = False
    fake_kubelet: bool = False  # FakeKubelet in a process of its own, so that it shares no interpreter with a test
    workload_api: bool = True  # PodGroup, Workload and the gates of workload-aware scheduling
    node_lifecycle: bool = False  # the controllers that mark silent nodes NotReady and collect lost pods
    audit: bool = False  # a line per write in logs/audit.log; costs the API server a few per cent
    verbosity: int = 0  # klog -v of every component

    @property
    def minor(self) -> int:
        return int(self.kubernetes.split(".")[1])

    @property
    def components(self) -> tuple[str, ...]:
        """What is started with the cluster, in order."""
        chosen = {
            ETCD: True,
            API_SERVER: True,
            CONTROLLER_MANAGER: self.controller_manager,
            SCHEDULER: self.scheduler,
            KWOK: self.kwok,
            FAKE_KUBELET: self.fake_kubelet,
        }
        return tuple(name for name in COMPONENTS if chosen[name])
