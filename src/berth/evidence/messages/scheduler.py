"""The scheduler of Kubernetes, the autoscalers beside it, and the kubelet's refusal of what was placed wrongly."""

from berth.evidence.message import Message

_RESOURCE = r"(?P<resource>[\w.-]+(?:/[\w.-]+)?)"

MESSAGES: tuple[Message, ...] = (
    # 0/N nodes are available: <n reason>, <n reason>. <post-filter>. Split by formats/failed_scheduling.py.
    Message(
        "scheduler.unplaced",
        (
            "node are available",
            "nodes is available",
            "nodes are unavailable",
            "nodes is unavailable",
            "node are unavailable",
            "node is unavailable",
            "nodes are available",
            "node is available",
        ),
        r"(?P<free>\d+)/(?P<total>\d+) nodes? (?:are|is) (?:un)?available(?:\s*:\s*(?P<reasons>\S.*))?",
    ),
    # Told in prose: a pod asks for one name, and the nodes offer another.
    Message(
        "scheduler.other_name_told",
        ("nvidia.com/", "amd.com/"),
        r"\b(?:asks?|asking|requests?|requesting|wants?|needs?|limits?)\b[^.;]{0,30}?"
        r"(?P<asked>(?:nvidia|amd)\.com/[\w.-]*\w)(?!\W{1,3}\d{2}).{0,90}?"
        r"\b(?:advertis\w+|offer\w*|expos\w+|has|have|shows?|provides?)\b[^.;]{0,30}?"
        r"(?!(?P=asked)(?![\w.-]*\w))(?P<offered>(?:nvidia|amd)\.com/[\w.-]*\w)",
    ),
    # GKE and old consoles say it without the count of nodes.
    Message(
        "scheduler.insufficient",
        "insufficient ",
        r"(?:cannot schedule pods?:|PodUnschedulable\b|unschedulable:|\d+\s)\s*Insufficient "
        r"(?P<resource>[\w.-]+/[\w.-]*[\w-]|cpu\b|memory\b|ephemeral-storage\b|pods\b)"
        r"|(?:^|[\s:,;\\\"'(])Insufficient \[?(?P<resource2>(?:[\w-]+\.)+[\w-]+/[\w.-]*[\w-]|rdma/[\w.-]+)",
    ),
    Message(
        "scheduler.taint",
        (
            "taint",
            "that the pod did",
            "that this pod did",
            "that the pods did",
            "that this pods did",
            "didn't tolerate",
            "did not tolerate",
            "does not tolerate",
            "not tolerated by",
        ),
        r"(?:untolerated taints?(?:\(s\))?(?:\s*\{?(?P<key>[\w./-]+):?\s*(?P<value>[\w./-]*)\}?)?"
        r"|taints?\s*\{?(?P<key2>[\w./-]+):?\s*(?P<value2>[\w./-]*)\}?,?\s*that the pod did\S* tolerate"
        r"|taints? that (?:the|this) pods? did\S* tolerate|(?:did|does) not tolerate (?:the )?(?:taint )?"
        r"(?P<key3>[\w.-]+/[\w.-]+(?:[=:]\S+)?)|\btaint\w*\b.{0,40}\bnot tolerated by)"
        r"|(?:Pending|unschedulable)\b.{0,80}\b(?:only|all|every|each|gpu) nodes? (?:has|have|carr\w+|is"
        r"|are)\b.{0,60}\btaint(?:ed)?\b(?:.{0,10}?(?P<key4>[\w.-]+/[\w.-]+))?",
    ),
    Message(
        "scheduler.affinity",
        (
            "predicate nodeaffinity failed",
            "match node",
            "match pod",
            "t match scheduler-enforced",
            "node affinity",
            "match the requested node name",
            "node label selector conflicts",
        ),
        r"did\S* (?:not )?match (?:pod.s )?(?:node affinity(?:/selector)?|scheduler-enforced node affinity"
        r"|node\s?selector)"
        r"|did\S* (?:not )?match the requested node name"
        r"|Predicate NodeAffinity failed|pod node label selector conflicts with its namespace",
    ),
    Message(
        "scheduler.gates",
        ("scheduling gates", "schedulinggated"),
        r"waiting for scheduling gates:?\s*\[?(?P<gates>[^\]\"]*)|SchedulingGated",
    ),
    # Proxies of kubectl logs and exec that run as pods are kept out by the same taint.
    Message(
        "scheduler.no_tunnel_agent",
        ("konnectivity-agent", "no agent available"),
        r"No agent available|konnectivity-agent\S*\s+(?:\d+/\d+\s+)?Pending"
        r"|konnectivity-agent\b.{0,40}\bPending",
    ),
    Message(
        "scheduler.system_pod_kept_out",
        ("coredns", "kube-dns", "metrics-server", "cert-manager"),
        r"(?P<name>(?:coredns|kube-dns|metrics-server|cert-manager)\S*)\s+\d+/\d+\s+Pending"
        r"|(?P<name2>coredns|kube-dns|metrics-server)\b.{0,30}\b(?:is|are|stays?|stuck|pods?) (?:in )?Pending",
    ),
    Message(
        "scheduler.not_responsible",
        ("no scheduler", "schedulername"),
        r"no scheduler (?:serves|named|with name|is responsible|found)"
        r"|schedulerName:?\s*\"?(?P<scheduler>[\w-]+)(?![\w-])[^\n]{0,300}?(?:not running|does not exist|no such|nobody"
        r"|never scheduled)",
    ),
    Message(
        "scheduler.bind_failed",
        ("failedbinding", "binding rejected", "failed to bind pod", "running bind plugin", "running prebind plugin",
         "gpu reservation pod", "create reservation pod", "annotation on reservation pod"),
        r"failed waiting for GPU reservation pod|timeout while waiting for GPU reservation pod"
        r"|could not create reservation pod|[Ff]ailed to create GPU reservation pod"
        r"|failed to find annotation on reservation pod|binding rejected|failed to bind pod"
        r"|running (?:Pre)?Bind plugin \S+ *: (?P<why>.+)",
    ),
    # Topology manager of the kubelet: the scheduler knows nothing of it.
    Message(
        "kubelet.topology_refused",
        (
            "topologyaffinityerror",
            "topology affinity error",
            "topology locality",
            "not enough cpus available to satisfy",
            "failed to get the default numa affinity",
            "to extend the current topology hint",
            "hint violates numa",
            "[memorymanager] ",
            "smt alignment",
            "smtalignment",
            "cannot align container",
            "cannot align pod",
            "invalid node topology data",
        ),
        r"TopologyAffinityError|Topology Affinity Error|cannot be allocated with Topology locality|"
        r"not enough cpus available to satisfy request|failed to get the default NUMA affinity|"
        r"(?:failed|unable) to find NUMA nodes to extend the current topology hint|preferred hint violates NUMA|"
        r"\[memorymanager\] (?:[Ff]ailed to (?:get|find|calculate|extend|set)|unable to)|"
        r"SMT ?Alignment ?Error|cannot align (?:container|pod)\b|invalid node topology data",
    ),
    Message(
        "kubelet.out_of",
        ("have enough resource:", "outof", "node didn't have enough resource", "node did not have enough resource"),
        r"(?-i:\bOutOf(?P<resource>(?:[\w-]+\.)+[\w.-]+/[\w.-]+|cpu|memory|pods|ephemeral-storage|gpu)\b)"
        r"|Node did\S*(?: not)? have enough resource:\s*(?P<resource2>[\w./-]+)"
        r"(?:,\s*requested:\s*(?P<requested>\d+),\s*used:\s*(?P<used>\d+),\s*capacity:\s*(?P<capacity>\d+))?",
    ),
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
        r"filtered out all (?:available|compatible)[\w ]* instance types|(?:minValues requirement is|min requirement) not met for"
        r"|incompatible requirements, key (?P<key>[\w./-]+)|unsatisfiable topology constraint"
        r"|no nodepools? (?:found|matched)|Dynamic Resource Allocation requirements\b.{0,40}\bnot (?:yet )?supported "
        r"by Karpenter|NodeClassNotReady|no (?:amis|subnets|security groups) exist given constraints"
        r"|no\.scale\.up\.(?:mig\.failing\.predicate|nap\.pod\.(?:gpu|tpu)\.[\w.]+|nap\.disabled)"
        r"|[Nn]o expansion options|Unable to build proper template node|[Nn]o node info for:?"
        r"|checking host port usage, "
        r"|no instance type (?:satisfied|met|has enough|which had enough)|incompatible with (?:nodepool|provisioner)"
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
        r"|No valid host was found|ReservationCapacityExceeded|reason: resource_availability"
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
        ),
        r"scale\.up\.error\.quota\.exceeded|Insufficient (?:regional |project )?quota to satisfy"
        r"|exceeding (?:approved .{0,40}\b[Qq]uota|quota limits)"
        r"|service limits were exceeded|ErrCode_Insufficient\w*Quota|not enough (?:\w+ )?quota"
        r"|than your current vCPU limit of \d+|Insufficient(?:VCPU)?Quota"
        r"|(?:[Ii]nsufficient )(?:regional )?vcpu quota|GCE quota exceeded"
        r"|VcpuLimitExceeded|InstanceLimitExceeded|MaxSpotInstanceCountExceeded|QUOTA_?EXCEEDED"
        r"|Quota '?(?:(?:PREEMPTIBLE_)?NVIDIA_\w+|GPUS_ALL_REGIONS)'? exceeded|GPUS_ALL_REGIONS"
        r"|OperationNotAllowed.*(?:quota|cores)",
    ),
    Message(
        "scheduler.all_unfit",
        ("all nodes are unavailable", "cannot schedule pods: insufficient nvidia", "cannot schedule pods: com/gpu"),
        r"all nodes are unavailable:?\s*(?P<reasons>\S.*)?"
        # A console that takes the name of the resource apart at its dot.
        r"|cannot schedule pods: (?:insufficient nvidia\b(?!\.com)|com/gpu)",
    ),
    Message(
        "scheduler.displaced",
        (
            "descheduler",
            "preempted by",
            "preempted in order",
            "taintmanagereviction",
            "taint manager eviction",
            "deletionbytaintmanager",
            "preempting pod",
            "preemptionbyscheduler",
        ),
        r"\bPreempted (?:by (?:a )?pod\b|by [\w-]+/[\w-]+ on node|in order)"
        r"|TaintManagerEviction(?!.*Cancelling deletion)|DeletionByTaintManager|PreemptionByScheduler"
        r"|descheduler\b.{0,80}evict|evict\w* .{0,40}\bdescheduler",
    ),
    Message(
        "scheduler.api_absent",
        ("no matches for kind", "no kind "),
        r"no matches for kind \W*(?P<kind>\w+)\W* in version \W*(?P<version>(?:kueue\.x-k8s\.io|[\w.]*volcano\.sh"
        r"|scheduling\.(?:run\.ai|x-k8s\.io|k8s\.io)|kai\.scheduler|scheduler\.x-k8s\.io|topology\.node\.k8s\.io"
        r"|jobset\.x-k8s\.io|leaderworkerset\.x-k8s\.io)/\w+)"
        r"|no kind \W*(?P<kind2>KubeSchedulerConfiguration)\W* is registered for version \W*(?P<version2>[\w./]+)",
    ),
    Message(
        "reported.rollout_holds",
        tuple(f"{which} {what}" for which in ("old", "previous", "former") for what in ("pod", "replica", "revision")),
        r"\b(?:rolling|roll-?outs?|maxSurge|RollingUpdate|upgrades?|updates?"
        r"|new (?:\w+[- ])?(?:pod|revision|replica)s?)\b"
        r"[^\n]{0,240}?\b(?:old|previous|former) (?:pod|replica|revision)s?\b[^\n]{0,40}?\b(?:holds?|held|occup\w+"
        r"|keeps?|us(?:es|ing)|owns?|(?:not|n't) (?:be )?(?:terminated|released?|removed|stopped|freed))\b",
    ),
    Message(
        "scheduler.extender",
        ("extender", "/filter", "post http", 'post "http', 'post \\"http'),
        r"Error scheduling \S+ Post \S+/filter\S* [^\n]*(?:connection refused|deadline exceeded|no such host"
        r"|timeout)|extender\W.{0,120}(?:connection refused|deadline exceeded|no such host|i/o timeout|x509)"
        r"|\bPost (?:http|\"http|\\\"http)s?://[\w.:-]+(?:/[\w.-]+)*/(?:filter|bind|prioritize)\W[^\n]*"
        r"(?:connection refused|deadline exceeded|no such host|timeout|Client\.Timeout|request canceled|x509|: EOF)"
        r"|failed to run extender",
    ),
)
