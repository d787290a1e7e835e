"""Device rules of control groups, v1 and v2, and who manages them."""

from berth.evidence.message import Message

_LATER = (
    r"(?:after (?:some|a|a little) ?(?:time|while|period)|after (?:being |an? )?idle|after (?:a |an )?(?:period"
    r"|extended|long\w*)|after (?:run\w* )?(?:for )?(?:extended|long|several|some|many|a few|(?:about )?a couple of"
    r"|\d+) (?:periods?|hours|days)|after not using|after [^\n.]{0,30}\b(?:period of time|idle time))"
)
_WITHOUT = (
    r"(?:(?:revert|switch|fall|go)\w* (?:back )?to (?:using )?(?:only )?(?:the )?CPU"
    r"|only (?:uses|utili[sz]es) (?:the )?CPU"
    r"|(?:doesn'?t|does not|do not|not|no longer|fails to) (?:initiate|us(?:e|ing)|find|see|access) "
    r"(?:it )?(?:the )?GPU"
    r"|stops (?:using|accessing|running models (?:in|on)) (?:the )?GPU|using GPU, but not using it|CPU only)"
)

MESSAGES: tuple[Message, ...] = (
    # The program of cgroup v2 that lets devices through, when libnvidia-container extends it.
    Message(
        "cgroup.filter_rejected",
        (
            "last insn is not an exit",
            "load program:",
            "device filter",
            "bpf_prog",
            "cgroup_device programs",
            "crun: bpf ",
            "crun: ebpf not supported",
            "ebpf program",
        ),
        r"load program: (?P<why>[^\n]{0,160})|last insn is not an exit or jmp"
        r"|bpf_prog_query\(BPF_CGROUP_DEVICE\) failed(?:: (?P<why2>[\w ]+))?"
        r"|unable to (?:generate new|attach new|find any existing|detach) device filters?"
        r"|failed to call BPF_PROG_(?:ATTACH|DETACH)|could not get complete list of CGROUP_DEVICE programs"
        r"|crun: (?:bpf (?:create|query|attach|pin)\b[^\n]{0,120}|eBPF not supported)"
        r"|cannot (?:open existing|detach) eBPF program",
    ),
    # Its counterpart of cgroup v1, and hosts where the other version is in use.
    Message(
        "cgroup.allow_denied",
        (
            "devices.allow",
            "cgroup subsystem devices",
            "/sys/fs/cgroup/devices",
            "devices cgroup",
            "mountpoint for",
            "cgroup mountpoint",
            "failed to get device cgroup",
            "no cgroup filesystem mounted",
            "devices.deny",
            "device cgroup rules are not supported",
            "cgroup mount destination",
            "failed to write ",
        ),
        r"write error: \S*devices\.allow(?:: (?P<why>[\w ]+))?|cgroup subsystem devices not found"
        r"|open failed: /sys/fs/cgroup/devices\S*|write \S*devices\.(?:allow|deny): (?P<why2>[\w ]+)"
        r"|failed to write \W{1,3}[abc] [\d*]+:[\d*]+ [rwm]{1,3}\W|write to \W?/\S*/devices\.(?:allow|deny)\W"
        r"|\bopen /\S*/devices\.(?:allow|deny): (?P<why3>[\w ]+)"
        r"|Devices cgroup isn't mounted|cannot find cgroup mount destination"
        r"|device cgroup rules are not supported in rootless"
        r"|failed to get (?:the )?devices cgroup|failed to get device cgroup"
        r"|no cgroup filesystem mounted for the devices"
        r"|mountpoint for (?:cgroup|devices) not found|cgroup mountpoint does not exist",
    ),
    Message(
        "cgroup.driver_mismatch",
        (
            "for systemd cgroups, got",
            "cgroupspath to be of format",
            "cgroup driver",
            "systemdcgroup",
            "cgroup-parent for systemd",
        ),
        r"expected cgroupsPath to be of format \W*slice:prefix:name"
        r"|cgroup-parent for systemd cgroup should be a valid slice"
        r"|kubelet cgroup driver: \W*(?P<kubelet>\w+)\W* is different from \w+ cgroup driver: \W*(?P<runtime>\w+)"
        r"|cgroup drivers? (?:mismatch|differ|do not match)"
        r"|SystemdCgroup(?:\s*=\s*true)?\W+(?:is |was )?(?:missing|not set|absent|unset|lacking|not there)"
        r"|\b(?:without|lacks?|missing|no)\b(?: the)? SystemdCgroup",
    ),
    Message(
        "cgroup.exhausted",
        "/sys/fs/cgroup",
        r"mkdir (?P<path>/sys/fs/cgroup/\S+?): (?P<why>no space left on device|cannot allocate memory)",
    ),
    Message(
        "cgroup.not_applied",
        (
            "unable to apply cgroup configuration",
            "unable to start unit",
            "setting cgroup config for procho",
            "cgroup controller ",
            "sd-bus call: ",
            "cgroup is not empty",
            "cgroup unexpectedly frozen",
            "sys/fs/cgroup/cgroup.controllers",
            "crun: opening file `",
            "crun: writing file `",
            "crun: write to `/sys/fs/cgroup",
        ),
        r"unable to (?:apply cgroup configuration"
        r"|start unit \W*(?P<unit>[\w.:@-]+))(?:[^\n]*: (?P<why>[^\n:]{3,120}))?"
        r"|error setting cgroup config for procHooks process: (?P<why2>[^\n]{3,160})"
        r"|(?P<why3>the requested cgroup controller \W?\w+\W? is not available)"
        r"|(?P<why4>controller \W?\w+\W? is not available under /sys/fs/cgroup/cgroup\.controllers)"
        r"|crun: (?P<why7>(?:opening|writing) file `(?:/sys/fs/cgroup/\S+"
        r"|(?:memory|cpu|cpuset|pids|io|hugetlb)\.[\w.]+)`"
        r"[^\n]{3,80}|write to `/sys/fs/cgroup/[^\n]{3,160})"
        r"|crun: (?P<why5>sd-bus call: [^\n]{3,120})|(?P<why6>container's cgroup (?:is not empty|unexpectedly frozen))",
    ),
    # Somebody saw pods of the NVIDIA runtime end by themselves.
    Message(
        "cgroup.pods_killed",
        ("runtimeclass", "registered device plugin"),
        r"runtimeClass(?:Name)?\W+nvidia[^\n]*\b(?:killed|terminated|restarted|die)\b"
        r"|\bplugin\b[^\n]*\b(?:killed|terminated)\b[^\n]*Registered device plugin",
    ),
    Message(
        "cgroup.nvml_unknown",
        ("nvml: unknow", "nvml: error_unknown", "nvml initialize failed: unknow", "initialize failed: error_unknown"),
        r"^(?!.*\bCDI spec).*?\bNVML(?: initialize failed)?: (?:Unknow|ERROR_UNKNOWN\b)",
    ),
    # What a program sees of it: the file is there, and may not be opened by anybody.
    Message(
        "cgroup.open_refused",
        ("/dev/nvidia", "open /dev/pt"),
        # Making a device file is another matter (runtime.cli_denied). Terminals are refused with the rest.
        r"/dev/nvidia[\w-]*\W{1,2}, ?O_[A-Z|_]+[^\n]{0,20}= -1 EPERM"
        r"|(?<!mknod )(?<!mknod `)/dev/nvidia(?:ctl|\d+|-uvm)\W{1,3}Operation not permitted"
        r"|open /dev/(?:pts/\d+|ptmx): operation not permitted",
    ),
    Message(
        "cgroup.rules_dropped",
        ("devices.list", "daemon-reload", "daemon-reexec", "systemd[1]: re"),
        r"devices\.list\b[^\n]*(?:no longer|lacks|without|missing|gone|only)|systemctl daemon-re(?:load|exec)"
        r"|systemd\[1\]: Re(?:loading|executing)",
    ),
    Message(
        "cgroup.list_after_reload",
        "daemon-reload",
        r"[#$] (?:sudo )?systemctl daemon-reload[^\n]*\n(?:[^\n]*\n){0,2}?[^\n]*/devices\.list\b",
        lines=4,
    ),
    Message(
        "cgroup.said_revoked",
        ("daemon-reload", "daemon-reexec", "/dev/char", "time after", "while after", "hours after", "days after"),
        r"\b(?:lose|loses|lost|losing)\b[^\n]{0,40}\bGPUs?\b[^\n]{0,80}\bdaemon-re(?:load|exec)"
        r"|daemon-re(?:load|exec)\b[^\n]{0,80}\b(?:lose|loses|lost|losing)\b[^\n]{0,40}\bGPUs?\b"
        r"|\b(?:pods?|containers?)\b[^\n]{0,30}\b(?:lose|loses|lost|fails? to find)\b[^\n]{0,20}\bGPUs?\b[^\n]{0,30}"
        r"\b(?:some ?time|a while|hours|days) after\b[^\n]{0,20}\b(?:creat|start)"
        r"|\b(?:no|missing|without|lacks?)\b[^\n]{0,40}\b(?:symlinks?|links?)\b[^\n]{0,20}/dev/char\b",
    ),
    # As people tell it of containers that run for long.
    Message(
        "cgroup.said_lost_later",
        (
            "idle",
            "a while",
            "awhile",
            "period",
            "hours",
            "days",
            "some time",
            "sometime",
            "some while",
            "somewhile",
            "little time",
            "little while",
            "after a time",
            "after atime",
            "after a long",
            "after an long",
            "after a extended",
            "after an extended",
            "after long",
            "after extended",
            "after not using",
        ),
        r"^(?=.*(?i:container|docker|ollama|\bpods?\b|restart))"
        rf".*?(?:\b{_LATER}\b[^\n]{{0,120}}\b{_WITHOUT}\b|\b{_WITHOUT}\b[^\n]{{0,80}}\b{_LATER}\b)",
    ),
    # The pod's own process, which holds its namespaces, has been ended before its containers were made.
    Message(
        "cgroup.sandbox_ended",
        ("lstat on namespace path", "sandbox container task"),
        r"running lstat on namespace path \W*/proc/\d+/ns/|failed to get sandbox container task: no running task found",
    ),
)
