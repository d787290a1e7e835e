"""nvidia-smi in all its forms."""

from berth.evidence.formats import Format

FORMATS: tuple[Format, ...] = ()
