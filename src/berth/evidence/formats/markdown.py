"""Markdown with the output of commands in fenced blocks, as reports and issues have it: each block is read as if it had
been collected by itself, and the prose around it as one piece more."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import Fact
from berth.evidence.formats import Format
from berth.evidence.piece import Piece

_BLOCK = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^ {0,3}\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (\S[^\n]*)\n", re.MULTILINE)
_HEADLINE = re.compile(rb"^#{1,4} \S|^\*\*\S", re.MULTILINE)


def looks_like(head: bytes) -> bool:
    return (b"\n```" in head or head.startswith(b"```")) and bool(_HEADLINE.search(head))


def read(piece: Piece) -> Iterator[Fact | Piece]:
    """Blocks, named by the command that they begin with; then what is left."""
    text, prose, end = piece.text, [], 0
    for found in _BLOCK.finditer(text):
        prose.append(text[end : found.start()])
        end = found.end()
        block = found[2]
        if command := _COMMAND.match(block):
            block = block[command.end() :]
        source = f"{piece.source}: {command[1]}" if command else piece.source
        if block.strip():
            yield Piece(block.encode(), source, "", piece.node, piece.pod, piece.taken_s)
    prose.append(text[end:])
    rest = "\n".join(prose)
    if rest.strip():
        yield Piece(rest.replace("```", "").encode(), piece.source, piece.kind, piece.node, piece.pod, piece.taken_s)


FORMAT = Format("markdown", (), looks_like, read, is_opaque=True)
