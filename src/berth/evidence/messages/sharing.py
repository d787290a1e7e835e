"""Time-slicing and MPS."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "sharing.mps_daemon_absent",
        ("mps daemon", "mps control daemon", "no devices are configured for mps"),
        r"No devices are configured for MPS sharing|Cannot find MPS control daemon process|"
        r"MPS daemon has not signalled readiness|MPS daemon is not healthy|"
        r"error waiting for MPS daemon|failed to send command to MPS daemon|error checking MPS daemon health|"
        r"MPS daemon is not (?:ready|running)|"
        r"\bMPS (?:control )?daemon(?:set| set)?s?\b.{0,160}?\b(?:(?:never|does not|doesn't|did not|not) "
        r"(?:be )?(?:start(?:s|ed|ing)?|come up|deploy(?:ed)?|schedul(?:ed)?|creat(?:ed)?)|never (?:runs|ready))\b|"
        r"\bMPS (?:control )?daemon(?:set| set)?\b.{0,40}?\b(?:missing|0 desired|no pods?)\b",
    ),
    Message(
        "sharing.mps_refused",
        (
            "using mps requires",
            "mps is not supported",
            "mps sharing is not supported",
            "mps clients",
            "invalid mps configuration",
            "maximum allowed replicas exceeded",
            "error too many replicas",
            "invalid mps replicas",
        ),
        r"using MPS requires (?P<needs>--\S+)|(?:sharing using )?MPS (?:sharing )?is not supported for (?P<what>.*)|"
        r"maximum allowed replicas exceeded: (?P<most>.*)|error too many replicas \(\d+\)|invalid MPS replicas\b|"
        r"invalid MPS configuration(?:: ?(?P<why>.*))?|(?:maximum|number of) (?:number of )?MPS clients",
    ),
    Message(
        "sharing.mps_server_fails",
        (
            "legacy server",
            "mps server",
            "server encountered a fatal exception",
            "failed to start mps",
            "exited with status",
            "starting mps daemon",
            "failed to create mps",
            "set selinux context",
            "setting selinux context",
            "error setting compute mode",
            "error setting pinned memory limit",
            "error setting active thread percentage",
            "error sending quit message",
            "failed to create .ready file",
            "as tmpfs",
            "/mps/shm",
            "directory /mps/",
            "] failed to start",
            "this daemon is already running",
        ),
        r"(?:MPS|Legacy) Server\b.*?(?:[Ff]ailed to start|exited with)|Server encountered a fatal exception|"
        r"[Ff]ailed to start MPS (?:control )?daemon|error starting MPS daemon|failed to create MPS \w+ ?\w*: |"
        r"(?:failed to set|error setting) SELinux context\b.*?permission denied|Server \d+ exited with status [1-9]|"
        r"error setting (?:compute mode|pinned memory limit|active thread percentage)\b|"
        r"error sending quit message: (?!.*executable file not found)|failed to create \.ready file|"
        r"error mounting \S*mps\S* as tmpfs|mount: \S*/mps/shm: [^\n]+|error creating directory /mps/\S*: |"
        r"(?:Server|Other) +\d+\] Failed to start ?: |An instance of this daemon is already running",
    ),
    # CUDA's own words for a client that its server does not take.
    Message(
        "sharing.mps_client_refused",
        ("mps server is not ready", "to create mps client", "support device connections", "connect to the mps control"),
        r"MPS server is not ready to accept new MPS client requests|resources required to create MPS client|"
        r"resources required to support device connections|[Ff]ailed to connect to the MPS control daemon",
    ),
    Message("sharing.mps_daemon_ready", "mps daemon is ready", r"MPS daemon is ready"),
    # Labels of SELinux can be set only where its file system is in the container and may be written.
    Message(
        "sharing.mps_label_refused",
        ("set selinux context", "setting selinux context", "lsetxattr /mps/"),
        r"^(?!.*permission denied).*(?:(?:failed to set|error setting) SELinux context\b|lsetxattr /mps/\S*: \w+)",
    ),
    Message(
        "sharing.mps_program_missing",
        "nvidia-cuda-mps-control",
        r"nvidia-cuda-mps-control\W{0,4}: (?:executable file not found|no such file)|"
        r"nvidia-cuda-mps-control: command not found",
    ),
    Message(
        "sharing.replicas_refused",
        ("number of replicas must be", "replicas must be >= 2", "no resources specified", "replicated resource"),
        r"[Nn]umber of replicas must be(?: >=)? ?(?P<least>\d+)|replicas must be >= 2|no resources specified|"
        r"unable to parse replicated resources?",
    ),
)
