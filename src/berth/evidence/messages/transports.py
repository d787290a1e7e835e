"""What carries data between ranks, in the lines that it writes at its own level of error: NCCL, UCX, NVSHMEM, DeepEP.
Which mechanism fails is known of many of them (nccl.py, rdma.py, ranks.py); here is any line, with its source file."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # NCCL has one level above INFO: what it warns of is mostly what ends the job. A hint explains the line before.
    Message(
        "transport.nccl",
        "nccl warn ",
        r"(?:\b(?P<file>[\w/]+\.(?:cc|cu|h|cpp)):? ?\d+ (?:\(\w+\) )?)?NCCL WARN (?:\w+\.\w{1,3}:\d+ )?"
        r"(?P<why>(?!HINT)\S[^\n]+)",
    ),
    Message(
        "transport.ucx",
        ("ucx  error", "ucx  fatal", "ucx error", "ucx fatal"),
        r"(?:\b(?P<file>\w+\.c):\d+ +)?UCX +(?:ERROR|FATAL) +(?P<why>[^\n]+)",
    ),
    Message(
        "transport.nvshmem",
        (": non-zero status: ", ": null value"),
        r"\b(?P<file>[\w/.-]+\.(?:cpp|cu|c|h)):\d+: (?:non-zero status: -?\d+|NULL value) ?(?P<why>[^\n]*)",
    ),
    Message(
        "transport.deepep",
        ("deepep error", "deepep timeout", "deepep combine", "deepep dispatch", "nvshmem version mismatch"),
        r"DeepEP (?:error: |(?:\w+ )?timeout|combine .{0,40}timeout|dispatch .{0,40}timeout)(?P<why>[^\n]*)"
        r"|NVSHMEM version mismatch",
    ),
    # perftest and what else speaks to verbs itself
    Message(
        "rdma.failed_status",
        ("failed status ",),
        r"\bFailed status (?P<status>\d{1,2}): wr_id",
    ),
    Message(
        "rdma.no_device",
        ("no ib devices found", "ib device not found", "did not detect devices",
         "ibv_open_device", "couldn't get context for the device", "no available rnic"),
        r"\bNo IB devices found|Did not detect devices|IB device not found"
        r"|ibv_open_device\W[^\n]{0,20}(?:Operation not permitted|Permission denied)"
        r"|Couldn't get context for the device|No available RNIC",
    ),
    # Placement of memory and threads, and reading a neighbour's memory, are capabilities of their own.
    Message(
        "nccl.call_denied",
        ("mbind", "sched_setaffinity", "ptrace"),
        r"\b(?:mbind|sched_setaffinity|ptrace)\b[^\n]{0,40}Operation not permitted",
    ),
    Message(
        "rdma.memory_refused",
        "bad address",
        r"memory registration failed: Bad address|\bibv_reg_(?:mr|dmabuf_mr)\w*\b[^\n]{0,80}Bad address"
        r"|Couldn't allocate MR with error=14\b[^\n]{0,60}Bad address",
    ),
    Message(
        "rdma.locked_by_openib",
        ("trying to allocate some locked memory", "registering part of your physical memory"),
        r"trying to allocate some locked memory|only allow registering part of your physical memory",
    ),
    Message(
        "gdrcopy.not_there",
        ("/dev/gdrdrv", "gdrcopy open"),
        r"No such file[^\n]{0,30}/dev/gdrdrv|GDRCopy open (?:call )?failed",
    ),
    # What NCCL says to explain the line before: it names the mechanism.
    Message(
        "nccl.hint_topology",
        ("could not obtain complete pci topology", "missing or faulty information in the provided topology file"),
        r"could not obtain complete PCI topology|missing or faulty information in the provided topology file",
    ),
    Message(
        "nccl.hint_retries",
        ("nccl_ib_timeout is set too short", "nics are not cross-rail connected"),
        r"NCCL_IB_TIMEOUT is set too short|NICs are not cross-rail connected",
    ),
    Message("nccl.hint_gid", "incorrect gid index is forced", r"incorrect GID index is forced by NCCL_IB_GID_INDEX"),
    # A rank of another release sends what this one does not read as an address.
    Message(
        "nccl.address_unread",
        ("is neither af_inet(2) nor af_inet6(10)",),
        r"with family \d+ is neither AF_INET\(2\) nor AF_INET6\(10\)",
    ),
    Message(
        "nccl.other_build",
        ("this application was compiled with nccl version", "mismatched nccl git versions"),
        r"NCCL library is (?:too old|not backwards compatible)\. This application was compiled with NCCL version "
        r"(?P<wanted>[\d.]+\d), but is running with NCCL library version (?P<found>[\d.]+\d)"
        r"|Mismatched NCCL git versions detected",
    ),
    # The first release had another interface and knew one machine only.
    Message("nccl.first_release", "compiled with nccl 1.", r"NCCL Tests compiled with NCCL (?P<version>1\.\d\S*)"),
    # Of which driver a library is that programs load.
    Message(
        "image.driver_library",
        ("libcuda.so", "libnvidia-ml.so"),
        r"\b(?:libcuda|libnvidia-ml)\.so(?:\.1)? -> \S*?(?:libcuda|libnvidia-ml)\.so\."
        r"(?P<version>\d{3}\.\d+(?:\.\d+)?)",
    ),
    Message(
        "context.driver_version",
        "driver version: ",
        r"\bDriver Version: (?P<version>\d{3}\.\d+(?:\.\d+)?)",
    ),
    # Switch ports of PLX: their control of ACS, read with setpci.
    Message(
        "host.plx_acs_on",
        "f2a.w",
        r"\bf2a\.w\b[\s\S]{0,120}?\n(?P<value>00(?:[1-9a-f][0-9a-f]|0[4-9a-f]))(?![0-9a-f])",
        lines=6,
    ),
)
