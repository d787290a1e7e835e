"""`berth up`: in a terminal, where nobody watches, and whatever is typed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from cli_runs import here

from berth.app.cli.watching import Clock
from berth.model.workload import WHOLE
from berth.simulation import harbour

JOBS = "job,submit,duration,gpus,queue\n" + "".join(
    f"j{i},{i * 30},{300 + 7 * i},{1 + i % 4},q{i % 3}\n" for i in range(12)
)
ENTERED, LEFT, FRAME = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?2026h"
LONGEST_S = 240.0  # of a terminal session on a machine with much else to do

Step = tuple[bytes, int, Callable[[int, int], object]]  # once so many of these have been shown, this is done


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS)
    return str(path)


def in_terminal(
    arguments: Sequence[str], steps: Sequence[Step], cwd: Path, size: tuple[int, int] = (80, 24), **environment: str
) -> tuple[int, bytes]:
    """(exit code, all that the terminal was sent)."""
    pid, fd = pty.fork()
    if not pid:
        os.chdir(cwd)
        kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")}
        program = [sys.executable, "-c", "from berth.app.cli.main import main; main()", "up", *arguments]
        os.execve(sys.executable, program, {**kept, "TERM": "xterm-256color", **environment})
    resize(fd, *size)
    shown, waiting, until = b"", list(steps), time.monotonic() + LONGEST_S
    while time.monotonic() < until:
        if waiting and shown.count(waiting[0][0]) >= waiting[0][1]:
            waiting.pop(0)[2](fd, pid)
        if select.select([fd], [], [], 0.05)[0]:
            try:
                shown += os.read(fd, 65536)
            except OSError:  # it has closed its end
                break
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def resize(fd: int, width: int, height: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


def plain(sent: bytes) -> str:
    return re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", sent).decode(errors="replace")


def typed(keys: bytes) -> Callable[[int, int], object]:
    return lambda fd, _: os.write(fd, keys)


def test_q_ends_it_and_the_terminal_is_as_before(trace: str, tmp_path: Path) -> None:
    steps: list[Step] = [
        (b"WHAT HAPPENS", 2, typed(b" ")),
        (b"paused", 2, lambda fd, _: resize(fd, 130, 40)),
        (b"paused", 6, typed(b"+")),
        (b"paused", 8, typed(b"q")),
    ]
    code, sent = in_terminal(("--trace", trace, "--cluster", "2x4", "--speed", "30"), steps, tmp_path)
    assert code == 0
    assert sent.count(ENTERED) == 1 and sent.count(LEFT) == 1
    frames, after = sent.split(LEFT)[0].split(FRAME)[1:], plain(sent.split(LEFT)[1])
    assert "×30" in plain(frames[-3]) or "×60" in plain(frames[-1])
    widths = [max(map(len, plain(one).splitlines())) for one in frames]
    assert max(widths[:2]) <= 80 < max(widths) <= 130
    assert "of all GPUs were in use" in after and "It was ended at" in after
    page = (tmp_path / "berth-up.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "http" not in page and "<script" not in page


def test_ctrl_c_leaves_a_page_too(trace: str, tmp_path: Path) -> None:
    steps: list[Step] = [(b"WHAT HAPPENS", 2, typed(b"\x03"))]
    given = ("--trace", trace, "--cluster", "2x4", "--speed", "30", "--report", "page.html")
    code, sent = in_terminal(given, steps, tmp_path, (40, 12), NO_COLOR="1", PYTHONIOENCODING="ascii")
    assert code == 130
    assert (tmp_path / "page.html").exists() and "The report: page.html" in plain(sent)
    assert ">nan" not in (tmp_path / "page.html").read_text()
    assert b"\x1b[38" not in sent, "no colour"
    assert plain(sent).isascii()


def test_where_nobody_watches_there_are_lines(trace: str, tmp_path: Path) -> None:
    done = here("up", "--trace", trace, "--cluster", "2x4", "--report", str(tmp_path / "page.html"))
    assert done.code == 0
    assert re.search(r"day 1 00:\d\d  \d+ of 8 GPUs in use, \d+ run, \d+ wait", done.out)
    assert "12 of 12 jobs that came ended, 0 run, 0 wait" in done.out
    assert "\x1b" not in done.out and (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--speed", "fast"), "is no speed"),
        (("--speed", "nan"), "is no speed"),
        (("--speed", "-3"), "is no speed"),
        (("--speed", "inf"), "is no speed"),
        (("--for", "0"), "--for"),
        (("--trace", "nothing"), "neither a known trace nor a file"),
        (("--trace", "muri:1,muri:2"), "one trace can be watched"),
        (("--trace", ""), "one trace can be watched"),
        (("--cluster", "8x8"), "has its own"),
        (("--trace", "builtin:small", "--cluster", "eight"), "is no cluster"),
    ],
)
def test_wrong_input_is_a_usage_error(arguments: tuple[str, ...], words: str) -> None:
    done = here("up", *arguments)
    assert done.code == 2 and words in done.err


def test_a_page_that_cannot_be_written_is_told_before_the_day(tmp_path: Path) -> None:
    done = here("up", "--report", str(tmp_path / "no" / "page.html"))
    assert done.code == 3 and f"cannot be written: there is no folder {tmp_path / 'no'}." in done.err and not done.out
    done = here("up", "--report", str(tmp_path))
    assert done.code == 3 and "cannot be written: it is a folder." in done.err


def test_the_clock_waits_for_decisions_and_never_runs_back() -> None:
    clock = Clock(1000.0)
    clock.tick(-np.inf)
    assert clock.now_s == 0.0, "nothing has been decided"
    time.sleep(0.02)
    clock.tick(5.0)
    assert clock.now_s == 5.0, "no further than what has been decided"
    clock.tick(1.0)
    assert clock.now_s == 5.0
    clock.is_paused = True
    time.sleep(0.01)
    clock.tick(1e9)
    assert clock.now_s == 5.0
    fast = Clock(np.inf)
    fast.tick(77.0)
    assert fast.now_s == 77.0


def test_the_built_in_day_is_the_same_each_time_and_has_its_stories() -> None:
    one, other = harbour.offered(), harbour.offered()
    assert one.workloads == other.workloads and one.jobs.service_s.tolist() == other.jobs.service_s.tolist()
    assert one.workloads != harbour.offered(7).workloads
    assert one.workloads is not None and len(one.cluster.nodes) == 32
    assert sum(len(node.devices) for node in one.cluster.nodes) == 220
    sets = [pod_set for workload in one.workloads for pod_set in workload.pod_sets]
    assert any(s.pod_class.gpu_milli < WHOLE for s in sets), "shares of a GPU"
    assert any("mig-" in name for s in sets for name, _ in s.pod_class.requests), "partitions"
    assert any(w.is_gang and w.pod_sets[0].topology for w in one.workloads), "a gang for one rack"
    assert {e.node for e in one.jobs.node_events} <= {node.name for node in one.cluster.nodes}
    assert (np.diff(one.jobs.submit_s) >= 0).all() and (one.jobs.submit_s < one.length_s).all()
    assert {w.queue for w in one.workloads} == {queue.name for queue in harbour.QUEUES}
