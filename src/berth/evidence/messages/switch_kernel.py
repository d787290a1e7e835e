"""NVLink and NVSwitch in the kernel's log where no Xid and no SXid stands: links that do not train, a switch that does
not start; and what agents on the node make of it."""

from berth.evidence.message import Message

_PCI = r"(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])"

MESSAGES: tuple[Message, ...] = (
    # The other end is not even seen: the mask of links that are past the detection of a receiver cannot be had.
    Message(
        "nvlink.not_detected",
        ("rx detect link mask", "postrxdetlinkmask", "rxdetlinkmask"),
        r"Failed to update Rx Detect Link mask|postRxDetLinkMask fail(?:ed|ure)",
    ),
    Message(
        "nvlink.not_trained",
        (
            "to transition to active",
            "failed to activate link",
            "turn off links for the gpu",
            "reset link(s) for gpu",
            "link training between gpu",
            "link training failed",
            "links to active",
        ),
        r"Failed to request Link (?P<link>\d+) to transition to active"
        r"|Failed to activate link(?P<link2>\d+) on GPU(?P<gpu>\d+)|Unable to turn off links for the GPU(?P<gpu2>\d+)"
        r"|Unable to reset link\(s\) for GPU(?P<gpu3>\d+)"
        r"|link training between GPU(?P<gpu4>\d+) and (?:SWITCH|GPU\d+) failed"
        r"|NVRM:[^\n]*\bNVLink[^\n]{0,40}link training failed"
        r"|(?:knvlink|nvlink)\w*:[^\n]*\b(?:fail\w*|unable)\b[^\n]{0,30}\blinks to active",
    ),
    # Rows of nvidia-smi nvlink -s without the line of their GPU.
    Message(
        "nvlink.rows_mixed",
        ": <inactive>",
        r"Link (?P<link>\d+): <inactive>(?:\s+Link \d+: <inactive>)*\s+Link \d+: [\d.]+ GB/s",
        lines=18,
    ),
    # Conditions, events and reasons of agents on the node.
    Message(
        "nvlink.agent_says",
        (
            "nvidianvlinkerror",
            "report nvlink p2p connectivity",
            "report active nvlink links",
            "nvlink threshold violated",
            "nvswitch nvlink failure detected",
        ),
        r"NvidiaNVLinkError(?!\W+(?:status\W+)?False)|no GPU pairs report NVLink P2P connectivity"
        r"|no GPUs report active nvlink links"
        r"|nvlink threshold violated: require >=\d+ GPUs with all links active; got \d+"
        r"|NVSwitch NVLink failure detected",
    ),
    Message(
        "nvswitch.not_started",
        ("nvidia-nvswitch",),
        rf"nvidia-nvswitch(?P<switch>\d+): ?(?:Failed (?:to (?:initialize device|enable PCI device"
        r"|request memory regions|map BAR0 region|initialize background tasks)|during device post init)"
        r"|failed to get IRQ|Interrupts disabled to avoid a storm|No supported interrupt mechanism was found)"
        r"|nvidia-nvswitch: unrecoverable error in ISR"
        rf"|nvidia-nvswitch: probe of {_PCI} failed with error"
        rf"|nvidia-nvswitch {_PCI.replace('pci>', 'pci2>')}: probe with driver nvidia-nvswitch failed",
    ),
    Message(
        "nvswitch.agent_says",
        "nvswitch fatal error detected",
        r"NVSwitch fatal error detected",
    ),
)
