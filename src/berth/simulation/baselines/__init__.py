"""The six published policies of the FGD experiment, by the names that the command line uses.

Source of all: Weng et al., USENIX ATC 2023, and its published simulator. No scheduling of ours is here.
"""

from __future__ import annotations

from functools import partial

from berth.simulation.baselines import arrivals
from berth.simulation.offer import Policy

BASELINES: dict[str, Policy] = {
    "random": partial(arrivals.place, arrivals.RANDOM),
    "dotprod": partial(arrivals.place, arrivals.DOTPROD),
    "clustering": partial(arrivals.place, arrivals.CLUSTERING),
    "packing": partial(arrivals.place, arrivals.PACKING),
    "bestfit": partial(arrivals.place, arrivals.BESTFIT),
    "fgd": partial(arrivals.place, arrivals.FGD),
}
