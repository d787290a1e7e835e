"""The machine: what hangs, heats up, lacks power or remembers wrongly, in the words of tools and of people."""

from berth.evidence.message import Message

_GPU_TOOL = r"(?:nvidia-(?:smi|container-cli|persistenced|bug-report\S*)|dcgm\S*|nv-hostengine|nvc:\S*)"

_MEMORY = (
    Message(
        "host.remap_pending",
        ("remapped rows", "remapped_row_pending", "row_remap_pending", "row remap"),
        r"Remapped Rows[\s\S]{0,300}?\bPending\s*:\s*Yes|<remapped_row_pending>\s*Yes|"
        r"ROW_REMAP_PENDING(?:_\w+)?(?:\{[^}]*\})?\s*[=:]?\s*[1-9]|row[ -]remap(?:ping|s)?(?: is| are)? pending",
        lines=8,
    ),
    Message(
        "host.remap_failed",
        (
            "remapping failure occurred",
            "remapped_row_failure",
            "row_remap_failure",
            "row remap",
            "row-remap",
            "nvidiarowremapfailure",
        ),
        r"Remapping Failure Occurred\s*:\s*Yes|<remapped_row_failure>\s*Yes|"
        r"ROW_REMAP_FAILURE(?:_\w+)?(?:\{[^}]*\})?\s*[=:]?\s*[1-9]|"
        r"row[ -]remap(?:ping)?[ -]fail(?:ure|ed)(?! (?:occurred)?\s*: *(?:No|0))|NvidiaRowRemapFailure",
    ),
    Message(
        "host.retirement_pending",
        ("pending page", "page retirement", "retired_pending", "<pending_blacklist>", "<pending_retirement>"),
        r"Pending Page (?:Blacklist|Retirement)\s*:\s*Yes|<pending_(?:blacklist|retirement)>\s*Yes|"
        r"RETIRED_PENDING(?:_\w+)?\{[^}]*\}\s+[1-9]|page retirement(?: is)? pending|pending page retirement",
    ),
    # A section without its heading: what was counted since the driver was loaded.
    Message(
        "host.ecc_volatile",
        "volatile",
        r"Volatile(?:(?!Aggregate)[\s\S]){0,250}?(?:DRAM|SRAM) Uncorrectable[\w -]*?\s*:\s*(?P<count>[1-9]\d*)",
        lines=8,
    ),
    Message(
        "host.recovery_action",
        "recovery action",
        r"GPU Recovery Action\s*:\s*(?P<action>Reset|Reboot|Drain P2P|Drain and Reset)\b",
    ),
    Message(
        "host.firmware_outdated",
        ("bios", "firmware"),
        r"(?:fixed|solved|resolved|gone|until|helped)[^\n]{0,30}(?:BIOS|firmware) (?:was |is )?(?:updat|upgrad)\w+|"
        r"(?:BIOS|firmware) (?:update|upgrade)[^\n]{0,30}(?:fix|solv|resolv|help)\w*|outdated (?:S|V)?BIOS|"
        r"(?:GPU|VBIOS|SBIOS|BIOS) firmware bug",
    ),
    Message(
        "host.sram_threshold",
        ("sram threshold exceeded", "sram_threshold_exceeded"),
        r"SRAM[ _]Threshold[ _]Exceeded\W+(?:Yes|1|true)",
    ),
    Message(
        "host.ecc_uncorrected",
        (
            "double bit", "double-bit", "ecc_dbe", "ecc_uncorrectable", "nvidiadoublebiterror",
            *(f"uncorrectable {what}" for what in ("ecc", "memory", "dram", "sram", "hbm")),
        ),
        r"(?<!no )(?:double[ -]bit (?:ECC )?errors?|uncorrectable (?:ECC|memory|DRAM|SRAM|HBM) errors?)(?: \([^)]*\))?"
        r"(?: has| have| was| were)?(?: been)? (?:detected|encountered|occurred|found|reported)|"
        r"\b[1-9]\d* (?:volatile )?(?:double[ -]bit (?:ECC )?|uncorrectable (?:ECC|memory) )errors?|"
        r"CUDA_ERROR_ECC_UNCORRECTABLE|"
        r"ECC_DBE_VOL(?:_TOTAL)?\{[^}]*\}\s+[1-9]|NvidiaDoubleBitError",
    ),
)

_DEGREES = tuple(f"{degrees}{unit}" for degrees in range(90, 120) for unit in (" c", "°c", " °c", " degrees"))
_HEAT_AND_POWER = (
    Message(
        "host.hw_slowdown",
        (
            "hw slowdown", "hw thermal", "hw power brake", "hw_slowdown", "hw_thermal", "hw_power_brake", "_reason_hw_",
        ),
        r"(?P<reason>HW[ _](?:Thermal[ _]Slowdown|Power[ _]Brake(?:[ _]Slowdown)?|Slowdown))\W+Active\b|"
        r"<clocks_(?:throttle|event)_reason_(?P<xml>hw_\w+)>\s*Active|"
        r"(?P<said>HW (?:thermal |power brake )?slowdown) (?:is |was )?(?:active|engaged|asserted)",
    ),
    Message(
        "host.sw_power_cap",
        ("sw power cap", "sw_power_cap"),
        r"SW[ _]Power[ _]Cap(?:ping)?\W+Active\b|_reason_sw_power_cap>\s*Active",
    ),
    Message(
        "host.power_supply",
        ("power suppl", " psu"),
        r"(?: PSUs?|power suppl(?:y|ies))\b[^\n]{0,40}(?:too (?:small|weak)|insufficient|not enough|underpowered|"
        r"fail\w*|overload\w*|redundancy (?:is )?lost|missing)|(?:too (?:small|weak)|insufficient|failed|failing)"
        r"[^\n]{0,15}(?: PSU|power suppl)",
    ),
    Message(
        "host.gpu_hot",
        ("overheat", "thermal shutdown", "too hot", *_DEGREES),
        # nvidia-smi prints its thresholds as temperatures, too.
        r"^(?!.*(?:Shutdown|Slowdown|Operating|Target|T\.Limit|Max\b).*:)(?:.*(?:"
        r"GPU[^\n]{0,40}(?:overheat\w*|too hot|thermal shutdown)|overheat\w*[^\n]{0,30}GPU|"
        r"(?:GPU|card|temp\w*)[^\n]{0,50}\b(?:9\d|1[01]\d) ?(?:°C|C\b|degrees)|"
        r"\b(?:9\d|1[01]\d) ?(?:°C|C\b|degrees)[^\n]{0,50}(?:GPU|card|throttl|shut ?down|los[st]|under load)))",
    ),
)

_HANGS = (
    Message(
        "host.stuck_in_driver",
        (
            "nvidia-smi",
            "nvidia-container-cli",
            "nvidia-persistenced",
            "nvidia-bug-report",
            "nv-hostengine",
            "nvc:",
            "dcgm",
        ),
        rf"(?P<process>{_GPU_TOOL})[^\n]*?(?:state D\b|D[ -]state|uninterruptible)|"
        rf"(?:state D\b|D[ -]state|uninterruptible)[^\n]*?(?P<process2>{_GPU_TOOL})|"
        rf"^\S+ +\d+ .*\s(?:D[sl+<NL]*)\s.*(?P<process3>{_GPU_TOOL})",
    ),
    Message(
        "host.smi_hangs",
        "nvidia-smi",
        r"nvidia-smi\S*[^\n.;]{0,40}?\b(?:hangs?\b|hung|is hanging|gets? stuck|is stuck|stuck\b|freez\w+|"
        r"never returns|does(?: not|n't) return|blocks? (?:indefinitely|forever)|unkillable)",
    ),
)

_COUNTS = (
    # `nvidia-smi shows 7 of 8 GPUs`, `nvidia-smi only lists 3/4`.
    Message(
        "host.gpus_missing",
        (
            "nvidia-smi",
            "nvml",
            "nvidiadevicecountmismatch",
            "gpu missing",
            "gpus missing",
            "gpu is missing",
            "gpus are missing",
            "gpu disappear",
            "gpus disappear",
            "missing gpu",
        ),
        r"nvidia-smi[^\n\d]{0,40}?only (?:shows?|reports?|reporting|lists?|sees?|finds?) (?P<seen3>\d+) ?"
        r"(?:GPU|card|device)"
        r"(?!s? of)|(?:one|two|some|\d+)(?: of the)? (?:GPUs?|cards?) (?:is |are |has |have )?(?:gone )?"
        r"(?:missing|disappeared|vanished|dropped)[^\n]{0,30}nvidia-smi|"
        r"nvidia-smi[^\n]{0,30}(?:misses|is missing|missing) (?:a|one|two|some|\d+)?(?: of the)? ?GPUs?|"
        r"(?:nvidia-smi|NVML)[^\n\d]{0,40}?(?:only )?(?:shows?|reports?|reporting|lists?|sees?|finds?|found)\s"
        r"(?:only )?(?P<seen>\d+)\s?(?:/|of|out of)\s?(?P<there>\d+)|NvidiaDeviceCountMismatch|"
        r"lspci[^\n\d]{0,30}(?P<there2>\d+)[^\n]{0,40}nvidia-smi[^\n\d]{0,30}(?P<seen2>\d+)",
    ),
)

_PCIE = r"(?:PCIe|PCI-E|PCI Express|link (?:gen|speed))"
_LINK = (
    Message(
        "host.link_idle",
        ("pcie", "pci-e", "pci express", "link gen", "link speed"),
        rf"{_PCIE}[^\n]{{0,80}}(?:Gen(?:eration)? ?(?:current\W+)?1\b|2\.5 ?GT/s|gen\.current\W+1\b)[^\n]{{0,80}}"
        r"\b(?:idle|P8|power[ -]sav\w*|no load|without load)|"
        rf"\b(?:idle|P8)\b[^\n]{{0,80}}{_PCIE}[^\n]{{0,60}}(?:Gen ?1\b|2\.5 ?GT/s)|"
        r"PCIe GEN ?1 ?@ ?(?:16x|x16)",
    ),
    Message(
        "host.link_reduced",
        ("pcie", "pci-e", "pci express", "link gen", "link speed", *(f"gen{number} x" for number in range(1, 7)),
         *(f"gen{number}x" for number in range(1, 7))),
        rf"{_PCIE}[^\n]{{0,80}}(?:Gen ?[1-5]|x(?:1|2|4|8)\b|[\d.]+ ?GT/s)[^\n]{{0,60}}"
        r"(?:under load|instead of|should be|but the (?:slot|card|GPU) (?:can|supports))|"
        r"Gen[1-6] ?x\d+[^\n]{0,30}(?:to|→|->|instead of)[^\n]{0,10}Gen ?[1-6] ?x\d+|"
        r"(?:PCIe|PCI-E|PCI Express) link[^\n]{0,30}"
        r"(?:degraded|downgraded|downtrain\w*|falls? back|fell back|retrain\w*)",
    ),
)  # fmt: skip

_FABRIC = (
    Message(
        "host.nvlink_inactive",
        ("inactive", "in-active"),
        r"(?:NVLinks?|all links)[^\n]{0,40}\b(?:are |is )?(?:inactive|in-active)|"
        r"unable to retrieve NVLink information as all links are inactive",
    ),
)

MESSAGES: tuple[Message, ...] = (*_MEMORY, *_HEAT_AND_POWER, *_HANGS, *_COUNTS, *_LINK, *_FABRIC)
