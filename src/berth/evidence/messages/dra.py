"""Dynamic resource allocation: scheduler, kubelet, NVIDIA's driver, compute domains."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # A line of `kubectl get resourceclaim` before Kubernetes 1.31: a controller of the driver had to allocate it.
    Message(
        "dra.classic_pending",
        "waitforfirstconsumer",
        r"^[\w.-]+[ \t]+(?P<name>[\w.-]+)[ \t]+(?:[\w.-]+[ \t]+)?WaitForFirstConsumer[ \t]+pending\b",
    ),
    Message(
        "dra.not_allocatable",
        (
            "cannot allocate all claims",
            "cannot allocate all dra claims",
            "resourceclaim in use",
            "resourceclaim not available on the node",
            "cannot schedule extended resource claim",
            "unsuitable selected node",
            "timed out trying to allocate devices",
            "shared by multiple pods",
            "is in the process of being allocated",
            "waiting for resource driver to",
            "exceeds the claim limit of",
            "requested device ",
            "according to checkpoint",
            "could not find any resource",
            "to allocate all claims",
        ),
        r"cannot allocate all (?:DRA )?claims|resourceclaim in use|resourceclaim not available on the node"
        r"|cannot schedule extended resource claim"
        r"|number of requested devices \d+ exceeds the claim limit of \d+"
        r"|requested device (?:is not allocatable: \S+|\S+ is already allocated to different claim)"
        r"|channel \d+ already allocated by claim \S+ \(according to checkpoint"
        r"|skipping allocation for unsuitable selected node|timed out trying to allocate devices"
        r"|shared by multiple pods"
        r"|resource ?claim \S+ is in the process of being allocated|waiting for resource driver to (?:allocate"
        r"|provide)",
    ),
    Message(
        "dra.class_missing",
        ("resource class", "device class", "deviceclass", "resourceclass"),
        r"resourceclass(?:es)?\.resource\.k8s\.io \W*(?P<name3>[\w.-]+)\W* not found"
        r"|(?:device ?class|resource ?class)\W+(?P<name>[\w.-]+)\W* (?:does not exist|not found)"
        r"|deviceclasses\.resource\.k8s\.io \W*(?P<name2>[\w.-]+)\W* not found|could not find (?:device ?class"
        r"|resource ?class)",
    ),
    # The driver's chart serves GPUs, ComputeDomains, or both.
    Message(
        "dra.gpus_off",
        ("  gpus:", "gpus.enabled"),
        r"  gpus:\s*\n(?:\s*#[^\n]*\n)?\s*enabled: ?false|resources\.gpus\.enabled=false",
        lines=3,
    ),
    Message(
        "dra.domain_classes",
        ("compute-domain-daemon.nvidia.com", "compute-domain-default-channel.nvidia.com"),
        r"^(?:deviceclass\S*/)?compute-domain-(?:daemon|default-channel)\.nvidia\.com(?:\s+\d+[smhdy]\w*)?\s*$",
    ),
    Message(
        "dra.gpus_served",
        ("gpu.nvidia.com", "mig.nvidia.com"),
        r"(?:^|[\s/])(?:gpu|mig)\.nvidia\.com\s+(?:\S+\s+)?\d+[smhdy]|driver: gpu\.nvidia\.com",
    ),
    Message(
        "dra.claim_missing",
        ("resourceclaim", "resource claim", ".resources.claims[", "claim for extended resource"),
        r"resource ?claim(?:template)?s?(?:\.resource\.k8s\.io)? \W*(?P<name>[\w.-]+)\W* not found"
        r"|\.resources\.claims\[\d+\]\S*: Not found: |create (?:special )?(?:resource )?claim for extended resource"
        r"|waiting for (?:dynamic )?resource ?claim"
        r"|waiting for (?:dynamic )?resource controller to create the resource ?claim"
        r"|resourceclaim (?:has not been|not) created yet|pod has ResourceClaims that have not been created",
    ),
    Message(
        "dra.driver_unregistered",
        ("not found in the list of registered", "is not registered", "plugin registration", "not found in registered"),
        r"DRA driver \W*(?P<driver>[\w.-]+)\W* is not registered"
        r"|(?:driver|plugin) name \W*(?P<driver2>[\w.-]+)\W* not found in (?:the list of )?registered "
        r"(?:DRA )?(?:drivers|plugins)"
        r"|\bDRA\b.*plugin registration.*(?:failed|error)",
    ),
    Message(
        "dra.selector_fails",
        (
            "cel compilation",
            "cel runtime error",
            "selector #",
            "cel expression",
            "no such key",
            ".cel.expression: invalid value",
        ),
        r"\.cel\.expression: Invalid value: [^\n]*compilation failed|selector #\d+: (?:CEL )?(?:runtime error"
        r"|.*no such key).*|CEL (?:runtime|compilation|expression) error"
        r"|no such key:? \W*(?P<key>\w+)",
    ),
    # The scheduler's plugin for claims ends with an error of its own, at whichever of its steps. A claim that somebody
    # else wrote meanwhile is tried again.
    Message(
        "dra.scheduling_fails",
        ("dynamicresources",),
        r"(?:running (?:\w+ )?plugins?\W{1,3}(?:plugin )?\W?DynamicResources\W|running \W?DynamicResources\W{1,2}\w+ "
        r"plugin|plugin \W?DynamicResources\W{1,2}failed|(?:Plugin failed|Failed running \w+ plugin)\b[^\n]*"
        r"plugin=\W?DynamicResources\W)(?![^\n]*object has been modified)"
        r"(?:\s*(?:failed)?(?: with)?:?\s*(?P<why>[^\n]+))?",
    ),
    Message(
        "dra.api_absent",
        (
            "could not find the requested resource",
            "no matches for kind",
            "resource.k8s.io",
            "spec.resourceclaims[",
            'unknown field "spec.devices',
            "feature gate dra",
        ),
        # source.resourceClaimName is of 1.30 and before; later servers drop it.
        r"unknown field \"spec\.devices\.requests\S*\"|feature gate DRA\w+ is disabled"
        r"|spec\.resourceClaims\[\d+\]: Invalid value: [^\n]*must specify one of"
        r"|the server could not find the requested resource(?:\W+\(?(?:get|list|watch)?\s*(?P<what>[\w.]+))?"
        r"|(?:failed to (?:list|watch)|unable to (?:list|recognize)"
        r"|no matches for kind \W*(?P<kind>\w+)\W* in version).*resource\.k8s\.io"
        r"|resource\.k8s\.io/(?P<version>v1\w*) (?:is )?not (?:found|served|enabled)",
    ),
    Message(
        "dra.domain_not_ready",
        (
            "nodes seen:",
            "all nodes to join",
            "no matching network interface found for any ip",
            "allocate imex session",
            "nv_err_in_use",
            "compute domain",
            "compute-domain-daemon",
            "computedomain",
            "imex daemon",
            "nvidia-imex",
            "attempting connection for target node",
            "query status returned error code",
        ),
        # What the probes of the daemon's pod run.
        r"Query Status returned error code: \d+|current node not ready in ComputeDomain"
        r"|numNodes: (?P<wanted>\d+), nodes seen: (?P<seen>\d+)"
        r"|ComputeDomain \S*\s*(?:is )?(?:not ready|not found|NotReady)"
        r"|(?:IMEX daemon|nvidia-imex)\S*.*(?:not ready|failed to start|exited|crash|timed out|is already running)"
        r"|compute-domain-daemon\S*\s+0/\d+"
        r"|Attempting connection for target node \d+ - \S*compute-domain\S*?,? attempt #\d{3,}"
        r"|No matching network interface found for any IP|Failed to allocate Imex session|IMEX\b.{0,80}NV_ERR_IN_USE",
    ),
    # A claim of a channel that goes with another domain than the node or the namespace.
    Message(
        "dra.domain_mixed",
        (
            "exists for a different computedomain",
            "different than the computedomain",
            "imex channel",
            "compute domain not found: ",
            " channels but ",
            " channels, but ",
        ),
        r"(?P<other>label already exists for a different ComputeDomain)"
        r"|(?P<namespace>ResourceClaim\W*s namespace is different than the ComputeDomain)"
        r"|requested (?P<wanted>\d+) (?:IMEX )?(?:channels but|channels, but) (?:the )?node has (?P<has>\d+)"
        r"|(?:allocation failed|failed to allocate)\b[^\n]{0,60}\bIMEX channels?",
    ),
    Message("dcgm.imex_unhealthy", "imex_unhealthy", r"DCGM_FR_IMEX_UNHEALTHY"),
    Message(
        "dra.in_use",
        (
            "computedomain",
            "compute domain",
            "compute-domain",
            "resourceclaim",
            "dra enabled",
            "dra-enabled",
            "dra driver",
            "dra-driver",
        ),
        r"compute[ -]?domains?\b|resourceclaims?\b|\bDRA[ -](?:enabled|driver)\b",
    ),
    # The IMEX daemon's container and the kubelet plugins write their files themselves.
    Message(
        "dra.file_denied",
        (
            "nodes_config.cfg",
            "/etc/nvidia-imex/",
            "/plugins/gpu.nvidia.com",
            "/plugins/compute-domain.nvidia.com",
            "/plugins_registry/gpu.nvidia.com",
            "/plugins_registry/compute-domain.nvidia.com",
        ),
        r"(?P<path>/etc/nvidia-imex/[\w./-]+|[\w./-]*nodes_config\.cfg"
        r"|\S*/plugins/gpu\.nvidia\.com[\w./-]*|\S*/plugins/compute-domain\.nvidia\.com[\w./-]*"
        r"|\S*/plugins_registry/gpu\.nvidia\.com[\w./-]*"
        r"|\S*/plugins_registry/compute-domain\.nvidia\.com[\w./-]*)\W[^\n]{0,40}"
        r"(?:permission denied|read-only file system|operation not permitted)",
    ),
    # Classic DRA, up to Kubernetes 1.31: a controller allocates, and keeps that in NodeAllocationState objects.
    Message(
        "dra.classic",
        ("nodeallocationstate", "immediate allocation", "resource driver "),
        r"updating NodeAllocationState(?: CRD)?(?: after retries)?: (?P<why>[^\n]+)"
        r"|NodeAllocationState\.nas\.gpu\.\S+ \S+ is invalid: (?P<why2>[^\n]+)"
        r"|error (?:performing|in) immediate allocation|no matches for kind \W*NodeAllocationState"
        r"|resource driver (?P<driver>[\w.-]*nvidia\.com)\s+(?:de)?allocate: (?P<why3>[^\n]+)",
    ),
    Message(
        "dra.mig_refused",
        (
            "creating compute instance",
            "creating mig device",
            "create mig device",
            "creating gpu instance",
            "create gpu instance",
            "create compute instance",
            "prepared to any claim",
            "compute instance profile info",
            "gpu instance profile info",
        ),
        r"error (?:getting|creating) (?:MIG device|(?:GPU|Compute) instance)[^\n]{0,40}: [^\n]{0,60}"
        r"(?:Compute|GPU) instance profile info for"
        r"|MIG devices found that aren't prepared to any claim|error creating (?:MIG device|GPU instance"
        r"|compute instance).*(?:Insufficient Resources|In use)"
        r"|(?:unable|failed) to create (?:MIG device|GPU instance|compute instance).*(?:Insufficient Resources|In use)",
    ),
    # Parameters of a claim or class that the driver, or its webhook, does not take.
    Message(
        "dra.config_invalid",
        (
            "configresultsmap",
            "opaque device configs",
            "configs failed to validate",
            "error decoding config parameters",
            "error decoding object at spec",
            "error normalizing config",
            "error validating config",
            "is not a recognized configuration",
            "recognized configuration type",
            "unknown time-slice interval",
            "invalid domainid",
            "opaque.parameters is invalid",
            "cannot apply gpuconfig",
            "cannot apply migdeviceconfig",
            "cannot apply computedomain",
            "cannot apply vfiodevice",
            "opaque parameters are supported by this driver",
        ),
        r"(?:error generating configResultsMap|error getting opaque device configs|error decoding config parameters"
        r"|error decoding object at spec\S*|error (?:normalizing|validating) config(?: at \S+)?): (?P<why>[^\n]+)"
        r"|\d+ configs failed to validate: (?P<why2>[^\n]+)|runtime object is not a recognized configuration"
        r"|expected a recognized configuration type|unknown time-slice interval: \S+|invalid domainID: [^\n]+"
        r"|object at \S*opaque\.parameters is invalid: (?P<why3>[^\n]+)"
        r"|cannot apply (?:Gpu|MigDevice|ComputeDomain\w*|VfioDevice)Config to request"
        r"|only opaque parameters are supported by this driver",
    ),
    # Sharing that a claim's configuration asks for.
    Message(
        "dra.sharing_fails",
        (
            "mps control daemon to come online",
            "mps control daemon is not",
            "error setting time slice",
            "error setting timeslice",
            "error setting time-slice",
            "multiuser mode was requested",
            "error starting mps control daemon",
        ),
        r"MPS control daemon to come online|MPS control daemon is not"
        r"|error setting (?P<what>time slice|timeslice|time-slice)"
        r"|(?P<users>multiuser mode was requested but is not supported)"
        r"|error starting MPS control daemon",
    ),
    Message(
        "dra.checkpoint",
        ("failed checksum verification", "checkpoint from", "sync prepared claims", "unsupported checkpoint version"),
        r"checkpoint failed checksum verification|unable to sync prepared claims from checkpoint"
        r"|(?:unmarshal|read|get)\w* checkpoint from (?:v\d+|disk)|unsupported checkpoint version",
    ),
    Message(
        "dra.prepare_failed",
        (
            "failedpreparedynamicresources",
            "failed to prepare dynamic resources",
            "nodeprepareresources failed",
            "noderesources failed",
            "prepare devices failed: ",
            "unable to prepare claim",
            "stale prepare for claim",
            "cdi spec file for claim",
            "error preparing devices for claim",
        ),
        r"FailedPrepareDynamicResources(?::\s*(?P<why>.+))?|failed to prepare dynamic resources(?::\s*(?P<why2>.+))?"
        r"|NodePrepareResources failed|prepare devices failed: (?P<why3>[^\n]+)"
        r"|unable to prepare claim \S+: (?P<why4>[^\n]+)"
        r"|stale prepare for claim|unable to create CDI spec file for claim|error preparing devices for claim",
    ),
    Message(
        "dra.no_slices",
        ("resourceslice",),
        r"resourceslices?\b.{0,40}\b(?:with|has|have|lists?) (?:no|zero|0) devices\b"
        r"|resourceslices?\b.{0,60}(?:\bempty\b|no resources found|\bnone\b|missing|not published|0 items)"
        r"|no resourceslices?\b",
    ),
    Message(
        "dra.admin_access",
        (
            "admin access",
            "adminaccess",
        ),
        r"admin ?access .{0,80}(?:requires|label|not allowed|forbidden|denied)",
    ),
)
