"""What somebody's own words may speak of where they tell of queues, quotas, pools, figures and clouds: see told.py."""

from __future__ import annotations

_NOT = (
    r"\b(?:not(?! (?:through|only|via|by|just|an?|the|as|at all|yet)\b)|never|no longer|cannot|unable to|"
    r"(?:ca|is|are|was|were|does|do|did|wo|could|has|have)n'?t)\b"
)

# Words of complaint, whatever it is about. Alone they say nothing.
_TROUBLE = (
    rf"{_NOT}|\b(?:fail\w*|errors?|wrong\w*|broken?|breaks?|bugs?|issues?|problems?|missing|lacks?|lacking|lack of|"
    r"stuck|empty|stops?|stopped|lost|stale|incorrect\w*|mis-?match\w*|mis-?config\w*|mis-?label\w*|invalid|ignor\w+|"
    r"outdated|accumulat\w+|duplicat\w+|blocks?|blocking|prevent\w*|refus\w+|reject\w*|den(?:y|ied|ies)|blocked|dead-?lock\w*|"
    r"starv\w+|hangs?|hung|crash\w*|unsupported|"
    r"unexpected\w*|instead of|even though|although|despite|too (?:many|few|low|small|large|early|late)|disabled|"
    r"leak\w*|race condition|hurts?|contention|gaps?|but|stall\w*|conflict\w*|accord\w* to (?:the )?(?:README|doc\w*)|"
    r"(?:there (?:is|are|was)|has|have|with|sees?|shows?|gets?) no|"
    r"no (?:\w+ ){1,2}is (?:deployed|created|started|scheduled|selected))\b"
    # Of those who write what they mended.
    r"|\b(?:need(?:s|ed)? to (?:add|set|label|tolerate|be (?:added|set|labell?ed))|"
    r"should (?:not|be|have|contain|read|show)|have to add|"
    r"was (?:off|disabled|missing)|so (?:that )?the (?:pods?|workloads?|jobs?) (?:can|could|get|are|is))\b"
    r"|\u65e0\u6cd5|\u4e0d\u80fd|\u5931\u8d25|\u6ca1\u6709|\u7f3a\u5c11|\u627e\u4e0d\u5230|\u62a5\u9519|\u5f02\u5e38"
    r"|\u4e0d\u5230|\u5361\u4f4f|\u88ab\u7f29\u5bb9"
)

TOPICS_OF_CLUSTER: dict[str, tuple[str, ...]] = {
    "trouble": (_TROUBLE,),
    "exporter": (
        r"\bdcgm[-_ ]?exporter\w*|\bDCGM\b|\bDGCM\b|\bdcgmi?\b|\bexporters?\b|\bServiceMonitors?\b|\bPodMonitors?\b",
        r"\b(?:GPU|nvidia)\S*[- ](?:exporter|metrics)\b|\bDCGM_\w+",
    ),
    "security": (
        r"\bpod ?security\b|\bPS[AP]s?\b|\bSCCs?\b|\bsecurity context constraints?\b|\bprivileged\b|"
        r"\badmission (?:polic\w+|webhook)|\bKyverno\b|\bGatekeeper\b",
    ),
    "volume": (r"\bPVCs?\b|\bpersistent ?volumes?\b|\bvolumes? (?:node )?affinity\b|\b(?:EBS|PD) volumes?\b",),
    "zone": (r"\b(?:availability )?zones?\b|\bAZs?\b",),
    "scattered": (
        r"\bfragment\w*|\bscattered\b|\bstranded\b",
        r"\b(?:distributed|spread|split|divided|free|idle) (?:out )?(?:across|over|on) (?:the |several |multiple |"
        r"many |different |all )?(?:\w+ )?nodes?\b",
    ),
    "slurm": (r"\bslurm\w*|\b(?:sbatch|srun|salloc|sinfo|squeue|scontrol)\b|\bgres(?:\.conf|Types)?\b",),
    "drained": (r"\bdrain\w*|\bcordon\w*|\bdisruption ?budgets?\b|\bPDBs?\b|\bSchedulingDisabled\b",),
    "cloud": (
        r"\b(?:AWS|EC2|EKS|GCP|GCE|GKE|Azure|AKS|OCI|OKE)\b|\b(?:us|eu|ap|sa|ca|af|me)-[a-z]+-?\d\w?\b|\bregions?\b",
        r"\binstance (?:types?|famil\w+|quota)\b|\bspot\b|\bon-demand\b|\bvCPUs?\b|\bcloud\b|\baccount\b",
    ),
    "capacity": (
        r"\b(?:not? |n't |no |in|without )(?:have |has )?(?:enough |sufficient |any )?(?:\S+ )?capacity\b",
        r"\bout of (?:\w+ )?(?:capacity|stock|GPUs?|resources)\b|\black of (?:\w+ )?(?:capacity|GPUs?)\b",
    ),
    # A machine to run on, as those who run builds and notebooks call it.
    "no runner": (
        r"\bno (?:\w+ ){0,2}?(?:runtimes?|runners?|executors?|instances?|workers?) (?:\w+ ){0,3}?"
        r"(?:available|found|free|match\w*|online)\b",
        r"\b(?:runners?|executors?|runtimes?|instances?) (?:\w+ ){0,2}?(?:not |un)(?:currently )?available",
        r"\bwait\w* (?:\w+ ){0,2}?for (?:\w+ ){0,3}?(?:runners?|executors?|runtimes?|agents?)\b",
        r"\bwait\w* for (?:\S+ )?instances\b",
        r"\brunners? (?:\w+ )?(?:not|never) (?:triggered|picked|assigned|start\w*)\b",
        r"\b(?:queue\w*|hours?|wait\w*)\b[^.;]{0,40}\bto (?:get|find|obtain) an? (?:\w+ )?"
        r"(?:runner|executor|instance)\b",
        r"\brunners? (?:are|is) (?:stalled|offline|stuck|busy)\b",
    ),
    "before the plugin": (
        r"\b(?:pods?|jobs?|workloads?)\b[^.;]{0,50}?\bbefore (?:the )?(?:nvidia[- ]?)?(?:device[- ]?)?plugin "
        r"(?:is|has|was|had|registers?|comes?|starts?)\b",
    ),
    "does not register": (
        r"\b(?:node ?claims?|nodes?|machines?|VMs?|instances?)\b[^.;]{0,40}?\b(?:never|not|doesn't|does not|fails? to) "
        r"(?:\w+ )?(?:regist\w+|join\w*)\b",
    ),
    # Put on a node by those who are about to take it away.
    "deletion taint": (r"\bToBeDeleted\w*|\bDeletionCandidate\w*|\bkarpenter\.sh/disrupted\b",),
    "one for many": (
        r"\b(?:cluster|node|machine|host|server|laptop)s? (?:with|(?:that )?ha(?:s|ve)) (?:only |just )?"
        r"(?:one|a single|1|two|2) (?:\w+ )?GPUs?\b",
    ),
    "tolerations asked": (
        r"\b(?:add\w*|support\w*|specif\w+|set\w*|allow\w*|configur\w+|miss\w+|without) (?:\w+ ){0,4}?tolerations?\b",
        r"\btolerations? (?:\w+ ){0,5}?(?:passed|propagat\w+|inherit\w*|applied|added|missing|support\w*|honou?red)\b",
    ),
    "misplaced": (
        r"\b(?:non-?\s?GPU|cpu-?(?: ?only)?) (?:\w+ )?(?:pods?|workloads?|jobs?|tasks?)\b[^.;]{0,60}?"
        r"\bGPU (?:nodes?|instances?|machines?|hosts?)\b",
        r"\b(?:GPU )?(?:pods?|workloads?|jobs?|tasks?)\b[^.;]{0,40}?\b(?:to|on|onto) (?:an? |the )?(?:no[nt]?[- ]GPU|"
        r"cpu-?(?: ?only)?|wrong) (?:nodes?|machines?|hosts?|instances?)\b",
        r"\b(?:were|are|was|is)(?:n't| not) request\w+ (?:any |a )?GPUs?\b",
    ),
    "none available": (
        r"\bno (?:more )?(?:free |idle |available )?GPUs? (?:\w+ ){0,2}?(?:available|free|left|idle)\b",
        r"\b(?:request|ask|want)\w* (?:for )?(?:\w+ ){0,3}?more (?:\w+ ){0,3}?than (?:\w+ ){1,3}?"
        r"(?:provid|giv|deliver|ha[sv])\w*",
        r"\b(?:no (?:free|idle|available) GPUs?|(?:lack|shortage) of (?:free |available )?GPUs?)\b",
    ),
    "asks": (r"\b(?:request\w*|ask\w*|spawn\w*|schedul\w*|queue\w*|submit\w*|launch\w*)\b",),
    # Nodes that an autoscaler should take away, and those that it should not.
    "node stays": (
        r"(?:\b(?:not|never|cannot|fails? to)|n't) (?:\w+ ){0,3}?(?:scal\w*[- ]?(?:down|in|to (?:0|zero))\b|"
        r"deprovision\w*|consolidat\w*|(?:remov|terminat|delet)\w*[^.;]{0,24}?\bnodes?\b)",
        r"\bnodes? (?:is|are|was) (?:never|not) (?:\w+ )?(?:removed|deleted|terminated|scaled down|deprovisioned)\b",
    ),
    "node removed": (
        r"\b(?:remov\w+|terminat\w+|delet\w+|kill\w*|scal\w+ (?:down|in)|reclaim\w*) (?:\w+ ){0,3}?"
        r"(?:nodes?|instances?|machines?)\b",
    ),
    "runs": (
        r"\b(?:while|although|though|still|with|despite) (?:\w+ ){0,4}?(?:jobs?|pods?|workloads?|training\w*|tasks?) "
        r"(?:\w+ ){0,2}?(?:run\w*|active)\b|\brunning (?:pods?|jobs?|workloads?|training\w*|tasks?)\b",
    ),
    "cloud quota": (
        r"\b(?:AWS|EC2|GCP|Azure|account|instances?|vCPUs?|regional|regions?|subscription|service|project|cloud|"
        r"[GP][25]?|NVIDIA_\w+)\b[^.;]{0,24}?\bquotas?\b(?! (?:object|resource))",
        r"\bquotas?\b[^.;]{0,40}?\b(?:AWS|EC2|GCP|Azure|account|instances?|vCPUs?|regions?|subscription|cloud)\b",
    ),
    "enough": (
        r"\b(?:enough|sufficient|plenty of|ample) (?:\w+ ){0,2}?(?:resources?|GPUs?|capacity|memory|quota|cards?)\b",
        r"\b(?:resources?|GPUs?|quotas?|memory) (?:is|are) (?:\w+ )?(?:enough|sufficient|free|idle)\b",
    ),
    "not installed": (
        r"(?:\b(?:never|not)|n't) (?:\w+ ){0,2}?installed\b|\b(?:forgot|forgotten) to (?:install|deploy)\b",
        r"\bwithout (?:installing|deploying)\b",
    ),
    "priority": (r"\b(?:high\w*|low\w*)[- ]priority\b|\bpriority ?class\w*",),
    "image pull": (
        r"\b(?:pull\w*|registry|harbor|mirror|nvcr\.io|quay\.io)\b[^\n]{0,120}?(?:x509|unknown authority|"
        r"manifest unknown|denied|unauthori[sz]ed|not found|no such host|time-?out|timed out|fail\w*|errors?)\b",
        r"\b(?:ImagePullBackOff|ErrImagePull)\b",
    ),
    "too many": (
        r"\btoo many (?:\w+ )?(?:nodes?|instances?)\b|\b(?:two|2|double|another|second|extra|unneeded|unnecessary|"
        r"more) (?:\w+ ){0,2}(?:nodes?|node groups?|instances?) (?:\w+ )?(?:created|added|launched|made|started|"
        r"come|came|which|and)\b|\bscal\w+ (?:out|up) another\b|\bdoubled\b|\btoo much\b",
        r"\b(?:an extra|left with an(?:other)?) (?:\w+ )?(?:node|instance)\b|"
        r"\bscal\w+ [^.;]{0,20}\b(?:on )?another (?:ASG|node ?group|node ?pool|pool|group)\b|"
        r"\b(?:multiple|several|two) (?:\w+ )?(?:nodes|instances) for (?:an?|one|the same) (?:\w+ )?"
        r"(?:request|pod|job|task)\b",
        r"\u88ab\u7f29\u5bb9|\u91cd\u590d\u6269\u5bb9",
    ),
    "too much": (
        r"\bmore (?:\w+ )?(?:GPUs?|resources|devices|cards) than\b|\b(?:all|each|every) (?:of )?(?:the )?containers?\b",
    ),
    "disruption": (
        r"\bdo-not-(?:disrupt|evict)\b|\bconsolidat\w+|\bdisrupt\w*|\bpreempt\w*|\bdrift\w*|\bexpir\w+|\binterruption\b",
    ),
    "memory grows": (
        r"\bmemory (?:usage )?(?:leak\w*|grow\w*|increas\w+|climb\w*)|\bOOM\w*|\bout of memory\b|\bmemory limit\b",
    ),
    "waits": (
        r"\b[Pp]ending\b|\bstuck\b|\bwaits?\b|\bwaiting\b|\bqueued\b|\bno nodes? (?:to|for|that|available)\b|"
        r"\b(?:nodes?|capacity) not found\b|\u8c03\u5ea6",
    ),
}
