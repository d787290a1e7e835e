"""What the doctor leaves in files: a work record, and a page for a ticket."""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from berth.app.cli.options import Where, now_s
from berth.base.errors import UNREADABLE, BadInput
from berth.diagnosis.diagnose import Diagnosis
from berth.diagnosis.focus import Step
from berth.diagnosis.probe import Probe
from berth.diagnosis.work_record import record_of

PAGE_WIDTH = 100


def work_record(found: Diagnosis, where: Where, evidence: tuple[str, ...], target: str) -> bytes:
    """As JSON. What was given as a text is an example until somebody measures it."""
    source = where.dump or ", ".join(evidence) or f"live cluster{f' ({where.context})' if where.context else ''}"
    options = [f"--from {where.dump}"] if where.dump else [f"--evidence {path}" for path in evidence]
    kept = record_of(
        found,
        run_id=os.environ.get("BERTH_RUN_ID") or uuid.uuid4().hex[:12],
        time=datetime.fromtimestamp(now_s(), UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        standing="example" if evidence and not where.dump else "measured",
        source=source,
        target=target,
        command=" ".join(["berth doctor", *([target] if target else []), *options]),
    )
    return msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n"


def page(found: Diagnosis, notes: Sequence[str], steps: Sequence[Step], probe: Probe | None) -> bytes:
    """The report as a page of its own: what the terminal shows, in colour, without anything to be loaded."""
    from rich.console import Console
    from rich.terminal_theme import DEFAULT_TERMINAL_THEME

    from berth.views import diagnosis

    screen = Console(
        record=True, width=PAGE_WIDTH, file=io.StringIO(), highlight=False, emoji=False, force_terminal=True
    )
    diagnosis.show(found, screen, True, steps, probe)
    for note in notes:
        screen.print(f"note: {note}", style="dim", soft_wrap=True)
    return screen.export_html(theme=DEFAULT_TERMINAL_THEME, code_format=_PAGE, inline_styles=True).encode()


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>berth doctor</title>
<style>
body {{ margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: #fff; color: #1c1c1c;
  font: 0.9rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }}
pre {{ white-space: pre-wrap; word-break: break-word; margin: 0; }}
</style>
</head>
<body><pre><code>{code}</code></pre></body>
</html>
"""


def write(path: str, content: bytes) -> None:
    """Raises BadInput, exit code 3."""
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise BadInput(path, f"it cannot be written: {error.strerror}.", "Name another file.", UNREADABLE) from None
