"""Pods and gangs come and go for minutes: memory stays flat, everything is bound, nothing is complained of.

BERTH_SOAK_S says for how long; five minutes where it says nothing.
"""

from __future__ import annotations

import os

from benchmarks.live.bench import run
from benchmarks.live.soak import soak

SECONDS = float(os.environ.get("BERTH_SOAK_S", "300"))


def test_memory_is_flat_and_nothing_goes_wrong_while_fifty_pods_come_each_second():
    found = run("berth", 150, soak(SECONDS))
    print(found)
    assert found["drained"], f"not everything was bound and ended: {found}"
    assert found["growth_percent"] < 5, f"memory grows: {found['resident_mib']} MiB"
    assert not found["complaints"], f"the scheduler complained: {found['complaints']}"
    assert found["moved"] == 0
