"""L6. Evidence that names no cause but points to one: NCCL's bare results, and settings without which it works."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.heard import by_place, value
from berth.diagnosis.rules.l6 import connections, fabric, host_limits, peer_access, rdma_errors
from berth.diagnosis.words import POSSIBLE, CauseClass, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

GUESS = 0.5  # above a hint: the usual cause in containers, with nothing else to go by

BARE = Code(
    name="NcclErrorWithoutReason",
    layer=Layer.L6,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="NCCL failed, and its reason was not printed",
    meaning="The framework prints the result only. A system error in a container is mostly /dev/shm or a network "
    "interface; a CUDA "
    "error is the device's or the driver's; an invalid usage is the program's.",
    known_by="unhandled system error, unhandled cuda error, internal error or invalid usage, without a line of NCCL "
    "itself.",
    disproved_by="NCCL's own warning names another reason.",
    counter_check="NCCL_DEBUG=WARN: the line before the error names the call that failed",
    fix=Fix(
        steps=(
            "run once with NCCL_DEBUG=INFO and read the first WARN",
            "system error: df -h /dev/shm, ulimit -l and ip -br a in the container",
            "CUDA error: nvidia-smi and the kernel log; invalid usage: ranks and devices of the launch",
        ),
        risk="none",
        rollback="unset NCCL_DEBUG",
    ),
    verify=("the job starts",),
    sources=("NCCL user guide: error codes",),
)
IN_FORK = Code(
    name="CudaUsedAfterFork",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the program uses CUDA in a process that was forked after CUDA began",
    meaning="A CUDA context does not survive a fork. Not a fault of the node.",
    known_by="The framework says so.",
    disproved_by="The start method is spawn already: then a library forks by itself.",
    counter_check="multiprocessing start method: spawn",
    fix=Fix(
        steps=("start method spawn (VLLM_WORKER_MULTIPROC_METHOD=spawn); no CUDA call before workers start",),
        risk="spawned workers start slower",
        rollback="set fork again",
    ),
    verify=("the workers start",),
    sources=("PyTorch: multiprocessing best practices",),
)
UNSUPPORTED = Code(
    name="CudaOperationUnsupported",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the device or its mode does not support what the program calls",
    meaning="Virtual GPUs, partitions and WSL lack some calls: memory pools, IPC, managed memory, peer access.",
    known_by="CUDA error 801, operation not supported.",
    disproved_by="The same call works on a whole device of the same model and driver.",
    counter_check="nvidia-smi -q | grep -E 'Virtualization Mode|MIG Mode': none, disabled",
    fix=Fix(
        steps=("switch the feature off (asynchronous allocator, IPC, custom all-reduce), or use a whole device",),
        risk="slower",
        rollback="switch it on again",
    ),
    verify=("the program passes the call",),
    sources=("CUDA runtime API: cudaErrorNotSupported (801)",),
)

CRASHED = Code(
    name="ProgramCrashed",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the program crashed by itself",
    meaning="A fault of the program or of a library of its image; where only its launcher or server speaks, the first "
    "error of the process itself says more. A crash on one node only may be the machine's memory.",
    known_by="Exit code 139 or 134, a signal, or a launcher that names a child that failed.",
    disproved_by="The same image runs on other nodes and crashes on this one.",
    counter_check="the same pod on another node: it runs there",
    fix=Fix(
        steps=("the last lines before the crash, and a core dump; libraries of one version in the image",),
        risk="none",
        rollback="the old image",
    ),
    verify=("the program passes the point where it crashed",),
    sources=("signal numbers: 128 + 11",),
)
PROBE = Code(
    name="ProbeKillsProgram",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="a probe kills the program while it loads or computes",
    meaning="Loading a model, compiling or a long checkpoint takes longer than the probe allows.",
    known_by="The kubelet restarts the container because of a liveness or startup probe.",
    disproved_by="The program hangs: the probe is right.",
    counter_check="the container's log up to the restart: it stood still (then the probe is right)",
    fix=Fix(
        steps=("a startup probe that allows the longest load; no liveness probe on training pods",),
        risk="a program that hangs is found later",
        rollback="put the old probe back",
    ),
    verify=("no restart because of a probe over a whole load",),
    sources=("Kubernetes documentation: probes",),
)

# Without which setting it works → what that says.
_WITHOUT: dict[str, tuple[Code, str]] = {
    "P2P_DISABLE": (peer_access.BLOCKED, "It works without peer access, so the path between the GPUs is at fault."),
    "SHM_DISABLE": (host_limits.SHM, "It works without shared memory, so /dev/shm is too small or not shared."),
    "NVLS_ENABLE": (fabric.NVLS, "It works without multicast over NVLink, so the switch fabric is not ready."),
    "MNNVL_ENABLE": (fabric.MNNVL, "It works without NVLink between nodes, so no IMEX domain connects them."),
    "NET_GDR_LEVEL": (rdma_errors.PROTECTION, "It works through host memory, so the card cannot reach GPU memory."),
    "IB_DISABLE": (rdma_errors.RETRIED, "It works over sockets, so RDMA between the nodes is at fault."),
    "CUMEM_ENABLE": (rdma_errors.DEVICE, "It works without shareable memory, for which the container lacks rights."),
    "CUMEM_HOST_ENABLE": (
        rdma_errors.DEVICE,
        "It works without shareable host memory, for which the container lacks rights.",
    ),
}
_CLASSES: tuple[tuple[str, CauseClass, str], ...] = (
    ("system", "host-limits", "A system call failed; in containers that is mostly /dev/shm or an interface."),
    ("cuda", "app", "A CUDA call failed under NCCL."),
    ("usage", "app", "The launch is wrong: ranks, devices or sizes."),
    ("internal", "network", "An internal check failed; mostly ranks do not reach each other."),
)

_ENDED = ("app.ended", "app.server_ended")


def find(facts: Facts) -> Iterator[Answer]:
    for said in facts.said("nccl.works_without"):
        code, cause = _WITHOUT[value(said, "what").upper()]
        yield code.finding(cause, POSSIBLE, [said])
    if not _named(facts):
        yield from connections.led_astray(facts, POSSIBLE) if _is_system(facts) else ()
        for node, pod, found in by_place(facts.said("nccl.plain_error")):
            cause_class, cause = _bare(found)
            yield BARE.finding(cause, GUESS, found, node=node, pod=pod, cause_class=cause_class)
            yield Unconfirmed("what NCCL itself warned of", "run once with NCCL_DEBUG=WARN", BARE.name, Layer.L6, node)
    for node, pod, found in by_place(facts.said("cuda.after_fork")):
        yield IN_FORK.finding("CUDA was used before the process was forked.", POSSIBLE, found, node=node, pod=pod)
    for node, pod, found in by_place(facts.said("cuda.not_supported")):
        yield UNSUPPORTED.finding(
            "The device, as it is given, does not support the call.", POSSIBLE, found, node=node, pod=pod
        )
    for node, pod, found in by_place(facts.said("pod.probe_kills")):
        yield PROBE.finding(
            f"The {found[0].get('probe')} probe failed and the container is restarted.",
            POSSIBLE,
            found,
            node=node,
            pod=pod,
        )
    if not any(said.message not in _ENDED for said in facts.said("nccl.", "cuda.", "app.", "image.", "dist.", "mpi.")):
        for node, pod, found in by_place(facts.said("app.ended", "app.server_ended")):
            yield CRASHED.finding("The program ended by itself.", GUESS, found, node=node, pod=pod)
    if not any(facts.said("nccl.segfault")):
        for node, pod, found in by_place(facts.said("app.segfault")):
            yield CRASHED.finding("The program ended with a segmentation fault.", GUESS, found, node=node, pod=pod)


def _named(facts: Facts) -> bool:
    """Did something else say why? Any sentence about NCCL, CUDA, shared memory or the launch does."""
    families = facts.said("nccl.", "cuda.", "app.", "efa.", "sharp.", "mpi.", "told.")
    quiet = (
        "nccl.plain_error",
        "nccl.setting",
        "nccl.bootstrap_interface",
        "nccl.sockets_used",
        "nccl.gdr_enabled",
        "nccl.no_ib",
        "nccl.ras_bind",
        "nccl.begun",
    )
    return any(said.message not in quiet for said in families)


def _is_system(facts: Facts) -> bool:
    return any("system" in value(said, "what").lower() for said in facts.said("nccl.plain_error"))


def _bare(found: list[Said]) -> tuple[CauseClass, str]:
    words = " ".join(value(said, "what") for said in found).lower()
    return next(
        ((cause_class, cause) for part, cause_class, cause in _CLASSES if part in words), ("app", "NCCL failed.")
    )


RULE = Rule((BARE, IN_FORK, UNSUPPORTED, CRASHED, PROBE), find)
