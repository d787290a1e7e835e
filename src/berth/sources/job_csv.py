"""Jobs over time from a csv file of one's own, and the failures of nodes beside them.

| column | needed | what it is |
|---|---|---|
| job | yes | its name, once in the file |
| submit | yes | seconds since any moment, the same for all times of a trace: its begin, or 1970 |
| duration | yes | seconds that it computes alone; 0 is a job that ends as it starts |
| gpus | yes | GPUs of one pod |
| pods | | pods, all of which run or none; 1 where it is empty |
| queue, owner | | names |
| limit | | run-time limit in seconds, by which places in time go; nobody is ended by it; 0 or empty: none |
| checkpoint_every | | seconds between two moments at which it saves what it has; 0 or empty: it never does |
| min_pods | | it runs with so many pods, too, the slower the fewer; all of them where it is empty |
| priority | | whole number, the higher goes first; 0 where it is empty |
| class | | GPU class that it has to have; `H100|H200` is any of these |
| restart | | seconds that each start costs; 0 where it is empty |
| cancelled | | time at which its owner gives it up |
| deadline | | time by which it should have ended; whether it has is told |

A column that is none of these is passed over and told of, unless it looks like one of them misspelt.

Columns of node events: at (seconds), node (its name), state (`down` or `up`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from berth.base.errors import BadInput
from berth.base.units import counted
from berth.model.jobs import Jobs, NodeEvent
from berth.sources.csv_rows import Row, rows_of

MAX_SECONDS = 1e10
MAX_GPUS = 1024
MAX_PODS = 100_000
MAX_PRIORITY = 2**31 - 1

NEEDED = ("job", "submit", "duration", "gpus")
OPTIONAL = (
    "pods", "min_pods", "queue", "owner", "limit", "checkpoint_every", "priority", "class", "restart", "cancelled",
    "deadline",
)  # fmt: skip
ALSO_CALLED = {
    "user": "owner", "timelimit": "limit", "gpuclass": "class", "gputype": "class", "mincount": "min_pods",
    "minimum": "min_pods", "prio": "priority", "due": "deadline", "runtime": "duration", "name": "job", "id": "job",
    "jobid": "job", "submittime": "submit", "submitted": "submit", "arrival": "submit", "numgpus": "gpus",
    "numgpu": "gpus", "numpods": "pods", "canceled": "cancelled",
    "checkpoint": "checkpoint_every", "checkpointinterval": "checkpoint_every",
}  # fmt: skip


def read_job_file(path: Path) -> Jobs:
    """The jobs in order of submission. Raises BadInput with file, row and column."""
    seen: set[str] = set()
    unread: list[str] = []
    rows = [_job(row, seen) for row in rows_of(path, NEEDED, OPTIONAL, unread, ALSO_CALLED)]
    if not rows:
        raise BadInput(str(path), "has no jobs.", f"It needs rows under the header {', '.join(NEEDED)}.")
    rows.sort(key=lambda row: row.submit)
    queues, owners = tuple(dict.fromkeys(r.queue for r in rows)), tuple(dict.fromkeys(r.owner for r in rows))
    classes = tuple(dict.fromkeys(r.gpu_class for r in rows if r.gpu_class))
    at = {name: i for i, name in enumerate(queues)}
    owner_at = {name: i for i, name in enumerate(owners)}
    pod_gpus = np.array([r.gpus for r in rows], np.int64)
    return Jobs(
        name=str(path),
        names=tuple(r.name for r in rows),
        submit_s=np.array([r.submit for r in rows], np.float64),
        service_s=np.array([r.duration for r in rows], np.float64),
        limit_s=np.array([r.limit for r in rows], np.float64),
        restart_s=np.array([r.restart for r in rows], np.float64),
        width=pod_gpus * np.array([r.pods for r in rows], np.int64),
        pod_gpus=pod_gpus,
        priority=np.array([r.priority for r in rows], np.int64),
        queue=np.array([at[r.queue] for r in rows], np.int64),
        owner=np.array([owner_at[r.owner] for r in rows], np.int64),
        gpu_class=np.array([classes.index(r.gpu_class) if r.gpu_class else -1 for r in rows], np.int64),
        queues=queues,
        owners=owners,
        classes=classes,
        cancelled_s=np.array([r.cancelled for r in rows], np.float64),
        min_pods=np.array([r.min_pods for r in rows], np.int64),
        deadline_s=np.array([r.deadline for r in rows], np.float64),
        checkpoint_every_s=np.array([r.checkpoint_every for r in rows], np.float64),
        remarks=(*((f"{path}: not read: the column {', '.join(unread)}",) if unread else ()), *_too_early(path, rows)),
    )


def _too_early(path: Path, rows: Sequence[_Job]) -> Iterator[str]:
    """Times that lie before the submission read like durations."""
    for column, early in (
        ("cancelled", [row.name for row in rows if row.cancelled < row.submit]),
        ("deadline", [row.name for row in rows if row.deadline < row.submit]),
    ):
        if early:
            named = ", ".join(early[:3]) + (f" and {len(early) - 3} more" if len(early) > 3 else "")
            yield f"{path}: {column} is before submit, of {named}: it is a time as submit is, not seconds from there on"


class _Job(NamedTuple):
    name: str
    submit: float
    duration: float
    gpus: int
    pods: int
    min_pods: int
    queue: str
    owner: str
    limit: float
    priority: int
    gpu_class: str
    restart: float
    cancelled: float
    deadline: float
    checkpoint_every: float


def _job(row: Row, seen: set[str]) -> _Job:
    gpus = row.whole("gpus", MAX_GPUS, 1)
    pods = row.whole("pods", MAX_PODS, 1) if row.text("pods") else 1
    min_pods = row.whole("min_pods", MAX_PODS, 1) if row.text("min_pods") else pods
    if min_pods > pods:
        raise row.bad("min_pods", f"it is 1 to the {pods} pods of the job.", "Write fewer, or leave the cell empty.")
    for column in ("job", "queue"):
        if "/" in row.text(column):
            raise row.bad(column, "a name holds no slash.", "Write another character.")
    return _Job(
        name=row.name("job", seen),
        submit=row.number("submit", MAX_SECONDS),
        duration=row.number("duration", MAX_SECONDS),
        gpus=gpus,
        pods=pods,
        min_pods=min_pods,
        queue=row.text("queue") or "all",
        owner=row.text("owner"),
        limit=row.number("limit", MAX_SECONDS) if row.text("limit") else 0.0,
        priority=row.integer("priority", MAX_PRIORITY) if row.text("priority") else 0,
        gpu_class=row.text("class"),
        restart=row.number("restart", MAX_SECONDS) if row.text("restart") else 0.0,
        cancelled=row.number("cancelled", MAX_SECONDS) if row.text("cancelled") else np.inf,
        deadline=row.number("deadline", MAX_SECONDS) if row.text("deadline") else np.inf,
        checkpoint_every=row.number("checkpoint_every", MAX_SECONDS) if row.text("checkpoint_every") else 0.0,
    )


def read_node_events(path: Path) -> tuple[NodeEvent, ...]:
    """Failures and returns of nodes, by time. Raises BadInput with file, row and column."""
    events = []
    for row in rows_of(path, ("at", "node", "state"), unread=[], also_called={"time": "at", "name": "node"}):
        state = row.text("state").lower()
        if state not in ("down", "up"):
            raise row.bad("state", "it is down or up.", "Write one of them.")
        if not row.text("node"):
            raise row.bad("node", "it is the name of a node.", "Name it.")
        events.append(NodeEvent(row.number("at", MAX_SECONDS), row.text("node"), state == "up", row.place("node")))
    if not events:
        raise BadInput(str(path), "has no events.", "Write rows under its header, or leave --node-events out.")
    return tuple(sorted(events, key=lambda event: event.at_s))


def before_all(path: Path, events: Sequence[NodeEvent], jobs: Jobs) -> tuple[str, ...]:
    """A remark on events that come before the first submission, where time begins."""
    early = sum(event.at_s < jobs.submit_s[0] for event in events)
    if not early:
        return ()
    come = "comes" if early == 1 else "come"
    which = f"{early} of {counted(len(events), 'node event')} {come} before the first submission, at"
    return (f"{path}: {which} {jobs.submit_s[0]:.0f} s: what counts is the state that nodes are left in",)
