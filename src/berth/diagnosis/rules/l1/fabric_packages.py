"""L1. Packages that have to have the driver's version and are of another: Fabric Manager, IMEX, NSCQ."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.versions import fabric
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.machine_facts import KernelDriver, PciSeen
from berth.evidence.formats.packages import PackageSeen

DIFFERS = Code(
    name="FabricPackageDiffers",
    layer=Layer.L1,
    cause_class="version-mismatch",
    severity=Severity.Warning,
    effect=Effect.FabricDown,
    title="a package of the fabric has another version than the loaded driver",
    meaning="Fabric Manager starts with exactly the driver's version only; IMEX and NSCQ belong to its branch. What "
    "runs goes on until the service or the machine is started again: then NVLink is not set up, and CUDA answers 802.",
    known_by="The list of installed packages and the version of the loaded kernel module differ.",
    disproved_by="The service is not used on this machine (no NVSwitch), or a driver container brings its own.",
    counter_check="on NODE: cat /proc/driver/nvidia/version; dpkg -l | grep -e fabricmanager -e imex -e nscq: the "
    "same version; or the machine has no NVSwitch and uses none of them",
    fix=Fix(
        steps=(
            "install the driver's own version of it: apt-get install nvidia-fabricmanager-BRANCH=VERSION-1, the same "
            "for nvidia-imex and libnvidia-nscq",
            "the driver was updated and its old module is still loaded: drain and reboot",
            "hold all of them together: apt-mark hold 'nvidia-*' 'libnvidia-*'",
        ),
        risk="a restart of Fabric Manager under running jobs interrupts NVLink; drain first",
        rollback="the former package version",
    ),
    verify=("systemctl is-active nvidia-fabricmanager: active", "nvidia-smi -q | grep -A2 Fabric: Completed, Success"),
    sources=(
        "Fabric Manager user guide, version check at start",
        "NVIDIA driver redistributables, one version for all",
    ),
)


def find(facts: Facts) -> Iterator[Answer]:
    if any(facts.said("fabric.version_mismatch", "fabric.version_mismatch_told", "driver.api_mismatch")):
        return  # said by the service or the module
    drivers = [one for one in facts.of(KernelDriver) if one.is_loaded]
    switches = {one.node for one in facts.of(PciSeen) if one.is_nvidia and one.kind.startswith("Bridge")}
    for package in facts.of(PackageSeen):
        known = fabric.companion(package.name)
        driver = next((one for one in drivers if one.node == package.node), None)
        if known is None or driver is None or fabric.fits(known, package.version, driver.version):
            continue
        wanted = "exactly" if known.parts > 1 else "the branch of"
        yield DIFFERS.finding(
            f"{known.component} is installed as {package.version}, the loaded driver is {driver.version}; it has to be "
            f"{wanted} the driver's version.".replace("the branch of the driver's version", "of the driver's branch"),
            # Without switches, and beside a driver container that brings its own, nobody uses the package.
            LIKELY if package.node in switches else POSSIBLE,
            [package, driver],
            node=package.node,
        )


RULE = Rule((DIFFERS,), find)
