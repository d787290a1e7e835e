"""What is likely to be asked for next: weights per pod class.

Known from a trace (as FGD does), or learned from arrivals (what a live cluster has).
"""

from __future__ import annotations

from msgspec import Struct

from berth.model.workload import PodClass


class Demand(Struct, frozen=True, gc=False):
    """Pod classes with their share of arrivals; shares are positive and need not add up to 1."""

    classes: tuple[PodClass, ...] = ()
    shares: tuple[float, ...] = ()
