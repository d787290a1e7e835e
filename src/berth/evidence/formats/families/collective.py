"""NCCL logs and tests, InfiniBand."""

from berth.evidence.formats import Format

FORMATS: tuple[Format, ...] = ()
