"""How a question and its amounts are put into words."""

from __future__ import annotations

from datetime import UTC, datetime

from berth.base.units import counted, from_milli, gib
from berth.model.resources import CPU, MEMORY, STORAGE, is_accelerator
from berth.model.volumes import VOLUMES
from berth.model.workload import WHOLE, Requirement
from berth.scheduling.question import Question


def resource_of(q: Question) -> str:
    """The accelerator resource that a pod asks for, "" where it asks for none."""
    return next((n for n, _ in q.pod_set.pod_class.requests if is_accelerator(n)), "")


def is_share(q: Question) -> bool:
    """A pod asks for a part of one GPU."""
    return 0 < q.pod_set.pod_class.gpu_milli < WHOLE and q.per_pod > 0


def unit_in(q: Question) -> str:
    """What `need` and `have` count: GPUs, thousandths of one, partitions or replicas by their name, or pods."""
    if not q.per_pod:
        return "pods"
    if is_share(q):
        return "milli-GPUs"
    return "GPUs" if resource_of(q).endswith("/gpu") else resource_of(q)


def number(q: Question, milli: int) -> int:
    """GPU milli in the unit of the question."""
    return milli if is_share(q) else milli // WHOLE


def in_units(q: Question, pods: int) -> int:
    """So many pods in the unit of the question."""
    return number(q, pods * q.per_pod) if q.per_pod else pods


def amount(q: Question, milli: int, word: str = "") -> str:
    """`1 GPU`, `0.5 GPU`, `3 more GPUs`, `2 nvidia.com/mig-1g.10gb`."""
    if unit_in(q) in ("GPUs", "milli-GPUs", "pods"):
        return gpus(milli, word)
    return f"{milli // WHOLE:,} {word + ' ' if word else ''}{resource_of(q)}"


def in_amount(q: Question, pods: int) -> str:
    """So many pods, in GPUs where they ask for GPUs."""
    return amount(q, pods * q.per_pod) if q.per_pod else counted(pods, "pod")


def gpus(milli: int, word: str = "") -> str:
    """`1 GPU`, `0.5 GPU`, `3 GPUs`; with a word `3 more GPUs`."""
    return f"{from_milli(milli)} {word + ' ' if word else ''}GPU{'s' if milli > WHOLE or not milli else ''}"


def is_or_are(milli: int) -> str:
    return "is" if 0 < milli <= WHOLE else "are"


def needed(q: Question) -> str:
    """`8 GPUs asked for`, `4 pods of 8 GPUs asked for`, `at least 2 pods of 1 GPU asked for`."""
    least = "at least " if q.pod_set.count > q.need else ""
    if q.need == 1 and not least:
        return f"{each_pod(q)} asked for"
    return f"{least}{counted(q.need, 'pod')} of {each_pod(q)} asked for"


def could_start(q: Question, pods: int) -> str:
    """`; 2 could start`, `; none could start`; nothing for a single pod, which cannot start by halves."""
    if q.need == 1:
        return ""
    return f"; {pods:,} could start" if pods else "; none could start"


def each_pod(q: Question) -> str:
    """What one pod asks for, in a few words."""
    if not q.per_pod:
        return ", ".join(spell(n, a) for n, a in q.pod_set.pod_class.requests if n in (CPU, MEMORY)) or "no resources"
    return amount(q, q.per_pod)


def capability_words(q: Question) -> str:
    """The least that a GPU must be, or the resource where nothing is said of it."""
    least = q.pod_set.pod_class.least
    words = []
    if least.products:
        words.append(" or ".join(least.products))
    if least.memory_bytes:
        words.append(f"at least {gib(least.memory_bytes)} a GPU")
    if least.compute != (0, 0):
        words.append(f"compute capability {least.compute[0]}.{least.compute[1]}")
    if least.precision:
        words.append(least.precision)
    if least.link:
        words.append("NVLink" if least.link.lower() == "nvlink" else least.link)
    if least.rdma:
        words.append("RDMA")
    return ", ".join(words or [resource_of(q) or "the resources"])


def selector_words(q: Question) -> str:
    """What a node must match: `the labels tier=gold, zone=b`."""
    pod_class = q.pod_set.pod_class
    if pod_class.node_selector:
        pairs = ", ".join(f"{k}={v}" for k, v in pod_class.node_selector)
        return f"the label{'s' if len(pod_class.node_selector) > 1 else ''} {pairs}"
    terms = [" and ".join(_expression(e) for e in (*t.expressions, *t.fields)) for t in pod_class.node_affinity]
    return "the affinity " + " or ".join(terms[:3])


def _expression(e: Requirement) -> str:
    """`zone in a, b`, `generation > 4`, `spot is not set`."""
    values = ", ".join(e.values)
    spelt = {
        "In": f"in {values}", "NotIn": f"not in {values}", "Exists": "is set", "DoesNotExist": "is not set",
        "Gt": f"> {values}", "Lt": f"< {values}",
    }  # fmt: skip
    return f"{e.key} {spelt.get(e.operator, e.operator)}"


def at_time(seconds: float) -> str:
    """A moment, seconds since the epoch, in UTC: `2026-11-29T12:00:00Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def level_name(level: int, q: Question) -> str:
    """`rack`, or `node` for the host."""
    levels = q.draft.columns.topology.levels
    return levels[level].name if level < len(levels) else "node"


def in_one(level: int, q: Question) -> str:
    """`in one rack`, `on one node`."""
    name = level_name(level, q)
    return f"on one {name}" if name == "node" else f"in one {name}"


def unit_of(resource: str) -> str:
    """The unit in which an amount of a resource is counted."""
    if resource == CPU:
        return "milli-cores"
    return "bytes" if resource in (MEMORY, STORAGE) else resource


def spell(resource: str, amount: int) -> str:
    """`8 GPUs`, `64 CPUs`, `512 GiB memory`, `3 nvidia.com/mig-1g.10gb`."""
    if resource == CPU:
        return f"{from_milli(amount)} CPU{'s' if amount > 1000 or not amount else ''}"
    if resource == MEMORY:
        return f"{gib(amount)} memory"
    if resource == STORAGE:
        return f"{gib(amount)} ephemeral storage"
    if resource.endswith("/gpu"):
        return counted(amount, "GPU")
    if resource.startswith(VOLUMES) and amount == 1:
        return f"1 {resource.replace('volumes', 'volume', 1)}"
    return f"{amount} {resource}"
