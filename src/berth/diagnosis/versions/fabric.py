"""What has to have the driver's own version: Fabric Manager and its like."""

from __future__ import annotations

from msgspec import Struct

from berth.diagnosis.versions.number import number


class Companion(Struct, frozen=True):
    """A package that follows the driver."""

    package: str  # how its name begins
    component: str
    parts: int  # numbers that have to be the same: 3 all of them, 1 the branch, 0 none
    source: str


COMPANIONS: tuple[Companion, ...] = (
    Companion("nvidia-fabricmanager", "Fabric Manager", 3, "Fabric Manager user guide, check at start"),
    Companion("nvidia-fabric-manager", "Fabric Manager", 3, "Fabric Manager user guide, check at start"),
    Companion("nvidia-imex", "IMEX", 1, "released with the driver under its version (redistributable manifests)"),
    Companion("libnvidia-nscq", "NSCQ", 1, "released with the driver under its version"),
    Companion("nvlsm", "NVLink Subnet Manager", 0, "has versions of its own; NVLink 5 switches need it"),
)


def companion(package: str) -> Companion | None:
    return next((one for one in COMPANIONS if package.startswith(one.package)), None)


def fits(one: Companion, version: str, driver: str) -> bool:
    """As far as both say: a package of branch 580 fits any driver of it where only that is asked for."""
    have, need = number(version)[: one.parts], number(driver)[: one.parts]
    length = min(len(have), len(need))
    return have[:length] == need[:length]
