"""Values of nvidia-smi as they are printed, and how each kind of them is read: numbers, sizes, words, and what stands
in the place of a value. Names are brought to one spelling first: lower case, words joined by `_`."""

from __future__ import annotations

import re
from collections.abc import Mapping

_DEPRECATED = re.compile(r"(?<=\S)\s*\[Deprecated\b[^\]]*\]\s*$", re.IGNORECASE)
_ODD = re.compile(
    r"ERR!|unknown error|gpu is lost|gpu lost|gpu access blocked|requires reset|reset required|"
    r"insufficient permissions|^\[?unknown\]?$",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
HEX = re.compile(r"0x[0-9a-fA-F]+")
_UNITS = {"b": 1, "bytes": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "kb": 10**3, "mb": 2**20, "gb": 2**30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]i?B|bytes|B)\b", re.IGNORECASE)
_YES = {"yes": True, "no": False, "true": True, "false": False, "1": True, "0": False}


class Cell:
    """A value as printed, the line it stands in, and the words to quote."""

    __slots__ = ("line", "text", "value")

    def __init__(self, value: str, line: int, text: str) -> None:
        self.value, self.line, self.text = value, line, text


Cells = dict[str, Cell]  # by name in one spelling: "fb_memory_usage/total"


def one_spelling(name: str) -> str:
    return "_".join(re.findall(r"[a-z0-9]+", name.lower()))


def undated(value: str) -> str:
    """Without the note that a name is going out of use, as 610 appends it: `13.3 [Deprecated; will be removed …]`."""
    return _DEPRECATED.sub("", value)


def versions(header: Mapping[str, str]) -> tuple[str, str]:
    """Driver and CUDA as the head of a printout has them. From 610 on the driver's halves are named: that of the kernel
    (KMD), and that of the programs (UMD), whose CUDA it is."""
    driver = header.get("kmd_version") or header.get("driver_version", "")
    cuda = header.get("cuda_umd_version") or header.get("cuda_version", "")
    return undated(driver), undated(cuda)


def is_absent(value: str) -> bool:
    """The device does not have it."""
    bare = undated(value).strip().strip("[]").lower()
    return bare in ("", "n/a", "not supported", "none") or "deprecated" in bare


def is_odd(value: str) -> bool:
    """The tool could not get it."""
    return bool(_ODD.search(value))


def number(value: str) -> float | None:
    found = None if is_odd(value) else _NUMBER.search(value)
    return float(found[0]) if found else None


def whole(value: str) -> int | None:
    read = number(value)
    return None if read is None else int(read)


def size_bytes(value: str) -> int | None:
    """`80 MiB`, `59MiB`, `1 GiB`; a bare number is MiB, which is the unit of a column without one."""
    if found := _SIZE.search(value):
        return int(float(found[1]) * _UNITS[found[2].lower()])
    read = number(value)
    return None if read is None else int(read * 2**20)


def yes_or_no(value: str) -> bool | None:
    return _YES.get(value.strip().lower())


def words(value: str) -> str:
    return undated(value).strip().strip("[]")


def words_if_any(value: str) -> str:
    return "" if is_absent(value) else words(value)
