"""`berth ledger`: does the account equal the hardware, and where does it part?"""

from __future__ import annotations

import sys

import click

from berth.app.cli.options import Where, evidence_from, named, of_evidence, output
from berth.base.errors import BadInput


@click.command()
@click.argument("node", required=False, callback=named)
@of_evidence
@evidence_from
@output("table", "wide", "json", "yaml")
def ledger(node: str | None, where: Where, evidence: tuple[str, ...], output: str) -> None:
    """Host, plugin, node, request, container: five boundaries side by side, and the first at which they part.

    Counts for each node; each device for one NODE, or with -o wide. Partitions (MIG) and replicas (time-slicing, MPS)
    are rows under the device that they are of. What nobody looked at is a dash, not a zero.

    Exit code: 0 all are equal as far as they were seen, 1 they part somewhere, 2 usage, 3 nothing could be read.
    """
    from berth.app.cli.evidence import facts_for, see_all
    from berth.app.cli.frames import Frame, emit
    from berth.diagnosis.ledger import accounts
    from berth.views import ledger as view

    notes: list[str] = []
    facts, code = facts_for(output, where, evidence, notes, node or "")
    found = accounts(facts)
    if node is not None and not code:
        found = tuple(one for one in found if one.node == node)
        if not found:
            raise BadInput("", f"there is no node {node!r} with GPUs in what was read.", see_all(facts))
    if not found and not code and (where.dump is not None or evidence):
        notes.append("the account is made of nodes and pods of a dump, a NodeLedger, or what berth agent bundle keeps")
    frame = Frame(
        record=view.record(found, notes),
        draw=lambda screen, wide: view.show(found, screen, wide, one_node=node is not None),
        notes=tuple(notes),
        code=code or int(not all(one.is_equal for one in found)),
    )
    emit(frame, output)
    sys.exit(frame.code)
