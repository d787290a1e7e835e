"""The numbers that a decision depends on, beside the snapshot. Chosen on seeds 1-20 of the openb traces."""

from __future__ import annotations

from msgspec import Struct


class Policy(Struct, frozen=True):
    """How to place. Formulas: docs/internals/placement.md."""

    quantum: float = 10.0  # GPU milli: losses that differ by less are alike
    tau: float = 10.0  # GPU milli: how softly fills of a device compete; at least 5
    tau_classes: float = 40.0  # GPU milli: how softly classes of the same size compete
    eta: float = 0.01  # how far a step moves a price, by the log of how far it is off
    average: float = 0.3  # weight of the newest price in the one that is used
    warm_steps: int = 50  # of the prices on the empty cluster
    first_steps: int = 12  # of the prices on what is free, at the start of a cycle
    steps: int = 3  # the same at each refresh; twice as many where demand is learned
    refresh: int = 200  # pods of runs after which prices are brought up to what is free
    learn_arrivals: bool = False  # demand is what has been offered so far, not Snapshot.demand
    imagined: float = 0.1  # part of pods of whole devices in the demand where none is stated
    search_steps: int = 20_000  # of the exact search for gangs of several pod sets

    explains: bool = True  # a verdict for each that waits; a simulation that asks for none goes faster

    # Places in time (docs/internals/backfill.md)
    reservations: int = 1  # so many that found no room get a place in time, which nobody behind them delays
    reservation_searches: int = 8  # in vain, after which nobody behind them is given a place in this cycle
    reservation_tries: int = 16  # times that are proven one by one before they are passed over in larger steps
    overrun_s: float = 60.0  # who is past its limit is taken to end so much later, or a tenth of its run

    # Making room (docs/internals/preemption.md)
    sets_aside: bool = False  # who runs leaves for who should run first by what both still have to compute (choice.py)
    least_left: bool = False  # within a queue who has least left goes first, as far as anybody knows (queue_turns.py)
    savers_leave: bool = False  # with it: who saves its work and says that it may leaves for those of its queue
    aging: float = 0.02  # of what is left to do, for each 10^6 s of age: more of it shortens the longest waits
    reclaims: bool = True  # queues take back what they are due from those that hold more (internals/fair-share.md)
    usage_weight: float = 1.0  # how much past usage counts: halvings of a weight for one share used; 0: not at all
    stays: float = 0.88  # what who runs has left counts for, where it is estimated or a stop costs something
    stop_wait_s: float = 0.0  # those who should run wait so long in all for each that is stopped (stopping.py)
    evicts: bool = True  # pods of lower priority are asked to leave for workloads that find no room
    beyond_budgets: bool = False  # disruption budgets are passed over where nothing else makes room
    restart_s: float = 300.0  # what leaving costs a pod beside the work since its last checkpoint
    cpu_worth: float = 10.0  # GPU milli that a core of a pod without GPUs counts for
    hold_s: float = 60.0  # how long room is held after the last pod has had to be gone
    liking: int = 10  # a place that a gang likes less counts as dearer by one part in so many
    room_searches: int = 64  # workloads for which room is sought in a cycle
    domains_tried: int = 4  # of a required level, the cheapest first
    release_steps: int = 256  # sets of pods looked at on a node for each number of copies
    nodes_cleared: int = 128  # that are cleared of all at once where pods look at each other, or come in slices
    exact_pods: int = 8  # up to so many that may leave every set of them is looked at
    proof_steps: int = 2_000  # of the exact search for gangs of several pod sets, in each proof
    exact_tests: int = 256  # placements tried for it
