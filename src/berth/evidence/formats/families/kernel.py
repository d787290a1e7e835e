"""What a machine says of itself: lspci, lsmod, dmidecode, sysfs, /proc, packages."""

from berth.evidence.formats import Format, dmidecode, lsmod, lspci, packages, proc_driver

FORMATS: tuple[Format, ...] = (
    lspci.FORMAT,
    lsmod.FORMAT,
    dmidecode.FORMAT,
    proc_driver.FORMAT,
    packages.PACKAGES,
    packages.DEMANDS,
)
