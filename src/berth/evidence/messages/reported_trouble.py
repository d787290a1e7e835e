"""A line in which a person tells of trouble with device plugin or kubelet, whatever it is: the least that can be known.

Prose only: what a component writes has a message of its own. Other parts that are named beside the plugin (runtime,
driver, claims) are more probably what the line is about.
"""

from berth.evidence.message import Message

_LOG = (
    r"[IWEF]\d{4} |\d{4}[-/]\d\d|[{\[<#-]|[A-Z][a-z]{2} +\d+ \d\d:|"
    r"(?:time|ts|level|msg|type|caller)=|\w+: *$|(?:Normal|Warning) |"
    r"(?:Note|Which|How|What|Is|Does|Can|Should)\b"
)
_OF_OTHERS = (
    r"\b(?:CNI|CRI|NCCL|net|network|DRA|CSI|storage|kubectl|scheduler|krew|TensorRT|containerd|docker|helm|buildx"
    r"|Slurm|"
    r"SPANK|maven|gradle|webpack|vite|babel|eslint|npm|jenkins|terraform|grafana|mkdocs|build) ?plugins?\b|"
    r"\b(?:DRA|ResourceClaims?|claims?|ResourceSlices?|CDI|validator|toolkit|driver|ClusterPolicy|containerd|runtime|"
    r"libnvidia\S*|NCCL|nouveau|modprobe|kubevirt|vfio\S*|exporter|dcgm\S*)\b"
)
_WELL = (
    r"\b(?:no (?:errors?|failures?|problems?|restarts)|without (?:any )?(?:errors?|problems?|trouble)|(?:works?|ran) "
    r"(?:fine|again|now|well)|and works|all (?:are )?healthy|re-registered|been replaced|is ready|(?:is|are) back|fine|"
    r"(?:was|is|been) fixed|as expected|should|must|may|can be|optional)\b"
)
_SUBJECT = (
    r"\b(?:\w+-)?plugins?\b|\bdevice ?manager\b|\ballocatable\b|\bdevice allocations?\b|"
    r"\bMPS (?:control|daemon|client|server)|\bgpu\.shared\b|\btime-?slic\w+|\bcapacity fl[ai]ps\b"
)
_TROUBLE = (
    r"\b(?:neglect\w*|forg[eo]t\w*|refus\w+|reject\w*|fail(?:s|ed|ing)?|crash\w*|cannot|can't|unable|missing|stale"
    r"|wrong|stuck|lost|deadlock\w*|"
    r"fights?|hangs?|hung|leak\w*|does not(?! support)|doesn't|do not|don't|did not|didn't|is not|isn't|was not|"
    r"wasn't|instead of|denied|SIGTERM\w*|mismatch\w*|fl[ai]p\w*|nil pointer|panics?|killed|ignor\w+|"
    r"(?:still|only) (?:shows?|sees?|hands?)|restarts? (?:when|each|every|loop)\w*|errors?|never|sees no|has no|loses?|"
    r"repeats?|blocked|unknown field|(?:shows?|still|is|at) 0|gets? no|invalid|unexpectedly|deadline|not found|"
    r"forgotten|double|until .{0,20}restart\w*|health=false|\d{2,} restarts|not permitted|"
    r"(?:holds?|keeps?) (?:the )?old|both use|gone from|"
    r"(?:registers?|advertises?|offers?|shows?|reports?) nothing|"
    r"undefined symbol|vanish\w*|disappear\w*|withdrew|needs? privileged|no nvidia\.com/)\b"
)

MESSAGES: tuple[Message, ...] = (
    Message(
        "reported.plugin_trouble",
        (
            "plugin",
            "device manager",
            "devicemanager",
            "allocatable",
            "device allocation",
            "mps control",
            "mps daemon",
            "mps client",
            "mps server",
            "gpu.shared",
            "time-slic",
            "timeslic",
            "capacity flips",
            "capacity flaps",
        ),
        rf"^(?!\s*(?:{_LOG}))(?!.{{500}})(?!.*?(?:{_OF_OTHERS}))(?!.*?(?:{_WELL}))(?=.*?{_TROUBLE})"
        r"(?=.*?\b(?:GPUs?|v?gpu|nvidia\.com/\S+|nvidia-device\S*|amd\.com/\S+|kubelet|MIG|MPS|devices?"
        r"|ListAndWatch|Xid|DaemonSet|hostPath|socket|"
        r"time-?slic\w*|failOnInitError)\b)"
        rf".*?(?:{_SUBJECT})",
    ),
)
