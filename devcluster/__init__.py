"""A real Kubernetes control plane on this machine, with fake GPU nodes: for tests, benchmarks and developers.

`python -m devcluster up` for people; `Cluster` and its companions for code. Nothing in here uses Berth: what
watches a scheduler must not share its mistakes.
"""

from devcluster.api import Admin, Refused
from devcluster.cluster import Cluster
from devcluster.fake_kubelet import FakeKubelet
from devcluster.interference import Interference, Refusal
from devcluster.invariants import InvariantBroken, InvariantWatcher, Limit, Violation
from devcluster.nodes import PROFILES, fake_node, fake_nodes
from devcluster.options import Options
from devcluster.pods import gpu_pod, pod_group

__all__ = [
    "PROFILES",
    "Admin",
    "Cluster",
    "FakeKubelet",
    "Interference",
    "InvariantBroken",
    "InvariantWatcher",
    "Limit",
    "Options",
    "Refusal",
    "Refused",
    "Violation",
    "fake_node",
    "fake_nodes",
    "gpu_pod",
    "pod_group",
]
