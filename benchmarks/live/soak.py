"""Churn for as long as one likes: pods and gangs come at a steady rate, run a few seconds and are deleted."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from benchmarks.live.bench import Bench
from benchmarks.live.scenarios import WARM_UP_S, Scenario
from benchmarks.live.seen import Record
from benchmarks.live.things import gang, pod
from devcluster.api import STRATEGIC

GANG = 5  # pods
GPUS = 4  # of each pod of a gang: with RUNS_S half of 150 nodes is in use, so that nothing queues up on a busy machine
RUNS_S = 5.0
SAMPLE_S = 5.0
WARM = 0.5  # part of the time after which memory is to be flat


def soak(seconds: float, pods_per_s: float = 50.0) -> Scenario:
    """Memory of the scheduler over time, and whether everything was bound and nothing went wrong."""

    async def scenario(bench: Bench) -> dict[str, Any]:
        path = f"/api/v1/namespaces/{bench.namespace}/pods"
        groups = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{bench.namespace}/podgroups"
        tasks: set[asyncio.Task[None]] = set()
        left: dict[str, int] = {}

        async def end(one: Record) -> None:
            await asyncio.sleep(RUNS_S)
            await bench.api.request("PATCH", f"{path}/{one.name}/status", {"status": {"phase": "Succeeded"}}, STRATEGIC)
            await bench.api.delete(f"{path}/{one.name}", 0)
            if one.gang in left:
                left[one.gang] -= 1
                if not left[one.gang]:
                    del left[one.gang]
                    await bench.api.delete(f"{groups}/{one.gang}")

        def bound(one: Record) -> None:
            keep(end(one))

        def keep(work: Any) -> None:
            task = asyncio.create_task(work)
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        async def submit(number: int) -> None:
            """Half of the pods alone, half in gangs."""
            name = f"s{number:06d}"
            if number % 2:
                left[name] = GANG
                group, members = gang(name, bench.namespace, bench.name, GANG, GPUS)
                await bench.api.create(group)
                for member in members:
                    await bench.api.create(member)
            else:
                for i in range(GANG):
                    await bench.api.create(pod(f"{name}-{i}", bench.namespace, bench.name, 1))

        bench.pods.forgets = True
        bench.pods.on_bound.append(bound)
        bench.start_scheduler()
        await asyncio.sleep(WARM_UP_S)
        bench.begin()
        began, number = time.time(), 0
        samples: list[tuple[float, float]] = []
        next_sample = began
        while (now := time.time()) - began < seconds:
            keep(submit(number))
            number += 1
            if now >= next_sample:
                samples.append((round(now - began), bench.resident_mib))
                next_sample += SAMPLE_S
            await asyncio.sleep(max(0.0, began + number * GANG / pods_per_s - time.time()))
        drained = await bench.until(lambda: not tasks, 180)
        settled = [mib for at, mib in samples if at >= WARM * seconds]
        third = max(1, len(settled) // 3)
        before, after = sum(settled[:third]) / third, sum(settled[-third:]) / third
        log = (bench.cluster.state / "logs" / "berth.log").read_text(errors="replace")
        return {
            "pods": number * GANG,
            "drained": drained,
            "resident_mib": [round(before, 1), round(after, 1)],
            "growth_percent": round(100 * (after / before - 1), 2),
            "complaints": [line for line in log.splitlines() if line.strip()][:10],
            "scheduler_cpu_percent": round(100 * bench.scheduler_cpu_s / (time.time() - began), 1),
            **bench.costs(),
        }

    return scenario
