"""What people report in their own words, where they do not quote anybody: the fact, not the phrasing of one report."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "reported.plugin_busy",
        "device-plugin",
        r"device-plugin\S*\W.{0,60}?\b(?P<percent>\d{2,3})(?:\.\d)? ?%? ?(?:% ?)?CPU|"
        r"device-plugin\S*\W.{0,40}?(?:CPU (?:usage|at)|busy loop)\D{0,20}(?P<load>\d{2,3})",
    ),
    Message(
        "reported.replicas_left",
        ("allocatable", "replicas"),
        r"replicas(?:\W| is| of){0,3}(?P<replicas>\d+)\b(?=.*?\ballocatable)(?=.*\b(?:Xid|unhealthy|fault))"
        r".*?allocatable(?:\W| is| only){0,3}(?P<allocatable>\d+)|"
        r"allocatable(?:\W| is| only){0,3}(?P<left>\d+)\b(?=.*\b(?:Xid|unhealthy|fault))"
        r".*?replicas(?:\W| of){0,3}(?P<of>\d+)",
    ),
    Message(
        "reported.lost_still_offered",
        ("still", "keeps", "continues", "stays", "remains", "unchanged"),
        r"\b(?:lost|gone|fell|fallen|dead|hung)\b.{0,40}?\b(?:allocatable|capacity)\b"
        r".{0,20}?\b(?:stays|remains|still|unchanged)\b|"
        r"\b(?:lost|dead|hung|fallen off the bus) GPU\b.{0,60}?\b(?:node|plugin)\b.{0,20}?\b(?:still|keeps)\b"
        r".{0,20}?\b(?:advertis\w+|offer\w*|report\w*)|"
        r"(?:allocatable|capacity)\b.{0,40}?\b(?:stays|remains|still|unchanged)\b"
        r".{0,60}?\b(?:lost|gone|fell|fallen|dead|hung|failed|missing)\b|"
        r"plugin\b.{0,40}?\b(?:still|keeps|continues)\b.{0,40}?\b(?:advertis\w+|report\w*|offer\w*)\b"
        r".{0,60}?\b(?:lost|gone|fell|fallen|dead|hung|failed|healthy)\b",
    ),
    Message(
        "reported.healthy_after_restart",
        (
            "unhealthy",
            "healthy again",
            "becomes healthy",
            "is healthy",
            "healthy until",
            "healthy after",
            "healthy once",
            "comes back",
            "recovers",
        ),
        r"\bunhealthy\b.{0,60}?\b(?:never|not|stays|for ever)\b.{0,30}?\b(?:healthy|back|recover\w*|cleared)\b|"
        r"(?:\bunhealthy\b.{0,80}?|healthy (?:again )?)\b(?:until|after|once)\b"
        r".{0,40}?(?:plugin\b.{0,20}?\brestart|restart\w*.{0,30}?plugin)|"
        r"restart\w*.{0,30}?device.?plugin.{0,60}?\b(?:healthy again|becomes healthy|is healthy|comes back|recovers)",
    ),
    Message(
        "reported.labels_missing",
        (
            "nvidia.com/gpu.",
            "nvidia.com/cuda.",
            "nvidia.com/mig.",
            "nvidia.com/mps.",
            "nvidia.com labels",
            "gpu labels",
        ),
        r"\b(?:no nodes? with|(?:does not|doesn't|do not|don't) have) (?:the )?label \W*nvidia\.com/gpu\.|"
        r"\bno nvidia\.com/(?:gpu|cuda|mig|mps)\.[\w.*-]+ labels?\b|"
        r"nvidia\.com/(?:gpu|cuda|mig|mps)\.[\w.*-]+.{0,40}?\b(?:missing|not found|not set|absent|removed|not there|"
        r"not present|disappear\w*)|"
        r"\bno (?:nvidia\.com|GPU) labels\b|(?:nvidia\.com|GPU) labels (?:are )?(?:missing|absent)",
    ),
    Message(
        "reported.nfd_missing",
        ("kubernetes.io/pci-", "kernel-version.full"),
        r"\b(?:does not|doesn't|do not|don't) have (?:the )?label \W*feature\.node\.kubernetes\.io/pci-|"
        r"feature\.node\.kubernetes\.io/(?:pci-\w*10de\S*|kernel-version\.full)\W"
        r".{0,30}?\b(?:missing|not set|absent|removed|not there|not present|disappear\w*)|"
        r"\b(?:no|lacks?|without|missing)\b.{0,20}?feature\.node\.kubernetes\.io/pci-\w*10de",
    ),
    Message(
        "reported.count_zero",
        "nvidia.com/gpu.count",
        r"nvidia\.com/gpu\.count\W{1,4}0\b",
    ),
    Message(
        "reported.config_awaits_restart",
        ("configmap", "config map", "replicas"),
        r"(?:ConfigMap|config map|replicas)\b.{0,60}?\b(?:changed|edited|updated|new|set)\b"
        r".{0,80}?\b(?:still|old|not (?:in effect|taken|applied|picked)|unchanged|no effect)\b"
        r".{0,80}?(?:plugin\b.{0,30}?\brestart|restart\w*.{0,30}?plugin)|"
        r"(?:ConfigMap|config map|replicas)\b.{0,40}?\b(?:changed|edited|updated)\b.{0,60}?\bplugin\b"
        r".{0,30}?\bnot\b (?:been )?restarted",
    ),
    Message(
        "reported.two_plugins",
        (
            "plugin both",
            "plugins both",
            "two device",
            "two plugin",
            "two nvidia",
            "both device",
            "both plugin",
            "both nvidia",
            "a second device",
            "a second plugin",
            "a second nvidia",
        ),
        r"device[ -]plugins? both (?:installed|run\w*|active|regist\w+)|"
        r"(?:[Tt]wo|[Bb]oth|[Aa] second) (?:NVIDIA )?(?:device[ -])?plugins?\b"
        r".{0,60}?\b(?:regist\w+|serv\w+|run\w*|advertis\w+|offer\w*|same node|same resource)",
    ),
    Message(
        "reported.rejected_after_restart",
        "unexpectedadmissionerror",
        r"UnexpectedAdmissionError\b.{0,60}?\b(?:after|since|when|while|upon|once|each time|every time)\b"
        r".{0,40}?\b(?:reboot\w*|restart\w*)|"
        r"\b(?:after|when|while|upon|once|whenever|if|each time|every time)\b.{0,40}?\b(?:reboot\w*|restart\w*)\b"
        r".{0,160}?\bUnexpectedAdmissionError",
    ),
    Message(
        "reported.beside_claims",
        ("device plugin", "device-plugin"),
        r"device[ -]plugin\b.{0,20}?\b(?:and|beside|next to|together with)\b"
        r".{0,20}?\b(?:DRA|claims|ResourceSlice\w*)\b.{0,60}?\b(?:both|same|active|twice|at once|double)\b|"
        r"\bDRA(?: driver)?\b.{0,20}?\b(?:and|beside|next to|together with)\b.{0,20}?device[ -]plugin\b"
        r".{0,60}?\b(?:both|same|active|twice|at once|double)\b",
    ),
    Message(
        "reported.plugin_not_restarted",
        (
            "allocatable",
            "capacity",
            "kubelet restart",
            "kubelet was restart",
            "restart of the kubelet",
            "restart of kubelet",
            "restart the kubelet",
            "restart kubelet",
            "restarted the kubelet",
            "restarted kubelet",
            "restarting the kubelet",
            "restarting kubelet",
        ),
        r"(?:capacity|allocatable)\b.{0,20}?\b0\b.{0,20}?\b(?:since|after)\b.{0,30}?\bkubelet\b.{0,10}?\brestart|"
        r"allocatable\b\W{0,4}0\b.{0,30}?\b(?:since|after)\b.{0,30}?\bkubelet\b.{0,10}?\brestart|"
        r"(?:[Kk]ubelet (?:was )?restart\w*|[Rr]estart(?:ed|ing| of)? (?:the )?[Kk]ubelet)\b.{0,60}?\bplugin\b"
        r".{0,30}?\b(?:did not|didn'?t|was not|wasn'?t|has not|not (?:restarted|re-?registered))\b",
    ),
    Message(
        "reported.partitions_unoffered",
        ("until the device plugin", "until the plugin", "until device plugin"),
        r"\b(?:MIG|instances|partitions)\b.{0,80}?\bnot (?:advertised|offered|seen|shown|reported|there)\b"
        r".{0,20}?\b(?:until the device plugin|until the plugin|until device plugin)\b.{0,20}?\brestart",
    ),
    Message(
        "reported.labels_stale",
        (
            "gpu.present",
            "gpu.product",
            "gpu.count",
            "stale label",
            "stale gpu label",
            "stale node label",
            "stale nvidia.com label",
        ),
        r"nvidia\.com/gpu\.(?:present|product|count)\S*.{0,60}?\b"
        r"(?:no GPU|without (?:a |any )?GPU|GPU (?:was |is )?(?:removed|gone)|stale|still there|left over)|"
        r"stale (?:GPU |nvidia\.com |node )?labels",
    ),
    Message(
        "reported.busy_mps_client",
        (
            "cudaerrormps",
            "cuda_error_mps",
            "mps_connection_failed",
            "mps_server_not_ready",
            "mps_rpc_failure",
            "busy or unavailable",
        ),
        r"busy or unavailable|cudaErrorMps\w+|CUDA_ERROR_MPS\w+|"
        r"\bMPS_(?:CONNECTION_FAILED|SERVER_NOT_READY|RPC_FAILURE)",
    ),
    Message(
        "reported.stream_dead",
        (
            "stream dead",
            "stream hung",
            "stream stale",
            "stream is dead",
            "stream is hung",
            "stream is stale",
            "listandwatch hung",
            "listandwatch is hung",
        ),
        r"\bstream (?:is )?(?:dead|hung|stale)|ListAndWatch (?:is )?hung",
    ),
    Message(
        "reported.mig_reverts",
        (
            "needs a reboot",
            "mode unchanged",
            "mig mode reverts",
            "mig instances",
            "mig devices",
            "mig geometry",
            "mig layout",
        ),
        r"MIG (?:instances|devices|geometry|layout)\b.{0,20}?\b(?:gone|lost|disappear\w*|missing)\b.{0,20}?\breboot|"
        r"MIG (?:mode )?reverts|MIG .*?needs a reboot each time",
    ),
)
