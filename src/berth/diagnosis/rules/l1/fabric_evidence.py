"""What several rules of the NVLink fabric ask: which devices are not ready, and from where it was seen."""

from __future__ import annotations

import re

from berth.diagnosis.words import Layer
from berth.evidence.fact import Fact, Origin
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

# Cards that are never behind an NVSwitch.
_NEVER_SWITCHED = re.compile(
    r"GeForce|RTX|Quadro|TITAN|Tesla [KMPT]\d|\bT4\b|\bL4\b|\bL40S?\b|\bA(?:2|10G?|16|30|40)\b|PCIe|\bNVL\b"
)
READY = ("completed", "n/a", "not supported", "")


def not_ready(facts: Facts) -> list[DeviceSeen]:
    """Devices whose registration with the fabric is not complete, though they have one."""
    return [one for one in facts.of(DeviceSeen) if one.fabric_state.lower() not in READY]


def states_not_ready(facts: Facts) -> list[Fact | Origin]:
    """The words that say it, of devices and of people."""
    return [
        *(one.quote("fabric_state") for one in not_ready(facts)),
        *(said for said in facts.said("nvidia_smi.fabric_state") if said.get("state").lower() != "completed"),
    ]


def has_no_fabric(facts: Facts) -> bool:
    """Devices were looked at, and none of them has a fabric to register with."""
    seen = facts.of(DeviceSeen)
    states = [one.fabric_state.lower() for one in seen if one.fabric_state]
    if states:
        return all(state in ("n/a", "not supported") for state in states)
    names = [one.name for one in seen if one.name]
    if not names:
        return any(facts.said("fabric.card_without_switch"))
    return all(_NEVER_SWITCHED.search(name) for name in names)


def layer_of(facts: Facts) -> Layer:
    """Where a fault of Fabric Manager is met. It is a service beside the driver (L1); where nothing is known but a
    program that CUDA refuses (802) and what the service itself says, it is met in the program."""
    seen_below = states_not_ready(facts) or any(
        any(facts.said(name))
        for name in (
            "fabric.ib_modules_missing",
            "fabric.starting",
            "fabric.wrong_option",
            "fabric.missing_library",
            "fabric.subnet_manager",
        )
    )
    kernel = any(said.get("kernel") for said in facts.said("fabric.version_mismatch"))
    return Layer.L6 if any(facts.said("cuda.system_not_ready")) and not seen_below and not kernel else Layer.L1
