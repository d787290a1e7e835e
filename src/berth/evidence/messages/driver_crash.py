"""A driver that fails by itself: what the kernel writes of its modules, and people of its releases."""

from berth.evidence.message import Message

_BRANCH = r"(?:39\d|4[1-7]\d|5[1-9]\d|6\d\d)"  # of drivers; other numbers of three digits are codes

MESSAGES: tuple[Message, ...] = (
    Message(
        "driver.oops",
        (
            "ubsan: ", "null pointer dereference", "unable to handle", "general protection fault", "kernel bug at",
            "rip: 0010:",
            "pc : ", "kernel panic", "list_del corruption", "list_add corruption", "refcount_t: ",
            "oops", "double fault", "kernel crash",
            "self-detected stall", "warning: cpu: ", "missing endbr: ", "soft lockup", "kernel memory exposure attempt",
            "kernel memory overwrite attempt", "invalid context", "scheduling while atomic",
        ),
        r"(?:NULL pointer dereference|unable to handle (?:kernel )?(?:page fault|paging request|NULL)|"
        r"general protection fault|kernel BUG at|Oops:|list_(?:del|add) corruption|"
        r"refcount_t: [^\n]*(?:use-after-free|leaking memory)|double fault|kernel panic|"
        r"self-detected stall on CPU)[\s\S]*?"
        r"\b(?P<where>[\w.]+)\+0x\w+/0x\w+ \[(?P<module>nvidia\w*)\]|"
        r"WARNING: CPU: \d+ PID: \d+ at (?!.*\bdrm)\S*\.c:\d+ (?P<where4>\w+)\S* \[(?P<module6>nvidia\w*)\]|"
        # Indirect branch tracking: a module that was not built for it.
        r"Missing ENDBR: _?(?P<where5>nv\w*|rm_\w+|_?nv\d+rm|port[A-Z]\w+|os_\w+|uvm_\w+|Nv\w+)\+0x|"
        r"soft lockup - CPU#\d+ stuck for \d+s! \[(?P<where6>nv_queue|nv_open_q|irq/\d+-nvidia|UVM [^\]]*)|"
        r"Kernel memory (?:exposure|overwrite) attempt detected [^\n]*'nvidia_\w+'|"
        r"nvidia\w*: BUG: (?:sleeping function called from invalid context|scheduling while atomic)|"
        # What the kernel checks of itself: an index or a shift that is out of range.
        r"UBSAN: [\w-]+ in \S*/(?P<module7>nvidia[\w-]*)/\S+|"
        r"RIP: 0010:(?P<where2>\S+) \[(?P<module2>nvidia\w*)\]|"
        r"pc : (?P<where3>\S+) \[(?P<module3>nvidia\w*)\]|"
        r"(?:kernel panic|kernel oops|kernel crash)[^\n]{0,80}\b(?P<module4>nvidia(?:_uvm|_drm|_modeset|-uvm|-drm|"
        r"-open)?)\b|"
        r"\b(?P<module5>nvidia(?:_uvm|_drm|_modeset|-uvm|-drm|-open)?)\b[^\n]{0,80}(?:kernel panic|kernel oops|"
        r"kernel crash|Oops)",
        lines=30,
    ),
    # Chips with fewer engines than the release counts on.
    Message(
        "driver.engine_missing",
        "cannot initialize gsp-rm",
        r"missing (?P<engine>\w+) engine, cannot initialize GSP-RM",
    ),
    # A thread of the driver in the kernel that never rests.
    Message(
        "driver.thread_spins",
        ("nv_open_q", "nv_queue", "nvidia-modeset/kthread", "irq/", "uvm gpu"),
        r"\b(?P<thread>nv_open_q|nv_queue|nvidia-modeset/kthread\w*|irq/\d+-nvidia|UVM GPU\d+ \w+)\b[^\n]{0,60}"
        r"(?:\bstuck|busy[ -]loop|\bspin\w*|100 ?%|never (?:returns|recovers)|consum\w+ \d)",
    ),
    Message(
        "driver.bar_resize_fatal",
        ("resize pcie bars", "resize pcie bar"),
        r"(?:Fatal Error|failed) (?:while attempting )?to resize PCIe BARs?",
    ),
    # What people write of a driver that works in one version and not in another.
    Message(
        "driver.regression_told",
        (
            "66 days", "not found when using", "since we", "since upgrad", "since updat", "since switch",
            "since moving",
            "driver fail", "driver crash", "driver hang", "driver broke", "driver break", "driver does", "driver did",
            "driver stop", "driver 3", "driver 4", "driver 5", "driver 6", "branch 3", "branch 4", "branch 5",
            "branch 6", "release 3", "release 4", "release 5", "release 6", "regress", "downgrad", " works", " is fine",
            "driver we", "drivers we",
            "driver, we", "drivers, we", "made it work", "get it working", "work again", "driver bug",
            "faulting:", "affected:", "broken:", "failing:", "bad:",
        ),
        r"driver (?:fail|crash|hang|broke|break|does|did|stop)[^\n]{0,80}\b(?:from|since|after|starting|on|with|in) "
        rf"(?:the )?(?:driver |NVIDIA )?(?:branch |version |release |R)?(?P<bad>{_BRANCH}(?:\.\d+)*)\b|"
        rf"(?:driver|branch|release) (?P<bad2>{_BRANCH}(?:\.\d+)*)\b[^\n]{{0,80}}\b(?:fails?|broken|crash\w*|hangs?|"
        r"panics|"
        r"regress\w*|not work\w*|does ?n[o']t work)|"
        r"regress\w*[^\n]{0,80}\b(?P<bad3>\d{3}\.\d+(?:\.\d+)?)\b|"
        rf"(?P<good>{_BRANCH}(?:\.\d+)*)(?: driver| branch)?(?: works|"
        rf" is fine)[^\n]{{0,40}}\b(?P<bad4>{_BRANCH}(?:\.\d+)*)\b"
        r"[^\n]{0,20}(?:fails?|does ?n[o']t|crash|hang|broken)|"
        r"(?:gone|went away|go(?:es)? away|fix\w*|resolv\w*|solv\w*|disappear\w*)[^\n]{0,30}(?:after|by|with) "
        r"downgrad\w+[^\n]{0,40}\b(?P<good5>\d{3}(?:\.\d+)+)|"
        r"(?:nvidia\w*|driver|GPUs?|nodes?)\b[^\n]{0,80}\bsince (?:we \w+|upgrading|updating|switching|moving) to "
        r"(?:the )?(?:driver |NVIDIA )*(?P<bad8>\d{3}\.\d+(?:\.\d+)?)|"
        r"downgrad\w+[^\n]{0,40}\b(?P<good2>\d{3}(?:\.\d+)+)\b[^\n]{0,40}(?:fix\w*|help\w*|works?|solve\w*|resolve\w*)|"
        rf"with (?:the )?(?P<bad5>{_BRANCH})(?:\.[\dx.]+)? (?:driver|drivers|driver,|drivers,) we[^\n]{{0,20}}"
        r"(?:can't|cannot|fails?|does ?n[o']t|do not|don't|could ?n[o']t)|"
        r"(?:made it work\w*|works? again|get it working) with (?:the )?(?:driver )?(?P<good3>\d{3}(?:\.[\dx]+)+)|"
        r"regression (?:in|of|with) (?:the )?(?:NVIDIA )?driver|"
        # A counter of 570 and 575 runs over after 66.5 days on machines with NVLink 5.
        r"\b66 days[^\n]{0,120}?(?:driver|nvidia)\W[^\n]*?(?P<bad6>\d{3}\.\d+(?:\.\d+)?)|"
        r"not found when using (?:the )?(?:nvidia-driver-)?(?P<bad7>\d{3})(?:[^\n]{0,80}? found when using "
        r"(?:the )?(?:nvidia-driver-)?(?P<good4>\d{3}))?|"
        # Two lists of releases.
        r"\b(?:Faulting|Affected|Broken|Failing|Bad): (?P<bad9>\d{3}\.\d+(?:\.\d+)?)\b[^\n]*?"
        r"\b(?:Clean|Unaffected|Working|Good|OK|Fine): (?P<good6>\d{3}\.\d+(?:\.\d+)?)|"
        r"(?<!not a )(?<!no )driver (?:bug|regression)\b",
    ),
)  # fmt: skip
