"""SXids: errors of NVSwitch, as its driver and Fabric Manager number them."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from berth.diagnosis.xid.catalogue import rows_of

_WORDS = {
    "always-fatal": "always fatal for the whole fabric: restart the machine, which resets all GPUs and switches",
    "potentially-fatal": "may be fatal for the link or its partition: reset the GPUs and switches that it joins",
    "non-fatal": "not fatal",
}


class SXid(Struct, frozen=True, gc=False):
    code: int
    name: str
    severity: str  # always-fatal, potentially-fatal, non-fatal; "" where it is not listed
    gpud_repairs: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        words = _WORDS.get(self.severity, "not in the public list; its line says whether it is fatal")
        return f"SXid {self.code} ({self.name}): {words}"


@cache
def sxids() -> dict[int, SXid]:
    """All 93 of the Fabric Manager guide."""
    return {
        int(code): SXid(int(code), name, severity, tuple(one.strip() for one in repairs.split(">") if one))
        for code, name, severity, repairs in rows_of("sxid.tsv")
    }


def sxid(code: int) -> SXid:
    return sxids().get(code) or SXid(code, "not listed", "")
