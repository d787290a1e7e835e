"""L6. Limits of the container that collectives and data loaders run into: /dev/shm, locked memory, files, threads."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, value
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import PodSeen

MIB = 2**20

SHM = Code(
    name="SharedMemorySmall",
    layer=Layer.L6,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="/dev/shm of the container is too small",
    meaning="A container gets 64 MiB by default. NCCL and data loaders need hundreds of MiB to GiB there and fail with "
    "`No space left on device` or a bus error, while every disk is empty.",
    known_by="NCCL cannot extend a segment in /dev/shm, or a loader process dies of a bus error.",
    disproved_by="df /dev/shm in the container shows free space at the time of the failure.",
    counter_check="kubectl exec POD -n NAMESPACE -- df -h /dev/shm: GiB in size, not full",
    fix=Fix(
        steps=(
            "mount an emptyDir with medium: Memory and a sizeLimit at /dev/shm; it counts against the memory limit",
            "Docker: --shm-size or --ipc=host; loaders: fewer workers",
        ),
        risk="what is written there counts as memory of the pod: raise the limit too",
        rollback="take the volume out again",
    ),
    verify=("kubectl exec POD -n NAMESPACE -- df -h /dev/shm: the new size", "the job starts and passes an epoch"),
    sources=("NCCL user guide: troubleshooting, shared memory", "Kubernetes documentation: emptyDir medium Memory"),
)
SHM_DENIED = Code(
    name="SharedMemoryDenied",
    layer=Layer.L6,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="the program may not write to /dev/shm",
    meaning="Ranks of one node exchange data in files there. Without the right to make them NCCL does not start.",
    known_by="shm_open or a file in /dev/shm is refused with Permission denied.",
    disproved_by="The program's user can make a file in /dev/shm.",
    counter_check="kubectl exec POD -n NAMESPACE -- sh -c 'id; ls -ld /dev/shm; touch /dev/shm/x': no error",
    fix=Fix(
        steps=(
            "mode 1777 on /dev/shm: of a volume by fsGroup or an init container, on a machine by mount -o remount",
            "files left there by another user: remove them",
        ),
        risk="other programs of the pod or machine may read what lies there",
        rollback="put the mode back",
    ),
    verify=("kubectl exec POD -n NAMESPACE -- touch /dev/shm/x: no error", "the job starts"),
    sources=("NCCL, src/misc/shmutils.cc", "shm_open(3)"),
)
SHM_APART = Code(
    name="SharedMemoryNotShared",
    layer=Layer.L6,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="two ranks of one node do not share /dev/shm",
    meaning="NCCL believes that they are on one machine and opens the other's segment, which is in another container "
    "or was removed.",
    known_by="Attaching to a shared memory segment fails with No such file.",
    disproved_by="Both ranks see the same /dev/shm.",
    counter_check="ls /dev/shm in both containers: the same nccl- files",
    fix=Fix(
        steps=(
            "put the ranks of a node into one pod with one /dev/shm, or hostIPC for both",
            "NCCL_SHM_DISABLE=1 only to confirm",
        ),
        risk="hostIPC weakens isolation",
        rollback="take it out again",
    ),
    verify=("the job starts",),
    sources=("NCCL, src/transport/shm.cc",),
)
LOCKED = Code(
    name="LockedMemorySmall",
    layer=Layer.L6,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="the limit for locked memory is too low for RDMA",
    meaning="RDMA pins its buffers. The limit comes from the container runtime's unit, a pod cannot set it; without "
    "IPC_LOCK it holds for root too.",
    known_by="Registering memory or creating a queue fails with Cannot allocate memory, or ulimit -l is 64, 8192 or "
    "so.",
    disproved_by="ulimit -l in the container is unlimited.",
    counter_check="kubectl exec POD -n NAMESPACE -- sh -c 'ulimit -l': unlimited",
    fix=Fix(
        steps=(
            "LimitMEMLOCK=infinity in the unit of containerd or CRI-O, and restart it in a window",
            "capability IPC_LOCK for the container; Docker: --ulimit memlock=-1",
            "started by ssh or mpirun: the limit of that session counts",
        ),
        risk="a restart of the runtime; locked memory is not bounded any more",
        rollback="take the drop-in out and restart",
    ),
    verify=("kubectl exec POD -n NAMESPACE -- sh -c 'ulimit -l': unlimited", "all_reduce_perf over two nodes runs"),
    sources=("NCCL user guide: troubleshooting, InfiniBand", "libibverbs: ibv_reg_mr, ENOMEM"),
)
CACHE = Code(
    name="CacheNotWritable",
    layer=Layer.L6,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the program may not write where it keeps its compiled code",
    meaning="Triton, PyTorch, vLLM and CUDA's own compiler keep what they compile or download below the home "
    "directory. A user without one (HOME=/), or a read-only root file system, has no place for it.",
    known_by="Permission denied or a read-only file system at .cache, .triton, torch_extensions or the like.",
    disproved_by="The same user makes a file in that directory.",
    counter_check="id; echo $HOME; touch $HOME/.cache/x in the container: no error",
    fix=Fix(
        steps=(
            "HOME, XDG_CACHE_HOME, TRITON_CACHE_DIR, TORCH_EXTENSIONS_DIR and CUDA_CACHE_PATH on a volume that the "
            "user may write (emptyDir with fsGroup)",
        ),
        risk="an emptyDir counts against the pod's ephemeral storage",
        rollback="take the variables out",
    ),
    verify=("the program starts, and files appear in the directory",),
    sources=("Triton, runtime/cache.py", "CUDA programming guide: CUDA_CACHE_PATH"),
)
FILES = Code(
    name="FileOrProcessLimit",
    layer=Layer.L6,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the container reached its limit of open files or of threads",
    meaning="Loaders, many ranks and math libraries open thousands of each.",
    known_by="Too many open files, or threads cannot be created.",
    disproved_by="The limits of the process are far above what it uses.",
    counter_check="cat /proc/1/limits in the container; cat /sys/fs/cgroup/pids.max: far above the use",
    fix=Fix(
        steps=(
            "LimitNOFILE of the runtime's unit; torch: multiprocessing sharing strategy file_system",
            "podPidsLimit of the kubelet; OMP_NUM_THREADS below the cores",
        ),
        risk="a restart of the runtime or the kubelet",
        rollback="put the old limit back",
    ),
    verify=("the job passes the point where it failed",),
    sources=("Kubernetes documentation: process ID limits", "PyTorch: multiprocessing sharing strategies"),
)


def find(facts: Facts) -> Iterator[Answer]:
    small = [pod for pod in facts.of(PodSeen) if 0 <= pod.shm_bytes < 256 * MIB]
    denied = list(facts.said("nccl.shm_denied"))
    for node, place, found in by_place(denied):
        cause = "/dev/shm is there, and the program may not write to it."
        yield SHM_DENIED.finding(cause, LIKELY, found, node=node, pod=place)
    full = list(facts.said("app.no_space"))
    if full and (room := list(facts.said("host.disk_has_room"))):
        cause = "The disk has room: what is full is /dev/shm, where workers hand over their data."
        yield SHM.finding(cause, POSSIBLE, [*full, *room])
    for node, place, found in by_place(
        facts.said(
            "nccl.shm_small", "app.shm_small", "app.shm_full", "app.bus_signal", "app.shm_size_default",
            "app.shm_short_for_program",
        )
    ):
        strong = [said for said in found if said.message != "app.shm_size_default"]
        if not strong or denied:
            continue  # the default size alone is a fact of most pods
        size = value(strong[0], "size")
        needs = f" A segment of {int(size) // MIB or 1} MiB did not fit." if size.isdigit() else ""
        sure = ESTABLISHED if any(said.message == "nccl.shm_small" for said in strong) else LIKELY
        yield SHM.finding(
            f"/dev/shm of the container is full or too small (64 MiB where nothing is mounted).{needs}",
            sure,
            [*found, *small[:1]],
            node=node,
            pod=place,
        )
    yield from heard(
        facts, SHM_APART, ("nccl.shm_apart",), "A rank opens a segment that is not in its own /dev/shm.", LIKELY
    )
    yield from heard(
        facts,
        LOCKED,
        ("nccl.memory_locked", "rdma.locked_by_openib"),
        "Memory cannot be locked for RDMA: the limit is too low, or IPC_LOCK is missing.",
        LIKELY,
    )
    homeless = "The directory for compiled code cannot be written by the program's user."
    yield from heard(facts, CACHE, ("app.cache_denied",), homeless, LIKELY)
    yield from heard(
        facts,
        FILES,
        ("app.too_many_files", "app.too_many_threads"),
        "Open files or threads reached their limit.",
        POSSIBLE,
    )


RULE = Rule((SHM, SHM_DENIED, SHM_APART, LOCKED, CACHE, FILES), find)
