"""How the ranks of a job find and reach each other: NCCL's bootstrap, stores of frameworks, launchers."""

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
            "no interface found in the same subnet",
            "socket creation failed",
            "address family not supported",
        ),
        r"no usable listening interface|No interface found in the same subnet|NET/Socket ?:? ?no interface found"
        r"|(?:Socket creation failed|Call to socket failed|ncclSocket\w*|NET/Socket|bootstrap|gloo|NCCL WARN)\b.{0,80}"
        r"(?P<family>Address family not supported by protocol)"
        r"|no socket interface found|no usable interface|Unable to find (?:address for"
        r"|interface):? ?(?P<interface>\w+)"
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
            "mscclpp",
        ),
        r"\bconnect (?:to (?P<peer>\S+?)(?:<\d+>)? )?(?:returned|failed)\b.*?"
        r"(?P<why>Connection timed out|Connection refused|No route to host|Network is unreachable"
        r"|Software caused connection abort)"
        r"|(?:ncclSocket|socketStartConnect|socketPollConnect|socketFinalizeConnect|socketProgress"
        r"|socketConnect)\w*\W(?:.{0,40}?connect to (?P<peer2>[^\s<]+))?.*"
        r"(?P<why2>Connection timed out|Connection refused|No route to host|Network is unreachable"
        r"|Software caused connection abort|Cannot assign requested address)"
        r"|(?:socketStartConnect|NCCL)\b(?:.{0,40}?connect to (?P<peer3>[^\s<]+))?.{0,80}exceeded (?:error )?retr"
        r"|socketPollConnect\b.{0,20}poll\(\) timed out|mscclpp\b.{0,80}(?:Connect timed out|Connection refused"
        r"|No route to host)"
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
            "remote worker has failed",
            "has missed too many heartbeats",
        ),
        r"Connection closed by remote peer (?P<peer>[\w.:-]+)?|ncclRemoteError|NCCL.*Connection reset by peer"
        r"|node with node id\b.{0,160}\bmarked dead because the detector has missed too many heartbeats"
        r"|remote process exited or there was a network error|may indicate that the remote worker has failed"
        r"|Could not receive type from localRank|Failed to execute operation \w+ from rank",
    ),
    Message(
        "nccl.bootstrap_mismatch",
        (
            "has already checked in",
            "mismatch in info from procs",
            "mismatch in rank count from procs",
            "socketfinalizeaccept",
            "socketfinalizeconnect",
        ),
        # Of another job, or of whoever looks at open ports: what connects does not speak as a rank of this job.
        r"has already checked in|mismatch in (?:info|rank count) from procs"
        r"|socketFinalize(?:Accept|Connect)\W.{0,60}wrong (?:type|magic)",
    ),
    Message(
        "dist.rendezvous",
        (
            "host not found: name or service",
            "init_process_group",
            "pmixp_",
            "pmix error",
            "store based barrier",
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
            "keys: /",
            "connect to gcs",
            "connect to ray gcs",
            "initialize clique",
            "acquire clique",
            "pjrt_client_connect",
            "coordination service",
            "coordination_service",
        ),
        r"client socket has (?:failed to connect to|timed out after)\D*\[?(?P<host>[\w.-]+)?"
        r"|Timed out after \d+ seconds waiting for clients|(?:RendezvousConnectionError|RendezvousTimeoutError"
        r"|DistStoreError|DistNetworkError)"
        r"|(?:MASTER_ADDR|c10d|rendezvous|TCPStore|(?<!resolve )hostname)\S*.*(?:Name or service not known"
        r"|Temporary failure in name resolution|EADDRINUSE)"
        r"|IPv[46] network addresses of \(?(?P<host2>[\w.-]+).* cannot be retrieved"
        r"|connectFullMesh failed|RendezvousClosedError|failed to send a keep-alive heartbeat|Gloo.{0,40}(?:timed out"
        r"|Connection (?:refused|reset|closed))"
        r"|getaddrinfo failed|(?:MASTER_PORT|c10d|NCCL|rendezvous|TCPStore)\b.{0,80}(?:Address already in use"
        r"|EADDRINUSE)|(?:Address already in use|EADDRINUSE)\b.{0,80}(?:MASTER_PORT|c10d|NCCL|29500|TCPStore)"
        r"|setting up NCCL communicator and retr\w+ ncclUniqueId\b.{0,160}?got error"
        r"|(?:failed to|could not|cannot|unable to) connect to (?:Ray )?GCS\b|third_party/gloo/\S*.{0,20}(?:Read"
        r"|Write|connect|accept) (?:error|timeout)"
        r"|pmixp_\w+\b.{0,120}(?:collective timeout|(?:failed to|cannot) connect)|PMIX ERROR: (?:UNREACHABLE|TIMEOUT)"
        r"|gloo (?:mesh )?connection failed|init_process_group[\s\S]{0,80}?RuntimeError: Connection (?:timed out"
        r"|refused|reset)|Timed out initializing process group in store based barrier"
        r"|host not found: Name or service not known|recvValue failed|TCPStore\b.{0,120}(?:got 0 bytes"
        r"|Connection (?:refused|reset|timed out))"
        # XLA: the ranks of a communicator, and those who report to the coordinator.
        r"|waiting for \W?(?:initialize|acquire) clique\b|Barrier timed out\b[\s\S]{0,60}PjRT_Client_Connect"
        r"|[Cc]oordination(?:_s| S| s)ervice\b.{0,120}(?:UNAVAILABLE|DEADLINE_EXCEEDED|failed to connect|unreachable)",
        lines=3,
    ),
    Message(
        "mpi.launcher",
        (
            "orte was ",
            "orte does ",
            "orte has ",
            "orte_init failed",
            "ompi_mpi_init",
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
        r"|There are not enough slots available|orte_init failed|ompi_mpi_init\w*: .{0,40}\bfailed"
        r"|ssh: (?:Could not resolve hostname (?P<host>[\w.-]+)|connect to host (?P<host2>[\w.-]+) port \d+: \w[\w ]+)"
        r"|An ORTE daemon has unexpectedly failed"
        r"|mpirun (?:was unable to|has detected an attempt to run as root)|plm:rsh\S*.*(?:fail|not found)",
    ),
    # Open MPI, once its processes run.
    Message(
        "mpi.unreachable",
        ("complete a tcp connection to another process", "failed to tcp connect to a peer mpi process"),
        r"unable to complete a TCP connection to another process|failed to TCP connect to a peer MPI process",
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
            "monitoredbarrier",
            "to join the rendezvous",
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
        r"|\bRAS:? (?:MISMATCH|INCOMPLETE|DEAD)\b|failed to pass monitoredBarrier"
        r"|threads to join the rendezvous, but not all of them arrived",
    ),
    # The interfaces that data may go over, in the order of their use.
    Message(
        "nccl.sockets_used",
        ("net/socket : using", "net/socket: using", "net/socket : [0]", "net/socket: [0]"),
        r"NET/Socket ?: (?:Using )?(?P<interfaces>\[0\]\S.*)",
    ),
    # Up to NCCL 2.3 each interface has a line of its own.
    Message(
        "nccl.socket_listed",
        " : using interface ",
        r"(?P<host>[\w.-]+):\d+:\d+ \[\d+\] NCCL INFO NET(?:/\w+)? : Using interface "
        r"(?P<interface>[\w.@-]+):(?P<address>[^<\s]+)",
    ),
    # Told in a few words, as in the title of a report.
    Message(
        "nccl.unreachable_told",
        ("connection refused", "is unreachable", "network unreachable", "no route to host", "connection timed out"),
        r"\bNCCL (?:\w+ ){0,2}?(?:connect(?:ion)?(?: timeout| error| failed)?\W{1,3}|network error\W{1,3}"
        r"|socket\W{1,3}"
        r"|socket error\W{1,3})(?P<why>connection refused|no route to host|connection timed out)"
        r"|\bNCCL (?P<why2>network is unreachable|network unreachable)",
    ),
    # A launcher gives each process its number; a script that is started by hand has none.
    Message(
        "dist.launch_incomplete",
        (
            "expected, but not set",
            "keyerror: 'rank'",
            "keyerror: 'local_rank'",
            "keyerror: 'world_size'",
            "keyerror: 'master_",
        ),
        r"environment variable (?P<name>RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|LOCAL_RANK) expected, but not set"
        r"|KeyError: '(?P<name2>RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)'",
    ),
)
