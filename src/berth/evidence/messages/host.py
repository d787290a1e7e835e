"""The machine: what hangs, heats up, lacks power or remembers wrongly, in the words of tools and of people."""

from berth.evidence.message import Message

_GPU_TOOL = r"(?:nvidia-(?:smi|container-cli|persistenced|bug-report\S*)|dcgm\S*|nv-hostengine|nvc:\S*)"

_MEMORY = (
    Message(
        "host.remap_pending",
        ("remapped rows", "remapped_row_pending", "row_remap_pending", "row remap", "repair pending"),
        r"(?:Channel|TPC) Repair Pending\s*:\s*Yes|pending row remapping\b(?! *[:=]? *(?:No|0|false)\b)|"
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
            "unrepairable memory",
        ),
        r"Unrepairable Memory\s*:\s*Yes|Remapping Failure Occurred\s*:\s*Yes|<remapped_row_failure>\s*Yes|"
        r"ROW_REMAP_FAILURE(?:_\w+)?(?:\{[^}]*\})?\s*[=:]?\s*[1-9]|"
        r"row[ -]remap(?:ping)?[ -]fail(?:ure|ed)(?! (?:occurred)?\s*: *(?:No|0))|NvidiaRowRemapFailure",
    ),
    Message(
        "host.retirement_pending",
        ("pending page", "page retirement", "retired_pending", "<pending_blacklist>", "<pending_retirement>",
         "pending retirement", "nvidiapageretirement"),
        r"Pending Page (?:Blacklist|Retirement)\s*:\s*Yes|<pending_(?:blacklist|retirement)>\s*Yes|"
        r"RETIRED_PENDING(?:_\w+)?\{[^}]*\}\s+[1-9]|page retirement(?: is)? pending|pending page retirement|"
        r"NvidiaPageRetirement(?!\W+(?:status\W+)?False)|\bpages?\b[^\n]{0,40} (?:is|are|be) pending retirement",
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
        ("recovery action", "dcgm_fr_gpu_recovery_"),
        r"GPU Recovery Action\s*:\s*(?P<action>Reset|Reboot|Drain P2P|Drain and Reset)\b|DCGM_FR_GPU_RECOVERY_"
        r"(?P<action2>RESET|REBOOT|DRAIN_P2P|DRAIN_RESET)",
    ),
    Message(
        "host.firmware_outdated",
        ("bios", "firmware"),
        r"(?:fixed|solved|resolved|gone|until|helped)[^\n]{0,30}(?:BIOS|firmware) (?:was |is )?(?:updat|upgrad)\w+|"
        r"(?:BIOS|firmware) (?:update|upgrade)[^\n]{0,30}(?:fix|solv|resolv|help)\w*|outdated (?:S|V)?BIOS|"
        r"(?:GPU|VBIOS|SBIOS|BIOS) firmware bug|"
        r"\b(?:old|older|previous|earlier|former) (?:V?BIOS|(?:GPU )?firmware)(?: \w+)? "
        r"(?:works|is fine|does not|boots)|(?:firmware|V?BIOS)\b[^\n]{0,24} (?:caus|mak|break|broke)\w*"
        r"[^\n]{0,30}\bGPUs?\b[^\n]{0,12} (?:hang|reset|drop|lost)",
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
            "sram uncorrectable error", "dram uncorrectable error", "volatile uncorr",
            "due to uncorrectable ecc", "due to an uncorrectable ecc", "uncorrectable ecc error count",
            "ram uncorrectable error count", "dbe count",
        ),
        r"(?<!no )(?:double[ -]bit (?:ECC )?errors?|uncorrectable (?:ECC|memory|DRAM|SRAM|HBM) errors?)(?: \([^)]*\))?"
        r"(?: has| have| was| were)?(?: been)? (?:detected|encountered|occurred|found|reported)|"
        r"\b[1-9]\d* (?:volatile )?(?:double[ -]bit (?:ECC )?|uncorrectable (?:ECC|memory) )errors?|"
        r"\bDBE count\W{1,3}[1-9]|[SD]RAM uncorrectable (?:ECC )?error count\W{1,3}[1-9]|"
        r"CUDA_ERROR_ECC_UNCORRECTABLE|Detected an? (?:very high )?(?:GPU )?[SD]RAM uncorrectable error|"
        r"\b(?:unusable|not usable|abnormal|fail\w*|crash\w*|down) due to (?:an )?uncorrectable ECC errors?\b|"
        r"\b[1-9]\d* volatile uncorr(?:ectable|\.)? ECC|"
        r"ECC_DBE_VOL(?:_TOTAL)?\{[^}]*\}\s+[1-9]|NvidiaDoubleBitError",
    ),
    # Millions since the driver was loaded, or somebody's own words for a rate.
    Message(
        "host.ecc_corrected_high",
        ("ecc_sbe_vol", "ecc_sbe_agg", "rate of correctable ecc", "gpu sram correctable error",
         "single-bit ecc error(s)", "volatile_sbe_detected"),
        r"ECC_SBE_(?:VOL|AGG)(?:_TOTAL)?\{[^}]*\}\s+[1-9]\d{7}|"
        r"ECC_SBE_(?:VOL|AGG)(?:_TOTAL)? rate\W{1,3}[1-9]\d{0,2}[,\d]*\d{2} ?/ ?s\b|"
        r"More than \d+ single-bit ECC error\(s\) detected|DCGM_FR_VOLATILE_SBE_DETECTED|"
        r"\b(?:high|huge|rising|increasing) rate of correctable ECC errors|Detected a GPU SRAM correctable error",
    ),
)

_DEGREES = tuple(f"{degrees}{unit}" for degrees in range(90, 120) for unit in (" c", "°c", " °c", " degrees"))
_HEAT_AND_POWER = (
    Message(
        "host.hw_slowdown",
        (
            "hardware slowdown",
            "hw slowdown", "hw thermal", "hw power brake", "hw_slowdown", "hw_thermal", "hw_power_brake", "_reason_hw_",
            "power brake", "hwpowerbrake", "hwslowdown", "hwthermalslowdown", "pwr_brk", "pwrbrk",
        ),
        r"(?P<reason>HW[ _](?:Thermal[ _]Slowdown|Power[ _]Brake(?:[ _]Slowdown)?|Slowdown))\W+Active\b|"
        r"<clocks_(?:throttle|event)_reason_(?P<xml>hw_\w+)>\s*Active|"
        r"(?P<said>HW (?:thermal |power brake )?slowdown|hardware slowdown)"
        r" (?:(?:is |was )?(?:active|engaged|asserted)|events\b[^\n]{0,120}\bexceed\w*)|"
        # NVML's names in logs, and people.
        r"(?:Clocks?(?:Event|Throttle)Reasons?_?)?(?P<name>Hw(?:PowerBrake|ThermalSlowdown)(?:Slowdown)?)\b"
        r"(?!\W{1,3}(?:0\b|false|not|inactive))|"
        r"(?<!not )(?<!never )(?<!no )\b(?:asserted|active|engaged|stuck|triggered|throttl\w+ by|capped by"
        r"|limited by)\b"
        r"[^\n;,.:]{0,20}"
        r"\b(?P<told>power[ -]brake)\b|"
        r"\b(?P<told2>power[ -]brake|PWR_?BRK#?)\b[^\n]{0,30}\b(?<!not )(?:asserted|engaged|stuck|triggered|is active"
        r"|was active)\b",
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
        ("overheat", "thermal shutdown", "too hot", "thermal throttling temperature reached", *_DEGREES),
        # nvidia-smi prints its thresholds as temperatures, too.
        r"^(?!.*(?:Shutdown|Slowdown|Operating|Target|T\.Limit|Max\b).*:)(?:.*(?:"
        r"GPU thermal throttling temperature reached|"
        r"GPU[^\n]{0,40}(?:overheat\w*|too hot|thermal shutdown)|overheat\w*[^\n]{0,30}GPU|"
        r"(?:GPU|card|temp\w*)[^\n]{0,50}\b(?:9\d|1[01]\d) ?(?:°C|C\b|degrees)|"
        r"\b(?:9\d|1[01]\d) ?(?:°C|C\b|degrees)[^\n]{0,50}(?:GPU|card|throttl|shut ?down|los[st]|under load)))",
    ),
)

_HANGS = (
    Message(
        "host.stuck_in_driver",
        ("state d", "d state", "d-state", "uninterruptible"),
        rf"(?P<process>{_GPU_TOOL})[^\n]{{0,300}}?(?:state D\b|\bD[ -]state|uninterruptible)|"
        rf"(?:state D\b|\bD[ -]state|uninterruptible)[^\n]{{0,300}}?(?P<process2>{_GPU_TOOL})",
    ),
    # A row of ps. The column of the state comes after the number, so that most lines end this at their second word.
    Message(
        "host.stuck_process",
        (
            "nvidia-smi",
            "nvidia-container-cli",
            "nvidia-persistenced",
            "nvidia-bug-report",
            "nv-hostengine",
            "nvc:",
            "dcgm",
        ),
        rf"^\S+ +\d+ [^\n]*?\s(?:D[sl+<NL]*)\s.*(?P<process3>{_GPU_TOOL})",
    ),
    Message(
        "host.smi_hangs",
        ("nvidia-smi", "_probe_hang", "driverunresponsive", "dcgmunresponsive", "dcgm probe as unresponsive",
         "driver may be unresponsive"),
        r"nvidia-smi\S*[^\n.;]{0,40}?\b(?:hangs?\b|hung|is hanging|gets? stuck|is stuck|stuck\b|freez\w+|"
        r"never returns|does(?: not|n't) return|blocks? (?:indefinitely|forever)|unkillable)|"
        # NVSentinel, where it asks the driver of its own node.
        r"(?P<process>DRIVER)_PROBE_HANG|Gpu(?:Driver|Dcgm)Unresponsive(?!\W+(?:status\W+)?False)|"
        r"treating the DCGM probe as unresponsive|NVIDIA driver may be unresponsive",
    ),
)

_SLOW = (
    Message(
        "host.smi_slow",
        "nvidia-smi",
        r"nvidia-smi(?: -[qL])?\b[^\n]{0,20}\b(?:needs|takes|took|needed) (?:over |about |several |many |some )?"
        r"(?:\d+ )?(?:minutes|min\b)",
    ),
    # The parameter as /proc/driver/nvidia/params has it: a switch for the GPU's own firmware, with bits for when.
    Message("host.gsp_in_use", "enablegpufirmware", r"EnableGpuFirmware: ?1[678]?\b"),
)

_COUNTS = (
    # `nvidia-smi shows 7 of 8 GPUs`, `nvidia-smi only lists 3/4`.
    Message(
        "host.gpus_missing",
        "nvidia-smi",
        # The name is always written so: a fixed beginning is looked for fast.
        r"(?-i:nvidia-smi)(?:[^\n\d]{0,40}?(?:only (?:shows?|reports?|reporting|lists?|sees?|finds?)"
        r"|(?:shows|reports|lists|sees|finds) only) (?P<seen3>\d+) ?(?:GPU|card|device)(?!s? of)"
        r"|[^\n]{0,30}(?:misses|is missing|missing) (?:a|one|two|some|\d+)?(?: of the)? ?GPUs?"
        r"|[^\n\d]{0,40}?(?:only )?(?:shows?|reports?|reporting|lists?|sees?|finds?|found)\s"
        r"(?:only )?(?P<seen>\d+)\s?(?:/|of|out of)\s?(?P<there>\d+))",
    ),
    # The bus itself has none.
    Message(
        "host.not_on_bus",
        ("lspci", "no nvidia device listed", "no nvidia devices listed", "no nvidia gpu listed"),
        r"\blspci\b[^\n]{0,40}(?:nvidia|10de)[^\n\w]{0,6}(?:: ?|-> ?|=> ?|is |returns |gives |prints |shows )"
        r"(?:\(?empty|nothing|none|no output)|"
        r"\blspci\b(?: output)? (?:does not|doesn't|no longer|didn't|did not) (?:show|list|see|find|have)\w* "
        r"(?:the |any |a |my )?(?:NVIDIA|GPUs?|cards?)|"
        r"\blspci\b(?: (?:shows?|lists?|has|finds?|reports?):?| output:?|:) no (?:NVIDIA )?"
        r"(?:GPUs?|cards?|devices? of nvidia|NVIDIA devices?)|"
        r"\bno NVIDIA (?:devices?|GPU) listed|\b(?:not|n't|never|no longer) (?:\w+ )?(?:in|on|by) (?:the )?lspci\b",
    ),
    Message(
        "host.gpus_missing_told",
        (
            *(f"nvml {word}" for word in ("only", "show", "report", "list", "see", "find", "found")),
            "nvidiadevicecountmismatch",
            "gpu count mismatch (",
            "check_gpu_count: expected",
            "lspci",
            "nvidia-smi shows ",
            "nvidia-smi -l shows ",
            *(
                f"{noun}{verb}{gone} {word}"
                for noun in ("gpu", "gpus", "card", "cards")
                for verb in ("", " is", " are", " has", " have")
                for gone in ("", " gone")
                for word in ("missing", "disappeared", "vanished", "dropped")
            ),
        ),
        r"nvidia-smi (?:-L )?shows (?:only )?\d+ (?:of (?:the )?\d+|GPUs?[^\n]{0,20} (?:vs\.?|instead of|rather than) "
        r"\d+)|"
        r"(?:one|two|some|\d+)(?: of the)? (?:GPUs?|cards?) (?:is |are |has |have )?(?:gone )?"
        r"(?:missing|disappeared|vanished|dropped)[^\n]{0,30}nvidia-smi|"
        r"NVML (?:only )?(?:shows?|reports?|lists?|sees?|finds?|found)\s"
        r"(?:only )?(?P<seen>\d+)\s?(?:/|of|out of)\s?(?P<there>\d+)|NvidiaDeviceCountMismatch|"
        r"check_gpu_count: Expected (?:to see )?(?P<there5>\d+) but found (?P<seen5>\d+)|"
        r"gpu count mismatch \(found (?P<seen3>\d+), expected (?P<there3>\d+)\)|"
        r"\bnvidia-smi(?: -L)?:? (?:lists |shows |has |finds )?(?P<seen4>\d+) GPUs?\b[^\n]{0,80}\blspci (?:shows|lists"
        r"|has|finds) (?P<there4>\d+)\b|"
        r"lspci[^\n\d]{0,30}(?P<there2>\d+)[^\n]{0,40}nvidia-smi[^\n\d]{0,30}(?P<seen2>\d+)",
    ),
    # `gpu-2-5 has lost a GPU`, `came up short a GPU after the reboot`.
    Message(
        "host.gpu_gone_told",
        (
            "lost a gpu", "lost one gpu", "lost two gpus", "dropped a gpu", "dropped one gpu", "short a gpu",
            "short one gpu", "short of a gpu", "short of one gpu", "missing a gpu", "missing one gpu",
        ),
        r"\b(?:has|have|had|node|machine|server|host) (?:lost a GPU|lost one GPU|lost two GPUs|dropped a GPU|"
        r"dropped one GPU)\b|"
        r"\b(?:came|comes|come|is|was) (?:up |back )?(?:short a GPU|short one GPU|short of a GPU|short of one GPU)\b|"
        r"\b(?:node|machine|server|host)\b[^\n]{0,20} (?:is )?(?:missing a GPU|missing one GPU)\b",
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
    # What helps tells what is marginal: a slot, riser, cable or dock that does not carry its speed.
    Message(
        "host.slower_link_helps",
        ("pcie", "pci-e", "pci express", "link speed"),
        r"\b(?:limit|forc|sett?|lower|cap|restrict|reduc|lock|drop|switch|chang|downgrad)(?:s|ed|e|ing|ping|ting|es)?\b"
        r"[^\n]{0,40}\b(?:PCIe|PCI-E|PCI Express|link speed)\b[^\n]{0,40}?\b(?:Gen(?:eration)? ?)?[1-4](?:\.0)?\b"
        r"[^\n]{0,120}\b(?:stable|works? (?:now|again|since|without)|(?:now|then|it) (?:it )?works|fix\w*|help\w*"
        r"|solv\w*"
        r"|resolv\w*|went away|no (?:more |longer )?(?:Xid|crash|error|drop|hang)\w*)\b",
    ),
    Message(
        "host.link_reduced",
        ("pcie", "pci-e", "pci express", "link gen", "link speed", *(f"gen{number} x" for number in range(1, 7)),
         *(f"gen{number}x" for number in range(1, 7)), "degraded link width error", "degraded link speed error",
         *(f"gen{number} under load" for number in range(1, 5))),
        rf"{_PCIE}[^\n]{{0,80}}(?:Gen ?[1-5]|x(?:1|2|4|8)\b|[\d.]+ ?GT/s)[^\n]{{0,60}}"
        r"(?:under load|instead of|should be|but the (?:slot|card|GPU) (?:can|supports))|"
        r"PCIe bandwidth of [^\n]{0,30}\bis (?:only )?(?:half|a quarter|a third|far below|much lower)\b|"
        r"degraded link (?:width|speed) error|\b(?:GPU|card)\b[^\n]{0,30} Gen ?[1-4](?: x\d+)? under load|"
        r"Gen[1-6] ?x\d+[^\n]{0,30}(?:to|→|->|instead of)[^\n]{0,10}Gen ?[1-6] ?x\d+|"
        r"(?:PCIe|PCI-E|PCI Express) link[^\n]{0,30}"
        r"(?:degraded|downgraded|downtrain\w*|falls? back|fell back|retrain\w*)",
    ),
)  # fmt: skip

_FABRIC = (
    # Who says that there is none takes every word of a link that is down from it.
    Message(
        "host.without_nvlink",
        ("without nvlink", "no nvlink", "non-nvlink", "not have nvlink", "n't have nvlink"),
        r"\b(?:systems?|machines?|GPUs?|cards?|nodes?|boards?|servers?)\b[^\n]{0,40}"
        r"(?:\bwithout|\b(?:has|have|with) no|\bdo(?:es)? not have|n't have) NVLink|"
        r"\bnon-NVLink (?:systems?|machines?|GPUs?|cards?|nodes?|boards?)",
    ),
    # NCCL: GPUs that NVLink joins, between which the driver allows no peer access.
    Message(
        "host.nvlink_peers_parted",
        "between nvlink connected gpus",
        r"P2P is disabled between NVLINK connected GPUs (?P<one>\d+) and (?P<other>\d+)",
    ),
    # The bridge itself, or how it sits: what hangs with it works without it.
    Message(
        "host.bridge_at_fault",
        ("without the bridge", "without the nvlink bridge", "without bridge", "without nvlink bridge"),
        r"(?:freez|hang|hung|crash|fail|slow|stuck)\w*\b[^\n]{0,60}\b(?:without the bridge|without the NVLink bridge"
        r"|without bridge|without NVLink bridge)\b[^\n]{0,30}\b(?:runs?|ran|works?|worked|fine|ok)\b"
        r"|\b(?:runs?|ran|works?|worked|fine|ok)\b[^\n]{0,30}\b(?:without the bridge|without the NVLink bridge"
        r"|without bridge|without NVLink bridge)\b[^\n]{0,80}\b(?:freez|hang|hung|crash|fail|slow|stuck)",
    ),
    Message(
        "host.nvlink_inactive",
        ("inactive", "in-active"),
        r"(?:NVLinks?|all links)[^\n]{0,40}\b(?:are |is )?(?:inactive|in-active)|"
        r"unable to retrieve NVLink information as all links are inactive",
    ),
)

_COMPARED = (
    # The same load on the same hardware elsewhere: then it is this machine.
    Message(
        "host.sister_works",
        tuple(
            f"{which} {what}"
            for which in ("another", "other", "different", "second", "identical", "this one", "one")
            for what in ("node", "machine", "server", "host")
        ),
        r"\b(?:another|other|different|second|identical) (?:node|machine|server|host)s?\b[^\n]{0,60}"
        r"\b(?:same|identical|similar) (?:hardware|specs?|model|type|GPUs?|config\w*|setup)\b[^\n]{0,60}"
        r"\b(?:works?|worked|working|fine|no (?:issue|problem|error)s?)\b"
        r"|\b(?:same|identical) (?:job|load|workload|model|image|code|test)\b[^\n]{0,60}\b(?:works?|worked|runs?|ran"
        r"|fine)"
        r"\b[^\n]{0,30}\b(?:another|other|different|second|identical) (?:node|machine|server|host)s?\b"
        r"|\bonly (?:on|happens on|affects) (?:this|one|a single) (?:node|machine|server|host)\b",
    ),
)

MESSAGES: tuple[Message, ...] = (
    *_MEMORY,
    *_HEAT_AND_POWER,
    *_HANGS,
    *_SLOW,
    *_COUNTS,
    *_LINK,
    *_FABRIC,
    *_COMPARED,
)
