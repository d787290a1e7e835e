"""How long the doctor and the ledger take, and how much memory: whole processes, medians, beside `grep`.

    python -m benchmarks.doctor                  a must-gather and a bug report of 50 MB, a small text
    python -m benchmarks.doctor --dump DUMP      and a dump (benchmarks.make_dump --nodes 5000 --pods 40000)

The peer is `grep -c -i -F -f` with every literal that the doctor looks for: what finding alone costs, without reading,
joining or judging anything.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from berth.evidence.messages import MESSAGES

BERTH = (sys.executable, "-c", "from berth.app.cli.main import main; main()")


def timed(command: tuple[str, ...], runs: int) -> tuple[float, float, float]:
    """Median seconds of wall clock and of CPU, and the largest resident memory in MiB."""
    walls, cpus, most = [], [], 0
    for _ in range(runs):
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        walls.append(time.perf_counter() - began)
        cpus.append(usage.ru_utime + usage.ru_stime)
        most = max(most, usage.ru_maxrss)
    return statistics.median(walls), statistics.median(cpus), most / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dump", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--mib", type=int, default=50)
    given = parser.parse_args()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, medians of {given.runs} runs")
    with tempfile.TemporaryDirectory() as folder:
        gathered, report, small = (Path(folder, name) for name in ("must-gather", "bug-report.log", "small.log"))
        literals = Path(folder, "literals")
        # By processes of their own: what this one has held would count as the memory of its children.
        for path, kind in ((gathered, "must-gather"), (report, "bug-report")):
            make = (sys.executable, "-m", "benchmarks.make_bundle", str(path), "--kind", kind, "--mib", str(given.mib))
            subprocess.run(make, check=True)
        small.write_text("NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n")
        literals.write_text("\n".join(sorted({anchor for message in MESSAGES for anchor in message.anchors})))
        grep = ("grep", "-c", "-i", "-F", "-f", str(literals))
        rows = [
            ("must-gather", (*BERTH, "doctor", "--from", str(gathered)), (*grep, "-r", str(gathered))),
            ("bug report", (*BERTH, "doctor", "--from", str(report)), (*grep, str(report))),
            ("one line", (*BERTH, "doctor", "--evidence", str(small)), (*grep, str(small))),
        ]
        if given.dump:
            for what in ("doctor", "ledger"):
                rows.append((f"{what}, {given.dump.name}", (*BERTH, what, "--from", str(given.dump)), ()))
        print(f"{'':28} {'wall s':>8} {'CPU s':>8} {'MiB':>6} {'grep s':>8} {'ratio':>6}")
        for name, ours, peer in rows:
            wall, cpu, memory = timed(ours, given.runs)
            line = f"{name:28} {wall:8.2f} {cpu:8.2f} {memory:6.0f}"
            if peer:
                other, _, _ = timed(peer, given.runs)
                line += f" {other:8.2f} {wall / other:6.1f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
