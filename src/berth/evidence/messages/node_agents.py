"""Agents that judge nodes: EKS node monitoring, AKS and other problem detectors, NVSentinel and its store."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # Reasons of a condition or an event, as EKS's agent names them (eks-node-monitoring-agent, node health issues).
    Message(
        "agents.verdict",
        (
            "dcgmdiagnosticfailure",
            "dcgmerror",
            "fabricmanagernotrunning",
            "nvidiafabricerror",
            "nvidianvlinkerror",
            "nvidiadevicecountmismatch",
            "nvidiapcieerror",
            "nvidiapageretirement",
            "nvidiathermalerror",
            "nvidiapowererror",
            "nvidiadoublebiterror",
            "gpudcgmconnectivityfailure",
            "isnothealthy",
        ),
        r"\b(?P<reason>DCGMDiagnosticFailure|DCGMError|FabricManagerNotRunning|NvidiaFabricError|NvidiaNVLinkError"
        r"|NvidiaDeviceCountMismatch|NvidiaPCIeError|NvidiaPageRetirement|NvidiaThermalError|NvidiaPowerError"
        r"|NvidiaDoubleBitError|Gpu(?:Mem|Pcie|Nvlink|Inforom|Thermal|Power|DcgmConnectivity)\w*?IsNotHealthy)\b"
        r"|\b(?P<reason2>GpuDcgmConnectivityFailure)\W+True\b",
    ),
    # Conditions of a problem detector, which are true where something is wrong.
    Message(
        "agents.condition",
        ("gpumissing", "nvlinkstatusinactive", "xiderrors", "unhealthynvidiadeviceplugin", "unhealthynvidiadcgm"),
        r"\b(?P<reason>GPUMissing|NVLinkStatusInactive|XIDErrors|UnhealthyNvidiaDevicePlugin"
        r"|UnhealthyNvidiaDCGMServices)\s+True\b",
    ),
    # A store of events whose stream was interrupted for longer than it keeps its log.
    Message(
        "agents.stream_lost",
        ("changestreamfatalerror", "changestreamhistorylost", "resume token was not found", "resume of change stream"),
        r"ChangeStream(?:FatalError|HistoryLost)|resume token was not found|Resume of change stream was not possible",
    ),
    # A guard against too many cordons at once: it stops all that come after.
    Message(
        "agents.breaker",
        "circuit breaker",
        r"[Cc]ircuit breaker\b[^\n]{0,60}\b(?:TRIPPED|[Tt]ripped)\b",
    ),
    Message(
        "agents.store_unreached",
        ("nvsentinel", "platform connector", "platform-connector"),
        r"server selection error: [^\n]*nvsentinel|[Ff]ailed to (?:connect|send)\b[^\n]{0,60}platform[- ]connector"
        r"|platform[- ]connector\b[^\n]{0,80}(?:connection refused|no such file|deadline exceeded)"
        r"|nvsentinel\.sock\W[^\n]{0,60}(?:no such file|connection refused)",
    ),
    # A daemon under the limit of a login shell: a server with many clients needs more.
    Message("host.open_files_small", "ulimit -n", r"ulimit -n\W{1,4}(?P<limit>1024|4096)\b"),
    Message(
        "host.open_files_spent",
        "too many open files",
        r"(?:mongod?\b|mongodb|nvsentinel|dcgm-exporter|nv-hostengine|prometheus|nfd-master|gpu-operator)"
        r"[^\n]{0,200}[Tt]oo many open files",
    ),
    # How a crash of such a daemon is told.
    Message(
        "agents.daemon_crashes",
        ("crashloopbackoff",),
        r"\b(?:mongodb|postgres\w*|nvsentinel|prometheus|dcgm|etcd)\S*\W[^\n]*CrashLoopBackOff",
    ),
)
