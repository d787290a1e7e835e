"""What people write about a driver that does not load, fit, or go away: reports and comments, in no fixed words."""

from berth.evidence.message import Message

_V = r"\d{3}\.\d+(?:\.\d+)?"
_DRIVER = r"(?:nvidia|driver|kernel module|modules?|nvidia\.ko)"
_REFUSES = (
    r"(?:reject\w*|refus\w*|block\w*|prevent\w*|forbid\w*|den(?:y|ies|ied)|does ?n[o']t (?:let|allow)|disallow\w*)"
)

MESSAGES: tuple[Message, ...] = (
    Message(
        "driver.unsigned_told",
        ("secure boot", "secureboot", "lockdown", "unsigned", "not signed", "sign the", "signed kernel module failed"),
        rf"(?:secure ?boot|lockdown)[^\n]{{0,80}}{_REFUSES}[^\n]{{0,40}}{_DRIVER}|"
        rf"{_DRIVER}[^\n]{{0,80}}{_REFUSES}[^\n]{{0,60}}(?:secure ?boot|lockdown)|"
        rf"{_REFUSES}[^\n]{{0,40}}{_DRIVER}[^\n]{{0,60}}(?:secure ?boot|lockdown)|"
        rf"{_DRIVER}[^\n]{{0,60}}(?:cannot|can't|does ?n[o']t|not|fails? to) (?:be )?(?:load\w*|insert\w*)[^\n]{{0,60}}"
        r"(?:secure ?boot|lockdown)|(?:secure ?boot|lockdown)[^\n]{0,60}"
        rf"{_DRIVER}[^\n]{{0,30}}(?:cannot|can't|does ?n[o']t|not|fails? to) (?:be )?load|"
        rf"{_DRIVER}[^\n]{{0,30}}(?:is |are |was |were )?(?:unsigned|not signed)|"
        # The installer's own words.
        r"signed kernel module failed to load|kernel module failed to load[^\n]{0,10} secure ?boot is enabled",
    ),
    # Why the module does not get in, and who keeps it out.
    Message(
        "driver.selinux_told",
        "selinux",
        rf"\bSELinux\b[\w-]*[^\n]{{0,60}}{_REFUSES}[^\n]{{0,60}}(?:{_DRIVER}|\bload)|"
        rf"{_DRIVER}[^\n]{{0,80}}{_REFUSES}[^\n]{{0,40}}\bSELinux\b|"
        r"(?:caused by|because of|due to|reason (?:is|was)|culprit (?:is|was)|turned out to be|was|fault of)\W{1,2}"
        r"(?:a |an |the )?SELinux\b|\bSELinux\b[^\n]{0,20}\b(?:is|was) (?:the )?(?:cause|culprit|reason)",
    ),
    Message(
        "driver.held_told",
        (
            "be unloaded", "be upgraded", "be replaced", "be removed", "hold ", "holds ", "holding ", "wedged",
            "still us", "keep using", "keeps using", "unload",
        ),
        r"driver[^\n]{0,60}(?:cannot|can't|could not|couldn't) be (?:unloaded|upgraded|replaced|removed)|"
        rf"\b(?:hold|holds|holding) (?:on to |(?:an? )?references? (?:on|to) )?(?:the |an? )?"
        rf"(?:old |running |nvidia |kernel |gpu )*(?:{_DRIVER}|"
        rf"/dev/nvidia)|"
        r"(?:driver|nvidia\w*|module)[^\n]{0,40}wedged[^\n]{0,30}unload|wedged mid-unload|"
        r"(?:pods?|process\w*|DCGM|exporters?|clients?|workloads?)[^\n]{0,40}(?:still us\w+|keeps? using) (?:the )?"
        r"(?:old |nvidia |kernel )*(?:driver|modules?)|"
        r"(?:can't|cannot|could not|couldn't|unable to|fails? to) unload (?:the )?(?:old |nvidia |kernel )*"
        r"(?:driver|modules?)",
    ),
    Message(
        "driver.lost_told",
        (
            "lost after", "gone after", "missing after", "disappeared", "broken after", "broke after", "working after",
            "lost since", "gone since", "missing since", "broken since", "not rebuilt", "n't rebuilt", "not built for",
            "linux-modules-nvidia",
            "for the old kernel", "for another kernel", "for a different kernel", "for the previous kernel",
        ),
        rf"{_DRIVER}[^\n]{{0,40}}(?:(?:lost|gone|missing|broken|broke|working) after|(?:lost|gone|missing|"
        rf"broken) since|"
        r"disappeared)[^\n]{0,40}(?:kernel|OS\b|reboot|upgrade|update)|"
        r"linux-modules-nvidia\S*[^\n]{0,60}(?:not installed|missing|not available)|"
        rf"(?:kernel|OS)\b[^\n]{{0,60}}{_DRIVER}[^\n]{{0,40}}(?:not rebuilt|n't rebuilt|not built for|disappeared)|"
        rf"{_DRIVER}[^\n]{{0,60}}built for (?:the old|another|a different|the previous) kernel|"
        rf"{_DRIVER}[^\n]{{0,40}}(?:not rebuilt|n't rebuilt|not built for)[^\n]{{0,40}}(?:kernel|OS\b|update|upgrade)",
    ),
    Message(
        "driver.versions_told",
        ("module", "user space", "userspace", "libraries"),
        rf"(?:kernel )?modules?\b[^\n\d]{{0,30}}(?P<module>{_V})\b[^\n]{{0,80}}(?:librar\w+|user ?space|packages?|"
        rf"tools?|"
        rf"nvidia-smi|client|utils)[^\n\d]{{0,40}}(?P<client>{_V})\b|"
        rf"(?:librar\w+|user ?space|packages?|tools?|client|utils)[^\n\d]{{0,40}}(?P<client2>{_V})\b[^\n]{{0,80}}"
        rf"(?:kernel )?modules?\b[^\n\d]{{0,30}}(?P<module2>{_V})\b",
    ),
    Message(
        "driver.kind_told",
        ("proprietary", "closed-source", "closed source"),
        r"open[- ](?:source )?(?:GPU |kernel )*(?:modules?|driver)[^\n]{0,80}(?:hang|crash|fail|panic|freez|broken)\w*"
        r"[^\n]{0,80}(?:proprietary|closed[- ]source)[^\n]{0,40}(?:works?|fine|ok\b|does ?n[o']t|not affected|"
        r"no problem)|"
        r"(?:switch\w*|chang\w*|going) (?:back )?to (?:the )?(?:proprietary|closed[- ]source)[^\n]{0,60}(?:fix|"
        r"resolv|help|"
        r"solv|work)\w*|with the (?:proprietary|closed[- ]source)[^\n]{0,40}(?:it works|no (?:crash|hang|problem))|"
        # A form asks for it; who answers it says that it is so.
        r"^(?!.*\bconfirm this issue).*(?:does|did) ?n[o']t (?:happen|occur|reproduce|appear)[^\n]{0,20} with (?:the )?"
        r"(?:proprietary|closed[- ]source)",
    ),
    # Libraries of the driver carry its whole version in their names.
    Message(
        "driver.library_of_version_missing",
        ": cannot open shared object file",
        rf"(?P<library>lib(?:nvidia|cuda|EGL_nvidia|GLX?_nvidia|nvcuvid)[\w-]*\.so\.{_V}): "
        r"cannot open shared object file",
    ),
    Message(
        "driver.cuda_alone_fails",
        ("nvidia-smi works", "nvidia-smi is fine", "nvidia-smi runs", "nvidia-smi looks"),
        r"\bCUDA\b[^\n]{0,60}\b(?:fails?|not work\w*|n't work)[^\n]{0,20}\b(?:although|though|while|but)\b[^\n]{0,20}"
        r"nvidia-smi (?:works|is fine|runs|looks)|"
        r"nvidia-smi (?:works|is fine|runs|looks)[^\n]{0,30}\b(?:but|while|yet)\b[^\n]{0,20}\bCUDA\b[^\n]{0,40}"
        r"\b(?:fails?|not work\w*|n't work)",
    ),
    # That a release works says something only beside one that does not.
    Message(
        "driver.release_works",
        ("works ", "worked ", " works", " fine on ", " fine with "),
        rf"\b(?:works|worked)(?: fine| well| perfectly| again| correctly)? (?:on|with|in|under) (?:the )?"
        rf"(?:driver |version |release |nvidia |branch )*(?P<good>{_V})\b|"
        rf"\|\s*\**(?P<good2>{_V})\**\s*\|\s*\** ?works",
    ),
    # A machine that is not meant to have one, with an image that has the driver.
    Message(
        "context.machine_without_gpu",
        (
            "without a gpu", "without gpu", "without any gpu", "has no gpu", "have no gpu", "no gpu in", "no gpus in",
            "cpu-only", "cpu only", "non-gpu", ".large", "xlarge", ".medium", ".small", ".metal",
        ),
        r"\b(?:instances?|nodes?|machines?|servers?|VMs?|hosts?|workers?|type)\b[^\n]{0,30}\b(?:without (?:a |any )?"
        r"GPUs?|(?:has|have) no GPUs?)\b"
        r"|\bno GPUs? in (?:this|the|that) (?:instance|node|machine|server|VM|host)\b"
        r"|\b(?:CPU[- ]only|non-GPU) (?:instances?|nodes?|machines?|servers?|VMs?|hosts?|workers?)\b"
        r"|(?<![\w.])(?:t[23]a?|m[5-8][a-z]{0,2}|c[5-8][a-z]{0,2}|r[5-8][a-z]{0,2})(?:\.\d{0,2}xlarge|\.large|\.medium"
        r"|\.small|\.metal)\b",
    ),
    Message(
        "driver.space_told",
        "no space left on device",
        # Not of what container runtimes run out of: image stores, control groups, device filters.
        r"^(?!.*(?:\bpull|load program|/sys/fs/cgroup|nvidia-container|/var/lib/(?:containerd|docker|kubelet|rancher)))"
        r".*(?:nvidia|dkms|NVIDIA-Linux|libcuda\.so|/usr/src/nvidia|kernel module)[^\n]*No space left on device",
    ),
)  # fmt: skip
