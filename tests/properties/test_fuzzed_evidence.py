"""Whatever the evidence is, the doctor answers: truncated, binary, mixed, very long. Nothing raises, nothing hangs."""

from __future__ import annotations

import io
import os
import random
import sys
from functools import cache
from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.diagnosis.diagnose import Diagnosis, diagnose
from berth.diagnosis.ledger import accounts
from berth.evidence.formats.all import FORMATS
from berth.evidence.piece import KINDS, Piece
from berth.evidence.read import read
from berth.views import diagnosis as view
from berth.views import ledger as ledger_view
from berth.views.tables import console

WORDINGS = Path(__file__).parents[1] / "diagnosis" / "wordings"
DATA = Path(os.environ.get("BERTH_DATA", ""))


@cache
def texts() -> list[bytes]:
    """Evidence as it is found: the wordings of our own, and the samples where they are."""
    found = [
        one["text"].encode()
        for path in sorted(WORDINGS.glob("*.yaml"))
        for one in yaml.safe_load(path.read_text()) or ()
    ]
    samples = sorted(path for path in (DATA / "samples").rglob("*") if path.is_file()) if DATA.parts else []
    return found + [path.read_bytes()[:20_000] for path in samples]


def answered(pieces: list[Piece]) -> Diagnosis:
    facts = read(pieces)
    found = diagnose(facts)
    screen = console(io.StringIO(), width=80)
    view.show(found, screen)
    view.record(found)
    ledger = accounts(facts)
    ledger_view.show(ledger, screen, True, one_node=False)
    ledger_view.record(ledger)
    return found


def damaged(raw: bytes, rng: random.Random) -> bytes:
    """Cut, doubled, bytes changed, lines shuffled, control characters, another text in the middle."""
    for _ in range(rng.randint(1, 4)):
        kind = rng.randrange(7)
        at = rng.randrange(len(raw) + 1)
        if kind == 0:
            raw = raw[:at]
        elif kind == 1:
            raw = raw[at:]
        elif kind == 2:
            raw = raw[:at] + rng.randbytes(rng.randint(1, 40)) + raw[at:]
        elif kind == 3:
            lines = raw.split(b"\n")
            rng.shuffle(lines)
            raw = b"\n".join(lines)
        elif kind == 4:
            raw = raw.replace(b" ", rng.choice((b"\t", b"\x00", b"  ", b"")), rng.randint(1, 20))
        elif kind == 5:
            raw = raw[:at] + rng.choice(texts()) + raw[at:]
        else:
            raw = raw.replace(b"1", rng.choice((b"99999999999999999999", b"-1", b"0x", b"")), rng.randint(1, 9))
    return raw


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(("", *KINDS)))
def test_damaged_evidence_is_answered(seed: int, kind: str) -> None:
    rng = random.Random(seed)
    pieces = [
        Piece(damaged(rng.choice(texts()), rng), f"piece {number}", kind if number else "", "node-1")
        for number in range(rng.randint(1, 3))
    ]
    answered(pieces)


@settings(max_examples=150, deadline=None)
@given(raw=st.binary(max_size=4000))
def test_bytes_are_answered(raw: bytes) -> None:
    assert not answered([Piece(raw, "bytes")]).findings or raw


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_no_parser_raises_whatever_it_is_given(seed: int) -> None:
    """Also what it would not have said to look like itself."""
    rng = random.Random(seed)
    piece = Piece(damaged(rng.choice(texts()), rng), "text", "", "node-1")
    for known in FORMATS:
        list(known.read(piece))


def test_the_order_of_the_pieces_changes_nothing() -> None:
    rng = random.Random(7)
    pieces = [Piece(raw, f"piece {number}") for number, raw in enumerate(rng.sample(texts(), 12))]
    first = [(one.code, one.subject) for one in answered(pieces).findings]
    for _ in range(5):
        rng.shuffle(pieces)
        assert [(one.code, one.subject) for one in answered(pieces).findings] == first


def test_a_million_lines_of_one_error_are_one_finding() -> None:
    line = b"[ 12.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=a, GPU has fallen off the bus.\n"
    found = answered([Piece(line * 1_000_000, "kernel log", "dmesg")])
    assert [one.code for one in found.findings] == ["GpuFellOffBus"]


def test_a_line_without_end_and_a_deep_nest() -> None:
    answered([Piece(b"NVRM: Xid (PCI:0000:3b:00): 79 " * 300_000, "one line")])
    answered([Piece(b"[" * 200_000, "json"), Piece(b'{"a":' * 100_000, "json"), Piece(b"- " * 100_000, "yaml")])
    assert sys.getrecursionlimit() < 100_000
