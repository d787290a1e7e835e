"""Versions as numbers: `580.65.06`, `v1.34.2-gke.1`, `containerd://2.1.0`, `4.5.2-4.8.1-distroless`."""

from __future__ import annotations

import re
from functools import lru_cache

Number = tuple[int, ...]
_NUMBER = re.compile(r"\d+(?:\.\d+)*")


@lru_cache(maxsize=4096)
def number(words: str) -> Number:
    """The first dotted number in some words; () where there is none."""
    found = _NUMBER.search(words)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def is_below(version: str, floor: str) -> bool:
    """Certainly older than the floor. What a version leaves open (`580` against 580.65.06) is not below it, and what is
    no version is below nothing."""
    have, need = number(version), number(floor)
    return bool(have) and have < need[: len(have)]


def branch(driver: str) -> int:
    """580 of `580.65.06`; 0 where it is none."""
    return next(iter(number(driver)), 0)


def tag(image: str) -> str:
    """What follows the name of an image: `v1.17.8-ubi8`; "" for a digest or none."""
    last = image.partition("@")[0].rpartition("/")[2]
    return last.partition(":")[2]
