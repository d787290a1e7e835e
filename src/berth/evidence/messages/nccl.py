"""NCCL, and the frameworks that wait for it. Lines with numbers that rules compare are read by formats/nccl_log.py;
here are the sentences that mean something alone. How ranks find each other is in ranks.py."""

from berth.evidence.message import Message

_TEST = r"(?:reduce|gather|scatter|recv|broadcast|alltoall)_(?:perf|test)"
_HANGS = r"(?:hangs?|hung|hanging|stuck|freez\w+|frozen|never (?:ends|returns|finishes)|blocks? forever|dead ?locks?)"

MESSAGES: tuple[Message, ...] = (
    # Told of a test within one machine; of several machines it is mostly the network.
    Message(
        "nccl.test_hangs_told",
        (
            "_perf",
            "reduce_test",
            "gather_test",
            "scatter_test",
            "broadcast_test",
            "recv_test",
            "alltoall_test",
            "nccl-test",
            "nccl tests",
            "nccl test",
            "p2pbandwi",
            "simplep2p",
            "reduce_perf",
            "alltoall_perf",
        ),
        r"^(?!.*\b(?:nodes|multi-?node|two machines|hostfile|InfiniBand|RoCE|EFA|between (?:hosts|machines))\b)"
        rf".*?(?:(?:{_TEST}|nccl[- ]tests?|p2pBandwi\w{{1,3}}LatencyTest_?|simpleP2P)\b[^\n]{{0,80}}\b{_HANGS}\b"
        rf"|\b{_HANGS}\b[^\n]{{0,40}}(?:{_TEST}|nccl[- ]tests?|p2pBandwi\w{{1,3}}LatencyTest|simpleP2P)\b)",
    ),
    # A run that began, and what it could do.
    Message("nccl.begun", ("init complete", "dma-buf is available on"), r"\bInit COMPLETE"
    r"|DMA-BUF is available on GPU"),
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
            "invalid nccl_comm_id",
            "no algorithm/protocol available",
        ),
        r"\b(?P<call>[A-Z]\w+) : invalid root (?:-?\d+) \(root should be|(?P<call2>[A-Z]\w+) : invalid (?:type"
        r"|reduction operation) -?\d+|(?P<call3>[A-Z]\w+) : \w+ allocated on device \d+ mismatche?s with NCCL device"
        r"|(?P<call4>[A-Z]\w+) : (?:send|recv)buff is not a valid pointer|\w+ : comm argument is NULL"
        r"|NCCL_ERROR_INVALID_ARGUMENT|NCCL (?:error|WARN)\b.{0,80}invalid argument \(run with|\bncclInvalidArgument\b"
        r"|Invalid NCCL_COMM_ID|no algorithm/protocol available for function (?P<call5>\w+)"
        r"|Invalid rank requested : \d+/\d+|corrupted comm object",
    ),
    # Versions, devices
    Message(
        "nccl.version_mismatch",
        ("nccl version ", "nccl 2.", "versions of nccl", "version of nccl", "nccl mismatch", "mismatched nccl version"),
        r"Mismatched NCCL version detected(?: ?: rank (?P<rank>\d+) version (?P<version>\S+) rank (?P<rank2>\d+) "
        r"version (?P<version2>\S+))?|NCCL (?:version )?mismatch|different versions? of NCCL"
        r"|\bNCCL 2\.\d[\d.]*\b[^\n]{0,40}\bothers?\b[^\n]{0,20}\b2\.\d"
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
        ("nvlink sharp", "nvls", "multicast", "cannot be performed in the present state"),
        r"\bnvls\.cc:\d+ (?:\(\w+\) )?NCCL WARN (?:Cuda|NVLS|CUDA)\b[^\n]*(?:fail|error)|"
        r"NCCL WARN Cuda failure (?:401 )?'the operation cannot be performed in the present state'|"
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
            "cumemsetaccess",
            "cumemimportfromshareablehandle",
            "fabric handle",
            "nvl domain",
        ),
        r"MNNVL.*(?:available but not working|fail|error|unable)|NCCL WARN Cuda failure 101\b"
        r"|(?:CUDA_ERROR|invalid argument)\w*\W[^\n]{0,80}\bcuMemSetAccess\b"
        r"|\bcuMemSetAccess\b\W[^\n]{0,60}(?:fail|CUDA_ERROR|invalid|not supported|not permitted)"
        r"|cuMemImportFromShareableHandle\W.*(?:fail|error|101|invalid|800|not permitted)|(?:import"
        r"|export)\S* (?:of )?fabric handle\S* fail"
        r"|Cuda failure (?:400 )?'invalid resource handle'"
        r"|invalid (?:resource handle|argument|device ordinal)\b[^\n]{0,60}\bcuMemImportFromShareableHandle",
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
        r"CUDA_ERROR_NOT_PERMITTED|cudaErrorNotPermitted|Cuda failure 800"
        r"|CUDA error:? (?:800|operation not permitted(?! when| on an event))"
        r"|Cuda failure (?:800 )?'operation not permitted'"
        # Who calls the driver by itself prints the name of the call and the driver's words.
        r"|\bcuMem(?:Create|ExportToShareableHandle|ImportFromShareableHandle|RetainAllocationHandle)\b[^\n]{0,80}"
        r"operation not permitted|operation not permitted[^\n]{0,60}\bcuMem(?:Create|ExportTo|ImportFrom)",
    ),
    Message(
        "host.imex_channel_absent",
        ("imex",),
        r"nvidia-caps-imex-channels\S*\W+(?:No such file|missing|does not exist|not found|(?:is )?empty|not there)"
        r"|no IMEX channel|IMEX channel\S* (?:is |are )?(?:missing|not (?:found|present|created))"
        r"|\b(?:no|without|missing|lacks?) (?:the )?/dev/nvidia-caps-imex",
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
            "cuda ipc handle",
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
        r"|\bACS (?:is enabled|enabled|was enabled|is still enabled|still enabled|on (?:the|all|PCI|root|a)\b"
        r"|redirect)"
        r"|Verification error @ element|DMAR:.*fault.*(?:addr|reason)|P2P is not working"
        r"|Missing .{0,2}iommu=pt|P2P is disabled between (?:NVLINK )?connected GPUs|Could not enable P2P between"
        r"|failed to open CUDA IPC handle"
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
        "nccl.shm_denied",
        ("shm_open", "/dev/shm"),
        r"Permission denied: '/dev/shm|shm_open\b[^\n]{0,80}(?:Permission denied|EACCES)"
        r"|/dev/shm\S*\W[^\n]{0,40}Permission denied"
        r"|(?:cannot|could not|unable to|failed to) (?:write|open|create"
        r"|access)\b[^\n]{0,60}/dev/shm[^\n]{0,60}denied",
    ),
    Message(
        "nccl.peer_mappings",
        (
            "peer mapping resources",
            "too_many_peers",
            "toomanypeers",
            "too many peers",
            "cuda failure 711",
            "to enable peer access have been",
        ),
        r"peer mapping resources exhausted|CUDA_ERROR_TOO_MANY_PEERS|cudaErrorTooManyPeers|Cuda failure 711"
        r"|hardware resources required to enable peer access have been exhausted|\btoo many peers\b",
    ),
    Message(
        "nccl.shm_apart",
        ("/dev/shm", "attaching to shared memory segment"),
        r"attaching to shared memory segment|(?:open|attach)\S* (?:failed|error)?.*/dev/shm/nccl\S*.*No such file"
        r"|/dev/shm\b.{0,30}\bnot shared|separate /dev/shm",
    ),
    # What NCCL makes of the machine: its own look at it, or the files that it was given in place of that.
    Message(
        "nccl.topology_file",
        (
            "xml import channel",
            "of node cpu not found",
            "of node gpu not found",
            "of node nic not found",
            "of node pci not found",
            "of node net not found",
            "nccl_graph_file",
            "nccl_topo_file",
        ),
        r"XML Import Channel ?: \w+ -?\w+ not found|Attribute \w+ of node (?:cpu|gpu|nic|pci|net) not found"
        r"|NCCL_(?:GRAPH|TOPO)_FILE\b.{0,80}\b(?:not found|No such file|cause[sd]?|wrong|unset|malformed)",
    ),
    Message(
        "nccl.topology_unknown",
        (
            "find reverse path from",
            "find cpu close to gpu",
            "could not find gpu in topology",
            "could not find gpu with rank",
            "find net with id",
        ),
        r"Failed to find reverse path from|could not find CPU close to GPU"
        r"|Could not find GPU (?:in topology )?with rank"
        r"|Could not find NET with id",
    ),
    Message(
        "nccl.plugin_failed",
        (
            "nccl_net_plugin",
            "net plugin",
            "error: network ",
            "net/plugin: could not find: ",
            "net/fastrak",
            "net/gpudirecttcpx",
            "net/tcpx",
            "net/gib",
            "net/ucx",
            "net/hostnic",
        ),
        r"Failed to initialize any NET plugin|Error: network \S+ not found|NCCL_NET_PLUGIN.*(?:not found|failed)"
        # A plugin that was named, and is not there; the one without a name is looked for everywhere.
        r"|NET/Plugin: Could not find: (?!libnccl-net\.so)[\w-]+ .*libnccl-net"
        r"|NET/(?:FasTrak|GPUDirectTCPX|TCPX|gIB|UCX|hostnic)\w*\b.*(?:fail|error|not running|unable)",
    ),
    Message(
        "nccl.segfault",
        ("libnccl",),
        r"segfault at \w+.*\bin (?P<library>libnccl[\w.-]*)|(?:Segmentation fault|SIGSEGV).*libnccl",
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
            "invalid usage",
        ),
        r"(?P<what>unhandled system error|ncclSystemError|NCCL_ERROR_SYSTEM_ERROR|unhandled cuda error"
        r"|ncclUnhandledCudaError|NCCL_ERROR_UNHANDLED_CUDA_ERROR|ncclInternalError|NCCL_ERROR_INTERNAL_ERROR"
        r"|ncclInvalidUsage|NCCL error\b.{0,140}?invalid usage)",
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
