"""L1. Lines of the driver, of its build and of its removal that sound like errors."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Rule
from berth.diagnosis.trap import noted, trap
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

STARTUP = trap(
    "DriverStartupNoise",
    Layer.L1,
    Effect.BlindMonitoring,
    "lines of the kernel about the driver that every machine has",
    meaning="A module from outside the kernel taints it; firmware tables are not quite as the standard wants them; the "
    "driver maps several windows at once, or prints what it does. Nothing fails after these lines.",
    known_by="These very lines, without an Xid, a failed start or a device that is missing.",
    disproved_by="nvidia-smi -L lists fewer devices than lspci.",
    counter_check="nvidia-smi -L | wc -l; lspci -d 10de: | grep -c -e 3D -e VGA: the same number",
    sources=("Linux, documentation: tainted kernels", "open-gpu-kernel-modules, kernel-open and issues 583 and 976"),
)
BUILD = trap(
    "DriverBuildNoise",
    Layer.L1,
    Effect.BlindMonitoring,
    "warnings in the driver's build that stop nothing",
    meaning="No type information for tracing, no 32-bit libraries, no X server, no list of built-in modules: on a "
    "machine that computes nobody needs them, and the build goes on.",
    known_by="These warnings, and no error after them.",
    disproved_by="The build ends with an error; read that one.",
    counter_check="modinfo -F version nvidia: the version that was built",
    sources=("Linux, scripts/Makefile.modfinal", "nvidia-installer", "depmod(8)"),
)
UNLOAD = trap(
    "DriverUnloadNoise",
    Layer.L1,
    Effect.BlindMonitoring,
    "the driver container unloads what is not loaded",
    meaning="Before it installs a driver it unloads modules and mounts of a former one. Where there are none, the "
    "tools say so.",
    known_by="A module that is not loaded or a mount that is not there, at the start or end of the container.",
    disproved_by="The container ends with another error after it.",
    counter_check="kubectl logs -n gpu-operator POD: goes on to build or load the module",
    sources=("gpu-driver-container, nvidia-driver script",),
)
KEPT = trap(
    "DriverKeepsMemory",
    Layer.L1,
    Effect.MemoryShort,
    "a few hundred MiB are in use although no program is there",
    meaning="Driver and firmware (GSP) keep a part of the memory for themselves; depending on model and release "
    "that is 3 to 800 MiB. It is the same on all cards of a model.",
    known_by="Less than 1 GiB in use, no process, no load.",
    disproved_by="Other cards of the model use much less, or it grows.",
    counter_check="nvidia-smi -q -d MEMORY: Reserved; the same on all cards of the model",
    sources=("open-gpu-kernel-modules issue 357", "nvidia-smi manual: FB memory usage"),
)

LISTED = trap(
    "ModulesListedNotLoaded",
    Layer.L1,
    Effect.BlindMonitoring,
    "lspci lists nouveau among the modules although another driver serves the card",
    meaning="The line Kernel modules names all that could serve the device, whether they are loaded, blocked or "
    "neither. Which one does stands under Kernel driver in use.",
    known_by="nouveau under Kernel modules, and Kernel driver in use: nvidia.",
    disproved_by="lsmod lists nouveau.",
    counter_check="lsmod | grep nouveau: nothing",
    sources=("lspci(8), -k",),
)
LINKS = trap(
    "LibraryIsNoLink",
    Layer.L1,
    Effect.BlindMonitoring,
    "ldconfig finds a file where it expected a link",
    meaning="Under WSL, and where libraries were copied, libcuda.so.1 is a file of its own. ldconfig says so and takes "
    "it all the same.",
    known_by="ldconfig: … is not a symbolic link.",
    disproved_by="Programs do not find the library.",
    counter_check="ldconfig -p | grep libcuda.so.1: a path",
    sources=("ldconfig(8)",),
)
NO_FABRIC = trap(
    "FabricNotThere",
    Layer.L1,
    Effect.FabricDown,
    "the fabric state is N/A: the card is behind no NVSwitch",
    meaning="Only cards on boards with NVSwitch register with a fabric. On all others the state is N/A, and CUDA does "
    "not wait for it.",
    known_by="Fabric State N/A.",
    disproved_by="The machine has NVSwitches: lspci -d 10de: lists bridges beside the GPUs.",
    counter_check="lspci -d 10de: | grep -i -e bridge -e switch: nothing",
    sources=("nvidia-smi manual: fabric",),
)

POWERD = trap(
    "PowerServiceNotForThisBoard",
    Layer.L1,
    Effect.BlindMonitoring,
    "nvidia-powerd does not run on this machine",
    meaning="The service shifts power between processor and GPU of notebooks whose firmware knows Dynamic Boost. "
    "Servers and desktops have neither; it ends at once and nothing else depends on it.",
    known_by="nvidia-powerd finds no matching GPU or no support of the firmware, and ends.",
    disproved_by="A notebook that is sold with Dynamic Boost.",
    counter_check="nvidia-smi -L: lists the GPU",
    sources=("NVIDIA driver README, Dynamic Boost on Linux",),
    steps=("nothing to mend; systemctl disable nvidia-powerd to be rid of the lines",),
)
INTEGRATED = trap(
    "IntegratedGpuFieldsEmpty",
    Layer.L1,
    Effect.BlindMonitoring,
    "nvidia-smi shows hardly anything of a GPU that shares the machine's memory",
    meaning="The GPU of such a chip (Jetson, GB10) shares memory, cooling and power with the processor: the fields "
    "have no value. CUDA works.",
    known_by="The name ends with (nvgpu) or is GB10, and the fields are N/A or Not Supported.",
    disproved_by="CUDA programs fail as well.",
    counter_check="tegrastats shows a Jetson's load; free -g shows a GB10's memory; a CUDA sample runs",
    sources=("NVIDIA Jetson Linux documentation: nvidia-smi",),
    verify=("a CUDA sample runs",),
)

# What the kernel says of a device or a driver that does not go on.
_WORSE = (
    "kernel.xid", "kernel.xid_programs", "kernel.xid_firmware", "kernel.xid_nvlink", "kernel.off_bus",
    "kernel.adapter_init", "kernel.gsp_boot", "kernel.gsp_silent", "kernel.gfw_boot", "kernel.wpr2",
    "kernel.gpu_locked", "kernel.probe_failed", "kernel.hung_in_driver", "kernel.lockup_in_driver", "kernel.uvm_fatal",
)  # fmt: skip
KEPT_LEAST, KEPT_MOST = 200 * 2**20, 800 * 2**20


def find(facts: Facts) -> Iterator[Answer]:
    yield from noted(facts, STARTUP, ("harmless.driver_startup",), "Lines of this kind come on healthy machines.")
    yield from noted(
        facts, STARTUP, ("harmless.driver_assertion",), "A check in the driver that goes on.", POSSIBLE,
        unless=_WORSE,
    )  # fmt: skip
    yield from noted(
        facts, STARTUP, ("harmless.display_absent", "harmless.module_notes"), "Lines of this kind come on healthy "
        "machines.", unless=_WORSE,
    )  # fmt: skip
    listed, serves = list(facts.said("harmless.modules_listed")), list(facts.said("context.nvidia_serves"))
    if listed and serves:
        yield LISTED.finding("The nvidia driver serves the card.", LIKELY, [*listed, *serves[:1]])
    yield from noted(facts, LINKS, ("harmless.not_symbolic_link",), "It is used all the same.")
    yield from noted(facts, POWERD, ("harmless.powerd",), "The machine has nothing for it to do.")
    yield from noted(facts, INTEGRATED, ("harmless.integrated_gpu",), "An integrated GPU has no such values.")
    if absent := list(facts.said("harmless.memory_absent")):
        for shared in list(facts.said("context.unified_memory"))[:1]:
            yield INTEGRATED.finding(
                "The GPU has no memory of its own to give a figure of.", POSSIBLE, [*absent, shared]
            )
    yield from noted(facts, BUILD, ("harmless.driver_build",), "Warnings of this kind stop no build.")
    failed = ("driver.build_failed", "driver.make_failed", "driver.dkms_refused", "driver.compiler_unfit",
              "driver.installer_failed")  # fmt: skip
    yield from noted(
        facts, BUILD, ("harmless.build_notes", "harmless.compiler_differs"), "Warnings of this kind stop no build.",
        unless=failed,
    )  # fmt: skip
    differs = list(facts.said("driver.compiler_differs"))
    if (
        differs
        and (any(facts.said("driver.built")) or not any(said.values for said in differs))
        and not any(facts.said(*failed))
    ):
        yield BUILD.finding("The build goes on with another compiler than the kernel's.", POSSIBLE, differs)
    yield from noted(facts, UNLOAD, ("harmless.driver_unload",), "There was nothing to unload.")
    yield from noted(facts, NO_FABRIC, ("harmless.fabric_not_there",), "The card has no fabric to register with.")
    kept = [
        device.quote("memory_used_bytes")
        for device in facts.of(DeviceSeen)
        if device.processes == ()
        and not device.gpu_percent
        and KEPT_LEAST <= (device.memory_used_bytes or 0) <= KEPT_MOST
    ]
    if kept:
        yield KEPT.finding("The driver and its firmware keep it.", POSSIBLE, kept)
    yield from noted(facts, KEPT, ("harmless.kept_memory_told",), "The driver and its firmware keep it.",
                     unless=("context.two_tools",))  # fmt: skip


RULE = Rule((STARTUP, BUILD, UNLOAD, KEPT, LISTED, LINKS, NO_FABRIC, POWERD, INTEGRATED), find)
