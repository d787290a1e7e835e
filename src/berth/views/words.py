"""What answers are called on a terminal, and how; known without the decision core."""

from __future__ import annotations

from berth.model.reasons import Answer

WORDS = {
    Answer.Fits: ("FITS NOW", "bold green"),
    Answer.NotYet: ("NOT YET", "bold yellow"),
    Answer.Never: ("NEVER", "bold red"),
}
INDENT = 2
