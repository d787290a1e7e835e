"""The scenarios, each a function from a bench to figures. Seconds count from the last pod made unless said."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from benchmarks.live.answered import bind_times, longest_partial_s
from benchmarks.live.bench import Bench
from benchmarks.live.seen import Record, first_seen
from benchmarks.live.things import BLOCK, gang, pod, priority_class
from berth.kube.client import Client
from devcluster.api import STRATEGIC

Figures = dict[str, Any]
Scenario = Callable[[Bench], Coroutine[Any, Any, Figures]]

_GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/{}/podgroups"
_VERDICTS = "/apis/berth.dev/v1alpha1/namespaces/{}/verdicts"
WARM_UP_S = 4.0  # for a scheduler to have listed everything before the load comes
SPARE = 200  # GPUs that stay free on a standing cluster, for what is bound there to measure


def burst(pods: int) -> Scenario:
    """Pods of one GPU wait; then the scheduler starts."""

    async def scenario(bench: Bench) -> Figures:
        await bench.make([pod(f"p{i:05d}", bench.namespace, bench.name, 1) for i in range(pods)])
        await bench.until(lambda: len(bench.pods.records) >= pods, 60)
        await asyncio.sleep(2)
        bench.begin()
        began = bench.start_scheduler()
        done = await bench.until(lambda: bench.pods.bound >= pods, 300)
        times = sorted(one.bound_s for one in bench.pods.records.values() if one.bound_s)
        await asyncio.sleep(0.3)
        found = bench.costs()  # without the events that come afterwards
        await asyncio.sleep(15)
        later = bench.costs()
        span = max(times[-1] - times[0], 1e-9) if times else 0.0
        return {
            "done": done,
            "first_bind_s": round(times[0] - began, 2),
            "bind_span_s": round(span, 2),
            "pods_per_s": round((len(times) - 1) / span),
            "nodes_used": len({one.node for one in bench.pods.records.values() if one.node}),
            "cpu_ms_per_pod": round(1000 * found["cpu_all_s"] / pods, 2),
            "scheduler_cpu_s": round(bench.scheduler_cpu_s, 2),
            "peak_mib": round(bench.peak_mib),
            "over_committed": bench.pods.over_committed(lambda one: 1),
            **found,
            "writes_in_all": later["writes"],
        }

    return scenario


def raw_binds(pods: int) -> Scenario:
    """The rate at which this machine takes binds: decided in advance, sent by Berth's own client, 64 in flight."""

    async def scenario(bench: Bench) -> Figures:
        from berth.kube.find_access import load_access

        await bench.make([pod(f"p{i:05d}", bench.namespace, "nobody", 1) for i in range(pods)])
        listed = await bench.api.request("GET", f"/api/v1/namespaces/{bench.namespace}/pods")
        uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in listed["items"]}
        work = iter([(name, uid, f"n{i // 8:05d}") for i, (name, uid) in enumerate(sorted(uids.items()))])
        bench.begin()
        async with Client(load_access(str(bench.cluster.kubeconfig)), most_in_flight=64) as client:

            async def worker() -> None:
                for name, uid, node in work:
                    await client.bind(bench.namespace, name, uid, None, node)

            began = time.time()
            await asyncio.gather(*[worker() for _ in range(64)])
            took = time.time() - began
        return {"pods_per_s": round(pods / took), "cpu_ms_per_pod": round(1000 * bench.costs()["cpu_all_s"] / pods, 2)}

    return scenario


def one_gang(pods: int, gpus: int, level: str = "") -> Scenario:
    """A gang that fits, on a scheduler that is up."""

    async def scenario(bench: Bench) -> Figures:
        bench.start_scheduler()
        await asyncio.sleep(WARM_UP_S)
        bench.begin()
        group, members = gang("g", bench.namespace, bench.name, pods, gpus, level)
        await bench.api.create(group)
        last = await bench.make(members)
        done = await bench.until(lambda: bench.pods.bound >= pods, 120)
        times = sorted(one.bound_s for one in bench.pods.records.values() if one.bound_s)
        blocks = {0 if int(one.node[1:]) < 488 else 1 for one in bench.pods.records.values() if one.node}
        return {
            "done": done,
            "first_bind_s": round(times[0] - last, 3) if times else None,
            "last_bind_s": round(times[-1] - last, 3) if times else None,
            "bind_span_s": round(times[-1] - times[0], 3) if times else None,
            "blocks": len(blocks),
            **bench.costs(),
        }

    return scenario


def refused(pods: int, gpus: int, level: str = "") -> Scenario:
    """A gang that can never be placed: how soon is that said, on one object and on every pod, and what then?"""

    async def scenario(bench: Bench) -> Figures:
        bench.start_scheduler()
        await asyncio.sleep(WARM_UP_S)
        bench.begin()
        group, members = gang("g", bench.namespace, bench.name, pods, gpus, level)
        await bench.api.create(group)
        until = time.time() + 60
        watches = [asyncio.create_task(first_seen(bench.api, _GROUPS.format(bench.namespace), _is_told, until))]
        if bench.kind == "berth":
            path = _VERDICTS.format(bench.namespace)
            watches.append(asyncio.create_task(first_seen(bench.api, path, _is_final, until)))
        last = await bench.make(members)
        await bench.until(lambda: sum(1 for one in bench.pods.records.values() if one.reason_s) >= pods, 50, 0.1)
        reasons = sorted(one.reason_s for one in bench.pods.records.values() if one.reason_s)
        seen = await asyncio.gather(*watches)
        cost = bench.costs()
        before = bench.scheduler_cpu_s
        await asyncio.sleep(30)
        return {
            "verdict_s": round(seen[1] - last, 3) if len(seen) > 1 else None,
            "group_s": round(seen[0] - last, 3) if seen[0] else None,
            "first_pod_s": round(reasons[0] - last, 3) if reasons else None,
            "last_pod_s": round(reasons[-1] - last, 3) if len(reasons) >= pods else None,
            "pods_told": len(reasons),
            "cpu_30_s_after": round(bench.scheduler_cpu_s - before, 2),
            "bound": bench.pods.bound,
            **cost,
        }

    return scenario


def _is_told(item: Any) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or []
    return any(c["type"] == "PodGroupInitiallyScheduled" and c["status"] == "False" for c in conditions)


def _is_final(item: Any) -> bool:
    return item.get("reason") not in (None, "", "WaitingForGang")


def churn(gangs: int, pods: int, gpus: int, runs_s: float) -> Scenario:
    """Gangs that come at once, more than fit, each gone so long after it is whole."""

    async def scenario(bench: Bench) -> Figures:
        members: dict[str, list[Record]] = {}
        whole: dict[str, float] = {}
        tasks: set[asyncio.Task[None]] = set()

        async def finish(name: str) -> None:
            await asyncio.sleep(runs_s)
            body = {"status": {"phase": "Succeeded", "conditions": []}}
            path = f"/api/v1/namespaces/{bench.namespace}/pods"
            await bench.api.all_of(
                [("PATCH", f"{path}/{one.name}/status", body, STRATEGIC) for one in members[name]], pods
            )

        def bound(one: Record) -> None:
            here = members.setdefault(one.gang, [])
            here.append(one)
            if len(here) == pods:
                whole[one.gang] = one.bound_s
                task = asyncio.create_task(finish(one.gang))
                tasks.add(task)
                task.add_done_callback(tasks.discard)

        bench.pods.on_bound.append(bound)
        bench.start_scheduler()
        await asyncio.sleep(WARM_UP_S)
        bench.begin()
        todo = iter([gang(f"g{i:03d}", bench.namespace, bench.name, pods, gpus) for i in range(gangs)])

        async def maker() -> None:
            for group, its in todo:
                await bench.api.create(group)
                for one in its:
                    await bench.api.create(one)

        began = time.time()
        await asyncio.gather(*[maker() for _ in range(16)])
        made = time.time()
        done = await bench.until(lambda: len(whole) >= gangs, 180)
        spans = sorted(whole[name] - min(one.bound_s for one in members[name]) for name in whole)
        return {
            "done": done,
            "create_s": round(made - began, 2),
            "all_whole_s": round(max(whole.values()) - began, 2) if whole else None,
            "longest_partial_s": round(spans[-1], 2) if spans else None,
            **_by_server(bench, members),
            "over_committed": bench.pods.over_committed(lambda one: gpus),
            **bench.costs(),
        }

    return scenario


def _by_server(bench: Bench, members: dict[str, list[Record]]) -> Figures:
    """The longest partial gang by the API server's own account, where it keeps one."""
    if not (times := bind_times(bench.audit_log)):
        return {}
    longest_s = longest_partial_s([[one.name for one in pods] for pods in members.values()], times)
    return {"longest_partial_by_server_s": None if longest_s is None else round(longest_s, 2)}


def preempt(nodes: int, pods: int, gpus: int, stop_s: float = 2.0) -> Scenario:
    """A full cluster of low-priority pods of one GPU; a gang of high priority comes. We play the kubelet."""

    async def scenario(bench: Bench) -> Figures:
        await bench.make([priority_class("low", 50), priority_class("high", 90)])
        path = f"/api/v1/namespaces/{bench.namespace}/pods"
        low = [pod(f"low{i:05d}", bench.namespace, bench.name, 1, "", "low") for i in range(nodes * 8)]
        await bench.make(low)
        await bench.api.all_of([
            ("POST", f"{path}/low{i:05d}/binding", {
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"low{i:05d}"},
                "target": {"kind": "Node", "name": f"n{i // 8:05d}"},
            }, "application/json")
            for i in range(nodes * 8)
        ])  # fmt: skip
        running = {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}
        names = [f"low{i:05d}" for i in range(nodes * 8)]
        await bench.api.all_of([("PATCH", f"{path}/{name}/status", running, STRATEGIC) for name in names])
        tasks: set[asyncio.Task[None]] = set()

        async def stop(name: str) -> None:
            await asyncio.sleep(stop_s)
            await bench.api.delete(f"{path}/{name}", 0)

        def asked(one: Record) -> None:
            if not one.gone_s:
                task = asyncio.create_task(stop(one.name))
                tasks.add(task)
                task.add_done_callback(tasks.discard)

        bench.pods.on_asked.append(asked)
        bench.start_scheduler()
        await asyncio.sleep(WARM_UP_S + 2)
        bench.begin()
        group, members = gang("hi", bench.namespace, bench.name, pods, gpus, "", "high")
        await bench.api.create(group)
        last = await bench.make(members)
        mine = [name for name in bench.pods.records if name.startswith("hi-")]
        done = await bench.until(
            lambda: sum(1 for n in (m["metadata"]["name"] for m in members)
                        if n in bench.pods.records and bench.pods.records[n].bound_s) >= pods, 60,
        )  # fmt: skip
        await asyncio.sleep(5)
        evicted = [one for one in bench.pods.records.values() if one.name.startswith("low") and one.asked_s]
        high = [one for one in bench.pods.records.values() if one.gang == "hi" and one.bound_s]
        asked_s = sorted(one.asked_s for one in evicted)
        gone_s = max((one.gone_s for one in evicted), default=0.0)
        bound_s = max((one.bound_s for one in high), default=0.0)
        return {
            "done": done,
            "evicted": len(evicted),
            "needed": pods * gpus,
            "first_asked_s": round(asked_s[0] - last, 2) if asked_s else None,
            "last_asked_s": round(asked_s[-1] - last, 2) if asked_s else None,
            "last_gone_s": round(gone_s - last, 2),
            "all_bound_s": round(bound_s - last, 2),
            "bound_after_gone_s": round(bound_s - gone_s, 2),
            "unused_nodes": len({one.node for one in evicted} - {one.node for one in high}),
            "members_seen_late": pods - len(mine),
            **bench.costs(),
        }

    return scenario


def standing(bound: int) -> Scenario:
    """A large cluster that runs: from start to the first bind, how late the event loop was at most in the minute of
    it, then what it costs to do nothing. A few GPUs stay free; pods that there are none for do not ask for any."""

    async def scenario(bench: Bench) -> Figures:
        nodes = len((await bench.api.request("GET", "/api/v1/nodes"))["items"])
        placed = []
        for i in range(bound):
            one = pod(f"old{i:05d}", bench.namespace, bench.name, 1 if i < 8 * nodes - SPARE else 0)
            one["spec"]["nodeName"] = f"n{i % nodes:05d}"
            placed.append(one)
        await bench.make(placed)
        await bench.make([pod("first", bench.namespace, bench.name, 1)])
        await bench.until(lambda: len(bench.pods.records) > bound, 60)
        began = bench.start_scheduler()
        await bench.until(lambda: bool(bench.pods.records["first"].node), 120)
        first = bench.pods.records["first"].bound_s - began
        await asyncio.sleep(10)
        latencies = []
        for i in range(20):
            await bench.make([pod(f"next{i}", bench.namespace, bench.name, 1)])
            asked = time.time()
            await bench.until(lambda i=i: bool(bench.pods.records.get(f"next{i}") and
                                               bench.pods.records[f"next{i}"].node), 10, 0.002)  # fmt: skip
            latencies.append(time.time() - asked)
            await asyncio.sleep(0.4)
        late_s = await bench.loop_lag_s() if bench.kind == "berth" else None
        before, at = bench.scheduler_cpu_s, time.time()
        await asyncio.sleep(60)
        return {
            "loop_late_ms": round(1000 * late_s) if late_s is not None else None,
            "start_to_first_bind_s": round(first, 2),
            "bind_latency_ms": round(1000 * sorted(latencies)[len(latencies) // 2]),
            "worst_latency_ms": round(1000 * max(latencies)),
            "idle_cpu_percent": round(100 * (bench.scheduler_cpu_s - before) / (time.time() - at), 2),
            "peak_mib": round(bench.peak_mib),
        }

    return scenario


TABLE: dict[str, tuple[int, Scenario]] = {
    "raw": (1000, raw_binds(4000)),
    "burst-1000": (1000, burst(4000)),
    "burst-5000": (5000, burst(10_000)),
    "gang": (1000, one_gang(512, 8)),
    "gang-block": (1000, one_gang(512, 8, BLOCK)),
    "refused": (1000, refused(1001, 8)),
    "refused-block": (1000, refused(513, 8, BLOCK)),
    "churn": (1000, churn(200, 8, 8, 5.0)),
    "preempt": (500, preempt(500, 32, 8)),
    "standing": (5000, standing(30_000)),
    "standing-100000": (5000, standing(100_000)),
}
