"""L6. What carries data between ranks writes an error of its own, and no rule knows more: its words and its source file
say which part of it failed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, value
from berth.diagnosis.words import WEAK, CauseClass, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

PART = Code(
    name="TransportErrorOfItsOwn",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="NCCL, UCX or NVSHMEM names a call of its own that failed",
    meaning="The line is written where the call stands: its words, else the source file, tell whether it was a socket, "
    "a network card, shared memory, peer access or the program's own arguments.",
    known_by="A line at the level of error of the library, and nothing else that is known.",
    disproved_by="The job goes on after it: the library took another way.",
    counter_check="NCCL_DEBUG=INFO (UCX_LOG_LEVEL=info, NVSHMEM_DEBUG=INFO) on all ranks: the job goes on after the "
    "line, or another rank had an error before",
    fix=Fix(
        steps=(
            "the earliest such line of all ranks is where to look; later ones are its consequences",
            "socket, card: ping and ib_write_bw between the two nodes; ibv_devinfo in both containers",
            "shared memory: df -h /dev/shm; peer access: nvidia-smi topo -p2p r, p2pBandwidthLatencyTest",
        ),
        risk="none",
        rollback="unset the debug variables",
    ),
    verify=("the job starts, and the line does not come",),
    sources=("NCCL, src", "UCX, src/uct and src/ucp", "NVSHMEM, src/host and src/modules/transport"),
)

GUESS = 0.55  # above what a bare result of the framework says (without_reason.py)
_GENERAL = ("transport.nccl", "transport.ucx", "transport.nvshmem", "transport.deepep")
# What says more, or says nothing: with any other sentence of these families there is no need to guess.
_FAMILIES = ("nccl.", "cuda.", "efa.", "sharp.", "host.", "nvshmem.", "app.", "image.", "dist.", "mpi.", "gdr.")
_QUIET = (
    "nccl.plain_error", "nccl.setting", "nccl.bootstrap_interface", "nccl.sockets_used", "nccl.gdr_enabled",
    "nccl.no_ib", "nccl.ras_bind", "nccl.begun", "nccl.plugin_loaded", "nccl.socket_returned", "app.ended",
    "app.server_ended", "nccl.socket_listed",
)  # fmt: skip

_BY_WORDS: tuple[tuple[re.Pattern[str], CauseClass], ...] = tuple(
    (re.compile(words, re.IGNORECASE), cause_class)  # type: ignore[misc]
    for words, cause_class in (
        (r"\bshm|shared memory|\bmm(?:_| for)|posix_fallocate|Cannot allocate memory|No space left|Too many open"
         r"|mmap|/proc/\d+/fd", "host-limits"),
        (r"Operation not permitted|Permission denied", "permission"),
        (r"NVLS|multicast|\bMC (?:handle|group|team)\b|MNNVL|IMEX|fabric (?:handle|clique)|multimem", "fabric"),
        (r"\bpeer (?:with|query|access)|Peer GPU|\bP2P\b|\bIPC\b|Ipc(?:Get|Open)Mem|Bad address|acs\b",
         "p2p-acs-iommu"),
        (r"too old|compiled with|incompatible version|version mismatch|is unsupported$|not support the version",
         "version-mismatch"),
        (r"dlopen|failed to (?:open|load) lib|cannot open shared object|undefined symbol|dlsym failed", "image"),
        (r"sock|connect|\bbind\b|\baccept\b|listen|\bpeer\b|remote|bootstrap|ibv_|\bNET/|\bQP\b|\bCQ\b|\bGID\b|recv"
         r"|\bsend\b|rdma|transport|endpoint|unreachable|interface|\bHCA\b|\bNIC\b|\bIB\b|getaddrinfo|proxy"
         r"|handshake|network|timeout|timed out|keepalive|\bEP\b|libfabric|\bGIN\b", "network"),
    )
)  # fmt: skip
_BY_FILE: tuple[tuple[re.Pattern[str], CauseClass], ...] = tuple(
    (re.compile(words, re.IGNORECASE), cause_class)  # type: ignore[misc]
    for words, cause_class in (
        (r"shm|mm_posix|mm_sysv", "host-limits"),
        (r"nvls|mnnvl|multicast", "fabric"),
        (r"\bp2p|cuda_ipc|ipcsocket", "p2p-acs-iommu"),
        (r"net|socket|bootstrap|ibv|\bib|ras|proxy|plugin|tcp|rdma|sock|transport|gin", "network"),
    )
)
_PART: dict[CauseClass, str] = {
    "host-limits": "a call for shared or locked memory",
    "permission": "a call for which the container has no right",
    "fabric": "multicast or memory handles over NVLink",
    "p2p-acs-iommu": "the access from one GPU to another",
    "version-mismatch": "two versions that do not fit",
    "image": "a library of the image",
    "network": "the way to another rank",
    "app": "what the program asks for",
}
# The line says itself that it goes on.
_GOES_ON = re.compile(
    r"\bignor(?:ed|ing)\b|leaving it|using (?:the |built-in )?default|fall(?:ing|s)? back|retrying|[Ll]imiting value"
    r"|has no effect|set it to \d|will decide|continu(?:e|ing)|deprecated|not fatal|Unsetting|capping|clamping"
    r"|may be stale|Trying a different|instablity|NUMA auto|To disable this warning|will be disabled|not using it"
    r"|Plugin: (?:No plugin found|Failed to find nccl)|Attaching to first CPU|Abort COMPLETE"
    r"|Setting it|going on|will not be using|using point-to-point",
    re.IGNORECASE,
)


def find(facts: Facts) -> Iterator[Answer]:
    known = [said for said in facts.said(*_FAMILIES) if said.message not in _QUIET]
    if known:
        return
    noted = {said.origin.text for said in facts.said("harmless.", "nccl.no_ib", "nccl.ras_bind")}
    open_lines = [
        said
        for said in facts.said(*_GENERAL)
        if said.origin.text not in noted and not _GOES_ON.search(said.get("why"))
    ]
    for node, pod, found in by_place(open_lines):
        first = found[0]
        cause_class = _class_of(first)
        words = value(first, "why").strip()
        yield PART.finding(
            f"It names {_PART[cause_class or 'app']}{': ' + words[:160] if words else ''}.",
            GUESS if cause_class else WEAK,
            found,
            node=node,
            pod=pod,
            cause_class=cause_class or "app",
        )


def _class_of(said: Said) -> CauseClass | None:
    """By the words of the line, else by the file that it stands in; of another file it is the program's."""
    if said.message == "transport.deepep":
        return "version-mismatch" if "version" in said.origin.text else "network"
    for pattern, cause_class in _BY_WORDS:
        if pattern.search(said.get("why")):
            return cause_class
    unnamed: CauseClass | None = "network" if said.message in ("transport.ucx", "transport.nvshmem") else None
    return next((cause_class for pattern, cause_class in _BY_FILE if pattern.search(said.get("file"))), unnamed)


RULE = Rule((PART,), find)
