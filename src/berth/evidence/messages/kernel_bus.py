"""PCI Express in the kernel's log: errors that it reports (AER, DPC), slots, links, power states, and the machine's own
errors."""

from berth.evidence.message import Message

_PCI = r"(?:PCI:)?(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?)"

MESSAGES: tuple[Message, ...] = (
    Message(
        "kernel.aer_uncorrected",
        ("severity=uncorrect", "pcie bus error: uncorrect", "uncorrected (", "uncorrectable ("),
        rf"^(?:.*?(?P<driver>[\w-]+) {_PCI}: )?.*(?:Bus Error: (?:severity=)?|AER: (?:Multiple )?)"
        r"Uncorrect(?:ed|able) \((?P<fatality>Non-Fatal|Fatal)\)(?:.*?type=(?P<type>[\w ]+))?",
    ),
    Message(
        "kernel.aer_corrected",
        ("severity=correct", "bus error: correct", "aer: correct", "aer: multiple correct"),
        rf"(?P<driver>[\w-]+) {_PCI}: .*(?:Bus Error: (?:severity=)?|AER: (?:Multiple )?)Correct(?:ed|able)"
        r"(?: error)?\b(?:.*?type=(?P<type>[\w ]+))?",
    ),
    Message(
        "kernel.aer_not_recovered",
        ("no error_detected callback", "device recovery failed", "subordinate device reset failed"),
        rf"(?P<driver>[\w-]+) {_PCI}: (?:AER: )?(?:can't recover \(no error_detected callback\)|"
        rf"device recovery failed|subordinate device reset failed)",
    ),
    Message(
        "kernel.dpc",
        "dpc: ",
        rf"{_PCI}: (?:DPC|pcieport DPC): (?:containment event|.*(?:uncorrectable error|ERR_FATAL|ERR_NONFATAL)"
        r"|RP PIO error detected|link not active, device removed)",
    ),
    Message(
        "kernel.slot_down",
        "pciehp",
        rf"{_PCI}: pciehp: Slot\((?P<slot>[^)]*)\): (?P<event>Link Down|Card not present|No device found"
        r"|Cannot train link|Failed to check link status|Power fault)",
    ),
    Message(
        "kernel.power_state",
        ("change power state", "ms after"),
        rf"(?P<driver>[\w-]+) {_PCI}: (?:refused to change power state, currently in D3|"
        r"(?:Unable to|can't) change power state from \S+ to \S+ ?[,(].*inaccessible|"
        r"not ready \d+ms after (?:FLR|bus reset|resume|DPC)[;,] giving up)",
    ),
    # As lspci marks a link that is below what its ends can do.
    Message(
        "lspci.link",
        "lnksta:",
        r"LnkSta:\s*Speed (?P<speed>\d+(?:\.\d+)?)GT/s(?: \((?P<speed_is>downgraded|ok|overdriven)\))?, "
        # pciutils leave `(ok)` out from 3.10 on.
        r"Width x(?P<width>\d+)(?: \((?P<width_is>downgraded|ok|overdriven)\))?",
    ),
    # Printed at enumeration, when a GPU may idle at 2.5 GT/s: only the width tells something then.
    Message(
        "kernel.link_limited",
        "(capable of ",
        rf"{_PCI}: .*limited by (?P<speed>[\d.]+) GT/s PCIe x(?P<width>\d+) link at (?P<at>[0-9a-f:.]+) "
        r"\(capable of .*with (?P<best_speed>[\d.]+) GT/s PCIe x(?P<best_width>\d+) link\)",
    ),
    # Errors that the firmware of the machine takes first (APEI): a block of lines.
    Message(
        "kernel.firmware_pcie_error",
        "event severity: ",
        rf"event severity: (?P<severity>fatal|recoverable)[\s\S]*?section_type: PCIe error[\s\S]*?device_id: {_PCI}"
        r"(?:[\s\S]*?vendor_id: 0x(?P<vendor>[0-9a-f]{4}))?",
        lines=25,
    ),
    Message(
        "kernel.machine_check",
        ("hardware error", "edac ", "memory failure: ", "machine check", "hardware memory error",
         "hardware memory corruption"),
        r"EDAC MC\d+: UE page |\[Hardware Error\]: Uncorrected, software (?:restartable|containable) error|"
        r"MCE: Killing [^\n]* due to hardware memory corruption|EDAC (?:\S+ )?\S+: \d+ UE\b|"
        r"Uncorrect(?:ed|able) (?:hardware memory|machine check) error|"
        r"Memory failure: 0x[0-9a-f]+: |Machine check: Processor context corrupt|Fatal machine check|"
        r"Fatal hardware error!|"
        r"\[Hardware Error\]:.*(?:memory|MC\d+).*(?:uncorrected|fatal)",
    ),
    Message("kernel.surprise_down", ("surprise down", "surprise link down"), r"Surprise (?:Link )?Down"),
    # The bits of an uncorrected error, a line each: `[14] CmpltTO (First)`. Corrected ones have other names.
    Message(
        "kernel.aer_bits",
        (
            "] dlp ", "] sdes", "] poisontlp", "] tlp ", "] fcp ", "] cmpltto", "] cmpltabrt", "] unxcmplt", "] rxof ",
            "] malftlp", "] ecrc ", "] unsupreq", "] acsviol", "] uncorrinterr", "] blockedtlp",
        ),
        rf"(?P<driver>[\w-]+) {_PCI}: (?:AER: )? *\[ ?\d+\] (?P<bit>DLP |SDES|PoisonTLP|TLP |FCP |CmpltTO|CmpltAbrt"
        r"|UnxCmplt|RxOF |MalfTLP|ECRC |UnsupReq|ACSViol|UncorrIntErr|BlockedTLP)",
    ),
    Message(
        "kernel.aer_bits_corrected",
        ("] rxerr", "] badtlp", "] baddllp", "] rollover", "] timeout "),
        rf"(?P<driver>[\w-]+) {_PCI}: (?:AER: )? *\[ ?\d+\] (?P<bit>RxErr|BadTLP|BadDLLP|Rollover|Timeout )",
    ),
    Message(
        "kernel.link_not_trained",
        ("retraining non-functional", "retraining failed", "layer link active not set in"),
        rf"(?P<driver>[\w-]+) {_PCI}: (?:broken device, retraining non-functional downstream link|retraining failed"
        r"|Data Link Layer Link Active not set in)",
    ),
)
