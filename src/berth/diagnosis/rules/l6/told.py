"""L6. What nobody but a person says of a job over several GPUs: where it hangs, and what helped."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Rule
from berth.diagnosis.heard import by_place, heard, value
from berth.diagnosis.rules.l6 import connections, host_limits, peer_access
from berth.diagnosis.words import POSSIBLE
from berth.evidence.facts import Facts

GUESS = 0.5  # the usual reason for it
FIRST = 0.55  # it says more than that somebody waited

# What somebody says to have helped → what that says.
_HELPED: tuple[tuple[str, Code, str], ...] = (
    (
        "told.interface_helps",
        connections.UNREACHABLE,
        "It works with another interface: the one before led nowhere.",
    ),
    ("told.nodes_apart", connections.UNREACHABLE, "The machines do not reach each other, as somebody saw."),
    ("told.shared_memory_helps", host_limits.SHM, "It works with more shared memory, or with less need of it."),
    ("told.locked_memory_helps", host_limits.LOCKED, "It works with a higher limit of locked memory."),
)
# A component says itself what is wrong.
_SAID = ("nccl.", "efa.", "dist.", "rdma.", "cuda.", "app.", "kernel.xid", "told.")
_TOLD_ONLY = (
    "nccl.nodes_hang_told", "nccl.parallel_hangs_told", "nccl.setting", "nccl.begun", "nccl.bootstrap_interface",
    "nccl.proxy_call_failed",
    "nccl.sockets_used", "nccl.socket_listed", "nccl.no_ib", "nccl.gdr_enabled",
    "nccl.peer_closed", "nccl.one_works_told", "nccl.socket_returned", "dist.watchdog", "nccl.plain_error",
)  # fmt: skip


def is_said_better(facts: Facts) -> bool:
    """Whether a component says itself what is wrong with a program or a job."""
    return any(said.message not in _TOLD_ONLY for said in facts.said(*_SAID))


def find(facts: Facts) -> Iterator[Answer]:
    for message, code, cause in _HELPED:
        yield from heard(facts, code, (message,), cause, POSSIBLE)
    if is_said_better(facts):
        return
    yield from heard(
        facts,
        connections.UNREACHABLE,
        ("nccl.nodes_hang_told", "nccl.proxy_call_failed"),
        "A job over several machines does not go on: mostly they do not reach each other on the interface or ports "
        "that it uses.",
        GUESS,
    )
    yield from heard(
        facts, connections.UNREACHABLE, ("nccl.socket_returned",), "A connection between ranks failed.", FIRST
    )
    within = any(facts.said("nccl.one_works_told", "nccl.parallel_hangs_told")) or any(
        "localRank" in said.origin.text for said in facts.said("nccl.peer_closed")
    )
    for node, pod, found in by_place(facts.said("dist.watchdog") if within else ()):
        # Nothing worked even once: the way, not the program.
        if all(value(said, "sequence") == "1" for said in found):
            yield peer_access.BLOCKED.finding(
                "The very first collective did not end.", FIRST, found, node=node, pod=pod
            )


RULE = Rule((), find)
