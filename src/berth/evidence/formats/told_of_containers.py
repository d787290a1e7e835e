"""What a line in somebody's own words may speak of: container engines, what hands GPUs to them, devices of a plugin."""

_NOT = (
    r"\b(?:not|n[o']t|never|no longer|cannot|can't|isn't|aren't|wasn't|doesn't|don't|didn't|won't|unable to|"
    r"fails? to|failed to|failing to)\b"
)
_GPU = (
    r"(?:\bGPUs?\b|\bCUDA\b|\bgraphics cards?\b|/dev/nvidia\w*|\bnvidia[- ]smi\b|\bNVML\b|"
    r"\bnvidia (?:cards?|devices?|GPUs?)\b|nvidia\.com/gpu=\w+)"
)
_SEEN = (
    r"(?:see|seen|find|found|detect\w*|recogni[sz]\w*|access\w*|us(?:e|ed|ing|able)|visible|available|pick\w*|"
    r"work\w*|reach\w*|list\w*|there|show\w*|expos\w*|pass\w*|mount\w*|run|load\w*|initiali[sz]\w*)\b"
)
_INSIDE = (
    r"\b(?:inside|within|in|into|from|to)\b(?: \w+){0,4}? "
    r"(?:containers?|docker|podman|pods?|image|sandbox|apptainer|singularity)\b"
)

TOPICS_OF_CONTAINERS: dict[str, tuple[str, ...]] = {
    # Who starts containers, and what gives them GPUs.
    "engine": (
        r"\b(?:docker(?:d|-ce)?|podman|nerdctl|containerd|cri-?o|crun|runc|buildah|lx[cd]|incus|charliecloud|"
        r"distrobox|toolbx|moby|dind|gvisor|runsc|kata)\b",
    ),
    "hpc engine": (r"\b(?:apptainer|singularity(?:ce)?|enroot|pyxis|shifter|sarus)\b|--nv\b|--rocm\b",),
    "compose": (r"\b(?:docker[- ]compose|compose file|compose\.ya?ml|compose v?\d)\b",),
    "swarm": (r"\bswarm\b|\bgeneric[- ]resources?\b|\bswarm-resource\b|\bDOCKER_RESOURCE_\w+",),
    "gpu toolkit": (
        r"\bnvidia[- ]container[- ](?:toolkit|runtime|cli)\S*|\bnvidia[- ]docker2?\b|\blibnvidia-container\S*|"
        r"\bnvidia-ctk\b|\bcontainer[- ]toolkit\b|\bamd-container-\w+",
    ),
    "nvidia runtime": (r"\bnvidia (?:container )?runtime\b|\bruntime:? ?=?nvidia\b|--runtime[= ]nvidia\b",),
    "cdi": (r"\bCDI\b|\bcontainer device interface\b|nvidia\.com/gpu=\w+",),
    "in container": (
        _INSIDE,
        r"\b(?:containers?|docker|podman)(?:'s)? (?:does|do|is|are|can|could|cannot|can't|gets?|has|have|sees?"
        r"|don't|doesn't)\b",
        r"\bpods? (?:can ?not|can't|could not|does not|doesn't|do not|don't|loses?|lost|sees? no|has no|have no) ",
    ),
    "nested": (
        r"\bdocker[- ]in[- ]docker\b|\bdind\b|\blx[cd]\b|\bincus\b|\bnested\b|\b(?:kind|k3d|minikube) (?:cluster"
        r"|node)s?\b|"
        r"\binside (?:of )?(?:a |an )?(?:lx[cd]|proxmox|kind|k3d|minikube)\b",
    ),
    "image build": (
        r"\b(?:docker|podman|image|buildx?) build\w*\b|\bduring (?:the )?(?:image )?build\b|\bbuildkit\b|\bbuildx\b|"
        r"\bbuild[- ]time\b|\bDockerfile\b.{0,30}\bRUN\b",
    ),
    "wsl": (r"\bWSL ?2?\b|\bdocker desktop\b|/usr/lib/wsl\b",),
    "snap": (r"\bsnap\b|\bsnapd\b|\bsnap-\w+",),
    "rootless": (r"\brootless\b|\bunprivileged\b|\bnon-?root\b|\buser namespaces?\b|\buserns\b",),
    "not allowed": (
        r"\b(?:not|n't) (?:be |being )?(?:allowed|permitted|authori[sz]ed|likely to work|supported)\b|\bmay not\b|"
        r"\b(?:no|insufficient|missing|without) (?:permissions?|rights?|privileges?)\b|\b(?:permission"
        r"|access) denied\b|\bpermissions? (?:errors?|problems?|issues?)\b|\b(?:cannot|can't|could not) write\b",
    ),
    "mandatory control": (r"\bSELinux\b|\bAppArmor\b|\bseccomp\b|\blabel=disable\b|\benforcing mode\b",),
    # The limits of a container that runs are set anew, and with them its device rules.
    "container update": (
        r"\b(?:docker|podman|nerdctl|crictl) (?:container )?update\b",
        r"\b(?:updat|chang)(?:es|ed|ing) (?:the |its )?(?:\w+ )?(?:resources|limits|quota) of (?:a |the )?"
        r"(?:running |live )?container\b",
    ),
    "control groups": (
        r"\bcgroups?(?: ?v?[12])?\b|\bDeviceAllow\b|\bno-cgroups\b|\bdevices\.(?:allow|list)\b|\bdaemon-reload\b",
    ),
    "device library": (
        r"\blib(?:cuda|nvidia|nvrm|nvoptix|nvcuvid)\w*\b|\bld\.so\.(?:cache|conf)\b|\bldconfig\b|\bldcache\b"
        r"|\bdriver libraries\b",
    ),
    # States.
    "no gpu inside": (
        rf"{_GPU}[^.;]{{0,60}}?{_NOT} (?:be |being |get |been |even |get to )?{_SEEN}",
        rf"{_NOT} (?:be able to )?{_SEEN}[^.;]{{0,40}}?{_GPU}",
        rf"\b(?:no|without|missing|lacks?|lost) (?:any |the |its |access to (?:the )?)?{_GPU}",
        r"\bCUDA is not available\b|\btorch\.cuda\.is_available\(\)[^.;]{0,20}\bFalse\b"
        r"|\bfalls? back to (?:the )?CPU\b",
        r"\b(?:nvidia-smi|CUDA|NVML)\b[^.;]{0,40}?\b(?:errors?|fails?|failed|crash\w*|broken|unknown error)\b",
    ),
    "loses it": (
        r"\b(?:containers?|pods?|nodes?|notebooks?|servers?|jobs?|services?|workloads?)\b[^.;]{0,60}?\b(?:los(?:es?"
        r"|t|ing))\b[^.;]{0,30}?"
        r"(?:\baccess\b|\bGPUs?\b|\bCUDA\b|\bdevices?\b)",
        r"\baccess to (?:the |its |all )?GPUs? (?:is|was|gets?) (?:\w+ )?lost\b",
        r"\b(?:los(?:es?|t|ing)) (?:its |their |the |all )?(?:access|GPUs?|connection"
        r"|visibility)\b[^.;]{0,40}\bGPUs?\b",
        r"\bGPUs?\b[^.;]{0,50}?\b(?:disappear\w*|vanish\w*|go(?:es)? away|drops?|"
        r"(?:becomes?|became|goes|went|is suddenly|turns) (?:unavailable|inaccessible|unusable|unreachable|missing)"
        r")\b[^.;]{0,40}?"
        r"\b(?:from|inside|in)\b[^.;]{0,20}\b(?:containers?|pods?)\b",
    ),
    "sees too many": (
        r"\b(?:sees?|seen|shows?|expos\w+|visible|access|lists?|gets?|finds?)\b[^.;]{0,30}?"
        r"\b(?:all|every|other|both)\b[^.;]{0,12}?\bGPUs?\b",
        r"\b(?:all|every|both) (?:of )?(?:the )?(?:\w+ )?GPUs?\b[^.;]{0,40}?\b(?:visible|exposed|seen|accessible|"
        r"listed|shown|available)\b",
        r"\b(?:one|1|a single) GPU\b[^;]{0,60}?\b(?:sees?|shows?|lists?|has)\b[^;]{0,12}?\b(?:[2-9]|two|all|both|every"
        r"|more)\b",
    ),
    "unasked": (
        r"\b(?:without|no|not|n't|zero|none) (?:\w+ ){0,3}?(?:request\w*|ask\w*|allocat\w+|limits?)\b",
        r"\b(?:request\w*|ask\w*(?: for)?|limits?) (?:of )?(?:zero|none|no|0|one|1|a single|only)\b",
        r"\bnvidia\.com/gpu\W{1,4}0\b|\bgot one\b|\bNVIDIA_VISIBLE_DEVICES\b[^.;]{0,30}?"
        r"\b(?:not (?:being )?(?:respected|honou?red)|ignored|no effect)",
        r"\bregardless of\b",
    ),
    "kubelet home": (
        r"--root-dir\b|\bkubelet'?s? (?:root|data|home|base|working)[- ]?(?:dir(?:ectory)?|path|folder)\b"
        r"|\broot[- ]dir(?:ectory)? of (?:the )?kubelet\b|\bkubelet[^.;]{0,30}?\b(?:under|in) /(?!var/lib/kubelet\b)\S+"
        r"|\bkubelet (?:container|snap)\b",
    ),
    "plugin socket": (
        r"\bdevice-plugins\b|\bplugins_registry\b|\b(?:kubelet|nvidia|nvidia-gpu|gpu)\.sock\b",
        r"\bplugin(?:'s)? sockets?\b|\bpod-resources\b",
    ),
    "not handed in": (
        r"\b(?:not|n't|never) (?:be |being |get |getting )?(?:inject|mount|pass|bound|bind|provid|cop|brought)\w*",
    ),
    "kept": (
        r"\b(?:stays?|remains?|still|not (?:being )?(?:released|freed|returned|given back))\b[^.;]{0,60}"
        r"\b(?:allocated|used|occupied|held|in use|counted|reserved|released|freed)\b",
        r"\b(?:not|n't|never) (?:be |been |being )?(?:released|freed|returned|given back)\b",
    ),
    "pod is gone": (
        r"\bpods?\b[^.;]{0,40}\b(?:deleted|gone|finished|completed|terminated|removed|ended|exited|killed)\b",
        r"\bno (?:\w+ )?pods? (?:is |are |that |which )?(?:\w+ing|use\w*|left)\b|\bdelet\w+ (?:the |all "
        r"|a )?(?:\w+ )?pods?\b",
    ),
    "node is down": (r"\bNotReady\b|\bnot ready\b|\bnode\b[^.;]{0,30}\b(?:down|unreachable)\b",),
    "after a while": (
        r"\bafter (?:a |some |several |few |random |an? (?:few|random|certain) )*(?:while|time|hours?|days?"
        r"|minutes?|weeks?|period)\b"
        r"|\b(?:eventually|randomly|sporadic\w*|intermittent\w*|at random)\b|\bdaemon-reload\b|\bfor a (?:while"
        r"|few \w+)\b|\b(?:a few|several|some|many|\d+) (?:hours?|days?|minutes?|weeks?) (?:after|later)\b"
        r"|\bdocker update\b",
    ),
    "host is well": (
        r"\b(?:host|outside|bare[- ]metal|on the (?:node|machine|server))\b[^.;]{0,60}?\b(?:works?|fine|ok|well"
        r"|correctly|properly|"
        r"shows?|sees?|can)\b",
        r"\b(?:works?|fine|ok|well)\b[^.;]{0,40}?\b(?:on|from) (?:the )?(?:host|bare[- ]metal|node|machine)\b",
    ),
    "not installed": (
        r"\b(?:not|n't|never|isn't|wasn't) (?:been |be |get |properly |correctly )?install\w*|\bno (?:such )?package\b"
        r"|\bmissing (?:packages?|dependenc\w+)\b|\b(?:forgot|had|have|need(?:ed|s)?|required) to (?:re-?)?install\b"
        r"|\b(?:re-?)?install(?:ing|ed)?\b[^.;]{0,40}\b(?:solv\w+|fix\w+|help\w+|work\w*)\b",
    ),
    # Devices of plugins that hand out no GPUs: networks first of all.
    "network device": (
        r"\b(?:RDMA|SR-?IOV|VFs?|virtual functions?|HCAs?|InfiniBand|RoCE|EFA|NICs?|mlx5\w*|ConnectX)\b|"
        r"\b(?:rdma|intel|mellanox|nvidia|openshift)\.?\w*/(?:hca|sriov|rdma|hostdev|mlnx|vf|resibp)\w*",
    ),
    "resource none": (
        rf"\bresources?\b[^.;]{{0,60}}?(?:{_NOT} (?:be |being |get |been )?(?:found|shown?|list\w*|there|in|on"
        rf"|appear\w*|expos\w*|"
        r"advertis\w*|add\w*|configur\w*|available|allocatable|visible|report\w*|registered)\b|\b(?:is|are|to|at|="
        r"|:) ?(?:0|zero)\b|\bmissing\b)",
        r"\bno (?:\w+ )?resources?\b[^.;]{0,40}\b(?:found|node|capacity|allocatable|available)\b",
        r"\b(?:not|n't) (?:acknowledge|advertise|expose|report|show|list|register|discover|find)\w*\b[^.;]{0,50}?"
        r"\b(?:resources?|capacity|allocatable)\b",
        r"\b(?:capacity|allocatable)\b[^.;]{0,30}?\b(?:is|are|to|at|shows?|=|:|of|being) ?(?:0|zero|none)\b",
        r"\b(?:find|found|see|seen|shown?|list\w*|there)\b[^.;]{0,20}\b(?:not|n't)\b[^.;]{0,20}\b(?:capacity"
        r"|allocatable)\b",
    ),
}
