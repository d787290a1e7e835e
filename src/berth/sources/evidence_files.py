"""Evidence in files: one text, a folder of command outputs, a must-gather, a bug report, archives of them, gzip or not.

What a file is decides its content; its name only helps: whose node it is, and which tool wrote it.
"""

from __future__ import annotations

import gzip
import io
import mmap
import re
import sys
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from berth.base.errors import UNREADABLE, BadInput
from berth.evidence.formats.objects import CUT_OUT
from berth.evidence.piece import KINDS, Piece
from berth.sources import dump_json

STDIN = "-"
MAP_FROM_BYTES = 8 * 2**20
LARGEST_BYTES = 512 * 2**20  # of one file, unpacked; what is longer is read so far and noted

_GZIP = b"\x1f\x8b"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SKIPPED = (".png", ".jpg", ".svg", ".pyc", ".so", ".bin", ".pcap", ".zip", ".db")

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


def pieces_of(path: str, notes: list[str]) -> Iterator[Piece]:
    """The pieces of a path, one in memory at a time. What was passed over ends in `notes`.

    Raises BadInput with exit code 3 where there is nothing to read.
    """
    if path == STDIN:
        if sys.stdin is None:
            raise BadInput("standard input", "it is closed.", "Pipe the evidence into it, or name a file.", UNREADABLE)
        yield from _unpacked("standard input", sys.stdin.buffer, notes)
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
                    yield from _of_file(file, name, notes)
                except OSError as error:
                    notes.append(f"{name} could not be read: {error.strerror}")
            return
        yield from _of_file(root, root.name, notes)
    except FileNotFoundError:
        raise BadInput(path, "there is no such file or folder.", "Name what holds the evidence.", UNREADABLE) from None
    except OSError as error:
        raise BadInput(path, f"it cannot be read: {error.strerror}.", "Make it readable.", UNREADABLE) from None


def evidence_of(raw: bytes, source: str) -> Iterator[Piece]:
    """What was given as evidence: JSON lines `{"kind": …, "text": …}`, or a text as it is.

    Raises BadInput with exit code 2 for a line of JSON that has a kind and no text.
    """
    lines = [line for line in raw.splitlines() if line.strip()]
    given = [one for line in lines if (one := _given(line)) is not None]
    if not lines or len(given) < len(lines):
        yield Piece(_decoded(raw), source, "")
        return
    for number, one in enumerate(given, 1):
        text = one.get("text")
        if not isinstance(text, str):
            where = f"{source}: line {number}: text"
            raise BadInput(where, f"is {text!r}: evidence is text.", 'Write {"kind": "dmesg", "text": "…"}.')
        kind = one.get("kind")
        node, pod = one.get("node"), one.get("pod")
        yield Piece(
            text.encode("utf-8", "surrogatepass"),
            f"{source}: line {number}" + (f" ({kind})" if kind else ""),
            kind if kind in KINDS else "",
            node if isinstance(node, str) else "",
            pod if isinstance(pod, str) else "",
        )


def _given(line: bytes) -> dict[str, object] | None:
    if not line.lstrip().startswith(b"{") or (b'"text"' not in line and b'"kind"' not in line):
        return None
    try:
        one = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    # A Kubernetes object on one line has a kind, too.
    return one if isinstance(one, dict) and "apiVersion" not in one and "metadata" not in one else None


def _of_file(path: Path, name: str, notes: list[str]) -> Iterator[Piece]:
    """A large list of objects is mapped and cut, not read: it never lies in memory whole."""
    with path.open("rb") as stream:
        if path.stat().st_size < MAP_FROM_BYTES or not dump_json.is_printed(stream.read(dump_json.HEADER_BYTES)):
            stream.seek(0)
            yield from _unpacked(name, stream, notes)
            return
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for text in dump_json.cut(content):
                yield Piece(text, name, CUT_OUT)


def _unpacked(name: str, stream: IO[bytes], notes: list[str]) -> Iterator[Piece]:
    raw = stream.read(LARGEST_BYTES + 1)
    if raw.startswith(_GZIP):
        raw = _gunzipped(name, raw, notes)
        name = name.removesuffix(".gz").removesuffix(".tgz")
    if len(raw) > LARGEST_BYTES:
        notes.append(f"{name} is longer than {LARGEST_BYTES >> 20} MiB; the rest was not read")
        raw = raw[:LARGEST_BYTES]
    if _is_tar(raw):
        yield from _of_tar(name, raw, notes)
        return
    if not raw.strip():
        return
    yield Piece(_decoded(raw), name, _kind(name), _node(name))


def _gunzipped(name: str, raw: bytes, notes: list[str]) -> bytes:
    """All that can be unpacked: an archive that is cut off gives what came before the cut."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            return file.read(LARGEST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        notes.append(f"{name} is cut off or damaged; what can be unpacked was read")
    try:
        return unpacker.decompress(raw, LARGEST_BYTES + 1)
    except zlib.error:
        return b""


def _is_tar(raw: bytes) -> bool:
    return raw[257:262] == b"ustar"


def _of_tar(name: str, raw: bytes, notes: list[str]) -> Iterator[Piece]:
    try:
        with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as archive:
            for member in archive:
                if not member.isfile() or member.name.lower().endswith(_SKIPPED):
                    continue
                file = archive.extractfile(member)
                if file is not None:
                    yield from _unpacked(member.name, file, notes)
    except (tarfile.TarError, EOFError, OSError):
        notes.append(f"{name} is cut off or damaged; what came before was read")


def _decoded(raw: bytes) -> bytes:
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
