"""The deepest cause first, what follows from it under it, what is independent beside it."""

from __future__ import annotations

import random

from asked import of_text

from berth.diagnosis.chain import explained, explains, ranked
from berth.diagnosis.finding import Code, Finding, Fix
from berth.diagnosis.words import LIKELY, WEAK, Effect, Layer, Severity
from berth.evidence.fact import NO_PCI, Pci


def finding(
    name: str, layer: Layer, effect: Effect, *, node: str = "", pci: Pci = NO_PCI, sure: float = LIKELY
) -> Finding:
    code = Code(
        name, layer, "app", Severity.Error, effect, "t", "m.", "k.", "d.", "c", Fix(("s",), "r", "u"), ("v",), ("s",)
    )
    return code.finding("x", sure, (), node=node, pci=pci)


LOST = finding("Lost", Layer.L0, Effect.DeviceGone)
DOWN = finding("Down", Layer.L3, Effect.PluginDown)
MISSING = finding("Missing", Layer.L4, Effect.CapacityMissing)
WAITS = finding("Waits", Layer.L5, Effect.PodsWait)
QUOTA = finding("Quota", Layer.L5, Effect.HeldByPolicy)


def test_a_chain_hangs_under_its_deepest_cause() -> None:
    all_of_them = [WAITS, MISSING, LOST, DOWN]
    under = explained(all_of_them)
    assert {all_of_them[upper].code: all_of_them[lower].code for upper, lower in under.items()} == {
        "Waits": "Lost", "Missing": "Lost", "Down": "Lost",
    }  # fmt: skip


def test_what_is_independent_stands_beside() -> None:
    assert not explains(LOST, QUOTA)
    assert explained([LOST, QUOTA]) == {}


def test_another_node_explains_nothing() -> None:
    here = finding("Lost", Layer.L0, Effect.DeviceGone, node="a")
    assert explains(here, finding("Missing", Layer.L4, Effect.CapacityMissing, node="a"))
    assert not explains(here, finding("Missing", Layer.L4, Effect.CapacityMissing, node="b"))
    assert explains(here, WAITS)  # a pod that waits has no node


def test_two_devices_that_are_lost_are_two_faults() -> None:
    first = finding("Lost", Layer.L0, Effect.DeviceGone, pci=(0, 1, 0))
    second = finding("Unfit", Layer.L0, Effect.DevicesUnhealthy, pci=(0, 2, 0))
    assert not explains(first, second)


def test_a_hint_explains_nothing_and_comes_last() -> None:
    hint = finding("Hint", Layer.L0, Effect.DeviceGone, sure=WEAK)
    assert not explains(hint, MISSING)
    assert [one.code for one in ranked([hint, WAITS, MISSING])] == ["Missing", "Waits", "Hint"]


def test_nothing_explains_what_lies_below_it() -> None:
    assert not explains(WAITS, LOST)
    assert not explains(LOST, LOST)


def test_the_order_does_not_depend_on_reading() -> None:
    some = [LOST, DOWN, MISSING, WAITS, QUOTA]
    first = ranked(some)
    for seed in range(10):
        random.Random(seed).shuffle(some)
        assert ranked(some) == first


def test_a_lost_gpu_and_all_that_follows_is_one_finding() -> None:
    found = of_text(
        "NVRM: Xid (PCI:0000:b3:00): 79, pid=1, name=a, GPU has fallen off the bus.\n"
        "UnexpectedAdmissionError  Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: "
        "rpc error: code = Unknown desc = GPU is lost, which is unexpected\n"
        "allocatable nvidia.com/gpu: 7 (capacity 8)\n"
    )
    assert [one.code for one in found.findings] == ["GpuFellOffBus"]
    assert {one.explained_by.code for one in found.consequences} == {"GpuFellOffBus"}
    assert not found.gate.go and found.gate.stage == "isolation"


def test_nothing_read_is_no_clean_bill() -> None:
    found = of_text("hello")
    assert (found.findings, found.gate.go) == ((), False)
    assert "nothing was read" in found.gate.sentence


def test_a_limit_that_somebody_set_stays_when_a_gpu_comes_back() -> None:
    found = of_text(
        "NVRM: Xid (PCI:0000:b3:00): 79, pid=1, name=a, GPU has fallen off the bus.\n"
        "node1:123:456 [0] NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n"
    )
    assert [one.code for one in found.findings] == ["GpuFellOffBus", "LockedMemorySmall"]


def test_who_waited_in_vain_is_explained_by_any_reason_for_it() -> None:
    log = (
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) ran "
        "for 600056 milliseconds before timing out.\n"
        "NCCL WARN NET/IB : Got completion from peer 10.2.0.14<47112> with status=12 opcode=0 len=0 vendor err 129"
    )
    found = of_text(log, "nccl-log")
    assert [one.code for one in found.findings] == ["RdmaRetriesExceeded"]
    assert [one.finding.code for one in found.consequences] == ["CollectiveTimedOut"]
