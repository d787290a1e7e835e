"""What is compressed, or an archive: unpacked as far as it can be, with bounds, by the standard library alone."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

from berth.evidence.damage import DAMAGED

LARGEST_BYTES = 512 * 2**20  # of one file, or of all files of one zip archive, unpacked
TOO_LONG = f"it is longer than {LARGEST_BYTES >> 20} MiB, and the rest was not read"

# By the first bytes: with what it is opened, and what its name may end in.
_STREAMS: tuple[tuple[bytes, Callable[[IO[bytes]], Any], tuple[str, ...]], ...] = (
    (b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw), (".gz", ".tgz")),
    (b"BZh", bz2.BZ2File, (".bz2", ".tbz2")),
    (b"\xfd7zXZ", lzma.LZMAFile, (".xz", ".txz")),
)
_ZIP = b"PK\x03\x04"
_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError)
CHUNK = 2**16


def unpacked(name: str, raw: bytes) -> tuple[str, bytes, str]:
    """Name and bytes without compression, and what is missing: "" where all of it was unpacked. What is cut off gives
    what came before the cut."""
    opened = next(((opens, endings) for magic, opens, endings in _STREAMS if raw.startswith(magic)), None)
    if opened is None:
        return name, *bounded(raw)
    opens, endings = opened
    ending = next((one for one in endings if name.endswith(one)), "")
    parts: list[bytes] = []
    length, damage = 0, ""
    try:
        with opens(io.BytesIO(raw)) as file:
            while length <= LARGEST_BYTES and (part := file.read1(CHUNK)):
                parts.append(part)
                length += len(part)
    except _BROKEN:
        damage = DAMAGED
    content, too_long = bounded(b"".join(parts))
    return name.removesuffix(ending), content, damage or too_long


def bounded(raw: bytes) -> tuple[bytes, str]:
    return (raw, "") if len(raw) <= LARGEST_BYTES else (raw[:LARGEST_BYTES], TOO_LONG)


def is_archive(raw: bytes) -> bool:
    return raw.startswith(_ZIP) or raw[257:262] == b"ustar"


def members(raw: bytes, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes, str]]:
    """The files of an archive: name, bytes, what is missing; without a name where the archive itself is damaged."""
    if raw.startswith(_ZIP):
        yield from _of_zip(raw, is_wanted)
        return
    try:
        with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isfile() and is_wanted(member.name) else None
                if file is not None:
                    yield member.name, *bounded(file.read(LARGEST_BYTES + 1))
    except (tarfile.TarError, *_BROKEN):
        yield "", b"", DAMAGED


def _of_zip(raw: bytes, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes, str]]:
    left = LARGEST_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            for member in archive.infolist():
                if member.is_dir() or not is_wanted(member.filename):
                    continue
                left -= member.file_size  # more than it says is not unpacked
                if left < 0:
                    yield "", b"", TOO_LONG
                    return
                yield member.filename, *_of_member(archive, member)
    except (zipfile.BadZipFile, *_BROKEN):
        yield "", b"", DAMAGED


def _of_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[bytes, str]:
    if member.flag_bits & 1:
        return b"", "it is encrypted"
    try:
        return archive.read(member), ""
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, *_BROKEN):
        return b"", DAMAGED
