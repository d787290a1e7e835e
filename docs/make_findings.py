"""Writes docs/findings anew from the rules of the doctor."""

from pathlib import Path

from berth.diagnosis.rules import RULES
from berth.views.findings import pages

FOLDER = Path(__file__).parent / "findings"

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages(RULES).items():
        (FOLDER / name).write_text(text)
