"""L4. DCGM does not find the library that reads NVSwitches: no fault where there are none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Fact
from berth.evidence.facts import Facts
from berth.evidence.formats.machine_facts import PciSeen
from berth.evidence.formats.smi_facts import DeviceSeen

WITHOUT_SWITCH = Code(
    name="SwitchLibraryWithoutSwitch",
    layer=Layer.L4,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.BlindMonitoring,
    title="DCGM looks for NVSwitches on a machine that has none",
    meaning="DCGM tries the library of NVSwitches (NSCQ, NVSDM) at each start and writes an error where it is missing. "
    "Figures of GPUs are not concerned; what fails beside it has another cause.",
    known_by="DCGM cannot load NSCQ or NVSDM, or is not attached to NVSwitches, and nothing shows a switch.",
    disproved_by="lspci -d 10de: lists a bridge of class 0680: the machine has NVSwitches.",
    counter_check="on NODE: lspci -n -d 10de::0680: nothing",
    fix=Fix(
        steps=(
            "nothing to mend; look at the exporter's own last line for what really fails",
            "to have a quiet log: a counters file without DCGM_FI_DEV_NVSWITCH fields, or a newer DCGM",
        ),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("curl -s NODE:9400/metrics | grep -c ^DCGM_FI_DEV_GPU_TEMP: the number of GPUs",),
    sources=("DCGM modules/nvswitch: the libraries that it loads", "DCGM issue 159, gpu-operator issue 294"),
    is_trap=True,
)
NOT_READ = Code(
    name="NvSwitchNotRead",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Warning,
    effect=Effect.BlindMonitoring,
    title="DCGM cannot read the NVSwitches of the machine",
    meaning="No figures and no health of the switches; those of the GPUs are there.",
    known_by="DCGM cannot load NSCQ or NVSDM on a machine with NVSwitches.",
    disproved_by="dcgmi discovery -l lists the switches.",
    counter_check="dcgmi discovery -l: the switches; on NODE: ldconfig -p | grep -e nscq -e nvsdm",
    fix=Fix(
        steps=(
            "install libnvidia-nscq of the driver's very version (Blackwell: libnvsdm) where the hostengine runs",
            "in a container: the library and /dev/nvidia-nvswitch* must be in it (privileged, driver root)",
        ),
        risk="the hostengine restarts",
        rollback="remove the package",
    ),
    verify=("dcgmi discovery -l: the switches of the machine",),
    sources=("DCGM documentation, NVSwitch", "dcgm-exporter issue 169"),
)
# Modules that stand on a board with switches.
_SWITCHED = re.compile(r"\bSXM\d|HGX|DGX|\bGB[23]00\b|\b[BH][123]00\b(?!.*(?:PCIe|NVL\b))", re.IGNORECASE)
_BRIDGE = "0680"


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("dcgm.switch_library_absent")).values():
        if (switch := _switches(facts)) or any(_SWITCHED.search(one.origin.text) for one in said):
            yield NOT_READ.finding("The library that reads NVSwitches is not there or fails.", LIKELY, [*said, *switch])
        else:
            seen = any(one.name for one in facts.of(DeviceSeen)) or any(facts.of(PciSeen))
            yield WITHOUT_SWITCH.finding(
                "DCGM asks for a library of NVSwitches, and no switch is known here.",
                LIKELY if seen else POSSIBLE,
                said,
            )


def _switches(facts: Facts) -> list[Fact]:
    bridges: list[Fact] = [one for one in facts.of(PciSeen) if one.vendor == "10de" and one.kind_id == _BRIDGE]
    modules: list[Fact] = [one for one in facts.of(DeviceSeen) if _SWITCHED.search(one.name)]
    return bridges or modules[:1]


RULE = Rule((WITHOUT_SWITCH, NOT_READ), find)
