"""What values of the configuration must hold, beyond their type: ranges, names, and what goes together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from berth.app.scheduler.move_budget import DAYS, minute_of
from berth.app.scheduler.settings import Configuration
from berth.base.errors import BadInput
from berth.model.booking import has_zone

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("json", "text")

# What Kubernetes takes as a name (RFC 1123), and as the key of a label.
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAMESPACE = re.compile(r"(?=.{1,63}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_WORD = re.compile(r"(?=.{1,63}\Z)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_MOST_MS = 60_000.0
_MOST_WEIGHT, _MOST_HOURS = 10.0, 1e6
_MOST_HALF_LIFE, _MOST_WAIT_S, _MOST_AGING = 87_600.0, 86_400.0, 100.0
ORDERS = ("age", "least-left")
_LEAST_SILENT_S = 30.0  # agents write their heartbeat at most so often

Broken = tuple[str, str, str]  # (path, problem, remedy)


def check(value: Configuration, where: Callable[[str], str]) -> None:
    """Raises BadInput for the first rule that does not hold; `where` is the address of a path."""
    for path, problem, remedy in _broken(value):
        raise BadInput(where(path), problem, remedy)


def _broken(value: Configuration) -> Iterator[Broken]:
    yield from _names(value)
    yield from _election(value)
    if not 1 <= value.clients.in_flight <= 1024:
        yield "clients.inFlight", f"is {value.clients.in_flight}.", "Write 1 to 1024."
    if not 0 <= value.server.port <= 65535:
        yield "server.port", f"is {value.server.port}.", "Write 0 to 65535."
    yield from _levels(value)
    window, most = value.batch.window_ms, value.batch.most_ms
    for path, told in (("batch.windowMs", window), ("batch.mostMs", most)):
        if not 0 <= told <= _MOST_MS:
            yield path, f"is {told:g}.", f"Write 0 to {_MOST_MS:g} milliseconds."
    if window > most:
        yield "batch.windowMs", f"is {window:g}, and batch.mostMs {most:g}.", "windowMs is at most mostMs: 5, 50."
    if not value.node_agents.silent_seconds >= _LEAST_SILENT_S:
        told = value.node_agents.silent_seconds
        yield "nodeAgents.silentSeconds", f"is {told:g}.", f"Write {_LEAST_SILENT_S:g} or more, such as 300."
    yield from _shares(value)
    yield from _order(value)
    yield from _defragmentation(value)
    if value.log_level not in LEVELS:
        yield "logLevel", f"is {value.log_level!r}.", "Write debug, info, warning or error."
    if value.log_format not in FORMATS:
        yield "logFormat", f"is {value.log_format!r}.", "Write json or text."


def idle(value: Configuration, where: Callable[[str], str]) -> Iterator[str]:
    """A sentence for each value that somebody chose and that does nothing with the others, or not what it seems to."""
    for path, problem, remedy in _idle(value):
        yield f"{where(path)}: {problem} {remedy}"


def _idle(value: Configuration) -> Iterator[Broken]:
    usual = Configuration()
    order, moves = value.order, value.defragmentation
    if order.by == "age" and order.aging != usual.order.aging:
        remedy = "Write order.by: least-left, or leave aging out."
        yield "order.aging", f"is {order.aging:g}, and by age nothing goes by it.", remedy
    if not order.sets_aside and order.stop_wait_seconds != usual.order.stop_wait_seconds:
        remedy = "Write order.by: least-left and order.setsAside: true, or leave stopWaitSeconds out."
        yield "order.stopWaitSeconds", f"is {order.stop_wait_seconds:g}, and nobody is set aside.", remedy
    if moves.start and not moves.end:
        remedy = "Write defragmentation.end, such as 06:00 of the next day, or 24:00 if that is meant."
        yield "defragmentation.start", f"is {moves.start}, and no end is written: the window ends at midnight.", remedy
    for path, is_chosen in (("days", bool(moves.days)), ("start", bool(moves.start)), ("end", bool(moves.end))):
        if is_chosen and not moves.gpu_hours_per_day:
            remedy = "Write how many GPU hours moves may cost, such as 8, or leave the window out."
            yield f"defragmentation.{path}", "is written, and gpuHoursPerDay is 0: nothing moves.", remedy
            break
    if value.preemption.beyond_budgets and not value.preemption.enabled:
        remedy = "Write preemption.enabled: true, or leave beyondBudgets out."
        yield "preemption.beyondBudgets", "is true, and preemption.enabled false: nobody is asked to leave.", remedy
    half_life = value.shares.usage_half_life_hours
    if not value.shares.usage_weight and half_life != usual.shares.usage_half_life_hours:
        remedy = "Write shares.usageWeight: 1, or leave usageHalfLifeHours out."
        yield "shares.usageHalfLifeHours", f"is {half_life:g}, and usageWeight 0: the past does not count.", remedy


def _shares(value: Configuration) -> Iterator[Broken]:
    weight = value.shares.usage_weight
    if not 0 <= weight <= _MOST_WEIGHT:
        yield "shares.usageWeight", f"is {weight:g}.", f"Write 0 (the past does not count) to {_MOST_WEIGHT:g}."


    half_life = value.shares.usage_half_life_hours
    if not 0 <= half_life <= _MOST_HALF_LIFE:
        remedy = f"Write hours, 168 for a week, up to {_MOST_HALF_LIFE:g}, or 0 (nothing is forgotten)."
        yield "shares.usageHalfLifeHours", f"is {half_life:g}.", remedy


def _order(value: Configuration) -> Iterator[Broken]:
    order = value.order
    if order.by not in ORDERS:
        yield "order.by", f"is {order.by!r}.", "Write age or least-left."
    if order.sets_aside and order.by == "age":
        remedy = "Write order.by: least-left, or leave setsAside out: by age nobody is set aside."
        yield "order.setsAside", "is true, and order.by age.", remedy
    if order.sets_aside and not value.preemption.enabled:
        remedy = "Who is set aside is asked to leave: write preemption.enabled: true, or leave setsAside out."
        yield "order.setsAside", "is true, and preemption.enabled false.", remedy
    if not 0 <= order.stop_wait_seconds <= _MOST_WAIT_S:
        yield "order.stopWaitSeconds", f"is {order.stop_wait_seconds:g}.", f"Write 0 to {_MOST_WAIT_S:g}, such as 1000."
    if not 0 <= order.aging <= _MOST_AGING:
        yield "order.aging", f"is {order.aging:g}.", f"Write 0 (age does not count) to {_MOST_AGING:g}, such as 0.02."


def _defragmentation(value: Configuration) -> Iterator[Broken]:
    moves = value.defragmentation
    if not 0 <= moves.gpu_hours_per_day <= _MOST_HOURS:
        yield "defragmentation.gpuHoursPerDay", f"is {moves.gpu_hours_per_day:g}.", "Write 0 (nothing moves) or more."
    if moves.gpu_hours_per_day > 0 and not value.preemption.enabled:
        remedy = "Who moves is asked to leave: write preemption.enabled: true, or gpuHoursPerDay: 0."
        yield (
            "defragmentation.gpuHoursPerDay", f"is {moves.gpu_hours_per_day:g}, and preemption.enabled false.", remedy
        )  # fmt: skip
    for day in moves.days:
        if day not in DAYS:
            yield "defragmentation.days", f"has {day!r}.", f"Write some of {', '.join(DAYS)}, or none for all."
    for path, text in (("start", moves.start), ("end", moves.end)):
        if text and minute_of(text) is None:
            yield f"defragmentation.{path}", f"is {text!r}.", "Write a time of day, such as 02:00."
    if not has_zone(moves.time_zone):
        yield "defragmentation.timeZone", f"is {moves.time_zone!r}.", "Write a zone such as Europe/Berlin or UTC."


def _names(value: Configuration) -> Iterator[Broken]:
    if not value.scheduler_names:
        yield "schedulerNames", "is empty.", "Name one scheduler at least: [berth]."
    for name in value.scheduler_names:
        if not _NAME.fullmatch(name):
            remedy = "Write what pods have in spec.schedulerName: small letters, digits, - and ., such as berth."
            yield "schedulerNames", f"has the name {name!r}.", remedy
    for name in _twice(value.scheduler_names):
        yield "schedulerNames", f"has {name} twice.", "Leave one of them out."


def _election(value: Configuration) -> Iterator[Broken]:
    election = value.leader_election
    if not _NAME.fullmatch(election.name):
        remedy = "Write a name of a Lease: small letters, digits, - and ., such as berth."
        yield "leaderElection.name", f"is {election.name!r}.", remedy
    if election.namespace and not _NAMESPACE.fullmatch(election.namespace):
        remedy = "Write a namespace, such as berth-system, or leave it out for the one it runs in."
        yield "leaderElection.namespace", f"is {election.namespace!r}.", remedy
    retry, renew, lease = election.retry_seconds, election.renew_seconds, election.lease_seconds
    if not retry > 0:
        yield "leaderElection.retrySeconds", f"is {retry:g}.", "Write more than 0, such as 2."
    if not lease >= 1:
        yield "leaderElection.leaseSeconds", f"is {lease:g}.", "Write 1 or more, such as 15."
    rise = "retrySeconds, renewSeconds and leaseSeconds must rise in this order: 2, 10, 15."
    if not renew < lease:
        yield "leaderElection.renewSeconds", f"is {renew:g}, and leaseSeconds {lease:g}.", rise
    if not retry < renew:
        yield "leaderElection.retrySeconds", f"is {retry:g}, and renewSeconds {renew:g}.", rise


def _levels(value: Configuration) -> Iterator[Broken]:
    levels = value.topology.levels
    for level in levels:
        if not _WORD.fullmatch(level.name):
            yield "topology.levels", f"has a level named {level.name!r}.", "Write a word, such as rack."
        domain, slash, key = level.label.rpartition("/")
        if not _WORD.fullmatch(key) or (slash and not _NAME.fullmatch(domain)):
            remedy = "Write the key of a label of nodes: rack=example.com/rack, in a file {name: rack, label: …}."
            yield "topology.levels", f"has the label {level.label!r} for level {level.name}.", remedy
    for name in _twice(level.name for level in levels):
        yield "topology.levels", f"has the level {name} twice.", "Leave one of them out."
    for label in _twice(level.label for level in levels):
        yield "topology.levels", f"has the label {label} for two levels.", "Each level has a label of its own."


def _twice(names: Iterable[str]) -> list[str]:
    return [name for name, number in Counter(names).items() if number > 1]
