"""What people tell of jobs over several GPUs: where they hang, and which setting made them run."""

from berth.evidence.message import Message

_HANGS = r"(?:hangs?|hung|hanging|stuck|freez\w+|frozen|never (?:ends|returns|finishes|starts)|dead ?locks?)"
_PARALLEL = (
    r"(?:tensor[- _]parallel\w*(?:[- _]size)?|\bTP ?= ?[23456789]|custom[- _]all-?_?reduce|pynccl"
    r"|DataParallel|[ (`]DDP|\bDDP |multi[- ]?GPUs?"
    r"|(?:two|2|four|4|several|multiple|both|dual|8)(?: \w+){0,2} GPUs|P2P/IPC|NVLink bridge)"
)
_HELPS = r"(?:works?|worked|solv\w+|fix\w*|resolv\w+|help\w*|disappear\w*|went away|gone|succeed\w*|ok)"

MESSAGES: tuple[Message, ...] = (
    Message(
        "nccl.parallel_hangs_told",
        (
            "tensor parallel",
            "tensor-parallel",
            "tensor_parallel",
            *(f"tp{sign}{size}" for sign in ("=", " =", "= ", " = ") for size in range(2, 10)),
            "custom all",
            "custom-all",
            "custom_all",
            "pynccl",
            "dataparallel",
            " ddp",
            "(ddp",
            "`ddp",
            "ddp ",
            "nvlink bridge",
            "multi-gpu",
            "multi gpu",
            "multigpu",
            " gpus",
            "p2p/ipc",
        ),
        rf"^(?=.*\b{_HANGS}\b)"
        r"(?!.*\b(?:nodes|multi-?node|machines|hosts|InfiniBand|RoCE|EFA|data ?loader|download\w*"
        r"|[Pp]ending|[Kk]ueue|queues?|admitted|unschedulable|gang)\b)"
        rf".*?(?:{_PARALLEL}\b[^\n]{{0,120}}\b{_HANGS}\b|\b{_HANGS}\b[^\n]{{0,120}}{_PARALLEL})",
    ),
    Message(
        "nccl.nodes_hang_told",
        (
            "multi-node",
            "multinode",
            "multi node",
            "multi- node",
            *(
                f"{many} {machines}"
                for many in ("two", "2", "several", "multiple", "more", "different")
                for machines in ("nodes", "machine", "hosts")
            ),
            "across nodes",
            "nnodes",
            "between nodes",
            "second node",
            "inter-node",
            "cross-node",
            "other node",
            "multi-machine",
            "multi-host",
        ),
        rf"^(?!.*\b(?:data ?loader|download\w*|checkpoint\w*)\b)(?=.*\b(?:NCCL|gloo|rank\w*|torchrun|training|vllm"
        r"|sglang|deepspeed|ray|all_?reduce|GPUs?|distributed|init_process_group)\b)"
        rf".*?\b(?:multi-? ?node|(?:two|2|several|multiple|more|different) (?:nodes|machines?|hosts)|across nodes"
        rf"|nnodes|between nodes|cross-node|inter-node|(?:second|other) node|multi-(?:machine|host))\b[^\n]{{0,160}}"
        rf"\b(?:{_HANGS}|(?:just )?stopped at|without (?:further )?progress|no (?:further )?output"
        r"|times? out|timed out)\b",
    ),
    Message(
        "told.nodes_apart",
        ("reach", "talk to", "communicate"),
        r"\bnodes?\b[^\n]{0,40}\b(?:can(?:'t|not|not)|do(?:es)? not|don't|unable to) (?:reach|talk to|communicate with)"
        r" (?:each other|one another|node|the other|the master|the head|rank)\b",
    ),
    # Where a connection of the start came back with an error, and nothing says which.
    Message("nccl.socket_returned", "misc/socket.cc:", r"NCCL INFO misc/socket\.cc:\d+ -> [23]\b"),
    Message(
        "nccl.plugin_loaded",
        ("plugin path :", "loaded net plugin", "libnccl-net.so"),
        r"NCCL INFO (?:Plugin Path :|NET/Plugin: ?Loaded net plugin)|Using \S*libnccl-net\.so",
    ),
    # A proxy of NCCL is another thread of the rank: it says only that the connection beyond it was not made.
    Message(
        "nccl.proxy_call_failed",
        "proxy call to rank",
        r"Proxy Call to rank \d+ failed \((?:Connect|Setup|Init)\)",
    ),
    Message(
        "nccl.one_works_told",
        (
            "one gpu",
            "single gpu",
            "1 gpu",
            "with 1 ",
            "with one ",
            "single-gpu",
            "one card",
            "single card",
            *(f"{one} {card}" for one in ("one", "single") for card in ("l40", "rtx", "a100", "h100", "t4")),
        ),
        r"\b(?:1|one|(?:a )?single)[ -](?:\w+ )?(?:GPU|card|L40S?|A\d{2,4}|H\d{3}|T4|RTX|\d{4})\b[^\n]{0,60}"
        r"\b(?:works?|worked|fine|runs?|ok)\b|\b(?:works?|worked|fine|runs?|ok)\b[^\n]{0,40}\b(?:with|on) "
        r"(?:1|one|a single|only one) (?:GPU|card)\b",
    ),
    # Which setting made it run says what was wrong before.
    Message(
        "told.interface_helps",
        (
            "socket_ifname",
            "nccl_ib_hca",
            "gid_index",
            "gloo_socket",
            "master_addr",
            "--network host",
            "--network=host",
            "--net=host",
            "hostnetwork",
        ),
        rf"\b{_HELPS}\b[^\n]{{0,80}}(?:(?:NCCL|GLOO|TP)_SOCKET_IFNAME|NCCL_IB_(?:HCA|GID_INDEX))"
        rf"|(?:(?:NCCL|GLOO|TP)_SOCKET_IFNAME|NCCL_IB_(?:HCA|GID_INDEX))\b[^\n]{{0,80}}\b{_HELPS}\b"
        rf"|(?:--net(?:work)?[= ]host|hostNetwork)\b[^\n]{{0,60}}\b{_HELPS}\b[^\n]{{0,60}}\b(?:NCCL|ranks?|nodes)\b",
    ),
    Message(
        "told.shared_memory_helps",
        (
            "--ipc=host",
            "--ipc host",
            "--ipc=",
            "shm-size",
            "shm_size",
            "/dev/shm",
            "hostipc",
            "workers=0",
            "num_worker",
            "worker=0",
            "worker = 0",
            "worker to 0",
            "workers = 0",
            "workers to 0",
        ),
        rf"(?:--ipc[= ]host|--?-?shm[-_]size\S*|hostIPC|/dev/shm)\b[^\n]{{0,80}}\b{_HELPS}\b"
        rf"|\b{_HELPS}\b[^\n]{{0,80}}(?:--ipc[= ]host|shm[-_]size|hostIPC|/dev/shm)"
        rf"|\b(?:num_)?workers? ?(?:=|to) ?0\b[^\n]{{0,40}}\b{_HELPS}\b",
    ),
    Message(
        "told.locked_memory_helps",
        ("memlock", "ipc_lock", "ulimit -l"),
        rf"(?:memlock|IPC_LOCK|ulimit -l)\b[^\n]{{0,80}}\b{_HELPS}\b"
        rf"|\b{_HELPS}\b[^\n]{{0,80}}(?:memlock|IPC_LOCK|ulimit -l)",
    ),
)
