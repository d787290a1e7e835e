"""What an earlier leader decided and did not finish, read back from the pods that it had reached.

The first bound pod of a gang carries where all of it goes; pods for whom room is being made carry the node that is
kept for them (status.nominatedNodeName). Both become holds, so that a leader that follows goes on instead of
deciding anew. Binding annotations are copied to the pod: kubernetes pkg/registry/core/pod/storage, assignPod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from berth.model.cluster import Allocation
from berth.model.hold import Hold, Leaving, Place
from berth.model.workload import Workload
from berth.sources.inventory import PodRecord
from berth.sources.live import shorthand

KEY = "berth.dev/decision"
HELD_S = 60.0  # for which what was decided is kept; long enough to send it again

# All annotations of an object may have 256 KiB together, and beyond that nobody can change it any more.
MOST_BYTES = 48 * 1024


def written(places: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The annotation for a gang's decision, from (pod, node); none where it would be too long.

    Without one whoever follows places the rest of the gang anew, beside those that are bound.
    """
    nodes: dict[str, list[str]] = {}
    for pod, node in places:
        nodes.setdefault(node, []).append(pod)
    text = shorthand.written(nodes)
    return {KEY: text} if len(text) <= MOST_BYTES else {}


def begun(workload: Workload, bound: Iterable[PodRecord], now_s: float) -> Hold | None:
    """A hold for the rest of a gang that has begun; None where no decision names any of it."""
    for record in bound:
        text = dict(record.annotations).get(KEY)
        if not text:
            continue
        try:
            nodes = shorthand.read(text)
        except ValueError:
            continue
        if hold := hold_of(workload, nodes, now_s + HELD_S):
            return hold
    return None


def nominated(
    workload: Workload, waiting: Iterable[PodRecord], held: Sequence[Allocation], now_s: float
) -> Hold | None:
    """A hold for pods that have been promised a node, with who is on the way out there; None for others."""
    nodes = {record.name: record.nominated for record in waiting if record.nominated}
    hold = hold_of(workload, nodes, now_s + HELD_S)
    if hold is None or sum(p.count for p in hold.places) < sum(s.min_count for s in workload.pod_sets):
        return None
    at = {place.node for place in hold.places}
    leaving = tuple(Leaving(a.namespace, a.name, a.uid) for a in held if a.is_ending and a.node in at)
    return msgspec.structs.replace(hold, leaving=leaving)


def hold_of(workload: Workload, nodes: Mapping[str, str], until_s: float) -> Hold | None:
    """A hold for the pods of a workload that have a node here, by their names; None where none has."""
    counts: dict[tuple[str, str], int] = {}
    for pod_set, names in zip(workload.pod_sets, workload.pods, strict=True):
        for name in names:
            if node := nodes.get(name):
                counts[pod_set.name, node] = counts.get((pod_set.name, node), 0) + 1
    if not counts:
        return None
    places = tuple(Place(pod_set, node, count) for (pod_set, node), count in counts.items())
    return Hold(workload.identity, places, workload.uid, until_s=until_s)
