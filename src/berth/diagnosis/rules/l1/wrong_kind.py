"""L1. The driver does not serve this kind of GPU: open against proprietary modules, or a branch too new or too old."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.fact import pci_of, pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.machine_facts import KernelDriver, PciSeen

WRONG_KIND = Code(
    name="DriverModuleKindWrong",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="the other kind of kernel module is needed for this GPU",
    meaning="NVIDIA's driver has two kinds of kernel modules. Open ones serve Turing and newer and alone serve Grace "
    "and Blackwell; proprietary ones serve what is older. With the wrong kind nvidia-smi finds no devices.",
    known_by="The module says in the kernel's log that the GPU needs the open modules, or that the open ones do not "
    "support it.",
    disproved_by="The GPU is initialised after all: `nvidia-smi -L` lists it.",
    counter_check="on NODE: nvidia-smi -L: lists the GPU; modinfo -F license nvidia (Dual MIT/GPL: the open kind): "
    "the kind that dmesg asks for",
    fix=Fix(
        steps=(
            "GPU Operator: driver.kernelModuleType=open or proprietary (auto decides by the GPU)",
            "host: install the -open packages, or those without; nvidia-installer -m=kernel-open or -m=kernel",
            "reboot, or unload the old modules first",
        ),
        risk="the GPU pods of the node have to leave",
        rollback="the former packages or value",
    ),
    verify=("nvidia-smi -L: every GPU", "dmesg: no 'open kernel modules' after the load"),
    sources=("driver README, Open Linux Kernel Modules", "gpu-driver-container, KERNEL_MODULE_TYPE"),
)
UNSUPPORTED = Code(
    name="GpuNotServedByDriver",
    layer=Layer.L1,
    cause_class="version-mismatch",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="this driver release does not support the GPU",
    meaning="The card is newer than the driver branch, or so old that only a legacy branch serves it.",
    known_by="The module names the GPU and says that its release does not support it, or names the legacy branch.",
    disproved_by="The list of supported chips in the README of this very release has the card's PCI id.",
    counter_check="on NODE: nvidia-smi -L: lists the GPU; lspci -nn -d 10de:: an id that the driver's "
    "own README lists",
    fix=Fix(
        steps=(
            "look the PCI id up in the driver's README, appendix A, and take a branch that has it",
            "GPU Operator: driver.version of that branch; a card of a legacy branch needs a host driver",
        ),
        risk="CUDA of the images has to fit the branch",
        rollback="the former driver version",
    ),
    verify=("nvidia-smi -L: the GPU",),
    sources=("driver README, appendix A", "open-gpu-kernel-modules, nv-pci.c"),
)


# PCI ids of GB10x, GB20x, GB10 and GB11x, which only the open modules serve.
_ONLY_OPEN = ((0x2900, 0x2FFF), (0x3180, 0x31FF))


def _needs_open(card: PciSeen) -> bool:
    try:
        number = int(card.device, 16)
    except ValueError:
        return False
    return card.vendor == "10de" and any(low <= number <= high for low, high in _ONLY_OPEN)


def _by_card(facts: Facts) -> Iterator[Answer]:
    """A Blackwell card and proprietary modules, whether the log says so or not."""
    closed = [one for one in facts.of(KernelDriver) if one.is_loaded and not one.is_open and one.version >= "5"]
    for card in facts.of(PciSeen) if closed else ():
        same = [one for one in closed if one.node == card.node]
        if same and _needs_open(card):
            yield WRONG_KIND.finding(
                f"GPU {pci_words(card.pci)} is of a kind that only the open kernel modules serve, and the proprietary "
                f"ones of {same[0].version} are loaded.",
                LIKELY,
                [card, same[0]],
                pci=card.pci,
                node=card.node,
            )


def find(facts: Facts) -> Iterator[Answer]:
    if not any(facts.said("driver.wrong_flavour")):
        yield from _by_card(facts)
    for said in facts.said("driver.wrong_flavour"):
        needs_open = bool(said.get("open") or said.get("open2") or said.get("open3"))
        pci = pci_of(said.get("pci"))
        yield WRONG_KIND.finding(
            f"GPU {pci_words(pci)} ".replace("GPU  ", "The GPU ")
            + (
                "needs the open kernel modules, and the proprietary ones are installed."
                if needs_open
                else "is too old for the open kernel modules, which are installed."
            ),
            ESTABLISHED if said.get("open") or said.get("closed") else LIKELY,
            [said],
            pci=pci,
        )
    if mixed := list(facts.said("driver.kinds_mixed")):
        yield WRONG_KIND.finding(
            "Some cards of the node need the open kernel modules and some the proprietary ones.", LIKELY, mixed
        )
    # A dead card may be refused with the same words, while others like it work: then one is missing.
    is_short = any(facts.said("host.gpus_missing", "host.gpus_missing_told"))
    for said in facts.said("driver.gpu_unsupported") if not is_short else ():
        pci = pci_of(said.get("pci"))
        branch, driver = said.get("branch"), said.get("driver")
        yield UNSUPPORTED.finding(
            f"Only the legacy branch {branch} serves this card."
            if branch
            else f"Release {driver} does not support it."
            if driver
            else "The guest's driver does not fit the vGPU manager of the host.",
            LIKELY,
            [said],
            pci=pci,
        )


RULE = Rule((WRONG_KIND, UNSUPPORTED), find)
