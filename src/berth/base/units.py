"""How numbers are written for people: bytes, milli-units, counts, durations."""

from __future__ import annotations

GIB = 2**30


def gib(size: int) -> str:
    """Bytes as GiB, at most one decimal: `80 GiB`, `0.5 GiB`."""
    return f"{_short(size / GIB)} GiB"


def from_milli(milli: int) -> str:
    """Milli-units as units: 1500 is `1.5`, 2000 is `2`."""
    return _short(milli / 1000, 3)


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 node`, `3 nodes`, `2,048 GPUs`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def capital(words: str) -> str:
    """With a capital where it begins with a word, and not with a field, a resource or a name (`spec.replicas`)."""
    first = words.partition(" ")[0]
    return words if any(c in first for c in ".[/-_=\"") or not first.isalpha() else words[:1].upper() + words[1:]


def duration(seconds: float) -> str:
    """Two units at most: `45 s`, `3 min`, `2 h 30 min`, `4 d 2 h`."""
    if seconds < 120:
        return f"{int(seconds)} s"
    minutes = int(seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def _short(value: float, decimals: int = 1) -> str:
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
