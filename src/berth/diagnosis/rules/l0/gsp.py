"""L0. The GPU's own firmware (GSP) does not answer the driver, with an Xid or without."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.diagnosis.xid.seen import Event, Family
from berth.diagnosis.xid.story import story_of
from berth.diagnosis.xid.telling import account, quotations, surety, verdict_fix
from berth.evidence.fact import NO_PCI, Origin, Pci, pci_of, pci_words
from berth.evidence.facts import Facts

TIMEOUT = Code(
    name="GspTimeout",
    layer=Layer.L0,
    cause_class="driver-bug",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="the firmware of a GPU (GSP) does not answer the driver",
    meaning="Every call to this GPU waits or fails; nvidia-smi, the device plugin and DCGM hang on it, and processes "
    "cannot be killed. It stays so until the GPU is reset or the machine restarted.",
    known_by="Xid 119 or 120, or the driver waits for an answer of GSP or misses its heartbeat.",
    disproved_by="nvidia-smi -i PCI.0 answers at once, and no such line is younger than the last reset.",
    counter_check="timeout 20 nvidia-smi -i PCI.0 -q: answers; dmesg | grep -c 'RPC.*GSP': does not grow",
    fix=Fix(
        steps=(
            "kubectl cordon NODE; keep nvidia-bug-report.sh (it may hang, too: then the kernel log)",
            "end what holds the GPU, monitoring included; nvidia-smi --gpu-reset -i PCI.0; refused: restart the "
            "machine",
            "take a newer driver of the branch: several GSP defects are mended release by release (525.105.17 for one)",
            "on GPUs that can do without: options nvidia NVreg_EnableGpuFirmware=0 (proprietary module only)",
            "only one GPU of many, over and over: have it replaced",
        ),
        risk="reset or restart ends what runs there; a driver change needs the node drained",
        rollback="kubectl uncordon NODE; the former driver version",
    ),
    verify=("nvidia-smi -q -i PCI.0: answers within a second", "dcgmi diag -r 2: pass; no new Xid 119 or 120"),
    sources=("NVIDIA Xid catalogue, 119 and 120 (RESET_GPU)", "NVIDIA data centre driver release notes, 525 branch"),
)


def find(facts: Facts) -> Iterator[Answer]:
    """One finding for each device; without an address one for all that is said."""
    story = story_of(facts)
    lost = {(one.node, one.pci) for one in story.roots(Family.Lost)}
    by_device: dict[tuple[str, Pci], list[Event]] = story.by_device(Family.Firmware)
    said_of: dict[tuple[str, Pci], list[Origin]] = {}
    numbered = {one.origin.text for one in story.events}
    for said in facts.said("kernel.gsp_silent"):
        key = (said.node, pci_of(said.get("pci")))
        if said.origin.text not in numbered and key not in by_device:
            said_of.setdefault(key, []).append(said.origin)
    for (node, pci), causes in by_device.items():
        yield TIMEOUT.finding(
            f"The firmware of {causes[0].where} does not answer. {account(story, causes)}",
            surety(causes),
            quotations(story, causes),
            pci=pci,
            node=node,
            fix=verdict_fix(story, pci, node),
        )
    slow = list(facts.said("host.smi_slow"))
    if slow and not said_of and (on := list(facts.said("host.gsp_in_use"))):
        yield TIMEOUT.finding(
            "Queries take minutes while the GPU's own firmware does the work of the driver: rule it out first, with "
            "NVreg_EnableGpuFirmware=0 where the card can do without.",
            POSSIBLE,
            [*slow, *on],
        )
    if by_device or lost or any(one.family == Family.Firmware for one in story.events):
        return
    devices = {one.pci for one in story.events} - {NO_PCI}
    # Where the same load runs on the same hardware, it is no defect of the driver.
    sister = [said.origin for said in facts.said("host.sister_works")]
    for (node, pci), origins in said_of.items():
        if sister:
            is_link = any("nvlink" in origin.text.lower() for origin in origins)
            yield TIMEOUT.finding(
                "The firmware of a GPU of this machine fails, and the same load runs on another of the kind: "
                f"{'an NVLink or its switch' if is_link else 'the hardware'} of this one.",
                POSSIBLE,
                [*origins, *sister],
                pci=pci,
                node=node,
                cause_class="fabric" if is_link else "hw-fault",
            )
            continue
        pci = next(iter(devices)) if pci == NO_PCI and len(devices) == 1 else pci
        where = f"GPU {pci_words(pci)}" if pci != NO_PCI else "a GPU"
        yield TIMEOUT.finding(
            f"The driver waits in vain for the firmware of {where}; no Xid was printed with it.",
            ESTABLISHED if pci != NO_PCI else LIKELY,
            origins,
            pci=pci,
            node=node,
        )


RULE = Rule((TIMEOUT,), find)
