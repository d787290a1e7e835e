"""DCGM: metrics, counters, MIG layouts."""

from berth.evidence.formats import Format

FORMATS: tuple[Format, ...] = ()
