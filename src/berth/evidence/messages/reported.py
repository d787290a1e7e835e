"""What people report in their own words, where they do not quote anybody: the fact, not the phrasing of one report."""

from berth.evidence.message import Message

_GIVEN = ("allocated", "assigned", "given", "handed out")
_MANY = ("two", "2", "multiple", "several", "both", "different")
_DROPS = ("drop", "drops", "dropped", "falls", "fell", "goes", "went", "goes back", "changed", "changes", "reset")

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
        r"\b(?:lost|fell off|fallen off|dead|gone)\b.{0,80}?\bstill (?:shows?|lists?|reports?|says?|has|advertises?)\b"
        r".{0,30}?\bnvidia\.com/gpu\b|"
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
            "restarting the",
            "restart of the",
        ),
        r"\bunhealthy\b.{0,60}?\b(?:never|not|stays|for ever)\b.{0,30}?\b(?:healthy|back|recover\w*|cleared)\b|"
        r"(?:\bunhealthy\b.{0,80}?|healthy (?:again )?)\b(?:until|after|once)\b"
        r".{0,40}?(?:plugin\b.{0,20}?\brestart|restart\w*.{0,30}?plugin)|"
        r"restart\w*.{0,30}?device.?plugin.{0,60}?\b(?:healthy again|becomes healthy|is healthy|comes back|recovers)|"
        r"\b[Rr]estart(?:ing| of) the (?:\S*(?:device|plugin)\S* |DaemonSet ){1,3}(?:[Pp]ods? )?.{0,40}?"
        r"\b(?:recovers?|restores?|fixes|brings back|clears|solves)\b",
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
            "generate nvidia.com/",
        ),
        r"\b(?:no nodes? with|(?:does not|doesn't|do not|don't) have) (?:the )?label \W*nvidia\.com/gpu\.|"
        r"\bno nvidia\.com/(?:gpu|cuda|mig|mps)\.[\w.*-]+ labels?\b|"
        r"nvidia\.com/(?:gpu|cuda|mig|mps)\.[\w.*-]+.{0,40}?\b(?:missing|not found|not set|absent|removed|not there|"
        r"not present|disappear\w*)|"
        r"(?:cannot|can't|does not|doesn't) generate nvidia\.com/\S+ labels?|"
        r"\bno (?:nvidia\.com|GPU) labels\b|(?:nvidia\.com|GPU) labels (?:are )?(?:missing|absent)",
    ),
    Message(
        "reported.nfd_missing",
        ("kubernetes.io/pci-", "kernel-version.full"),
        r"\b(?:no|not|n't) (?:appe\w*r?|see|seeing|shown?|get|getting|find|have|has|add\w*|create\w*|set|there)\b"
        r".{0,30}?feature\.node\.kubernetes\.io/pci-|feature\.node\.kubernetes\.io/pci-\S+.{0,30}?\b(?:missing|absent|"
        r"not (?:set|there|present|created|added|shown|applied))\b|"
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
        (
            "configmap", "config map", "replicas",
            "show the previous", "shows the previous", "show the old", "shows the old",
        ),
        r"\b(?:modified|changed|edited|updated)\b[^\n]{0,30}\b(?:replicas|ConfigMap|config map|sharing|time-?slicing)\b"
        r"[^\n]{0,60}\bstill shows? the (?:previous|old)\b|"
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
            "both register",
            "cannot coexist",
        ),
        r"device[ -]plugins? both (?:installed|run\w*|active|regist\w+)|"
        r"(?:[Tt]wo|[Bb]oth|[Aa] second) (?:NVIDIA )?(?:device[ -])?plugin(?:s| (?:versions|instances|DaemonSets))?\b"
        r".{0,60}?\b(?:regist\w+|serv\w+|run\w*|advertis\w+|offer\w*|same node|same resource|overwrit\w+)|"
        r"\bboth register(?:ed)? (?:nvidia|amd)\.com/|device[ -]plugins?\b.{0,60}?\bcannot coexist\b",
    ),
    Message(
        "reported.rejected_after_restart",
        (
            "unexpectedadmissionerror",
            "pods with devices",
            "pods with gpu",
            "pods using gpu",
            "pods using devices",
            "restart kubelet",
            "restart the kubelet",
            "kubelet restart",
            "kubelet is restart",
        ),
        r"(?:\brestart (?:the )?kubelet|\bkubelet (?:is )?restart\w*)\b.{0,160}?\bpods\b.{0,80}?"
        r"\b(?:restart\w*|killed|terminated)\b.{0,12}?\b(?:too|as well|also)\b|"
        r"UnexpectedAdmissionError\b.{0,60}?\b(?:after|since|when|while|upon|once|each time|every time)\b"
        r".{0,40}?\b(?:reboot\w*|restart\w*)|"
        r"\b(?:after|when|while|upon|once|whenever|if|each time|every time)\b.{0,40}?\b(?:reboot\w*|restart\w*)\b"
        r".{0,160}?\bUnexpectedAdmissionError|"
        r"\bpods (?:with|using) (?:devices|GPUs?)\b.{0,60}?\b(?:terminated|killed|rejected|restarted|fail\w*)\b"
        r".{0,40}?\bkubelet\b.{0,20}?\brestart",
    ),
    Message(
        "reported.beside_claims",
        ("device plugin", "device-plugin"),
        r"device[ -]plugin\b.{0,20}?\b(?:and|beside|next to|together with)\b"
        r".{0,20}?\b(?:DRA|claims|ResourceSlice\w*)\b.{0,60}?\b(?<!cannot )(?:both|same|active|twice|at once|double)\b|"
        r"\bDRA(?: driver)?\b.{0,20}?\b(?:and|beside|next to|together with)\b.{0,20}?device[ -]plugin\b"
        r".{0,60}?\b(?<!cannot )(?:both|same|active|twice|at once|double)\b",
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
            ".sock is not recreated",
            ".sock was not recreated",
            ".sock is not re-created",
            "server is not restarted",
            "plugin is not restarted",
        ),
        r"(?:capacity|allocatable)\b.{0,20}?\b0\b.{0,20}?\b(?:since|after)\b.{0,30}?\bkubelet\b.{0,10}?\brestart|"
        r"allocatable\b\W{0,4}0\b.{0,30}?\b(?:since|after)\b.{0,30}?\bkubelet\b.{0,10}?\brestart|"
        r"(?:[Kk]ubelet (?:was )?restart\w*|[Rr]estart(?:ed|ing| of)? (?:the )?[Kk]ubelet)\b.{0,60}?\bplugin\b"
        r".{0,30}?\b(?:did not|didn'?t|was not|wasn'?t|has not|not (?:restarted|re-?registered))\b|"
        r"\.sock (?:is|was) not recreated|\.sock is not re-created|\b(?:server|plugin) is not restarted",
    ),
    Message(
        "reported.partitions_unoffered",
        ("until the device plugin", "until the plugin", "until device plugin", "newly created"),
        r"\b(?:MIG|instances|partitions)\b.{0,80}?\bnot (?:advertised|offered|seen|shown|reported|there)\b"
        r".{0,20}?\b(?:until the device plugin|until the plugin|until device plugin)\b.{0,20}?\brestart|"
        r"newly created (?:GI|CI|GPU instance|MIG \w+)s?\b.{0,80}?\bnot "
        r"(?:started|advertised|displayed|shown|discovered|seen|offered)\b",
    ),
    Message(
        "reported.fewer_offered",
        (
            "allocatable",
            "gpu registered",
            "gpus registered",
            "only one gpu",
            "only 1 gpu",
            "only two gpu",
            "only 2 gpu",
            "only three gpu",
            "only 3 gpu",
            "only four gpu",
            "only 4 gpu",
            "number of gpu",
            "gpu count",
        ),
        r"\b(?:[Nn]umber of GPUs|GPU count|GPUs? registered|allocatable)\b.{0,40}?\bfrom (?P<all4>\d{1,2}) to "
        r"(?P<left4>\d{1,2})\b|"
        r"\bcapacity\b\W{1,3}(?P<all5>\d{1,3})\b.{0,12}?\ballocatable\b\W{1,3}(?P<left5>\d{1,3})\b|"
        r"\ballocatable\b(?: (?:GPUs?|count|is|of|nvidia\.com/gpu)|\W){0,5}(?P<left>\d{1,3})\b.{0,40}?"
        r"\b(?:total|capacity)\b(?: (?:is|of)|\W){0,3}(?P<all>\d{1,3})\b|"
        r"\b[Oo]nly (?P<left2>one|1|two|2|three|3|four|4) GPUs?\b.{0,40}?"
        r"\b(?:recogni[sz]ed|registered|advertised|offered|detected|shown|allocatable|available)\b"
        r".{0,60}?\b(?:with|of|has|have|there are) (?:all )?(?P<all2>\d{1,2}|two|three|four|eight) (?:GPUs?|cards?)\b|"
        r"\bGPUs? registered\b.{0,40}?\b(?P<all3>\d{1,2})\b.{0,60}?\b(?:changed|dropped|fell|decreased|went)"
        r"(?: down)? to (?P<left3>\d{1,2})\b",
    ),
    Message(
        "reported.held_twice",
        tuple(f"{given} to {many}" for given in _GIVEN for many in _MANY),
        r"^(?!.*\b(?:time[- ]?slic|MPS\b|replicas|shared|sharing)).*?"
        rf"\bGPU(?: cards?)?\b.{{0,40}}?\b(?:{'|'.join(_GIVEN)}) to (?:{'|'.join(_MANY)}) (?:\w+ )?"
        r"(?:pods?|containers?)\b",
    ),
    Message(
        "reported.count_drops",
        tuple(f"{drops} to {none}" for drops in _DROPS for none in ("0", "zero")),
        rf"\b(?:capacity|capabilities|allocatable|GPUs?|nvidia\.com/gpu)\b.{{0,60}}?\b(?:{'|'.join(_DROPS)}) to "
        r"(?:0|zero)\b"
        r"(?!.*\b(?:fps|tokens|utili[sz]ation|MHz|memory)\b)(?P<rest>.*)",
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
        r"\bno GPU\b.{0,30}\blabel\w* .{0,20}nvidia\.com/gpu\.(?:present|product|count)"
        r"|nvidia\.com/gpu\.(?:present|product|count)\S*.{0,60}?\b"
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
