"""Time-slicing and MPS."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "sharing.mps_daemon_absent",
        ("waiting for mps daemon", "command to mps daemon", "mps daemon health", "mps daemon"),
        r"error waiting for MPS daemon|failed to send command to MPS daemon|error checking MPS daemon health|"
        r"MPS daemon is not (?:ready|running)",
    ),
    Message(
        "sharing.mps_refused",
        ("using mps requires", "mps is not supported", "mps clients", "invalid mps configuration"),
        r"using MPS requires (?P<needs>--\S+)|(?:sharing using )?MPS is not supported for (?P<what>.*)|"
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
        ),
        r"(?:MPS|Legacy) Server\b.*?(?:[Ff]ailed to start|exited with)|Server encountered a fatal exception|"
        r"[Ff]ailed to start MPS (?:control )?daemon|error starting MPS daemon|failed to create MPS \w+ ?\w*: |"
        r"failed to set SELinux context\b.*?permission denied|Server \d+ exited with status [1-9]",
    ),
    Message(
        "sharing.replicas_refused",
        ("number of replicas must be", "replicas must be >= 2", "no resources specified", "replicated resource"),
        r"[Nn]umber of replicas must be(?: >=)? ?(?P<least>\d+)|replicas must be >= 2|no resources specified|"
        r"unable to parse replicated resources?",
    ),
)
