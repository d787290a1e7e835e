"""L1. Fabric Manager and the driver have different versions."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.rules.l1.fabric_evidence import layer_of, states_not_ready
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

DIFFERS = Code(
    name="FabricManagerVersionDiffers",
    layer=Layer.L1,
    cause_class="fabric",
    severity=Severity.Critical,
    effect=Effect.FabricDown,
    title="Fabric Manager and the driver have different versions",
    meaning="On machines with NVSwitch the manager refuses to start with another version than the driver's, to the "
    "last number. nvidia-smi looks healthy; CUDA answers 802, system not yet initialized.",
    known_by="Fabric Manager or the NVSwitch module prints both versions.",
    disproved_by="Both versions are the same, and the unit is active.",
    counter_check="on NODE: nv-fabricmanager --version; cat /proc/driver/nvidia/version: the same version; systemctl "
    "is-active nvidia-fabricmanager: active",
    fix=Fix(
        steps=(
            "install exactly the driver's version: apt-get install nvidia-fabricmanager-BRANCH=VERSION-1 "
            "(the same for nvidia-imex, libnvidia-nscq and nvlsm)",
            "a manager of the host beside a driver container: remove it; the container brings its own",
            "systemctl restart nvidia-fabricmanager; if the state stays: reset all GPUs or reboot, then start it again",
        ),
        risk="a reset or reboot ends everything on the node",
        rollback="the former package version",
    ),
    verify=(
        "systemctl is-active nvidia-fabricmanager: active",
        "nvidia-smi -q | grep -A2 Fabric: State Completed, Status Success, on every GPU",
    ),
    sources=("Fabric Manager user guide, version check at start", "nvidia-nvswitch module, user version check"),
)


def find(facts: Facts) -> Iterator[Answer]:
    exact = list(facts.said("fabric.version_mismatch"))
    told = list(facts.said("fabric.version_mismatch_told"))
    told += [said for said in facts.said("fabric.versions_told") if value(said, "fm") != value(said, "driver")]
    if not exact and not told:
        return
    manager = next((said.get("fm") or said.get("user") for said in exact), "")
    driver = next((said.get("driver") or said.get("kernel") for said in exact), "")
    yield DIFFERS.finding(
        f"Fabric Manager is {manager or 'of another version'}, the driver {driver or 'of its own'}."
        if exact
        else "Fabric Manager and the driver are said to have different versions.",
        ESTABLISHED if exact else LIKELY,
        [*exact, *told, *states_not_ready(facts), *facts.said("cuda.system_not_ready")],
        layer=layer_of(facts),
    )


RULE = Rule((DIFFERS,), find)
