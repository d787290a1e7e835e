"""The formats that are read, by who knows them. Nothing registers itself."""

from berth.evidence.formats import Format
from berth.evidence.formats.families import collective, container, kernel, kubernetes, monitoring, smi

FORMATS: tuple[Format, ...] = (
    *smi.FORMATS,
    *kernel.FORMATS,
    *container.FORMATS,
    *kubernetes.FORMATS,
    *monitoring.FORMATS,
    *collective.FORMATS,
)
