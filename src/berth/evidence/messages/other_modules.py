"""Kernel modules of other makers' GPUs and accelerators that are not built, not loaded or lack a file."""

from berth.evidence.message import Message

_NAME = r"(?:amdgpu|amdkcl|amdttm|habanalabs\w*|neuron|xe|i915|intel_vpu|rbln|npu)"

MESSAGES: tuple[Message, ...] = (
    Message(
        "modprobe.other_absent",
        (
            "module amdgpu", "module amdkcl", "module amdttm", "module habanalabs", "module neuron", "module xe ",
            "module i915", "module intel_vpu", "module rbln", "module npu",
        ),
        rf"FATAL: Module (?P<module>{_NAME}) not found(?: in directory (?P<path>\S+))?",
    ),
    Message(
        "modprobe.other_refused",
        (
            "insert 'amdgpu", "insert 'amdkcl", "insert 'amdttm", "insert 'habanalabs", "insert 'neuron",
            "insert 'xe'", "insert 'i915", "insert 'intel_vpu", "insert 'rbln", "insert 'npu", "amdgpu: unknown symbol",
            "amdgpu: disagrees about version",
            "neuron: disagrees about version", "neuron: unknown symbol", "habanalabs: unknown symbol",
            "habanalabs: disagrees about version",
        ),
        rf"could not insert '(?P<module>{_NAME})': (?P<reason>Unknown symbol[^\n(]*|No such device|Invalid argument|"
        r"Exec format error|Invalid module format|Cannot allocate memory|No such file or directory)|"
        r"(?P<module2>amdgpu|neuron|habanalabs): (?P<reason2>Unknown symbol \w+|disagrees about version of symbol \w+)",
    ),
    Message(
        "modprobe.other_build_fails",
        (
            "/var/lib/dkms/amdgpu", "/var/lib/dkms/aws-neuron", "/var/lib/dkms/habanalabs", "package amdgpu-dkms",
            "package aws-neuron", "package habanalabs-dkms", "error! build of amdgpu", "error! build of aws-neuron",
            "error! build of habanalabs", "amdgpu-dkms ", "autoinstall on ",
        ),
        r"Consult /var/lib/dkms/(?P<module>amdgpu|aws-neuronx?|habanalabs)/\S+/make\.log|"
        r"dpkg: error processing package (?P<module2>amdgpu-dkms|aws-neuronx?-dkms|habanalabs-dkms)|"
        r"Error! Build of (?P<module3>amdgpu|aws-neuronx?|habanalabs)\S* failed|"
        r"dkms autoinstall on \S+ failed for [^\n]*\b(?P<module4>amdgpu|aws-neuronx?|habanalabs)",
    ),
    # Firmware without which a card of Intel does no work; that of its display is not of it.
    Message(
        "modprobe.other_firmware_missing",
        ("guc firmware ", "huc firmware ", "gsc firmware ", "_guc_"),
        r"GuC firmware (?P<file>(?:i915|xe)/\S+?):? fetch failed|"
        r"Direct firmware load for (?P<file2>(?:i915|xe)/\S*_guc_\S+) failed with error -2",
    ),
    # A card newer than the kernel that runs.
    Message(
        "modprobe.other_card_unknown",
        ("properly supported by", "officially supported by"),
        r"graphics device (?P<device>[0-9a-f]{4}) is not (?:properly|officially) supported by "
        r"(?P<module>i915|xe)(?: driver)? in this kernel version",
    ),
)  # fmt: skip
