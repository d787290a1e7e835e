"""Errors in a few lines that somebody has chosen: who says it, and what sort of error it is.

Whoever posts one line has looked for it in a log. Even where no rule knows the line, its writer tells the layer, and
the words that every program takes from the C library, the linker, the compiler or the API tell the sort. In a whole
log such lines come and go, so only short texts are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.remarks import GOES_ON, LAYER_OF_KIND, WARNS, layer_named
from berth.evidence.in_general import is_advice, what_happened, without_denied
from berth.evidence.piece import Piece

LARGEST = 3 * 1024  # bytes
MOST_LINES = 12

Sort = Literal["build", "permission", "library", "limit", "refused", "absent", "no-answer", "other"]

# Outputs of which many write: the line itself has to name its component.
_OF_MANY = ("host", "lspci", "nvidia-smi", "node-json")

# The first that a line holds counts: a missing library is a missing file, too.
_SORTS: tuple[tuple[Sort, str], ...] = (
    ("build", r"implicit declaration|incompatible pointer type|has no member named|undeclared|modpost|\bKbuild\b"
              r"|\bmake(?:\[\d+\])?: \*\*\*|\bdepmod\b|Module\.symvers|unresolved symbol"),
    ("permission", r"permission denied|operation not permitted|\bEACCES\b|\bEPERM\b|bad permissions|are too open"
                   r"|\bforbidden\b|\bcannot (?:list|get|create|watch|update|patch|delete) resource\b|unauthorized"),
    ("library", r"symbol lookup error|cannot find -l|undefined symbol|cannot open shared object|wrong ELF class"
                r"|\bGLIBC\w*_[\d.]+|invalid ELF header|DLL load failed|libcuda\S* (?:cannot|not|could not)"),
    ("limit", r"cannot allocate memory|out of memory|too many open files|no space left|resource temporarily unavailable"
              r"|\bENOMEM\b|\bENOSPC\b|\bEMFILE\b|RLIMIT_|\bulimit\b|quota exceeded"),
    ("refused", r"\bis invalid\b|\binvalid (?:value|argument|configuration|config|option|field)\b|unsupported value"
                r"|\bunmarshal|\bunknown (?:field|flag|option|\w+ (?:strategy|resource|mode|plugin))\b|failed to parse"
                r"|failed to (?:load|read) (?:net)?conf|must be (?:no more|at (?:least|most)|one of|greater|less)"),
    ("absent", r"no such file or directory|executable file not found|\bENOENT\b|does not exist|command not found"),
    ("no-answer", r"timed? ?out\b|deadline exceeded|connection (?:refused|reset|closed)|no route to host|unreachable"
                  r"|failed to connect|transport is closing|broken pipe"),
)  # fmt: skip
# At the level of an error, whatever it is.
_LEVEL = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL|Traceback|panic:)|\b\w+(?:Error|Exception): |\blevel=\"?(?:error|fatal)"
    r"|\"level\": ?\"(?:error|fatal)|^[EF]\d{4} |\berr(?:or)?=\"|^(?:error|fatal):|\bNVRM: .*\bfailed\b"
)
_BELOW = re.compile(r"\bINFO\b|\bDEBUG\b|\bTRACE\b|\blevel=\"?(?:info|debug)|\"level\": ?\"(?:info|debug)|^[ID]\d{4} ")


class ErrorSaid(Fact, frozen=True, kw_only=True):
    """The first error of a short text."""

    sort: Sort
    layer: int  # 0 to 6, of its writer


@cache
def _sorts() -> tuple[tuple[Sort, re.Pattern[str]], ...]:
    return tuple((sort, re.compile(words, re.IGNORECASE)) for sort, words in _SORTS)


def looks_like(head: bytes) -> object:
    return len(head) <= LARGEST and head.count(b"\n") < MOST_LINES


def read(piece: Piece) -> Iterator[Fact]:
    if piece.pod or piece.kind == "report":  # of a pod that was looked through; told by somebody in his own words
        return
    found: ErrorSaid | None = None
    for number, line in enumerate(piece.text.splitlines(), 1):
        if _BELOW.search(line):
            found = None  # it goes on: what failed before was tried again
            continue
        if found is not None:
            continue
        if WARNS.search(line) or GOES_ON.search(line) or is_advice(line) or "Readiness probe" in line:
            continue
        words = without_denied(what_happened(line) or "")
        sort = next((sort for sort, pattern in _sorts() if pattern.search(words)), None)
        if sort is None and not _LEVEL.search(words):
            continue
        layer = None if piece.kind in _OF_MANY else LAYER_OF_KIND.get(piece.kind)
        if layer is None and (layer := layer_named(line)) is None:
            continue
        origin = Origin(piece.source, piece.kind, line.strip()[:LONGEST_TEXT], line=number)
        found = ErrorSaid(origin=origin, sort=sort or "other", layer=layer)
    if found is not None:
        yield found


FORMAT = Format("an error", (), looks_like, read)
