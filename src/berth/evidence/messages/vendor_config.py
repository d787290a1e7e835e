"""What device plugins of other makers, and those that share GPUs, refuse of their settings."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "plugin.vendor_config_refused",
        (
            "failed to load device config file",
            "readfromconfigfile err",
            "not found in configmap",
            "migstrategy not recognized",
            "please set env node_name",
            # Intel
            "sharing the same gpu must",
            "with shared-dev-num 1 is pointless",
            "invalid value for preferredallocationpolicy",
            "support multiple drm drivers",
            # GKE
            "not a valid gpu partition size",
            "invalid gpu sharing strategy",
            "failed to parse gpu config file",
            # SR-IOV and shared RDMA
            "/etc/pcidp/",
            "error unmarshalling raw bytes",
            "contains invalid characters",
            '" already exists',
            "invalid value for rdmahcamax",
            '"selectors" ',
            "empty resourceprefix",
            "error creating resourcepool with config",
        ),
        r"failed to load device config file (?P<why>[^\n]+)|readFromConfigFile err: ?(?P<why2>[^\n]+)"
        r"|(?P<why3>\S+ not found in ConfigMap \S*(?:vgpu|device)\S*)|migStrategy not recognized"
        r"|Please set env NODE_NAME"
        r"|(?P<why4>number of containers sharing the same GPU must [^\n]+"
        r"|Trying to use fractional resources with shared-dev-num 1 is pointless"
        r"|invalid value for preferredAllocationPolicy\b[^\n]*|Plugin with RM doesn't support multiple DRM drivers"
        r"|\S+ is not a valid GPU partition size|invalid gpu sharing strategy: [^\n]+)"
        r"|failed to parse GPU config file: (?P<why5>[^\n]+)"
        r"|error reading file (?P<why6>/etc/pcidp/[^\n]+)|error unmarshalling raw bytes:? (?P<why7>[^\n]+)"
        r"|(?P<why8>resource name \"[\w./-]+\" (?:contains invalid characters|already exists))"
        r"|(?P<why9>Invalid value for rdmaHcaMax[^\n]*|error: Empty resourcePrefix)"
        r"|configuration miss?match\. (?P<why10>[^\n]*\"selectors\" [^\n]*)"
        r"|error creating ResourcePool with config\b(?P<why11>[^\n]*)",
    ),
    # Any Go plugin, in C code that it calls.
    Message(
        "plugin.segfault",
        ("segmentation violation", "morestack on g0"),
        r"(?:SIGSEGV: segmentation violation|fatal: morestack on g0)[\s\S]{0,2000}?\b(?:device-plugin|go-nvml)\b",
        lines=30,
    ),
)
