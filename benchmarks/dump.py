"""How long a dump takes to read, and what it costs in memory.

Dumps are generated into a temporary folder; each is read in a process of its own. "kept" is what the snapshot
itself holds, "peak" the most that the process had resident, mapped pages of the file included.

    python benchmarks/dump.py                 # 1,000 nodes, 8,000 pods, JSON and YAML
    python benchmarks/dump.py --large         # 5,000 nodes, 100,000 pods, JSON (some 4 GB of disk)
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from make_dump import write

# (nodes, pods, format): most seconds, most MB kept
BUDGET = {
    (1000, 8000, "json"): (1.5, 100),
    (1000, 8000, "yaml"): (15.0, 100),
    (5000, 100_000, "json"): (25.0, 600),
}

_READ = """
import gc, resource, sys, time
from berth.sources.assemble import read_snapshot
from berth.sources.dump import Dump
resident = lambda: int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
gc.collect(); before = resident(); start = time.perf_counter()
snapshot = read_snapshot(sys.argv[1], now_s=0.0)
took = time.perf_counter() - start
gc.collect(); kept = resident() - before
pods = len(snapshot.allocations) + sum(w.pod_count - w.missing_pods for w in snapshot.workloads)
classes = {id(a.pod_class) for a in snapshot.allocations}
print(took, kept, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, len(snapshot.nodes), pods, len(classes))
"""


def measure(file: Path) -> tuple[float, float, float, int, int, int]:
    """(seconds, MB kept, MB at the peak, nodes, pods, classes)."""
    done = subprocess.run([sys.executable, "-c", _READ, str(file)], capture_output=True, text=True, check=True)
    took, kept, peak, nodes, pods, classes = done.stdout.split()
    return float(took), int(kept) / 1e6, int(peak) / 1e6, int(nodes), int(pods), int(classes)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--large", action="store_true")
    large = parser.parse_args().large
    within = True
    with tempfile.TemporaryDirectory() as folder:
        for (node_count, pod_count, style), (most_s, most_mb) in BUDGET.items():
            if (pod_count > 10_000) != large:
                continue
            file = Path(folder, f"dump.{style}")
            with file.open("w") as out:
                write(out, node_count, pod_count, style)
            took, kept, peak, nodes, pods, classes = measure(file)
            size = file.stat().st_size / 1e6
            file.unlink()
            ok = took <= most_s and kept <= most_mb
            within &= ok
            print(
                f"{style} {nodes:,} nodes {pods:,} pods {classes} classes, {size:,.0f} MB: {took:.2f} s"
                f" ({pods / took:,.0f} pods/s), kept {kept:,.0f} MB, peak {peak:,.0f} MB"
                f" (budget {most_s} s, {most_mb} MB){'' if ok else '  OVER'}"
            )
    sys.exit(0 if within else 1)


if __name__ == "__main__":
    main()
