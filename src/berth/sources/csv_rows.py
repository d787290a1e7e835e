"""Rows of csv files, whose complaints name file, row, column and value."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher
from pathlib import Path

from berth.base.errors import UNREADABLE, BadInput

MAX_FILE_BYTES = 256 << 20
MAX_ROWS = 2_000_000
MAX_NAME = 253
_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*(s|sec|m|min|h|d)", re.I | re.ASCII)
_UNITS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
ALIKE = 0.75  # of two names of columns, from where on one is taken for the other misspelt


class Row:
    """One line of a csv file, whose complaints name file, row, column and value."""

    __slots__ = ("_cells", "_columns", "_line", "_path")

    def __init__(self, path: Path, line: int, columns: dict[str, int], cells: list[str]) -> None:
        self._path, self._line, self._columns, self._cells = path, line, columns, cells

    def place(self, column: str) -> str:
        return f"{self._path}: row {self._line}, column {column}"

    def bad(self, column: str, rule: str, remedy: str) -> BadInput:
        value = self.text(column)
        shown = value if len(value) <= 60 else value[:57] + "..."
        return BadInput(self.place(column), f"is {shown!r}: {rule}", remedy)

    def text(self, column: str) -> str:
        at = self._columns.get(column, -1)
        return self._cells[at].strip() if at >= 0 else ""

    def whole(self, column: str, most: int, least: int = 0) -> int:
        value = self.text(column)
        if value.isascii() and value.isdigit() and len(value) <= 18:
            number = int(value)
            if least <= number <= most:
                return number
        raise self.bad(column, f"it has to be a whole number from {least} to {most}.", _digits(value, least, most))

    def integer(self, column: str, most: int) -> int:
        """A whole number, which may be negative."""
        value = self.text(column)
        digits = value.removeprefix("-").removeprefix("+") if value[:2] not in ("-+", "+-") else ""
        if digits.isascii() and digits.isdigit() and len(digits) <= 18 and int(digits) <= most:
            return int(value)
        raise self.bad(column, f"it has to be a whole number from {-most} to {most}.", _digits(value, -most, most))

    def number(self, column: str, most: float) -> float:
        """A number from 0, with or without decimals."""
        value = self.text(column)
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if 0 <= number <= most:  # a NaN is neither
            return number
        raise self.bad(column, f"it has to be a number from 0 to {most:g}.", _seconds(value))

    def name(self, column: str, seen: set[str]) -> str:
        value = self.text(column)
        if not value or len(value) > MAX_NAME or not value.isprintable():
            raise self.bad(column, f"a name has 1 to {MAX_NAME} printable characters.", "Name the row.")
        if value in seen:
            raise self.bad(column, "an earlier row has this name.", "Give each row a name of its own.")
        seen.add(value)
        return value


def _digits(value: str, least: int, most: int) -> str:
    """What to write for a whole number that is written otherwise, such as 1e3 or 8.0."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if number.is_integer() and least <= number <= most:
        return f"Write it in digits alone: {int(number)}."
    return "Mend the cell or drop the row."


def _seconds(value: str) -> str:
    """What to write for a number of seconds that is written as a moment or with a unit."""
    if found := _WITH_UNIT.fullmatch(value):
        return f"Write seconds alone: {float(found[1]) * _UNITS[found[2].lower()]:g}."
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return "Mend the cell or drop the row."
    return f"Write seconds, such as {at.replace(tzinfo=at.tzinfo or UTC).timestamp():.0f} (since 1970)."


def rows_of(
    path: Path,
    needed: tuple[str, ...],
    optional: tuple[str, ...] = (),
    unread: list[str] | None = None,
    also_called: Mapping[str, str] | None = None,
) -> Iterator[Row]:
    """The rows of a csv file with a header that has the needed columns, in any order.

    With `unread` a column that is none of these is looked at: one that seems to be misspelt is an error, the others
    are added to the list. `also_called` are names of columns that others use, and ours.
    """
    unreadable = _reader_of(path)
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise unreadable(f"has {size} bytes; at most {MAX_FILE_BYTES} are read.", "Split the trace.")
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            header = next((cells for row in lines if any(cells := [cell.strip() for cell in row])), [])
            top = f"{path}: row {lines.line_num if header else 1}"
            if not header:
                raise BadInput(top, "there is none: the file is empty.", f"The header has to have {', '.join(needed)}.")
            columns = {cell: at for at, cell in enumerate(header) if cell in needed + optional}
            missing = [column for column in needed if column not in columns]
            if unread is not None:
                unread += _not_read(top, header, needed + optional, also_called or {})
            if missing and len(header) == 1 and (other := next((c for c in ";\t|" if c in header[0]), "")):
                said = {"\t": "tabs", ";": "semicolons"}.get(other, f"{other!r}")
                raise BadInput(top, f"has {said} between its columns.", "Save it with commas.")
            if missing:
                lacks = f"lacks the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}."
                raise BadInput(top, lacks, f"The header has to have {', '.join(needed)}.")
            repeated = [column for column in columns if header.count(column) > 1]
            if repeated:
                raise BadInput(top, f"has the column {', '.join(repeated)} twice.", "Keep one.")
            for count, cells in enumerate(lines):
                if not cells:
                    continue
                line = lines.line_num
                if count >= MAX_ROWS:
                    raise BadInput(
                        f"{path}: row {line}", f"is beyond the {MAX_ROWS} that are read.", "Split the trace."
                    )
                if len(cells) != len(header):
                    raise BadInput(
                        f"{path}: row {line}",
                        f"has {len(cells)} cells where the header has {len(header)}.",
                        "Mend the row or leave it out.",
                    )
                yield Row(path, line, columns, cells)
    except csv.Error as error:
        raise unreadable(f"is not a csv file: {error}.", "Mend the quotes or line ends.") from None
    except UnicodeDecodeError as error:
        raise unreadable(f"is not UTF-8 at byte {error.start}.", "Save it as UTF-8 text.") from None
    except OSError as error:
        raise unreadable(f"cannot be read: {error.strerror}.", "Check the path and its rights.") from None


def _not_read(top: str, header: Sequence[str], known: Sequence[str], also_called: Mapping[str, str]) -> list[str]:
    """Names of columns that are passed over. Raises BadInput for one that stands for a column that is not there; `top`
    is the place of the header."""
    absent = [column for column in known if column not in header]
    for cell in header:
        if cell in known:
            continue
        meant = also_called.get(_plain(cell), "")
        if meant not in absent:
            meant = max(absent, key=lambda column: _likeness(cell, column), default="")
            meant = meant if meant and _likeness(cell, meant) >= ALIKE else ""
        if meant:
            raise BadInput(
                top, f"has a column {cell!r}, which is not known.",
                f"Call it {meant!r} if that is meant, else leave the column out.",
            )  # fmt: skip
    return [cell for cell in header if cell and cell not in known]


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, _plain(one), _plain(other)).ratio()


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


def _reader_of(path: Path) -> Callable[[str, str], BadInput]:
    return lambda problem, remedy: BadInput(str(path), problem, remedy, UNREADABLE)
