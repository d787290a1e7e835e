"""How a question and its amounts are put into words."""

from __future__ import annotations

from berth.base.units import counted, from_milli, gib
from berth.model.resources import CPU, MEMORY, STORAGE, is_accelerator
from berth.model.workload import WHOLE
from berth.scheduling.question import Question


def capability_words(q: Question) -> str:
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
        words.append(least.link)
    if least.rdma:
        words.append("RDMA")
    if not words:
        words = [n for n, _ in q.pod_set.pod_class.requests if is_accelerator(n)] or ["the resources"]
    return ", ".join(words)


def selector_words(q: Question) -> str:
    pod_class = q.pod_set.pod_class
    if pod_class.node_name:
        return f"the node name {pod_class.node_name}"
    if pod_class.node_selector:
        return "the selector " + ", ".join(f"{k}={v}" for k, v in pod_class.node_selector)
    terms = [
        f"{e.key} {e.operator} {', '.join(e.values)}".strip() for t in pod_class.node_affinity for e in t.expressions
    ]
    return "the affinity " + "; ".join(terms[:3])


def needed(q: Question) -> str:
    return f"{counted(q.need, 'pod')} of {each_pod(q)} asked for" if q.need > 1 else f"{each_pod(q)} asked for"


def each_pod(q: Question) -> str:
    """What one pod asks for, in a few words."""
    if not q.per_pod:
        return ", ".join(spell(n, a) for n, a in q.pod_set.pod_class.requests if n in (CPU, MEMORY)) or "no resources"
    name, amount = next((n, a) for n, a in q.pod_set.pod_class.requests if is_accelerator(n))
    if q.pod_set.pod_class.gpu_milli < WHOLE:
        return f"{from_milli(q.per_pod)} GPU"
    return spell(name, amount)


def gpus(milli: int, word: str = "") -> str:
    """`1 GPU`, `0.5 GPU`, `3 GPUs`; with a word `3 more GPUs`."""
    return f"{from_milli(milli)} {word + ' ' if word else ''}GPU{'s' if milli > WHOLE or not milli else ''}"


def in_gpus(q: Question, pods: int) -> str:
    """So many pods, in GPUs where they ask for GPUs."""
    return gpus(pods * q.per_pod) if q.per_pod else counted(pods, "pod")


def in_units(q: Question, pods: int) -> int:
    return pods * q.per_pod // 1000 if q.per_pod >= WHOLE else pods


def unit_in(q: Question) -> str:
    return "GPUs" if q.per_pod >= WHOLE else "pods"


def level_name(level: int, q: Question) -> str:
    levels = q.draft.columns.topology.levels
    return levels[level].name if level < len(levels) else "node"


def unit_of(resource: str) -> str:
    """The unit in which an amount of a resource is counted."""
    if resource == CPU:
        return "milli-cores"
    return "bytes" if resource in (MEMORY, STORAGE) else resource


def spell(resource: str, amount: int) -> str:
    """`8 GPUs`, `64 CPUs`, `512 GiB memory`, `3 nvidia.com/mig-1g.10gb`."""
    if resource == CPU:
        return f"{from_milli(amount)} CPUs"
    if resource == MEMORY:
        return f"{gib(amount)} memory"
    if resource == STORAGE:
        return f"{gib(amount)} ephemeral storage"
    if resource.endswith("/gpu"):
        return counted(amount, "GPU")
    return f"{amount} {resource}"
