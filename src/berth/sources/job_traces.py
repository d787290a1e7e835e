"""Public traces of jobs over time, by the names that the command line uses.

| name | file | columns that matter |
|---|---|---|
| `muri:1` to `muri:4` | muri-philly/trace1.csv … | job_id, num_gpu, submit_time (ms), iterations, … |
| `muri:1p` to `muri:4p` | muri-philly/trace1_pr.csv … | the same |
| `itp:01` to `itp:10` | elasticflow-itp/cluster01.csv … | job_id, submission_time, duration (s), num_gpu |
| `philly` | philly-pollux/philly.csv | timestamp, duration (s), num_gpus, cluster |

Sources: Muri (SIGCOMM 2022, Apache-2.0), of which the `p` traces have all jobs at time 0; Microsoft ITP (ElasticFlow,
ASPLOS 2023, MIT); Microsoft Philly in the form of Pollux (OSDI 2021, CC BY 4.0). Anything else is the path of a csv
file (job_csv.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

from berth.base.errors import UNREADABLE, BadInput
from berth.model.jobs import Jobs
from berth.sources.csv_rows import rows_of
from berth.sources.traces import DATA_VARIABLE, data_folder

MAX_WIDTH = 4096
MAX_SECONDS = 1e10
MAX_ITERATIONS = 1e12
MAX_MILLISECONDS = MAX_SECONDS * 1000

_MURI = re.compile(r"muri:([1-4])(p?)")
_ITP = re.compile(r"itp:(?:cluster)?0?([1-9]|10)")
KNOWN = "builtin:small, builtin:week, builtin:month, muri:1 … muri:4, muri:1p … muri:4p, itp:01 … itp:10, philly"

# The published simulator's service time of an iteration is so much more than the measured one.
ITERATION_FACTOR = 1.015
# Seconds that a start costs, by model and GPUs: 1, 2, 4, 8, 16, 32 (Muri's simulator).
RESTART_S = {
    "vgg16": (7, 7, 8, 9, 9, 10),
    "vgg19": (7, 7, 8, 9, 10, 10),
    "resnet18": (4, 5, 5, 7, 7, 7),
    "shufflenet_v2_x1_0": (4, 4, 5, 5, 7, 8),
    "bert": (10, 10, 10, 10, 10, 10),
    "gpt2": (10, 10, 10, 10, 10, 10),
    "a2c": (38, 39, 39, 46, 46, 46),
    "dqn": (5, 5, 6, 6, 8, 8),
}
OTHER_RESTART_S = 10


def read_jobs(name: str, data: Path | None = None) -> Jobs:
    """The jobs of a public trace, or of a csv file. `data` is the folder that holds `traces/`; the environment names it
    if it is not given.

    Raises BadInput.
    """
    from berth.sources.job_csv import read_job_file

    if found := _MURI.fullmatch(name):
        return _muri(name, _file(data, "muri-philly", f"trace{found[1]}{'_pr' if found[2] else ''}.csv"))
    if found := _ITP.fullmatch(name):
        return _itp(name, _file(data, "elasticflow-itp", f"cluster{int(found[1]):02}.csv"))
    if name == "philly":
        return _philly(name, _file(data, "philly-pollux", "philly.csv"))
    if Path(name).is_file():
        return read_job_file(Path(name))
    problem = "is a folder." if Path(name).is_dir() else "is neither a known trace nor a file."
    raise BadInput(f"trace {name!r}", problem, f"There are: {KNOWN}, or a csv file.")


def _file(data: Path | None, folder: str, name: str) -> Path:
    root = data or data_folder()
    path = root / "traces" / folder / name
    if not path.is_file():
        raise BadInput(
            f"{DATA_VARIABLE}={root}", f"holds no traces/{folder}/{name}.",
            "Name the folder that holds traces/, or give a csv file.", UNREADABLE,
        )  # fmt: skip
    return path


def _muri(name: str, path: Path) -> Jobs:
    columns = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "iteration_time")
    rows = []
    for row in rows_of(path, columns):
        width = row.whole("num_gpu", MAX_WIDTH)
        # The order of the operations is the published simulator's: the results are compared to the printed digit.
        service = row.number("iterations", MAX_ITERATIONS) * (
            row.number("iteration_time", MAX_MILLISECONDS) * ITERATION_FACTOR / 1000
        )
        restart = _restart_s(row.text("model_name"), width)
        rows.append(
            (row.text("job_id"), row.number("submit_time", MAX_MILLISECONDS) / 1000, service, width, restart, "")
        )
    return jobs_of(name, rows)


def _restart_s(model: str, width: int) -> float:
    known = RESTART_S.get(model)
    size = width.bit_length() - 1
    return float(known[size]) if known and size < len(known) and width == 1 << size else OTHER_RESTART_S


def _itp(name: str, path: Path) -> Jobs:
    rows = [
        (
            row.text("job_id"), row.number("submission_time", MAX_SECONDS), row.number("duration", MAX_SECONDS),
            row.whole("num_gpu", MAX_WIDTH), OTHER_RESTART_S, "",
        )
        for row in rows_of(path, ("job_id", "submission_time", "duration", "num_gpu"))
    ]  # fmt: skip
    begin = min((row[1] for row in rows), default=0.0)
    return jobs_of(name, [(row[0], row[1] - begin, *row[2:]) for row in rows])


def _philly(name: str, path: Path) -> Jobs:
    rows = []
    for number, row in enumerate(rows_of(path, ("timestamp", "duration", "num_gpus", "cluster"))):
        try:
            at = datetime.fromisoformat(row.text("timestamp")).timestamp()
        except ValueError:
            raise row.bad("timestamp", "it is no time.", "Write 2017-10-09 07:01:55.") from None
        width = row.whole("num_gpus", MAX_WIDTH)
        duration = row.number("duration", MAX_SECONDS)
        rows.append((f"philly-{number}", at, duration, width, OTHER_RESTART_S, row.text("cluster")))
    begin = min((row[1] for row in rows), default=0.0)
    note = "the queues are the trace's virtual clusters, with equal weights: the trace has no shares"
    return jobs_of(name, [(row[0], row[1] - begin, *row[2:]) for row in rows], (note,))


def jobs_of(name: str, rows: Sequence[tuple[str, float, float, int, float, str]], notes: tuple[str, ...] = ()) -> Jobs:
    """Rows of (name, submit_s, service_s, width, restart_s, queue) as jobs in order of submission."""
    if not rows:
        raise BadInput(f"trace {name!r}", "has no jobs.", "It needs at least one row under its header.")
    order = sorted(range(len(rows)), key=lambda i: rows[i][1])
    names, submit, service, width, restart, queue = zip(*(rows[i] for i in order), strict=True)
    queues = tuple(sorted(set(queue)))
    at = {queue: i for i, queue in enumerate(queues)}
    count = len(rows)
    return Jobs(
        name=name,
        names=names,
        submit_s=np.array(submit, np.float64),
        service_s=np.array(service, np.float64),
        limit_s=np.zeros(count),
        restart_s=np.array(restart, np.float64),
        width=np.array(width, np.int64),
        pod_gpus=np.zeros(count, np.int64),
        priority=np.zeros(count, np.int64),
        queue=np.array([at[one] for one in queue], np.int64),
        owner=np.zeros(count, np.int64),
        gpu_class=np.full(count, -1, np.int64),
        queues=queues if queues != ("",) else ("all",),
        notes=notes,
    )
