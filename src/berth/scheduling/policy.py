"""The numbers that a decision depends on, beside the snapshot. Chosen on seeds 1-20 of the openb traces."""

from __future__ import annotations

from msgspec import Struct


class Policy(Struct, frozen=True):
    """How to place. Formulas: docs/internals/placement.md.

    `quantum` is in GPU milli: losses that differ by less are alike, and the first node wins.
    `refresh` is in workloads: how often the scarcity of supply is worked out anew within a cycle.
    """

    quantum: int = 80
    whole_copies: float = 0.5  # share of whole copies in the supply of a class of one GPU or less
    whole_copies_many: float = 0.5  # the same for classes of several GPUs
    refresh: int = 200
    learn_arrivals: bool = False  # demand is what has been offered so far, not Snapshot.demand
    search_steps: int = 20_000  # of the exact search for gangs of several pod sets
