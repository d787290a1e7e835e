"""Dynamic resource allocation: scheduler, kubelet, NVIDIA's driver, compute domains."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "dra.not_allocatable",
        (
            "cannot allocate all claims",
            "resourceclaim in use",
            "resourceclaim not available on the node",
            "cannot schedule extended resource claim",
            "unsuitable selected node",
            "timed out trying to allocate devices",
            "shared by multiple pods",
            "is in the process of being allocated",
            "waiting for resource driver to",
        ),
        r"cannot allocate all claims|resourceclaim in use|resourceclaim not available on the node"
        r"|cannot schedule extended resource claim"
        r"|skipping allocation for unsuitable selected node|timed out trying to allocate devices"
        r"|shared by multiple pods"
        r"|resource ?claim \S+ is in the process of being allocated|waiting for resource driver to (?:allocate"
        r"|provide)",
    ),
    Message(
        "dra.class_missing",
        ("resource class", "device class", "deviceclass", "resourceclass"),
        r"(?:device ?class|resource ?class)\W+(?P<name>[\w.-]+)\W* (?:does not exist|not found)"
        r"|deviceclasses\.resource\.k8s\.io \W*(?P<name2>[\w.-]+)\W* not found|could not find (?:device ?class"
        r"|resource ?class)",
    ),
    Message(
        "dra.claim_missing",
        ("resourceclaim", "resource claim"),
        r"resource ?claim(?:template)?s?(?:\.resource\.k8s\.io)? \W*(?P<name>[\w.-]+)\W* not found"
        r"|waiting for (?:dynamic )?resource ?claim"
        r"|resourceclaim (?:has not been|not) created yet|pod has ResourceClaims that have not been created",
    ),
    Message(
        "dra.driver_unregistered",
        ("not found in the list of registered", "is not registered", "plugin registration", "not found in registered"),
        r"DRA driver \W*(?P<driver>[\w.-]+)\W* is not registered"
        r"|driver name \W*(?P<driver2>[\w.-]+)\W* not found in (?:the list of )?registered (?:DRA )?(?:drivers|plugins)"
        r"|\bDRA\b.*plugin registration.*(?:failed|error)",
    ),
    Message(
        "dra.selector_fails",
        ("cel compilation", "cel runtime error", "selector #", "cel expression", "no such key"),
        r"selector #\d+: (?:CEL )?(?:runtime error|.*no such key).*|CEL (?:runtime|compilation|expression) error"
        r"|no such key:? \W*(?P<key>\w+)",
    ),
    Message(
        "dra.api_absent",
        ("could not find the requested resource", "no matches for kind", "resource.k8s.io"),
        r"the server could not find the requested resource(?:\W+\(?(?:get|list|watch)?\s*(?P<what>[\w.]+))?"
        r"|(?:failed to (?:list|watch)|unable to (?:list|recognize)"
        r"|no matches for kind \W*(?P<kind>\w+)\W* in version).*resource\.k8s\.io"
        r"|resource\.k8s\.io/(?P<version>v1\w*) (?:is )?not (?:found|served|enabled)",
    ),
    Message(
        "dra.domain_not_ready",
        (
            "no matching network interface found for any ip",
            "allocate imex session",
            "nv_err_in_use",
            "compute domain",
            "compute-domain-daemon",
            "computedomain",
            "imex daemon",
            "nvidia-imex",
        ),
        r"current node not ready in ComputeDomain|ComputeDomain \S*\s*(?:is )?(?:not ready|not found|NotReady)"
        r"|(?:IMEX daemon|nvidia-imex)\S*.*(?:not ready|failed to start|exited|crash|timed out|is already running)"
        r"|compute-domain-daemon\S*\s+0/\d+"
        r"|No matching network interface found for any IP|Failed to allocate Imex session|IMEX\b.{0,80}NV_ERR_IN_USE",
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
        ),
        r"error creating (?:MIG device|GPU instance|compute instance).*(?:Insufficient Resources|In use)"
        r"|(?:unable|failed) to create (?:MIG device|GPU instance|compute instance).*(?:Insufficient Resources|In use)",
    ),
    Message(
        "dra.prepare_failed",
        (
            "failedpreparedynamicresources",
            "failed to prepare dynamic resources",
            "nodeprepareresources failed",
            "noderesources failed",
        ),
        r"FailedPrepareDynamicResources(?::\s*(?P<why>.+))?|failed to prepare dynamic resources(?::\s*(?P<why2>.+))?"
        r"|NodePrepareResources failed",
    ),
    Message(
        "dra.no_slices",
        ("resourceslice",),
        r"resourceslices?\b.{0,60}(?:\bempty\b|no resources found|\bnone\b|missing|not published|0 items)"
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
