"""Every scenario file holds, and together they produce every reason and every block that there is."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from berth.model.reasons import Block, Reason
from berth.scheduling.cycle import cycle
from berth.scheduling.plan import Plan
from berth.scheduling.tables import Tables

from .judging import faults
from .reading import HERE, Scenario, read, scenario_files

FILES = scenario_files()
NAMES = [str(path.relative_to(HERE).with_suffix("")) for path in FILES]


@cache
def decided(path: Path) -> tuple[Scenario, Plan]:
    scenario = read(path)
    return scenario, cycle(scenario.snapshot, scenario.policy)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_scenario(path: Path) -> None:
    scenario, plan = decided(path)
    found = faults(scenario, plan)
    assert not found, f"{scenario.name}\n" + "\n".join(f"- {fault}" for fault in found)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_same_answer_again(path: Path) -> None:
    """The same snapshot gives the same plan, with a warm cache too."""
    scenario, plan = decided(path)
    tables = Tables()
    for _ in range(2):
        again = cycle(scenario.snapshot, scenario.policy, tables)
        assert list(again.binds()) == list(plan.binds())
        assert again.verdicts == plan.verdicts
        assert (again.evictions, again.holds) == (plan.evictions, plan.holds)


def test_names_are_distinct() -> None:
    names = [read(path).name for path in FILES]
    assert sorted(set(names)) == sorted(names)


def test_a_complaint_is_told_in_own_words() -> None:
    silent = [path.name for path in FILES if (scenario := read(path)).complaint and not scenario.why]
    assert not silent


@pytest.mark.parametrize("reason", list(Reason), ids=lambda r: r.name)
def test_every_reason_is_produced(reason: Reason) -> None:
    produced = {c.reason for path in FILES for v in decided(path)[1].verdicts.values() for c in v.causes}
    assert reason in produced, f"no scenario produces {reason.name}"


@pytest.mark.parametrize("block", [b for b in Block if b is not Block.Nothing], ids=lambda b: b.name)
def test_every_block_is_produced(block: Block) -> None:
    counted = {b for path in FILES for v in decided(path)[1].verdicts.values() for c in v.causes for b, _ in c.blocks}
    assert block in counted, f"no scenario counts a node under {block.name}"
