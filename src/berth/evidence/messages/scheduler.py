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
            "label [",
        ),
        r"did\S* (?:not )?match (?:pod.s )?(?:node affinity(?:/selector)?|scheduler-enforced node affinity"
        r"|node\s?selector)"
        r"|did\S* (?:not )?match the requested node name"
        # The plugins for Ascend cards.
        r"|\bNode \S+ label \[[\w./-]+\] Failed, value is"
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
         "gpu reservation pod", "create reservation pod", "annotation on reservation pod", "bindingfailed",
         "bindingerror"),
        r"failed waiting for GPU reservation pod|timeout while waiting for GPU reservation pod"
        r"|could not create reservation pod|[Ff]ailed to create GPU reservation pod"
        r"|\bBindingFailed\b|\bBindingError\b"
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
        r"(?!.*have enough resource:)|Node did\S*(?: not)? have enough resource:\s*(?P<resource2>[\w./-]+)"
        r"(?:,\s*requested:\s*(?P<requested>\d+),\s*used:\s*(?P<used>\d+),\s*capacity:\s*(?P<capacity>\d+))?",
    ),
    Message(
        "scheduler.all_unfit",
        ("all nodes are unavailable", "no nodes available to schedule pods",
         "cannot schedule pods: insufficient nvidia",
         "cannot schedule pods: com/gpu"),
        r"all nodes are unavailable:?\s*(?P<reasons>\S.*)?|no nodes available to schedule pods"
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
            "devicetaintmanager",
            "because of device taints",
        ),
        r"\bPreempted (?:by (?:a )?pod\b|by [\w-]+/[\w-]+ on node|in order)"
        r"|TaintManagerEviction(?!.*Cancelling deletion)|DeletionByTaintManager|PreemptionByScheduler"
        r"|DeletionByDeviceTaintManager|evicted because of device taints"
        r"|descheduler\b.{0,80}evict|evict\w* .{0,40}\bdescheduler",
    ),
    Message(
        "scheduler.api_absent",
        ("no matches for kind", "no kind ", "unknown flag: --", "failed to list *v"),
        r"no matches for kind \W*(?P<kind>\w+)\W* in version \W*(?P<version>(?:kueue\.x-k8s\.io|[\w.]*volcano\.sh"
        r"|scheduling\.(?:run\.ai|x-k8s\.io|k8s\.io)|kai\.scheduler|scheduler\.x-k8s\.io|topology\.node\.k8s\.io"
        r"|jobset\.x-k8s\.io|leaderworkerset\.x-k8s\.io|[\w.]*kubeflow\.org|ray\.io|karpenter\.sh|karpenter\.k8s\.aws"
        r"|kubevirt\.io|grove\.io|resource\.nvidia\.com)/\w+)"
        # What a scheduler watches, asked for in a version that this Kubernetes serves no more, or not yet.
        r"|failed to list \*(?P<version3>v\d\w*)\.(?P<kind4>PriorityClass|PodGroup|Queue|CSINode|CSIStorageCapacity"
        r"|PodDisruptionBudget|StorageClass|VolumeAttachment|Workload|ClusterQueue|LocalQueue|HyperNode): "
        r"the server could not find the requested resource"
        # Flags of kube-scheduler that went with its policy files, in 1.23.
        r"|unknown flag: --(?P<kind3>policy-config(?:-file|map\S*)|use-legacy-policy-config|algorithm-provider"
        r"|scheduler-name)"
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
