"""Compiled code goes when a source that it inlines is newer, and stays otherwise."""

from __future__ import annotations

import os
from types import ModuleType, SimpleNamespace

from berth.base.staleness import forget_stale


def kernel_cached_in(folder):
    def arrive():
        """Stands for a compiled function."""

    arrive.__qualname__ = "arrive"
    return SimpleNamespace(py_func=arrive, stats=SimpleNamespace(cache_path=str(folder)))


def test_only_code_older_than_its_sources_goes(tmp_path):
    source = tmp_path / "inlined.py"
    source.write_text("")
    module = ModuleType("inlined")
    module.__file__ = str(source)
    own, other = tmp_path / "test_staleness.arrive-9.py311.nbi", tmp_path / "else.arrive-9.py311.nbi"
    for index in (own, other):
        index.write_bytes(b"")
    os.utime(source, (100, 100))
    forget_stale(kernel_cached_in(tmp_path), module)
    assert own.exists()
    for index in (own, other):
        os.utime(index, (50, 50))
    forget_stale(kernel_cached_in(tmp_path), module)
    assert not own.exists() and other.exists()
    forget_stale(kernel_cached_in(tmp_path / "nowhere"), module)
