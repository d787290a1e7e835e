"""Tables of nccl-tests: the old form, the one with a column of repetitions, and behind the ranks that srun prints."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.piece import Piece

UNKNOWN = -1


class CollectiveTest(Fact, frozen=True, kw_only=True):
    """A run of one test. What was not printed is UNKNOWN or empty."""

    test: str = ""  # all_reduce_perf
    ranks: int = 0
    out_of_bounds: int = UNKNOWN
    is_out_of_bounds_failed: bool = False
    average_busbw_gbs: float = -1.0  # over all sizes: never compared between runs with other sizes
    is_bandwidth_failed: bool = False  # below the minimum that the run was given


class CollectiveRank(Fact, frozen=True, kw_only=True):
    rank: int
    host: str
    device: int
    bus: str
    gpu: str


class CollectiveRow(Fact, frozen=True, kw_only=True):
    """One size. Bandwidths in GB/s, times in microseconds; out of place first, then in place."""

    size_bytes: int
    elements: int
    dtype: str
    operation: str
    root: int
    time_us: float
    algbw_gbs: float
    busbw_gbs: float
    wrong: int = UNKNOWN
    in_place_time_us: float = -1.0
    in_place_algbw_gbs: float = -1.0
    in_place_busbw_gbs: float = -1.0
    in_place_wrong: int = UNKNOWN
    repetitions: int = UNKNOWN


_NUMBER = r"(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_ROW = re.compile(
    rf"^(?:\d+: |\[[\d,]+\]<std\w+>: ?)?\s*(\d+)\s+(\d+)\s+([a-z]\w+)\s+(\w+)\s+(-?\d+)"
    rf"\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s+(\d+|N/A)"
    rf"(?:\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s+(\d+|N/A))?(?:\s+(\d+))?\s*$"
)
_NAME = re.compile(r"Collective test starting: (\w+)")
_RANK = re.compile(r"Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+)\s+device\s+(\d+) \[(\S+)\]\s*(.*)")
_BOUNDS = re.compile(r"Out of bounds values\s*:\s*(\d+)\s*(OK|FAILED)?")
_AVERAGE = re.compile(r"Avg bus bandwidth\s*:\s*([\d.]+)\s*(FAILED)?")


def looks_like(head: bytes) -> bool:
    return b"busbw" in head or b"Avg bus bandwidth" in head or b"Out of bounds values" in head


def read(piece: Piece) -> Iterator[Fact]:
    test, ranks = "", 0
    bounds, average = UNKNOWN, -1.0
    is_bounds_failed = is_slow = has_end = False
    last = piece_line = 0
    text = ""
    for number, line in enumerate(piece.text.splitlines(), 1):
        origin = Origin(
            piece.source, piece.kind, line.strip()[:LONGEST_TEXT], line=number, node=piece.node, pod=piece.pod
        )
        if row := _ROW.match(line):
            yield _row(row, origin)
        elif name := _NAME.search(line):
            test = name[1]
        elif rank := _RANK.search(line):
            ranks += 1
            yield CollectiveRank(
                rank=int(rank[1]), host=rank[2], device=int(rank[3]), bus=rank[4], gpu=rank[5].strip(), origin=origin
            )
        elif found := _BOUNDS.search(line):
            bounds, is_bounds_failed, has_end = int(found[1]), found[2] == "FAILED", True
            last, text = number, line
        elif found := _AVERAGE.search(line):
            average, is_slow, has_end = float(found[1]), found[2] == "FAILED", True
            if is_slow or not is_bounds_failed:
                last, text = number, line
    piece_line = last
    if has_end:
        yield CollectiveTest(
            test=test,
            ranks=ranks,
            out_of_bounds=bounds,
            is_out_of_bounds_failed=is_bounds_failed,
            average_busbw_gbs=average,
            is_bandwidth_failed=is_slow,
            origin=Origin(piece.source, piece.kind, text.strip(), line=piece_line, node=piece.node, pod=piece.pod),
        )


def _row(found: re.Match[str], origin: Origin) -> CollectiveRow:
    size, elements, dtype, operation, root, time, algbw, busbw, wrong, time2, algbw2, busbw2, wrong2, repetitions = (
        found.groups()
    )
    return CollectiveRow(
        size_bytes=int(size),
        elements=int(elements),
        dtype=dtype,
        operation=operation,
        root=int(root),
        time_us=float(time),
        algbw_gbs=float(algbw),
        busbw_gbs=float(busbw),
        wrong=_count(wrong),
        in_place_time_us=float(time2 or -1),
        in_place_algbw_gbs=float(algbw2 or -1),
        in_place_busbw_gbs=float(busbw2 or -1),
        in_place_wrong=_count(wrong2),
        repetitions=int(repetitions or UNKNOWN),
        origin=origin,
    )


def _count(words: str | None) -> int:
    return int(words) if words and words.isdigit() else UNKNOWN


FORMAT = Format("nccl-tests", ("nccl-tests",), looks_like, read)
