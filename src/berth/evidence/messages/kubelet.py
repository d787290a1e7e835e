"""The kubelet: its device manager, admission, checkpoints, plugin watcher."""

from berth.evidence.message import Message

_RESOURCE = r"(?P<resource>[\w.-]+(?:\.[a-z]{2,}/[\w.-]+)?)"

MESSAGES: tuple[Message, ...] = (
    # Admission of pods that ask for devices.
    Message(
        "kubelet.no_healthy_devices",
        ("no healthy devices present", "cannot allocate unhealthy devices"),
        rf"no healthy devices present; cannot allocate unhealthy devices {_RESOURCE}|no healthy devices present|"
        rf"cannot allocate unhealthy devices(?: {_RESOURCE.replace('P<resource>', 'P<resource2>')})?",
    ),
    Message(
        "kubelet.unregistered",
        ("allocate unregistered device", "unknown device plugin"),
        rf"can(?:no|')t allocate unregistered device {_RESOURCE}|[Uu]nknown Device Plugin {_RESOURCE}".replace(
            "Plugin (?P<resource>", "Plugin (?P<plugin>"
        ),
    ),
    Message(
        "kubelet.no_longer_healthy",
        "previously allocated devices are no longer healthy",
        rf"previously allocated devices are no longer healthy(?:; cannot allocate unhealthy devices {_RESOURCE})?",
    ),
    Message(
        "kubelet.devices_unavailable",
        ("requested number of devices unavailable", "requested number of gpus unavailable", ", available: "),
        rf"requested number of (?:devices unavailable for {_RESOURCE}|GPUs unavailable)[.;,] *"
        r"Requested: ?(?P<requested>\d+), *Available: ?(?P<available>\d+)|"
        r"requested number of (?:devices|GPUs) unavailable(?! for \S+?[.;,] *Requested)(?![.;,] *Requested)|"
        r"\b(?:GPUs?|devices?|nvidia\.com/\S+)\b(?<!resource: GPUs).{0,40}?\bRequested: ?(?P<requested2>\d+), "
        r"Available: (?P<available2>\d+)",
    ),
    Message(
        "kubelet.allocate_unreachable",
        ("allocate failed due to", "has been stopped"),
        r"endpoint \S+ has been stopped|"
        r"Allocate failed due to .*?(?:code = Unavailable|connection refused|transport is closing|connection error|"
        r"context deadline exceeded|DeadlineExceeded)",
    ),
    Message(
        "kubelet.allocate_inconsistent",
        (
            "allocated less resources than required",
            "changed request for resource",
            "no containers return in allocation",
            "found allocated in local cache for pod",
            "not found in cache for a registered resource",
        ),
        r"allocated less resources than required|changed request for resource|"
        r"no containers return in allocation response|no devices found allocated in local cache for pod|"
        r"endpoint not found in cache for a registered resource",
    ),
    # What the plugin itself answered. Where its words are known, another message has them too.
    Message(
        "kubelet.plugin_refused",
        ("allocate failed due to", "plugin resources failed due to", "prestartcontainer rpc failed"),
        r"(?:Allocate|plugin resources) failed due to .*?\bcode = (?!Unavailable|DeadlineExceeded|Canceled)\w+ "
        r"desc = (?P<why>.+?)(?:, which is unexpected.*)?$|"
        r"PreStartContainer rpc failed with err:? (?P<why2>.*)",
    ),
    # Two resources of one vendor in one container, each with its own value of one variable.
    Message(
        "kubelet.answers_conflict",
        ("has conflicting setting", "has conflicting mapping"),
        r"Environment variable has conflicting setting(?:.*?envKey=\"?(?P<name>\w+))?|"
        r"Container (?:device|mount) has conflicting mapping",
    ),
    Message("kubelet.rejected_plainly", "unexpectedadmissionerror", r"\bUnexpectedAdmissionError\b"),
    # Registration and the stream.
    Message(
        "kubelet.registration_request",
        ("got registration request", "got device plugin registration"),
        r"Got registration request from device plugin(?: with resource(?: name)?)?\b"
        r".*?(?P<resource>[\w.-]+\.[a-z]{2,}/[\w.-]+)?",
    ),
    Message(
        "kubelet.stream_eof",
        ("listandwatch ended", ": eof", "unexpected eof"),
        r"ListAndWatch ended unexpectedly.*?(?:reading from server: EOF|error reading from server|\bEOF\b)"
        r"(?:.*?resource(?:Name)?=\"?(?P<resource>[\w./-]+))?|ListAndWatch\b.*?(?:: EOF|unexpected EOF)\b",
    ),
    Message(
        "kubelet.stream_broken",
        (
            "listandwatch ended",
            "listandwatch failed",
            "listandwatch error",
            "listandwatch stopped",
            "listandwatch returned",
            "transport is closing",
            "listandwatch response",
            "list and watch response",
            "cannot update device states",
            "cannot update device list",
            "error: failed to update",
        ),
        r"^(?!.*\bEOF\b).*?(?:ListAndWatch (?:ended unexpectedly|failed|error|stopped|returned)"
        r".*?(?:transport is closing|Canceled|Unavailable|connection reset|stream terminated|deadline)|"
        r"ListAndWatch\b.*?transport is closing|"
        r"[Ff]ailed to send (?:health-update )?(?:list and watch|ListAndWatch) response: (?!.*context canceled)|"
        r"cannot update device (?:states|list): |error: failed to update \"?[\w./-]+\"? resou)",
    ),
    Message(
        "kubelet.cannot_dial_plugin",
        (
            "create new endpoint with socket path",
            "failed to dial device plugin",
            "failed to get plugin info",
            "failed to get info using rpc",
            "registration plugin",
            "registerplugin error",
        ),
        r"(?:Can't create new endpoint with socket path|[Ff]ailed to dial device plugin|RegisterPlugin error|"
        r"failed to get plugin info using RPC call)\b(?:.*?path=\"?(?P<path>[^\s\"]+)|"
        r".*?at socket \"?(?P<socket>[^\s\",]+)|.*$)",
    ),
    # A shell in which somebody looked, restarted the kubelet, and looked again.
    Message(
        "kubelet.count_lost_by_restart",
        ("restart kubelet", "restart k3s", "restart rke2", "restart snap.kubelet", "kubelet restart"),
        r"^(?=[^\n]*\b(?:systemctl restart (?:kubelet|k3s|rke2|snap\.kubelet)|service kubelet restart))[^\n]*\n"
        r"(?:[^\n]*\n){0,3}?\s*\"?(?P<resource>[\w.-]+/[\w.-]+)\"?:\s+\"?0\"?(?![\d.\w])"
        r"(?![\s\S]*?(?P=resource)\"?:\s+\"?[1-9])",
        lines=20,
    ),
    # gRPC's own words, which come beside those of the kubelet.
    Message(
        "kubelet.plugin_socket_refused",
        "/device-plugins/",
        r"failed to connect to \{?\W?(?:unix:\W*)?(?P<path>\S*/device-plugins/[\w.-]+\.sock)\b[^\n]*connection refused"
        r"|dial unix (?P<path2>\S*/device-plugins/(?!kubelet\.sock)[\w.-]+\.sock): connect: connection refused",
    ),
    # The server that takes registrations.
    Message(
        "kubelet.registry_fails",
        (
            "no device plugins can register",
            "starting device plugin registry",
            "plugin registration grpc server",
            "create the device plugin socket directory",
            "cleanup the device plugin directory",
        ),
        r"Failed to create the device plugin socket directory|Failed to cleanup the device plugin directory|"
        r"Failed to serve device plugin registration grpc server|"
        r"no device plugins can register|Failed to listen to socket while starting device plugin registry|"
        r"Error while serving device plugin registration grpc server",
    ),
    Message(
        "kubelet.plugin_api_unsupported",
        (
            "is not supported by kubelet",
            "supported version",
            "no handler registered for plugin type",
            "none of services supported by the plugin",
            "plugin validation failed",
            "validatepluginfunc failed",
        ),
        r"no handler registered for plugin type|none of services supported by the plugin|"
        r"plugin validation failed with err(?!.*invalid (?:name|resource))|ValidatePluginFunc failed|"
        r"manager version, \S+, is not among plugin supported versions|"
        r"requested API version \"?(?P<asked>\S+?)\"? is not supported by kubelet|"
        r"(?:plugin|versions).*?not supported.*?Supported version",
    ),
    Message(
        "kubelet.endpoint_replaced",
        ("endpoint is added while", "other endpoint"),
        r"[Ss]ome other endpoint .*? is added while endpoint",
    ),
    Message(
        "kubelet.start_fails",
        ("failed to start containermanager", "failed to run kubelet"),
        r"failed to run kubelet\W+(?:err=)?(?P<why>.*)|Failed to start ContainerManager\W+(?:err=)?(?P<why2>.*)",
    ),
    # What it remembers.
    Message(
        "kubelet.checkpoint_corrupt",
        "checkpoint",
        r"checkpoint is corrupted|CheckpointCorrupted|failed to unmarshal deviceplugin checkpoint|"
        r"could not restore state from checkpoint(?::? ?(?P<why>.*))?|unable to get checkpoint(?!\.json)|"
        r"checkpoint.*?(?:unexpected end of JSON|invalid character|checksum (?:mismatch|did not match))",
    ),
    Message(
        "kubelet.checkpoint_absent",
        "checkpoint is not found",
        r"kubelet_internal_checkpoint\"?:?.*?checkpoint is not found|"
        r"checkpoint is not found.*?kubelet_internal_checkpoint",
    ),
    Message(
        "kubelet.checkpoint_removed",
        "kubelet_internal_checkpoint",
        r"(?:kubelet_internal_checkpoint\b.{0,80}?\b(?:removed|deleted|gone|missing|[Nn]o such file)\b|"
        r"\b(?:rm|remove[ds]?|delete[ds]?)\b.{0,80}kubelet_internal_checkpoint)",
    ),
    Message(
        "kubelet.checkpoint_not_written",
        (
            "write checkpoint",
            "writing checkpoint",
            "deviceplugin checkpoint",
            "fresh checkpoint",
            "checkpoint resourceclaim",
        ),
        r"(?:(?:[Ff]ailed to write|writing) (?:deviceplugin )?checkpoint|unable to create fresh checkpoint"
        r"|checkpoint ResourceClaim cache: )"
        r".*?(?P<why>no space left on device|read-only file system|permission denied|.*)?$",
    ),
    Message(
        "kubelet.init_container_reallocated",
        ("not present in the initial running set", "need devices to allocate for pod", "init container"),
        r"container not present in the initial running set|"
        r"kubelet\b.{0,20}\brestart\w*.{0,80}\binit containers?\b.{0,120}?(?:UnexpectedAdmissionError|admission)",
    ),
)
