"""Where room may be cleared for a gang: domains of its level, the cheapest first; and within one, for each set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from berth.model.workload import PodSet, Workload
from berth.scheduling.clearing import NEVER
from berth.scheduling.draft import Draft
from berth.scheduling.offer import Offer
from berth.scheduling.policy import Policy
from berth.scheduling.proof import Outcome
from berth.scheduling.wishes import gpu_milli_of, labelled, level_of, set_wishes, whole_level, whole_wishes

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

MOST_DOMAINS = 16  # looked at for one set


@dataclass(frozen=True)
class Region:
    """Nodes (N,), and what clearing room for all sets there costs at least, if each were alone.

    `liked_less` by the workload than another: then what it costs counts as more by a part of so many.
    """

    nodes: Mask
    estimate: int
    liked_less: int = 0

    @property
    def counts(self) -> int:
        return self.estimate + (self.estimate // self.liked_less if self.liked_less else 0)

    def judged(self, outcome: Outcome | None) -> Outcome | None:
        """The outcome with what it counts as in this region."""
        if outcome is None or not self.liked_less:
            return outcome
        return replace(outcome, counts=outcome.price + outcome.price // self.liked_less)


def regions(
    workload: Workload, offers: Mapping[int, Offer], allowed: Mask, draft: Draft, policy: Policy
) -> list[Region]:
    """At most `domains_tried` regions, the cheapest first.

    A gang that need not be in one domain goes where it costs least. Of what costs the same it takes one GPU class
    first, then the narrowest domain. What mixes classes, or is wider than a level that it prefers, counts as dearer.
    """
    most = policy.domains_tried
    levels = len(draft.columns.topology.levels)
    required = whole_level(workload, draft)
    if required == -1:
        return []
    if required is not None:
        needed = [level_of(w, draft) for w in whole_wishes(workload) if w.required]
        return _cheapest(required, workload, offers, labelled(allowed, needed, draft), draft, most)
    everywhere = Region(allowed, int(_estimate(workload, offers, np.where(allowed, 0, -1), 1)[0]))
    if everywhere.estimate == NEVER:
        return []
    if sum(s.count for s in workload.pod_sets) < 2:
        return [everywhere]
    near = [level_of(w, draft) for w in whole_wishes(workload)]  # all of them are preferences
    classes = _by_class(workload, allowed, draft)
    found: list[tuple[int, int, int, Region]] = []
    for mixed, mask in (*((0, m) for m in classes), (1, allowed)):
        wide = Region(mask, int(_estimate(workload, offers, np.where(mask, 0, -1), 1)[0]))
        by_level = [(level, r) for level in range(levels, -1, -1)
                    for r in _cheapest(level, workload, offers, mask, draft, 1)]  # fmt: skip
        for level, region in [*by_level, (-1, wide)]:
            is_worse = bool(mixed and classes) or any(level < wish for wish in near)
            liked = replace(region, liked_less=policy.liking if is_worse else 0)
            if liked.estimate < NEVER:
                found.append((liked.counts, mixed, levels - level, liked))
    found.sort(key=lambda f: f[:3])
    return [region for _, _, _, region in found][:most]


def _cheapest(
    level: int, workload: Workload, offers: Mapping[int, Offer], allowed: Mask, draft: Draft, most: int
) -> list[Region]:
    """At most so many domains of a level that could hold all sets, the cheapest first."""
    columns = draft.columns
    if level == len(columns.topology.levels):
        domain, count = np.arange(columns.size), columns.size
    else:
        domain, count = columns.domain[level].astype(np.int64), len(columns.domain_names[level])
    domain = np.where(allowed, domain, -1)
    estimate = _estimate(workload, offers, domain, count)
    order = np.argsort(estimate, kind="stable")[:most]
    return [Region(domain == d, int(estimate[d])) for d in order.tolist() if estimate[d] < NEVER]


def _estimate(workload: Workload, offers: Mapping[int, Offer], domain: I64, count: int) -> I64:
    """(count,) what all sets cost in each domain, if each were alone there."""
    total = np.zeros(count, np.int64)
    possible = np.ones(count, bool)
    for s, offer in offers.items():
        cost = offer.by_domain(workload.pod_sets[s].count, domain, count)
        possible &= cost < NEVER
        total += np.where(possible, cost, 0)
    estimate: I64 = np.where(possible, total, NEVER)
    return estimate


def _by_class(workload: Workload, allowed: Mask, draft: Draft) -> list[Mask]:
    """The nodes of each GPU class, where there are several and the gang asks for GPUs."""
    classes = np.unique(draft.columns.gpu_class[allowed])
    if len(classes) < 2 or not any(gpu_milli_of(s) for s in workload.pod_sets if s.count):
        return []
    no_gpus = any(not gpu_milli_of(s) for s in workload.pod_sets if s.count)
    none = (draft.columns.gpu_class < 0) & no_gpus
    return [allowed & ((draft.columns.gpu_class == c) | none) for c in classes.tolist() if c >= 0]


def set_region(
    workload: Workload, pod_set: PodSet, offer: Offer, scope: Mask, draft: Draft
) -> list[tuple[int, int]] | None:  # fmt: skip
    """(position in the offer, pods) of the nodes where a set costs least in a scope; None where it does not fit.

    In one domain where the set must share one. Slices are not looked at.
    """
    wishes = [w for w in set_wishes(workload, pod_set) if w.required]
    levels = [level_of(w, draft) for w in wishes]
    if -1 in levels:
        return None
    scope = labelled(scope, levels, draft)
    whole = [level for level, w in zip(levels, wishes, strict=True) if not w.slice_size]
    if not whole:
        total, dealt = offer.dealt(pod_set.count, scope)
        return dealt if total < NEVER else None
    best: tuple[int, list[tuple[int, int]]] = (NEVER, [])
    alone = Workload(workload.name, (pod_set,), workload.namespace)
    for region in _cheapest(max(whole), alone, {0: offer}, scope, draft, MOST_DOMAINS):
        if region.estimate >= best[0]:
            break
        best = min(best, offer.dealt(pod_set.count, region.nodes), key=lambda dealt: dealt[0])
    return best[1] if best[0] < NEVER else None
