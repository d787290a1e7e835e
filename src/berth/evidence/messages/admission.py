"""What the API server and its admission say: quotas, limits, policies, webhooks."""

from berth.evidence.message import Message

_DEVICE = r"\b[\w.-]{1,80}\.[a-z]{2,20}/[\w.-]+"

MESSAGES: tuple[Message, ...] = (
    Message(
        "admission.quota_exceeded",
        "exceeded quota",
        r"exceeded quota:\s*(?P<quota>[\w.-]+)(?:,\s*requested:\s*(?P<requested>[^\s,]+(?:,[^\s,]+)*),\s*used:\s*"
        r"(?P<used>[^\s,]+(?:,[^\s,]+)*),\s*limited:\s*(?P<limited>[^\s,\"]+(?:,[^\s,\"]+)*))?",
    ),
    Message(
        "admission.quota_wants_values",
        "failed quota",
        r"failed quota:\s*(?P<quota>[\w.-]+):\s*must specify\s*(?P<what>[^\"\n]+)",
    ),
    Message("admission.quota_unknown", "status unknown for quota", r"status unknown for quota:? ?(?P<quota>[\w.-]+)"),
    Message(
        "admission.priority_needs_quota",
        ("insufficient quota to match these scopes", "priorityclass is not permitted in"),
        r"pods with \S+ priorityClass is not permitted in"
        r"|insufficient quota to match these scopes:?\s*(?P<scopes>\[.*\])?",
    ),
    Message(
        "admission.priority_class_missing",
        "no priorityclass with name",
        r"no PriorityClass with name \W*(?P<name>[\w.-]+)\W* was found",
    ),
    Message(
        "admission.limit_range",
        (" usage per container is ", " usage per pod is ", "usage per persistentvolumeclaim is",
         "max limit to request ratio per "),
        rf"(?P<bound>maximum|minimum) (?P<resource>{_DEVICE}|cpu|memory) usage per (?P<per>Container|Pod) is "
        r"(?P<allowed>[\w.]+?)(?:, but (?:limit|request) is (?P<asked>[\w.]+)|\.\s+No (?:limit|request) is specified)"
        rf"|(?P<resource2>{_DEVICE}|cpu|memory) max limit to request (?P<bound2>ratio) per (?P<per2>Container|Pod) is "
        r"(?P<allowed2>[\w.]+?), but (?:provided ratio is (?P<asked2>[\d.]+)|no request)",
    ),
    Message(
        "admission.device_amount",
        (
            "must be equal to ",
            "must be less than or equal to ",
            "non overcommitable resources",
            "must be an integer",
            " limit of ",
            "invalid resource quantity",
            "unsupported value: ",
            "must be a standard resource",
            "gpu fraction request",
            "gpu-fraction annotation value",
            "gpu-memory annotation value",
            "cannot request both gpu",
            "fraction count annotation value",
            "cannot request multiple fractional devices",
            "gpu sharing request, while gpu sharing is disabled",
        ),
        rf"Limit must be set for non overcommitable resources|(?P<resource>{_DEVICE})[\]\"':\s]+.*must be an integer"
        rf"|Invalid value: .*must be (?:equal|less than or equal) to (?P<resource2>{_DEVICE}) limit"
        r"|Invalid value: \W{0,3}(?P<resource4>(?![\w.-]*(?:nvidia|amd)\.com/)[\w./-]*(?:gpu|nvidia|mig)[\w./-]*)"
        r"\W{1,5}must be a standard resource (?:type or fully qualified|for containers|for quota)"
        # KAI's shares are asked for by annotations, and not beside whole GPUs.
        r"|MPS is only supported with GPU fraction request|cannot have both GPU fraction request and whole GPU"
        r"|gpu-(?:fraction|memory) annotation value must be|fraction count annotation value must be"
        r"|cannot request both GPU and GPU|cannot request multiple fractional devices"
        r"|gpu sharing request, while GPU sharing is disabled"
        # At the level of the pod there are CPU, memory and huge pages only.
        rf"|Unsupported value: \W{{0,3}}(?P<resource3>{_DEVICE})\W{{1,5}}supported values: [^\n]*"
        r"(?:cpu|memory|hugepages)",
    ),
    Message(
        "admission.privileged",
        (
            "privileged container",
            "disallowed by cluster policy",
            "violates podsecurity",
            "violate podsecurity",
            "unable to validate against any security context constraint",
            "allow-privileged",
            "policyexception",
            "pod security policy",
            "podsecuritypolicy: unable",
            "autogke-",
            "gke warden",
            "must specify a gpu type",
            "privileged mode is disallowed",
            "hostpath volumes are forbidden",
            "hostpath volumes are not allowed",
            "capability may not be added",
            "must be in the ranges: [",
            "securitycontext.hostnetwork",
            "validatingadmissionpolicy",
            "usable by user or serviceaccount",
        ),
        r"(?:privileged|hostPath|hostNetwork|hostPID)\S*:? Forbidden: disallowed by cluster policy"
        r"|disallowed by cluster policy"
        r"|(?:violates|would violate) PodSecurity \W*(?P<level>[\w:.-]+)?"
        r"|unable to validate against any security context constraint"
        r"|privileged containers? (?:are|is) not allowed|privileged mode is disallowed"
        r"|allow-privileged\S*\s+(?:is )?(?:off|false)"
        r"|unable to validate against any pod security policy|PodSecurityPolicy: unable to (?:admit|validate)"
        r"|(?P<selects>autogke-(?:gpu-limitation|node-affinity-selector-limitation)|[Mm]ust specify a GPU type)"
        r"|GKE Warden(?:.{0,400}?(?P<selects2>autogke-(?:gpu-limitation|node-affinity-selector)))?"
        r"|autogke-(?:disallow|no)[\w-]+"
        r"|hostPath volumes are (?:forbidden|not allowed)|capability may not be added"
        r"|runAsUser: Invalid value: \d+: must be in the ranges: \[|[Nn]ot usable by user or serviceaccount"
        r"|ValidatingAdmissionPolicy \S+ with binding \S+ denied request",
    ),
    Message(
        "admission.policy_denied",
        "denied the request",
        r"admission webhook \W*(?P<webhook>[\w.-]+)\W* denied the request:?\s*(?P<why>.*)",
    ),
    Message(
        "admission.webhook_open",
        "failing open",
        r"failing open:?\s*(?P<webhook>[\w.-]+)?",
    ),
    Message(
        "admission.webhook_closed",
        ("calling webhook", "calling admission webhook", "to call webhook", "to call admission webhook"),
        r"fail(?:ed|ing)(?: to call|\s+calling)(?: admission)? webhook:?\s*\W*(?P<webhook>[\w.-]+)?\W*(?P<why>.*)",
    ),
    Message(
        "admission.not_mutated",
        ("default-scheduler", "not injected by the webhook", "not mutated", "without mutation", "mutation was skipped"),
        r"(?:was|is|were|pod) not mutated|without mutation|mutation was skipped|not injected by the webhook"
        r"|default-scheduler\b.{0,40}\b(?:instead of|and not|rather than) \S*(?:hami|volcano|kai|vgpu)",
    ),
    Message(
        "admission.account_missing",
        "error looking up service account",
        r"error looking up service account (?P<account>[\w./-]+)",
    ),
    Message(
        "admission.quota_idle_key",
        (
            "limits.nvidia.com/",
            "requests.nvidia.com/gpu",
            "limits.amd.com/",
            "limits.gpu.intel.com/",
        ),
        # HAMi counts limits of what it shares, under these names only.
        r"\blimits\.(?:nvidia|amd|gpu\.intel)\.com/(?!gpumem\b|gpucores\b|gpu-?mem\S*-?percentage)[\w.-]+"
        r"|\brequests\.nvidia\.com/(?:gpu-?cores?|gpu-?mem(?:ory)?)\b",
    ),
    Message(
        "admission.default_device",
        ("limitrange",),
        r"LimitRange\b.{0,80}\bdefault\w*\b.{0,40}(?:nvidia|amd)\.com/\w+",
    ),
)
