"""The event log of a machine's management (BMC): `ipmitool sel list`, and the words of iDRAC, iLO and XCC."""

from berth.evidence.message import Message

_DIMM = r"(?:DIMM|memory (?:device|module))"
_BOX = r"(?:PC|computer|desktop|workstation|rig)"
_GOES_OFF = (
    r"(?:does a cold reboot|does a cold reset|does a hard reboot|does a hard reset|turns off|switches off|powers off"
    r"|turned off|powered off|shuts down|shuts off|shut down|shut off|power cycles|reboots)"
)
_UNDER_LOAD = r"(?:train(?:s|ing)?|under (?:full |heavy |GPU )?load|epochs?|training steps)"
_SOON = r"(?:(?!\bnot\b|\bnever\b|\bnothing\b|n't\b|\bupdat)[^\n;.])"

MESSAGES: tuple[Message, ...] = (
    # The event log of the machine's management (`ipmitool sel list`).
    Message(
        "host.sel_pcie",
        "critical interrupt",
        r"Critical Interrupt\b[^|]*\|\s*(?P<what>Bus (?P<kind>Correctable|Uncorrectable|Fatal|Degraded)[^|]*|"
        r"PCI (?P<kind2>[SP]ERR)[^|]*)\|\s*Asserted",
    ),
    # Without a device that one could look up: a slot, or an address of another spelling.
    Message(
        "host.slot_error",
        (
            "fatal error was detected on a component at",
            "uncorrectable pci express error",
            "pci bus error (slot",
            "nmi: pci system error",
            "nmi: iock error",
            "nvidiapcieerror",
            "pcie link training",
            "link training error on pcie",
            "bus uncorrectable error is detected",
        ),
        r"\b(?:a|an) (?:bus )?fatal error was detected on a component at (?P<where>bus \d+ device \d+ function \d+"
        r"|slot \d+)|Uncorrectable PCI Express Error(?: Detected)?\W*(?P<where2>Slot \d+)?"
        r"|PCI Bus Error \((?P<where3>Slot \d+)|NMI: (?:PCI system|IOCK) error|PCIe link training (?:failure|error)"
        r"|link training error on PCIe|bus uncorrectable error is detected(?: at (?P<where4>slot \d+))?"
        r"|NvidiaPCIeError(?!\W+(?:status\W+)?False)",
    ),
    Message(
        "host.dimm_error",
        (
            "uncorrectable ecc",
            "uncorrectable memory error",
            "uncorrectable error detected",
            "multi-bit memory error",
            "multi-bit ecc",
        ),
        r"\|\s*Memory\b[^|\n]*\|\s*Uncorrectable ECC[^\n]*"
        rf"|Uncorrectable (?:ECC|memory error)\b[^\n]{{0,60}}\b\w*-?{_DIMM}"
        rf"|Uncorrectable error detected[^\n]{{0,30}}\b{_DIMM}"
        r"|Multi-bit memory errors? (?:was |were |are )?detected\b|error_type: \d+, multi-bit ECC",
    ),
    Message(
        "host.processor_error",
        ("| ierr", "internal error (ierr)", "has an internal error", "machine check exception"),
        r"\|\s*Processor\b[^|\n]*\| IERR\b|CPU ?\d+ has an internal error|internal error \(IERR\)"
        r"|Uncorrectable Machine Check Exception|\[Hardware Error\]: CPU \d+: Machine Check Exception: ",
    ),
    Message(
        "host.cooling_failed",
        (
            "going high",
            "going low",
            "upper critical",
            "lower critical",
            "therm overt",
            "thermal trip",
            "nvidiathermalerror",
            "critical temperature reached",
            "over temperature range",
            "ctf) detected",
            "gpu sw ctf",
            "coolant leak",
            " overt",
            "leak detected",
            "not spin",
            "n't spin",
            "stopped spinning",
        ),
        r"\|\s*Temperature\b[^|\n]*\bGPU[^|\n]*\| Upper (?:Critical|Non-recoverable) going high"
        r"|\|\s*Fan\b[^|\n]*\| Lower (?:Critical|Non-recoverable) going low"
        r"|\bGPU ?\d*\b[^\n]{0,30}\btemperature is (?:greater|higher|above)\b[^\n]{0,20}\bupper critical"
        r"|\bHGX_GPU\w*TEMP\w* has exceeded the upper critical|\bGPU_SXM_\d+ OverT\b"
        r"|thermal_zone\d+: critical temperature reached|: critical temperature reached[^\n]{0,12}, shutting down"
        r"|amdgpu[^\n]*: GPU over temperature range|amdgpu[^\n]*\bCTF\) detected|due to GPU SW CTF"
        r"|\b(?:coolant leak|liquid leak detected|water leak detected"
        r"|leak detected in (?:tray \d|the rack|the manifold))"
        r"|\bfans?\b[^\n]{0,30}(?: not spin|n't spin|stopped spinning)"
        r"|\bfan\b[^\n]{0,30}\bis (?:less than|lower than|below) [^\n]{0,12}\blower critical"
        r"|\bGPU ?\d+\b[^\n|]{0,12}\bTHERM OVERT\b|\bGPU\b[^\n]{0,30}\bthermal trip\b|NvidiaThermalError"
        r"(?!\W+(?:status\W+)?False)",
    ),
    # Somebody's own words: it goes off as soon as the cards draw what they may.
    Message(
        "host.off_under_load",
        (
            *(f"{adjective} re{noun}" for adjective in ("cold", "hard") for noun in ("boot", "set")),
            *(f"{verb} off" for verb in ("turns", "switches", "powers", "turned", "powered", "shuts", "shut")),
            *("shuts down", "shut down", "power cycles", "reboots", "reboot w", "reboot under", "reboot during"),
        ),
        rf"\b{_BOX}\b{_SOON}{{0,30}}\b{_GOES_OFF}\b{_SOON}{{0,100}}\b{_UNDER_LOAD}\b"
        rf"|\b{_UNDER_LOAD}\b{_SOON}{{0,60}}\b{_BOX}\b{_SOON}{{0,30}}\b{_GOES_OFF}\b"
        r"|\b(?:immediate|instant|sudden|random|spontaneous) (?:reboot when|reboot while|reboot under|reboot during)\b"
        rf"[^\n]{{0,40}}\b{_UNDER_LOAD}\b",
    ),
    Message(
        "host.supply_event",
        ("power supply ac lost", "redundancy lost", "redundancy is lost", "nvidiapowererror", "input lost"),
        r"\|\s*Power Supply\b[^|\n]*\| Power Supply (?:AC|input) lost|\|\s*Power (?:Supply|Unit)\b[^|\n]*\| Redundancy "
        r"Lost|\bpower (?:supply |input )?redundancy is lost|NvidiaPowerError(?!\W+(?:status\W+)?False)",
    ),
)
