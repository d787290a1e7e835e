"""`nvidia-smi mig -lgip`, `-lgipp`, `-lgi` and `-lci`: profiles with what is left of them, placements, instances."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from berth.evidence.fact import Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.line_prefix import bare_lines
from berth.evidence.formats.smi_facts import MigInstanceSeen, MigProfileSeen
from berth.evidence.piece import Piece

_PROFILE = re.compile(
    r"^\s*\|\s*(?P<gpu>\d+)\s+MIG (?P<profile>\S+)\s+(?P<id>\d+)\s+(?P<free>\d+)/(?P<total>\d+)\s+"
    r"(?P<memory>\d+(?:\.\d+)?)\s+\S+\s+(?P<sm>\d+)\s"
)
_PLACEMENT = re.compile(
    r"^\s*GPU\s+(?P<gpu>\d+) Profile ID\s+(?P<id>\d+) Placements?\s*:\s*\{(?P<starts>[\d,\s]*)\}:(?P<size>\d+)"
)
_GPU_INSTANCE = re.compile(
    r"^\s*\|\s*(?P<gpu>\d+)\s+MIG (?P<profile>\S+)\s+(?P<id>\d+)\s+(?P<gi>\d+)\s+(?P<start>\d+):(?P<size>\d+)\s*\|"
)
_COMPUTE_INSTANCE = re.compile(
    r"^\s*\|\s*(?P<gpu>\d+)\s+(?P<gi>\d+)\s+MIG (?P<profile>\S+)\s+(?P<id>\d+)\s+(?P<ci>\d+)\s+"
    r"(?P<start>\d+):(?P<size>\d+)\s*\|"
)


def looks_like(head: bytes) -> bool:
    return any(
        words in head for words in (b"instance profiles:", b"GPU instances:", b"ompute instances:", b"Placement")
    )


def read(piece: Piece) -> Iterator[Fact]:
    profiles: dict[tuple[int, int], MigProfileSeen] = {}
    instances: list[MigInstanceSeen] = []
    for number, line in enumerate(bare_lines(piece), 1):
        origin = Origin(
            source=piece.source, kind=piece.kind, text=line.strip(), line=number, node=piece.node, pod=piece.pod
        )
        if found := _PROFILE.match(line):
            key = (int(found["gpu"]), int(found["id"]))
            before = profiles.get(key)
            profiles[key] = MigProfileSeen(
                origin=origin,
                gpu=key[0],
                profile=found["profile"],
                id=key[1],
                free=int(found["free"]),
                total=int(found["total"]),
                memory_gib=float(found["memory"]),
                multiprocessors=int(found["sm"]),
                starts=before.starts if before else (),
                size=before.size if before else None,
            )
        elif found := _PLACEMENT.match(line):
            key = (int(found["gpu"]), int(found["id"]))
            known = profiles.get(key) or MigProfileSeen(origin=origin, gpu=key[0], profile="", id=key[1])
            starts = tuple(int(start) for start in re.findall(r"\d+", found["starts"]))
            profiles[key] = replace(known, starts=starts, size=int(found["size"]))
        elif found := _GPU_INSTANCE.match(line) or _COMPUTE_INSTANCE.match(line):
            instances.append(
                MigInstanceSeen(
                    origin=origin,
                    gpu=int(found["gpu"]),
                    profile=found["profile"],
                    profile_id=int(found["id"]),
                    gi=int(found["gi"]),
                    ci=int(found["ci"]) if "ci" in found.groupdict() else None,
                    start=int(found["start"]),
                    size=int(found["size"]),
                )
            )
    yield from profiles.values()
    yield from instances


FORMAT = Format("nvidia-smi mig", ("nvidia-smi",), looks_like, read)
