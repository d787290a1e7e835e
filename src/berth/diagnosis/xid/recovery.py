"""Xid 154: what the driver itself says that a GPU needs. It outranks every table."""

from __future__ import annotations

import re
from enum import Enum

from berth.diagnosis.finding import Fix

_CHANGED = re.compile(
    r"recovery action changed(?: from (?P<was>0x[0-9a-f]+)?\s*(?:\((?P<was_words>[^)]*)\))?)?"
    r" to (?P<number>0x[0-9a-f]+)?\s*\(?(?P<words>[A-Za-z][A-Za-z0-9 ]*)?\)?",
    re.IGNORECASE,
)


class Recovery(Enum):
    """As the driver prints it."""

    Nothing = "None"
    Reset = "GPU Reset Required"
    Reboot = "Node Reboot Required"
    DrainP2P = "Drain P2P"
    DrainAndReset = "Drain and Reset"

    @property
    def fix(self) -> Fix | None:
        return _FIXES.get(self)


_BY_NUMBER = (Recovery.Nothing, Recovery.Reset, Recovery.Reboot, Recovery.DrainP2P, Recovery.DrainAndReset)
_RESET = "with nothing left on the GPU (device plugin, DCGM and exporter, too): nvidia-smi --gpu-reset -i PCI.0"
_FIXES = {
    Recovery.Reset: Fix(
        ("kubectl cordon NODE; end what runs on the GPU", _RESET, "refused or back again: restart the machine"),
        "ends everything on that GPU; on NVSwitch machines all GPUs are reset together",
        "kubectl uncordon NODE",
    ),
    Recovery.Reboot: Fix(
        ("kubectl cordon NODE, then drain it", "restart the machine: a reset of the GPU is not enough"),
        "ends everything on the node",
        "kubectl uncordon NODE",
    ),
    Recovery.DrainP2P: Fix(
        (
            "kubectl cordon NODE",
            "end all programs that reach this GPU from others (NVLink peers, collectives); others may go on",
        ),
        "ends the jobs that use several GPUs",
        "kubectl uncordon NODE",
    ),
    Recovery.DrainAndReset: Fix(
        ("kubectl cordon NODE; let running work finish or drain it", _RESET),
        "takes the GPU out until it is drained",
        "kubectl uncordon NODE",
    ),
}


def recovery_of(words: str) -> Recovery | None:
    """By nvidia-smi's shorter words: `None`, `Reset`, `Reboot`, `Drain P2P`, `Drain and Reset`."""
    short = {"none": Recovery.Nothing, "reset": Recovery.Reset, "reboot": Recovery.Reboot}
    words = words.strip().lower()
    return short.get(words) or next((one for one in Recovery if one.value.lower() == words), None)


def read_recovery(detail: str) -> Recovery | None:
    """The action that a line of Xid 154 changes to: by its words, else by its number."""
    found = _CHANGED.search(detail)
    if not found:
        return next((one for one in list(Recovery)[1:] if one.value.lower() in detail.lower()), None)
    words = (found["words"] or "").strip().lower()
    for one in Recovery:
        if words == one.value.lower():
            return one
    number = int(found["number"], 16) if found["number"] else -1
    return _BY_NUMBER[number] if 0 <= number < len(_BY_NUMBER) else None
