"""Kueue: conditions of workloads and queues, events, webhooks."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "kueue.quota_short",
        (
            "nomatchingflavor",
            "waitingforquota",
            "waitingforpreemptedworkloads",
            "pending the preemption of",
            "max quota",
            "max capacity",
            "maximum quota",
            "maximum capacity",
            "t assign flavors to pod set",
            "couldn't assign flavors",
            "could not assign flavors",
            "insufficient unused quota",
            "insufficient quota for",
            "exceedsmaxquota",
            "unavailable in clusterqueue",
            "inadmissible",
            "no longer fits after processing another workload",
            "match node affinity",
            "in dra configuration",
            "assigned for podset",
        ),
        r"couldn.{1,2}t assign flavors to pod set (?P<set>[\w-]+)(?::\s*(?P<why>.+))?|could not assign flavors"
        r"|insufficient (?:unused )?quota for (?P<resource>[\w./-]+)(?: in flavor (?P<flavor>[\w.-]+))?|ExceedsMaxQuota"
        r"|request > maximum capacity|exceeds? (?:the )?maximum capacity"
        r"|WaitingForPreemptedWorkloads|Pending the preemption of|exceed(?:s|ed)? (?:the )?max(?:imum)? (?:quota"
        r"|capacity)"
        r"|\bNoMatchingFlavor\b|\bWaitingForQuota\b"
        r"|resource (?P<resource2>[\w./-]+) unavailable in ClusterQueue"
        r"|QuotaReserved\W+(?:status\W+)?False\W+(?:reason\W+)?Inadmissible\b|\bWorkloadInadmissible\b"
        r"|Workload no longer fits after processing another workload"
        r"|\bflavor (?P<flavor2>[\w.-]+) does\S*(?: not)? match node affinity"
        # Kueue counts claims by a resource that its configuration names for the class.
        r"|[Dd]evice ?[Cc]lass (?:\S+ )?is not mapped (?:to a resource )?in DRA configuration",
    ),
    Message(
        "kueue.queue_inactive",
        (
            "is inactive",
            "was inactive",
            "is inadmissible because",
            "t admit new workloads",
            "flavornotfound",
            "admissioncheck",
            "references missing",
            "clusterqueue",
            "topologynotfound",
            "stopped",
            "missing clusters: [",
            "inactive clusters: [",
            "multikueue cluster ",
            "multikueuecluster ",
            "multikueueclusterconnection",
            "client cant connect",
            "clientconnectionfailed",
            "reserving remote lost",
            "load client config failed",
        ),
        r"(?P<what3>MultiKueue ?cluster \S+: client cant connect|ClientConnectionFailed|Reserving remote lost"
        r"|load client config failed)"
        r"|(?P<what2>(?:Missing|Inactive) clusters: \[[\w ,.-]+|MultiKueue ?cluster \S+\s+Active[ =]False)"
        r"|FlavorNotFound|can.{1,2}t admit new workloads(?::?\s*(?P<why>.+))?|ClusterQueueIsInactive|(?:Cluster"
        r"|Local)Queue \S+ is (?:inactive|stopped)"
        r"|AdmissionCheck(?:NotFound|Inactive)|references missing (?P<what>\w+)|ClusterQueue\S*\s+Active=False"
        r"|TopologyNotFound"
        r"|(?:Local|Cluster) ?Queue \W*[\w./-]+\W* (?:is|was) (?:inactive|stopped)"
        r"|workload is inadmissible because.*inactive",
    ),
    Message(
        "kueue.queue_missing",
        ("localqueue", "clusterqueue", "local queue", "cluster queue"),
        r"(?P<kind>(?:Local|Cluster) ?Queue) \W*(?P<queue>[\w.-]*)\W*(?:does\S*(?: not)? exist|not found|is missing)"
        r"|ClusterQueueDoesNotExist|LocalQueueDoesNotExist",
    ),
    Message(
        "kueue.topology",
        (
            "secondpassfailed",
            "t allow to fit",
            "topologyplacementfailed",
            "allows to fit only",
            "topologyawarescheduling",
            "no topology domains at level",
            "no replacement for a failed node",
            "tas assigned node failures",
            'topology "',
        ),
        r"TopologyPlacementFailed|topology \W*(?P<topology>[\w.-]+)\W* (?:doesn.{1,2}t allow to fit|allows to fit only)"
        r"|SecondPassFailed|no topology domains at level|was no replacement for a failed node"
        r"|multiple TAS assigned node failures"
        r"|does not support TopologyAwareScheduling",
    ),
    Message(
        "kueue.namespace",
        ("match clusterqueue selector", "workload namespace doesn't match", "namespaceselector"),
        r"workload namespace doesn.t match ClusterQueue selector",
    ),
    Message(
        "kueue.pods_not_ready",
        (
            "exceeded the podsready timeout",
            "podsreadytimeout",
            "maximum number of re-queuing retries",
            "requeuinglimitexceeded",
            "maximumexecutiontimeexceeded",
            "exceeding the maximum execution time",
        ),
        r"exceeded the PodsReady timeout|PodsReadyTimeout|RequeuingLimitExceeded"
        r"|(?:deactivated .{0,40})?(?:exceeding|by reaching) the maximum number of re-queuing retries"
        r"|exceeding the maximum execution time|MaximumExecutionTimeExceeded",
    ),
    # A check of its own (a provisioning request, MultiKueue, somebody's controller) stands after the quota.
    Message(
        "kueue.check_refuses",
        ("failed admission checks", "admission check is false", "were rejected", "evictedduetoadmissioncheck",
         "duetoadmissioncheck"),
        r"has failed admission checks|[Aa]t least one admission check is false"
        r"|Admission check\(s\): [^\n]+ were rejected"
        r"|EvictedDueToAdmissionCheck|DeactivatedDueToAdmissionCheck",
    ),
    Message(
        "kueue.resources_refused",
        ("satisfy limitrange constraints", "exceed it's limits", "requests must not exceed its limits"),
        r"didn't satisfy LimitRange constraints|requests exceed it's limits|requests must not exceed its limits",
    ),
    Message(
        "reported.kueue_unadmitted",
        ("un-admitted", "unadmitted", "not admitted", "never admitted", "be admitted", "getting admitted",
         "get admitted", "stay suspended", "stays suspended", "remains suspended"),
        r"\b(?:kueue|clusterqueues?|localqueues?|workloads?|flavou?rs?)\b[^\n]{0,160}\b(?:un-?admitted"
        r"|(?:not|never) (?:be |get |getting )?admitted|(?:stays?|remains) suspended)\b",
    ),
)
