"""The kernel's log: the NVIDIA modules and their Xids, NVSwitch and its SXids, PCI Express, and what hangs."""

from berth.evidence.message import Message

_PCI = r"(?:PCI:)?(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?)"
_OF_GPU = r"NVRM: (?:GPU )?(?:at )?(?:PCI:)?(?:(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?):? )?"


def _xid(name: str, codes: str) -> Message:
    """`Xid (PCI:0000:b3:00): 79, …`; without "PCI:" in old drivers; with `GPU-I:05 GPU-CI:00` under MIG.

    Those that come in storms, each line another process or channel, are messages of their own: of one message only so
    many different sentences are kept, and the line that tells the cause must not be among those left out.
    """
    return Message(
        name,
        ("xid (", "xid("),
        r"(?<![a-z])Xid ?\((?:PCI:)?(?P<pci>[^)\s]*)(?: GPU-I:(?P<gi>\w+))?(?: GPU-CI:(?P<ci>\w+))?[^)]*\): "
        rf"(?P<code>{codes})\b[, ]*(?P<detail>.*)",
    )


_PROGRAMS, _FIRMWARE, _NVLINK = "13|31|43|45|69", "109|119|120", "74|14[4-9]|150"
_XIDS = (
    _xid("kernel.xid_programs", _PROGRAMS),
    _xid("kernel.xid_firmware", _FIRMWARE),
    _xid("kernel.xid_nvlink", _NVLINK),
    _xid("kernel.xid", rf"(?!(?:{_PROGRAMS}|{_FIRMWARE}|{_NVLINK})\b)\d{{1,3}}"),
    # What agents, plugins and people make of it: `XidCriticalError: Xid=69 on Device=GPU-…`, `Detected XID 31`.
    Message(
        "kernel.xid_named",
        (*(f"xid{following}" for following in " =:_-#\"0123456789ecn"), "rc all channels for", "syslogsxiderror"),
        # In small letters it is a transaction of NFS or a database unless something of a GPU stands before it.
        r"(?<![a-z_])(?<!\bno )(?<!without )(?<!previous )(?<!transaction )(?:nvidia)?"
        r"(?:(?-i:X[iI][dD])|(?:(?<=gpu )|(?<=nvidia )|(?<=error: )|(?<=got )|(?<=critical ))xid|"
        r"xid(?= error)|(?<=\")xid(?=\"\s*:)|RC all channels for critical(?= error)"
        r"|SysLogsXIDError\b[^\n]{0,80}?\bError(?=Code:\d))\"?"
        r"(?:[ _-]?(?:error|code|event|number)s?)?(?: detected(?=: \d))?"
        r" ?(?:is |of |code )?[:=#]? ?[#\"]?(?P<code>\d{1,3})(?:Error)?\b(?!\.\d{2,}|,? ?\d{3,})"
        r"(?:,? (?P<detail>[A-Z]{2,}[A-Z0-9_]+ (?:Non-?fatal|Fatal)\b[^\n]*))?"
        r"(?:.*?(?P<uuid>GPU-[0-9a-f]{8}-[0-9a-f-]{27}))?(?:.*?PCI:(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}))?",
    ),
    Message(
        "kernel.sxid",
        "sxid (",
        r"(?:nvswitch(?P<switch>\d+).{0,3} )?SXid \((?:PCI:)?(?P<pci>[^)]*)\): (?P<code>\d{4,5})\b[, ]*"
        r"(?:(?P<fatality>Non-?fatal|Fatal)\b[, ]*)?(?:Link (?P<link>-?\d+)\b[, ]*)?(?P<detail>.*)",
    ),
    Message(
        "kernel.sxid_named",
        "sxid",
        r"\b(?:Detected (?P<fatality2>fatal|non-?fatal) NvSwitch )?(?:SXid(?:[ _-]?(?:error|code)s?)?[ :=#]+"
        r"|SysLogsSXIDError\b[^\n]{0,80}?\bErrorCode:)(?P<code>\d{5})\b(?:\W{1,3}(?P<fatality>Non-?fatal|Fatal)\b)?",
    ),
    Message(
        "kernel.nvswitch_error",
        "detected nvswitch",
        r"detected NVSwitch (?P<fatality>fatal|non-fatal) error (?P<code>\d{5})\b"
        r"(?:.*?pci bus id (?P<pci>[0-9a-f:.]+))?(?:.*?port (?P<link>\d+))?",
    ),
    Message("kernel.gpu_uuid", "nvrm: gpu at", rf"GPU at {_PCI}: (?P<uuid>GPU-[0-9a-f-]+)"),
    Message(
        "kernel.driver_version",
        ("nvrm: loading nvidia", "nvrm version: nvidia"),
        r"(?:NVRM: loading NVIDIA UNIX|"
        r"NVRM version: NVIDIA UNIX).*?Kernel Module.*?\s(?P<version>\d{3}\.\d+(?:\.\d+)?)\b",
    ),
)

_LOST = (
    # With an Xid, as a line of its own, and over three lines where a probe finds the loss.
    Message(
        "kernel.off_bus",
        ("fallen off the bus", "fallen off the pci"),
        rf"(?:{_PCI}.*)?fallen off the (?:bus|PCIe bus|PCI bus|PCI Express bus)",
    ),
    Message(
        "kernel.off_bus_at_probe",
        "the nvidia gpu",
        rf"The NVIDIA GPU {_PCI}[\s\S]*?fallen off the bus",
        lines=3,
    ),
    Message(
        "kernel.not_attached",
        ("gpu_attached_sanity_check", "for critical error 79", "gpu lost from the bus"),
        r"GPU_ATTACHED_SANITY_CHECK failed|RC all channels for critical error 79|GPU lost from the bus",
    ),
    Message(
        "nvidia_smi.gpu_lost",
        (
            "gpu is lost", "gpu_is_lost", "gpuislost", "gpu has been lost", "to recover this gpu",
            "dcgm_fr_fallen_off_bus", "gpu_fallen_off", "error code 15",
        ),
        r"(?:(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]).*)?"
        r"(?:(?<!to )(?<!to the )GPU(?: is|_IS| has been)[ _]lost|GpuIsLost|DCGM_FR_FALLEN_OFF_BUS|"
        r"\bGPU_FALLEN_OFF(?:_BUS)?\b|"
        r" is lost\.\s+Reboot the system to recover this GPU|NVML: can't get GPU #\d+, error code 15\b)",
    ),
    Message(
        "nvidia_smi.no_handle",
        (
            "determine the device handle", "detect the device handle", "getting device handle for ",
            "get device handle for ",
        ),
        # The last in the words of Go programs that list the devices.
        r"(?:getting|get) device handle for (?:index|GPU|minor)[^\n:]*: (?P<reason2>Unknown Error|GPU is lost)|"
        r"(?:determine|detect) the device handle for GPU ?\d*:? ?"
        r"(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])?\W*"
        r"(?P<reason>[A-Za-z][\w ]*)?",
    ),
    # The kernel says so and loads the module all the same: only a kernel that enforces signatures refuses it.
    Message(
        "kernel.module_unsigned",
        "module verification failed: signature",
        r"\b(?P<module>nvidia\w*): module verification failed: signature and/or +required key missing",
    ),
    Message("nvidia_smi.err_field", "err!", r"\bERR!"),
    Message(
        "kernel.config_space_dead",
        ("rev ff)", "unknown header type 7f", "unknown header type 0x7f"),
        r"(?:(?P<pci>\b(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]) .*NVIDIA.*)?"
        r"(?P<sign>\(rev ff\)|Unknown header type (?:0x)?7f)",
    ),
)

_PROBE = (
    Message(
        "kernel.probe_failed",
        ("nvidia: probe of", "probe with driver nvidia failed"),
        rf"(?:nvidia: probe of {_PCI} failed|nvidia {_PCI.replace('pci>', 'pci2>')}: probe with driver nvidia failed)"
        r" with error (?P<error>-?\d+)",
    ),
    Message(
        "kernel.probe_routine_failed",
        ("probe routine failed for", "nvidia devices were initialized", "nvrm: pci_enable_device failed"),
        r"NVIDIA probe routine failed for (?P<count>\d+) device|None of the NVIDIA devices were initialized|"
        r"NVRM: pci_enable_device failed",
    ),
    # The module looked over the whole bus and met no GPU of NVIDIA that it could have.
    Message(
        "kernel.no_gpu",
        ("no nvidia gpu found", "no nvidia graphics adapter found", "no nvidia devices probed"),
        r"No NVIDIA (?:GPU|graphics adapter) found|No NVIDIA devices probed",
    ),
    Message(
        "kernel.adapter_init",
        ("rminitadapter failed", "rm_init_adapter failed", "rm_init_private_state() failed", "failed during probe"),
        rf"(?:{_OF_GPU})?(?:(?:RmInitAdapter|rm_init_adapter|rm_init_private_state\(\)) failed"
        r"|(?<=\.[0-7] )init failed during probe)(?:! \((?P<status>0x[0-9a-f]+:0x[0-9a-f]+:\d+)\))?"
        r"(?:.*minor number (?P<minor>\d+))?",
    ),
    Message(
        "kernel.gfw_boot",
        ("gfw_boot", "gfw boot", "bar firewall to lower"),
        r"failed to wait for (?:GFW[_ ]BOOT|bar firewall to lower)|"
        r"timed? ?out[^\n]*GFW[_ ]BOOT|GFW[_ ]BOOT[^\n]*(?:fail|timeout|timed out)",
    ),
    Message(
        "kernel.wpr2",
        ("wpr2", "in a bad state and may need to be reset"),
        r"unexpected WPR2 already up|WPR2.*(?:not|fail|already)|in a bad state and may need to be reset",
    ),
    Message(
        "kernel.gsp_boot",
        ("initialize gsp", "kgspbootstrap", "kgspinitrm", "cannot attach gpu", "failed to enable msi",
         "find an irq for your nvidia", "failed to allocate nvkmskapidevice", "kfsp", "kgspexecute", "booter",
         "no interrupts of any type", "request_irq() failed", "error_irq_issue", "interrupt issue with a gpu",
         "rminitnvdevice", "bailing out of rminitadapter", "nv_err_timeout", "kgspwaitforrminitdone("),
        r"(?:Cannot|Failed to) initialize GSP|Cannot attach gpu|"
        r"kfsp\w+: (?:FSP (?:command timed out|response reported error|boot cmds failed)|[^\n]*timed? ?out)|"
        r"RmInitNvDevice: \*\*\* Cannot|bailing out of RmInitAdapter|kfspDumpDebugState\w*: |"
        r"NV_ERR_TIMEOUT\][^\n]*\b(?:_kgspBootGspRm|kgspWaitForRmInitDone)|"
        r"Assertion failed: [^\n]* returned from kgspWaitForRmInitDone\(|"
        r"kgspExecute\w+:[^\n]*(?:fail|halted)|Booter failed with non-zero error code|"
        r"find an IRQ for your NVIDIA|No interrupts of any type are available|NVRM: [^\n]*request_irq\(\) failed|"
        r"NVML_ERROR_IRQ_ISSUE|detected an interrupt issue with a GPU|"
        # With an interrupt of the older kind it works, too.
        r"NVRM: [^\n]*Failed to enable MSI(?![^\n]*falling back)|Failed to allocate NvKmsKapiDevice|"
        r"kgsp(?:Bootstrap|InitRm)\w*:?.*(?:fail|cannot|timeout|halted|error)",
    ),
    # The copy that the machine's firmware keeps, as the proprietary driver asks for it.
    Message("kernel.vbios_not_copied", "copy vbios", r"failed to copy VBIOS to system memory"),
    Message(
        "kernel.vbios",
        ("vbios", "valid rom signature"),
        r"NVRM:[^\n]*did not find valid ROM signature|"
        r"(?:failed|unable|cannot|could not)[^\n]{0,20}\b(?:read|get|find|load)[^\n]{0,20}VBIOS|"
        r"VBIOS[^\n]{0,30}(?:not found|corrupt|invalid|fail)",
    ),
    Message(
        "kernel.power_cable",
        ("power cable", "power connector", "auxiliary power", "power plug", "insufficient external power",
         "insufficiently powered", "error_insufficient_power"),
        rf"^(?:.*?{_OF_GPU})?.*?(?:"
        r"necessary power cables? connected|insufficient external power|is insufficiently powered|"
        r"NVML_ERROR_INSUFFICIENT_POWER|(?:power cables?|power connectors?|auxiliary power|power plug)[^\n]{0,40}"
        r"(?:not|isn't|aren't|un)[ -]?(?:\w+ )?(?:connected|plugged|attached)|connect the (?:PCIe|"
        r"PCI-?E) power cables?)",
    ),
    Message(
        "nvidia_smi.inforom",
        ("inforom", "info rom", "nvidia-smi returned "),
        r"info ?ROM (?:is|was) (?:corrupted|damaged|invalid)(?: at gpu (?P<pci>[0-9a-f:.]+))?|corrupt\w* info ?ROM|"
        r"NVML_ERROR_CORRUPTED_INFOROM|DCGM_FR_CORRUPT_INFOROM|"
        r"nvidia-smi returned (?:error |exit )?(?:code|status) 14\b",
    ),
)

# The bus itself speaks of a device as pci, its driver by its own name.
_BY = r"[\w-]+"

_WINDOWS = (
    # Since 6.9 the BAR and its range come before the sentence: `BAR 1 [mem 0x… 64bit pref]: can't assign; no space`.
    Message(
        "kernel.bar_unassigned",
        ("no space", "can't assign", "failed to assign", "can't claim", "can't enable device: bar"),
        rf"\b{_BY} {_PCI}: (?:BAR (?P<bar>[0-5])(?:: (?:no space for|failed to assign|can't assign|can't claim)| \[)"
        r".*?(?P<range>mem [^\]]*)(?:\].*(?:no space|can't|failed))?|can't claim BAR (?P<bar2>[0-5]) "
        r"\[(?P<range2>mem [^\]]*)\]|can't enable device: BAR (?P<bar3>[0-5]) \[(?P<range3>mem [^\]]*)\] not "
        r"(?:assigned|claimed))",
    ),
    Message(
        "kernel.bar_assigned",
        "assigned",
        rf"\b{_BY} {_PCI}: BAR (?P<bar>[0-5])(?:: assigned | )\[mem [^\]]*\](?:: assigned)?(?<!can't assign)",
    ),
    # Windows of bridges: BAR 13 to 15 (I/O, memory, prefetchable memory) up to 6.9, then by name.
    Message(
        "kernel.window_unassigned",
        ("no space", "failed to assign"),
        rf"(?:pci|pcieport) {_PCI}: (?:BAR 1[45]: (?:no space for|failed to assign) \[(?P<range>mem size [^\]]*pref)\]"
        r"|bridge window \[(?P<range2>mem size [^\]]*pref)\][^:]*: (?:can't assign; no space|failed to assign))",
    ),
    Message(
        "kernel.window_assigned",
        "assigned",
        rf"(?:pci|pcieport) {_PCI}: (?:BAR 1[45]: assigned \[mem [^\]]*pref\]"
        r"|bridge window \[mem [^\]]*pref\][^:]*: assigned)",
    ),
    # What was to become as large as the memory stays small.
    Message(
        "kernel.bar_not_resized",
        ("resize bar", "resizing bar", "large bar", "can't resize", "resizable bar", "rebar"),
        rf"(?:{_BY} {_PCI}: [^\n]{{0,160}}?)?(?:Failed to resize BAR ?(?P<bar>\d)?|resizing BAR ?\d failed"
        rf"|Problem resizing BAR ?\d \(-"
        rf"|BAR ?\d[^\n]{{0,60}}can't resize"
        r"|Not enough PCI address space for a large BAR|resizing BAR\d? (?:to \S+ )?failed)"
        r"|(?:clamp\w*|stuck|limited|stays?)[^\n]{0,30}\bBAR ?1\b[^\n]{0,30}256 ?Mi?B"
        r"|\bBAR ?1\b[^\n]{0,30}(?:clamp\w*|stuck|limited|stays?)[^\n]{0,30}256 ?Mi?B",
    ),
    Message(
        "kernel.bar_invalid",
        (
            "assigned to your nvidia device is invalid", "is 0m @ 0x0", "bar0 is 0m", "bar1 is 0m",
            "64-bit bar mapped above", "bios may have misconfigured your gpu",
        ),
        r"PCI I/O region assigned to your NVIDIA device is invalid|64-bit BAR mapped above \d+ ?[GT]B by the system|"
        r"system BIOS may have misconfigured your GPU|"
        r"BAR(?P<bar>\d) is 0M @ 0x0(?: \((?:PCI:)?(?P<pci>[0-9a-f:.]+)\))?",
    ),
    # As lspci lists a region, without the line of its device.
    Message(
        "lspci.region_unplaced",
        ("memory at <unassigned>", "memory at <ignored>"),
        r"(?:Region (?P<bar>\d): )?Memory at <(?:unassigned|ignored)>(?! \((?!64-bit, prefetchable))",
    ),
    Message(
        "kernel.above_4g",
        ("above 4g", "mmio", "insufficient pci resources", "pci out of resources", "pci resource error", "csm "),
        # That it is enabled is no fault: only that it has to be.
        r"\bCSM (?:must be|has to be|needs to be|had to be) (?:disabled|off|turned off|switched off)|"
        r"\bneeds? (?:the )?S?BIOS option[^\n]{0,20}above 4G|"
        r"insufficient PCI resources|PCI out of resources|PCI resource error: out of resources|"
        r"above 4G (?:decod\w+ )?(?:(?:is |was )?(?:off|disabled|not enabled)|"
        r"(?:needs to be |has to be |must be )enabled)|"
        r"(?:enabl|turn\w* on|switch\w* on)\w*[^\n]{0,20}above 4G|"
        r"(?:not enough|insufficient|out of|too small)[^\n]{0,30}MMIO|MMIO (?:window|space|resources)[^\n]{0,30}"
        r"(?:too small|not enough|exhausted|insufficient)",
    ),
)

_GSP = (
    Message(
        "kernel.gsp_silent",
        (
            "waiting for rpc", "gsp rm heartbeat", "gsp rpc", "gsp timeout", "gsp time-out", "gsp firmware",
            "kgspisheartbeat", "* gsp failure *", "* gsp crash", "gsp crash", "gsp hang", "gsp hung", "gsp halt",
            "gspmsgqueue", "rpc history (cpu -> gsp)",
        ),
        r"GspMsgQueue(?:ReceiveStatus: (?:Read failed after|Bad checksum)|SendCommand: buffer is full)|"
        r"RPC history \(CPU -> GSP\)|"
        r"\* GSP (?:Failure|Crash\w*) \*|kgspIsHeartbeatTimedOut\w*: Heartbeat timed out|"
        r"waiting for RPC (?:response )?from (?:GPU\d+ )?GSP|GSP RM heartbeat timed out|"
        r"Rate limiting GSP RPC error prints for GPU at (?:PCI:)?(?P<pci>[0-9a-f:]+)|GSP (?:RPC )?time-?out|"
        r"GSP firmware (?:halt|crash|hang|hung|stuck|timeout|timed out)|\bGSP (?:crash|hang|hung|halt)(?:es|ed|ing"
        r"|s)?\b",
    ),
    Message(
        "kernel.uvm_fatal",
        ("global fatal error", "nvidia-uvm: ", "nvidia_uvm: "),
        r"uvm encountered global fatal error (?P<status>0x[0-9a-f]+)|nvidia[-_]uvm: .*[Ff]atal error",
    ),
    Message(
        "kernel.gpu_locked",
        ("gpu is probably locked", "wait for idle timed out", "waiting for gpu progress"),
        r"GPU is probably locked|Wait for idle timed out|Error while waiting for GPU progress",
    ),
)

_HANGS = (
    Message(
        "kernel.hung_in_driver",
        "blocked for more than",
        r"task (?P<process>[^:\s]+(?::\[\w+\])?):(?P<pid>\d+) blocked for more than (?P<seconds>\d+) seconds"
        r"(?:(?=.*)[\s\S]*?(?P<module>\[nvidia\w*\]))?",
        lines=45,
    ),
    Message(
        "kernel.lockup_in_driver",
        ("soft lockup", "hard lockup"),
        r"(?:soft|hard) lockup(?:[^\n]*?stuck for (?P<seconds>\d+)s!)?"
        r"(?:[^\n]*?\[(?P<process>[A-Za-z][^\]:\n]*):\d+\])?(?:[\s\S]*?(?P<module>\[nvidia\w*\]))?",
        lines=45,
    ),
)

# Said by healthy machines, too.
_HARMLESS = (
    Message(
        "kernel.peermem_context",
        "detected invalid context",
        r"nv_get_p2p_free_callback:\d+ ERROR detected invalid context",
    ),
    Message(
        "kernel.modeset_complaint",
        "nvidia-modeset: ",
        r"nvidia-modeset: (?:WARNING|ERROR): GPU:\d+.*(?P<what>Lost display notification|Correcting number of heads|"
        r"Unable to read EDID|Idling display engine timed out|Failed (?:to )?allocat\w+ (?:primary )?display)",
    ),
)

MESSAGES: tuple[Message, ...] = (*_XIDS, *_LOST, *_PROBE, *_WINDOWS, *_GSP, *_HANGS, *_HARMLESS)
