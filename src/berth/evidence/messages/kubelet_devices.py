"""The kubelet about device lists that it cannot take, NUMA hints that fit nowhere, and claims that it keeps."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # gRPC takes 4 MiB; a plugin that counts memory in units sends thousands of devices.
    Message(
        "kubelet.list_too_large",
        "received message larger than max",
        r"^(?!.*pod resources).*?received message larger than max \((?P<size>\d+) vs\. (?P<most>\d+)\)"
        r"(?:[^\n]*?resource(?:Name)?=\"?(?P<resource>[\w./-]+))?",
    ),
    # The plugin itself ended the stream with an error of its own.
    Message(
        "kubelet.stream_plugin_error",
        "listandwatch ended unexpectedly",
        r"ListAndWatch ended unexpectedly(?!.*(?:\bEOF\b|transport is closing))[^\n]*code = "
        r"(?:Unknown|Internal|Aborted|FailedPrecondition|InvalidArgument|OutOfRange|NotFound|PermissionDenied)"
        r" desc = (?P<why>[^\"\n]*)(?:[^\n]*?resource(?:Name)?=\"?(?P<resource>[\w./-]+))?",
    ),
    # Its plugin's socket closed: an ordinary restart, unless no registration follows.
    Message(
        "kubelet.endpoint_gone",
        ("endpoint became unhealthy", "mark all resources unhealthy for resource"),
        r"(?:Endpoint became unhealthy|Mark all resources Unhealthy for resource)\b"
        r"(?:[^\n]*?resource(?:Name)?=\"?(?P<resource>[\w./-]+))?",
    ),
    # A device that fits on no NUMA node: a list of hints that is there and empty.
    Message(
        "kubelet.hints_empty",
        ("topologyhints", "has no possible numa affinit"),
        r"\"?TopologyHints\"? hints=\"?map\[(?:[^\]\n]*\] )?(?P<resource>[\w.-]+\.[a-z]{2,}/[\w.-]+):\[\]"
        r"|Hint Provider\b[^\n]*has no possible NUMA affinit\S+ for resource\W+(?:resource=\")?"
        r"(?P<resource2>[\w.-]+\.[a-z]{2,}/[\w.-]+)",
    ),
    Message(
        "kubelet.claim_kept",
        ("unprepare dynamic resources", "unpreparing pod resources"),
        r"unprepare dynamic resources: (?P<why>[^\n]+)|Unpreparing pod resources in reconcile loop failed"
        r"[^\n]*?err=\"(?P<why2>[^\n]+)",
    ),
    # In dumps of goroutines, profiles and accounts: each subset of the NUMA nodes is tried.
    Message(
        "kubelet.hints_many",
        ("generatedevicetopologyhints", "iteratebitmasks", "numa nodes"),
        r"\b(?:generateDeviceTopologyHints|IterateBitMasks)\b|\b[1-9]\d NUMA nodes\b[^\n]{0,200}?"
        r"\b(?:topology ?manager|hints)\b[^\n]{0,120}?\b(?:slow\w*|hangs?|never|minutes|times? out|stuck)\b",
    ),
)
