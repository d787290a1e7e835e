"""Clusters for jobs over time: so many like nodes, or the nodes of a dump as if nothing ran on them.

What runs on a dump's nodes has no end that anybody knows, and is no part of the trace: holding its GPUs for ever, or
until limits that only some of it has, would make a cluster of which nobody could say how large it is.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from berth.base.errors import BadInput
from berth.base.units import GIB, counted
from berth.model.as_written import booking_problem
from berth.model.booking import Booking
from berth.model.cluster import Device, GpuClass, Health, Node
from berth.model.gpus import satisfies
from berth.model.jobs import Jobs
from berth.model.queue import Queue
from berth.model.resources import CPU, MEMORY, NVIDIA_GPU, PODS, resources
from berth.model.snapshot import Snapshot
from berth.model.topology import HOST_LABEL
from berth.simulation.queueing.shown import wish_of

# Traces of jobs ask for GPUs only: a node has CPU, memory and places for pods in plenty.
GPU_CLASS = GpuClass("GPU", link="nvlink")
_CORES, _MEMORY_GIB, _PODS = 256, 2048, 256
SINCE_1970 = 1e9  # of a trace that begins so late times are seconds since 1970, else since its own begin
LOAD_GPUS = 8  # of each node, where a load says how many nodes there are


@dataclass(frozen=True)
class Site:
    """A cluster on which a trace runs. `shape` is nodes and GPUs of each where all are alike and nothing but their GPUs
    counts: what the published policies know; else None."""

    snapshot: Snapshot
    shape: tuple[int, int] | None
    heeds_class: bool = False  # jobs that name a GPU class get no other
    notes: tuple[str, ...] = ()
    taken_s: float = 0.0  # seconds since 1970 at which its reservations have second 0

    @property
    def node_gpus(self) -> int:
        return max((len(node.devices) for node in self.snapshot.nodes), default=0)

    @property
    def by_class(self) -> dict[str, int]:
        """GPUs by their class."""
        found: Counter[str] = Counter()
        for node in self.snapshot.nodes:
            found[node.gpu_class] += len(node.devices)
        return found

    @property
    def gpus(self) -> int:
        return sum(len(node.devices) for node in self.snapshot.nodes)


def like_site(nodes: int, node_gpus: int, notes: tuple[str, ...] = ()) -> Site:
    return Site(like_nodes(nodes, node_gpus), (nodes, node_gpus), notes=notes)


def site_for(jobs: Jobs, load_pct: float) -> Site:
    """So many nodes of eight GPUs that the jobs, from the first submission to the last, ask for this part of them:
    GPU-seconds ÷ that time ÷ the GPUs, rounded up to a node, and as many as the widest job needs. Raises BadInput."""
    came = float(jobs.submit_s[-1] - jobs.submit_s[0])
    asked = float((jobs.service_s * jobs.width).sum())
    if not came or not asked:
        raise BadInput(
            f"trace {jobs.name!r}", "has no load: all of its jobs come in one moment, or take no time.",
            "Give --cluster in place of --load.",
        )  # fmt: skip
    mean_gpus = asked / came
    nodes = max(math.ceil(mean_gpus / LOAD_GPUS / (load_pct / 100)), -(-int(jobs.width.max()) // LOAD_GPUS))
    has = 100 * mean_gpus / (nodes * LOAD_GPUS)
    note = f"{counted(nodes, 'node')} of {LOAD_GPUS} GPUs: the mean load is {has:.0f} % ({load_pct:g} % was asked for)"
    return like_site(nodes, LOAD_GPUS, (note,))


def emptied(seen: Snapshot, name: str) -> Site:
    """The nodes of a dump that jobs of a trace may use, with its queues, and nothing on them. Raises BadInput where
    there are none."""
    usable = tuple(node for node in seen.nodes if _takes_jobs(node))
    if not usable:
        raise BadInput(name, "has no node that jobs may use: whole GPUs, ready, fit, and no taint of its own.")
    left_out = len([node for node in seen.nodes if node.devices]) - len(usable)
    pods = sum(1 for allocation in seen.allocations if not allocation.is_daemon)
    notes = list(seen.notes)
    if pods:
        run = "runs" if pods == 1 else "run"
        notes.append(f"the cluster begins empty: {counted(pods, 'pod')} that {run} in {name} left out")
    if left_out:
        notes.append(
            f"{counted(left_out, 'node')} with GPUs of {name} left out: cordoned, unfit, tainted, or cut into parts"
        )
    kept = [one.name for one in seen.bookings if one.window(seen.now_s) and not booking_problem(one, seen)[0]]
    if kept:  # the others are among the notes of the dump
        named = ", ".join(kept[:3]) + (", …" if len(kept) > 3 else "")
        many, are = ("GPUReservations", "are") if len(kept) > 1 else ("GPUReservation", "is")
        notes.append(f"{many} of {name} {are} heeded: {named}")
    nodes = tuple(_with_fit_devices(node) for node in usable)
    snapshot = Snapshot(
        nodes=nodes,
        gpu_classes=seen.gpu_classes,
        queues=seen.queues,
        topology=seen.topology,
        budgets=seen.budgets,
        bookings=tuple(_from_now(booking, seen.now_s) for booking in seen.bookings),
    )
    sizes, classes = Counter(len(node.devices) for node in nodes), {node.gpu_class for node in nodes}
    has_rules = bool(seen.bookings) or any(q.quota or q.limit for q in seen.queues)
    shape = (len(nodes), len(nodes[0].devices)) if len(sizes) == 1 and len(classes) == 1 and not has_rules else None
    return Site(snapshot, shape, True, tuple(notes), seen.now_s)


def _from_now(booking: Booking, now_s: float) -> Booking:
    """The reservation, on a clock that is at 0 when the dump was taken; hours that repeat stay those of the day."""
    begins_s, ends_s = booking.from_s - now_s, booking.until_s - now_s
    return msgspec.structs.replace(booking, from_s=begins_s, until_s=ends_s, shares=())


def _takes_jobs(node: Node) -> bool:
    keeps_off = any(t.effect != "PreferNoSchedule" and t.key != NVIDIA_GPU for t in node.taints)
    is_open = node.ready and not node.cordoned and node.health is not Health.Unfit and not node.unsafe
    return node.device_resource == NVIDIA_GPU and bool(_fit(node)) and is_open and not keeps_off


def _fit(node: Node) -> tuple[Device, ...]:
    return tuple(d for d in node.devices if d.health in (Health.Fit, Health.Suspect) and not d.partitions)


def _with_fit_devices(node: Node) -> Node:
    """The GPUs that are given out, numbered anew: those that are not are no part of the capacity."""
    devices = tuple(msgspec.structs.replace(d, index=i) for i, d in enumerate(_fit(node)))
    amounts = {**dict(node.allocatable), NVIDIA_GPU: len(devices)}
    return msgspec.structs.replace(node, devices=devices, allocatable=resources(amounts))


def refuse_too_wide(jobs: Jobs, site: Site) -> None:
    """A job that could never start would wait for ever and make every average nonsense. Raises BadInput."""
    pod_gpus = np.where(jobs.pod_gpus > 0, jobs.pod_gpus, np.minimum(jobs.width, site.node_gpus))
    least = jobs.min_pods * pod_gpus if len(jobs.min_pods) else jobs.width
    for c in (-1, *range(len(jobs.classes) if site.heeds_class else 0)):
        mine = jobs.gpu_class == c if c >= 0 or site.heeds_class else np.ones(len(jobs), bool)
        if not mine.any():
            continue
        has, of = [len(node.devices) for node in site.snapshot.nodes], ""
        if c >= 0:
            wish, of = wish_of(jobs.classes[c]), f" of class {jobs.classes[c]}"
            there_are = sorted({node.gpu_class for node in site.snapshot.nodes})
            able = {one.name for one in site.snapshot.gpu_classes if satisfies(one, wish)} & {*there_are}
            if not able:
                job = f"trace {jobs.name!r}: job {jobs.names[int(mine.argmax())]}"
                raise BadInput(
                    job, f"asks for GPUs of class {jobs.classes[c]}, and no node that jobs may use has any.",
                    f"There are {', '.join(there_are)}; several of which any will do are written A|B.",
                )  # fmt: skip
            has = [len(node.devices) for node in site.snapshot.nodes if node.gpu_class in able]
        for asks, there, words in (
            (np.where(mine, pod_gpus, 0), max(has, default=0), f"GPUs{of} in one pod; a node has"),
            (np.where(mine, least, 0), sum(has), f"GPUs{of}, the cluster has"),
        ):
            if asks.max() > there:
                job = f"trace {jobs.name!r}: job {jobs.names[int(asks.argmax())]}"
                gpus = words if asks.max() != 1 else words.replace("GPUs", "GPU", 1)
                raise BadInput(job, f"asks for {asks.max()} {gpus} {there}.", "Give a larger --cluster.")


def on_clock_of(site: Site, jobs: Jobs) -> Site:
    """The site, whose reservations are at their own times where those of the trace are seconds since 1970."""
    if not site.snapshot.bookings or jobs.submit_s[0] < SINCE_1970:
        return site
    bookings = tuple(_from_now(booking, -site.taken_s) for booking in site.snapshot.bookings)
    return replace(site, snapshot=msgspec.structs.replace(site.snapshot, bookings=bookings), taken_s=0.0)


def with_queues(site: Site, jobs: Jobs) -> Site:
    """The site with the queues of the trace beside its own: those that it does not have weigh 1."""
    own = {queue.name for queue in site.snapshot.queues}
    lacking = tuple(name for name in jobs.queues if name not in own)
    if not own or not lacking:
        return site
    queues = (*site.snapshot.queues, *(Queue(name, is_stated=False) for name in lacking))
    note = f"queues that the cluster does not have weigh 1, without quota and limit: {', '.join(lacking)}"
    return replace(site, snapshot=msgspec.structs.replace(site.snapshot, queues=queues), notes=(*site.notes, note))


def like_nodes(nodes: int, node_gpus: int) -> Snapshot:
    """`node-0000` and on, whose GPUs are all joined by NVLink."""
    return Snapshot(nodes=tuple(_node(i, node_gpus) for i in range(nodes)), gpu_classes=(GPU_CLASS,))


def _node(number: int, gpus: int) -> Node:
    name = f"node-{number:04d}"
    amounts = resources({CPU: _CORES * 1000, MEMORY: _MEMORY_GIB * GIB, PODS: _PODS, NVIDIA_GPU: gpus})
    return Node(
        name=name,
        labels={HOST_LABEL: name},
        allocatable=amounts,
        capacity=amounts,
        gpu_class=GPU_CLASS.name,
        device_resource=NVIDIA_GPU,
        devices=tuple(Device(index=g, uuid=f"GPU-{number}-{g}", island=0) for g in range(gpus)),
        named_devices=True,
    )
