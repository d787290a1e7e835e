"""Which pods are ours to place: by the scheduler that they name, as long as that name is served."""

from __future__ import annotations

from collections.abc import Collection

from berth.model.resources import is_accelerator
from berth.sources.inventory import PodRecord

# Kubernetes' own name, on every pod that says nothing: of these only pods that ask for GPUs are meant for us.
DEFAULT = "default-scheduler"


class Ours:
    """`names` are those that are served now."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = frozenset(names)

    def has(self, record: PodRecord) -> bool:
        """The pod waits, and waits for us."""
        if not record.waits or record.scheduler not in self.names:
            return False
        return record.scheduler != DEFAULT or asks_for_gpus(record)

    def may_have(self, record: PodRecord) -> bool:
        """The pod waits and is ours if others of its workload ask for GPUs: the launcher of a training job."""
        return record.waits and record.scheduler == DEFAULT and DEFAULT in self.names and not asks_for_gpus(record)


def asks_for_gpus(record: PodRecord) -> bool:
    return any(amount and is_accelerator(name) for name, amount in record.reading.pod_class.requests)
