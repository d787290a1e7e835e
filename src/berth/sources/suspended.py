"""Workloads whose owner is suspended: nobody has created their pods, and they wait all the same.

Kueue holds back every job in this way until it admits it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from msgspec.structs import replace

from berth.base.errors import BadInput
from berth.dialects.objects import Objects, controlling, find, owner_refs
from berth.dialects.owners import is_read, shapes_of
from berth.model.workload import SUSPENDED, Workload
from berth.sources.inventory import Inventory, seconds
from berth.sources.manifests import workloads_of

_ENDED = frozenset(("Complete", "Completed", "Failed", "FailureTarget", "Finished", "Succeeded"))


def suspended_workloads(
    inventory: Inventory, objects: Objects, known: Container[str], doubts: dict[str, None]
) -> list[Workload]:
    """Those of which no pod is known. What cannot be read is put into `doubts`."""
    found: list[Workload] = []
    for thing in inventory.plain:
        if not _may_wait(thing, objects):
            continue
        meta = thing["metadata"]
        try:
            shapes = [s for s in shapes_of(thing, "", objects) if s.suspended and s.identity not in known]
            made = workloads_of(shapes, priorities=inventory.priority_values, never_preempt=inventory.never_preempt)
        except BadInput as error:
            doubts[f"{thing.get('kind')} {meta.get('namespace')}/{meta.get('name')}: {error.sentence}"] = None
            continue
        created = meta.get("creationTimestamp")
        created_s = seconds(created) if isinstance(created, str) else 0.0
        for one in made:
            gates = tuple(sorted({*one.gates, SUSPENDED}))
            found.append(replace(one, gates=gates, created_s=created_s, **_object(thing, one)))
    return found


def _object(thing: Mapping[str, Any], workload: Workload) -> dict[str, str]:
    """What tells the object from others, where the workload is the object itself."""
    if thing.get("kind") != workload.kind or thing["metadata"].get("name") != workload.name:
        return {}
    return {"api_version": str(thing.get("apiVersion") or ""), "uid": str(thing["metadata"].get("uid") or "")}


def _may_wait(thing: Mapping[str, Any], objects: Objects) -> bool:
    """It asks for pods by itself (no owner that is at hand does), and has neither ended nor been deleted."""
    meta = thing.get("metadata")
    if not isinstance(meta, Mapping) or not meta.get("name") or meta.get("deletionTimestamp") or not is_read(thing):
        return False
    above = controlling(owner_refs(meta.get("ownerReferences")))
    if above and find(objects, above.group, above.kind, str(meta.get("namespace") or ""), above.name) is not None:
        return False
    status = thing.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    if not isinstance(conditions, list):
        return True
    return not any(
        isinstance(c, Mapping) and c.get("type") in _ENDED and str(c.get("status")) == "True" for c in conditions
    )
