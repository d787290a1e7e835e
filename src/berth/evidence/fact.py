"""What was read, and from which words: facts carry their origin, so that a finding can show its evidence."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

NOTHING: Mapping[str, str] = {}
LONGEST_TEXT = 600  # characters of a quotation


class Origin(Struct, frozen=True, gc=False):
    """Where a fact was read."""

    source: str = ""  # file, object or command
    kind: str = ""  # of evidence, one of piece.KINDS
    text: str = ""  # the exact words, LONGEST_TEXT characters at most
    time: str = ""  # as printed beside them
    at_s: float = 0.0  # the same as a number, to order by; 0.0 where there is none
    line: int = 0  # in the source, from 1; 0 where it has none
    node: str = ""
    pod: str = ""  # namespace/name


class Fact(Struct, frozen=True, kw_only=True, gc=False):
    """What every kind of fact has. Each format defines its own kinds beside its parser (formats/)."""

    origin: Origin = Origin()

    @property
    def node(self) -> str:
        return self.origin.node


class Said(Fact, frozen=True, kw_only=True):
    """A component said something that is known (messages/).

    `values` are what the sentence named: devices, numbers, names. `times` counts like sentences of one source that
    were folded into this one, the first of them.
    """

    message: str  # "kubelet.no_healthy_devices"
    values: Mapping[str, str] = NOTHING
    times: int = 1

    def get(self, name: str, otherwise: str = "") -> str:
        return self.values.get(name) or otherwise


# A PCI function as numbers: kernel, nvidia-smi, lspci and sysfs spell one address in four ways.
Pci = tuple[int, int, int]  # domain, bus, device
NO_PCI: Pci = (-1, -1, -1)


def pci_of(words: str) -> Pci:
    """`0000:b3:00`, `00000000:B3:00.0`, `b3:00.0`, `0000:b3:00.0` → the same three numbers; else NO_PCI."""
    parts = words.strip().partition(".")[0].split(":")
    try:
        numbers = [int(part, 16) for part in parts]
    except ValueError:
        return NO_PCI
    if len(numbers) == 2:
        numbers = [0, *numbers]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else NO_PCI


def pci_words(pci: Pci) -> str:
    """As the kernel spells it: `0000:b3:00`."""
    return "" if pci == NO_PCI else f"{pci[0]:04x}:{pci[1]:02x}:{pci[2]:02x}"
