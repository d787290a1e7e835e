"""Schedulers for groups and queues, and of shares: Volcano, KAI, coscheduling, YuniKorn, HAMi.

In a quoted text of YAML an apostrophe stands twice.
"""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # Volcano and what grew of it
    Message(
        "gang.not_ready",
        ("podgroup", "pod group", "tasks in gang unschedulable", "notenoughpods", "notenoughresources",
         "valid pods of each task"),
        r"\bNotEnoughPods(?:OfTask)?\b|\bNotEnoughResources\b|Not enough valid pods of each task|"
        r"(?:(?P<pending>\d+)/(?P<tasks>\d+) tasks in gang unschedulable:?\s*)?pod ?group is not ready"
        r"(?:.*?(?P<minimum>\d+) minAvailable)?|(?P<pending2>\d+)/(?P<tasks2>\d+) tasks in gang unschedulable"
        r"|pod ?groups?\b.{0,60}\b(?:is|phase|status|stays?|stuck|remains?)\W+(?:in )?(?:Pending|Inqueue)\b",
    ),
    Message(
        "gang.queue_overused",
        ("overused", "finished pod", "finished job", "completed pod", "completed job"),
        r"resource in cluster is overused|queue\S*\s*\S*\s+is overused"
        r"|queue\b.{0,80}\b(?:finished|completed) (?:pod|job)"
        r"|(?:finished|completed) (?:pod|job)\S*(?: groups?)?\b.{0,40}\b(?:still )?(?:count|hold)",
    ),
    Message(
        "gang.queue_short",
        (
            "quota in queue",
            "capacity insufficient",
            "queue resource quota insufficient",
            "queue quota insufficient",
            "insufficient resource in queue",
            "capacity plugin",
            "queue quota has been exceed",
            "available user quota",
            "is rejected in prefilter because",
            "exceeded its capability",
            "exceed its capability",
            "exceeds its capability",
            "max running applications",
            "exceeding resource quota",
            "is not fit, ",
            "quota exceeded",
            "allocated gpu quota",
            "proportion plugin",
        ),
        r"\b(?:capacity|proportion) plugin\b[^\n]{0,40}?\b(?:prevents?|rejects?|refuses?|blocks?|denies|does not let"
        r"|doesn't let)\b[^\n]{0,24}?\b(?:jobs?|pods?|podgroups?)\b[^\n]{0,30}?\b(?:schedul\w+|enqueu\w+|start\w*|run"
        r"|admitted|although|even (?:if|though)|that (?:would )?fits?)\b"
        r"|queue (?:resource )?(?:quota|capacity) insufficient|insufficient (?:resource|quota) in queue"
        r"|insufficient <[^>]*> quota in queue|skipped from scheduling because the queue quota has been exceed"
        r"|exceeds the available user quota|is rejected in PreFilter because ?(?:total )?(?:ElasticQuota|quota|queue)\b"
        r"|[Qq]ueue \S+ (?:has |would )?exceed(?:ed|s)? its capability|exceeds? max running applications"
        r"|denied the request: exceeding resource quota"
        r"|\b(?:[Pp]roject|[Dd]epartment)(?: \S+)? (?:GPU )?quota exceeded|exceeded its allocated GPU quota",
    ),
    Message(
        "gang.queue_unusable",
        (
            "queuedoesnotexist",
            "can only submit job to queue with state",
            "can only submit job to leaf",
            "can only submit podgroup to queue with state",
            "can only submit podgroup to leaf",
            "find queue",
            "find the queue",
            "is not open",
            "is not a leaf",
            'queue "',
            "queue '",
            "queue `",
            "queue not found",
        ),
        r"can only submit (?:job|podgroup) to (?:queue with state|leaf)|queue\S*\s*\S* (?:state )?is not open"
        r"|(?:unable to|failed to|cannot|can't) find (?:the )?queue:? ?\W*(?P<queue>[\w.-]+)?|queue not found"
        r"|queue [\"'`](?P<queue2>[\w.-]+)[\"'`] (?:(?:was )?not found|does not exist)|queue\S*\s*\S* is not a leaf"
        r"|\bQueueDoesNotExist\b",
    ),
    # upstream workload API, coscheduling, KAI, YuniKorn
    Message(
        "gang.waits_for_members",
        (
            "rejected due to pod",
            "minresources cannot be",
            "pods from a gang",
            "pod group",
            "required for gang scheduling",
            "podgroup",
            "placeholder",
            "cannot find enough sibling pods",
            "gang child pod not collect enough",
            "the minimum required number of pods",
            "minmember",
            "placements are available",
            "at plugin coscheduling",
            "optimistic rejection in postfilter",
            "rejection in unreserve",
            " tree to meet quorum",
            "mincount (",
            "couldn't be satisfied for job",
            "requested topology ",
            "gang has not init",
            "gang's schedulecycle not valid",
            "resourcereservationtimeout",
            "hypernode",
            "'minavailable' ",
            "should not be greater than total replicas",
        ),
        r"waiting for minCount pods from a gang|waiting for pods.s pod group \W*(?P<group>[\w./-]+)\W* to appear"
        r"|Resources were found for (?P<found>\d+) pods? while (?P<minimum>\d+) are required for gang scheduling"
        r"|(?:pod ?group|gang)\W+(?P<group2>[\w./-]+)?\W*(?:gets )?rejected due to Pod|rejected in Pod Group"
        r"|cannot find enough sibling pods|gang child pod not collect enough|have the minimum required number of pods"
        r"|minAvailable\W* should not be greater than total replicas"
        r"|minResources cannot be satisfied|minMember.*(?:not|cannot be) (?:met|satisfied|reached)"
        r"|gang.*placeholders? (?:time[d-]* ?out|cannot)|placeholder.*(?:timed out|timeout)"
        r"|\d+/\d+ placements are available|rejected due to timeout after waiting [^\n]{0,20} at plugin Coscheduling"
        r"|optimistic rejection in PostFilter|rejection in Unreserve"
        r"|waiting for composite pod group \S+ tree to meet quorum"
        r"|minCount \((?P<minimum2>\d+)\) (?:cannot be|is not yet) satisfied: (?P<found2>\d+) scheduled"
        r"|gang has not init|gang's scheduleCycle not valid"
        r"|[Rr]equested topology \S+ does not exist|ResourceReservationTimeout"
        r"|requirement \S+ couldn't be satisfied for job"
        r"|'minAvailable' (?:is greater than|must be <=) 'replicas'"
        r"|\bhyper[Nn]odes?\b[^\n]{0,60}\b(?:cannot (?:fit|satisfy|hold|be allocated)|not enough)\b",
    ),
    # Queues take back what they lent, or what a higher priority wants.
    Message(
        "gang.displaced",
        (
            "preempted to accommodate",
            "was preempted by higher priority workload",
            "was preempted by workload",
            "was preempted and rescheduled due",
            "was reclaimed by",
        ),
        r"was preempted by workload \S+|was preempted and rescheduled due to (?P<why2>[^\n\"]+)"
        r"|Preempted to accommodate a (?:higher priority )?workload(?:.*? due to (?P<why>[^;\n\"]+))?"
        r"|(?:workload|pod|podgroup)\b.{0,80}\bwas (?:preempted by higher priority workload|reclaimed by)\b",
    ),
    Message(
        "gang.group_missing",
        ("missing pod", "missing queue", "missing kai", "no queue label", "no kai.scheduler", "podgroup", "pod group"),
        r"(?:pod ?group|podgroups?\S*) \W*(?P<group>[\w./-]+)\W* (?:is |was )?not found|pod ?group not found"
        r"|(?:cannot|failed to|unable to) (?:find|get) pod ?group"
        r"|PodGrouperWarning|(?:no|missing) (?:podgroup|pod group|kai\.scheduler/queue|queue) label",
    ),
    Message(
        "kai.no_room",
        ("have enough resource", "no nodes with enough resources were found", "have enough of mig profile",
         "node-pool is topped at", "node-pool doesn't have", "for the requested resources become available",
         "cluster resource not enough", "resource fit failed"),
        r"(?:[Nn]ode(?:-group)?\(s\)|\S+) didn.t have enough (?:resources?|of mig profile):\s*"
        r"(?P<what>GPUs?(?: memory)?|CPU cores|memory|nvidia\.com/[\w.-]+)\b(?!, requested: \d+, used)"
        r"|no nodes with enough resources were found"
        r"|Max (?P<what2>\S+) resources available in a single node in the \S+ node-pool is topped at"
        r"|[Nn]ode-pool doesn't have (?P<what3>\S+) resources|is pending for the requested resources become available"
        r"|cluster resource not enough|node\(s\) resource fit failed",
    ),
    Message(
        "kai.over_quota",
        (
            "preemptiondelaynotelapsed",
            "over the queue",
            "overlimit",
            "over quota",
            "overquota",
            "quota has reached the allowable limit",
            "exceeds the queue",
            "queue quota",
        ),
        r"(?:non-?preemptible )?(?:workload|job|pod ?group) is over quota|NonPreemptibleOverQuota|OverLimit"
        r"|quota has reached the allowable limit|(?:exceeds|over) the queue.s? (?:quota|limit|deserved)"
        r"|PreemptionDelayNotElapsed",
    ),
    Message(
        "yunikorn.queue_short",
        (
            "failed to place application",
            "failed to find placement",
            "application ",
            "yunikorn",
            "does not fit in queue",
            "does not fit into queue",
            "applicationrejected",
            "unscheduled",
        ),
        r"failed to (?:place|find placement for) application|application \S+ (?:has been |was )?rejected"
        r"|ApplicationRejected"
        r"|Request \S+ does not fit in queue \W*(?P<queue>[\w.-]+)"
        r"|\S+ does not fit into queue \W*(?P<queue2>[\w.-]+)",
    ),
    # HAMi and its kin
    Message(
        "hami.no_card",
        (
            "card insufficient remaining",
            "no enough ",
            "all node scores do not meet",
            "cardinsufficientmemory",
            "cardinsufficientcore",
            "cardtimeslicingexhausted",
            "cardcomputeunitsexhausted",
            "nodeinsufficientdevice",
            "allocatedcardsinsufficientrequest",
            "calcscore:node not fit",
            "nodeunfitpod",
            "exclusivedeviceallocateconflict",
            "resourcequotanotfit",
            "cardnothealth",
            "filteringfailed",
            "vgpudevicesharing error",
            "insufficient gpu devices",
            "insufficient gpu memory in one device",
            "not enough gpu fitted",
            'err="insufficient devices',
        ),
        r"[Ii]nsufficient gpu devices|insufficient GPU memory in one device|vgpuDeviceSharing error"
        r"|not enough gpu fitted on this node|err=\"Insufficient Devices"
        r"|no available node, all node scores do not meet"
        r"|calcScore:node not fit pod|FilteringFailed"
        r"|(?P<why>CardInsufficientMemory|CardInsufficientCore|CardTimeSlicingExhausted|CardComputeUnitsExhausted"
        r"|NodeInsufficientDevice|AllocatedCardsInsufficientRequest|ExclusiveDeviceAllocateConflict"
        r"|ResourceQuotaNotFit|NodeUnfitPod|CardNotHealth)"
        r"|card insufficient remaining (?:memory|core)|no enough (?:gpu|resource|vgpu)",
    ),
    Message(
        "hami.card_excluded",
        (
            "card type mismatch",
            "type not match",
            "cardtypemismatch",
            "carduuidmismatch",
            "cardnotfoundcustomfilterrule",
            "numanotfit",
        ),
        r"(?P<why>CardTypeMismatch|CardUuidMismatch|CardNotFoundCustomFilterRule|NumaNotFit)"
        r"|card type mismatch|type not match(?:ed)? card",
    ),
    # Where to put a pod among those that fit is a wish, and of some schedulers only.
    Message(
        "reported.placement_ignored",
        ("binpack", "bin-pack", "bin pack", "use-gputype", "use-gpuuuid", "scheduler-policy", "spread policy",
         "spread mode", "topology-aware"),
        r"\b(?:bin[- ]?pack\w*|spread (?:policy|mode)|(?:no)?use-gpu(?:type|uuid)|(?:gpu|node)-scheduler-policy"
        r"|topology-aware scheduling)\b[^\n]{0,70}?\b(?:ignored|not (?:be )?(?:respected|honou?red|applied|effective"
        r"|working|followed)|no effect|n[o']t (?:take effect|work)|fails)\b"
        r"|\b(?:ignor(?:es?|ing)|does ?n[o']t (?:respect|honou?r|follow|apply))\b[^\n]{0,50}"
        r"\b(?:bin[- ]?pack\w*|spread (?:policy|mode)|(?:no)?use-gpu(?:type|uuid)|(?:gpu|node)-scheduler-policy)\b",
    ),
    Message(
        "hami.more_than_node",
        ("cannot exceed the total number of devices on the node", "request devices nums"),
        r"request devices nums cannot exceed the total number of devices on the node"
        r"(?:.*?request devices nums=(?P<asked>\d+).*?node device nums=(?P<has>\d+))?",
    ),
    Message(
        "hami.node_locked",
        ("has been locked within", "node lock", "nodelock", "hami.io/mutex.lock"),
        r"has been locked within|(?:failed to|cannot|unable to) (?:acquire|get|set|release) (?:the )?node ?lock",
    ),
    Message(
        "hami.unregistered",
        ("node unregister", "no registered", "not initialized with device", "device is unhealthy, cleaning"),
        r"node not initialized with device|device is unhealthy, cleaning up node|node unregister\w*d"
        r"|no registered (?:device|node)",
    ),
    # what any of them believes and what is there
    Message(
        "scheduler.cache_stale",
        (
            "outofsync",
            "out-ofsync",
            "differ from",
            "differs from",
            "cache is out of",
            "cache out of",
            "out of sync",
            "idle gpu",
            "resource is less than used",
            "scheduler cache",
        ),
        r"(?:idle|cached?|used)\b.*differs? from (?:the )?(?:node.s? )?allocatable"
        r"|(?:scheduler )?cache (?:is )?out of (?:step|sync)"
        r"|node\S*\s*\S*\s+(?:is |resource )?(?:out of sync|outofsync)|NodeOutOfSync"
        r"|allocatable resource is less than used"
        r"|^(?![^\n]*\bargo)[^\n]*\bOut-?ofSync\b",  # a word of Argo CD, too
    ),
)
