"""How long commands take as whole processes: help, check on a large dump in JSON and YAML, cold start of the core.

    python benchmarks/cli.py [--rounds 5] [--nodes 1000 --pods 8000]

Medians of wall and CPU seconds, beside a bare interpreter start in the same run. The dump is made by make_dump.py.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
JOB = HERE.parent / "examples" / "pytorchjob.yaml"
BERTH = [sys.executable, "-m", "berth.app.cli.main"]
COLD = "from berth.app.compile import small_cluster; from berth.scheduling.cycle import cycle; cycle(small_cluster())"


def measured(command: list[str], rounds: int) -> tuple[float, float]:
    """(median wall seconds, median CPU seconds) of a command's process."""
    wall, cpu = [], []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        wall.append(time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(wall), statistics.median(cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=8000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        dumps = {}
        for form in ("json", "yaml"):
            dumps[form] = Path(folder) / f"dump.{form}"
            with dumps[form].open("wb") as file:
                command = [sys.executable, str(HERE / "make_dump.py"), "--format", form]
                command += ["--nodes", str(options.nodes), "--pods", str(options.pods)]
                subprocess.run(command, stdout=file, check=True)
        check = [*BERTH, "check", "-f", str(JOB), "--from"]
        size = {form: dump.stat().st_size / 1e6 for form, dump in dumps.items()}
        commands = {
            "python -c pass": ([sys.executable, "-c", "pass"], options.rounds),
            "berth --help": ([*BERTH, "--help"], options.rounds),
            "cold start, first cycle": ([sys.executable, "-c", COLD], options.rounds),
            f"check, JSON {size['json']:,.0f} MB": ([*check, str(dumps["json"])], options.rounds),
            f"check, YAML {size['yaml']:,.0f} MB": ([*check, str(dumps["yaml"])], max(1, options.rounds // 2)),
        }
        print(f"{options.nodes:,} nodes, {options.pods:,} pods")
        print(f"{'':32}{'wall s':>8}{'CPU s':>8}")
        for name, (command, rounds) in commands.items():
            wall, cpu = measured(command, rounds)
            print(f"{name:32}{wall:8.2f}{cpu:8.2f}")


if __name__ == "__main__":
    main()
