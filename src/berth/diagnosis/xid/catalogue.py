"""Every Xid from 1 to 176: name, meaning in our words, severity, action, and where sources disagree.

Names, severities and actions are those of NVIDIA's Xid catalogue and of nverror.h in the open kernel modules; the view
of gpud, of Azure's node check and of AWS's health check stand beside them where they differ.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from msgspec import Struct

from berth.diagnosis.words import Severity

FIRST, LAST = 1, 176

# How NVIDIA's catalogue ranks a code, in the words of its own actions.
STANDINGS = {
    "unused": "unused: no current driver raises it",
    "app": "app: the program is at fault or loses its work",
    "app-or-follower": "app, or a follower of another Xid",
    "gpu": "fatal for the GPU",
    "node": "fatal for the node",
    "info": "info",
    "board": "the board's connections",
    "registers": "fatal for the GPU unless its registers say otherwise",
    "subcode": "depends on its sub-code",
    "software": "versions do not fit",
    "support": "critical",
    "vm": "fatal for the virtual machine",
    "uvm": "fatal only with unified memory or vGPU",
    "verdict": "the driver's own verdict",
    "unstated": "not stated by the catalogue",
}

_SEVERITIES = {
    "app": Severity.Error, "app-or-follower": Severity.Warning, "gpu": Severity.Critical, "node": Severity.Critical,
    "board": Severity.Critical, "registers": Severity.Critical, "subcode": Severity.Error, "software": Severity.Error,
    "support": Severity.Error, "vm": Severity.Error, "uvm": Severity.Warning, "unstated": Severity.Warning,
    "unused": Severity.Warning,
}  # fmt: skip

# What the catalogue's names of actions ask for.
ACTIONS = {
    "": "no action is stated",
    "CONTACT_SUPPORT": "ask the vendor",
    "RESTART_APP": "start the program again; neither reset nor restart is needed",
    "RESET_GPU": "reset the GPU once nothing uses it",
    "RESTART_BM": "restart the machine",
    "RESTART_VM": "restart the virtual machine that owns the GPU",
    "IGNORE": "nothing to do",
    "CHECK_MECHANICALS": "look at seating, cables and plugs of the board",
    "UPDATE_SWFW": "bring guest, host and firmware to versions that fit",
    "CHECK_UVM": "reset the GPU where unified memory or vGPU is used, else nothing",
    "WORKFLOW_XID_48": "alone: reset the GPU; with 63 or 64: drain the node, then reset",
    "WORKFLOW_XID_45": "alone: restart Fabric Manager; after another Xid: follow that one",
    "WORKFLOW_NVLINK_ERR": "decode the seven registers",
    "WORKFLOW_NVLINK5_ERR": "decode the sub-code, its information and status",
    "XID_154": "do what the line itself says",
}

# A failing node of Azure's check, two of which the catalogue lets pass.
AZURE = frozenset((48, 56, 57, 58, 62, 63, 64, 65, 68, 69, 73, 74, 79, 80, 81, 92, 119, 120))
AWS = {64: "AWS: take the node out and restart it, a failed remapping does not heal"}

_GPUD_REPAIRS = {
    "RebootSystem": "restart the machine",
    "HardwareInspection": "inspect the hardware",
    "CheckUserAppAndGPU": "look at the program and the GPU",
    "IgnoreNoActionRequired": "nothing to do",
}


class Xid(Struct, frozen=True, gc=False):
    """One code as the sources have it."""

    code: int
    name: str  # of nverror.h or the catalogue
    meaning: str
    standing: str  # a key of STANDINGS
    action: str  # at once, in the catalogue's word: a key of ACTIONS
    then: str  # what the catalogue has investigated afterwards
    generations: tuple[str, ...] = ()
    gpud: str = ""  # Fatal, Warning, Info; "" where it does not know the code
    gpud_repairs: tuple[str, ...] = ()  # one after the other
    in_154_since: str = ""  # driver branch from which on Xid 154 follows it

    @property
    def severity(self) -> Severity:
        return _SEVERITIES.get(self.standing, Severity.Info)

    @property
    def short(self) -> str:
        """`Xid 79 (GPU_HAS_FALLEN_OFF_THE_BUS)`."""
        return f"Xid {self.code} ({self.name})"

    @property
    def sentence(self) -> str:
        """Name, meaning, severity, action, and who sees it another way."""
        action = f"{self.action} ({ACTIONS[self.action]})" if self.action else ACTIONS[""]
        others = "".join(f"; {view}" for view in self.other_views)
        return f"{self.short}: {self.meaning}. NVIDIA: {STANDINGS[self.standing]}, {action}{others}."

    @property
    def other_views(self) -> tuple[str, ...]:
        """Those who judge it differently."""
        is_grave = self.standing in ("gpu", "node", "registers")
        views = []
        if self.gpud and self.standing != "unused" and (self.gpud == "Fatal") != is_grave:
            repairs = ", then ".join(_GPUD_REPAIRS[one] for one in self.gpud_repairs)
            views.append(f"gpud: {self.gpud.lower()}" + (f", {repairs}" if repairs else ""))
        if self.code in AZURE and not is_grave:
            views.append("Azure: the node is not fit")
        if self.code in AWS:
            views.append(AWS[self.code])
        return tuple(views)


@cache
def catalogue() -> dict[int, Xid]:
    """All codes."""
    return {one.code: one for one in map(_of_row, rows_of("catalogue.tsv"))}


def xid(code: int) -> Xid:
    """One code; those that nobody has listed yet have no name."""
    known = catalogue().get(code)
    return known or Xid(code, "not listed", "newer than this catalogue, or no Xid at all", "unstated", "", "")


def rows_of(table: str) -> list[list[str]]:
    """Cells of a table of this package, without its heading."""
    text = files("berth.diagnosis.xid").joinpath(table).read_text("utf-8")
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


def _of_row(cells: list[str]) -> Xid:
    code, name, meaning, standing, action, then, generations, gpud, repairs, since = cells
    return Xid(
        int(code), name, meaning, standing, action, then, tuple(generations.split()), gpud,
        tuple(one.strip() for one in repairs.split(">") if one), since,
    )  # fmt: skip
