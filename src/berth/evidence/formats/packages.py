"""Packages that a machine has (dpkg -l, rpm -qa), and what an image demands of the driver (NVIDIA_REQUIRE_CUDA).

Versions known: dpkg 1.17 to 1.22, rpm 4.11 to 4.20; of `dpkg -l` what is installed (`ii`, `hi`), nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.piece import Piece

_NAMES = r"(?:nvidia-(?:fabric-?manager|imex)|libnvidia-nscq|nvlsm)"
_PACKAGE = re.compile(
    rf"(?m)^(?:[ih]i\s+(?P<name>{_NAMES}(?:-\d+)?)(?::\w+)?\s+(?:\d+:)?(?P<version>\d{{3,4}}\.\d+(?:\.\d+)?)[^\s]*\s"
    rf"|(?P<rpm>{_NAMES}(?:-\d+)?)-(?:\d+:)?(?P<of_rpm>\d{{3,4}}\.\d+(?:\.\d+)?)-\d+[\w.~+]*\s*$)"
)
_HEAD = re.compile(_PACKAGE.pattern.encode())
_DEMAND = re.compile(r"NVIDIA_REQUIRE_CUDA[\"']?\s*[=:]\s*[\"']?(?P<demand>cuda[<>=][^\"'\n]{1,8000})")
_WORDS = (b"fabricmanager", b"fabric-manager", b"nvidia-imex", b"nvidia-nscq", b"nvlsm")


class PackageSeen(Fact, frozen=True, kw_only=True):
    """A package that is installed."""

    name: str  # "nvidia-fabricmanager-570"
    version: str  # "570.133.20", without the distribution's own number


class CudaRequired(Fact, frozen=True, kw_only=True):
    """NVIDIA_REQUIRE_CUDA of an image or container."""

    requirement: str  # "cuda>=13.0 brand=tesla,driver>=535,driver<536"


def lists_packages(head: bytes) -> object:
    return any(word in head for word in _WORDS) and _HEAD.search(head)


def read_packages(piece: Piece) -> Iterator[Fact]:
    for found in _PACKAGE.finditer(piece.text):
        yield PackageSeen(
            origin=_origin(piece, found),
            name=found["name"] or found["rpm"],
            version=found["version"] or found["of_rpm"],
        )


def demands(head: bytes) -> object:
    return b"NVIDIA_REQUIRE_CUDA" in head


def read_demands(piece: Piece) -> Iterator[Fact]:
    for found in _DEMAND.finditer(piece.text):
        yield CudaRequired(origin=_origin(piece, found), requirement=found["demand"].strip())


def _origin(piece: Piece, found: re.Match[str]) -> Origin:
    line = piece.text.count("\n", 0, found.start()) + 1
    text = " ".join(found[0].split())[:LONGEST_TEXT]
    return Origin(piece.source, piece.kind or "host", text, line=line, node=piece.node, pod=piece.pod)


PACKAGES = Format("packages that are installed", ("host",), lists_packages, read_packages)
DEMANDS = Format("demands of an image", (), demands, read_demands)
