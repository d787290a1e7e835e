"""Texts that a person has looked at, kept in tests/golden. BERTH_UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import io
import os
from pathlib import Path

from rich.console import Console

from berth.views import tables

GOLDEN = Path(__file__).parents[1] / "golden"


def check(name: str, text: str) -> None:
    """The text is what the golden file says."""
    path = GOLDEN / name
    if os.environ.get("BERTH_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"differs from {path}: look, then BERTH_UPDATE_GOLDEN=1"


def screen(encoding: str = "utf-8", width: int = 100) -> tuple[Console, io.BytesIO]:
    """A console that is no terminal, and what is written to it."""
    raw = io.BytesIO()
    return tables.console(io.TextIOWrapper(raw, encoding=encoding, write_through=True), width), raw
