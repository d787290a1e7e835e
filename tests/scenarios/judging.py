"""Holds a plan against what a scenario expects of it, and against what no plan may ever do."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from berth.model.cluster import Health
from berth.model.reasons import Answer, Block, Cause, Verdict
from berth.model.resources import PODS, get, is_accelerator
from berth.model.snapshot import Snapshot
from berth.model.topology import HOST_LABEL
from berth.model.workload import WHOLE
from berth.scheduling.plan import Bind, Plan, Rule

from .reading import Scenario, level_named, only

_PLACED = {"pods", "on", "onAnyOf", "notOn", "inOne", "domains", "devices", "sets", "perNode"}
_WAITS = {
    "verdict", "reason", "need", "have", "unit", "where", "unlock", "unlockNever", "says", "never", "also", "nodes",
    "nearest", "proven",
}  # fmt: skip


def faults(scenario: Scenario, plan: Plan) -> list[str]:
    """What is wrong with a plan, a sentence each; none where it is as it should be."""
    found = list(against_reality(scenario.snapshot, plan))
    found += against_politeness(scenario.snapshot, plan)
    for verdict in plan.verdicts.values():
        found += against_plain_english(verdict)
    return found + _against_expectation(scenario, plan)


# ---- what the scenario states


def _against_expectation(scenario: Scenario, plan: Plan) -> list[str]:
    snapshot, expect = scenario.snapshot, scenario.expect
    names = [w.name for w in snapshot.workloads]
    only(expect, {"placed", "order", "leave", "held", "hours", *names}, "expect")
    assert "placed" in expect, "expect says which workloads are placed, [] for none"
    found = []
    placed = sorted(names[w] for w in plan.placed.tolist())
    if placed != sorted(expect["placed"]):
        found.append(f"placed are {placed}, and {sorted(expect['placed'])} are expected; {_told(plan, names)}")
    if "order" in expect:
        order = list(dict.fromkeys(names[w] for w in plan.workload.tolist()))
        if order != expect["order"]:
            found.append(f"they are placed in the order {order}, and {expect['order']} is expected")
    leave = sorted(e.allocation.name for e in [*plan.evictions, *plan.vacating])
    if leave != sorted(expect.get("leave", [])):
        found.append(
            f"asked to leave are {leave}, and {sorted(expect.get('leave', []))} are expected; {_told(plan, names)}"
        )
    if "hours" in expect and abs(sum(e.gpu_hours for e in [*plan.evictions, *plan.vacating]) - expect["hours"]) > 0.01:
        found.append(f"{sum(e.gpu_hours for e in plan.evictions):.2f} GPU hours are lost, not {expect['hours']}")
    if "held" in expect:
        held: dict[str, dict[str, int]] = {}
        for hold in plan.holds:
            places = held.setdefault(hold.workload.rpartition("/")[2], {})
            for place in hold.places:
                places[place.node] = places.get(place.node, 0) + place.count
        if held != expect["held"]:
            found.append(f"held is {held}, and {expect['held']} is expected")
    for w, name in enumerate(names):
        wish = expect.get(name, {})
        only(wish, _PLACED | _WAITS, f"expect {name}")
        if set(wish) & _PLACED:
            found += _placement(name, wish, [b for b in plan.binds() if b.workload is snapshot.workloads[w]])
        if set(wish) & _WAITS:
            if w in plan.verdicts:
                found += _waiting(name, wish, plan.verdicts[w])
            else:
                found.append(f"{name} has no verdict")
    return found


def _told(plan: Plan, names: Sequence[str]) -> str:
    return "; ".join(f"{names[w]}: {v.message}" for w, v in plan.verdicts.items())


def _placement(name: str, wish: Mapping[str, Any], binds: list[Bind]) -> list[str]:
    found = []

    def compare(what: str, got: object, wanted: object) -> None:
        if got != wanted:
            found.append(f"{name}: {what} is {got}, and {wanted} is expected")

    on = Counter(b.node.name for b in binds)
    if "pods" in wish:
        compare("number of pods", len(binds), wish["pods"])
    if "on" in wish:
        compare("nodes used", sorted(on), sorted([wish["on"]] if isinstance(wish["on"], str) else wish["on"]))
    if "perNode" in wish:
        compare("pods on each node", dict(on), wish["perNode"])
    for node in on:
        if "onAnyOf" in wish and node not in wish["onAnyOf"]:
            found.append(f"{name}: a pod is on {node}, and only {wish['onAnyOf']} are right")
        if node in wish.get("notOn", ()):
            found.append(f"{name}: a pod is on {node}, where none belongs")
    if "inOne" in wish:
        compare(f"number of domains of level {wish['inOne']}", len(_domains(wish["inOne"], binds)), 1)
    for level, wanted in wish.get("domains", {}).items():
        compare(f"pods by {level}", dict(_domains(level, binds)), wanted)
    if "devices" in wish:
        devices: dict[str, list[int]] = defaultdict(list)
        for bind in binds:
            devices[bind.node.name] += bind.devices
        compare("devices", {n: sorted(d) for n, d in devices.items()}, wish["devices"])
    for pod_set, inner in wish.get("sets", {}).items():
        only(inner, _PLACED, f"expect {name} {pod_set}")
        found += _placement(f"{name}, {pod_set}", inner, [b for b in binds if _set_name(b) == pod_set])
    return found


def _set_name(bind: Bind) -> str:
    return bind.workload.pod_sets[bind.pod_set].name


def _domains(level: str, binds: list[Bind]) -> Counter[str]:
    label = HOST_LABEL if level == "node" else level_named(level).label
    return Counter(b.node.labels.get(label, "none") for b in binds)


def _waiting(name: str, wish: Mapping[str, Any], verdict: Verdict) -> list[str]:
    found = []

    def compare(what: str, got: object) -> None:
        if what in wish and got != wish[what]:
            found.append(f"{name}: {what} is {got!r}, and {wish[what]!r} is expected; {_in_full(verdict)}")

    compare("verdict", verdict.answer.value)
    if not verdict.causes:
        return [*found, f"{name}: the verdict has no cause"]
    first = verdict.causes[0]
    compare("reason", first.reason.name)
    for what in ("need", "have", "unit", "where", "proven"):
        compare(what, getattr(first, what))
    compare("also", [c.reason.name for c in verdict.causes[1:]])
    compare("nodes", {block.name: number for block, number in first.blocks})
    unlocks = " | ".join(first.unlock)
    for text in _each(wish.get("unlock")):
        if text not in unlocks:
            found.append(f"{name}: unlock does not say {text!r}; {_in_full(verdict)}")
    for text in _each(wish.get("unlockNever")):
        if text in unlocks:
            found.append(f"{name}: unlock says {text!r}, which is not so; {_in_full(verdict)}")
    for text in _each(wish.get("says")):
        if text not in first.sentence:
            found.append(f"{name}: the sentence does not say {text!r}; {_in_full(verdict)}")
    for text in _each(wish.get("never")):
        if text in first.sentence:
            found.append(f"{name}: the sentence says {text!r}; {_in_full(verdict)}")
    for node in _each(wish.get("nearest")):
        if node not in {n for n, _ in first.nearest}:
            found.append(f"{name}: {node} is not among the nearest nodes {first.nearest}")
    return found


def _each(written: Any) -> list[str]:
    return [str(text) for text in (written if isinstance(written, list) else [written])] if written is not None else []


def _in_full(verdict: Verdict) -> str:
    first = verdict.causes[0]
    return f"it says: {verdict.message} [need {first.need} have {first.have} {first.unit}] unlock: {first.unlock}"


# ---- what holds for every plan


def against_reality(snapshot: Snapshot, plan: Plan) -> list[str]:
    """Every workload is placed with its minimum or waits with a verdict, and no node or device is given twice."""
    found = []
    by_workload: dict[int, list[Bind]] = defaultdict(list)
    for w, bind in zip(plan.workload.tolist(), plan.binds(), strict=True):
        by_workload[w].append(bind)
    for w, workload in enumerate(snapshot.workloads):
        if w in by_workload and w in plan.verdicts:
            found.append(f"{workload.name} is placed and has a verdict")
        if w not in by_workload and w not in plan.verdicts:
            found.append(f"{workload.name} waits without a verdict")
        if w not in by_workload:
            continue
        sets = Counter(b.pod_set for b in by_workload[w])
        for s, pod_set in enumerate(workload.pod_sets):
            if not pod_set.min_count <= sets[s] <= pod_set.count:
                found.append(
                    f"{workload.name}: {sets[s]} pods of {pod_set.name} are placed, "
                    f"between {pod_set.min_count} and {pod_set.count} are right"
                )
    return found + _overbooked(snapshot, plan)


def against_politeness(snapshot: Snapshot, plan: Plan) -> list[str]:
    """Who is asked to leave may be asked, and for each that benefits room is held."""
    found = []
    for e in plan.evictions:
        a, gainer = e.allocation, snapshot.workloads[e.beneficiary]
        by_priority = e.rule not in (Rule.Reclaimed, Rule.Moved)
        if (by_priority and a.priority >= gainer.priority) or a.is_daemon or a.is_ending or a.preemptible is False:
            found.append(f"{a.name} must not be asked to leave for {gainer.name}")
        if gainer.identity not in {h.workload for h in plan.holds} or e.beneficiary not in plan.verdicts:
            found.append(f"{a.name} leaves for {gainer.name}, for whom no room is held")
    names = Counter(e.allocation.name for e in plan.evictions)
    return found + [f"{name} is asked to leave {n} times" for name, n in names.items() if n > 1]


def _overbooked(snapshot: Snapshot, plan: Plan) -> list[str]:
    found = []
    free = {n.name: Counter(dict(n.allocatable)) for n in snapshot.nodes}
    running: Counter[str] = Counter()
    for a in snapshot.allocations:
        if a.node in free:
            running[a.node] += 1
            free[a.node].subtract(
                {r: n for r, n in a.pod_class.requests if not (is_accelerator(r) and a.pod_class.gpu_milli < WHOLE)}
            )
    devices: Counter[tuple[str, int]] = Counter()
    for a in snapshot.allocations:
        for g in a.devices:
            devices[a.node, g] += a.pod_class.gpu_milli
    touched = set()
    for bind in plan.binds():
        pod_class = bind.workload.pod_sets[bind.pod_set].pod_class
        node = bind.node
        touched.add(node.name)
        running[node.name] += 1
        whole = pod_class.gpu_milli == WHOLE
        free[node.name].subtract({r: n for r, n in pod_class.requests if whole or not is_accelerator(r)})
        asked = get(pod_class.requests, node.device_resource)
        if asked and len(set(bind.devices)) != asked:
            found.append(f"{bind.workload.name}: {asked} GPUs asked for on {node.name}, given are {bind.devices}")
        for g in bind.devices:
            devices[node.name, g] += pod_class.gpu_milli
            if node.devices[g].health not in (Health.Fit, Health.Suspect):
                found.append(f"{bind.workload.name} is given GPU {g} of {node.name}, which is unfit")
            if devices[node.name, g] > WHOLE:
                found.append(f"GPU {g} of {node.name} is given out {devices[node.name, g]} thousandths")
    for name in touched:
        over = {r: -n for r, n in free[name].items() if n < 0}
        if over:
            found.append(f"{name} is overbooked by {over}")
        most = get(next(n for n in snapshot.nodes if n.name == name).allocatable, PODS)
        if running[name] > most:
            found.append(f"{name} holds {running[name]} pods of {most}")
    return found


# ---- what holds for every sentence

_NOT_BEFORE = r"(?<![\d.,/-])"
_ONE = re.compile(
    _NOT_BEFORE + r"1 ((more |such |free )*(GPUs|pods|nodes|CPUs|racks|blocks|gates|partitions|replicas)\b"
    r"|(pod|node|GPU) (need|are|have|hold|lack|ask|carry|would be are)\b)"
)
_MANY = re.compile(
    _NOT_BEFORE + r"(?<!none of )([2-9]|\d\d+) ((more |such |free )*(GPU|pod|node|CPU)\b"
    r"|(pods|nodes|GPUs) (needs|is|has|holds|lacks|asks)\b)"
)
_NOISE = (
    (re.compile(r"(?<![\d.,])0 (more|GPUs released|GPUs frees)"), "speaks of releasing nothing"),
    (re.compile(r"asks for 0\b|(lacks?|for \d+) another resource"), "does not say what lacks"),
    (re.compile(r"moving 0\b"), "speaks of moving nothing"),
    (re.compile(r"(?<![\w.-])-\d"), "has a negative number"),
    (re.compile(r" {2}|\s[,;.:)]|\(\s"), "has stray space"),
    (re.compile(r"\b(None|nan|inf|True|False)\b"), "has a word of the code"),
    (re.compile(r"\b(GPU|pod|node) are\b|1 node of [\w ]* lack\b|GPUs could start"), "is no English"),
    (re.compile(r"[,;.:]{2}|[,:]$|: *$"), "has a stray comma or stop"),
    (re.compile(r"[{}]|<\w+\.|\(\)"), "has a leftover of formatting"),
    (re.compile(r"\b([a-z]\w+) \1\b(?!-)", re.I), "repeats a word"),
    (re.compile(r"46\d{16}|92\d{17}|9,223|4,611|4611686018427"), "has a number that stands for no bound"),
)


def against_plain_english(verdict: Verdict) -> list[str]:
    found = []
    if not verdict.causes:
        found.append(f"{verdict.workload}: a verdict without a cause")
    nevers = any(c.reason.answer is Answer.Never for c in verdict.causes)
    if verdict.causes and (verdict.answer is Answer.Never) != nevers:
        found.append(f"{verdict.workload}: the answer is {verdict.answer.value}, its reasons say otherwise")
    for cause in verdict.causes:
        near = [f"{node} {lack}" for node, lack in cause.nearest]
        for text in (cause.sentence, *cause.unlock, *near):
            found += [f"{text!r} {fault}" for fault in sentence_faults(text)]
        if not cause.sentence:
            found.append(f"{verdict.workload}: {cause.reason.name} has no sentence")
        found += _number_faults(cause)
    return found


def sentence_faults(text: str) -> list[str]:
    """What a reader would stumble over."""
    found = [f"says {m.group(0)!r}" for m in (_ONE.search(text), _MANY.search(text)) if m]
    return found + [fault for pattern, fault in _NOISE if pattern.search(text)]


_OF = re.compile(r"(?P<free>[\d.]+) of (?P<asked>[\d.]+) GPUs? free")


def _number_faults(cause: Cause) -> list[str]:
    found = []
    for node, lack in cause.nearest:
        if (m := _OF.search(lack)) and float(m["free"]) >= float(m["asked"]):
            found.append(f"{node} is said to lack something with {lack}")
    if cause.need < 0 or cause.have < 0:
        found.append(f"{cause.reason.name} has need {cause.need} and have {cause.have}: {cause.sentence}")
    if cause.need and cause.have >= cause.need:
        found.append(f"{cause.reason.name} has {cause.have} of the {cause.need} it needs: {cause.sentence}")
    if any(block is Block.Nothing or number <= 0 for block, number in cause.blocks):
        found.append(f"{cause.reason.name} counts nodes that nothing keeps off: {cause.blocks}")
    return found
