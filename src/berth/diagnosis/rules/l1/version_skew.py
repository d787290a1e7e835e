"""L1. Parts of the driver have different versions: kernel module, libraries, firmware."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

_FIX = Fix(
    steps=(
        "on NODE: cat /proc/driver/nvidia/version; ls -l /usr/lib*/**/libnvidia-ml.so.*; modinfo -F version nvidia",
        "only the loaded module is old: drain the node and reboot it, or unload all nvidia modules and load them",
        "different versions on disk: purge all driver packages, install one version from one source, reboot",
        "keep unattended upgrades off the driver: apt-mark hold 'nvidia-*' 'libnvidia-*'",
    ),
    risk="a reboot ends everything on the node",
    rollback="the former version of all packages",
)
SKEW = Code(
    name="DriverVersionsDiffer",
    layer=Layer.L1,
    cause_class="version-mismatch",
    severity=Severity.Critical,
    effect=Effect.NvmlFails,
    title="kernel module and libraries of the driver have different versions",
    meaning="The driver was updated on disk while the old module stayed loaded, or two sources installed it. What runs "
    "goes on; nothing new can use a GPU. Even the last number has to be the same.",
    known_by="NVML reports a driver/library version mismatch, or the module an API mismatch with both versions.",
    disproved_by="The version in /proc/driver/nvidia/version is that of libnvidia-ml.so.* on the node.",
    counter_check="on NODE: cat /proc/driver/nvidia/version; ldconfig -p | grep libnvidia-ml; nvidia-smi --version: "
    "one and the same version",
    fix=_FIX,
    verify=("nvidia-smi: a table, and no mismatch", "dmesg: no new 'API mismatch'"),
    sources=("NVML, NVML_ERROR_LIB_RM_VERSION_MISMATCH", "open-gpu-kernel-modules, API version check"),
)
FIRMWARE = Code(
    name="GspFirmwareMissing",
    layer=Layer.L1,
    cause_class="version-mismatch",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="the GPU's firmware for the loaded module is not there",
    meaning="The module asks for firmware of exactly its own version. Without it no GPU of Turing or newer starts.",
    known_by="The kernel cannot load nvidia/VERSION/gsp_*.bin.",
    disproved_by="The file is in /lib/firmware/nvidia/VERSION, or in the search path that the kernel has.",
    counter_check="on NODE: cat /proc/driver/nvidia/version; ls /lib/firmware/nvidia/ (or the folder in "
    "/sys/module/firmware_class/parameters/path): a folder of that version",
    fix=_FIX,
    verify=("on NODE: ls /lib/firmware/nvidia/$(modinfo -F version nvidia)/: gsp_*.bin", "nvidia-smi -L: the GPUs"),
    sources=("driver README, GSP firmware", "gpu-driver-container, firmware_class path"),
)
OLD_LIBRARY = Code(
    name="NvmlTooOld",
    layer=Layer.L1,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.NvmlFails,
    title="the NVML library does not know what it is asked",
    meaning="The program is newer than the driver's library: half an update, or a driver too old for this component.",
    known_by="NVML says Function Not Found, or the library lacks a symbol.",
    disproved_by="nvidia-smi of the same place works, and the component's notes allow this driver.",
    counter_check="nvidia-smi --version in the same place: answers, with a driver that the component's notes allow",
    fix=Fix(
        steps=(
            "after an update of the driver: reboot",
            "otherwise a driver that the component's release notes ask for, or an older release of the component",
        ),
        risk="a new driver needs the GPU pods to leave",
        rollback="the former driver version",
    ),
    verify=("nvidia-smi: a table",),
    sources=("NVML, NVML_ERROR_FUNCTION_NOT_FOUND",),
)

_NOT_THE_MODULE = "Mismatch in versions between nvidia-smi"


def find(facts: Facts) -> Iterator[Answer]:
    mismatch = list(facts.said("nvml.version_mismatch"))
    api = list(facts.said("driver.api_mismatch"))
    firmware = list(facts.said("driver.gsp_firmware_missing"))
    told = [said for said in facts.said("driver.versions_told") if value(said, "module") != value(said, "client")]
    told += facts.said("driver.kernels_differ", "driver.modules_differ", "driver.library_of_version_missing")
    different = _versions_differ(facts)
    if mismatch or api:
        module = next((said.get("module") or said.get("module2") for said in api), "")
        client = next((said.get("client") or said.get("client2") for said in api), "")
        loaded = list(facts.said("kernel.driver_version"))
        library = list(facts.said("nvml.library_version"))
        module = module or next((said.get("version") for said in loaded), "")
        client = client or next((said.get("version") for said in library if said.get("version") != module), "")
        known = [f"the kernel module is {module}"] if module else []
        known += [f"the libraries are {client}"] if client else []
        yield SKEW.finding(
            f"{' and '.join(known) or 'kernel module and libraries are of different versions'}.".capitalize(),
            # Of nvidia-smi and the library alone: any other library of that name on the search path does it, too.
            ESTABLISHED if api or not all(_NOT_THE_MODULE in said.origin.text for said in mismatch) else LIKELY,
            [*api, *mismatch, *loaded, *library, *firmware],
        )
    elif told or different:
        yield SKEW.finding(
            _told(told[0])
            if told
            else f"The kernel module is {different[0].get('version')}, NVML is {value(different[1], 'version')}.",
            LIKELY if different else POSSIBLE,
            [*told, *different],
        )
    elif firmware:
        version = next((found for said in firmware if (found := value(said, "version"))), "")
        kept = list(facts.said("driver.firmware_path_kept"))
        target = list(facts.said("driver.firmware_target_missing"))
        # Nothing else says that versions differ: then the file is not there at all, or elsewhere.
        is_absent = any(end in one.origin.text for one in firmware for end in ("error -2", "(-2)"))
        yield FIRMWARE.finding(
            f"There is no firmware {version} where the kernel looks for it.".replace("  ", " "),
            LIKELY,
            [*firmware, *kept, *target],
            cause_class="path-mount" if kept or target else "driver-build" if is_absent else None,
        )
    old = list(facts.said("nvml.function_not_found"))
    if old and not mismatch:
        yield OLD_LIBRARY.finding(
            "The library does not have a function that the program calls.", POSSIBLE, old, layer=_of_program(old)
        )


def _of_program(said: list[Said]) -> Layer | None:
    """A component that is newer than the driver is to be chosen by the driver, not the other way round."""
    words = " ".join(one.origin.text for one in said).lower()
    if "device-plugin" in words:
        return Layer.L3
    return Layer.L2 if "nvidia-container-" in words or "nvidia-ctk" in words else None


def _told(said: Said) -> str:
    if said.message == "driver.kernels_differ":
        return f"Kernel {value(said, 'one')} and modules for {value(said, 'other')} were put together."
    if said.message == "driver.modules_differ":
        return f"{value(said, 'one')} and {value(said, 'other')} are of two releases."
    if said.message == "driver.library_of_version_missing":
        return f"{value(said, 'library')} is wanted, and the driver that is installed is of another version."
    return f"The kernel module is {value(said, 'module')}, the libraries are {value(said, 'client')}."


def _versions_differ(facts: Facts) -> list[Said]:
    """The loaded module, and a library that calls itself another version; it leaves the last number out. Or else the
    package of the library, as the node's list of packages has it."""
    library = next((one for one in facts.said("nvml.library_version") if "NVML" in one.origin.text), None)
    library = library or next(iter(facts.said("nvml.library_package")), None)
    loaded = list(facts.said("kernel.driver_version"))
    if library is None or not loaded:
        return []
    version = value(library, "version")
    fits = any(one.get("version") == version or one.get("version").startswith(f"{version}.") for one in loaded)
    return [] if fits else [loaded[-1], library]


RULE = Rule((SKEW, FIRMWARE, OLD_LIBRARY), find)
