"""The public data sets as text and as records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from rich.console import Console
from rich.text import Text

from berth.base.units import counted
from berth.views.tables import QUIET_STYLE, Column, say, show_whole, signs, table

STATE_STYLES = {"verified": "green", "missing": "yellow", "different": "bold red"}


class Dataset(Protocol):
    """berth.sources.datasets.Dataset, by its fields: views do not import sources."""

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> str: ...
    @property
    def holds(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def commit(self) -> str: ...
    @property
    def licence(self) -> str: ...
    @property
    def cite(self) -> str: ...
    @property
    def files(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def sha256(self) -> str: ...


class Checked(Protocol):
    """berth.sources.datasets.Checked, by its fields."""

    @property
    def dataset(self) -> Dataset: ...
    @property
    def state(self) -> str: ...
    @property
    def detail(self) -> str: ...


def show(sets: Sequence[Dataset], screen: Console) -> None:
    """One paragraph a set."""
    dot = signs(screen).dot
    for one in sets:
        head = Text(f"{one.name:<8}", style="bold")
        size = f"{one.size_bytes / 1e6:.1f} MB"
        facts = (one.licence, counted(one.files, "file"), size, one.folder)
        head.append(f" {dot} ".join(facts), style="not bold dim")
        screen.print(head)
        for line in (one.holds, one.cite, f"{one.source} at {one.commit[:12]}", f"sha256 {one.sha256}"):
            style = QUIET_STYLE if line.startswith("sha256") else ""
            say(screen, line, 8, style)
        screen.print()


def show_checked(checked: Sequence[Checked], screen: Console) -> None:
    """One line a set."""
    rows = [(one.dataset.name, Text(one.state, style=STATE_STYLES.get(one.state, "")), one.detail) for one in checked]
    show_whole(screen, table([Column("set"), Column("state"), Column("detail")], rows))


def listed(sets: Sequence[Dataset]) -> dict[str, Any]:
    """All fields but the hashes of single files."""
    return {"kind": "Datasets", "datasets": [_record(one) for one in sets]}


def verified(checked: Sequence[Checked]) -> dict[str, Any]:
    """Name, state and detail of each set."""
    return {
        "kind": "DatasetsVerified",
        "datasets": [
            {"name": one.dataset.name, "state": one.state, "detail": one.detail, "sha256": one.dataset.sha256}
            for one in checked
        ],
    }


_FIELDS = ("name", "folder", "holds", "source", "commit", "licence", "cite", "files", "size_bytes", "sha256")


def _record(one: Dataset) -> dict[str, Any]:
    return {name: getattr(one, name) for name in _FIELDS}
