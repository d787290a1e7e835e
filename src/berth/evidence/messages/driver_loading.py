"""Modules on their way into the kernel: modprobe and its like, what the kernel answers, and which kind, release or
firmware the card, the libraries and the module ask of each other."""

from berth.evidence.message import Message

_V = r"\d{3}\.\d+(?:\.\d+)?"
_PCI = r"(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?)"
_BREAK = r"(?:\\x0a|\s|NVRM:)+"  # the kernel's lines, as they are and as Talos prints them
_MODULE = r"['\"‘]?(?P<module>nvidia\w*(?:-\w+)?)(?:\.ko\S*)?['\"’]?"
# modprobe, insmod, systemd-modules-load, kmod of Go programs: all name the module before the reason.
_INSERT = (
    r"(?:could not insert(?: module)?|Failed to insert(?: module)?|Error inserting|could not load module|can't insert|"
    r"load) "
    rf"['\"]?(?:/\S*/)?{_MODULE}[^\n]*?"
)
_YOUNG = r"(?:Blackwell|Grace|B[123]00|GB\d{1,3}|GH200|RTX PRO|RTX[ -]?50)\b"
_FAILS = r"(?:cannot|can't|n't|not|fails?|failed|failing|refus\w*|reject\w*|unsupported)\b"
_COMPANION = r"(?:gdrdrv|nvidia[-_]fs|efa_nv_peermem)"

MESSAGES: tuple[Message, ...] = (
    Message(
        "modprobe.wrong_format",
        (
            "invalid module format", "exec format error", "version magic", "version of symbol module_layout",
            "no symbol version for module_layout",
            "unknown rela relocation", "not compiled with -mcmodel=kernel", "this_module section size must match",
        ),
        rf"{_INSERT}(?:Invalid module format|Exec format error)|"
        rf"(?P<module2>nvidia\w*): (?:version magic '(?P<built>[^']*?) ?' "
        rf"should be '(?P<running>[^']*?) ?'|"
        rf"(?:disagrees about version of symbol|no symbol version for) module_layout)|"
        r"(?P<module3>nvidia\w*): (?:module: )?Unknown rela relocation|"
        r"module: `nvidia\w*' likely not compiled with -mcmodel=kernel|"
        r"module (?P<module4>nvidia\w*): \S*this_module section size must match|"
        r"Kernel module load error: (?:Invalid module format|Exec format error)",
    ),
    Message(
        "modprobe.unknown_symbol",
        ("unknown symbol", "disagrees about version of symbol"),
        rf"{_INSERT.replace('nvidia', 'nvidia(?!.fs)', 1)}Unknown symbol|"
        rf"(?<![\w])(?P<module2>nvidia(?!_peermem|_fs)\w*): (?:Unknown symbol (?P<symbol>\w+)|disagrees about "
        r"version of symbol (?!module_layout)(?P<symbol2>\w+))|Kernel module load error: Unknown symbol|"
        # What puts modules in place for another kernel of the same release says it beforehand.
        r"/nvidia\w*(?:-\w+)?\.ko\S* needs unknown symbol",
    ),
    Message(
        "modprobe.not_found",
        ("module nvidia", "module 'nvidia", 'module "nvidia', "nvidia kernel module"),
        r"Module ['\"]?(?P<module>nvidia(?:[-_](?:uvm|modeset|drm|current|open|srv|legacy)[\w-]*)?)\W? not found"
        r"(?: in directory (?:/usr)?/lib/modules/"
        r"(?P<kernel>\S+))?|modinfo: ERROR: Module nvidia not found|"
        # The unit of Fedora's packages that goes over to the other driver then.
        r"NVIDIA kernel module (?:missing|not found)\b",
    ),
    # Modules of others that stand on the driver's symbols: built for one driver and kernel.
    Message(
        "modprobe.companion_fails",
        ("gdrdrv", "nvidia_fs", "nvidia-fs", "efa_nv_peermem"),
        r"(?P<module5>nvidia_fs|gdrdrv): module using GPL-only symbols uses symbols (?:(?P<symbol2>\w+) )?"
        r"from proprietary|"
        rf"Module (?P<module>{_COMPANION}) not found|"
        rf"(?:could not (?:insert|load)|failed to (?:load|insert))(?: module)? \W?(?:/?\S*/)?"
        rf"(?P<module2>{_COMPANION})|"
        rf"(?P<module3>{_COMPANION}): (?:no symbol version for|Unknown symbol|disagrees about version of symbol) "
        rf"(?P<symbol>\w+)|"
        rf"\bis (?P<module4>{_COMPANION})(?:\.ko)? (?:driver )?(?:installed and )?loaded\?",
    ),
    # What the driver's own modules need, and a kernel of few modules lacks.
    Message(
        "modprobe.dependency_not_found",
        ("module ipmi", "module i2c_core", "module drm", "module video", "module ecc", "module backlight"),
        r"FATAL: Module (?P<module>ipmi_msghandler|ipmi_devintf|i2c_core|drm\w*|video|ecc|backlight) not found"
        r"(?: in directory (?:/usr)?/lib/modules/(?P<kernel>\S+))?",
    ),
    # They are there, and refused: in a container mostly those of another kernel than the one that runs.
    Message(
        "modprobe.dependency_refused",
        ("insert 'ipmi_", "insert 'i2c_core", "insert 'drm", "insert 'video", "insert 'ecc"),
        r"could not insert '(?P<module>ipmi_\w+|i2c_core|drm\w*|video|ecc)': (?P<reason>Invalid argument|"
        r"Unknown symbol|Exec format error|Invalid module format|Key was rejected)",
    ),
    Message(
        "modprobe.no_such_device",
        "no such device",
        rf"{_INSERT}No such device|Kernel module load error: No such device|load nvidia\S* failed: no such device",
    ),
    Message(
        "modprobe.invalid_argument",
        "invalid argument",
        r"(?:could not insert|load) ['\"‘]?(?P<module>nvidia(?!.peermem)\w*(?:-(?!peermem)\w+)?)['\"’]?[^\n]*Invalid "
        r"argument",
    ),
    Message("modprobe.file_exists", "file exists", rf"{_INSERT}File exists"),
    # What the kernel answers else: why, its log says.
    Message(
        "modprobe.refused_otherwise",
        (
            "cannot allocate memory", "device or resource busy", "no such file or directory", "bad address",
            "input/output error", "package not installed", "function not implemented", "protocol error",
            "timer expired", "unknown error ", "bad message", "error running install command",
            "failed to initialize", "init failed",
            "rm_init_rm() failed", "cache allocation failed",
        ),
        r"(?:could not insert|Error inserting)(?: module)? ['\"‘]?(?:/\S*/)?"
        r"(?P<module>nvidia(?!.peermem|.fs)\w*(?:-\w+)?)(?:\.ko\S*)?['\"’]?[^\n]*?"
        r"(?P<reason>Cannot allocate memory|Device or resource busy|No such file or directory|"
        r"Bad address|Input/output error|Package not installed|Function not implemented|Protocol error|Timer expired|"
        r"Unknown error \d+|Bad message)|"
        # Its own words, before it has looked for a card.
        r"NVRM: (?P<reason3>failed to initialize (?:procfs|capabilities|IMEX channels|module)|nv-cap-drv init failed|"
        r"rm_init_rm\(\) failed|nvidia_\w+ cache allocation failed)|"
        r"Error running install command '[^'\n]*' for module (?P<module2>nvidia\w*): (?P<reason2>retcode \d+)",
    ),
    # Packages run it for a kernel whose modules are not on the disk.
    Message(
        "modprobe.depmod_fails",
        "depmod: ",
        r"depmod: (?:ERROR|FATAL): could not (?:open directory|search modules)(?:[: ]*/(?:usr/)?lib/modules/"
        r"(?P<kernel>[^\s:]+))?",
    ),
    # Where modules may come from the verified root only.
    Message(
        "modprobe.pinned",
        "loadpin: kernel-module denied",
        r"LoadPin: kernel-module denied obj=\"?[^\n]*nvidia",
    ),
    Message(
        "driver.peermem_failed",
        ("peermem", "nv_peer_mem", "ib_register_peer_memory_client", "nvidia-peermem"),
        r"failed to load nvidia-peermem module|nvidia-peermem module is not loaded(?!.{0,40}(?:DMA-?BUF))|"
        r"(?:could not insert|load|loading|inserting) \W?(?:nvidia[_-]peermem|"
        r"nv_peer_mem)\W?[^\n]*(?P<reason>Invalid argument|"
        r"Unknown symbol|No such device|Operation not permitted|Key was rejected|Exec format error|"
        r"Invalid module format)|"
        r"(?:nvidia_peermem|nv_peer_mem): (?:Unknown symbol|disagrees about version of symbol) (?P<symbol>\w+)|"
        r"Module (?:nvidia[-_]peermem|nv_peer_mem) not found",
    ),
    Message(
        "driver.mofed_waited_for",
        ("mellanox ofed and nvidia drivers", "mofed driver", "for mofed to be installed", "drivers/.driver-ready"),
        r"waiting for mellanox ofed and nvidia drivers to be installed|(?:failed to )?wait for MOFED driver|"
        r"MOFED drivers? (?:is |are )?not (?:ready|installed)(?!, skipping probe)|Waiting for MOFED to be installed|"
        r"/run/mellanox/drivers/\.driver-ready['’]?: No such file",
    ),
    Message(
        "driver.wrong_flavour",
        (
            "ready for use on data center", "open kernel", "supported by open", "nvrm: open nvidia.ko",
            "supported by the open", "include the required gpu", "open module",
            "open driver", "open variant", "open flav", "open nvidia", "open gpu", "open source", "proprietary",
            "closed-source", "closed source",
        ),
        rf"(?:The NVIDIA GPU {_PCI}[\s\S]*?)?(?:(?P<open>requires (?:the )?use of (?:the )?NVIDIA open kernel modules)|"
        r"(?P<closed4>Open nvidia\.ko is only ready for use on Data Center GPUs)|"
        r"(?P<closed>not supported by (?:the )?open(?:[\s\S]{0,20}nvidia\.ko| kernel modules?| nvidia)|"
        r"not supported by\s+NVRM: open nvidia\.ko|"
        r"does not include the required GPU(?:[\s\S]{0,20}System Processor)?))|"
        r"(?P<open2>(?:GPU|Blackwell|Grace|B\d{3}|GB\d{3}|GH200|RTX PRO|RTX 50\d0|sm_1\d\d)[^\n]{0,60}"
        r"(?:needs?|requires?|only works? with|only supported with)[^\n]{0,30}"
        r"open (?:NVIDIA )?(?:GPU |source )?(?:kernel )?(?:modules?|driver|variant|flavou?r))|"
        rf"(?P<open3>proprietary[^\n]{{0,40}}(?:modules?|drivers?|flavou?r|variant)[^\n]{{0,80}}{_YOUNG}[^\n]{{0,60}}"
        rf"{_FAILS}|{_YOUNG}[^\n]{{0,80}}{_FAILS}[^\n]{{0,40}}proprietary[^\n]{{0,20}}(?:modules?|drivers?|flavou?r)|"
        r"proprietary[^\n]{0,120}\bopen (?:kernel )?(?:modules?|drivers?|flavou?r|variant)[^\n]{0,40}\bworks?\b)|"
        r"(?P<closed3>open (?:NVIDIA )?(?:GPU )?kernel modules?[^\n]{0,60}(?:not support|unsupported)[^\n]{0,40}"
        r"(?:Pascal|Volta|Maxwell|P100|P4\b|P40|V100|GTX 10\d0))|"
        r"(?P<closed2>(?:Pascal|Volta|Maxwell|P100|P4\b|P40|V100|GTX 10\d0)[^\n]{0,60}"
        r"(?:not supported|not work|unsupported|needs?|requires?)[^\n]{0,40}"
        r"(?:open kernel modules?|open modules?|open driver|proprietary|closed[- ]source))",
        lines=5,
    ),
    # What chooses the kind for the driver container: cards of which some need this and some that one.
    Message("driver.kinds_mixed", "unsupported gpu topology", r"kernel module type: unsupported GPU topology"),
    Message(
        "driver.gpu_unsupported",
        (
            "not supported by the", "doesn't support ", "legacy", "guest driver is incompatible",
            "compatible vgpu driver", "vgpu", "incompatible guest/host drivers", "guest vgx version",
        ),
        rf"(?:The NVIDIA GPU {_PCI}[\s\S]*?)?(?:not supported by the{_BREAK}(?:NVIDIA{_BREAK})?(?P<driver>{_V})|"
        rf"supported through the{_BREAK}NVIDIA{_BREAK}(?P<branch>\d{{2,3}})\.?\w*{_BREAK}Legacy)|"
        rf"Driver version (?P<driver2>{_V}) doesn't support \w+ GPU|"
        r"Incompatible Guest/Host drivers|Guest VGX version is (?:older|newer)|"
        r"[Gg]uest driver is incompatible with host driver|cannot find match for compatible vgpu driver|"
        r"vGPU[^\n]{0,40}(?:guest|host)[^\n]{0,30}version mismatch",
        lines=6,
    ),
    Message(
        "driver.api_mismatch",
        "api mismatch",
        rf"API mismatch: (?:the|this) client (?:has the|"
        rf"'[^']*' \(pid \d+\)[\s\S]*?has the)(?: driver)? version (?P<client>{_V})"
        rf"(?:[\s\S]*?kernel module has the version (?P<module>{_V}))?|"
        rf"API mismatch: (?:the )?NVIDIA kernel module has version (?P<module2>{_V})[\s\S]*?has version "
        rf"(?P<client2>{_V})",
        lines=3,
    ),
    Message(
        "driver.gsp_firmware_missing",
        ("firmware load for nvidia/", "no firmware image found", "gsp_", "gsp firmware", "failed to load nvidia/"),
        rf"Direct firmware load for nvidia/(?P<version>{_V})/(?P<file>\S+) failed|No firmware image found|"
        rf"firmware: failed to load nvidia/(?P<version3>{_V})/(?P<file3>gsp_\S+) \(-2\)|"
        rf"loading \S*nvidia/(?P<version2>{_V})/(?P<file2>gsp_\S+) failed with error|"
        r"(?:gsp_\w+\.bin|GSP firmware)[^\n]{0,40}(?:not found|missing|no such file)",
    ),
    Message(
        "driver.firmware_path_kept",
        "search path is already configured",
        r"A search path is already configured in \S*firmware_class",
    ),
)  # fmt: skip
