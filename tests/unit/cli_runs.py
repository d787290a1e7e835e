"""Commands run as a shell runs them: in a process of their own, or quicker in this one."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from berth.app.cli.main import main

ROOT = Path(__file__).parents[2]
CLUSTER = "examples/cluster.yaml"
BERTH = (sys.executable, "-c", "from berth.app.cli.main import main; main()")


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def here(*arguments: str) -> Ran:
    """In this process, standard input closed to nobody."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as end:
            return Ran(end.code if isinstance(end.code, int) else 0, out.getvalue(), err.getvalue())
    raise AssertionError("main() comes to no end")


def shell(line: str, **environment: str) -> Ran:
    """By bash, `$BERTH` being the command, in the repository's root."""
    program = f"{BERTH[0]} {BERTH[1]} '{BERTH[2]}'"
    kept = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "BERTH_TRACEBACK")}
    done = subprocess.run(
        ["bash", "-c", line.replace("$BERTH", program)],
        cwd=ROOT, env={**kept, **environment}, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
