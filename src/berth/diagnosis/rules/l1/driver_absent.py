"""L1. Nobody can talk to a driver: it is not loaded."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.heard import value
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.fact import Fact
from berth.evidence.facts import Facts
from berth.evidence.formats.machine_facts import ModulesSeen, PciSeen
from berth.evidence.formats.smi_facts import DeviceSeen

ABSENT = Code(
    name="DriverNotLoaded",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Critical,
    effect=Effect.NvmlFails,
    title="no NVIDIA driver is loaded",
    meaning="Nothing on the node can use a GPU. Mostly the kernel was updated and the module not rebuilt for it; also "
    "a module that was refused, or a driver that was never installed.",
    known_by="nvidia-smi or NVML cannot communicate with a driver.",
    disproved_by="`lsmod | grep ^nvidia` on the node shows the modules: then the container has no access to them.",
    counter_check="on NODE: lsmod | grep ^nvidia: the modules are there (then the container has no access to them)",
    fix=Fix(
        steps=(
            "on NODE: modprobe nvidia: what it answers is the reason",
            "not found: rebuild for this kernel (headers, dkms autoinstall), or reinstall the driver",
            "refused: signature, SELinux or nouveau; see dmesg",
        ),
        risk="none for what runs: no GPU works here",
        rollback="nothing to undo",
    ),
    verify=("on NODE: nvidia-smi -L: the GPUs", "kubectl get node NODE: nvidia.com/gpu allocatable again"),
    sources=("nvidia-smi(1)", "NVML, NVML_ERROR_DRIVER_NOT_LOADED"),
)
_HOLDERS = {"nvidia", "nouveau", "vfio_pci"}


def find(facts: Facts) -> Iterator[Answer]:
    said = list(facts.said("nvml.no_driver"))
    unserved = _unserved(facts)
    refused = list(facts.said("modprobe.refused_otherwise", "modprobe.invalid_argument"))
    bare = [one for one in facts.said("nvml.not_installed") if one.origin.kind in ("host", "probe", "lspci")]
    if said and unserved:
        yield ABSENT.finding(
            "The kernel module is not loaded: NVML reaches no driver.", ESTABLISHED, [*said, *unserved]
        )
    elif refused and not said:
        reason = next((found for one in refused if (found := value(one, "reason"))), "Invalid argument")
        yield ABSENT.finding(f"The kernel does not take the module: {reason}; its log says why.", POSSIBLE, refused)
    elif unserved:
        yield ABSENT.finding("There are GPUs, and no driver serves them.", LIKELY, [*unserved, *bare])
    elif not said and (told := list(facts.said("nvml.modules_told"))):
        yield ABSENT.finding("The modules are said not to be loaded.", POSSIBLE, told)
    elif not said and (rootless := list(facts.said("nvml.not_in_root"))):
        yield ABSENT.finding(
            "The validator finds no driver in the root where it looks: none is installed on the host, or the driver "
            "container did not get to it.",
            POSSIBLE,
            rootless,
        )
    elif bare and not said:
        yield ABSENT.finding("The node does not have the tools and libraries of a driver.", LIKELY, bare)
    elif said:
        node = said[0].node
        works: list[Fact] = [one for one in facts.of(DeviceSeen) if one.node == node]
        # The container was given no device file: that says nothing of the node.
        works += facts.said("cdi.without_nodes")
        yield ABSENT.finding(
            "NVML reaches no driver: its kernel module is not loaded."
            if not works
            else "NVML reaches no driver from one place: elsewhere devices are listed, or here no file was given.",
            WEAK if works else LIKELY,
            [*said, *works[:1]],
        )
        if not works and not facts.looked_at("dmesg"):
            yield Unconfirmed(
                "why the module is not loaded", "on NODE: modprobe nvidia; dmesg | grep -i -E 'nvrm|nvidia'",
                ABSENT.name, Layer.L1, node,
            )  # fmt: skip


def _unserved(facts: Facts) -> list[Fact]:
    """GPUs that no module has, as lspci -k shows them; or a whole list of modules in which nvidia is not."""
    gpus = [one for one in facts.of(PciSeen) if one.is_gpu and not one.is_dead and one.function == 0]
    if any(one.driver for one in gpus):  # of some it says so: nvidia, or who else has them
        return []
    idle = [one for one in gpus if one.modules]
    listed = [one for one in facts.of(ModulesSeen) if one.is_whole]
    without = [one for one in listed if not _HOLDERS & set(one.loaded)]
    if listed and not without:
        return []
    return [*idle, *(without if gpus else ())]


RULE = Rule((ABSENT,), find)
