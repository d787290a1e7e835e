"""NCCL, RDMA verbs and libfabric, and the frameworks that wait for them. Lines with numbers that rules compare are read
by formats/nccl_log.py; here are the sentences that mean something alone."""

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
            "ibv_wc_",
        ),
        rf"Got completion\s*{_PEER}.*?(?:error"
        rf"|status)\W*(?:IBV_WC_(?P<name>\w+)\()?(?P<status>\d+)\)?(?:.*?vendor.err\W*(?P<vendor>\d+))?(?:.*?\bhca\W*(?P<hca>\w+))?"
        r"|(?P<text>transport retry counter exceeded|IBV_WC_RETRY_EXC_ERR)"
        r"|(?P<text2>Transport retry count exceeded)",
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
        ),
        r"(?:\b(?P<hca>[a-z]\w{1,14}_\w{1,12}):?\d{0,3}\W{1,4})?(?:Got )?async(?: fatal)? (?:error "
        r")?event\W*(?P<event>[^\n]+)"
        r"|NET/IB\W.*(?P<event2>GID table changed|port error)",
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
        ),
        r"ibv_modify_qp failed(?: with error)?:? ?(?P<why>[^\n,]*)|ibv_query_gid\S* failed|(?:wrong|invalid"
        r"|no) (?:usable )?GID(?: index)?\b"
        r"|ibv_create_ah\W.*(?:failed|No such device)|RDMA_CM_EVENT_ADDR_ERROR|Failed to modify QP"
        r"|ibv_modify_qp\b.{0,20}(?:timed out|Invalid|No such)",
    ),
    Message(
        "nccl.memory_locked",
        (
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
            "ibv_reg_dmabuf_mr",
            "max locked memory",
            "memlock",
            "failed to register memory",
            "error registering memory",
        ),
        r"ibv_(?:reg_mr\w*|create_qp\w*|create_cq\w*)\W.*(?:failed.*(?:Cannot allocate memory|\bENOMEM\b|error 12\b)"
        r"|Cannot allocate memory)|Call to ibv_(?:create_qp|create_cq|reg_mr\w*) failed\s*$"
        r"|max locked memory\W.*\b(?:64|8192|65536)\b|set max locked memory|memlock\S*\s.*(?:too (?:low|small)|\b64\b"
        r"|\b65536\b|\b8192\b)|ulimit -l\W*(?:is|=|:|->|shows)?\s*(?:64|8192|65536)\b"
        r"|(?:failed to register|error registering) memory.*(?:ENOMEM|Cannot allocate)"
        r"|(?:Unable|Failed) to create QP\b|Couldn't (?:allocate|create) (?:QP|CQ)\b|locked memory limit"
        r"|ulimit -l\b[^\d\n]{0,25}(?:64|8192|65536)\b",
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
        ),
        r"ibv_open_device\S* failed|ibv_get_device_list\S* (?:failed|returned)"
        r"|(?:failed to|unable to|cannot|could not) open (?:RDMA|IB|ibverbs) device"
        r"|/dev/infiniband\S*\W+(?:No such file|Permission denied|Operation not permitted|does not exist|missing"
        r"|not found"
        r"|is not mounted)|\buverbs\d*.*(?:Permission denied|Operation not permitted|No such file)"
        r"|NET/IB : Unable to open device|no usable transports|no active messages transport",
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
        r"GPU Direct RDMA Disabled(?: for HCA (?P<index>\d+)(?: '?(?P<hca>\w+))?)?",
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
        r"nv(?:idia)?[_-]peer(?:mem|_mem)\w*\W*(?:is |was )?(?:missing|not loaded|absent|not present|not found"
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
    # The way between the ranks
    Message("nccl.bootstrap_interface", "bootstrap", r"Bootstrap ?: Using (?:\[\d+\])?(?P<interface>[\w.@-]+):"),
    Message(
        "nccl.no_socket_interface",
        (
            "nccl_socket_ifname",
            "unable to find address for",
            "unable to find interface",
            "no socket interface found",
            "no usable interface",
            "no interface found",
            "gloo",
            "no socket found",
        ),
        r"no socket interface found|no usable interface|Unable to find (?:address for|interface):? ?(?P<interface>\w+)"
        r"|NCCL_SOCKET_IFNAME.*(?:does not exist|not found|no such)",
    ),
    Message(
        "nccl.unreachable",
        (
            "exceeded retr",
            "exceeded error retr",
            "connection refused",
            "no route to host",
            "network is unreachable",
            "connection timed out",
            "connect to ",
            "connect returned",
            "connect failed",
            "socketstartconnect",
            "socketpollconnect",
            "socketfinalizeconnect",
            "socketprogress",
            "ncclsocket",
            "socketconnect",
        ),
        r"\bconnect (?:to (?P<peer>\S+?)(?:<\d+>)? )?(?:returned|failed)\b.*?"
        r"(?P<why>Connection timed out|Connection refused|No route to host|Network is unreachable)"
        r"|(?:ncclSocket|socketStartConnect|socketPollConnect|socketFinalizeConnect|socketProgress"
        r"|socketConnect)\w*\W.*"
        r"(?P<why2>Connection timed out|Connection refused|No route to host|Network is unreachable)"
        r"|(?:socketStartConnect|NCCL)\b.{0,80}exceeded (?:error )?retr|NCCL WARN .{0,80}(?P<why3>Connection refused"
        r"|No route to host|Network is unreachable|Connection timed out)",
    ),
    Message(
        "nccl.peer_closed",
        ("connection closed by remote peer", "ncclremoteerror", "connection reset by peer", "remote process exited"),
        r"Connection closed by remote peer (?P<peer>[\w.:-]+)?|ncclRemoteError|NCCL.*Connection reset by peer"
        r"|remote process exited or there was a network error",
    ),
    Message(
        "nccl.bootstrap_mismatch",
        ("has already checked in", "mismatch in info from procs", "bootstrap root"),
        r"has already checked in|mismatch in info from procs",
    ),
    Message(
        "dist.rendezvous",
        (
            "connectfullmesh failed",
            "keep-alive heartbeat",
            "gloo",
            "distnetworkerror",
            "network addresses of ",
            "client socket has failed to connect",
            "client socket has timed out",
            "waiting for clients",
            "c10d",
            "rendezvous",
            "tcpstore",
            "diststore",
            "name or service not known",
            "temporary failure in name resolution",
            "gethostbyname",
            "address family for hostname",
            "eaddrinuse",
        ),
        r"client socket has (?:failed to connect to|timed out after)\D*\[?(?P<host>[\w.-]+)?"
        r"|Timed out after \d+ seconds waiting for clients|(?:RendezvousConnectionError|RendezvousTimeoutError"
        r"|DistStoreError|DistNetworkError)"
        r"|(?:MASTER_ADDR|c10d|rendezvous|TCPStore|hostname)\S*.*(?:Name or service not known"
        r"|Temporary failure in name resolution|EADDRINUSE)"
        r"|IPv[46] network addresses of \(?(?P<host2>[\w.-]+).* cannot be retrieved"
        r"|connectFullMesh failed|RendezvousClosedError|failed to send a keep-alive heartbeat|Gloo.{0,40}(?:timed out"
        r"|Connection (?:refused|reset|closed))",
    ),
    Message(
        "mpi.launcher",
        (
            "orte",
            "prte",
            "mpirun",
            "plm:rsh",
            "not enough slots available",
            "pmix",
            "ssh: could not resolve",
            "ssh: connect to host",
            "mpiexec",
            "hydra",
        ),
        r"(?:ORTE|PRTE) (?:was unable to reliably start|does not know how to route|has lost communication)"
        r"|There are not enough slots available"
        r"|ssh: (?:Could not resolve hostname (?P<host>[\w.-]+)|connect to host (?P<host2>[\w.-]+) port \d+: \w[\w ]+)"
        r"|An ORTE daemon has unexpectedly failed"
        r"|mpirun (?:was unable to|has detected an attempt to run as root)|plm:rsh\S*.*(?:fail|not found)",
    ),
    Message(
        "dist.watchdog",
        (
            "shared memory broadcast block",
            "failure detected by watchdog",
            "nccl watchdog",
            "processgroupnccl's watchdog",
            "collective operation timeout",
        ),
        r"Watchdog caught collective operation timeout(?:: WorkNCCL\(SeqNum=(?P<sequence>\d+), "
        r"OpType=(?P<operation>\w+))?"
        r"|failure detected by watchdog|NCCL watchdog (?:thread )?(?:time|got stuck|hang)"
        r"|ProcessGroupNCCL's watchdog got stuck|collective operation timeout"
        r"|No available shared memory broadcast block found",
    ),
    # Versions, devices
    Message(
        "nccl.version_mismatch",
        ("nccl version ", "versions of nccl", "version of nccl", "nccl mismatch", "mismatched nccl version"),
        r"Mismatched NCCL version detected(?: ?: rank (?P<rank>\d+) version (?P<version>\S+) rank (?P<rank2>\d+) "
        r"version (?P<version2>\S+))?|NCCL (?:version )?mismatch|different versions? of NCCL"
        r"|NCCL version (?P<one>\d[\d.]+\d)\b.{0,60}NCCL version (?!(?P=one)\b)\d",
    ),
    Message(
        "nccl.duplicate_gpu",
        ("duplicate gpu detected", "multiple ranks are using the same gpu"),
        r"Duplicate GPU detected ?: rank (?P<rank>\d+) and rank (?P<rank2>\d+) both on CUDA device (?P<device>\w+)"
        r"|Duplicate GPU detected|Multiple Ranks are using the same GPU",
    ),
    # NVLink beyond a pair
    Message(
        "nccl.nvls_bind",
        ("nvlink sharp", "nvls", "multicast"),
        r"Failed to bind NVLink SHARP|(?:NVLS|multicast)\S*.*(?:bind|create|alloc\w*|setup)\S* (?:of \S+ )?fail\w*"
        r"|(?:failed|unable) to (?:bind|create|allocate|set up) (?:NVLink SHARP|NVLS|multicast)\w*"
        r"|cuMulticast(?:Bind\w*|Create|AddDevice)\W.*(?:fail|error|\d{3})",
    ),
    Message(
        "nccl.mnnvl",
        ("mnnvl", "cuda failure 101", "cumemimportfromshareablehandle", "fabric handle", "nvl domain"),
        r"MNNVL.*(?:available but not working|fail|error|unable)|NCCL WARN Cuda failure 101\b"
        r"|cuMemImportFromShareableHandle\W.*(?:fail|error|101|invalid|800|not permitted)|(?:import"
        r"|export)\S* (?:of )?fabric handle\S* fail",
    ),
    Message(
        "cuda.not_permitted",
        (
            "cuda failure 800",
            "cuda error 800",
            "cuda error: 800",
            "cuda_error_not_permitted",
            "operation not permitted",
            "cudaerrornotpermitted",
        ),
        r"CUDA_ERROR_NOT_PERMITTED|cudaErrorNotPermitted|Cuda failure 800|CUDA error:? (?:800|operation not permitted)"
        r"|Cuda failure (?:800 )?'operation not permitted'",
    ),
    Message(
        "host.imex_channel_absent",
        ("imex",),
        r"nvidia-caps-imex-channels\S*\W+(?:No such file|missing|does not exist|not found|is empty|not there)"
        r"|no IMEX channel|IMEX channel\S* (?:is |are )?(?:missing|not (?:found|present|created))",
    ),
    # Peer access
    Message(
        "nccl.peer_access",
        (
            "iommu",
            "p2p is disabled between",
            "could not enable p2p between",
            "peer access is not supported",
            "peer_access_unsupported",
            "peeraccessunsupported",
            "acsctl",
            "io_page_fault",
            "acs is enabled",
            "acs enabled",
            "acs was enabled",
            "acs is still enabled",
            "acs still enabled",
            "acs on ",
            "acs redirect",
            "verification error @ element",
            "dmar:",
            "p2p is not working",
            "p2p test failed",
        ),
        r"peer access is not supported between|PEER_ACCESS_UNSUPPORTED|cudaErrorPeerAccessUnsupported"
        r"|ACSCtl:\s+SrcValid\+(?!.*ReqRedir-)|(?:nvidia|AMD-Vi|device).{0,200}IO_PAGE_FAULT"
        r"|IO_PAGE_FAULT.{0,200}(?:nvidia|device)"
        r"|\bACS (?:is enabled|enabled|was enabled|is still enabled|still enabled|on (?:the|all|PCI|root|a)\b|redirect)"
        r"|Verification error @ element|DMAR:.*fault.*(?:addr|reason)|P2P (?:is not working|test failed)"
        r"|Missing .{0,2}iommu=pt|P2P is disabled between (?:NVLINK )?connected GPUs|Could not enable P2P between"
        r"|(?:intel_iommu|amd_iommu|iommu)=(?:off|pt)\b.{0,40}(?:resolv|fix|work|solve|help)|IOMMU\b.{0,40}(?:enabled"
        r"|\bon)\b.{0,60}(?:hang|stuck|deadlock|slow)",
    ),
    Message(
        "nccl.setting",
        (
            "set by environment to",
            "nccl_ib_disable",
            "nccl_p2p_disable",
            "nccl_shm_disable",
            "nccl_nvls_enable",
            "nccl_algo",
            "nccl_proto",
        ),
        r"\b(?P<name>NCCL_[A-Z0-9_]+) set by environment to (?P<value>[^\s.]\S*?)\.?(?:\s|$)|\b(?P<name2>NCCL_(?:IB"
        r"|P2P|SHM)_DISABLE)\s*[=:]\s*\"?(?P<value2>\d)",
    ),
    # Shared memory between the ranks of a node
    Message(
        "nccl.shm_small",
        ("posix_fallocate", "nccl-shm", "/dev/shm/nccl", "shared memory segment"),
        r"posix_fallocate failed ?: No space left"
        r"|Error while creating shared memory segment(?:.*\(size (?P<size>\d+)\))?"
        r"|failed to extend /dev/shm/nccl\S*.*(?:to (?P<size2>\d+) bytes)?|/dev/shm/nccl\S*.*No space left",
    ),
    Message(
        "nccl.shm_apart",
        ("/dev/shm/nccl", "attaching to shared memory segment"),
        r"attaching to shared memory segment|(?:open|attach)\S* (?:failed|error)?.*/dev/shm/nccl\S*.*No such file",
    ),
    # Vendors' networks
    Message(
        "efa.unused",
        ("net/ofi", "libfabric", "fi_getinfo", "aws-ofi-nccl", "efa "),
        r"NET/OFI (?:Failed to initialize|No eligible providers|Unable to find a protocol|Couldn.t find any"
        r"|Only EFA provider is supported|Could not find any optimal provider)"
        r"|NET/OFI .*(?:initialization failed|fi_getinfo\S*.*(?:failed|No data available))"
        r"|fi_getinfo\W.*No data available|(?:no|unable to find) (?:EFA (?:device|provider|adapter)"
        r"|libfabric provider)"
        r"|NCCL WARN NET/OFI|provider efa output empty list|aws-ofi-nccl initialization failed",
    ),
    Message(
        "nccl.plugin_failed",
        ("nccl_net_plugin", "net plugin", "error: network "),
        r"Failed to initialize any NET plugin|Error: network \S+ not found|NCCL_NET_PLUGIN.*(?:not found|failed)",
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
    Message(
        "nccl.segfault",
        ("libnccl",),
        r"segfault at \w+.*\bin (?P<library>libnccl[\w.-]*)|(?:Segmentation fault|SIGSEGV).*libnccl",
    ),
    # Harmless
    Message("nccl.ras_bind", ("ras failed to establish",), r"RAS failed to establish a client listening socket"),
    Message(
        "tf.numa_node", ("negative value (-1)",), r"successful NUMA node read from SysFS had negative value \(-1\)"
    ),
    Message(
        "tf.factory",
        ("unable to register cudnn factory", "unable to register cufft factory", "unable to register cublas factory"),
        r"Unable to register cu(?:DNN|FFT|BLAS) factory",
    ),
    Message("ucx.no_peer_memory", ("unused env variable",), r"UCX\s+WARN\s+unused env variable"),
    Message(
        "nccl.works_without",
        (
            "nccl_p2p_disable",
            "nccl_shm_disable",
            "nccl_nvls_enable",
            "nccl_cumem",
            "nccl_mnnvl_enable",
            "nccl_net_gdr_level",
            "nccl_ib_disable",
        ),
        r"(?:works?|runs?|fine|ok|pass(?:es)?|help(?:s|ed)?|fix(?:es|ed)?|solve[sd]?|workaround|succeeds?|no longer"
        r"|hangs? (?:without|unless))\b.{0,80}\bNCCL_(?P<what>P2P_DISABLE|SHM_DISABLE|NVLS_ENABLE"
        r"|CUMEM(?:_HOST)?_ENABLE|MNNVL_ENABLE|NET_GDR_LEVEL|IB_DISABLE)\b|\bNCCL_(?P<what2>P2P_DISABLE|SHM_DISABLE"
        r"|NVLS_ENABLE|CUMEM(?:_HOST)?_ENABLE|MNNVL_ENABLE|NET_GDR_LEVEL|IB_DISABLE)\W{0,3}=\W?\w+\W.{0,60}(?:works?"
        r"|runs?|fine|\bok\b|pass(?:es)?|help(?:s|ed)?|fix(?:es|ed)?|solve[sd]?|workaround|succeeds?)",
    ),
    Message(
        "nccl.plain_error",
        (
            "unhandled system error",
            "ncclsystemerror",
            "unhandled cuda error",
            "ncclunhandledcudaerror",
            "ncclinternalerror",
            "nccl_error_system_error",
            "nccl_error_unhandled_cuda_error",
            "nccl_error_internal_error",
            "ncclinvalidusage",
        ),
        r"(?P<what>unhandled system error|ncclSystemError|NCCL_ERROR_SYSTEM_ERROR|unhandled cuda error"
        r"|ncclUnhandledCudaError|NCCL_ERROR_UNHANDLED_CUDA_ERROR|ncclInternalError|NCCL_ERROR_INTERNAL_ERROR"
        r"|ncclInvalidUsage)",
    ),
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
