"""NCCL, and the frameworks that wait for it. Lines with numbers that rules compare are read
by formats/nccl_log.py; here are the sentences that mean something alone."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
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
            "no usable listening interface",
            "socket creation failed",
            "address family not supported",
        ),
        r"no usable listening interface|NET/Socket ?:? ?no interface found"
        r"|(?:Socket creation failed|Call to socket failed|ncclSocket\w*|NET/Socket|bootstrap|gloo|NCCL WARN)\b.{0,80}"
        r"(?P<family>Address family not supported by protocol)"
        r"|no socket interface found|no usable interface|Unable to find (?:address for|interface):? ?(?P<interface>\w+)"
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
        r"(?P<why>Connection timed out|Connection refused|No route to host|Network is unreachable"
        r"|Software caused connection abort)"
        r"|(?:ncclSocket|socketStartConnect|socketPollConnect|socketFinalizeConnect|socketProgress"
        r"|socketConnect)\w*\W(?:.{0,40}?connect to (?P<peer2>[^\s<]+))?.*"
        r"(?P<why2>Connection timed out|Connection refused|No route to host|Network is unreachable"
        r"|Software caused connection abort|Cannot assign requested address)"
        r"|(?:socketStartConnect|NCCL)\b(?:.{0,40}?connect to (?P<peer3>[^\s<]+))?.{0,80}exceeded (?:error )?retr"
        r"|NCCL WARN (?:.{0,40}?connect to (?P<peer4>[^\s<]+))?.{0,80}(?P<why3>Connection refused"
        r"|No route to host|Network is unreachable|Connection timed out)",
    ),
    Message(
        "nccl.peer_closed",
        (
            "could not receive type from localrank",
            "failed to execute operation",
            "connection closed by remote peer",
            "ncclremoteerror",
            "connection reset by peer",
            "remote process exited",
            "has missed too many heartbeats",
        ),
        r"Connection closed by remote peer (?P<peer>[\w.:-]+)?|ncclRemoteError|NCCL.*Connection reset by peer"
        r"|node with node id\b.{0,160}\bmarked dead because the detector has missed too many heartbeats"
        r"|remote process exited or there was a network error"
        r"|Could not receive type from localRank|Failed to execute operation \w+ from rank",
    ),
    Message(
        "nccl.bootstrap_mismatch",
        ("has already checked in", "mismatch in info from procs", "bootstrap root"),
        r"has already checked in|mismatch in info from procs",
    ),
    Message(
        "dist.rendezvous",
        (
            "host not found: name or service",
            "recvvalue failed",
            "tcpstore",
            "getaddrinfo failed",
            "address already in use",
            "eaddrinuse",
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
            "diststore",
            "name or service not known",
            "temporary failure in name resolution",
            "gethostbyname",
            "address family for hostname",
            "nccl communicator and retr",
        ),
        r"client socket has (?:failed to connect to|timed out after)\D*\[?(?P<host>[\w.-]+)?"
        r"|Timed out after \d+ seconds waiting for clients|(?:RendezvousConnectionError|RendezvousTimeoutError"
        r"|DistStoreError|DistNetworkError)"
        r"|(?:MASTER_ADDR|c10d|rendezvous|TCPStore|hostname)\S*.*(?:Name or service not known"
        r"|Temporary failure in name resolution|EADDRINUSE)"
        r"|IPv[46] network addresses of \(?(?P<host2>[\w.-]+).* cannot be retrieved"
        r"|connectFullMesh failed|RendezvousClosedError|failed to send a keep-alive heartbeat|Gloo.{0,40}(?:timed out"
        r"|Connection (?:refused|reset|closed))"
        r"|getaddrinfo failed|(?:MASTER_PORT|c10d|NCCL|rendezvous|TCPStore)\b.{0,80}(?:Address already in use"
        r"|EADDRINUSE)|(?:Address already in use|EADDRINUSE)\b.{0,80}(?:MASTER_PORT|c10d|NCCL|29500|TCPStore)"
        r"|setting up NCCL communicator and retr\w+ ncclUniqueId\b.{0,160}?got error"
        r"|host not found: Name or service not known|recvValue failed|TCPStore\b.{0,120}(?:got 0 bytes"
        r"|Connection (?:refused|reset|timed out))",
    ),
    Message(
        "mpi.launcher",
        (
            "orte was ",
            "orte does ",
            "orte has ",
            "an orte daemon",
            "prte was ",
            "prte does ",
            "prte has ",
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
            "ras mismatch",
            "ras: mismatch",
            "ras incomplete",
            "ras: incomplete",
            "ras dead",
            "ras: dead",
            "launched up to operation",
            "caused the desync",
            "didn't join collective",
            "ncclcommwatchdog",
            "heartbeat monitor",
            "shared memory broadcast block",
            "failure detected by watchdog",
            "nccl communicator was aborted",
            "nccl watchdog",
            "processgroupnccl's watchdog",
            "collective operation timeout",
        ),
        r"Watchdog caught collective operation timeout(?:: WorkNCCL\(SeqNum=(?P<sequence>\d+), "
        r"OpType=(?P<operation>\w+))?"
        r"|NCCL communicator was aborted on rank"
        r"|failure detected by watchdog|NCCL watchdog (?:thread )?(?:time|got stuck|hang)"
        r"|ProcessGroupNCCL's watchdog got stuck|collective operation timeout"
        r"|No available shared memory broadcast block found"
        r"|have launched up to operation|caused the desync|didn't join collective|ncclCommWatchdog"
        r"|heartbeat monitor (?:timed? ?out|thread)"
        r"|\bRAS:? (?:MISMATCH|INCOMPLETE|DEAD)\b",
    ),
    # The interfaces that data may go over, in the order of their use.
    Message(
        "nccl.sockets_used",
        ("net/socket : using", "net/socket: using", "net/socket : [0]", "net/socket: [0]"),
        r"NET/Socket ?: (?:Using )?(?P<interfaces>\[0\]\S.*)",
    ),
    # What the ranks call
    Message(
        "nccl.mismatched_calls",
        (
            "mismatched collective",
            "detected mismatch between collectives",
            "differ in the following aspects",
            "collective mismatch error",
            "message truncated : receiving",
            "message truncated: receiving",
        ),
        r"Mismatched collective detected|Detected mismatch between collectives on ranks"
        r"|Collectives? differ in the following aspects|NET/\w+\b.{0,80}collective mismatch error"
        r"|Message truncated ?: receiving (?P<got>\w+) bytes instead of (?P<wanted>\w+)",
    ),
    # What ranks send each other before they begin has one length within one version.
    Message(
        "nccl.bootstrap_truncated",
        ("message truncated : received", "message truncated: received"),
        r"Message truncated ?: received (?P<got>\w+) bytes instead of (?P<wanted>\w+)",
    ),
    Message(
        "nccl.bad_argument",
        (
            " : invalid root ",
            "invalid argument (run with",
            "invalid reduction operation",
            " mismatchs with nccl device",
            " mismatches with nccl device",
            "buff is not a valid pointer",
            "comm argument is null",
            "ncclinvalidargument",
            "nccl_error_invalid_argument",
            ": invalid type ",
            "invalid rank requested",
            "communicator was aborted",
            "corrupted comm object",
            "invalid communicator",
        ),
        r"\b(?P<call>[A-Z]\w+) : invalid root (?:-?\d+) \(root should be|(?P<call2>[A-Z]\w+) : invalid (?:type"
        r"|reduction operation) -?\d+|(?P<call3>[A-Z]\w+) : \w+ allocated on device \d+ mismatche?s with NCCL device"
        r"|(?P<call4>[A-Z]\w+) : (?:send|recv)buff is not a valid pointer|\w+ : comm argument is NULL"
        r"|NCCL_ERROR_INVALID_ARGUMENT|NCCL (?:error|WARN)\b.{0,80}invalid argument \(run with|\bncclInvalidArgument\b"
        r"|Invalid rank requested : \d+/\d+|corrupted comm object",
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
        r"\bnvls\.cc:\d+ (?:\(\w+\) )?NCCL WARN (?:Cuda|NVLS|CUDA)\b[^\n]*(?:fail|error)|"
        r"Failed to bind NVLink SHARP|(?:NVLS|multicast)\S*.*(?:bind|create|alloc\w*|setup)\S* (?:of \S+ )?fail\w*"
        r"|(?:failed|unable) to (?:bind|create|allocate|set up) (?:NVLink SHARP|NVLS|multicast)\w*"
        r"|cuMulticast(?:Bind\w*|Create|AddDevice)\W.*(?:fail|error|\d{3})",
    ),
    Message(
        "nccl.mnnvl",
        (
            "cuda failure 'invalid resource handle'",
            "cuda failure 400",
            "mnnvl",
            "cuda failure 101",
            "cumemimportfromshareablehandle",
            "fabric handle",
            "nvl domain",
        ),
        r"MNNVL.*(?:available but not working|fail|error|unable)|NCCL WARN Cuda failure 101\b"
        r"|cuMemImportFromShareableHandle\W.*(?:fail|error|101|invalid|800|not permitted)|(?:import"
        r"|export)\S* (?:of )?fabric handle\S* fail"
        r"|Cuda failure (?:400 )?'invalid resource handle'",
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
        r"|Cuda failure (?:800 )?'operation not permitted'"
        # Who calls the driver by itself prints the name of the call and the driver's words.
        r"|\bcuMem(?:Create|ExportToShareableHandle|ImportFromShareableHandle|RetainAllocationHandle)\b[^\n]{0,80}"
        r"operation not permitted|operation not permitted[^\n]{0,60}\bcuMem(?:Create|ExportTo|ImportFrom)",
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
            "first collective",
            "first allreduce",
            "first all_reduce",
            "simple collective",
            "simple allreduce",
            "simple all_reduce",
            "via shm",
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
            "all_reduce_perf",
            "nccl-tests",
            "nccl tests",
        ),
        r"peer access is not supported between|PEER_ACCESS_UNSUPPORTED|cudaErrorPeerAccessUnsupported"
        r"|ACSCtl:\s+SrcValid\+(?!.*ReqRedir-)|(?:nvidia|AMD-Vi|device).{0,200}IO_PAGE_FAULT"
        r"|IO_PAGE_FAULT.{0,200}(?:nvidia|device)"
        r"|\bACS (?:is enabled|enabled|was enabled|is still enabled|still enabled|on (?:the|all|PCI|root|a)\b|redirect)"
        r"|Verification error @ element|DMAR:.*fault.*(?:addr|reason)|P2P is not working"
        r"|Missing .{0,2}iommu=pt|P2P is disabled between (?:NVLINK )?connected GPUs|Could not enable P2P between"
        r"|(?:intel_iommu|amd_iommu|iommu)=(?:off|pt)\b.{0,40}(?:resolv|fix|work|solve|help)|IOMMU\b.{0,40}(?:enabled"
        r"|\bon)\b.{0,60}(?:hang|stuck|deadlock|slow)"
        r"|(?:first|simple) (?:collective|all_?reduce)\b.{0,20}\bhang|hang\w* (?:at|in|on"
        r"|during) (?:the )?first (?:collective|all_?reduce)|via SHM\b.{0,40}\b(?:instead of|rather than|not) P2P"
        # Told of a machine whose root complexes translate peer traffic.
        r"|^(?=.*\b(?:EPYC|Threadripper)\b)(?=.*\b(?:hangs?|hung|stuck|deadlocks?|never (?:prints|ends|returns"
        r"|finish\w*))\b).*\b(?:all_reduce_perf|nccl-tests|nccl tests)\b",
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
        ("/dev/shm", "attaching to shared memory segment"),
        r"attaching to shared memory segment|(?:open|attach)\S* (?:failed|error)?.*/dev/shm/nccl\S*.*No such file"
        r"|/dev/shm\b.{0,30}\bnot shared|separate /dev/shm",
    ),
    Message(
        "nccl.plugin_failed",
        ("nccl_net_plugin", "net plugin", "error: network "),
        r"Failed to initialize any NET plugin|Error: network \S+ not found|NCCL_NET_PLUGIN.*(?:not found|failed)",
    ),
    Message(
        "nccl.segfault",
        ("libnccl",),
        r"segfault at \w+.*\bin (?P<library>libnccl[\w.-]*)|(?:Segmentation fault|SIGSEGV).*libnccl",
    ),
    # Harmless
    Message(
        "dist.no_ipv6",
        ("socket cannot be initialized",),
        r"c10d\b.{0,20}The (?:server|client) socket cannot be initialized.{0,60}errno: 97",
    ),
    # PyTorch, 2.1 to 2.9, where init_process_group was given no device.
    Message(
        "dist.device_guessed",
        (
            "used by this process is currently unknown",
            "used by this process are currently unknown",
            "guessing device id based on global rank",
            "using the device under current context",
            "no device id is provided via",
        ),
        r"using GPU \d+ (?:to perform barrier )?as devices? (?:used by this process is currently unknown"
        r"|used by this process are currently unknown)"
        r"|Guessing device ID based on global rank"
        r"|barrier\(\): using the device under current context|No device id is provided via `init_process_group`",
    ),
    Message("nccl.ras_bind", ("ras failed to establish",), r"RAS failed to establish a client listening socket"),
    Message(
        "tf.numa_node", ("negative value (-1)",), r"successful NUMA node read from SysFS had negative value \(-1\)"
    ),
    Message(
        "tf.factory",
        ("unable to register cudnn factory", "unable to register cufft factory", "unable to register cublas factory"),
        r"Unable to register cu(?:DNN|FFT|BLAS) factory",
    ),
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
        "nccl.uneven_nics",
        ("mixed local net device counts",),
        r"Detected mixed local Net device counts across ranks",
    ),
    Message(
        "dist.desync",
        ("didn't join collective",),
        r"\[(?P<rank>\d+)\] finished collective #(?P<done>\d+), but didn't join collective #(?P<missed>\d+)",
    ),
    Message(
        "nccl.mixed_networks",
        (
            "using network socket",
            "using network ib",
            "mixed networks",
        ),
        r"Using network Socket\b.{0,80}Using network IB|Using network IB\b.{0,80}Using network Socket"
        r"|\bmixed networks\b",
    ),
)
