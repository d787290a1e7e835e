"""The kernel's log: the NVIDIA modules, PCI, and what else of the kernel matters to a GPU."""

from berth.evidence.message import Message

_PCI = r"(?:PCI:)?(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?)"

MESSAGES: tuple[Message, ...] = (
    # NVRM prints it with an Xid, as a line of its own, and over three lines where a probe finds the loss.
    Message("kernel.off_bus", "fallen off the bus", rf"(?:{_PCI}.*)?fallen off the bus"),
    Message(
        "kernel.off_bus_at_probe",
        "nvrm: the nvidia gpu",
        rf"The NVIDIA GPU {_PCI}[\s\S]*?fallen off the bus",
        lines=3,
    ),
)
