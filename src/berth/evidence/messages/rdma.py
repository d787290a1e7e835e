"""RDMA verbs and what joins network cards and GPUs: completions, ports, registration, peer memory, libfabric."""

from berth.evidence.message import Message

_PEER = r"(?:from (?:peer )?(?P<peer>[\w.:%-]+)(?:<\d+>)?)?"

MESSAGES: tuple[Message, ...] = (
    # Completions: 2.18 `error 12`, 2.20 `status=12`, 2.29 `status=IBV_WC_RETRY_EXC_ERR(12)`.
    Message(
        "nccl.completion",
        (
            "transport retry count exceeded",
            "got completion",
            "wc_retry_exc_err",
            "transport retry counter exceeded",
            "local protection error",
            "remote access error",
            "work request flushed error",
            "rnr retry counter exceeded",
            "ibv_wc_",
        ),
        rf"Got completion\s*{_PEER}.*?(?:error"
        r"|status)\W*(?:IBV_WC_(?P<name>\w+)\()?(?P<status>\d{1,2})\b\)?(?:.*?vendor.err\W*(?P<vendor>\d+))?"
        r"(?:.*?\bhca\W*(?P<hca>\w+))?"
        r"|(?P<text>transport retry counter exceeded|IBV_WC_RETRY_EXC_ERR)"
        r"|(?P<text2>Transport retry count exceeded)"
        # In the words of ibv_wc_status_str.
        r"|(?P<text3>local protection error|remote access error|Work Request Flushed Error"
        r"|RNR retry counter exceeded)",
    ),
    Message(
        "nccl.async_event",
        (
            "async event",
            "async error event",
            "async fatal event",
            "async fatal error event",
            "gid table changed",
            "port error",
            "physical state: polling",
            "physical state: disabled",
        ),
        r"(?:\b(?P<hca>[a-z]\w{1,14}_\w{1,12}):?\d{0,3}\W{1,4})?(?:Got )?async(?: fatal)? (?:error "
        r")?event\W*(?P<event>[^\n]+)"
        r"|NET/IB\W.*(?P<event2>GID table changed|port error)"
        r"|\bState: (?P<event3>Down)[,;] *Physical state: (?:Polling|Disabled)",
    ),
    Message(
        "nccl.modify_qp",
        (
            "ibv_modify_qp",
            "ibv_create_ah",
            "rdma_cm_event_addr_error",
            "failed to modify qp",
            "wrong gid",
            "invalid gid",
            "no gid",
            "usable gid",
            "ibv_query_gid",
            "gid index",
            "ib_gid_index",
            "ncclibrocegetversionnum",
            "rocegetversion",
            "gid_attrs/types",
            "attempted to connect incompatible devices",
            "a different number of devices",
        ),
        r"ibv_modify_qp failed(?: with error)?:? ?(?P<why>[^\n,]*)|ibv_query_gid\S* failed|(?:wrong|invalid"
        r"|no) (?:usable )?GID(?: index)?\b"
        r"|(?:open|read) failed in \w*RoceGetVersion\w*:? ?(?P<why2>[^\n,]*)"
        r"|gid_attrs/types/\d+\W.{0,40}(?:Invalid argument|No such)"
        r"|Attempted to connect incompatible devices|mergedDev \S+ has a different number of devices"
        r"|ibv_create_ah\W.*(?:failed|No such device)|RDMA_CM_EVENT_ADDR_ERROR|Failed to modify QP"
        r"|ibv_modify_qp\b.{0,20}(?:timed out|Invalid|No such)",
    ),
    Message(
        "nccl.memory_locked",
        (
            "ibv_reg_dmabuf_mr",
            "fi_mr_reg",
            "ulimit -l",
            "to create qp",
            "couldn't allocate mr",
            "couldn't create qp",
            "couldn't create cq",
            "couldn't create mr",
            "couldn't allocate qp",
            "couldn't allocate cq",
            "locked memory limit",
            "ibv_reg_mr",
            "ibv_create_qp",
            "ibv_create_cq",
            "max locked memory",
            "memlock",
            "failed to register memory",
            "failed to register the memory",
            "error registering memory",
        ),
        r"ibv_(?:reg_mr\w*|create_qp\w*|create_cq\w*)\W.*(?:failed.*(?:Cannot allocate memory|\bENOMEM\b|error 12\b)"
        r"|Cannot allocate memory)|Call to ibv_(?:create_qp|create_cq|reg_mr\w*) failed\s*$"
        r"|max locked memory\W.*\b(?:64|8192|65536)\b|set max locked memory|memlock\S*\s.*(?:too (?:low|small)|\b64\b"
        r"|\b65536\b|\b8192\b)|ulimit -l\W*(?:is|=|:|->|shows)?\s*(?:64|8192|65536)\b"
        r"|(?:failed to register|error registering) memory.*(?:ENOMEM|Cannot allocate)"
        r"|(?:Unable|Failed) to create QP\b|Couldn't (?:allocate|create) (?:QP|CQ)\b|locked memory limit"
        r"|ulimit -l\b[^\d\n]{0,25}(?:64|8192|65536)\b"
        r"|(?:ibv_reg_dmabuf_mr\w*|fi_mr_reg\w*)\W.*(?:Cannot allocate memory|\W-12\b)"
        r"|Failed to register the memory region: Cannot allocate memory"
        # As people and schedulers put it: `soft memlock set to 64K`, `RLIMIT_MEMLOCK too small`.
        r"|\b(?:RLIMIT_)?memlock\b[^\n]{0,60}\b(?:64 ?Ki?B?|65536|8 ?Mi?B?|8192)\b"
        r"|RLIMIT_MEMLOCK\b[^\n]{0,40}(?:too (?:low|small)|exceeded)|UCX\b[^\n]*(?:memlock|max locked memory"
        r"|ulimit -l)",
    ),
    Message(
        "nccl.reg_mr_refused",
        ("couldn't allocate mr", "ibv_reg_mr", "ibv_reg_dmabuf_mr"),
        r"ibv_reg_(?:mr\w*|dmabuf_mr) failed(?: with error)? (?P<why>Bad address|Invalid argument"
        r"|Operation not supported|Input/output error)"
        r"|Couldn't allocate MR\b",
    ),
    Message(
        "nccl.device_not_opened",
        (
            "unable to open device",
            "no usable transports",
            "no active messages transport",
            "ibv_open_device",
            "ibv_get_device_list",
            "uverbs",
            "/dev/infiniband",
            "open rdma device",
            "open ib device",
            "open ibverbs device",
            "could not open ",
            "ibv_query_port",
        ),
        r"\bcould not open (?:mlx\d|erdma|bnxt_re|irdma|rocep|ibp|hns)\S* \([^)\n]*errno|ibv_open_device\S* failed"
        r"|ibv_get_device_list\S* (?:failed|returned)"
        r"|(?:failed to|unable to|cannot|could not) open (?:RDMA|IB|ibverbs) device"
        r"|/dev/infiniband\S*\W+(?:No such file|Permission denied|Operation not permitted|does not exist|missing"
        r"|not found|(?:is )?not (?:in|mounted|passed|given|available|visible|there|exposed)"
        r"|is not mounted)|\buverbs\d*.*(?:Permission denied|Operation not permitted|No such file)"
        r"|ibv_query_port\S* failed|NET/IB : Unable to open device|no usable transports|no active messages transport",
    ),
    Message(
        "nccl.no_ib",
        ("net/ib : no device found", "failed to open libibverbs"),
        r"NET/IB : No device found|Failed to open libibverbs",
    ),
    Message(
        "nccl.privilege",
        (
            "sys_nice",
            "sys_ptrace",
            "ipc_lock",
            "privileged",
            "set_mempolicy",
            "get_mempolicy",
            "move_pages",
            "process_vm_readv",
            "pidfd",
        ),
        r"(?:works?|runs?|succeeds?) only (?:with|when|if|in) .{0,20}privileged|only works? (?:with|when|if"
        r"|in) .{0,20}privileged|without privileged.*(?:fails?|hangs?|error)"
        r"|(?:[sg]et_mempolicy|move_pages|process_vm_readv|pidfd_\w+)\W.*Operation not permitted|(?:needs?|requires?"
        r"|missing) (?:CAP_)?(?:IPC_LOCK|SYS_PTRACE|SYS_NICE)\b"
        r"|with privileged.{0,12}(?:it )?(?:works?|runs?|succeeds?)",
    ),
    # GPUDirect
    Message(
        "nccl.gdr_disabled",
        "gpu direct rdma disabled",
        r"GPU Direct RDMA Disabled(?![^\n]*\(distance \d+ >=? \d+\))(?: for HCA (?P<index>\d+)(?: '?(?P<hca>\w+))?)?",
    ),
    Message(
        "nccl.gdr_enabled",
        "gpu direct rdma enabled",
        r"GPU Direct RDMA Enabled(?: for HCA (?P<index>\d+)(?: '?(?P<hca>\w+))?)?",
    ),
    Message("nccl.no_gdr_suffix", "gdrdma", r"\bno GDRDMA|without (?:the )?(?:/)?GDRDMA"),
    Message(
        "host.peermem_absent",
        ("peermem", "peer_mem"),
        r"neither nv_peer_mem,? n?or nvidia_peermem detected"
        r"|nv(?:idia)?[_-]peer(?:mem|_mem)\w*\W*(?:is |was )?(?:missing|not loaded|absent|not present|not found"
        r"|unloaded)"
        r"|(?:no|without) nv(?:idia)?[_-]peer_?mem|Module nv(?:idia)?[_-]peer_?mem\w* not found",
    ),
    Message(
        "host.peermem_unregistered",
        (
            "peer memory",
            "memory_peers",
            "nvidia_peermem",
            "nvidia-peermem",
            "ib_register_peer_memory_client",
            "nv_peer_mem",
        ),
        r"/sys/kernel/mm/memory_peers/\S*\W+No such file|could not insert 'nvidia_peermem': (?P<why>Invalid argument"
        r"|Unknown symbol\S*|No such device)"
        r"|nv(?:idia)?[_-]peer_?mem: (?:disagrees about version of symbol"
        r"|Unknown symbol) ib_register_peer_memory_client|not registered .*peer memory",
    ),
    Message("host.peermem_present", ("nvidia_peermem",), r"nvidia_peermem\s+(?:present|loaded|\d+\s+\d+)"),
    # Somebody wanted RDMA, and tells that sockets are used.
    Message(
        "nccl.rdma_wanted",
        (
            "sockets",
            " tcp",
            "get efa",
            "make efa",
            "get infiniband",
            "make infiniband",
            "get roce",
            "make roce",
            "get rdma",
            "make rdma",
        ),
        r"\b(?:EFA|InfiniBand|RoCE|RDMA)\b[^\n]{0,80}\b(?:still|only|instead|falls? back|fell back)\b[^\n]{0,40}"
        r"\b(?:sockets|TCP)\b|\b(?:still|only|falls? back|fell back)\b[^\n]{0,30}\b(?:sockets|TCP)\b[^\n]{0,80}"
        r"\b(?:EFA|InfiniBand|RoCE|RDMA)\b"
        r"|\b(?:cannot|can't|could not|unable to) (?:get|make) (?:EFA|InfiniBand|RoCE|RDMA)(?: to)? work\w*",
    ),
    # Vendors' networks
    Message(
        "efa.unused",
        ("net/ofi", "libfabric", "fi_getinfo", "fi_info", "-61 no data", "aws-ofi-nccl", "efa "),
        r"NET/OFI (?:Failed to initialize|Could not find a libfabric provider|No eligible providers"
        r"|Unable to find a protocol|Couldn.t find any"
        r"|Only EFA provider is supported|Could not find any optimal provider)"
        r"|NET/OFI .*(?:initialization failed|fi_getinfo\S*.*(?:failed|No data available))"
        r"|fi_getinfo\W.*(?:No data available|-61\b)|\bfi_info\b[^\n]*(?:No data available|-61\b)"
        r"|-61 No data available|(?:no|unable to find) (?:EFA (?:device|provider|adapter)"
        r"|libfabric provider)"
        r"|NET/OFI Selected [Pp]rovider is (?:tcp|sockets|udp|shm)"
        r"|provider efa output empty list|aws-ofi-nccl initialization failed",
    ),
    # The device is in use and the other side does not answer: on AWS traffic that the security group drops.
    Message(
        "efa.no_way_through",
        (
            "net/ofi",
            "unresponsive receiver",
            "unestablished_recv_unresp",
            "fi_av_insert",
            "efa_rdm_",
            "rxr_cq_",
            "unable to insert remote address",
        ),
        r"NET/OFI (?:\w+: )?Request\b.{0,60}?completed with error\W+RC: (?P<status>\d+)"
        r"|(?:NET/OFI|NCCL WARN)\b.{0,40}Unable to insert remote address|\bfi_av_insert\b.{0,60}(?:fail|error"
        r"|RC: -?\d)"
        r"|Failed call to fi_av_insert|Unresponsive receiver|UNESTABLISHED_RECV_UNRESP"
        r"|(?:efa_rdm|rxr)_\w*(?:error|err)\w*\b.{0,40}err: \d+",
    ),
    Message(
        "efa.other_error",
        ("net/ofi ",),
        r"(?<!INFO )\bNET/OFI (?=[^\n]*(?:\bRC: -\d|Unable to|[Ff]ailed|Could(?:n.t| not)|[Ee]rror"
        r"|not (?:available|set)))"
        r"(?P<why>(?!Failed to initialize|No eligible|Unable to find a protocol|Couldn.t find any"
        r"|Only EFA|Could not find any optimal|Request\b|\w+: Request\b|(?:CM: )?Unable to insert remote"
        r"|.{0,40}initialization failed|.{0,40}fi_getinfo|.{0,40}fi_av_insert)[^\n]+)",
    ),
    Message(
        "sharp.failed",
        (
            "sharp_coll",
            "sharp coll",
            "sharpcoll",
            "to sharp",
            "start sharp",
        ),
        r"sharp_coll\w*.*(?:fail|error)|SHARP coll init error|sharpcoll\w*.*(?:fail|error)"
        r"|Fail(?:ed)? to (?:connect to|start) SHARP\w*|Cannot connect to SHARP\w*",
    ),
    # Engines that move caches between servers say no more than that nothing came.
    Message(
        "transfer.failed",
        (
            "failed to complete transfers after",
            "kvtransfererror",
            "failed to get kvcache from",
            "nixl_err_",
            "nixlbackenderror",
            "nixlremotedisconnecterror",
        ),
        r"Failed to complete transfers after \d+|KVTransferError|Failed to get kvcache from|NIXL_ERR_(?:BACKEND"
        r"|REMOTE_DISCONNECT|NOT_FOUND)",
    ),
    Message("ucx.no_peer_memory", ("unused env variable",), r"UCX\s+WARN\s+unused env variable"),
    Message(
        "host.rdma_present",
        (
            "/dev/infiniband",
            "ibstat",
            "ibv_devinfo",
        ),
        r"/dev/infiniband\S*.{0,40}\b(?:exists?|(?:is|are) (?:there|present)|present)\b|(?:ibstat"
        r"|ibv_devinfo)\W.{0,60}\b(?:Active|PORT_ACTIVE)",
    ),
    Message(
        "nvshmem.no_right",
        ("mlx5dv_devx_uar", "mlx5dv_devx"),
        r"cannot allocate mlx5dv_devx_uar|mlx5dv_devx_\w+\W.{0,60}(?:Operation not permitted|EPERM"
        r"|Permission denied)",
    ),
    # The driver does not pin memory of cards without GPUDirect for another device.
    Message(
        "gdr.refused_by_card",
        ("check_gdr_support", "nvidia_p2p_get_pages"),
        r"check_gdr_support\(\w*\)\) == \(true\)\W* failed|nvidia_p2p_get_pages\([^)]*\) failed \[ret = -22\]",
    ),
    Message(
        "nvshmem.failed",
        ("nvshmem",),
        r"nvshmem\S*.{0,120}(?:non-zero status|failed|\berror\b|unable)",
    ),
    Message(
        "gdrcopy.absent",
        (
            "gdr_open",
            "gdrdrv",
            "libgdrapi",
        ),
        r"gdr_open\W.{0,80}(?:fail|error)|gdrdrv\W.{0,60}(?:not loaded|No such|missing|not found|not present)"
        r"|libgdrapi\S*: cannot open",
    ),
    Message(
        "gds.absent",
        ("nvidia-fs", "nvidia_fs", "nvfs driver", "cufile"),
        r"nvidia[-_]fs\W.{0,60}(?:not loaded|missing|not found|not present|No such)|cuFileDriverOpen\W.{0,80}(?:fail"
        r"|error)|nvfs driver\W.{0,40}(?:not|fail)|cuFile\W.{0,60}driver (?:not initialized|initialization error)",
    ),
)
