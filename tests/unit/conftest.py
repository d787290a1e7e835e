"""Moments are told in UTC, whatever the machine's clock; and what a command that was run inside the test process did
to the garbage collector ends with the test."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator

import pytest

os.environ["TZ"] = "UTC"
time.tzset()


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    """A command freezes what it read, since its process ends soon; this one goes on and would keep all of it."""
    yield
    gc.unfreeze()
    gc.enable()
