"""L1. The module that is there is for another kernel, or is not there at all for this one."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

_FIX = Fix(
    steps=(
        "on NODE: uname -r; dkms status; find /lib/modules -name 'nvidia*.ko*'",
        "install the headers of the running kernel and rebuild: dkms autoinstall; or reinstall the driver's packages",
        "driver container: delete the driver pod of the node, it builds for the kernel that runs",
        "pin the kernel, or make the kernel's update rebuild the module (dkms, kmod packages)",
    ),
    risk="pods that still hold the old module block its replacement",
    rollback="boot the former kernel",
)
OTHER_KERNEL = Code(
    name="DriverModuleForOtherKernel",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="the driver's module was built for another kernel",
    meaning="The kernel was updated, or the module comes from elsewhere: its symbols or its version do not fit, and "
    "there is no driver.",
    known_by="The kernel refuses the format or a symbol of the module.",
    disproved_by="`modinfo -F vermagic nvidia` begins with what `uname -r` prints; the symbol is in /proc/kallsyms.",
    counter_check="on NODE: modinfo -F vermagic nvidia: begins with what uname -r prints; dmesg | grep -E 'version "
    "magic|Unknown symbol': nothing since",
    fix=_FIX,
    verify=("on NODE: modprobe nvidia && nvidia-smi -L: the GPUs",),
    sources=("kernel, kernel/module/main.c", "modprobe(8)"),
)
NOT_BUILT = Code(
    name="DriverModuleMissing",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="the running kernel has no NVIDIA module",
    meaning="There is no driver for the kernel that runs: it was updated and nothing was rebuilt, or no driver was "
    "ever installed here.",
    known_by="modprobe does not find the module in the directory of the running kernel.",
    disproved_by="The module is there: `find /lib/modules/$(uname -r) -name 'nvidia.ko*'`.",
    counter_check="on NODE: find /lib/modules/$(uname -r) -name 'nvidia*.ko*': files; dkms status: installed for this "
    "kernel",
    fix=_FIX,
    verify=("on NODE: modprobe nvidia nvidia-uvm && nvidia-smi -L: the GPUs",),
    sources=("modprobe(8)", "dkms(8)"),
)
NO_DEVICE = Code(
    name="DriverFindsNoGpu",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Critical,
    effect=Effect.NvmlFails,
    title="the driver is loaded, or would be, and finds no GPU that it can serve",
    meaning="Nothing on the node can use a GPU. The kernel's log says why: a card that this kind of module does not "
    "serve, another driver that owns it, or a card that does not start.",
    known_by="nvidia-smi finds no devices, or the module cannot be inserted for want of a device.",
    disproved_by="`nvidia-smi -L` lists the GPUs on the node itself.",
    counter_check="on NODE: nvidia-smi -L: lists the GPUs; lspci -nnk -d 10de:: nvidia is in use",
    fix=Fix(
        steps=(
            "on NODE: dmesg | grep -i nvrm: the reason stands there",
            "Blackwell and Grace need the open modules, cards before Turing the proprietary ones",
            "a card that does not start: power the machine off and on; then see hardware",
        ),
        risk="a power cycle ends everything on the node",
        rollback="nothing to undo",
    ),
    verify=("nvidia-smi -L | wc -l: as many as lspci -d 10de: lists GPUs",),
    sources=("open-gpu-kernel-modules, kernel-open/nvidia/nv.c", "nvidia-smi(1)"),
)

_IN_CONTAINER = ("app-log", "pod-events", "plugin-log", "nccl-log")


def find(facts: Facts) -> Iterator[Answer]:
    wrong = list(facts.said("modprobe.wrong_format", "modprobe.btf_invalid"))
    symbols = list(facts.said("modprobe.unknown_symbol"))
    if wrong or symbols:
        built = next((said.get("built") for said in wrong if said.get("built")), "")
        running = next((said.get("running") for said in wrong if said.get("running")), "")
        symbol = next((said.get("symbol") or said.get("symbol2") for said in symbols), "")
        why = (
            f"It was built for {built}, and {running} runs."
            if built
            else f"The running kernel does not offer {symbol} as the module needs it."
            if symbol
            else "Kernel and module do not fit."
        )
        yield OTHER_KERNEL.finding(why, ESTABLISHED if built or symbol else LIKELY, [*wrong, *symbols])
    elif refused := list(facts.said("modprobe.dependency_refused")):
        names = ", ".join(sorted({said.get("module") for said in refused}))
        yield OTHER_KERNEL.finding(
            f"The kernel refuses {names}, which the driver needs ({refused[0].get('reason')}): the modules at hand are "
            "those of another kernel.",
            LIKELY,
            refused,
        )
    named = facts.said("modprobe.not_found", "modprobe.not_found_by_name")
    missing = [said for said in named if "uvm" not in value(said, "module")]
    if missing:
        kernel = next((said.get("kernel") for said in missing if said.get("kernel")), "")
        yield NOT_BUILT.finding(
            f"There is no NVIDIA module for {f'kernel {kernel}' if kernel else 'the running kernel'}.",
            LIKELY,
            missing,
        )
    states = list(facts.said("driver.dkms_state"))
    if states and not any(said.get("state") == "installed" for said in states):
        yield NOT_BUILT.finding("DKMS has the module's source and has not installed it for any kernel.", LIKELY, states)
    if told := list(facts.said("driver.lost_told")):
        yield NOT_BUILT.finding(
            "The driver is said to be gone since the kernel or the system was updated.", POSSIBLE, told
        )
    if needed := list(facts.said("modprobe.dependency_not_found")):
        yield NOT_BUILT.finding(
            f"The kernel has no module {', '.join(sorted({said.get('module') for said in needed}))}, which the driver "
            "needs to load.",
            LIKELY,
            needed,
        )
    if absent := list(facts.said("modprobe.depmod_fails")):
        kernel = next((said.get("kernel") for said in absent if said.get("kernel")), "")
        yield NOT_BUILT.finding(
            f"Modules are put in place for kernel {kernel or 'another one'}, which is not on the disk.", LIKELY, absent
        )
    # In a container the same words mean that it was given none.
    seen = [said for said in facts.said("nvml.no_devices") if said.origin.kind not in _IN_CONTAINER]
    none = [*facts.said("modprobe.no_such_device", "driver.no_supported_gpu"), *seen]
    if none:
        yield NO_DEVICE.finding("The driver finds no GPU that it can serve.", POSSIBLE, none)


RULE = Rule((OTHER_KERNEL, NOT_BUILT, NO_DEVICE), find)
