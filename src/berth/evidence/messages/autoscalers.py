"""Autoscalers, and the clouds that they ask: Karpenter, Cluster Autoscaler, Ray, SkyPilot."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # Karpenter
    Message(
        "autoscaler.no_type_fits",
        (
            "trigger scaleup",
            "no instance type satisfied",
            "no instance type met",
            "no instance type has enough",
            "incompatible with nodepool",
            "incompatible with provisioner",
            "no instance type which had enough",
            "no instance type which met",
            "no instance type had ",
            "no instance type has ",
            "acceleratortype resource cannot be found",
            "accelerator type ",
            "nocompatibleinstancetypes",
            "instance type requirements were not met",
            "trigger scale-up",
            "predicate checking error: insufficient",
            "on template-node-for-",
            "no available node types can fulfill",
            "nottriggerscaleup",
            "find a node type to satisfy the request",
            "resource request cannot be scheduled right now",
            "cannot be scheduled right now. it requires",
            "infeasible resource request",
            "no resource satisfying",
            "does not contain any instances satisfying",
            "capacity on the cluster. ",
            "filtered out all",
            "requirement is not met",
            "min requirement not met",
            "incompatible requirements, key",
            "topology constraint",
            "no nodepool",
            "nodepools found",
            "not supported by karpenter",
            "not yet supported by karpenter",
            "nodeclassnotready",
            "exist given constraints",
            "no.scale.up.",
            "no expansion options",
            "build proper template node",
            "no node info for",
            "checking host port usage",
        ),
        r"filtered out all (?:available|compatible)[\w ]* instance types"
        r"|(?:minValues requirement is|min requirement) not met for"
        r"|incompatible requirements, key (?P<key>[\w./-]+)|unsatisfiable topology constraint"
        r"|no nodepools? (?:found|matched)|Dynamic Resource Allocation requirements\b.{0,40}\bnot (?:yet )?supported "
        r"by Karpenter|NodeClassNotReady|no (?:amis|subnets|security groups) exist given constraints"
        r"|no\.scale\.up\.(?:mig\.failing\.predicate|nap\.pod\.(?:gpu|tpu)\.[\w.]+|nap\.disabled)"
        r"|[Aa]ccelerator type \S+ (?:not found|(?:does not exist|is not (?:supported|available)) in)"
        r"|acceleratorType resource cannot be found"
        r"|[Nn]o expansion options|Unable to build proper template node|[Nn]o node info for:?"
        r"|checking host port usage, "
        r"|no instance type (?:satisfied|met|ha[sd] |which (?:had enough|met))"
        r"|incompatible with (?:nodepool|provisioner)"
        r"|predicate checking error: Insufficient [\w.-]+/[\w.-]+"
        r"|cannot put \S+ on template-node-for-\S+ reason: (?P<why2>[^\n]+)"
        r"|No available node types can fulfill resource requests? [^\n]{0,60}\bGPU"
        # Ray, which scales its own workers
        r"|could not find a node type to satisfy the request[^\n]*GPU|infeasible resource requests?\b[^\n]*GPU"
        r"|resource request cannot be scheduled right now:? [^\n]*GPU"
        r"|cannot be scheduled right now\. It requires [^\n]*GPU"
        # SkyPilot
        r"|No resource satisfying [^\n]{0,160}\bon \[?[^\n]*|does not contain any instances satisfying the request"
        r"|Insufficient (?:GPU|CPU|memory) capacity on the cluster\. "
        r"|NoCompatibleInstanceTypes|instance type requirements were not met"
        r"|NotTriggerScaleUp|did\S*(?: not)? trigger scale-?up(?:[^:]*:\s*(?P<why>.+))?",
    ),
    # A label that Karpenter was not told of: those that discovery sets later are none that a pool can have.
    Message(
        "autoscaler.group_unhealthy",
        ("is not ready for scale", "find readiness information for"),
        r"[Nn]ode group \S+ is not ready for scale-?up\b|Failed to find readiness information for \S+",
    ),
    # Logged at every look for each node that somebody uses: alone a hint.
    Message(
        "autoscaler.node_stays",
        ("not suitable for removal", "cannot be removed: ", "is not unneeded", "disruptionblocked",
         "cannot disrupt node", "no.scale.down."),
        r"DisruptionBlocked\W+(?P<why3>[^\n]+)|Cannot disrupt Node: (?P<why2>[^\n]+)"
        r"|no\.scale\.down\.node\.(?P<why4>[\w.]+)"
        r"|\bnot suitable for removal\b|\b[Nn]ode \S+ cannot be removed: (?P<why>[^\n]+)",
    ),
    Message(
        "autoscaler.label_unknown",
        ("does not have known values", "not have known values"),
        r"label \W{0,2}(?P<label>[\w./-]+)\W{0,2} does not have known values",
    ),
    Message(
        "autoscaler.at_limit",
        ("exceed limit", "exceeds limit", "max node group size reached", "max cluster", "exceeded limits",
         "zonal.resources.exceeded", "max size reached", "maximal limit exceeded"),
        r"(?:would exceed|exceeds) limits?\b.*(?:provisioner|nodepool|nvidia|cpu|resource)"
        r"|all available instance types exceed limits?"
        r"|no\.scale\.up\.nap\.pod\.zonal\.resources\.exceeded"
        r"|Skipping node group \S+ ?[-;] ?(?:max size reached|maximal limit exceeded)"
        r"|max node group size reached|max cluster (?:cpu|memory|nvidia\S*|size) limit reached",
    ),
    Message(
        "autoscaler.cloud_empty",
        (
            "insufficientinstancecapacity",
            "insufficientcapacity",
            "zone_resource_pool_exhausted",
            "stockout",
            "insufficient capacity",
            "allocationfailed",
            "skunotavailable",
            "overconstrained",
            "out of capacity",
            "out of host capacity",
            "unfulfillablecapacity",
            "not have sufficient",
            "not have enough ",
            "no spot capacity",
            "no gpu capacity",
            "in backoff after failed scale-up",
            "capacity is not found, ca will",
            "does not have enough resources available",
            "out of resources",
            "capacity could not be fulfilled",
            "unavailable offerings",
            "not available in location",
            "notavailableforsubscription",
            "not available in the current region",
            "currently unavailable in the",
            "not supported in your requested availability zone",
            "no valid host was found",
            "reservationcapacityexceeded",
            "claim pci failed",
            "operationdenied.nostock",
            "resourceinsufficient.",
            "resourcessoldout",
            "any instances available with the requested",
            "spotinterrupted",
            "spot interruption warning",
            "instances.preempted",
            "instance was preempted",
            "failed launching nodeclaim",
            "pcidevicerequestfailed",
            "resource_availability",
            "scale.up.error.out.of.resources",
            "zonal.resource.pool.exhausted",
            "provisioningrequest",
            "provisioning request",
        ),
        r"Insufficient(?:Instance)?Capacity|ZONE_RESOURCE_POOL_EXHAUSTED|GCE_?STOCKOUT|\bstockout\b"
        r"|insufficient capacity|in backoff after failed scale-up|capacity is not found, CA will try"
        r"|(?:Overconstrained(?:Zonal)?)?AllocationFailed|OverconstrainedAllocation|SkuNotAvailable"
        r"|out of (?:host )?capacity"
        r"|UnfulfillableCapacity|\bnot have (?:sufficient|enough) (?:\S+ )?capacity|no (?:spot|GPU) capacity"
        r"|does not have enough resources available to fulfill|GCE out of resources"
        r"|scale[- ]up\b.{0,80}out of resources"
        # Azure names the place, Compute Engine the machine, EC2 the zone; OpenStack nothing.
        r"|\b(?:size|SKU)\b.{0,80}\b(?:not available in (?:location|the current region)|NotAvailableForSubscription)"
        r"|\bcurrently unavailable in the \S+\s+zone|not supported in your requested Availability Zone"
        r"|OperationDenied\.NoStock|ResourceInsufficient\.\w+|ResourcesSoldOut"
        r"|any instances available with the requested"
        r"|SpotInterrupted|[Ss]pot interruption warning|compute\.instances\.preempted|[Ii]nstance was preempted"
        r"|failed launching nodeclaim|Claim pci failed|PciDeviceRequestFailed|No valid host was found"
        r"|ReservationCapacityExceeded|reason: resource_availability"
        r"|capacity could not be fulfilled|scale\.up\.error\.out\.of\.resources|zonal\.resource\.pool\.exhausted"
        r"|[Pp]rovisioning ?[Rr]equest\b.{0,60}\b(?:Failed|was not accepted|wasn't accepted|CapacityRevoked"
        r"|BookingExpired|CapacityIsNotFound)",
    ),
    Message(
        "autoscaler.cloud_quota",
        (
            "vcpulimitexceeded",
            "quota_exceeded",
            "quotaexceeded",
            "gpus_all_regions",
            "nvidia_",
            "operationnotallowed",
            "instancelimitexceeded",
            "maxspotinstancecountexceeded",
            "limit of 0.0 globally",
            "insufficientvcpuquota",
            "insufficientquota",
            "gce quota exceeded",
            "insufficient regional vcpu quota",
            "insufficient vcpu quota",
            "than your current vcpu limit",
            "quota to satisfy",
            "exceeding approved",
            "exceeding quota limits",
            "service limits were exceeded",
            "not enough quota",
            "errcode_insufficient",
            "scale.up.error.quota.exceeded",
            "quota exceeded for quota metric 'gpu",
            "limit of 0 for gpu",
        ),
        r"Quota exceeded for quota metric 'GPU|limit of 0 for GPU"
        r"|scale\.up\.error\.quota\.exceeded|Insufficient (?:regional |project )?quota to satisfy"
        r"|exceeding (?:approved .{0,40}\b[Qq]uota|quota limits)"
        r"|service limits were exceeded|ErrCode_Insufficient\w*Quota|not enough (?:\w+ )?quota"
        r"|than your current vCPU limit of \d+|Insufficient(?:VCPU)?Quota"
        r"|(?:[Ii]nsufficient )(?:regional )?vcpu quota|GCE quota exceeded"
        r"|VcpuLimitExceeded|InstanceLimitExceeded|MaxSpotInstanceCountExceeded|QUOTA_?EXCEEDED"
        r"|Quota '?(?:(?:PREEMPTIBLE_)?NVIDIA_\w+|GPUS_ALL_REGIONS)'? exceeded|GPUS_ALL_REGIONS"
        r"|OperationNotAllowed.*(?:quota|cores)",
    ),
)
