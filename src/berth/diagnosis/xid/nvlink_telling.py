"""NVLink events in sentences: the registers of Xid 74 and the sub-codes of 144 to 150, and whether they matter."""

from __future__ import annotations

from msgspec import Struct

from berth.diagnosis.xid import nvlink4, nvlink5
from berth.diagnosis.xid.seen import Event

INVESTIGATE = {
    "CONTACT_SUPPORT": "back again: ask the vendor",
    "IGNORE": "nothing to look into",
    "CHECK_NVLINK_FAILURE_FLOW": "look for a link that went down in the 30 s before; if there is none, report it",
    "INVESTIGATE_HOST": "look at the other logs of the host: usually the sign of something else",
    "INVESTIGATE_LINK_SI": "look at the signal of the link: telemetry of access and trunk links",
    "INVESTIGATE_LINK_SI_AND_CABLES": "look at cable, transceiver, temperature and seating of the link",
    "INVESTIGATE_PEER_DEVICE": "the other end of the link had it first: look there (switch cooling, resets, software)",
    "INVESTIGATE_SW_USER": "look whether software or a user took the link down",
    "INVESTIGATE_SW_USER_LINK_SI": "look whether software or a user took the link down, then at the signal",
    "REPORT_ISSUE (if seen >1 per day)": "more than once a day: report it",
    "SYMPATHETIC_REPORT_SOLO": "usually follows another fault: mend that first; alone it is to be reported",
}
ACTION = {
    "IGNORE": "nothing to do",
    "RESET_GPU": "reset the GPU",
    "XID_154_EVAL": "do what Xid 154 says; without one start the program again",
}


class NvlinkJudgement(Struct, frozen=True, gc=False):
    """One event, read with the tables."""

    sentence: str
    is_harmless: bool = False  # by every table that applies
    needs_reset: bool = False
    link: int = -1
    is_peers_fault: bool = False  # the other end of the link is the source
    is_mild: bool = False  # not fatal, and what the table leaves to Xid 154 needs no look
    is_unread: bool = False  # the line was cut: what would tell its weight is not there


def judged(one: Event, driver: int) -> NvlinkJudgement:
    """What the details of an NVLink event say."""
    if one.code == 74:
        return _registers(one)
    line = nvlink5.read_line(one.detail) if one.code in nvlink5.CODES else None
    if line is None:
        cut = one.code in nvlink5.CODES
        words = "its sub-code was not kept, and without it nothing can be told of its weight" if cut else ""
        return NvlinkJudgement(words, is_unread=cut)
    decoded = nvlink5.decode(one.code, line, driver)
    link = f"link {line.link}" if line.link >= 0 else "the whole device"
    weight = "fatal" if line.is_fatal else "not fatal"
    if not decoded:
        return NvlinkJudgement(
            f"{line.unit} on {link}, {weight}; the table has no such line", needs_reset=line.is_fatal, link=line.link
        )
    actions = {found.action for found in decoded}
    ways = "; ".join(
        (f"{_VERSIONS[found.version]} " if len(decoded) > 1 else "")
        + f"{found.action} ({ACTION.get(found.action, found.action)}), {INVESTIGATE[found.rule.investigate]}"
        for found in decoded
    )
    return NvlinkJudgement(
        f"{line.unit} on {link}, {weight}: {ways}",
        is_harmless=actions == {"IGNORE"} and not line.is_fatal,
        needs_reset="RESET_GPU" in actions,
        link=line.link,
        is_mild=not line.is_fatal
        and all(found.action in _BY_VERDICT and found.rule.investigate == "IGNORE" for found in decoded),
        is_peers_fault=any(found.rule.investigate == "INVESTIGATE_PEER_DEVICE" for found in decoded),
    )


_BY_VERDICT = ("IGNORE", "XID_154_EVAL")  # what is to be done then stands in a line of Xid 154, or nothing is
_VERSIONS = {1: "before driver R575", 2: "from driver R575 on"}


def _registers(one: Event) -> NvlinkJudgement:
    registers = nvlink4.read_registers(one.detail)
    if registers is None:
        return NvlinkJudgement("its registers were not kept", needs_reset=True)
    link = f"link {registers.link}: " if registers.link >= 0 else ""
    harmless = registers.verdict <= nvlink4.Verdict.Threshold and any(registers.words)
    return NvlinkJudgement(
        f"{link}{registers.sentence}", is_harmless=harmless, needs_reset=not harmless, link=registers.link
    )
