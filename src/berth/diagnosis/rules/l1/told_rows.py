"""L0 and L1. What somebody tells of a machine, its cards and their driver, and what usually causes it.

They are asked before those of the upper layers (l5/told.py): the first row that fits a line answers.
"""

from __future__ import annotations

from berth.diagnosis.rules.l0 import (
    address_windows,
    gpus_missing,
    gsp,
    heat_and_power,
    memory_errors,
    nvlink_down,
    said_faulty,
)
from berth.diagnosis.rules.l1 import (
    after_sleep,
    device_files,
    driver_absent,
    driver_defect,
    driver_in_use,
    fabric_manager_down,
    foreign_driver,
    kernel_headers,
    module_build,
    module_refused,
    version_skew,
    vgpu_license,
    wrong_kind,
)
from berth.diagnosis.rules.l5 import passthrough
from berth.diagnosis.rules.l6 import image, peer_access
from berth.diagnosis.told_row import Row
from berth.diagnosis.words import POSSIBLE

# Components of the upper layers that have words of their own.
_ABOVE = "plugin, operand, operator, claims, kubelet, runtime, partitions, queue, autoscaler, labels, figures"
_UNSIGNED = "The kernel is said to refuse the module for its signature."
_SKEW = "Module and libraries are said to be of different versions."
_NOT_BUILT = "The module is said not to build."
_NOT_LOADED = "The driver is said not to work since the system changed: mostly the module was not built for its kernel."
_OTHER_RELEASE = "Another release of the driver is said to work."
_NO_WINDOW = "The machine is said to have no place for the GPU's memory regions."
_KERNEL_DIES = "The kernel is said to die in the driver."
_IOMMU = "The IOMMU is said to be in the way of peer access."
_NOT_GIVEN_BACK = "The GPU is said not to come back from a virtual machine, or not to be free for one."
_FAULTY = "A GPU of the machine is said to be faulty."

ROWS: tuple[Row, ...] = (
    Row("signing, refused, nvidia", module_refused.UNSIGNED, _UNSIGNED, POSSIBLE, unless="plugin, operator"),
    Row("signing, refused, a driver, module", module_refused.UNSIGNED, _UNSIGNED, POSSIBLE, unless="plugin, operator"),
    Row("signing, does not do, a driver", module_refused.UNSIGNED, _UNSIGNED, POSSIBLE, unless=_ABOVE),
    Row("signing, does not do, driver pods", module_refused.UNSIGNED, _UNSIGNED, POSSIBLE),
    Row("kernel dies, a driver", driver_defect.CRASH, _KERNEL_DIES, POSSIBLE, unless=_ABOVE),
    Row("kernel dies, nvidia", driver_defect.CRASH, _KERNEL_DIES, unless=_ABOVE),
    Row("headers, wanted, of nvidia", kernel_headers.NO_HEADERS, "Headers of the kernel are said to be missing.",
        POSSIBLE, unless="signing"),
    Row("nouveau, kept out, trouble", foreign_driver.NOUVEAU, "nouveau is to be kept out, and was not.", POSSIBLE),
    Row("nouveau, kept out, cured", foreign_driver.NOUVEAU, "It works since nouveau is kept out.", POSSIBLE),
    Row("nouveau, refused", foreign_driver.NOUVEAU, "nouveau is said to be in the way.", POSSIBLE),
    Row("open kind, young card", wrong_kind.WRONG_KIND, "Such a card needs the open kernel modules.", POSSIBLE,
        unless="window, hangs"),
    Row("no build, nvidia", module_build.BUILD_FAILS, _NOT_BUILT, POSSIBLE, unless="cuda, runtime, plugin"),
    Row("no build, dkms", module_build.BUILD_FAILS, _NOT_BUILT, unless="runtime, plugin"),
    Row("no build, a driver, module", module_build.BUILD_FAILS, _NOT_BUILT, POSSIBLE, unless="cuda, runtime, plugin"),
    Row("apart, a driver, module", version_skew.SKEW, _SKEW, POSSIBLE, unless="figures, claims"),
    Row("apart, module, user space", version_skew.SKEW, _SKEW, POSSIBLE, unless="figures, claims, cuda"),
    Row("apart, a driver, nvidia", version_skew.SKEW, _SKEW, POSSIBLE, unless="figures, claims, cuda, nvlink, runtime"),
    Row("apart, a driver, user space", version_skew.SKEW, _SKEW, unless="figures, claims, cuda, nvlink, runtime"),
    Row("gsp, dies", gsp.TIMEOUT, "GSP is said not to answer.", POSSIBLE),
    Row("gsp, hangs", gsp.TIMEOUT, "GSP is said not to answer.", POSSIBLE),
    Row("passthrough, no reset", passthrough.UNUSABLE, _NOT_GIVEN_BACK, POSSIBLE),
    Row("passthrough, vm, not back", passthrough.UNUSABLE, _NOT_GIVEN_BACK, POSSIBLE),
    Row("vm, no reset, card", passthrough.UNUSABLE, _NOT_GIVEN_BACK, POSSIBLE),
    Row("device files, not loaded", device_files.MISSING, "The device files are said not to be made.", unless="plugin"),
    Row("module, nvidia, not loaded", driver_absent.ABSENT, "The module is said not to load.",
        unless="plugin, claims, signing, sleep"),
    Row("driver pods, repositories, does not do", kernel_headers.NO_REPOSITORY,
        "The driver's pods are said to reach no packages.", POSSIBLE, unless="taint"),
    Row("wants a driver, release", image.TOO_OLD, "The CUDA at hand is said to want a newer driver.", POSSIBLE),
    Row("fabric state, does not do", nvlink_down.DOWN, "The fabric is said to be ill.", POSSIBLE, unless="operator"),
    Row("vgpu, no license", vgpu_license.UNLICENSED, "The vGPU is said to have no license.", POSSIBLE),
    Row("fabric manager, does not do", fabric_manager_down.DOWN, "Fabric Manager is said not to run.", POSSIBLE,
        unless="operator, apart, a driver"),
    Row("peer, iommu, does not do", peer_access.BLOCKED, _IOMMU, POSSIBLE),
    Row("peer, iommu, kept out", peer_access.BLOCKED, _IOMMU, POSSIBLE),
    Row("peer, iommu, hangs", peer_access.BLOCKED, _IOMMU, POSSIBLE),
    Row("went back, release, does not do", driver_defect.REGRESSION, _OTHER_RELEASE, POSSIBLE, unless=_ABOVE),
    Row("went back, release, hangs", driver_defect.REGRESSION, _OTHER_RELEASE, POSSIBLE, unless=_ABOVE),
    Row("went back, release, a driver", driver_defect.REGRESSION, _OTHER_RELEASE, POSSIBLE, unless=_ABOVE),
    Row("went back, release, card", driver_defect.REGRESSION, _OTHER_RELEASE, unless=_ABOVE),
    Row("sleep, cuda, does not do", after_sleep.ASLEEP, "CUDA is said not to outlive the sleep of the machine.",
        POSSIBLE, unless="queue, pending"),
    Row("unload, held, module", driver_in_use.IN_USE, "The module is said to be in use.", POSSIBLE,
        unless="partitions, mig manager"),
    Row("kernel changed, a driver, does not do", driver_absent.ABSENT, _NOT_LOADED, POSSIBLE, unless=_ABOVE),
    Row("kernel changed, smi, does not do", driver_absent.ABSENT, _NOT_LOADED, POSSIBLE,
        unless=f"{_ABOVE}, container update"),
    Row("kernel changed, reboot, does not do, card", driver_absent.ABSENT, _NOT_LOADED, unless=_ABOVE),
    Row("not for the card, release", wrong_kind.UNSUPPORTED, "The driver is said not to serve these cards.", POSSIBLE,
        unless="cuda, claims, plugin, operator"),
    Row("not for the card, nvidia", wrong_kind.UNSUPPORTED, "The driver is said not to serve these cards.", POSSIBLE,
        unless="cuda, claims, plugin, operator"),
    Row("already there, a driver, does not do", foreign_driver.TWO_DRIVERS, "A driver is said to be there already.",
        POSSIBLE, unless="plugin, claims"),
    Row("kernel changed, nvidia, module, trouble", driver_absent.ABSENT, _NOT_LOADED, unless=_ABOVE),
    Row("restart, vm, does not do", driver_absent.ABSENT, _NOT_LOADED, unless=_ABOVE),
    Row("reboot, a driver, does not do", driver_absent.ABSENT, _NOT_LOADED, unless=_ABOVE),
    # Hardware: what is named with certainty is rarely told; the rest are hints.
    Row("window, no room, of a card", address_windows.UNASSIGNED, _NO_WINDOW, POSSIBLE, unless="plugin, claims"),
    Row("nvlink, link down, card", nvlink_down.DOWN, "NVLink is said to fail.", unless=_ABOVE),
    Row("smi, lspci, does not do", gpus_missing.MISSING, "The bus has a GPU that nvidia-smi does not show.",
        unless="a driver, module"),
    Row("hardware blamed, of a card", said_faulty.FAULTY, "It is said to have been the hardware.", POSSIBLE,
        unless="plugin, operator, window"),
    Row("one machine, of a card", said_faulty.FAULTY, "It happens on one machine, and not on others like it.", POSSIBLE,
        unless=f"{_ABOVE}, a driver, kernel changed, apart"),
    Row("power, hangs, of a card", said_faulty.FAULTY, "The machine's power supply is suspected."),
    Row("power, goes off, of a card", said_faulty.FAULTY, "The machine's power supply is suspected.", POSSIBLE),
    Row("power, cured, of a card", said_faulty.FAULTY, "It was the power of the card.", POSSIBLE),
    Row("slot, cured, of a card", said_faulty.FAULTY, "It was the slot or the riser of the card.", POSSIBLE,
        unless="window"),
    Row("goes off, under load, of a card", said_faulty.FAULTY, "The machine goes off under load: power or heat."),
    Row("power, ill, of a card", said_faulty.FAULTY, "The machine's power supply is said to be at fault.", POSSIBLE),
    Row("power, does not do, card", said_faulty.FAULTY, "The machine's power supply is said to be at fault."),
    Row("memory ill, rising", memory_errors.UNCORRECTED, "Errors of a GPU's memory are said to grow.", POSSIBLE),
    Row("memory ill, card, ill", memory_errors.UNCORRECTED, "A GPU is said to have errors of its memory."),
    Row("hot, card", heat_and_power.HOT, "A GPU is said to be too hot."),
    Row("throttled, card", heat_and_power.HOT, "A GPU is said to be held back: heat, or power.",
        unless="plugin, queue, figures, watching"),
    Row("short of cards, smi", gpus_missing.MISSING, "nvidia-smi is said not to show them all.",
        unless=f"{_ABOVE}, view"),
    Row("drops off, card", gpus_missing.MISSING, "A GPU is said to leave the bus.", unless=f"{_ABOVE}, view"),
    Row("ill, card", said_faulty.FAULTY, _FAULTY, unless=f"{_ABOVE}, a driver, cuda, module"),
    Row("riser, does not do, card", said_faulty.FAULTY, "A riser is said to stand between slot and card.",
        unless=f"{_ABOVE}, a driver, window"),
    Row("driver changed, nvidia, does not do", version_skew.SKEW, "The driver is said to have been upgraded.",
        unless=f"{_ABOVE}, kernel changed, reboot, release"),
    Row("nvidia, a driver, does not do", driver_absent.ABSENT, "The driver is said not to work.",
        unless=f"{_ABOVE}, cuda, figures, watching, vm, vgpu"),
)  # fmt: skip
