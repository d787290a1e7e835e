"""`berth doctor --explain`: a code of a finding, or an Xid by its number. Nothing is read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from berth.base.errors import BadInput

if TYPE_CHECKING:
    from berth.diagnosis.finding import Code

_XID = re.compile(r"(?:xid)?[\s:#=_-]*(\d{1,4})", re.IGNORECASE)


def tell(asked: str, output: str) -> None:
    """Write what it means. Raises BadInput where neither a finding nor an Xid is called so."""
    from berth.app.cli.frames import Frame, emit
    from berth.views import explained

    if number := _XID.fullmatch(asked.strip()):
        from berth.diagnosis.xid.catalogue import FIRST, LAST, catalogue

        known = catalogue().get(int(number[1]))
        if known is None:
            problem = f"there is no Xid {number[1]} in the catalogue."
            raise BadInput("--explain", problem, f"It has {FIRST} to {LAST}.")
        leads_to = _made_by(known.code)
        frame = Frame(
            explained.xid_record(known, leads_to), lambda screen, _: explained.show_xid(known, leads_to, screen)
        )
    else:
        code = _code(asked)
        frame = Frame(explained.code_record(code), lambda screen, _: explained.show_code(code, screen))
    emit(frame, output)


def _code(asked: str) -> Code:
    from difflib import get_close_matches

    from berth.diagnosis.rules import RULES

    known = {one.name: one for rule in RULES for one in rule.codes}
    found = next((one for name, one in known.items() if name.lower() == asked.lower()), None)
    if found is not None:
        return found
    near = get_close_matches(asked, known, 3, 0.5)
    remedy = f"Did you mean {' or '.join(near)}?" if near else "See docs/findings."
    raise BadInput("--explain", f"there is no finding {asked!r}.", remedy)


def _made_by(xid: int) -> Code | None:
    """The finding that a line of the driver with this Xid alone makes, asked of the rules themselves."""
    from berth.diagnosis.diagnose import diagnose
    from berth.evidence.piece import piece
    from berth.evidence.read import read

    found = diagnose(read([piece(f"[    1.0] NVRM: Xid (PCI:0000:01:00): {xid}, pid=1, name=x, an error", "dmesg")]))
    first = next(iter((*found.findings, *found.traps)), None)
    return None if first is None else _code(first.code)
