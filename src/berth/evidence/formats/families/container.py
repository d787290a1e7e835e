"""Container runtimes: configuration, CDI specifications."""

from berth.evidence.formats import Format

FORMATS: tuple[Format, ...] = ()
