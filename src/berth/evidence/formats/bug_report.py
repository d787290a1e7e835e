"""nvidia-bug-report.sh: sections between lines of underscores, each the output of a command or the content of a file.

Versions: the script of the 450 to 615 drivers. Each section begins with `*** path` and `*** ls: …`, or with the command
line itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import Fact
from berth.evidence.formats import Format
from berth.evidence.piece import Piece

_START = re.compile(rb"Start of NVIDIA bug report log file|nvidia-bug-report\.sh Version:")
_RULE = re.compile(rb"(?m)^_{20,}\s*$")
_LONGEST_HEAD = 1024
_TITLE = re.compile(rb"^(?:\*\*\* )?(?P<title>[^\n]{1,200})")

# What a section is, by its title.
_KINDS: tuple[tuple[bytes, str], ...] = (
    (b"nvidia-smi nvlink", "nvidia-smi"),
    (b"nvidia-smi", "nvidia-smi"),
    (b"lspci", "lspci"),
    (b"lsmod", "lsmod"),
    (b"/proc/modules", "lsmod"),
    (b"dmesg", "dmesg"),
    (b"kernel log", "dmesg"),
    (b"/var/log/messages", "dmesg"),
    (b"/var/log/kern", "dmesg"),
    (b"journalctl", "dmesg"),
    (b"fabricmanager", "fabricmanager-log"),
    (b"dmidecode", "dmidecode"),
)


def read(piece: Piece) -> Iterator[Fact | Piece]:
    """Each section as a piece of its own."""
    begin = 0
    for end, following in (*(found.span() for found in _RULE.finditer(piece.raw)), (len(piece.raw), len(piece.raw))):
        section = piece.raw[begin:end]
        begin = following
        text = section[:_LONGEST_HEAD].lstrip()
        if not text:
            continue
        found = _TITLE.match(text)
        title = found["title"] if found else b""
        kind = next((kind for part, kind in _KINDS if part in title.lower()), "host")
        name = title.decode("utf-8", "replace").strip()
        yield Piece(section, f"{piece.source}: {name}"[:200], kind, piece.node, piece.pod, piece.taken_s)


BUG_REPORT = Format("nvidia-bug-report", ("bug-report",), _START.search, read, is_opaque=True)
