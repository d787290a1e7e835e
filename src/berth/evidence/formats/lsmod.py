"""lsmod and /proc/modules; and what people write of modules: `nvidia_peermem missing`, `nouveau 1716224 1`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.machine_facts import ModuleNoted, ModulesSeen
from berth.evidence.piece import Piece

# lsmod: `nvidia 56717312 188 nvidia_uvm,nvidia_modeset`; /proc/modules: `nvidia 56717312 188 nvidia_uvm, Live 0x…`
_ROW = re.compile(
    r"^(?P<name>[a-z][a-z0-9_]{1,40})\s+(?P<size>\d{3,9})\s+(?P<users>-?\d+)"
    r"(?:\s+(?P<by>(?!Live\b)[a-z0-9_,\-]+))?(?:\s+Live\b.*)?\s*$"
)
_HEAD = re.compile(
    rb"(?m)^Module\s+Size\s+Used by|^[a-z][a-z0-9_]{1,40}\s+\d{4,9}\s+-?\d+(?:\s+[a-z0-9_,\-]+)?(?:\s+Live\b.*)?\s*$"
)
_NAME = r"(?:nvidia\w*|nouveau|mlx5_\w+|ib_\w+|rdma_\w+|gdrdrv|vfio\w*|nv_peer_mem|i2c_\w+|drm\w*)"
_NOTED = re.compile(
    rf"(?P<names>\b{_NAME}(?:(?:,| and|,? or) {_NAME})*)\b(?: module)?s? (?:is |are )?"
    r"(?P<how>missing|absent|not loaded|not present|loaded|present)\b",
    re.IGNORECASE,
)
_WHOLE = 15  # rows from which on a listing without a heading is taken for a whole one


def looks_like(head: bytes) -> object:
    return _HEAD.search(head) or _NOTED.search(head[:4096].decode("utf-8", "replace"))


def read(piece: Piece) -> Iterator[Fact]:
    """The listing as one fact, and each module that a sentence names."""
    loaded: dict[str, tuple[str, ...]] = {}
    references: dict[str, int] = {}
    first, has_heading = 0, False
    for number, line in enumerate(piece.text.splitlines(), 1):
        has_heading = has_heading or line.startswith("Module  ")
        if row := _ROW.match(line.strip()):
            first = first or number
            loaded[row["name"]] = tuple(one for one in (row["by"] or "").split(",") if one and one != "-")
            references[row["name"]] = int(row["users"])
        elif noted := _NOTED.search(line[:400]):
            for name in re.findall(_NAME, noted["names"]):
                yield ModuleNoted(
                    origin=_origin(piece, number, line),
                    name=name,
                    is_loaded=noted["how"].lower() in ("loaded", "present"),
                )
    if loaded:
        rows = "\n".join(name for name in loaded if name.startswith(("nvidia", "nouveau", "vfio")))
        yield ModulesSeen(
            origin=_origin(piece, first, rows or next(iter(loaded))),
            loaded=loaded,
            references=references,
            is_whole=has_heading or len(loaded) >= _WHOLE,
        )


def _origin(piece: Piece, line: int, text: str) -> Origin:
    text = text.strip()[:300]
    return Origin(source=piece.source, kind=piece.kind, text=text, line=line, node=piece.node, pod=piece.pod)


FORMAT = Format("lsmod", (), looks_like, read)
