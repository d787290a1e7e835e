"""What a command that was run inside the test process did to the garbage collector ends with the test."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    """A command freezes what it read, since its process ends soon; this one goes on and would keep all of it."""
    yield
    gc.unfreeze()
    gc.enable()
