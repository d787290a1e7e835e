"""What `python -m berth.app.compile` leaves to be compiled when it is used first: nothing, or a scheduler whose files
may not be written stands still for seconds in the middle of its work."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("numba")

# In a process of its own: in this one other tests have compiled what they needed.
SCRIPT = """
import importlib, pkgutil
from numba.core.dispatcher import Dispatcher
import berth
from berth.app import compile as ahead
from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.scheduling.tables import Tables
from berth.simulation.baselines import schedules
from berth.simulation.queueing.as_live import AsLive
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.drawn import drawn_jobs
from berth.simulation.queueing.engine import run
from berth.simulation.queueing.limits import with_limits
from berth.simulation.queueing.schedule import Overhead

found = {}
for module in pkgutil.walk_packages(berth.__path__, "berth."):
    if module.name.startswith(("berth.scheduling", "berth.simulation")):
        for name, thing in vars(importlib.import_module(module.name)).items():
            if isinstance(thing, Dispatcher) and thing.py_func.__module__ == module.name:
                found[f"{module.name}.{name}"] = thing

ahead.main()
known = {name: set(map(str, thing.signatures)) for name, thing in found.items()}
jobs, cluster = with_limits(drawn_jobs("builtin:small"), 1), like_nodes(4, 8)
for policy, told in (
    (Policy(evicts=False, explains=False), {}), (Policy(), {}), (Policy(sets_aside=True), {"knows": True}),
    (Policy(sets_aside=True), {"remembers": True}),
):
    tables = Tables()
    run("x", jobs, cluster, Overhead.AtStart, lambda snapshot: cycle(snapshot, policy, tables), **told)
run("x", jobs, cluster, Overhead.AtStart, AsLive(False, Policy()).decide)
for name in schedules.NAMES:
    schedules.run(name, jobs, 4, 8, Overhead.AtStart)
for name, thing in found.items():
    for signature in sorted(set(map(str, thing.signatures)) - known[name]):
        print(name, signature)
"""


def test_nothing_is_compiled_when_it_is_used_first() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
