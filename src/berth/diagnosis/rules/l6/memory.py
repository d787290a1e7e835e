"""L6. Memory: of the device, taken by the program itself, by another, or by processes that nobody sees; of the host."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, value
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import PodSeen
from berth.evidence.formats.smi_facts import DeviceSeen

GUESSED = 0.5
LEAST = 2 * 2**30  # bytes: what a driver keeps for itself is far below

_FREE = ("nvidia-smi --query-gpu=memory.used,memory.total --format=csv: near 0 before the program starts",)

FULL = Code(
    name="GpuMemoryFull",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.MemoryShort,
    title="the program does not fit into the GPU's memory",
    meaning="Weights, activations, caches or a leak need more than is free. Nothing is broken.",
    known_by="CUDA or the framework says out of memory.",
    disproved_by="Another process on the device holds the memory that is missing.",
    counter_check="nvidia-smi before the start: much of the memory is used already",
    fix=Fix(
        steps=(
            "smaller batch or context, checkpointed activations, a sharded optimizer, quantised weights, or more GPUs",
            "reserved far above allocated: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "grows over hours: find what keeps tensors alive",
        ),
        risk="other sizes change speed and may change results",
        rollback="put the old sizes back",
    ),
    verify=("the program runs through with the peak under 90 % of the device",),
    sources=("PyTorch: CUDA memory management", "CUDA runtime API: cudaErrorMemoryAllocation (2)"),
)
OTHERS = Code(
    name="GpuMemoryHeldByOthers",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.MemoryShort,
    title="another program holds memory of the same GPU",
    meaning="On shared devices nothing bounds memory per pod; whoever comes second does not fit. The GPU is healthy.",
    known_by="The error names another process with its memory, or the server finds less free at its start than it "
    "wants.",
    disproved_by="The memory belongs to the program itself.",
    counter_check="nvidia-smi on the node (berth ledger for the pods): no process but the program's own holds memory",
    fix=Fix(
        steps=(
            "name the neighbour and move one of the two; give servers a lower memory share",
            "MIG where memory must be bounded",
            "a process of an ended pod: end it",
        ),
        risk="ending a process loses its work",
        rollback="start it again",
    ),
    verify=("nvidia-smi: enough free memory at the program's start",),
    sources=("PyTorch: out-of-memory text", "vLLM: gpu_memory_utilization"),
)
CACHE = Code(
    name="CacheTooSmallForContext",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.MemoryShort,
    title="the server's cache does not hold one request of the wanted length",
    meaning="After the weights too little memory is left for keys and values.",
    known_by="The server compares both numbers and stops.",
    disproved_by="The available cache is above what one request of max_model_len needs.",
    counter_check="the server's log: Available KV cache memory is above what one request of max_model_len needs",
    fix=Fix(
        steps=("lower max_model_len, raise the memory share, quantise the cache, or spread over more GPUs",),
        risk="a shorter context refuses long requests",
        rollback="put the old value back",
    ),
    verify=("the server starts and prints its maximum concurrency",),
    sources=("vLLM: engine arguments",),
)
ORPHANS = Code(
    name="GpuMemoryWithoutProcess",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.MemoryShort,
    title="GPU memory is held and no process is listed",
    meaning="Processes in other PID namespaces, zombies' children and daemons hold the device files open; nvidia-smi "
    "in a container cannot list them.",
    known_by="Memory is used and nvidia-smi lists no process.",
    disproved_by="The used memory is a few hundred MiB of the driver itself, or the processes are listed on the host.",
    counter_check="on the host: fuser -v /dev/nvidia*: a process that holds it",
    fix=Fix(
        steps=(
            "on the host: fuser -v /dev/nvidia*; end what belongs to no running pod",
            "nothing found: reset the GPU when no one uses it",
        ),
        risk="ending the wrong process ends somebody's job",
        rollback="nothing to undo",
    ),
    verify=_FREE,
    sources=("nvidia-smi manual: processes and PID namespaces",),
)
HOST = Code(
    name="HostMemoryExhausted",
    layer=Layer.L6,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the container was killed for host memory, not for GPU memory",
    meaning="Exit code 137 with OOMKilled is the limit of ordinary memory: data loaders, checkpoints and /dev/shm "
    "count against it.",
    known_by="OOMKilled, exit code 137 or the kernel's line for the memory cgroup.",
    disproved_by="Exit 137 without OOMKilled: something else sent the signal.",
    counter_check="kubectl get pod POD -n NAMESPACE -o jsonpath='{.status.containerStatuses[*].lastState}': not "
    "OOMKilled",
    fix=Fix(
        steps=(
            "raise limits.memory (loading a model needs its size in host memory), or fewer loader workers",
            "a memory-backed /dev/shm counts: add its size",
        ),
        risk="more memory per pod leaves less for others",
        rollback="put the old limit back",
    ),
    verify=("no restart with OOMKilled over a whole epoch or a model load",),
    sources=("Kubernetes documentation: assign memory resources",),
)

_MAY_BE_MEMORY = re.compile("STATUS_NOT_INITIALIZED|convolution algorithm")  # other reasons end in the same words


def find(facts: Facts) -> Iterator[Answer]:
    others = [*facts.said("cuda.other_process"), *facts.said("cuda.startup_memory_short")]
    for node, pod, found in by_place(others):
        process = next((said for said in found if said.get("pid")), None)
        free = next((said for said in found if said.get("free")), None)
        if process is not None:
            cause = f"Process {process.get('pid')} holds {process.get('used')} of the device."
        elif free is not None:
            cause = f"At the start {free.get('free')} of {free.get('total')} GiB are free, less than the server wants."
        else:
            cause = "At the start too little memory of the device is free."
        yield OTHERS.finding(cause, LIKELY if process or free else POSSIBLE, found, node=node, pod=pod)
    if not others:
        for node, pod, found in by_place(
            # Multicast memory of the switches has its own account.
            said
            for said in facts.said("cuda.out_of_memory", "app.memory_short_told_by_server")
            if not any(word in said.origin.text.lower() for word in ("multicast", "nvlink sharp"))
        ):
            sure = POSSIBLE if all(_MAY_BE_MEMORY.search(said.origin.text) for said in found) else LIKELY
            tried, total = value(found[0], "tried"), value(found[0], "total")
            numbers = f" {tried} more were wanted" + (f" on a device of {total}." if total else ".") if tried else ""
            yield FULL.finding(
                f"The program asks for more memory than the device has free.{numbers}",
                sure,
                found,
                node=node,
                pod=pod,
            )
    yield from heard(
        facts,
        CACHE,
        ("cuda.cache_too_small",),
        "What is left after the weights does not hold one request of that length.",
        ESTABLISHED,
    )
    for node, pod, found in by_place(facts.said("cuda.memory_without_process", "cuda.host_memory_leak")):
        used = value(found[0], "used")
        if used.isdigit() and int(used) < 1024:
            continue
        yield ORPHANS.finding(
            f"{used + ' MiB' if used else 'Memory'} of the device is held by processes that are not listed.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    yield from _printed(facts)
    yield from _host(facts)


def _printed(facts: Facts) -> Iterator[Answer]:
    """A printout with memory in use and an empty list of processes. In a container the list is always empty."""
    for device in facts.of(DeviceSeen):
        used = device.memory_used_bytes or 0
        if device.processes == () and used >= LEAST and not device.gpu_percent and device.mig_mode != "Enabled":
            yield ORPHANS.finding(
                f"{used // 2**20} MiB of the device are in use, and no process is listed.", POSSIBLE, [device],
                pci=device.pci,
            )  # fmt: skip


def _host(facts: Facts) -> Iterator[Answer]:
    told = set[str]()
    for pod in facts.of(PodSeen):
        for state in pod.states:
            if "OOMKilled" in (state.reason, state.last_reason):
                told.add(pod.key)
                yield HOST.finding(
                    f"Container {state.container} of {pod.key} was killed at its memory limit.",
                    ESTABLISHED,
                    [pod],
                    pod=pod.key,
                )
    for node, place, found in by_place(facts.said("pod.host_memory_killed")):
        if place not in told:
            guessed = all(said.get("maybe") for said in found)  # Ray lists what it might be
            sure = (
                GUESSED
                if guessed
                else LIKELY
                if any("137" not in said.origin.text or "OOM" in said.origin.text for said in found)
                else POSSIBLE
            )
            yield HOST.finding(
                "The container was killed at its limit of host memory.", sure, found, node=node, pod=place
            )


RULE = Rule((FULL, OTHERS, CACHE, ORPHANS, HOST), find)
