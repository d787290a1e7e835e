"""Public packing traces read from files: the openb node list and one of its pod lists.

Columns of the node list: sn, cpu_milli, memory_mib, gpu, model. Columns of a pod list that matter: name,
cpu_milli, memory_mib, num_gpu, gpu_milli (of each GPU) and, where the file has it, gpu_spec (`A|B`).
Source of the format: Alibaba's cluster-trace-gpu-v2023, in the FGD simulator's repository (Apache-2.0).
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from berth.base.errors import UNREADABLE, BadInput
from berth.model.trace import Int, Trace, TraceCluster, TracePods
from berth.sources.csv_rows import rows_of

DATA_VARIABLE = "BERTH_DATA"
OPENB_FOLDER = Path("traces") / "openb-v2023"
NODE_FILE = "openb_node_list_gpu_node.csv"
POD_FILE = "openb_pod_list_{}.csv"

# The variants of the published experiment. The folder holds others as well, which can be named too.
PUBLISHED_VARIANTS = (
    "default",
    "multigpu20",
    "multigpu30",
    "multigpu40",
    "multigpu50",
    "gpushare40",
    "gpushare60",
    "gpushare80",
    "gpushare100",
    "gpuspec10",
    "gpuspec20",
    "gpuspec25",
    "gpuspec33",
    "cpu050",
    "cpu100",
    "cpu200",
    "cpu250",
)

MAX_GPUS = 32
MAX_MODELS = 62
MAX_SPECS = 100_000
MAX_MILLI = 10**8
MAX_MIB = 10**10
WHOLE = 1000


def read_trace(name: str, data: Path | None = None) -> Trace:
    """Read `openb:VARIANT`, a folder with the openb files (its default variant), or `FOLDER:VARIANT`.

    `data` is the folder that holds `traces/openb-v2023`; the environment names it if it is not given.
    """
    folder, variant = locate(name, data)
    return Trace(name, read_cluster(folder / NODE_FILE), read_pods(folder / POD_FILE.format(variant)))


def locate(name: str, data: Path | None = None) -> tuple[Path, str]:
    """The folder and the variant that a trace's name stands for."""
    source, _, variant = name.rpartition(":")
    if source == "openb":
        folder = openb_folder(data)
    elif Path(name).is_dir():
        folder, variant = Path(name), "default"
    elif source and Path(source).is_dir():
        folder = Path(source)
    else:
        raise BadInput(
            f"trace {name!r}",
            "is neither openb:VARIANT nor a folder that exists.",
            f"Write for example openb:default, or a folder that holds {NODE_FILE}.",
        )
    known = variants(folder)
    if not (folder / NODE_FILE).is_file():
        raise BadInput(
            f"trace {name!r}",
            f"{folder} holds no {NODE_FILE}.",
            "Name the folder that holds the openb files.",
            UNREADABLE,
        )
    if variant not in known:
        raise BadInput(
            f"trace {name!r}",
            f"{folder} holds no pod list of the variant {variant!r}.",
            f"It has: {', '.join(known) or 'none'}.",
        )
    return folder, variant


def variants(folder: Path) -> tuple[str, ...]:
    """The variants whose pod lists a folder holds, sorted."""
    head, tail = POD_FILE.split("{}")
    return tuple(sorted(path.name[len(head) : -len(tail)] for path in folder.glob(f"{head}*{tail}")))


def openb_folder(data: Path | None = None) -> Path:
    """Where the openb files are."""
    root = data or data_folder()
    folder = root / OPENB_FOLDER
    if not folder.is_dir():
        raise BadInput(
            f"{DATA_VARIABLE}={root}",
            f"holds no {OPENB_FOLDER}.",
            "Name the folder that holds traces/, or give a folder instead of openb:.",
            UNREADABLE,
        )
    return folder


def data_folder() -> Path:
    """The folder of public data that the environment names."""
    root = os.environ.get(DATA_VARIABLE, "")
    if not root:
        raise BadInput(
            DATA_VARIABLE,
            "is not set, so public traces cannot be found.",
            f"Set {DATA_VARIABLE} to the folder that holds traces/, or name a file or folder of your own instead.",
            UNREADABLE,
        )
    return Path(root)


def read_cluster(path: Path) -> TraceCluster:
    """The machines of a node list, in file order."""
    names: list[str] = []
    columns: list[tuple[int, int, int, int]] = []
    models: dict[str, int] = {}
    seen: set[str] = set()
    for row in rows_of(path, ("sn", "cpu_milli", "memory_mib", "gpu", "model")):
        names.append(row.name("sn", seen))
        gpus = row.whole("gpu", MAX_GPUS)
        model = row.text("model")
        if gpus and not model:
            raise row.bad("model", "a node with GPUs names their model.", "Name it, as in T4.")
        if gpus and "|" in model:
            raise row.bad("model", "a node has one GPU model.", "List the node's own model alone.")
        if gpus and model not in models and len(models) == MAX_MODELS:
            raise row.bad("model", f"a trace has at most {MAX_MODELS} GPU models.", "Split the trace.")
        index = models.setdefault(model, len(models)) if gpus else -1
        columns.append((row.whole("cpu_milli", MAX_MILLI), row.whole("memory_mib", MAX_MIB), gpus, index))
    table = _table(columns, 4)
    if not names or not table[:, 2].any():
        raise BadInput(str(path), "has no node with a GPU.", "A packing trace needs at least one.")
    return TraceCluster(tuple(names), *(table[:, i].copy() for i in range(4)), tuple(models))


def read_pods(path: Path) -> TracePods:
    """The pods of a pod list, in file order."""
    names: list[str] = []
    columns: list[tuple[int, int, int, int, int]] = []
    specs: dict[tuple[str, ...], int] = {}
    spelled: dict[str, int] = {}
    seen: set[str] = set()
    for row in rows_of(path, ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"), ("gpu_spec",)):
        names.append(row.name("name", seen))
        num_gpu, gpu_milli = row.whole("num_gpu", MAX_GPUS), row.whole("gpu_milli", WHOLE)
        if num_gpu == 0 and gpu_milli:
            raise row.bad("gpu_milli", "a pod with num_gpu 0 asks for none.", "Write 0, or set num_gpu.")
        if num_gpu and not gpu_milli:
            raise row.bad(
                "gpu_milli",
                "a pod with GPUs asks for 1 to 1000 of each.",
                "Write 1000 for whole GPUs, or set num_gpu to 0.",
            )
        if num_gpu > 1 and gpu_milli != WHOLE:
            raise row.bad("gpu_milli", "a pod of several GPUs takes them whole.", "Write 1000, or set num_gpu to 1.")
        written = row.text("gpu_spec")
        spec = spelled.get(written)
        if spec is None:
            # Repeated models are kept as the file has them: the published typical pods tell them apart.
            models = tuple(sorted(written.split("|"))) if written else ()
            if "" in models:
                raise row.bad("gpu_spec", "it is a list of GPU models joined by |.", "Write A|B, or nothing.")
            if len(spelled) == MAX_SPECS:
                raise row.bad("gpu_spec", f"a trace has at most {MAX_SPECS} of them.", "Split the trace.")
            spec = spelled[written] = specs.setdefault(models, len(specs))
        columns.append((row.whole("cpu_milli", MAX_MILLI), row.whole("memory_mib", MAX_MIB), num_gpu, gpu_milli, spec))
    if not names:
        raise BadInput(str(path), "has no pods.", "A pod list needs at least one row under its header.")
    table = _table(columns, 5)
    return TracePods(tuple(names), *(table[:, i].copy() for i in range(5)), tuple(specs))


def _table(rows: list[tuple[int, ...]], width: int) -> Int:
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)
