"""What answers are called on a terminal, and how; known without the decision core."""

from __future__ import annotations

from collections.abc import Iterable

from berth.model.health import in_words
from berth.model.reasons import BLOCK_WORDS, Answer

WORDS = {
    Answer.Fits: ("FITS NOW", "bold green"),
    Answer.NotYet: ("NOT YET", "bold yellow"),
    Answer.Never: ("NEVER", "bold red"),
}
INDENT = 2
_BLOCKS = {block.name: words for block, words in BLOCK_WORDS.items()}


def nodes_words(blocks: Iterable[tuple[str, int]], codes: Iterable[tuple[str, int]]) -> str:
    """`3 unfit, 2 cordoned (found: Xid 79 on 2, remap pending on 1)`: nodes by what keeps a pod off them."""
    counts = ", ".join(f"{nodes:,} {_BLOCKS.get(block, block)}" for block, nodes in blocks)
    found = ", ".join(f"{in_words(code)} on {nodes:,}" for code, nodes in codes)
    return f"{counts} (found: {found})" if found else counts
