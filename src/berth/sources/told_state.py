"""What a scheduler said of those that wait when it gave a dump of itself: the verdicts of its BerthState."""

from __future__ import annotations

from berth.kube.wire_state import BerthState, StateCause
from berth.model.told import Told, ToldCause
from berth.sources.inventory import seconds


def told_in(state: BerthState | None) -> dict[str, Told]:
    """Its word on each workload, by identity; nothing where no scheduler gave the dump, or it did not decide."""
    found: dict[str, Told] = {}
    for said in state.verdicts if state is not None else ():
        assert state is not None
        kind, _, key = said.workload.partition(" ")
        namespace, slash, name = key.partition("/")
        if slash:
            causes = tuple(_cause(cause) for cause in said.causes)
            found[said.workload] = Told(
                namespace, name, kind, verdict=said.verdict, causes=causes, at_s=seconds(state.at)
            )
    return found


def _cause(cause: StateCause) -> ToldCause:
    return ToldCause(
        cause.reason,
        cause.sentence,
        cause.need,
        cause.have,
        cause.unit,
        cause.where,
        cause.unlock,
        tuple(cause.blocks.items()),
        tuple((one.node, one.lacks) for one in cause.nearest),
        cause.proven,
        tuple(cause.codes.items()),
    )
