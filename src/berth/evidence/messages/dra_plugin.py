"""The kubelet plugins of NVIDIA's driver for resource claims: what they refuse at their start, and publish in vain."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "dra.settings_refused",
        (
            "feature gate validation failed",
            "invalid cli flags",
            "path for cdi file generation is not",
            "unknown gpu sharing strategy",
            "unknown mig sharing strategy",
            "mutually exclusive with",
            "requires feature gate",
            "when imex.mode=hostmanaged",
            "resolve driver config: ",
        ),
        r"feature gate validation failed: (?P<why>[^\n]+)"
        r"|invalid CLI flags: (?!host root is not mounted)(?P<why2>[^\n]+)"
        r"|path for cdi file generation is not a directory\b(?P<why3>[^\n]*)"
        r"|unknown (?:GPU|MIG) sharing strategy: (?P<strategy>\w+)"
        r"|feature gate \w+ is (?:currently )?mutually exclusive with \w+"
        r"|(?P<why4>\S+ requires feature gate \w+ to be enabled)"
        r"|claims are not supported when imex\.mode=hostManaged|resolve driver config: (?P<why5>[^\n]+)",
    ),
    Message(
        "dra.host_unmounted",
        ("host root is not mounted", "error setting up nvidia-cdi-hook"),
        r"host root is not mounted at \W{0,2}(?P<path>[^\s\"\\]+)"
        r"|error setting up nvidia-cdi-hook: (?P<why>[^\n]+)",
    ),
    Message(
        "dra.slice_refused",
        ("resourceslice.resource.k8s.io",),
        r"(?:create|update) (?:resource ?slice|ResourceSlice)\b[^\n]*?ResourceSlice\.resource\.k8s\.io \S+ is invalid:"
        r" (?P<why>[^\n]+)",
    ),
    Message(
        "dra.slices_forbidden",
        ("resourceslices.resource.k8s.io",),
        r"resourceslices\.resource\.k8s\.io (?:\S+ )?is forbidden: User \W{0,2}system:serviceaccount:"
        r"(?P<account>[\w-]+:[\w.-]+)\W{1,3}cannot (?P<verb>\w+)",
    ),
)
