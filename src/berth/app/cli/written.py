"""What the doctor leaves in files: a work record, and a page for a ticket."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from berth.app.cli.options import Where, now_s
from berth.base.errors import unwritten
from berth.diagnosis.diagnose import Diagnosis
from berth.diagnosis.focus import Step
from berth.diagnosis.probe import Probe
from berth.diagnosis.work_record import record_of
from berth.evidence.facts import Facts


def work_record(found: Diagnosis, facts: Facts, where: Where, evidence: tuple[str, ...], target: str) -> bytes:
    """As JSON. What was given as a text is an example until somebody measures it."""
    source = where.dump or ", ".join(evidence) or f"live cluster{f' ({where.context})' if where.context else ''}"
    options = [f"--from {where.dump}"] if where.dump else [f"--evidence {path}" for path in evidence]
    kept = record_of(
        found,
        facts,
        run_id=os.environ.get("BERTH_RUN_ID") or uuid.uuid4().hex[:12],
        time=datetime.fromtimestamp(now_s(), UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        standing="example" if evidence and not where.dump else "measured",
        source=source,
        target=target,
        command=" ".join(["berth doctor", *([target] if target else []), *options]),
    )
    return msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n"


def page(
    found: Diagnosis, notes: Sequence[str], steps: Sequence[Step], probe: Probe | None, where: Where, target: str
) -> bytes:
    """The report as a page of its own, without anything to be loaded."""
    from berth.views import diagnosis_page

    at = datetime.fromtimestamp(now_s(), UTC).strftime("%Y-%m-%d %H:%M UTC")
    source = where.dump or ("" if not where.context else f"context {where.context}")
    about = " · ".join(part for part in (target, source, at) if part)
    return diagnosis_page.page(found, notes, steps, probe, about).encode()


def write(path: str, content: bytes) -> None:
    """Raises BadInput, exit code 3."""
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise unwritten(path, error) from None
