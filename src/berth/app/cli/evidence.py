"""Facts for `doctor` and `ledger`: of files, of texts, of a live cluster, as the options say."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from berth.app.cli.options import Where
from berth.app.cli.preserve import Preserved
from berth.app.cli.streams import say
from berth.base.errors import UNREADABLE, BadInput

if TYPE_CHECKING:
    from berth.app.cli.live import Connection
    from berth.evidence.facts import Facts
    from berth.evidence.piece import Piece

    Keep = Callable[[Iterable[Piece]], Iterable[Piece]]  # what is done with evidence before it is read

LARGEST_GIVEN = 1 << 20  # bytes of a file that may be evidence by hand: what is larger was collected


def facts_of(
    where: Where,
    evidence: tuple[str, ...],
    notes: list[str],
    target: str = "",
    keep_in: str | None = None,
    namespace: str = "",
) -> Facts:
    """What can be known. A live cluster is asked unless files or texts are given. `keep_in` is a folder that gets all
    of it as it was read.

    Raises BadInput, exit code 3, where nothing can be read; NothingRead where what was given holds no text.
    """
    from berth.evidence.read import read

    gc.disable()  # what is read stays until the command ends
    keep: Keep = Preserved(keep_in) if keep_in is not None else _as_they_are
    if where.dump is None and not evidence:
        return _live(where, notes, target, keep, namespace)
    seen = _Seen()
    facts = read(keep(seen.of(_pieces(where.dump, evidence, notes))))
    if not seen.a_text:
        given = ", ".join("standard input" if path == "-" else path for path in (where.dump, *evidence) if path)
        raise NothingRead(given, seen.problem, "Name a file that holds evidence, or a folder of such.", UNREADABLE)
    notes.extend(facts.notes())
    return facts


def facts_for(
    output: str, where: Where, evidence: tuple[str, ...], notes: list[str], target: str = "",
    keep_in: str | None = None, namespace: str = "",
) -> tuple[Facts, int]:  # fmt: skip
    """The same for a command that answers in `output`, and the exit code where it is not that of the answer: programs
    get their document also where what was given holds no text, and 3.
    """
    from berth.evidence.facts import Facts

    try:
        return facts_of(where, evidence, notes, target, keep_in, namespace), 0
    except NothingRead as problem:
        if output not in ("json", "yaml"):
            raise
        say(f"berth: {problem.sentence}")
        notes.append(problem.sentence)
        return Facts(), problem.exit_code


def see_all(facts: Facts) -> str:
    """The remedy for a name that is not in what was read, and what of it could not be read."""
    return "".join(("Leave it out to see all.", *(f" {note}." for note in facts.notes())))


class NothingRead(BadInput):
    """All that was given is empty, or no text."""


class _Seen:
    """Whether any of the pieces that go by is a text; else why not."""

    def __init__(self) -> None:
        self.a_text = False
        self.problem = "it is empty."

    def of(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        from berth.evidence.piece import is_text

        for piece in pieces:
            if not self.a_text:
                self.a_text = bool(piece.kind) or is_text(piece.raw)
                if piece.damage or piece.raw.strip(b"\0 \t\r\n"):
                    self.problem = f"{piece.damage or 'it is binary data, no text'}."
            yield piece


def _as_they_are(pieces: Iterable[Piece]) -> Iterable[Piece]:
    return pieces


def _pieces(source: str | None, evidence: tuple[str, ...], notes: list[str]) -> Iterator[Piece]:
    from berth.sources.evidence_files import STDIN, pieces_of
    from berth.sources.evidence_given import evidence_of, is_given

    for piece in pieces_of(source) if source is not None else ():
        if len(piece.raw) <= LARGEST_GIVEN and is_given(piece.raw):
            yield from evidence_of(piece.raw, piece.source, notes)
        else:
            yield piece
    for path in evidence:
        if path == STDIN:
            if sys.stdin is None:
                raise BadInput("standard input", "it is closed.", "Pipe the evidence into it.", UNREADABLE)
            yield from evidence_of(sys.stdin.buffer.read(), "standard input", notes)
            continue
        try:
            raw = Path(path).read_bytes()
        except OSError as error:
            problem = f"it cannot be read: {error.strerror}."
            raise BadInput(path, problem, "Name a file with evidence.", UNREADABLE) from None
        yield from evidence_of(raw, path, notes)


def _live(where: Where, notes: list[str], target: str, keep: Keep, namespace: str) -> Facts:
    from berth.app.cli.live import ask
    from berth.diagnosis.ledger import accounts
    from berth.evidence.facts import Facts
    from berth.evidence.formats.cluster_facts import NodeSeen, PodSeen
    from berth.evidence.read import read
    from berth.sources.evidence_live import logs_of, pieces_of, suspicious

    async def look(connection: Connection) -> Facts:
        facts = Facts()
        own = namespace or (target.partition("/")[0] if target.count("/") == 1 else "") or connection.access.namespace
        async for piece in pieces_of(connection.client, connection.served, notes, own):
            read(keep((piece,)), facts)
        if not facts.of(NodeSeen) and not facts.of(PodSeen):
            refused = "; ".join(notes) or "the cluster has no nodes"
            raise BadInput("", f"{refused}.", "Check with: kubectl auth can-i list nodes", UNREADABLE)
        pod = next((one for one in facts.of(PodSeen) if target and target in (one.key, one.name)), None)
        nodes = {account.node for account in accounts(facts) if not account.is_equal}
        nodes.update(one.name for one in facts.of(NodeSeen) if one.name == target)
        if pod is not None and pod.on:
            nodes.add(pod.on)
        wanted = suspicious(facts, frozenset(nodes), pod.key if pod else "")
        return read(keep(await logs_of(connection.client, wanted, notes)), facts)

    return ask(where, look)
