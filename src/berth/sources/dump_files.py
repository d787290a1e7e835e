"""The files of a dump: one file, a folder of them, or standard input; gzip or not, any Unicode encoding.

Large files are mapped, not read, so that memory stays bounded by what one object needs.
"""

from __future__ import annotations

import gzip
import mmap
import os
import re
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol

from berth.base.errors import UNREADABLE, BadInput

Content = bytes | mmap.mmap


class Readable(Protocol):
    """What can be read in pieces."""

    def read(self, size: int = -1, /) -> bytes: ...


STDIN = "-"
MAP_FROM_BYTES = 1 << 20  # smaller files are read: a mapping would cost more
LARGEST_BYTES = 64 << 30  # unpacked
SNIFF_BYTES = 4096
PROBE_BYTES = 1 << 16

_GZIP = b"\x1f\x8b"
# What is unpacked where any evidence is read (evidence_packed.py), and what nowhere is.
_OTHERS = {b"PK\x03\x04": "a zip archive", b"\xfd7zXZ": "compressed with xz", b"BZh": "compressed with bzip2"}
_FOREIGN = {b"\x28\xb5\x2f\xfd": "compressed with zstd", b"\x04\x22\x4d\x18": "compressed with lz4",
            b"7z\xbc\xaf\x27\x1c": "a 7z archive", b"Rar!\x1a\x07": "a rar archive"}  # fmt: skip
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_PROSE = frozenset((".md", ".rst", ".html"))  # what shows objects among its words is no dump
_OBJECT_SIGN = re.compile(
    rb'''(?m)^\s*(?:- )?["']?(?P<block>apiVersion|kind|items|metadata)["']?\s*:'''
    rb'''|"(?P<flow>apiVersion|kind|items|metadata)"\s*:'''
)


class DumpFile:
    """One file: `name` as people would write it, and its bytes."""

    def __init__(self, name: str, content: Content) -> None:
        self.name = name
        self.content = content


def files_of(path: str, skipped: list[str]) -> Iterator[DumpFile]:
    """The files of a dump, by name. In a folder, what holds no Kubernetes objects is put into `skipped`."""
    if path == STDIN:
        if sys.stdin is None:
            raise BadInput("standard input", "it is closed.", "Pipe the dump into it, or name a file.", UNREADABLE)
        yield DumpFile("standard input", _unpack("standard input", sys.stdin.buffer))
        return
    root = Path(path)
    try:
        is_folder = root.is_dir()
        if not is_folder:
            yield _open(root, path)
            return
        found = sorted(p for p in _walk(root))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    for file in found:
        name = str(file)
        try:
            if file.suffix not in _PROSE and is_of_objects(_head(file)):
                yield _open(file, name)
            else:
                skipped.append(name)
        except OSError as error:
            raise _unreadable(name, error) from None


def is_of_objects(head: bytes) -> bool:
    """The first bytes of a file among others hold a list, or an object with its kind. A chart's values, or lines of
    evidence, have one of the words and not the others."""
    found = {sign.group("block") or sign.group("flow") for sign in _OBJECT_SIGN.finditer(head)}
    return b"items" in found or (b"kind" in found and not found.isdisjoint((b"apiVersion", b"metadata")))


def looks_like_objects(head: bytes) -> bool:
    """The first bytes of a file read like Kubernetes objects in YAML or JSON."""
    return bool(_OBJECT_SIGN.search(head))


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root, onerror=_raise):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in names:
            file = Path(folder, name)
            if not name.startswith(".") and file.is_file():
                yield file


def _raise(error: OSError) -> None:
    """A folder that cannot be listed would be missing from the picture without a word."""
    raise error


def _head(file: Path) -> bytes:
    with file.open("rb") as stream:
        head = stream.read(SNIFF_BYTES)
        if head.startswith(_GZIP):
            stream.seek(0)
            try:
                head = gzip.GzipFile(fileobj=stream).read(SNIFF_BYTES)
            except (EOFError, OSError, zlib.error):
                return b""
    if head.startswith(_UTF16_BOMS):
        head = head[: len(head) // 2 * 2].decode("utf-16", "replace").encode()
    return head


def _open(file: Path, name: str) -> DumpFile:
    try:
        with file.open("rb") as stream:
            return DumpFile(name, _unpack(name, stream))
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from None


def _unpack(name: str, stream: IO[bytes]) -> Content:
    """Bytes in UTF-8 without byte order mark, carriage returns or compression."""
    start = stream.read(SNIFF_BYTES)
    if what := packed_as(start) or ("a tar archive" if start[257:262] == b"ustar" else None):
        raise unpack_first(name, what)
    content = _inflate(name, start, stream) if start.startswith(_GZIP) else _whole(name, start, stream)
    return _as_utf8(name, content)


def packed_as(start: bytes, *, is_foreign: bool = False) -> str | None:
    """What packs a file that begins so, other than gzip; `is_foreign` leaves out what the standard library unpacks."""
    known = _FOREIGN if is_foreign else {**_OTHERS, **_FOREIGN}
    return next((what for magic, what in known.items() if start.startswith(magic)), None)


def unpack_first(name: str, what: str) -> BadInput:
    """A refusal for what is packed in a way that is not read."""
    return BadInput(name, f"it is {what}.", "Unpack it and name the file or the folder.", UNREADABLE)


def _inflate(name: str, start: bytes, stream: IO[bytes]) -> Content:
    with tempfile.TemporaryFile() as spool:
        try:
            with gzip.GzipFile(fileobj=_Rejoined(start, stream)) as unzipped:  # type: ignore[call-overload]
                _copy(name, unzipped, spool)
        except (EOFError, OSError, zlib.error) as error:
            problem = f"the gzip data is damaged or cut off ({error})."
            raise BadInput(name, problem, "Copy the file again.", UNREADABLE) from None
        return _map(spool)


def _whole(name: str, start: bytes, stream: IO[bytes]) -> Content:
    size = _regular_size(stream)
    if size >= MAP_FROM_BYTES:
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    if size >= 0:
        return start + stream.read()
    with tempfile.TemporaryFile() as spool:
        _copy(name, _Rejoined(start, stream), spool)
        return _map(spool)


def _regular_size(stream: IO[bytes]) -> int:
    """Size of a regular file whose first bytes have just been read; -1 for pipes and the like."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return -1
    # Standard input may be a file that somebody has already read a part of.
    at_start = stat.S_ISREG(status.st_mode) and stream.tell() == min(SNIFF_BYTES, status.st_size)
    return status.st_size if at_start else -1


def _copy(name: str, source: Readable, target: IO[bytes]) -> None:
    copied = 0
    while chunk := source.read(1 << 20):
        copied += len(chunk)
        if copied > LARGEST_BYTES:
            raise BadInput(name, "it unpacks to more than 64 GiB.", "Dump fewer kinds.", UNREADABLE)
        target.write(chunk)


def _map(spool: IO[bytes]) -> Content:
    """The bytes of a temporary file; a mapping of them outlives the file itself."""
    spool.flush()
    size = spool.tell()
    if size < MAP_FROM_BYTES:
        spool.seek(0)
        return spool.read()
    return mmap.mmap(spool.fileno(), 0, access=mmap.ACCESS_READ)


class _Rejoined:
    """A stream with the bytes that were already taken from it."""

    def __init__(self, start: bytes, rest: IO[bytes]) -> None:
        self._start = start
        self._rest = rest

    def read(self, size: int = -1) -> bytes:
        if not self._start:
            return self._rest.read(size)
        if size < 0:
            taken, self._start = self._start, b""
            return taken + self._rest.read()
        taken, self._start = self._start[:size], self._start[size:]
        return taken


def _as_utf8(name: str, content: Content) -> Content:
    if content[:2] in _UTF16_BOMS:  # what PowerShell's redirection writes
        try:
            content = content[:].decode("utf-16").encode()
        except UnicodeDecodeError as error:
            raise BadInput(name, f"broken UTF-16 ({error.reason}).", "Save it as UTF-8.", UNREADABLE) from None
    probe = content[:PROBE_BYTES]
    if b"\0" in probe:
        raise BadInput(
            name, "binary data, not YAML or JSON.", "Dump with kubectl get nodes,pods -A -o json.", UNREADABLE
        )
    if probe.startswith(_UTF8_BOM):
        content = content[3:]
    if b"\r" in probe:
        content = content[:].replace(b"\r\n", b"\n")
    return content


def _unreadable(path: str, error: Exception) -> BadInput:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return BadInput(path, f"cannot be read: {reason}.", "Name a dump file, a folder or -.", UNREADABLE)
