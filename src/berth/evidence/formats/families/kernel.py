"""What a machine says of itself: lspci, lsmod, dmidecode, sysfs, /proc."""

from berth.evidence.formats import Format, dmidecode, lsmod, lspci, proc_driver

FORMATS: tuple[Format, ...] = (lspci.FORMAT, lsmod.FORMAT, dmidecode.FORMAT, proc_driver.FORMAT)
