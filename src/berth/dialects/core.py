"""Pods and what keeps a number of them running: Deployment, ReplicaSet, StatefulSet, DaemonSet.

None of these is a gang by itself: their pods start one by one and replace each other. A minimum in an
annotation (`berth.dev/min-count`, Volcano's `group-min-member`) makes them one.
"""

from __future__ import annotations

from collections.abc import Sequence

from berth.dialects.assembly import annotated_minimum, called, name_of, owner_carrier, pod_set, shape_of
from berth.dialects.carriers import Carrier, carrier
from berth.dialects.fields import Field
from berth.dialects.shape import Shape


def pod(manifest: Field) -> tuple[Shape, ...]:
    """A bare pod is its own template."""
    name_of(manifest)
    made = pod_set("pods", manifest, [], 1)
    return (shape_of(manifest, [made], [manifest]),)


def replicated(manifest: Field, above: Sequence[Carrier] = ()) -> tuple[Shape, ...]:
    """Deployment, ReplicaSet, ReplicationController, StatefulSet: `spec.replicas` of `spec.template`.

    `above` are its owners.
    """
    template = manifest["spec.template"]
    replicas = manifest["spec.replicas"].number(1)
    owner = owner_carrier(manifest)
    carriers = [carrier(template["metadata"], "its pod template"), owner, *above]
    minimum, by = annotated_minimum(carriers, replicas)
    notes = []
    if replicas == 0:
        notes.append(f"{called(manifest)} asks for no pods: spec.replicas is 0.")
    is_ordered = manifest["spec.podManagementPolicy"].text("OrderedReady") == "OrderedReady"
    if minimum > 1 and manifest["kind"].text() == "StatefulSet" and is_ordered:
        notes.append(
            f"{called(manifest)} makes its pods one after the other, so a gang of {minimum} never has its "
            "pods: set spec.podManagementPolicy to Parallel."
        )
    if minimum > 1:
        made = pod_set("pods", template, [owner, *above], replicas, minimum)
        return (shape_of(manifest, [made], [template], above=above, is_gang_by=by, notes=notes),)
    made = pod_set("pods", template, [owner, *above], min(replicas, 1))
    return (shape_of(manifest, [made], [template], above=above, copies=max(replicas, 1), notes=notes),)


def daemon_set(manifest: Field) -> tuple[Shape, ...]:
    """One pod on every node that matches; how many there are is the cluster's matter."""
    template = manifest["spec.template"]
    made = pod_set("pods", template, [owner_carrier(manifest)], 1)
    note = f"{called(manifest)} runs one pod on each node that matches; it is read as one pod."
    return (shape_of(manifest, [made], [template], notes=[note]),)
