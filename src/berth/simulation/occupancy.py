"""What runs where during a replay, counted apart from the scheduler: an over-commitment is an error here.

Shapes: N nodes, G devices of the largest node, C GPU classes. CPU is milli-cores, memory bytes, a device
1000 milli.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from berth.model.cluster import Health
from berth.model.resources import CPU, MEMORY, PODS, get
from berth.model.snapshot import Snapshot
from berth.model.workload import WHOLE, PodClass

# Devices in these states are given out; the scheduler has the same rule.
GIVEN_OUT = (Health.Fit, Health.Suspect)


class Overcommitted(Exception):
    """A plan put something where it does not fit: a fault of the scheduler, never of the input."""


class Occupancy:
    """Free amounts by node.

    cpu, memory, pods  (N,) int64
    device             (N, G) int64 milli left; 0 where there is no device or it is out of service
    allocated          (C,) int64 milli held, by GPU class of the node
    """

    def __init__(self, cluster: Snapshot) -> None:
        nodes = cluster.nodes
        widest = max((len(n.devices) for n in nodes), default=0) or 1
        self.nodes = nodes
        self.cpu = np.array([get(n.allocatable, CPU) for n in nodes], np.int64)
        self.memory = np.array([get(n.allocatable, MEMORY) for n in nodes], np.int64)
        self.pods = np.array([get(n.allocatable, PODS) for n in nodes], np.int64)
        self.device = np.zeros((len(nodes), widest), np.int64)
        for n, node in enumerate(nodes):
            for g, device in enumerate(node.devices):
                self.device[n, g] = WHOLE if device.health in GIVEN_OUT else 0
        names = {c.name: i for i, c in enumerate(cluster.gpu_classes)}
        self.gpu_class = np.array([names.get(n.gpu_class, -1) for n in nodes], np.int64)
        self.allocated = np.zeros(len(names), np.int64)

    def take(self, n: int, pod_class: PodClass, devices: Sequence[int]) -> None:
        """Book one pod. Raises Overcommitted where node or device has too little left."""
        node = self.nodes[n]
        asked = get(pod_class.requests, node.device_resource) if node.device_resource else 0
        if len(devices) != asked or len(set(devices)) != asked:
            raise Overcommitted(f"{node.name}: {asked} GPUs asked, devices {tuple(devices)} given")
        self._change(n, pod_class, devices, -1)
        if self.cpu[n] < 0 or self.memory[n] < 0 or self.pods[n] < 0:
            raise Overcommitted(f"{node.name}: CPU {self.cpu[n]} m, memory {self.memory[n]} B left")
        for g in devices:
            if self.device[n, g] < 0:
                raise Overcommitted(f"{node.name}: device {g} has {self.device[n, g]} milli left")

    def release(self, n: int, pod_class: PodClass, devices: Sequence[int]) -> None:
        """Give back what `take` took."""
        self._change(n, pod_class, devices, 1)

    def _change(self, n: int, pod_class: PodClass, devices: Sequence[int], sign: int) -> None:
        self.cpu[n] += sign * get(pod_class.requests, CPU)
        self.memory[n] += sign * get(pod_class.requests, MEMORY)
        self.pods[n] += sign
        for g in devices:
            self.device[n, g] += sign * pod_class.gpu_milli
        if devices:
            self.allocated[self.gpu_class[n]] -= sign * pod_class.gpu_milli * len(devices)
