"""What amdgpu, the kernel driver of AMD's GPUs, says when a GPU does not start, errs, hangs or is gone."""

from berth.evidence.message import Message

_PCI = r"(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])"

MESSAGES: tuple[Message, ...] = (
    Message(
        "amd.init_failed",
        ("during gpu init", "amdgpu_device_ip_init failed", "of ip block <", "psp create ring failed",
         "unable to locate a bios rom",
         "amdgpu: probe of", "probe with driver amdgpu", "xgmi: "),
        rf"(?:amdgpu {_PCI}: )?(?:amdgpu: )?(?:Fatal error during GPU init|amdgpu_device_ip_init failed)|"
        r"amdgpu[^\n]*Unable to locate a BIOS ROM|XGMI: (?:Set topology failed|Failed to add|Get topology failed)|"
        r"\b[hs]w_init of IP block <(?P<block>\w+)> failed|PSP create ring failed|"
        rf"amdgpu: probe of {_PCI.replace('pci>', 'pci2>')} failed with error|"
        rf"amdgpu {_PCI.replace('pci>', 'pci3>')}: probe with driver amdgpu failed",
    ),
    Message(
        "amd.firmware_missing",
        ("firmware load for amdgpu/", 'failed to load firmware "amdgpu/'),
        r"Direct firmware load for (?P<file>amdgpu/\S+) failed with error -2|"
        r"[Ff]ailed to load firmware \"(?P<file2>amdgpu/\S+?\.bin)",
    ),
    Message(
        "amd.memory_uncorrectable",
        ("uncorrectable hardware error", "exceed threshold:", "poison is consumed"),
        rf"(?:amdgpu {_PCI}: )?(?:amdgpu: )?(?:\{{\d+\}})?(?:RAS: poison is consumed|"
        r"[1-9]\d* (?:new )?uncorrectable hardware errors detected "
        r"(?:in total )?in (?P<block>\w+) block|RAS records:\d+ exceed threshold:\d+|"
        r"uncorrectable hardware error ?\(\w+\) detected)",
    ),
    Message(
        "amd.lost",
        "device lost from bus",
        rf"(?:amdgpu {_PCI}: )?(?:amdgpu: )?device lost from bus",
    ),
    Message(
        "amd.hang",
        (" timeout, signaled seq", "amdgpu: gpu reset begin", "hw exception by gpu", "amdgpu: gpu recovery failed",
         "i'm not done with your previous command", "amdgpu: gpu reset(",
         "mes failed to respond", "mes might be in unrecoverable state", "device wedged"),
        r"SMU: I'm not done with your previous command|amdgpu: GPU reset\(\d+\) failed|"
        r"MES failed to respond to msg=|MES might be in unrecoverable state|device wedged, (?:but recovered|need)|"
        r"\bring (?P<ring>[\w.]+) timeout, signaled seq|amdgpu: GPU (?:reset begin|[Rr]ecovery [Ff]ailed)|"
        r"HW Exception by GPU node-\d+ [^\n]*reason ?: ?GPU Hang",
    ),
    Message(
        "amd.atomics_missing",
        ("rejects atomics", "atomic ops is not supported"),
        rf"kfd: (?:amdgpu: )?skipped device (?P<device>[0-9a-f]{{4}}:[0-9a-f]{{4}}), PCI rejects atomics"
        rf"|amdgpu {_PCI}: (?:amdgpu: )?PCIE atomic ops is not supported",
    ),
)  # fmt: skip
