"""What faults make of devices and of the node, and until when: the written policy, and time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.diagnosis.finding import Code, Finding, Fix
from berth.diagnosis.rules import RULES
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.fact import Origin
from berth.evidence.piece import Piece
from berth.evidence.scan import scanner
from berth.node.counters import counts_of, fell, resets_said, risen
from berth.node.fitness import NODE, Memory, Sighted, Signal, judge
from berth.node.policy import BY_CODE, BY_EFFECT, OWN, PLUGIN_SILENT, Ruling, State, Until, ruling_of

GPU, OTHER = "0000:10:00", "0000:11:00"
BOTH = {GPU: Sighted.Answers, OTHER: Sighted.Answers}
LOST = Ruling(State.Unfit, Until.Reboot)
BROKEN = Ruling(State.Unfit, Until.Reset)
SLOW = Ruling(State.Suspect, settle_s=600)


def after(memory: Memory, now_s: float, *signals: Signal, boot: str = "a", **more: object) -> Memory:
    return judge(memory, signals, BOTH, now_s, boot, **more)  # type: ignore[arg-type]


def state(memory: Memory, target: str = GPU) -> tuple[State, str]:
    return memory.standings[target].state, memory.standings[target].code


def test_a_healthy_machine_is_fit_since_it_was_first_seen() -> None:
    memory = after(after(Memory(), 100), 130)
    assert state(memory) == state(memory, NODE) == (State.Fit, "")
    assert memory.standings[NODE].since_s == 100


def test_a_lost_device_is_unfit_at_once_and_until_the_machine_is_started_again() -> None:
    memory = after(Memory(), 100, Signal(GPU, "GpuFellOffBus", LOST, "Xid 79", "/dev/kmsg", said_s=90))
    assert state(memory) == (State.Unfit, "GpuFellOffBus")
    assert state(memory, OTHER) == (State.Fit, "")
    assert state(memory, NODE) == (State.Suspect, "GpuFellOffBus"), "one of two"
    for now_s in (200, 90_000, 900_000):
        memory = after(memory, now_s, resets={GPU: now_s - 1})
        assert state(memory) == (State.Unfit, "GpuFellOffBus"), "a reset does not bring it back, nor does time"
    assert memory.standings[GPU].since_s == 100
    memory = after(memory, 900_100, boot="b")
    assert state(memory) == (State.Fit, "") and not memory.faults


def test_a_device_that_computes_wrongly_is_unfit_until_it_is_reset() -> None:
    memory = after(Memory(), 100, Signal(GPU, "Ecc", BROKEN, said_s=95))
    memory = after(memory, 5000)
    assert state(memory) == (State.Unfit, "Ecc")
    memory = after(memory, 5030, resets={GPU: 90})
    assert state(memory) == (State.Unfit, "Ecc"), "that reset was before"
    memory = after(memory, 5060, Signal(GPU, "Ecc", BROKEN, said_s=95), resets={GPU: 5050})
    assert state(memory) == (State.Fit, ""), "the log still says it, of before the reset"
    memory = after(memory, 5090, Signal(GPU, "Ecc", BROKEN, said_s=5080), resets={GPU: 5050})
    assert state(memory) == (State.Unfit, "Ecc"), "again, after the reset"


def test_the_worst_that_was_said_of_a_fault_holds_as_long_as_it_lasts() -> None:
    """Xid 95 is said once; the counter that goes with it is there at every look."""
    memory = after(Memory(), 0, Signal(GPU, "Ecc", BROKEN, said_s=0))
    memory = after(memory, 7200, Signal(GPU, "Ecc", Ruling(State.Suspect, Until.Reset)))
    assert state(memory) == (State.Unfit, "Ecc")
    memory = after(memory, 7230, resets={GPU: 7220})
    assert state(memory) == (State.Fit, "")
    memory = after(memory, 7260, Signal(GPU, "Ecc", Ruling(State.Suspect, Until.Reset)))
    assert state(memory) == (State.Suspect, "Ecc"), "another one, which is milder"


def test_a_passing_fault_settles_and_each_relapse_takes_longer() -> None:
    signal = Signal(GPU, "Slow", SLOW)
    memory = after(Memory(), 0, signal)
    assert state(memory) == (State.Suspect, "Slow")
    assert state(after(memory, 599)) == (State.Suspect, "Slow")
    memory = after(memory, 600)
    assert state(memory) == (State.Fit, "")
    memory = after(memory, 700, signal)
    memory = after(memory, 1300)
    assert state(memory) == (State.Suspect, "Slow"), "it relapsed: 1200 s now"
    memory = after(memory, 1900)
    assert state(memory) == (State.Fit, "")
    memory = after(memory, 1900 + 3700)
    assert not memory.faults, "an hour without it, and it is forgotten"


def test_what_was_said_long_ago_and_passes_is_not_held_against_a_device() -> None:
    memory = after(Memory(), 100_000, Signal(GPU, "Slow", SLOW, said_s=1000))
    assert state(memory) == (State.Fit, "")
    memory = after(Memory(), 100_000, Signal(GPU, "GpuFellOffBus", LOST, said_s=1000))
    assert state(memory) == (State.Unfit, "GpuFellOffBus"), "what latches was true before the agent ran"


def test_a_silent_plugin_is_suspect_first_and_unfit_when_it_lasts() -> None:
    signal = Signal(NODE, PLUGIN_SILENT, OWN[PLUGIN_SILENT], "no answer within 3 s")
    memory = after(Memory(), 0, signal)
    assert state(memory, NODE) == (State.Suspect, PLUGIN_SILENT)
    memory = after(memory, 30, signal)
    assert state(memory, NODE) == (State.Suspect, PLUGIN_SILENT)
    memory = after(memory, 60, signal)
    assert state(memory, NODE) == (State.Unfit, PLUGIN_SILENT)
    assert state(memory) == (State.Fit, "")
    assert state(after(memory, 120), NODE) == (State.Fit, "")


def test_a_parted_ledger_says_nothing_before_it_has_lasted() -> None:
    signal = Signal(NODE, "LedgerParts", OWN["LedgerParts"])
    memory = after(Memory(), 0, signal)
    assert state(memory, NODE) == (State.Fit, "")
    assert state(after(memory, 60, signal), NODE) == (State.Suspect, "LedgerParts")


def test_the_node_is_unfit_when_no_device_is_left() -> None:
    memory = after(Memory(), 0, Signal(GPU, "A", LOST), Signal(OTHER, "B", LOST))
    assert state(memory, NODE)[0] is State.Unfit


def test_devices_that_nobody_could_ask_are_unknown() -> None:
    seen = {GPU: Sighted.Listed, OTHER: Sighted.Answers}
    memory = judge(Memory(), (), seen, 0.0)
    assert memory.standings[GPU].state is State.Unknown and memory.standings[GPU].code == "NotSeen"
    assert memory.standings[NODE].state is State.Fit
    assert judge(Memory(), (), {GPU: Sighted.Listed}, 0.0).standings[NODE].state is State.Unknown


def test_no_gpu_and_nothing_seen_are_not_the_same() -> None:
    assert (judge(Memory(), (), {}, 0.0).standings[NODE].code) == "NoGpu"
    blind = judge(Memory(), (), {}, 0.0, is_blind=True).standings[NODE]
    assert (blind.state, blind.code) == (State.Unknown, "NotSeen")


MINUTES = st.integers(0, 40)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_a_latched_device_never_comes_back_by_itself(looks: list[tuple[bool, bool]]) -> None:
    """Whatever is seen or not in between, and whenever."""
    memory, latched = Memory(), False
    for number, (is_lost, is_slow) in enumerate(looks):
        signals = [Signal(GPU, "Lost", LOST)] * is_lost + [Signal(GPU, "Slow", SLOW)] * is_slow
        memory = after(memory, 1000.0 + 30 * number, *signals)
        latched = latched or is_lost
        assert (memory.standings[GPU].state is State.Unfit) == latched
        assert len({fault.key for fault in memory.faults}) == len(memory.faults)


# ---- rulings


def finding(effect: Effect, **how: object) -> Finding:
    code = Code(
        "X", Layer.L0, "hw-fault", Severity.Critical, effect, "t", "m", "k", "d", "c", Fix((), "", ""), (), ()
    )  # fmt: skip
    return code.finding("cause", how.pop("confidence", ESTABLISHED), [Origin(text="t")], **how)  # type: ignore[arg-type]


def test_sure_and_severe_faults_rule_as_written() -> None:
    assert ruling_of(finding(Effect.DeviceGone)) == BY_EFFECT[Effect.DeviceGone]
    assert BY_EFFECT[Effect.DeviceGone].until is Until.Reboot
    assert BY_EFFECT[Effect.DeviceUnfit].until is Until.Reset


@pytest.mark.parametrize(
    "how", [{"confidence": POSSIBLE}, {"severity": Severity.Warning}], ids=["not sure", "not severe"]
)
def test_what_is_not_sure_or_not_severe_takes_no_device_out(how: dict[str, object]) -> None:
    ruling = ruling_of(finding(Effect.DeviceUnfit, **how))
    assert ruling is not None and (ruling.state, ruling.until) == (State.Suspect, Until.Gone)


def test_every_code_with_a_ruling_of_its_own_is_one_of_the_doctor() -> None:
    known = {code.name for rule in RULES for code in rule.codes}
    assert set(BY_CODE) <= known
    assert PLUGIN_SILENT in known, "the agent and the doctor call it the same"


def test_configuration_of_the_runtime_takes_no_node_out() -> None:
    assert ruling_of(finding(Effect.PluginDown, layer=Layer.L2)) is None
    assert ruling_of(finding(Effect.PluginDown, layer=Layer.L3)) == BY_EFFECT[Effect.PluginDown]


def test_hints_news_and_matters_of_pods_say_nothing_of_fitness() -> None:
    assert ruling_of(finding(Effect.DeviceGone, confidence=WEAK)) is None
    assert ruling_of(finding(Effect.DeviceGone, severity=Severity.Info)) is None
    assert ruling_of(finding(Effect.PodsWait, layer=Layer.L5)) is None
    assert ruling_of(finding(Effect.DeviceGone, layer=Layer.L5)) is None
    assert ruling_of(finding(Effect.ProgramFails)) is None
    assert ruling_of(finding(Effect.LinkSlow, confidence=LIKELY)) == BY_EFFECT[Effect.LinkSlow]


# ---- counters that begin anew

ACTION = "NVRM: Xid (PCI:0000:10:00): 154, GPU recovery action changed"


def test_a_counter_that_fell_began_anew() -> None:
    assert (risen(None, 3), risen(3, 5), risen(5, 2), risen(2, 2)) == (3, 2, 2, 0)
    before = {GPU: {"uncorrected_volatile": 4}, OTHER: {"uncorrected_volatile": 1}}
    now = {GPU: {"uncorrected_volatile": 0}, OTHER: {"uncorrected_volatile": 1}}
    assert fell(before, now) == {GPU}
    assert fell({}, now) == set()
    assert counts_of([]) == {}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{ACTION} from 0x1 (GPU Reset Required) to 0x0 (None)", {GPU}),
        (f"{ACTION} from 0x0 (None) to 0x1 (GPU Reset Required)", set()),
        ("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 09:55:41 UTC 2025", {GPU, OTHER}),
        ("NVRM: Xid (PCI:0000:10:00): 31, pid=7, name=python, Ch 00000001", set()),
    ],
)
def test_the_log_says_when_a_device_was_set_back(line: str, expected: set[str]) -> None:
    said = list(scanner().scan(Piece(f"6,1,50000000,-;{line}\n".encode(), "/dev/kmsg", "dmesg")))
    found = resets_said(said, (GPU, OTHER))
    assert set(found) == expected
    assert set(found.values()) <= {50.0}
