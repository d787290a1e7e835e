"""What somebody tells in his own words: which things a sentence names, and in which state it calls them.

No sentence is known here, only words. A rule asks for several of them in one line: `labels` and `missing`, `plugin` and
`configuration` and `crashes`. Lines of logs, tables and documents are nobody's own words, and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.told_of_cluster import TOPICS_OF_CLUSTER
from berth.evidence.formats.told_of_containers import TOPICS_OF_CONTAINERS
from berth.evidence.formats.told_of_machine import TEXT_WIDE, TOPICS_OF_MACHINE
from berth.evidence.formats.told_of_programs import TOPICS_OF_PROGRAMS
from berth.evidence.in_general import what_happened, without_denied
from berth.evidence.piece import Piece

KIND = "told"  # of the origin: where a line was found is of no weight, that somebody wrote it is
LARGEST = 8 * 1024  # bytes of a piece: what is longer was not written by hand
LONGEST = 700  # characters of a line
FEWEST_WORDS = 4


class Told(Fact, frozen=True, kw_only=True):
    """One line in somebody's own words."""

    topics: frozenset[str]  # of TOPICS, one at least


_GPUS = r"(?:nvidia\.com/(?:gpu|mig-[\w.]+)(?![\w.]*[\w/])|amd\.com/gpu\b|\b(?:GPUs?|cards?|devices?)\b)"
# People leave the apostrophe out.
_NOT = (
    r"\b(?:not|n[o']t|never|no longer|cannot|unable to|fails? to|failed to|"
    r"(?:ca|is|are|was|were|does|do|did|wo|could|has|have)n'?t)\b"
)
_VIEW = (
    r"\b(?:capacity|allocatable|(?:kubectl )?describe|node status|node\.status|kubectl|kubernetes|k8s|scheduler|"
    r"advertis\w+|expos\w+|regist\w+|schedulable)\b"
)
_SHOWN = (
    r"(?:shown?|showing|listed|found|there|visible|available|appear\w*|advertis\w+|register\w*|allocatable|"
    r"discovered|detected|expos\w+|in|on|under|list|see|report\w*)\b"
)
_GONE = r"\b(?:missing|absent|disappear\w*|vanish\w*|gone|drops? out)\b"
_PODS = r"(?:\w+ ){0,3}(?:pods?|containers?|jobs?|workloads?|notebooks?)\b"
_SEVERAL = r"\b(?:two|2|both|several|multiple|many|different)"
_COUNT = r"(?:\d+|one|two|three|four|five|six|seven|eight|ten|some|half|part)"
_BE = r"(?:be |been |get |gets |getting |being |even |yet |always |ever )?"
_COMES = (
    r"(?:on|set|there|present|creat\w+|generat\w+|writ\w+|appl\w+|add\w*|label\w*|show\w*|appear\w*|find|found|"
    r"have|has|exist\w*|carry|com(?:e|es|ing)|popul\w+|attach\w*)\b"
)
_BEGINS = r"(?:schedul\w+|creat\w+|start\w*|run\w*|deploy\w*|plac\w+|launch\w*|install\w*)\b"

# What a line may speak of. Each is a thing or a state; what they mean together is for rules to say.
TOPICS: dict[str, tuple[str, ...]] = {
    # Devices, as the cluster sees them.
    "gpus": (_GPUS,),
    "view": (_VIEW,),
    "gpus none": (
        rf"{_GPUS}[^.;]{{0,60}}?\b(?:(?:is|are|at|to|as|shows?|of|stays?|stuck at|=|:) ?(?:0|zero|none)\b(?!\.)"
        rf"|(?:becomes?|became|turns?) (?:0|zero)\b)",
        rf"{_GPUS}\W{{1,4}}(?<![^/]GPU )(?<!^GPU )(?<!device )(?<!card )(?:0|zero|none)\b(?!\.)",  # not GPU 0
        rf"{_GPUS}[^.;]{{0,60}}?(?:{_GONE}|{_NOT} {_BE}{_SHOWN})",
        rf"\b(?:no|zero|0|missing|without|lost)\W{{1,3}}(?:\w+ ){{0,2}}?{_GPUS}(?!\.)",
        rf"{_NOT} (?:see|find|list|show|detect|report|have|advertise|register|expose)\w* (?:\w+ ){{0,3}}?{_GPUS}",
        rf"<none>\W{{1,3}}(?:\w+ ){{0,2}}?{_GPUS}",
    ),
    "fewer": (
        rf"\bonly {_COUNT}\b(?! (?:task|pod|job|container|process|replica|worker|user|node (?:in|which has|with)\b))"
        rf"(?: of)?[^.;]{{0,40}}?(?:{_VIEW}|{_GPUS})",
        rf"\b(?:fewer|less) (?:\w+ )?{_GPUS}",
        r"\b(?:fell|dropp?ed|drops?|decreas\w+|went|goes|changed?|reduced) (?:\w+ )?from \d+ to \d+",
        r"\b\d+ (?:instead|out) of \d+\b",
        r"\ballocatable\b[^.;]{0,30}?\b(?:less|smaller|lower|fewer) than\b",
    ),
    "twice": (
        rf"{_SEVERAL} {_PODS}[^;]{{0,90}}?\bsame (?:\w+ )?{_GPUS}",
        rf"\bsame (?:\w+ )?{_GPUS}[^;]{{0,90}}?{_SEVERAL} {_PODS}",
        r"\b(?:allocated|assigned|given|handed|attached) (?:out )?"
        r"(?:twice|to (?:two|2|several|multiple|both|more than one|other|different))\b",
        r"\bdouble[- ](?:allocat|assign)\w+",
    ),
    "all used": (
        rf"\b(?:all|every|each)\b[^.;]{{0,20}}?{_GPUS}[^.;]{{0,40}}?"
        r"\b(?:allocated|in use|used|taken|busy|occupied|requested|consumed)\b",
    ),
    "visible devices": (r"\bNVIDIA_VISIBLE_DEVICES\b",),
    # Time.
    "reboot": (
        r"\bre-?boot\w*|\bpower[- ]?cycl\w+|\bback online\b",
        r"\b(?:node|machine|server|host|cluster) (?:is |was |has been )?restart\w*",
        r"\brestart\w* (?:of )?(?:the |a |any )?(?:node|machine|server|host|cluster)",
    ),
    "restart": (r"\brestart\w*|\bre-?creat\w+|\bdelet\w+ (?:the |its |that )?(?:\w+[- ]){0,3}pods?\b",),
    "upgrade": (r"\b(?:upgrad|updat)\w+",),
    # Components.
    "plugin": (r"\b(?:device|gpu)[ -]?plugins?\b",),
    "kubelet": (r"\bkubelet\b|\bdevice ?manager\b",),
    "runtime": (
        r"\bdefault[- ]runtime\b|\bdaemon\.json\b|\bdefault_runtime\w*|--runtime[= ]nvidia\b|--gpus\b",
        r"\bnvidia (?:container )?runtime\b|\bruntimeClass\w*|\bRuntimeClass\b",
    ),
    "operator": (r"\bgpu[- ]operator\b|\bthe operator\b|\bcluster-?policy\b|\bNVIDIADriver\b|\boperator pods\b",),
    "policy": (r"\bcluster-?policy\b|\bNVIDIADriver\b",),
    "operand": (
        r"\bdaemon ?sets?\b|\bdriver (?:pods?|container)\b|\bmig-manager\b|\bvalidator\b|\boperands?\b",
        r"(?<!nvidia-container-)(?<!NVIDIA container )(?<!CUDA )\btoolkit\b",
        r"\boperator (?:pods|components)\b|\bkubelet-plugin\b",
    ),
    "validator": (r"\bvalidat(?:or|ion)\b",),
    "discovery": (
        r"\bNFD\b|\bNodeFeatures?\b|\bnfd-\w+|\bfeature\.node\.kubernetes\.io/|\bnode[- ]feature[- ]discovery\b",
    ),
    "gpu discovery": (r"\bGFD\b|\bgpu[- ]feature[- ]discovery\b|\bfeatures\.d/gfd\b",),
    "driver": (r"\bdriver\b",),
    "configuration": (r"\bconfig ?maps?\b|\bconfig\.(?:map|name)\b|\bconfig[- ]manager\b|\bconfig(?:uration)?s?\b",),
    # Labels and where pods may go.
    "labels": (
        r"\blabel(?:s|led|ed|ling|ing)?\b|\bnvidia\.com/(?:gpu|cuda|mig)\.[\w.*-]+|\bpci-[\w.]*10de[\w.]*",
        r"\bfeature\.node\.kubernetes\.io|\bgpu\.(?:present|deploy\S*|product|count)\b",
    ),
    "taint": (r"\btaint(?:s|ed)?\b|\btolerat\w+|\bNo(?:Schedule|Execute)\b|\u6c61\u70b9|\u5bb9\u5fcd",),
    "gpu label": (
        r"\bnvidia\.com/(?:gpu|cuda|mig)\.(?!deploy|present|workload|config)[\w.*-]+|\bgpu-feature-discovery\b",
    ),
    "models differ": (
        r"\b(?:mix(?:ed|ture)?|different|several|two|both) (?:of )?(?:\S+ ){0,5}?(?:GPUs?|cards|models)\b[^.;]{0,60}"
        r"\b(?:same|one|single|each|this|that|a) (?:node|machine|host|server)\b|\bmixed (?:GPU )?nodes?\b"
        r"|\b(?:nodes?|machines?) (?:\w+ ){0,3}?(?:with|has|have) (?:a mix|different|two kinds|several models)\b"
        r"|\bGPUs?\b[^.;]{0,40}\bidentical\b",
    ),
    "selector": (r"\bnode[ -]?selectors?\b|\bnode ?affinity\b|\bselects? (?:by|on|nodes)\b",),
    # States.
    "missing": (
        r"\b(?:missing|absent|lacks?|empty|without|none of|neither)\b",
        r"\bno (?:such )?(?:label|node|pod|\S+ label|exported_pod|namespace|ClusterPolicy|NVIDIADriver)s?\b",
        rf"{_NOT} {_BE}{_COMES}",
    ),
    "off": (r"\b(?:off|disabled|not (?:be )?(?:enabled|served?|supported))\b",),
    "removed": (
        r"\b(?:remov\w+|vanish\w*|disappear\w*|wip(?:ed|es)|lost|loses?|delet\w+|gone|dropped|stripped|overwrit\w+)\b",
        r"\b(?:overrid\w+|resets?|comes? and goe?s?|flap\w*|put back|puts? [^.;]{0,30} back|set back|reverts?)\b",
    ),
    "in spite": (
        r"\b(?:wrong\w*|incorrect\w*|even though|although|though|despite|instead of|stale|still|stays?|remains?)\b",
        r"\balways\b|\bignor\w+",
        rf"{_NOT} {_BE}(?:pick\w*|tak\w+ (?:up|effect|over)|in effect|appl\w+|reload\w*|honou?r\w*|respect\w*|"
        r"updat\w+|chang\w+|reflect\w*|reconcil\w*|roll\w* out|propagat\w*|set (?:\w+ )?(?:right|correct|proper))\b"
        r"|\bunexpected(?:ly)?\b",
    ),
    "unplaced": (
        rf"{_NOT} {_BE}{_BEGINS}",
        r"\bDESIRED\W{1,3}0\b|\bDesiredNumberScheduled\b[^.;]{0,30}\b0\b|\b(?:0|zero) desired\b",
        r"\bno (?:other )?pods?\b|\bonto any node\b|\bnothing is (?:created|deployed)\b",
        r"\bdaemon ?sets?\b[^.;]{0,20}?(?:\bnot|n't) (?:loaded|there|present|started)\b",
        r"\b(?:comes?|goes?|lands?|runs?|match\w*|schedul\w+|plac\w+) (?:\w+ )?(?:to|on|onto|in)? ?"
        r"(?:no|none of the) nodes?\b",
    ),
    "again and again": (
        r"\bagain and again\b|\b(?:several|many) times\b|\bover and over\b|\brepeatedly\b|\bin a loop\b",
        r"\bevery (?:few )?(?:seconds?|minutes?)\b|\bconstantly\b|\bendless\w*",
    ),
    "crashes": (
        r"\bcrash\w*|\bexits?\b|\bexit code\b|\bterminat\w+|\bhalts?\b|\bpanics?\b|\b(?:fails?|failed|failing)\b",
        r"\bdies\b|\berrors?\b",
        r"\b(?:can't|cannot|could not|couldn't|unable to) (?:apply|start|load|change|set|create|reset|register)\b",
    ),
    "held": (r"\bin use\b|\bheld by\b|\bbusy\b|\bholds?\b",),
    "evicted": (r"\bevict\w*|\bre-?queu\w+|\bpreempt\w*",),
    "scheduler name": (r"\bschedulerName\b|\bdefault-scheduler\b|\b\w+[- ]scheduler is not\b",),
    "pending": (
        r"\bPending\b|\bunschedulable\b|\bsuspended\b|\bwaits? for ever\b|\bInqueue\b",
        r"\bnever (?:be |get |gets )?(?:scheduled|admitted|starts?|run)\b",
        r"\bnot (?:be |get |being )?(?:scheduled|admitted)\b",
    ),
    "not begun": (
        r"\bInit:\d|\bPodInitializing\b|\bContainerCreating\b|\bstuck (?:in|at) (?:the )?init\w*|\bInit state\b",
        r"\bin Init\b",
    ),
    "rejected": (
        r"\bUnexpectedAdmissionError\b|\bOutOf(?:nvidia|amd)\S+|\breject\w*|\balways fail\w*|\bnot admitted\b",
        r"\bfail(?:s|ed)? (?:when|after|every time|each time|on)\b",
    ),
    # Those who scale, queue and share.
    "autoscaler": (
        r"\bauto-?scal\w+|\bkarpenter\b|\bauto-?provision\w*|\bNAP\b|\bnode ?claims?\b|\bnode ?pools? karpenter\b",
        r"\bCA (?:sees|decides|scales|picks|thinks|does|will|logs?|doesn't|to)\b|\u6269\u5bb9|\u7f29\u5bb9",
    ),
    "pool": (r"\bnode ?groups?\b|\b(?:node|GPU) ?pools?\b|\bscal(?:e|es|ing)[- ](?:up|out|from|down)\b",),
    "no scaling": (
        rf"(?:{_NOT}|\bno) (?:\w+ )?(?:scal\w+|trigger\w*|launch\w*|provision\w*|add\w*|spin\w*)\b",
        r"\bscal\w+[^.;]{0,40}\b(?:only|fails?|stuck|not work\w*|n't work)|\bstays? at (?:0|zero)\b",
        r"\bpredicate \w+ fails|\bno (?:cluster[- ])?autoscaler\b(?! (?:is )?needed)|\bautoscaler is not installed\b",
        r"\b(?:min|max)\w*(?:Count|Size)\b[^.;]{0,40}\b(?:no effect|inert|ignored)\b",
    ),
    "queue": (
        r"\bKueue\b|\bVolcano\b|\bKAI\b|\bPodGroups?\b|\bgangs?\b|\b(?:Cluster|Local)Queues?\b|\bqueues?\b",
        r"\b(?:resource ?|fit )flavou?rs?\b|\bborrowing(?:Level|Limit| limit)s?\b|\bcohorts?\b",
        r"\bYuniKorn\b|\bco-?scheduling\b|\bQuotaReserved\b|\benqueue\b|\breclaim (?:action|plugin)|\bQueue-?\d\b",
    ),
    "claims": (
        r"\bResource ?Claim\w*|\bResource ?Slices?\b|\bDevice ?Class(?:es)?\b|\bDRA\b|\bresource\.k8s\.io\b",
        r"\bDynamicResourceAllocation\b|\bcompute[- ]?domains?\b|\b(?:gpu-|domain-)kubelet-plugin\b",
    ),
    "share scheduler": (
        r"\bHAMi\b|\bv-?GPUs?\b|\bvcuda\b|\bgpu-(?:admission|manager)\b|\bgpushare\b|\bgpu-?fraction\w*|\bgpu-?mem(?:ory)?\b|\bgpumem\w*|\bKAI\b",
        r"\breservation pods?\b",
    ),
    "partitions": (r"\bMIG\b|\bmig[-.][\w.]+",),
    "mig manager": (r"\bmig-manager\b|\bmig-parted\b|\bmig\.config\S*|\bMIG (?:manager|config\w*|layout|profile)",),
    "sharing": (
        r"\btime[- ]?slic\w+|\bMPS\b|\bshared replicas\b",
        r"\breplicas (?:per|of|for) (?:\w+ ){0,2}?(?:GPUs?|cards?|devices?)\b",
    ),
    "figures": (
        r"\b(?:usage|util\w+) (?:panel|chart|graph)s?\b|\bscrap(?:e|es|ed|ing)\b",
        r"\bdcgm\S*|\bDGCM\b|\bDCGM_\w+|\bexporters?\b|\bmetrics?\b|\bGrafana\b|\bPrometheus\b|\bdashboards?\b",
        r"\b(?:Service|Pod)Monitors?\b|\btelemetry\b|\bmetic-names\b",
    ),
    "whose": (
        r"\bexported_pod\b|\bpod\b[^.;]{0,30}\blabels?\b|\blabels?\b[^.;]{0,30}\bpods?\b",
        r"\b(?:namespace|container)\b[^.;]{0,30}\b(?:labels?|empty)\b|\bpods?\b[^.;]{0,20}\b(?:namespace|container)s?\b",
        r"\b(?:namespace|container)s?\b[^.;]{0,20}\bpods?\b",
    ),
    "quota": (r"\bresource ?quota\w*|\bquotas?\b|\u914d\u989d",),
    "unhealthy": (r"\bunhealthy\b|\bXid \d+|\b(?:an|the|some) Xids?\b",),
    "definitions": (r"\bCRDs?\b|\bcustom resource definitions?\b",),
    "policies": (r"\b(?:cpu|memory|topology)[ -]?manager\w*",),
    "alignment": (r"\bNUMA\b|\btopology[ -]?manager\b|\bTopology ?Affinity ?Error\b",),
    **TOPICS_OF_CLUSTER,
    **TOPICS_OF_MACHINE,
    **TOPICS_OF_CONTAINERS,
    **TOPICS_OF_PROGRAMS,
}

# One of them is in whatever is worth a look. Cheap, since every piece is asked.
_WORTH = (
    b"gpu", b"nvidia", b"kubelet", b"plugin", b"mig ", b"mig-", b"queue", b"volcano", b"claim", b"karpenter",
    b"autoscal",
    b"dcgm", b"nfd", b"dra driver", b"hami", b" card", b"operator", b"daemonset", b"daemon set", b"scheduler",
    b"clusterpolicy", b"driver", b"nvlink", b"nvswitch",
    b"nouveau", b"rtx ", b"gtx ", b"geforce", b"tesla ", b"cuda", b"slurm", b"sbatch", b"gres",
    b"exporter", b"prometheus", b"node group", b"nodegroup", b"node pool", b"nodepool", b"pending", b"quota",
    b"podgroup", b"kueue", b"gang", b"toleration", b"taint", b"nodeselector", b"yunikorn",
    b"docker", b"podman", b" container", b"rdma", b"sriov", b"sr-iov", b"apptainer", b"singularity",
    b"configmap", b"device", b"reboot", b" restarted",
    b"feature.node", b"infiniband", b"connectx", b"mellanox", b"nodefeature",
    b"fabric manager", b"fabricmanager", b"gsp ", b"dkms", b"iommu", b"v100 ", b"a100 ", b"h100 ", b"h200 ",
    b"3090", b"4090", b"5090", b"5080", b"5070", b"vfio", b"passthrough", b"passed through", b"kernel module", b"lspci",
    b"nccl", b"torch", b"vllm", b"sglang", b"tensorflow", b"jax", b"shm", b"shared memory", b"memlock", b"infiniband",
    b"roce", b"mpi", b"allreduce", b"all_reduce", b"rank ", b"ranks", b"oomkill", b"ray ", b"nvshmem", b"libfabric",
    b" efa", b"gloo", b"horovod", b"deepspeed", b"triton", b"ollama", b"fsdp", b"ddp", b"all-reduce", b"collective",
    b"busbw", b"open files", b"ulimit", b"bf16", b"bfloat", b"fp8", b"p2p", b"peermem", b"gdr ", b"tcpx", b"calico",
    b"pids ", b"aarch64", b"bus bandwidth", b"mtu ", b"_ifname", b"master_addr", b"master_port", b"hostipc",
    b"dataloader", b"glibc", b"libcuda", b"training", b"inference", b"vram", b"kv cache", b"sm_", b"b200", b"b300",
    b"cudnn", b"multi-node", b"multinode", b"imex", b"nvls",
)  # fmt: skip
_PLAIN = str.maketrans({"*": None, "`": None, "\u2019": "'"})  # emphasis, code, a typographic apostrophe
# Long, and in the middle of a sentence.
_GOES_ON = re.compile(
    r"^.{45,}\b(?:the|an?|of|to|in|on|for|and|or|with|is|are|was|be|by|as|at|from|that|which|this|its?|their|not|no|can|"
    r"will|too|more|than|when|if|but|into|any|each|all|my|our|your|does|do|did|has|have|we|I|they)$|^.{45,},$",
    re.DOTALL,
)
MOST = 40  # lines of one piece that are read: a longer story is a document
# What a title begins with.
_TAG = (
    r"\[(?i:(?:bug|questions?|ci|help|feature|issue|discussion|usage|support|core|k8s|kubernetes|gpu)\b[^\]\n]*|"
    r"[a-z]{2,12} [a-z][^\]\n=:/]{3,60})\]"
)
_TITLE = re.compile(_TAG.encode())
# Lines that a program printed: logs, events, tables, documents, commands, labels and their values.
_PRINTED = re.compile(
    r"\s*(?:[IWEF]\d{4} |\[?\d{4}[-/]\d\d|\[ *\d+\.\d+\]|[A-Z][a-z]{2} +\d+ \d\d:|[{}<>#$|+]|\"|"
    rf"\[(?!{_TAG[2:]})|"
    r"(?:time|ts|level|msg|type|caller|logger)=|(?:Normal|Warning) {2,}|\S+: *$|[\w./-]+ ?[=:] ?\S+$|"
    r"[\w./-]+: ?(?:\{|\[.*\]$)|- (?=\S+:(?: |$)|[\"'{\[]|\S+$)|\S+\.(?:go|py|cc?|cpp):\d+)"
    r"|\s*[\w./\"-]+ *= *(?:[\"'{\[]|true\b|false\b|-?\d)"  # a configuration, whatever its remark says
    r"|\w+\{|\w+ *, *(?:gauge|counter|label|histogram)\b"
    r"|\S+[/ ]\S+ (?:created|labeled|configured|unchanged|deleted)$"
    r"|(?:slurm\w*|sbatch|srun|salloc): |\S+@\S+[:~]"
    r"|.*\bNCCL (?:INFO|WARN|TRACE)\b|This is usually caused by "
    r"|(?:INFO|DEBUG|WARN(?:ING)?|ERROR|FATAL)(?::[a-z_]|:? *\[?\d|[: ]+[\w/]+\.(?:py|cc|cpp|go)\b)"
    r"|.*\S {3,}\S+ {2,}\S|.*\b(?:err|msg|level|desc)=|[^ ]*:\d+:\d+ "
)
# What was wrong and is not, what may be, what somebody asks to be told.
_WELL = re.compile(
    r"\b(?:was|is|been|got) (?:fixed|resolved|solved)\b(?! (?:in size|at|to)\b)"
    r"|(?<!not working )(?<!n't working )(?<!not running )(?<!n't running )(?<!not work )(?<!n't work )"
    r"\bas (?:expected|it should)\b"
    r"(?!.*\b(?:but|only|missing|however|whereas|while|others?)\b)"
    r"|\ball (?:are )?(?:healthy|ready)\b"
    r"|(?-i:\bPASS(?:ED)?\b)|\bdemonstrates that\b"
    r"|\b(?:works?|worked|runs?) (?:again|well|now)\b|\bsuccessful(?:ly)?\b|\bis optional\b|\bhow (?:do|can)\b"
    r"|^\W*how to\b|\bhow to\b[^.]*\?"
    r"|^(?:feat|fix|docs|chore)(?:\(\S+\))?!?:",
    re.IGNORECASE,
)


_UNWELL = re.compile(
    r"(?:\b(?:not|never|cannot|unable to|fail\w* to)|n't) (?:\w+ ){0,4}successful(?:ly)?\b"
    r"|\b(?:only|until|unless|before|makes?|made) (?:\w+ ){0,8}?(?:works?|runs?) (?:again|well)\b",
    re.IGNORECASE,
)  # no good news, although it says so


@cache
def _compiled() -> tuple[tuple[tuple[str, re.Pattern[str]], ...], tuple[tuple[str, re.Pattern[str]], ...]]:
    """Topics of a sentence, and those of a whole text. Compiled for the first who tells something: most never do."""
    every = [(name, re.compile("|".join(patterns), re.IGNORECASE)) for name, patterns in TOPICS.items()]
    return tuple(one for one in every if one[0] not in TEXT_WIDE), tuple(one for one in every if one[0] in TEXT_WIDE)


def looks_like(head: bytes) -> object:
    if len(head) > LARGEST or (head[:1] in b"{[" and not _TITLE.match(head)):
        return False
    lower = head.lower()
    return any(word in lower for word in _WORTH)


def read(piece: Piece) -> Iterator[Fact]:
    if piece.pod:  # an event, or a log: a component's words
        return
    read_so_far = 0
    of_text: frozenset[str] | None = None
    for number, text in _thoughts(piece.text):
        if len(text) > LONGEST or text.count(" ") < FEWEST_WORDS - 1 or _WELL.search(_UNWELL.sub("", text)):
            continue
        if not (text := what_happened(text)):
            continue
        read_so_far += 1
        if read_so_far > MOST:
            return
        words = without_denied(text.translate(_PLAIN))
        of_sentence, wide = _compiled()
        if topics := frozenset(name for name, pattern in of_sentence if pattern.search(words)):
            if of_text is None:
                of_text = frozenset(name for name, pattern in wide if pattern.search(piece.text))
            origin = Origin(piece.source, KIND, text[:LONGEST_TEXT], line=number, node=piece.node, pod=piece.pod)
            yield Told(origin=origin, topics=topics | of_text)


def _thoughts(text: str) -> Iterator[tuple[int, str]]:
    """Lines that no program printed, with the number of the first. One that was only wrapped goes on in the next."""
    first, thought = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        told = "" if _PRINTED.match(line) else line.strip()
        if thought and _GOES_ON.search(thought) and told[:1].islower() and len(thought) + len(told) < LONGEST:
            thought = f"{thought} {told}"
            continue
        if thought:
            yield first, thought
        first, thought = number, told
    if thought:
        yield first, thought


TOLD = Format("somebody's own words", (), looks_like, read)
