"""What a machine says of itself: lspci, lsmod, dmidecode, sysfs, /proc."""

from berth.evidence.formats import Format

FORMATS: tuple[Format, ...] = ()
