"""L1. Fabric Manager is not there, does not start, or is started the wrong way; and where that means nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l1.fabric_evidence import has_no_fabric, layer_of, states_not_ready
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

DOWN = Code(
    name="FabricManagerDown",
    layer=Layer.L1,
    cause_class="fabric",
    severity=Severity.Critical,
    effect=Effect.FabricDown,
    title="Fabric Manager does not run",
    meaning="On a machine with NVSwitch nothing can use CUDA without it: 802, system not yet initialized, while "
    "nvidia-smi looks healthy.",
    known_by="The unit is not there, inactive or failed, or its program cannot be started.",
    disproved_by="The machine has no NVSwitch (`lspci -d 10de: | grep -i bridge`), or the unit is active.",
    counter_check="on NODE: lspci -d 10de: | grep -i -E 'bridge|nvswitch': nothing; or systemctl is-active "
    "nvidia-fabricmanager: active; nvidia-smi -q | grep -A2 Fabric: Completed, Success",
    fix=Fix(
        steps=(
            "not installed: the package of exactly the driver's version, systemctl enable --now nvidia-fabricmanager",
            "installed: its log names the reason: version, library, NVLinks that do not train",
            "driver container: restart the driver pod and read the lines after `Starting NVIDIA fabric manager daemon`",
            "Talos: the extension nvidia-fabricmanager of the release that fits the driver",
        ),
        risk="none: no GPU program works without it",
        rollback="systemctl disable --now nvidia-fabricmanager",
    ),
    verify=(
        "systemctl is-active nvidia-fabricmanager: active",
        "nvidia-smi -q | grep -A2 Fabric: State Completed, Status Success, on every GPU",
    ),
    sources=("Fabric Manager user guide", "gpu-driver-container, _start_daemons"),
)
WRONG_START = Code(
    name="FabricManagerStartedWrong",
    layer=Layer.L1,
    cause_class="fabric",
    severity=Severity.Critical,
    effect=Effect.FabricDown,
    title="Fabric Manager is started the wrong way",
    meaning="It does not know its options, because the scripts of the driver container and of the manager are of "
    "different releases, or it runs in a mode that is not for these guests. The driver pod may be Ready nevertheless.",
    known_by="The start script prints an unknown option and its usage, or FABRIC_MODE does not fit the guests.",
    disproved_by="The manager runs in the driver container: pgrep nv-fabricmanager.",
    counter_check="in the driver container: pgrep nv-fabricmanager: a process",
    fix=Fix(
        steps=(
            "take a driver image whose script fits its Fabric Manager: the newest of the branch",
            "virtual machines: FABRIC_MODE=1 for shared NVSwitch, 2 for vGPU, then restart it and reset the GPUs",
            "until then, in the driver pod: nv-fabricmanager -c /usr/share/nvidia/nvswitch/fabricmanager.cfg",
        ),
        risk="a new driver image needs the GPU pods to leave",
        rollback="the former driver version",
    ),
    verify=("nvidia-smi -q | grep -A2 Fabric: State Completed on every GPU",),
    sources=("gpu-driver-container, nvidia-driver script", "nvidia-fabricmanager-start.sh"),
)
NOT_WANTED = Code(
    name="FabricManagerWithoutSwitch",
    layer=Layer.L1,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.FabricDown,
    title="Fabric Manager fails where there is nothing for it to do",
    meaning="The machine has no NVSwitch. The failed unit is harmless: GPUs and NVLink bridges work without it.",
    known_by="The manager ends with NV_WARN_NOTHING_TO_DO, or no device has a fabric.",
    disproved_by="lspci lists NVSwitches, the fabric of a device is In Progress, or CUDA answers 802.",
    counter_check="lspci -d 10de: | grep -i -E 'bridge|nvswitch': nothing; nvidia-smi -q | grep -A2 Fabric: N/A",
    fix=Fix(
        steps=("systemctl disable --now nvidia-fabricmanager",),
        risk="none",
        rollback="systemctl enable nvidia-fabricmanager",
    ),
    verify=("a CUDA sample: Test PASSED",),
    sources=("Fabric Manager user guide, supported systems",),
    is_trap=True,
)

_NVLINK5 = re.compile(r"\bG?B[123]00\b")  # there a missing subnet manager is answered with the same words


def find(facts: Facts) -> Iterator[Answer]:
    nothing = list(facts.said("fabric.nothing_to_do"))
    symptoms = [*states_not_ready(facts), *facts.said("cuda.system_not_ready")]
    needed = (
        bool(symptoms)
        or any(facts.said("fabric.ib_modules_missing", "fabric.version_mismatch", "fabric.subnet_manager"))
        or any(_NVLINK5.search(one.name) for one in facts.of(DeviceSeen))
    )
    down = _down(facts)
    if nothing and needed and not down:
        down = nothing
    if (nothing and not needed) or (down and has_no_fabric(facts) and not symptoms):
        yield NOT_WANTED.finding(
            "Fabric Manager found no NVSwitch: this machine does not need it.", LIKELY, [*nothing, *down]
        )
        return
    if wrong := [*facts.said("fabric.wrong_option"), *facts.said("fabric.wrong_mode")]:
        yield WRONG_START.finding(
            "The start script refuses an option that it was given, and Fabric Manager does not run."
            if wrong[0].message == "fabric.wrong_option"
            else "Fabric Manager runs in a mode that is not for these guests.",
            ESTABLISHED if wrong[0].message == "fabric.wrong_option" else LIKELY,
            [*wrong, *symptoms],
        )
        return
    if any(facts.said("fabric.version_mismatch")):
        return  # why it is down is known
    library = _library(facts)
    if not down and not library:
        return
    named = next((said.get("library") for said in library), "")
    why = f"Its program needs {named}, which is not there." if named else "It is not there or has failed."
    sure = ESTABLISHED if named or (down and symptoms) else LIKELY if _is_failure(down) else POSSIBLE
    yield DOWN.finding(f"Fabric Manager does not run. {why}", sure, [*library, *down, *symptoms], layer=layer_of(facts))


def _down(facts: Facts) -> list[Said]:
    stopped = [
        said
        for said in facts.said("fabric.service_status")
        if said.get("active") in ("inactive", "failed", "activating")
    ]
    return [
        *facts.said("fabric.unit_failed"),
        *stopped,
        *facts.said("fabric.absent"),
        *facts.said("fabric.socket_missing"),
        *facts.said("fabric.subnet_manager"),
    ]


def _is_failure(down: list[Said]) -> bool:
    return any(said.message != "fabric.absent" or said.get("sure") for said in down) or len(down) > 1


def _library(facts: Facts) -> list[Said]:
    """Only of the manager: by its name, by whose log it is, or where its unit fails beside it."""
    is_down = any(facts.said("fabric.unit_failed"))
    return [
        said
        for said in facts.said("fabric.missing_library")
        if (said.get("program") or "").endswith(("fabricmanager", "nvlsm"))
        or said.origin.kind in ("fabricmanager-log", "fabric-log")
        or (is_down and not said.get("program"))
    ]


RULE = Rule((DOWN, WRONG_START, NOT_WANTED), find)
