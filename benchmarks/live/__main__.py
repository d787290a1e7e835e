"""Run scenarios: `python -m benchmarks.live gang churn --schedulers berth,kube --out results.jsonl`.

Without names all of them, which takes about half an hour. One line of JSON a run on stdout; nothing else must run
on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.live.bench import machine, run
from benchmarks.live.scenarios import TABLE
from benchmarks.live.soak import soak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(TABLE))
    parser.add_argument("--schedulers", default="berth,kube")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument(
        "--audit",
        action="store_true",
        help="churn: what the API server says of each bind, too; it costs the server a few per cent",
    )
    parser.add_argument("--soak", type=float, metavar="SECONDS", help="churn for so long instead of the scenarios")
    asked = parser.parse_args()
    if asked.soak:
        print(json.dumps(run("berth", 150, soak(asked.soak))), flush=True)
        return
    unknown = [name for name in asked.scenarios if name not in TABLE]
    if unknown:
        parser.error(f"no scenario {unknown[0]}; there are {', '.join(TABLE)}")
    print(machine(), file=sys.stderr)
    for name in asked.scenarios or TABLE:
        nodes, scenario = TABLE[name]
        for _ in range(asked.runs):
            for scheduler in asked.schedulers.split(","):
                if name == "raw" and scheduler != "berth":
                    continue
                figures = run(scheduler, nodes, scenario, asked.audit)
                head = {"scenario": name, "scheduler": scheduler, "at": time.strftime("%H:%M:%S")}
                line = json.dumps({**head, **figures})
                print(line, flush=True)
                if asked.out:
                    with asked.out.open("a") as file:
                        file.write(line + "\n")


if __name__ == "__main__":
    main()
