"""Evidence in files: one text, a folder of command outputs, a must-gather, a bug report, archives of them, compressed
or not.

What a file is decides its content; its name only helps: whose node it is, and which tool wrote it.
"""

from __future__ import annotations

import mmap
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from berth.base.errors import UNREADABLE, BadInput
from berth.evidence.damage import DAMAGED, ENDING
from berth.evidence.formats.objects import CUT_OUT
from berth.evidence.piece import Piece
from berth.sources import dump_json
from berth.sources.dump_files import packed_as, unpack_first
from berth.sources.evidence_packed import LARGEST_BYTES, is_archive, members, unpacked

STDIN = "-"
MAP_FROM_BYTES = 8 * 2**20
DEEPEST = 4  # archives in archives

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SKIPPED = (
    ".png", ".jpg", ".svg", ".pyc", ".so", ".bin", ".pcap", ".db", ".ko", ".ko.xz", ".ko.zst", ".jar", ".whl",
    ".docx", ".xlsx", ".pptx",
)  # fmt: skip

# Who wrote a file, by its name. The first that is found counts.
_KINDS: tuple[tuple[str, str], ...] = (
    ("nvidia-bug-report", "bug-report"),
    ("gpu_device_usage", "nvidia-smi"),
    ("nvidia-smi", "nvidia-smi"),
    ("fabricmanager", "fabricmanager-log"),
    ("dmesg", "dmesg"),
    ("kern.log", "dmesg"),
    ("kmsg", "dmesg"),
    ("journal", "host"),
    ("kubelet_internal_checkpoint", "kubelet-checkpoint"),
    ("kubelet", "kubelet-log"),
    ("device-plugin", "plugin-log"),
    ("container-toolkit", "plugin-log"),
    ("driver-daemonset", "plugin-log"),
    ("operator-validator", "plugin-log"),
    ("feature-discovery", "plugin-log"),
    ("mig-manager", "mig-log"),
    ("dcgm", "dcgm-log"),
    ("gpu_operator", "operator-log"),
    ("containerd", "containerd-config"),
    ("crio", "crio-config"),
    ("cdi", "cdi"),
    ("lspci", "lspci"),
    ("lsmod", "lsmod"),
    ("nccl", "nccl-log"),
    ("scheduler", "scheduler-log"),
    ("events", "pod-events"),
)
_NODE = re.compile(r"(?:nvidia-bug-report|gpu_device_usage)_(?P<node>[a-z0-9][a-z0-9.-]*?)\.log")
_FOLDER_OF_NODE = re.compile(r"(?:^|/)nodes?/(?P<node>[a-z0-9][a-z0-9.-]*)/")


def pieces_of(path: str) -> Iterator[Piece]:
    """The pieces of a path, one in memory at a time. What could not be read of it is their damage.

    Raises BadInput with exit code 3 where there is nothing to read.
    """
    if path == STDIN:
        if sys.stdin is None:
            raise BadInput("standard input", "it is closed.", "Pipe the evidence into it, or name a file.", UNREADABLE)
        yield from pieces_in("standard input", sys.stdin.buffer.read(LARGEST_BYTES + 1))
        return
    root = Path(path)
    try:
        if root.is_dir():
            files = sorted(one for one in root.rglob("*") if one.is_file())
            if not files:
                raise BadInput(path, "the folder is empty.", "Name the folder that holds the evidence.", UNREADABLE)
            for file in files:
                name = str(file.relative_to(root))
                if name.lower().endswith(_SKIPPED):
                    continue
                try:
                    yield from _of_file(file, name, DEEPEST - 1)
                except OSError as error:
                    yield Piece(b"", name, damage=f"it could not be read: {error.strerror}")
            return
        yield from _of_file(root, root.name, DEEPEST)
    except FileNotFoundError:
        raise BadInput(path, "there is no such file or folder.", "Name what holds the evidence.", UNREADABLE) from None
    except OSError as error:
        raise BadInput(path, f"it cannot be read: {error.strerror}.", "Make it readable.", UNREADABLE) from None


def _of_file(path: Path, name: str, deeper: int) -> Iterator[Piece]:
    """A large list of objects is mapped and cut, not read: it never lies in memory whole."""
    with path.open("rb") as stream:
        if path.stat().st_size < MAP_FROM_BYTES or not dump_json.is_printed(stream.read(dump_json.HEADER_BYTES)):
            stream.seek(0)
            yield from pieces_in(name, stream.read(LARGEST_BYTES + 1), deeper)
            return
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for text in dump_json.cut(content):
                yield Piece(text, name, CUT_OUT)


def pieces_in(name: str, raw: bytes, deeper: int = DEEPEST) -> Iterator[Piece]:
    """The pieces of one file's bytes: of an archive each of its files. What is missing stands in the piece."""
    name, raw, damage = unpacked(name, raw)
    if (packed := packed_as(raw, is_foreign=True)) is not None:
        if deeper == DEEPEST:
            raise unpack_first(name, packed)
        damage = f"it is {packed}, and was not read"
    elif not is_archive(raw):
        damage = damage or (DAMAGED if name.endswith(ENDING) else "")
        if raw.strip() or damage:
            yield Piece(decoded(raw), name, _kind(name), _node(name), damage=damage)
        return
    elif deeper:
        for member, content, missing in members(raw, lambda file: not file.lower().endswith(_SKIPPED)):
            if missing:
                yield Piece(b"", member or name, damage=missing)
            if content:
                yield from pieces_in(member, content, deeper - 1)
    else:
        damage = "it is an archive in archives, and was not read"
    if damage:
        yield Piece(b"", name, damage=damage)


def decoded(raw: bytes) -> bytes:
    """As UTF-8: what Windows tools write is UTF-16."""
    if raw.startswith(_UTF16):
        return raw.decode("utf-16", "replace").encode("utf-8", "replace")
    return raw.removeprefix(b"\xef\xbb\xbf")


def _kind(name: str) -> str:
    file = name.lower()
    return next((kind for part, kind in _KINDS if part in file), "")


def _node(name: str) -> str:
    found = _NODE.search(name) or _FOLDER_OF_NODE.search(name)
    return found["node"] if found else ""
